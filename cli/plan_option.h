// The options that name a plan, and the plan that they name.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "replayer/replay.h"
#include "storage/reader.h"

namespace acltape::cli {

struct PlanOption {
  std::string path;  // empty: no plan
  bool allow_races = false;

  void Declare(CLI::App& app);
  // Reads the plan and holds it against the trace; null when none was named. Throws Error kUsage,
  // one sentence that names the row and the rule, when it is not fit for use.
  std::shared_ptr<const replayer::ChosenPlan> Read(const storage::Reader& trace) const;
};

}  // namespace acltape::cli
