// Finds inputs of a round that come too late for its execution, or never: the program makes a
// tensor for each round, and the graph goes on with what the tensor of its capture holds.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::executions {

struct MissedInput {
  uint32_t reader = 0;  // the held entry that reads the captured tensor
  // The first entry that copies into that tensor after an execution; if not `late`, the first one
  // that makes a tensor for a round.
  uint32_t input = 0;
  uint32_t execution = 0;  // index in OwnGraphs::turns of the first one
  size_t rounds = 0;
  bool late = false;
};

// A late input has existed before its execution and does not follow from results of the graph; the
// first execution has none, and nothing reads the last one. A tensor that is made for a round has
// the shape and type of the graph's input, is made from one line in two rounds at least, of no
// other tensor of a device, and nothing reads it. `place_of` gives the line of an entry.
std::vector<MissedInput> FindMissedInputs(const OwnGraphs& graphs,
                                          const std::function<int32_t(size_t)>& place_of);

}  // namespace acltape::analyzer::executions
