// Finds the steps of a program: the iterations of its workload.
//
// Steps that the trace already names (a recorded user range) are used unchanged. Else steps are
// guessed: in a program that trains by the turns of its phases (analyzer/steps/training_steps.h),
// in others by their period (analyzer/steps/period.h). In an ACL program device work, events,
// captures, executions and host waits count. Getters, allocations, queries and the creation of
// events may differ in number or order from step to step. They belong to the step in which they
// lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::storage {
class Results;
}

namespace acltape::analyzer {

// The value of `found_by` for a step that no range of the program named.
constexpr const char* kFoundByPeriod = "period";

// The steps that the trace names for the level of the work (analyzer/calls/level.h).
std::vector<storage::Step> StoredSteps(const Work& work);

// The steps of a work of calls as rows of the trace have them.
std::vector<storage::Step> StepRows(const Work& work);

// Finds the steps of a work that has none yet, in order. There are none if the program does not
// repeat, or if its threads run programs of their own (analyzer/steps/thread_groups.h). Steps found
// by period are written to `results` unless it is null.
void AssignSteps(Work& work, storage::Results* results);

// Why AssignSteps found none, for messages: "no sequence of two operators or more repeats".
std::string WhyNoSteps(const Work& work);

}  // namespace acltape::analyzer
