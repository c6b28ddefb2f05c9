// Finds results of executions that a later execution overwrote before the program read them: the
// program keeps one tensor for all executions and takes it for as many results.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analyzer/executions/own_graphs.h"

namespace acltape::analyzer::executions {

struct KeptResult {
  uint32_t execution = 0;  // index in OwnGraphs::turns of the last execution before the reads
  uint32_t writer = 0;     // the held entry that makes the result
  uint32_t reader = 0;     // the first entry that reads it
  size_t reads = 0;        // reads of the same bytes, which hold one result
  size_t unread = 0;       // executions before it whose result nobody read
};

// `place_of` gives the line of an entry as a number, 0: not known. A row needs as many reads of the
// same bytes from one line, or by one call, as there are executions of which one result alone is
// left. Programs that execute a graph several times for its time, and then read it once, have none.
std::vector<KeptResult> FindKeptResults(const OwnGraphs& graphs,
                                        const std::function<int32_t(size_t)>& place_of);

}  // namespace acltape::analyzer::executions
