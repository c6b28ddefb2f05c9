#include "recorder/acl/pending.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <atomic>

#include "acl/acl.h"
#include "meaning/options.h"
#include "recorder/acl/event_calls.h"
#include "recorder/acl/real.h"
#include "recorder/acl/thread.h"
#include "recorder/acl/values.h"
#include "recorder/agent/lock.h"
#include "recorder/agent/memory.h"

namespace acltape::acl_agent {

namespace {

constexpr uint64_t kArenaBytes = uint64_t{64} << 20;
constexpr int32_t kPatienceMs = 20000;
// Each has an event.
constexpr int64_t kMostCopies = 512;
constexpr char kDidNotEnd[] = "a copy after a call did not end in 20 s, and none was made after it";

struct Copy {
  Copy* next;
  Content content;
  aclrtEvent event;
  std::byte* data;
  uint64_t taken;  // bytes of the arena, the end that was skipped included; 0: memory of its own
  bool refused;    // only stands for its room, which is given back in order
};

// The library's functions that the recorder itself needs.
struct Library {
  decltype(&aclrtMallocHost) malloc_host;
  decltype(&aclrtFreeHost) free_host;
  decltype(&aclrtMemcpyAsync) copy;
  decltype(&aclrtCreateEventExWithFlag) create_event;
  decltype(&aclrtDestroyEvent) destroy_event;
  decltype(&aclrtRecordEvent) record;
  decltype(&aclrtQueryEventStatus) query;
  decltype(&aclrtSynchronizeEventWithTimeout) wait;
  void (*look_on)(int);  // SoftLookOn; null on other devices
  bool complete;
};

agent::Mutex g_mutex;
Copy* g_first = nullptr;
Copy* g_last = nullptr;
std::atomic<int64_t> g_count{0};
std::byte* g_arena = nullptr;
uint64_t g_head = 0;  // bytes ever taken
uint64_t g_tail = 0;  // and given back
aclrtEvent g_events[64];
uint32_t g_event_count = 0;
bool g_at_exit = false;
// A copy did not end, and may still write to the pinned memory: that is never used again nor given
// back, and no more is copied.
bool g_lost = false;

const Library& TheLibrary() {
  static Library library{};
  if (library.complete) return library;
  Resolve(library.malloc_host, "aclrtMallocHost");
  Resolve(library.free_host, "aclrtFreeHost");
  Resolve(library.copy, "aclrtMemcpyAsync");
  Resolve(library.create_event, "aclrtCreateEventExWithFlag");
  Resolve(library.destroy_event, "aclrtDestroyEvent");
  Resolve(library.record, "aclrtRecordEvent");
  Resolve(library.query, "aclrtQueryEventStatus");
  Resolve(library.wait, "aclrtSynchronizeEventWithTimeout");
  Resolve(library.look_on, "SoftLookOn");
  library.complete = library.malloc_host != nullptr && library.copy != nullptr &&
                     library.create_event != nullptr && library.record != nullptr &&
                     library.query != nullptr && library.wait != nullptr &&
                     library.free_host != nullptr && library.destroy_event != nullptr;
  return library;
}

// While it lives, the soft device takes copies for the recorder's own: reads past a block are not
// the program's doing.
class LooksOn {
 public:
  explicit LooksOn(const Library& library) : tell_(library.look_on) {
    if (tell_ != nullptr) tell_(1);
  }
  ~LooksOn() {
    if (tell_ != nullptr) tell_(0);
  }
  LooksOn(const LooksOn&) = delete;
  LooksOn& operator=(const LooksOn&) = delete;

 private:
  void (*tell_)(int);
};

void Lose(Thread& thread, const char* cause) {
  thread.tape->WriteLedger(2, 1, "value_not_kept", "device memory", cause,
                           "record with @payload none, or with fewer values"_cli);
}

void RecordAtExit() {
  if (Thread* thread = Enter()) RecordFinishedCopies(*thread, true);
}

// The oldest copy has been done: records it and gives its memory back.
void RecordCopy(Thread& thread, Copy* copy) {
  uint64_t packed_bytes = 0;
  if (CoversItsRange(copy->content, &packed_bytes)) {
    RecordContent(thread, copy->content, copy->data);
  } else if (auto* packed = static_cast<std::byte*>(
                 agent::Allocate(packed_bytes + 1, wire::LeftOut::kContents));
             packed != nullptr) {
    PackRows(copy->content, copy->data, packed);
    copy->content.bytes = packed_bytes;
    copy->content.packing = 1;
    RecordContent(thread, copy->content, packed);
    free(packed);
  }
}

// Waits for a copy. False: it may still write to its memory.
bool Await(const Copy* copy, aclError* ended) {
  *ended = TheLibrary().wait(copy->event, kPatienceMs);
  const bool in_time =
      *ended != ACL_ERROR_RT_EVENT_SYNC_TIMEOUT && *ended != ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
  // Codes from here on tell that the device's work has failed, so that nothing runs any more.
  constexpr aclError kFailuresOfTheDevice = ACL_ERROR_INTERNAL_ERROR;
  return *ended == ACL_SUCCESS || (*ended >= kFailuresOfTheDevice && in_time);
}

void Release(Copy* copy) {
  const Library& library = TheLibrary();
  if (copy->taken != 0) {
    g_tail += copy->taken;
  } else {
    library.free_host(copy->data);
  }
  if (g_event_count < sizeof(g_events) / sizeof(g_events[0])) {
    g_events[g_event_count++] = copy->event;
  } else {
    library.destroy_event(copy->event);
  }
  free(copy);
}

// Records the oldest copy when it has been done; waits for it where `wait` says so, and as long as
// all have ended that were waited for. False when it has not been done and none is waited for.
bool RecordOldest(Thread& thread, bool wait) {
  const Library& library = TheLibrary();
  Copy* copy = g_first;
  if (copy == nullptr) return false;
  auto status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  bool done = library.query(copy->event, &status) == ACL_SUCCESS &&
              status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
  if (!done && !wait) return false;
  bool over = done;
  if (!done && !g_lost) {
    aclError ended = ACL_SUCCESS;
    over = Await(copy, &ended);
    done = ended == ACL_SUCCESS;
  }
  g_first = copy->next;
  if (g_first == nullptr) g_last = nullptr;
  g_count.fetch_sub(1);
  if (done) {
    if (!copy->refused) RecordCopy(thread, copy);
  } else {
    Lose(thread, over ? "the device failed before the copy that follows a call" : kDidNotEnd);
  }
  if (over) {
    Release(copy);
  } else {
    g_lost = true;
    free(copy);
  }
  return true;
}

// Room for `bytes` bytes in one piece; waits for the oldest copies while there is none.
bool TakeRoom(Thread& thread, uint64_t bytes, Copy* copy) {
  const Library& library = TheLibrary();
  const uint64_t rounded = (bytes + 63) & ~uint64_t{63};
  if (rounded > kArenaBytes / 2) {
    void* memory = nullptr;
    if (library.malloc_host(&memory, bytes) != ACL_SUCCESS) return false;
    copy->data = static_cast<std::byte*>(memory);
    copy->taken = 0;
    return true;
  }
  if (g_arena == nullptr) {
    void* memory = nullptr;
    if (library.malloc_host(&memory, kArenaBytes) != ACL_SUCCESS) return false;
    g_arena = static_cast<std::byte*>(memory);
  }
  const uint64_t offset = g_head % kArenaBytes;
  const uint64_t skipped = offset + rounded > kArenaBytes ? kArenaBytes - offset : 0;
  while (g_head + skipped + rounded - g_tail > kArenaBytes) {
    if (!RecordOldest(thread, true) || g_lost) return false;
  }
  copy->data = g_arena + (g_head + skipped) % kArenaBytes;
  copy->taken = skipped + rounded;
  g_head += copy->taken;
  return true;
}

// Makes a call that needs an event of the device. Where it is refused the oldest copies are waited
// for, which gives their events back.
template <typename Call>
bool WithEvent(Thread& thread, OwnCalls& own, const Call& call) {
  while (!own.Succeeded(call())) {
    if (g_lost || !RecordOldest(thread, true)) return false;
  }
  return true;
}

bool TakeEvent(Thread& thread, OwnCalls& own, aclrtEvent* event) {
  return WithEvent(thread, own, [&]() -> aclError {
    if (g_event_count == 0) return TheLibrary().create_event(event, ACL_EVENT_SYNC);
    *event = g_events[--g_event_count];
    return ACL_SUCCESS;
  });
}

}  // namespace

void CopyAfterWork(Thread& thread, const Content& content, uint64_t address, uint64_t stream) {
  OwnCalls own(thread);
  const Library& library = TheLibrary();
  if (!library.complete) {
    Lose(thread, "the library lacks functions that copying in stream order needs");
    return;
  }
  agent::Lock lock(g_mutex);
  const agent::KeepErrno keep;
  if (!g_at_exit) g_at_exit = atexit(RecordAtExit) == 0;
  // Nobody would ask for the copy at the program's end.
  if (!g_at_exit) return agent::LeaveOut(wire::LeftOut::kContents);
  const int64_t most = std::min(kMostCopies, EventsToUse(own));
  while (RecordOldest(thread, g_count.load() >= most)) {
  }
  if (g_lost) return Lose(thread, kDidNotEnd);
  auto* copy = static_cast<Copy*>(agent::Allocate(sizeof(Copy), wire::LeftOut::kContents));
  if (copy == nullptr) return;
  if (!TakeRoom(thread, content.bytes, copy)) {
    Lose(thread, "there was no pinned memory for a value");
    free(copy);
    return;
  }
  copy->next = nullptr;
  copy->refused = false;
  copy->content = content;
  auto* handle = reinterpret_cast<aclrtStream>(stream);
  const LooksOn looks(library);
  if (!TakeEvent(thread, own, &copy->event)) {
    Lose(thread, "there was no event for a copy");
    g_tail += copy->taken;
    free(copy);
    return;
  }
  if (!own.Succeeded(library.copy(copy->data, content.bytes, reinterpret_cast<const void*>(address),
                                  content.bytes, ACL_MEMCPY_DEVICE_TO_HOST, handle))) {
    Lose(thread, "a copy after a call was refused");
    copy->refused = true;
  } else if (!WithEvent(thread, own, [&] { return library.record(copy->event, handle); })) {
    // Nobody can tell when the copy has been done, so its memory stays as it is.
    Lose(thread, "there was no event for a copy");
    g_lost = true;
    free(copy);
    return;
  }
  (g_last == nullptr ? g_first : g_last->next) = copy;
  g_last = copy;
  g_count.fetch_add(1);
}

void WaitForCopiesOf(Thread& thread, uint64_t call_id) {
  if (g_count.load(std::memory_order_relaxed) == 0) return;
  const Inside inside(thread);
  agent::Lock lock(g_mutex);
  const agent::KeepErrno keep;
  for (const Copy* copy = g_first; copy != nullptr; copy = copy->next) {
    if (copy->content.call_id != call_id || copy->refused) continue;
    aclError ended = ACL_SUCCESS;
    g_lost = g_lost || !Await(copy, &ended);
    if (g_lost) return;
  }
}

void RecordFinishedCopies(Thread& thread, bool all) {
  if (g_count.load(std::memory_order_relaxed) == 0) return;
  const Inside inside(thread);
  agent::Lock lock(g_mutex);
  while (RecordOldest(thread, all)) {
  }
  if (!all) return;
  // The device may be about to end: nothing of it is kept.
  const Library& library = TheLibrary();
  while (g_event_count > 0) library.destroy_event(g_events[--g_event_count]);
  if (g_arena != nullptr && !g_lost) library.free_host(g_arena);
  g_arena = nullptr;
  g_head = g_tail = 0;
}

void ForgetPendingLocks() {
  g_mutex.Forget();
  g_first = g_last = nullptr;
  g_count.store(0);
  g_arena = nullptr;
  g_head = g_tail = 0;
  g_event_count = 0;
  g_lost = false;
}

}  // namespace acltape::acl_agent
