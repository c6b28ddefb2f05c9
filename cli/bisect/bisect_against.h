// `acltape bisect A --against B`: which calls of B, executed in the place of A's, make the results
// of a step leave A's.
#pragma once

#include <optional>
#include <string>

#include "cli/bisect/bisect_with.h"
#include "cli/frame/command_line.h"
#include "cli/tables/report.h"
#include "storage/trace_part.h"

namespace acltape::cli {

struct AgainstOptions {
  std::string a;
  std::string b;
  std::string calls;  // calls of A that may be altered, empty: all
  int64_t step = -1;  // a step of A; -1: the one of the first difference
  std::string device_lib;
  storage::TracePart part;  // for both
  CommandLine given;
  bool discard = false;        // write no findings to A
  std::optional<Table> ranks;  // shown too: how the process of `part` was chosen
  Format format = Format::kTable;
};

// Prints what was found; returns the exit code: 0 nothing, 1 found, 125 where executions cannot
// judge, because contents are missing or a recorded difference does not show on this device. Throws
// Error kTrace for a file that is no trace, kUsage for traces without a call in common.
int BisectAgainst(const AgainstOptions& options, const BisectWith& bisect_with);

}  // namespace acltape::cli
