// The waits of a program's threads for the device: synchronises, copies that block, host reads, and
// queries that found the work ended.
//
//   const std::vector<HostWait> waits = FindHostWaits(work);
//
// The calls of one operator of PyTorch are one wait: `item` synchronises its stream and then
// copies. An adapter may launch from a thread of its own. What that thread waits for is no wait of
// the program; the program's thread waits in the operator that asked for it.
//
// A wait that a program put between its work is judged: does the host, or anything whose order the
// host decides, use the awaited work before the next wait that would have waited for it too? If
// not, the wait is not needed. This is proven from the bytes that calls use and from the order of
// streams and events; where the trace does not tell these, the answer is "not known". A wait inside
// of an operator is the operator's own and is not judged.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::waits {

enum class WaitKind : uint8_t {
  kSynchronise,
  kCopy,       // the host waits for its end
  kRead,       // an operator of PyTorch that brings a value to the host
  kExecution,  // the host waits for the end of a graph
  kQuery,      // found the work ended
};
std::string_view WaitKindName(WaitKind kind);  // "synchronise", "copy" ...

enum class Need : uint8_t {
  kNotJudged,  // an operator of the framework waits, or it is no synchronise
  kNothing,    // no work came since the wait before
  kLast,       // no later wait covers it, as at the end of a program
  kNeeded,
  kNotNeeded,
  kNotKnown,
};

struct HostWait {
  std::vector<uint32_t> calls;  // indices in Work::calls, in order
  int64_t leaf = 0;             // call id of the operator of PyTorch in which it lies; 0: none
  WaitKind kind = WaitKind::kSynchronise;
  // In a leaf a wait begins where the thread's call before it ended, or the leaf began: there the
  // adapter waits for its own queue. `blocked_ns` sums the time of all its calls.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t blocked_ns = 0;
  // The pieces of work that it was the first to wait for, and the last of them; -1: none.
  size_t awaited = 0;
  int64_t last_awaited = -1;
  Need need = Need::kNotJudged;
  // The use that needs it, or why that is not known: "a copy to the host follows". Empty otherwise.
  std::string_view why;
  int64_t needed_by = -1;  // the call that makes it needed
};

struct HostWaits {
  std::vector<HostWait> waits;
  // These are in no list: waits of threads that launch for another thread, and queries inside of
  // operators, by which an allocator looks for memory.
  size_t of_launching_threads = 0;
  size_t queries = 0;
};

// Finds the waits of a work of the ACL level, in order of their first calls.
HostWaits FindHostWaits(const Work& work);

}  // namespace acltape::analyzer::waits
