// Finds the steps of a program: the iterations of its workload.
//
// Steps that the trace already names (a recorded user range) are taken as they are. Else they are
// found by their period (analyzer/period.h). In an ACL program device work, events, captures,
// executions and host waits count; getters, allocations, queries and the making of events, whose
// number or order may differ from step to step, belong to the step in which they lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/program.h"
#include "analyzer/work/work.h"

namespace acltape::storage {
class Results;
}

namespace acltape::analyzer {

// The steps in order, none when the program does not repeat.
std::vector<StepRange> FindSteps(const Program& program);
std::vector<WorkStep> FindSteps(const Work& work);

// Sets program.steps and the step of each leaf. Writes steps found by period to `results` unless it
// is null.
void AssignSteps(Program& program, storage::Results* results);
// Sets work.steps and the step of each call, and writes as above.
void AssignSteps(Work& work, storage::Results* results);

}  // namespace acltape::analyzer
