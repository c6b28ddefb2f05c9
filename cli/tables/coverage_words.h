// Words in which every verdict about results says how much of the program it saw.
#pragma once

#include <fmt/format.h>

#include <string>

#include "analyzer/calls/coverage.h"
#include "cli/terminal/table.h"

namespace acltape::cli {

inline void AddCoverage(Table& table, const analyzer::Coverage& coverage) {
  if (coverage.computed == 0) return;
  table.Add({"leaves that compared outputs tell of", coverage.Share()});
}

// Why times of a replay are not those of a step.
inline std::string PartlyTimed(const analyzer::Coverage& coverage) {
  return fmt::format("the timed executions run {} of the {} leaves of a step that compute",
                     coverage.covered, coverage.computed);
}

inline std::string NotKnown(const analyzer::Coverage& coverage) {
  return fmt::format("not known: compared outputs tell of {} leaves that computed",
                     coverage.Share());
}

}  // namespace acltape::cli
