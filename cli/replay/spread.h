// `acltape replay --spread`: which calls are wrong by themselves, and how far their errors reach.
#pragma once

#include <string>

#include "analyzer/calls/coverage.h"
#include "cli/choices/plan_option.h"
#include "cli/frame/command_line.h"
#include "cli/terminal/table.h"
#include "replayer/replay.h"
#include "storage/trace_part.h"

namespace acltape::cli {

struct SpreadRequest {
  std::string trace;
  storage::TracePart part;
  bool discard = false;  // write no rows to the trace
  PlanOption plan;
  // Options of both replays; the plan, the inputs and the streams are apart.
  replayer::ReplayOptions options;
  Format format = Format::kTable;
  CommandLine given;  // shows the result again
};

struct SpreadResult {
  int exit_code = 0;
  // There is no verdict where nothing was compared, or too little. Nothing was said about it.
  bool nothing_compared = false;
  analyzer::Coverage coverage;
};

// Replays the trace twice, with golden and with carried inputs, each in a process of its own:
// faults and numbers of runs that a device counts begin again in each. Prints the report. Throws
// what a replay throws.
SpreadResult RunSpread(const SpreadRequest& request);

}  // namespace acltape::cli
