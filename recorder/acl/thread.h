// State of the ACL level for each recorded thread: its tape, the bytes of the call being encoded,
// and the indices under which this thread's ring knows functions.
#pragma once

#include <cstdint>

#include "recorder/acl/bytes.h"
#include "recorder/agent/tape.h"

namespace acltape::acl_agent {

struct Prepared;  // operators.cpp

struct Thread {
  agent::Tape* tape = nullptr;
  int32_t device = -1;  // current device, -1: to be asked for
  Bytes signature;
  uint64_t* slots = nullptr;  // kMaxSlots of them
  uint32_t slot_count = 0;
  uint32_t* op_rows = nullptr;  // by function, the ring's index plus one
  Prepared* spare = nullptr;    // prepared launch, for the next first phase
  uint32_t window = 0;          // window of the contents that memory.h knows
  bool muted = false;           // the call at hand is not recorded; see NoticeWindow

  static constexpr uint32_t kMaxSlots = 4096;

  void BeginEncoding() {
    signature.Clear();
    slot_count = 0;
  }
  // The slot of a buffer in the call being encoded.
  uint16_t SlotOf(uint64_t buffer_id) {
    for (uint32_t slot = 0; slot < slot_count; ++slot) {
      if (slots[slot] == buffer_id) return static_cast<uint16_t>(slot);
    }
    if (slot_count == kMaxSlots) return kMaxSlots - 1;
    slots[slot_count] = buffer_id;
    return static_cast<uint16_t>(slot_count++);
  }
  // The ring's index of a function, announced at its first use in this ring.
  uint32_t OpIndex(uint32_t function, uint32_t dialect, const char* name, const char* schema);
};

// This thread's state; null when the thread is not recorded, or is inside a recorded call.
Thread* Enter();

// Sets `thread.muted`: true while recording is closed (Note [Windows] in recorder/wire/arena.h). Of
// a muted call only identities are kept: births of buffers, streams, events and models are told
// when a recorded call first names them. The capture of a graph is recorded at any time, because a
// window may execute the graph; and so are calls that set something up, such as aclrtSetDevice.
void NoticeWindow(Thread& thread);

// While one lives the thread is inside the library: what that calls in turn, and the threads that
// it starts, are not recorded.
class Inside {
 public:
  explicit Inside(Thread& thread) : thread_(thread), outer_(agent::t_inside) { Set(thread); }
  ~Inside() {
    if (!outer_) Clear(thread_);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  static void Set(Thread&) {
    agent::t_inside = true;
    agent::t_tape = agent::kNoTape;
  }
  static void Clear(Thread& thread) {
    agent::t_inside = false;
    agent::t_tape = thread.tape;
  }

 private:
  Thread& thread_;
  const bool outer_;
};

// The thread's current device (ACL number), as the library says.
int32_t CurrentDevice(Thread& thread);

// A record of the call that `thread` has encoded.
struct FinishedCall {
  uint64_t call_id = 0;
  uint64_t parent_id = 0;
  uint64_t begin_tick = 0;
  uint64_t end_tick = 0;
  uint64_t prepare_ticks = 0;
  uint64_t stream_id = 0;
  uint64_t model_id = 0;
  uint32_t place_id = 0;
  int32_t status = 0;
  uint32_t op_index = 0;
  bool launched = false;
  bool lasting = false;  // as in wire::AclCallRecord
};
void WriteCall(Thread& thread, const FinishedCall& call);

}  // namespace acltape::acl_agent
