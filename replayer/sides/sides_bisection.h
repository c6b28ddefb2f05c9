// Bisects an eager step between two sides: two device libraries, two environments, or what was
// recorded and a device.
#pragma once

#include <array>
#include <functional>

#include "replayer/bisect/bisection.h"
#include "replayer/bisect/elements.h"
#include "replayer/sides/sides_experiment.h"

namespace acltape::replayer {

struct SidesBisectionOptions {
  EagerStepOptions experiment;  // `places` are chosen here
  BisectionOptions bisection;
  Elements elements = Elements::kCalls;  // or kRegions: calls without a barrier in between
  // Whether a call may be altered; empty: all may.
  std::function<bool(int64_t call_id)> may_alter;
};

// `journal` may be null. A cause is classified by executing each of its calls on both sides with
// the same inputs. Throws Error kUsage when nothing is left to alter, SideFailed when the good side
// cannot execute the step.
BisectionReport BisectSides(const MixedStep& step, std::array<CallSide*, 2> sides,
                            const SidesBisectionOptions& options, Journal* journal);

// With the recording as the good side (recorded_experiment.h). `bad` is null for the device of the
// session.
BisectionReport BisectRecorded(const MixedStep& step, CallSide* bad,
                               const SidesBisectionOptions& options, Journal* journal);

}  // namespace acltape::replayer
