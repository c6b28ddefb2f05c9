// Finds calls of the interface that overtake work of an adapter's queue. The adapter of a framework
// keeps launches in a queue of its own, which another thread issues. A library that the program
// calls with the raw stream puts its work there at once, in front of launches that the program
// asked for before.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::executions {

struct Overtake {
  uint32_t call = 0;    // index in the calls of the interface: what came too early
  uint32_t launch = 0;  // the first later launch of an earlier leaf that touches the same bytes
  uint32_t leaf = 0;    // the index of that leaf in the leaves
  int64_t buffer = 0;
};

// Finds one row for each such call. Only calls of a thread that runs leaves count, which name no
// leaf, and only if they and the launch touch the same bytes and one of the two writes them.
std::vector<Overtake> FindOvertakes(const Work& leaves, const Work& calls);

}  // namespace acltape::analyzer::executions
