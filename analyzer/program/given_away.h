// Results that leave a step before it ends. What a leaf is given in which other processes take part
// (an exchange, analyzer/calls/leaf_kind.h) is seen by these, so that it is a result of the step,
// whatever becomes of its memory afterwards. What the exchange gives in turn is an input of the
// step, from the recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyzer/program/program.h"
#include "analyzer/program/step_template.h"

namespace acltape::analyzer {

// Returns the first exchange between `leaf` and the leaf `end` that is given bytes of this result
// of `leaf` before another leaf overwrites some of them. Returns -1 if there is none.
int64_t GivenTo(const Program& program, int64_t leaf, const TensorUse& result, int64_t end);

struct GivenResult {
  size_t place = 0;  // place of the leaf that wrote it, in the class of the step
  size_t write = 0;  // index in LeafUses::writes
  size_t next = 0;   // it is given away right before this place
};

// Returns the results of a step's active leaves that are given away, in order of the leaves.
std::vector<GivenResult> GivenResults(const Program& program, const StepMatch& step);

}  // namespace acltape::analyzer
