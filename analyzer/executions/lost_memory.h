// Finds executions of a graph that use the memory of a tensor which has ended since the capture: a
// weight that was loaded anew, an input of which the program let go. The graph keeps the address.
// The memory belongs to the allocator then, or already to another tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::executions {

struct LostMemory {
  uint32_t execution = 0;  // index in OwnGraphs::turns of the first one
  size_t executions = 0;   // how many
  uint32_t user = 0;       // the held entry that reads or writes the memory
  bool write = false;
  int64_t maker = -1;  // the entry that wrote the ended tensor last; -1: none in the trace
  // The entry that put what the graph reads there through another tensor, or that wrote the tensor
  // into which the graph writes. -1: the memory has no new owner that is known.
  int64_t new_owner = -1;
};

// Finds at most one row for each graph and entry that uses such memory. Only storages whose end is
// recorded count. Memory that another storage shared when the tensor ended, and shares still, is
// not lost. Neither is memory that a graph makes before another one reads it.
std::vector<LostMemory> FindLostMemory(const OwnGraphs& graphs);

}  // namespace acltape::analyzer::executions
