// How long the steps of the recorded program took.
#pragma once

#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer {

// Nanoseconds of each step of the work: from the first begin to the last end of the recorded calls
// between its first and its last one (StepRows), of any level. Every command and the page give
// these times for a step of the program. Calls of other processes do not count: than the one that
// the reader looks at, else than the one that stands for the trace (storage/process_choice.h).
// Where there is one process they are the times of the view step_summary.
std::vector<int64_t> StepTimes(const Work& work);

}  // namespace acltape::analyzer
