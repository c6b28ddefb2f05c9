// Finds results of one graph that another graph has overwritten before the program reads them: in
// one pool the memory of a graph's temporaries is that of another one's results.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::executions {

struct OverwrittenResult {
  uint32_t writer = 0;     // the held entry that makes the result
  uint32_t other = 0;      // the held entry of the other graph that writes over it
  uint32_t execution = 0;  // index in OwnGraphs::turns: the other graph's
  uint32_t reader = 0;     // the entry that reads the result afterwards
};

// Compares addresses, so that only tensors of a device count whose memory is known. At most one row
// for each pair of held entries.
std::vector<OverwrittenResult> FindOverwrittenResults(const OwnGraphs& graphs);

}  // namespace acltape::analyzer::executions
