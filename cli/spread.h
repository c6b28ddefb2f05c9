// `acltape replay --spread`: which calls are wrong by themselves, and how far their errors reach.
#pragma once

#include <string>
#include <vector>

#include "cli/table.h"

namespace acltape::cli {

// Replays the trace twice, with carried and with golden inputs, each in a process of its own:
// faults and numbers of runs that a device counts begin again in each. `words` are the other
// options of `acltape replay`. Prints the report and returns the exit code; what the replays
// complain of goes to stderr.
int RunSpread(const std::string& trace, const std::vector<std::string>& words, Format format);

}  // namespace acltape::cli
