// Bytes of a captured graph's memory that something else still needs: results that the next
// execution overwrites, and bytes that two graphs have in common.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyzer/memory/buffer_lives.h"
#include "analyzer/work/work.h"

namespace acltape::analyzer {

// A call reads what a graph made although the graph has been executed again: in the trace it was
// another buffer, a replay would find the later result at its address.
struct LateRead {
  size_t execution = 0;  // that made the bytes, index in `executions`
  int64_t buffer = 0;
  uint32_t writer = 0;     // indices in Work::calls: the call that wrote it,
  uint32_t reader = 0;     // the first that reads it too late,
  uint32_t overwrite = 0;  // and the writer's counterpart in the execution before that
};

// `executions`: the calls of one graph in each step that it serves, in order, ascending, equally
// many. What the next execution itself reads is an input that is copied before it starts, and no
// late read; what a later execution or eager work reads is. A buffer
// that is written again is the program's own memory, not the graph's. At most one row per buffer.
std::vector<LateRead> FindLateReads(const Work& work, const BufferLives& lives,
                                    std::span<const std::vector<uint32_t>> executions);

// Bytes that two captured graphs of an ACL program use and at least one of them writes. They work
// as captured only when executed one after the other in the order of their captures.
struct SharedBytes {
  int64_t first_model = 0;  // captured earlier
  int64_t second_model = 0;
  int64_t buffer = 0;
  int64_t first_byte = 0;
  int64_t end_byte = 0;
  uint32_t first_call = 0;  // indices in Work::calls of the captured calls that use them
  uint32_t second_call = 0;
  // The program did not execute the two in turns in the order of their captures, or put them on
  // different streams: indices of an execution of each; both -1: it did as captured.
  int64_t first_execution = -1;
  int64_t second_execution = -1;
};

// One row per pair of graphs: the first bytes that they share.
std::vector<SharedBytes> FindSharedBytes(const Work& work);

}  // namespace acltape::analyzer
