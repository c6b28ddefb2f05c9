// The content of a capture of ACL calls: the streams that take part and when, the record to which
// each wait refers, and what each thread may do in between. It is found in one walk over the calls
// under the rules of the interface (CAP-40 to CAP-54, JOIN-01 to JOIN-06).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/event_kinds.h"
#include "analyzer/lint/stretch.h"

namespace acltape::analyzer::lint {

// The kinds of a trace's handles, the records of events outside of captures, and the calls that
// freed memory.
class Handles {
 public:
  explicit Handles(const Work& work);
  bool IsDefaultStream(int64_t stream) const;
  // True if aclrtCreateEvent or aclrtCreateEventWithFlag made the event. Such an event cannot be
  // captured (CAP-43).
  bool IsOldEvent(int64_t event) const;
  // True if the event is of that old kind and has flag 0x20. It never belongs to a capture
  // (CAP-50).
  bool IsExternalEvent(int64_t event) const;
  // The last record of the event before `call` and outside of every capture; -1: none.
  int64_t LastOutsideRecord(int64_t event, size_t call) const;
  // The call that freed the buffer; -1: none.
  int64_t FreeOf(int64_t buffer) const;

 private:
  std::unordered_map<int64_t, storage::Handle> streams_;
  EventKinds kinds_;
  std::unordered_map<int64_t, std::vector<uint32_t>> records_;  // by event, outside of captures
  std::unordered_map<int64_t, uint32_t> frees_;                 // by buffer
};

// A stream that takes part in the capture. Calls are indices in Work::calls; -1: none.
struct CaptureMember {
  int64_t stream = 0;
  int64_t fork_wait = -1;  // the wait that made it part of the capture; -1: the origin
  int64_t last_task = -1;
  int64_t last_record = -1;  // its last task if that is a record
  int64_t waiter = 0;        // a captured stream that waits for that record; 0: none
  int64_t entries = 0;       // queue entries; a wait takes several (analyzer/streams/budget.h)
};

// An event wait inside the stretch.
struct WaitOfEvent {
  size_t call = 0;
  enum class Refers : uint8_t { kNever, kOutside, kCaptured, kExternal };
  Refers refers = Refers::kNever;
  int64_t record = -1;  // index of the record that it refers to
};

// From this call on, the thread has this exchange mode (CAP-33).
struct ModeExchange {
  size_t call = 0;
  int32_t thread = 0;
  CaptureMode mode = CaptureMode::kGlobal;
};

struct CaptureFacts {
  // Says for each call of the stretch whether its stream takes part when the call is made.
  std::vector<uint8_t> capturing;
  std::vector<CaptureMember> members;  // the origin first
  std::vector<WaitOfEvent> waits;
  // A host call about an event that belongs to the capture at that moment, and the record of the
  // event.
  struct EventCall {
    size_t call = 0;
    int64_t record = -1;
  };
  std::vector<EventCall> host_calls_on_captured;

  bool IsCapturing(const Stretch& stretch, size_t call) const {
    return capturing[call - stretch.first] != 0;
  }
};

CaptureFacts FindCaptureFacts(const Work& work, const Stretch& stretch, const Handles& handles);

// Finds the mode exchanges of all threads, in order of calls.
std::vector<ModeExchange> FindExchanges(const Work& work);

// True if an unsafe call is refused under a capture in `mode`. `own_thread` says whether the
// capturing thread makes the call. `exchanged` is the exchange mode of the calling thread (rule
// CAP-32).
bool RefusesUnsafe(CaptureMode mode, bool own_thread, CaptureMode exchanged);

}  // namespace acltape::analyzer::lint
