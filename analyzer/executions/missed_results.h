// Finds results of executions that the program does not use although it means to: it reads the
// result of another graph, which did not run, or it has let go of the tensor that the graph writes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::executions {

// The result of a graph is read that was not executed for it, while nothing ever reads that of the
// graph of the same lines which was.
struct OtherResult {
  uint32_t reader = 0;     // the first entry that reads it
  uint32_t writer = 0;     // the held entry that makes what is read
  uint32_t made = 0;       // a held entry whose result nothing reads
  uint32_t execution = 0;  // index in OwnGraphs::turns of the first one whose result is not read
  size_t rounds = 0;
};

// Finds pairs of graphs that hold the same lines, in two rounds at least.
std::vector<OtherResult> FindOtherResults(const OwnGraphs& graphs,
                                          const std::function<int32_t(size_t)>& place_of);

// A graph writes a tensor that its capture made and that has ended since, such as a gradient of
// which zero_grad() let go. In eager runs before the capture `update` read what the line makes and
// changed what the graph reads; after the capture it never ran again.
struct DroppedResult {
  uint32_t writer = 0;  // the held entry
  uint32_t update = 0;
  uint32_t execution = 0;  // index in OwnGraphs::turns of the first one after the end
};

// Finds at most one row for each graph and line of an update.
std::vector<DroppedResult> FindDroppedResults(const OwnGraphs& graphs,
                                              const std::function<int32_t(size_t)>& place_of);

}  // namespace acltape::analyzer::executions
