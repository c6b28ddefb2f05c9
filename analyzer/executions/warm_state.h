// Finds state that runs before the capture moved on: a graph reads a tensor and updates it, eager
// runs of the same lines did so too, to warm up, and nothing set it back before the first
// execution. So the first execution does not begin where the program begins.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::executions {

struct WarmState {
  uint32_t execution = 0;  // index in OwnGraphs::turns of the first one
  uint32_t writer = 0;     // the held entry that updates the state
  uint32_t warm_up = 0;    // the last eager entry that updated it from the same line
  size_t warm_ups = 0;
};

// Finds at most one row for each graph and writer. Trainings have none: their warm-ups are steps of
// the training. A run whose results the program read is no warm-up, and tensors of which operators
// write the elements at given places (caches) are not looked at.
std::vector<WarmState> FindWarmState(const OwnGraphs& graphs,
                                     const std::function<int32_t(size_t)>& place_of);

}  // namespace acltape::analyzer::executions
