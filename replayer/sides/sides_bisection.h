// Bisects an eager step between two sides: two device libraries, two environments, or a recording
// and a device.
#pragma once

#include <array>
#include <functional>

#include "replayer/bisect/bisection.h"
#include "replayer/bisect/elements.h"
#include "replayer/sides/sides_experiment.h"

namespace acltape::replayer::sides {

struct SidesBisectionOptions {
  EagerStepOptions experiment;  // `places` are chosen here
  bisect::BisectionOptions bisection;
  bisect::Elements elements =
      bisect::Elements::kCalls;  // or kRegions: runs of calls without a barrier
  // Returns true if the call may be altered; empty: all calls may.
  std::function<bool(int64_t call_id)> may_alter;
};

// `journal` may be null. To classify a cause, each of its calls is executed on both sides with the
// same inputs. Throws Error kUsage if nothing is left to alter, SideFailed if the good side cannot
// execute the step.
bisect::BisectionReport BisectSides(const script::MixedStep& step, std::array<CallSide*, 2> sides,
                                    const SidesBisectionOptions& options, bisect::Journal* journal);

// Bisects with the recording as the good side (recorded_experiment.h). If `bad` is null, the device
// of the session is used.
bisect::BisectionReport BisectRecorded(const script::MixedStep& step, CallSide* bad,
                                       const SidesBisectionOptions& options,
                                       bisect::Journal* journal);

}  // namespace acltape::replayer::sides
