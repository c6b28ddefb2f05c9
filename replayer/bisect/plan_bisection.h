// Bisects the liberties that a plan takes (plan_elements.h), with all its calls captured. It finds
// the side streams, or the reuses of memory, that make the step differ from its eager execution.
#pragma once

#include "replayer/bisect/step_bisection.h"

namespace acltape::replayer::bisect {

// The elements must satisfy AreLiberties. If a side stream is the cause, a binary search narrows it
// to a run of consecutive calls on that stream. Throws Error kUsage if the plan takes no such
// liberty, and what BisectStep throws.
BisectionReport BisectPlan(const script::MixedStep& step, const StepBisectionOptions& options,
                           Journal* journal);

}  // namespace acltape::replayer::bisect
