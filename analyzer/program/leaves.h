// The leaves of a trace with their steps: what plans are made of.
#pragma once

#include "analyzer/calls/level.h"
#include "analyzer/calls/work.h"

namespace acltape::storage {
class Results;
}

namespace acltape::analyzer {

// Loads the work from which plans are made, with its steps: the leaves of PyTorch, or the device
// work of an ACL program (analyzer/program/acl_leaves.h). Steps that were found by period are
// written to `results` unless it is null. Throws Error kTrace as LoadProgram does.
Work LoadLeaves(const storage::Reader& trace, storage::Results* results);

// True if a step that the trace names for a level holds a leaf, so that LoadLeaves has steps. A
// step of calls that only wait or ask holds none. Reads the first calls of a step, not the trace.
bool HasStepsOfLeaves(const storage::Reader& trace, Level level);

}  // namespace acltape::analyzer
