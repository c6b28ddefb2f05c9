// The steps of a program of two levels for its calls of the interface. A thread of an adapter
// issues work later than the leaf that asked for it, so a step of leaves has calls of other numbers
// there: each call belongs to the step of its leaf.
#pragma once

#include <vector>

#include "analyzer/calls/work.h"
#include "storage/trace.h"

namespace acltape::analyzer {

// The steps of `calls`, a work of the ACL interface, with the numbers of `leaf_steps`. A step
// without device work has none. Empty if no call names its leaf.
std::vector<StepRange> StepsOfLeaves(const Work& calls,
                                     const std::vector<storage::Step>& leaf_steps);

}  // namespace acltape::analyzer
