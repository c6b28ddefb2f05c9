// How much of a program a comparison saw.
//
// A leaf computed when its operator ran on the device; views, allocations, values of the recording
// (sources, substituted leaves) and reads by the host computed nothing. A compared output tells of
// the leaf that wrote it, and of each leaf whose result it was made of: an error there would have
// shown. So results that are overwritten in place, or that live inside a step, count by what was
// made of them.
#pragma once

#include <functional>

#include "analyzer/program/program.h"
#include "replayer/values/replay_report.h"

namespace acltape::replayer {

// Sets `computed`, `covered`, `unseen` and `host_leaves` of the report by its compared calls.
// `executes` tells of a kernel whether an operator of the device ran it.
void MeasureCoverage(const analyzer::Program& program,
                     const std::function<bool(int64_t leaf)>& executes, ReplayReport& report);

}  // namespace acltape::replayer
