// Bisects the liberties that a plan takes (plan_elements.h), all its calls being captured: which
// side streams, or which reuses of memory, make the step differ from its eager execution?
#pragma once

#include "replayer/bisect/step_bisection.h"

namespace acltape::replayer {

// For elements that AreLiberties. What makes a side stream fail is narrowed to calls that run on it
// one behind the other, by binary search. Throws Error kUsage when the plan takes no such liberty,
// and what BisectStep throws.
BisectionReport BisectPlan(const MixedStep& step, const StepBisectionOptions& options,
                           Journal* journal);

}  // namespace acltape::replayer
