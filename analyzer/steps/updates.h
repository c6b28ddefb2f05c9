// The updates of a program that trains: calls that follow a backward pass and change the
// parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "analyzer/steps/operator_sequence.h"

namespace acltape::analyzer {

// Calls [first, end), from the first to the last of an update, and the backward pass after it. An
// optimiser may make the backward pass itself (LBFGS). Its next run then counts as that pass.
struct Update {
  size_t first = 0;
  size_t end = 0;
  // The first call of the next backward pass, or the length of the sequence if none follows.
  size_t next_backward = 0;
  int32_t kind = 0;  // equal for updates that write the same buffers
};

struct Updates {
  size_t first_backward = 0;  // first call of the first backward pass
  std::vector<Update> list;   // in order
};

// Finds the updates. analyzer/steps/training_steps.h defines what an update is.
Updates FindUpdates(const OperatorSequence& sequence);

// Returns the bytes across a cut after `update`, if each step has `updates_of_step` updates.
using BytesAfter = std::function<int64_t(size_t update, size_t updates_of_step)>;

// Finds the updates that end a step, ascending: the last of each period of kinds. A period can
// begin at any of its updates; the choice with the fewest bytes across its cuts wins.
std::vector<size_t> LastUpdatesOfSteps(const Updates& updates, const BytesAfter& bytes_after);

}  // namespace acltape::analyzer
