// Finds executions of a captured graph that read bytes which another graph has to make before, and
// that hold something else.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::memory {

// Note [Which graph makes what another one reads]
// -----------------------------------------------
// While graphs are captured one after the other, a call of the second may read bytes that the first
// has written. The second graph then works only if the first was executed before it, and no other
// graph has written these bytes since. Graphs that merely use the same bytes one after the other,
// for temporaries or results, can run in any order. So can graphs that keep a state in common, such
// as a cache: each reads it and changes it. Bytes that eager work has written since are the
// program's own supply.
struct StaleRead {
  int64_t reader = 0;  // the graph that reads
  int64_t maker = 0;   // the graph that made the bytes when the reader was captured
  int64_t buffer = 0;
  int64_t first_byte = 0;
  int64_t end_byte = 0;
  uint32_t write = 0;      // indices in Work::calls: the captured call of the maker
  uint32_t read = 0;       // ... and that of the reader
  uint32_t execution = 0;  // the execution that reads something else
  int64_t other = -1;      // the execution whose bytes it reads; -1: the maker did not run before
};

// Finds at most one row for two graphs.
std::vector<StaleRead> FindStaleReads(const Work& work);

}  // namespace acltape::analyzer::memory
