// Finds the steps of a program: the iterations of its workload.
//
// Steps that the trace already names (a recorded user range) are taken as they are. Else the
// program is searched for the stretch of operator names that repeats: the candidate periods are the
// distances between equal stretches of names, and the winner is the shortest period whose stretch
// covers almost as many kernels as the best. The cut is where a program would put it: behind the
// host read that the longest stretch without another follows, else where the stretch begins.
// Leaves before the stretch that resemble a period (a first iteration that sets up state) become
// the first step; a tail of at least half a period becomes the last.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/program.h"

namespace acltape::storage {
class Results;
}

namespace acltape::analyzer {

// The steps in order, none when the program does not repeat.
std::vector<StepRange> FindSteps(const Program& program);

// Sets program.steps and the step of each leaf. Writes steps found by period to `results` unless it
// is null.
void AssignSteps(Program& program, storage::Results* results);

}  // namespace acltape::analyzer
