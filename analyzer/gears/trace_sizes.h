// The sizes of a varying dimension over the steps of a trace, and the time of each step.
#pragma once

#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/gears/gears.h"

namespace acltape::analyzer::gears {

struct TraceSizes {
  std::string dimension;  // "s0: dimension 0 of self of call 12 aten::mm, and 40 more"
  // One entry per step, with its time (analyzer/steps/step_times.h).
  std::vector<SizedTime> times;
  size_t other_steps = 0;  // steps of other operators or families; not used
  size_t places = 0;       // calls of a step that a graph would hold
  SizeHistogram Histogram() const;
};

// `wanted` names a shape symbol ("s0"), or a dimension as CALL:ARGUMENT:DIMENSION ("812:mat1:0",
// any call of any step). If it is empty, the symbol with most values is used, in the family with
// most steps that has one. The work needs its steps. Throws Error kUsage, one sentence, when there
// is no such dimension, and kTrace when the trace has no steps.
TraceSizes FindTraceSizes(const Work& work, const std::string& wanted);

// The costs of padding and of an eager step, by a line through the steps' times over their sizes.
// Throws Error kUsage, one sentence, when the times do not tell: all steps have one size, or the
// line says that a step of no size takes no time.
GearCosts CostsOf(const TraceSizes& sizes);

}  // namespace acltape::analyzer::gears
