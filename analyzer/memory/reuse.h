// Finds bytes of a captured graph's memory that are still needed when they change: results that the
// next execution overwrites, and bytes that two graphs have in common.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/memory/buffer_lives.h"

namespace acltape::analyzer::memory {

// A call reads what a graph made although the graph has been executed again. In the trace it was
// another buffer. In a replay the address would hold the later result.
struct LateRead {
  size_t execution = 0;  // index in `executions` of the one that made the bytes
  int64_t buffer = 0;
  uint32_t writer = 0;     // index in Work::calls of the call that wrote it
  uint32_t reader = 0;     // index of the first call that reads it too late
  uint32_t overwrite = 0;  // index of the writer's counterpart in the execution before that
};

// `executions` has the calls of one graph for each step that it serves, in order, ascending and
// equally many. A read by the next execution itself is not a late read, because this input is
// copied before the execution starts. A read by a later execution or by eager work is a late read.
// A buffer that is written again is memory of the program and not of the graph. There is at most
// one row per buffer.
std::vector<LateRead> FindLateReads(const Work& work, const BufferLives& lives,
                                    std::span<const std::vector<uint32_t>> executions);

// Bytes that two captured graphs of an ACL program use and that at least one of them writes. They
// must not run at the same time. In which order they may run says Note [Which graph makes what
// another one reads].
struct SharedBytes {
  int64_t first_model = 0;  // captured earlier
  int64_t second_model = 0;
  int64_t buffer = 0;
  int64_t first_byte = 0;
  int64_t end_byte = 0;
  uint32_t first_call = 0;  // indices in Work::calls of the captured calls that use them
  uint32_t second_call = 0;
};

// Finds one row per pair of graphs: the first bytes that they share.
std::vector<SharedBytes> FindSharedBytes(const Work& work);

}  // namespace acltape::analyzer::memory
