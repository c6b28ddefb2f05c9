// How long the steps of the recorded program took.
#pragma once

#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer {

// Nanoseconds of each step of the work: from the first begin to the last end of the recorded calls
// between its first and its last one, of any level. These are the times of the view step_summary,
// which every command and the page give for a step of the program. Calls of other processes than
// the one that the reader looks at do not count.
std::vector<int64_t> StepTimes(const Work& work);

}  // namespace acltape::analyzer
