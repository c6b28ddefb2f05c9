// --standard: what may differ.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analyzer/metrics/standard.h"

namespace acltape::cli {

struct StandardOption {
  std::string text = "bitwise";

  void Declare(CLI::App& app);
  bool bitwise() const { return text == "bitwise"; }
  // Loads the standard; null for bitwise. Throws Error kUsage when there is no such standard.
  std::shared_ptr<const analyzer::metrics::Standard> Load() const;
};

// The name and contents of a standard, for what tells one bisection from another.
nlohmann::json StandardIdentity(const analyzer::metrics::Standard& standard);

}  // namespace acltape::cli
