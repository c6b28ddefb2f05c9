// What a capture of a stretch of ACL calls would hold: which streams take part and when, which
// record each wait refers to, and what each thread may do meanwhile. Found by walking the calls
// once under the rules of the interface (CAP-40 to CAP-54, JOIN-01 to JOIN-06).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/lint/stretch.h"

namespace acltape::analyzer {

// What the handles of a trace are, what happened to events outside of captures, and which memory
// was freed.
class Handles {
 public:
  explicit Handles(const Work& work);
  bool IsDefaultStream(int64_t stream) const;
  // Made by aclrtCreateEvent or aclrtCreateEventWithFlag: such events cannot be captured (CAP-43).
  bool IsOldEvent(int64_t event) const;
  // Of the old kind with flag 0x20: it never belongs to a capture (CAP-50).
  bool IsExternalEvent(int64_t event) const;
  // The last record of the event outside of any capture before `call`; -1: none.
  int64_t LastOutsideRecord(int64_t event, size_t call) const;
  // The call that freed the buffer; -1: none.
  int64_t FreeOf(int64_t buffer) const;

 private:
  std::unordered_map<int64_t, storage::Handle> streams_;
  struct Event {
    bool old = false;
    bool external = false;
    std::vector<uint32_t> records;  // call indices outside of captures
  };
  std::unordered_map<int64_t, Event> events_;
  std::unordered_map<int64_t, uint32_t> frees_;  // by buffer
};

// A stream that takes part in the capture. Calls are indices in Work::calls, -1: none.
struct CaptureMember {
  int64_t stream = 0;
  int64_t fork_wait = -1;    // the wait that pulled it in; -1: the origin
  int64_t fork_record = -1;  // what that wait referred to
  int64_t last_task = -1;
  int64_t last_record = -1;  // its last task, where that is a record
  int64_t waiter = 0;        // a captured stream that waits for that record; 0: none
  int64_t entries = 0;       // of its queue: a wait takes several (analyzer/plan/budget.h)
};

// An event wait of the stretch.
struct WaitOfEvent {
  size_t call = 0;
  enum class Refers : uint8_t { kNever, kOutside, kCaptured, kExternal };
  Refers refers = Refers::kNever;
  int64_t record = -1;  // the call
};

// The exchange mode of a thread from a call on (CAP-33).
struct ModeExchange {
  size_t call = 0;
  int32_t thread = 0;
  CaptureMode mode = CaptureMode::kGlobal;
};

struct CaptureFacts {
  std::vector<uint8_t> capturing;  // by call of the stretch: its stream takes part when it is made
  std::vector<CaptureMember> members;  // the origin first
  std::vector<WaitOfEvent> waits;
  // Host calls about events that belong to the capture at that moment, with the record.
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

// The mode exchanges of all threads, in order of calls.
std::vector<ModeExchange> FindExchanges(const Work& work);

// Whether an unsafe call is refused under a capture in `mode`: by its own thread or another one,
// whose exchange mode is `exchanged` (rule CAP-32).
bool RefusesUnsafe(CaptureMode mode, bool own_thread, CaptureMode exchanged);

}  // namespace acltape::analyzer
