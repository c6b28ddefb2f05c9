// Finds the steps of a program: the iterations of its workload.
//
// Steps that the trace already names (a recorded user range) are used unchanged. Else steps are
// guessed: in a program that trains by the turns of its phases (analyzer/training_steps.h), in
// others by their period (analyzer/period.h). In an ACL program device work, events, captures,
// executions and host waits count. Getters, allocations, queries and the creation of events may
// differ in number or order from step to step. They belong to the step in which they lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/program.h"
#include "analyzer/work.h"

namespace acltape::storage {
class Results;
}

namespace acltape::analyzer {

// The value of `found_by` for a step that no range of the program named.
constexpr const char* kFoundByPeriod = "period";

// Finds the steps in order. The result is empty if the program does not repeat.
std::vector<StepRange> FindSteps(const Program& program);
std::vector<WorkStep> FindSteps(const Work& work);

// The steps that the trace names for the level of the work (analyzer/level.h).
std::vector<storage::Step> StoredSteps(const Work& work);

// Sets program.steps and the step of each leaf. Steps found by period are written to `results`
// unless it is null.
void AssignSteps(Program& program, storage::Results* results);
// Sets work.steps and the step of each call. Writes to `results` as above.
void AssignSteps(Work& work, storage::Results* results);

// Loads the work from which plans are made, with its steps: the leaves of PyTorch, or the device
// work of an ACL program (analyzer/acl_leaves.h). Writes to `results` as above. Throws Error kTrace
// as LoadWork and LoadAclLeaves do.
Work LoadLeaves(const storage::Reader& trace, storage::Results* results);

}  // namespace acltape::analyzer
