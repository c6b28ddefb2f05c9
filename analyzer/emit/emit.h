// Writes a plan in the forms that other programs read.
//
//   DotText       Graphviz: a cluster per region, a colour per stream, hazards as edges, waits
//                 dashed
//   ResolvedJson  the plan with everything looked up in the trace: operators, results, recorded
//                 times, streams, events, order of issue
//   TorchairPass  a Python file with a pass over torchair's FX graphs that puts the planned kernels
//                 on their streams (torchair_pass.py has the code that all plans share)
//
// Precondition of all: the plan is valid for the work (analyzer/plan/validate.h).
#pragma once

#include <string>

#include "analyzer/calls/work.h"
#include "analyzer/plan/plan.h"

namespace acltape::analyzer::emit {

std::string DotText(const plan::Plan& plan, const Work& work);
std::string ResolvedJson(const plan::Plan& plan, const Work& work);

// Throws Error kUsage when the plan captures nothing, or is for calls of the ACL level.
std::string TorchairPass(const plan::Plan& plan, const Work& work);

}  // namespace acltape::analyzer::emit
