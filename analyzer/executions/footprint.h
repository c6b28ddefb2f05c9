// An execution of a graph reads and writes the same bytes whenever it runs: those that it has from
// before, and those that it leaves.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::executions {

struct GraphUse {
  int64_t buffer = 0;
  int64_t first = 0;
  int64_t end = 0;
  uint32_t entry = 0;    // the held entry that reads or writes it first (reads) or last (writes)
  bool strided = false;  // some bytes of the range are not its own
  const FormAccess* access = nullptr;  // owned by the work; its whole range may be longer
};

struct Footprint {
  std::vector<GraphUse> reads;   // before the graph wrote them itself
  std::vector<GraphUse> writes;  // the parts of all writes that are left at the end
  // Reads by calls of the device that no argument of their leaf names (hidden_reads.h). Their
  // `access` is null.
  std::vector<GraphUse> hidden_reads;
};

// Finds the footprint of entries that run one after the other.
Footprint FootprintOf(const Work& work, const std::vector<uint32_t>& entries);

}  // namespace acltape::analyzer::executions
