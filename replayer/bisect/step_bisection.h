// Bisects a captured step against its eager execution, in this process. The elements are its calls,
// or the liberties of its plan (plan_bisection.h).
#pragma once

#include <functional>
#include <string>

#include "meaning/command_change.h"
#include "replayer/bisect/bisection.h"
#include "replayer/bisect/elements.h"
#include "replayer/script/step_experiment.h"

namespace acltape::replayer::bisect {

struct StepBisectionOptions {
  script::StepExperiment::Options experiment;
  BisectionOptions bisection;
  Elements elements = Elements::kCalls;
  meaning::GivenCommand bisect_command;
  // True if the call may be altered; empty: all calls may.
  std::function<bool(int64_t call_id)> may_alter;
};

// `step` must have the plan that the options have. `journal` may be null. Throws Error kUsage if
// nothing is left to alter, and what building and running scripts throws.
BisectionReport BisectStep(const script::MixedStep& step, const StepBisectionOptions& options,
                           Journal* journal);

}  // namespace acltape::replayer::bisect
