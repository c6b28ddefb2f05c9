// --level of commands that look at one level of a trace (analyzer/level.h).
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>

#include "analyzer/level.h"

namespace acltape::cli {

inline const char* LevelName(analyzer::Level level) {
  return level == analyzer::Level::kAcl ? "acl" : "aten";
}

// Leaves `level` without a value where the option is not given.
inline void AddLevelOption(CLI::App& app, std::optional<analyzer::Level>& level,
                           const std::string& description) {
  app.add_option_function<std::string>(
         "--level",
         [&level](const std::string& word) {
           level = word == "acl" ? analyzer::Level::kAcl : analyzer::Level::kAten;
         },
         description)
      ->check(CLI::IsMember({"aten", "acl"}).description("aten|acl"))
      ->option_text("aten|acl");
}

}  // namespace acltape::cli
