// The ranks of a program, replayed together: each in a process of its own, with collectives that
// run between them.
#pragma once

#include <string>

#include "cli/frame/command_line.h"
#include "cli/terminal/table.h"
#include "replayer/values/replay_options.h"

namespace acltape::cli {

struct RanksRequest {
  std::string trace;
  replayer::ReplayOptions options;
  Format format = Format::kTable;
  CommandLine given;
};

// Prints what each rank and all of them together gave, and returns the exit code of the command.
// Throws Error kUsage if the trace has no two ranks with communicators. Writes nothing to the
// trace.
int ReplayRanks(const RanksRequest& request);

}  // namespace acltape::cli
