// libmspti.so: activities as programs of the vendor's tools interface get them. Calls of the
// interface, kernels and external correlations are delivered; of other kinds, such as collectives
// and counters of memory, there are no records. Callbacks are accepted and never made.
//
// Records go into buffers of the program, which has asked for the kinds: the program gives an empty
// buffer, gets it back when it is full or flushed, and walks over its records. The layouts of
// records and the numbers of kinds and codes are those of the vendor's documentation.
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/compat/export.h"
#include "runtime/profile_sink.h"

namespace {

enum Code { kSuccess = 0, kInvalidParameter = 1, kMultipleSubscribers = 2, kMaxLimitReached = 3 };
enum Kind : uint32_t {
  kInvalid = 0,
  kKernel = 2,
  kApi = 3,
  kExternalCorrelation = 8,
  kKinds = 16,  // newer toolkits know some more than ten
};

using BufferRequest = void (*)(uint8_t** buffer, size_t* size, size_t* most_records);
using BufferComplete = void (*)(uint8_t* buffer, size_t size, size_t valid);

struct __attribute__((packed, aligned(8))) ApiRecord {
  uint32_t kind;
  uint64_t start, end;
  uint32_t process, thread;
  uint64_t correlation;
  const char* name;
};
struct __attribute__((packed, aligned(8))) KernelRecord {
  uint32_t kind;
  uint64_t start, end;
  uint32_t device, stream;
  uint64_t correlation;
  const char* type;
  const char* name;
};
struct __attribute__((packed, aligned(8))) ExternalRecord {
  uint32_t kind;
  uint32_t external_kind;
  uint64_t external;
  uint64_t correlation;
};

size_t BytesOf(uint32_t kind) {
  switch (kind) {
    case kApi:
      return sizeof(ApiRecord);
    case kKernel:
      return sizeof(KernelRecord);
    case kExternalCorrelation:
      return sizeof(ExternalRecord);
    default:
      return 0;
  }
}

// From the clock of the device to that of the day, in which records are.
int64_t ToWall() {
  timespec wall{}, raw{};
  clock_gettime(CLOCK_REALTIME, &wall);
  clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
  return int64_t{wall.tv_sec - raw.tv_sec} * 1'000'000'000 + (wall.tv_nsec - raw.tv_nsec);
}

thread_local std::map<uint32_t, std::vector<uint64_t>> external;  // by kind, the newest last

struct State {
  std::mutex mutex;
  bool subscribed = false;
  BufferRequest request = nullptr;
  BufferComplete complete = nullptr;
  std::set<uint32_t> enabled;
  int64_t to_wall = 0;
  uint8_t* buffer = nullptr;
  size_t size = 0, used = 0, records = 0, most_records = 0;

  bool Wants(uint32_t kind) const { return enabled.contains(kind); }

  // Gives the buffer back to the program.
  void Complete() {
    if (buffer == nullptr) return;
    complete(buffer, size, used);
    buffer = nullptr;
  }

  template <typename Record>
  void Add(const Record& record) {
    if (request == nullptr) return;
    const bool full = buffer != nullptr && (used + sizeof(record) > size ||
                                            (most_records != 0 && records == most_records));
    if (full) Complete();
    if (buffer == nullptr) {
      used = records = size = most_records = 0;
      request(&buffer, &size, &most_records);
      if (buffer == nullptr) return;  // the program does not want more
      if (size < sizeof(record)) return Complete();
    }
    std::memcpy(buffer + used, &record, sizeof(record));
    used += sizeof(record);
    ++records;
  }
};

State& GetState() {
  static State& state = *new State;
  return state;
}

uint64_t AtWall(const State& state, int64_t ns) {
  return static_cast<uint64_t>(ns + state.to_wall);
}

void NoteCall(uint64_t number, const char* name, uint32_t thread, int64_t begin_ns,
              int64_t end_ns) {
  State& state = GetState();
  const std::lock_guard lock(state.mutex);
  if (state.Wants(kExternalCorrelation)) {
    for (const auto& [kind, ids] : external) {
      if (ids.empty()) continue;
      state.Add(ExternalRecord{kExternalCorrelation, kind, ids.back(), number});
    }
  }
  if (!state.Wants(kApi)) return;
  state.Add(ApiRecord{kApi, AtWall(state, begin_ns), AtWall(state, end_ns),
                      static_cast<uint32_t>(getpid()), thread, number, name});
}

void NoteTask(uint64_t call, const char* name, const char* kind, uint32_t device, uint32_t stream,
              int64_t begin_ns, int64_t end_ns) {
  State& state = GetState();
  const std::lock_guard lock(state.mutex);
  if (!state.Wants(kKernel) || std::strcmp(kind, "kernel") != 0) return;
  state.Add(KernelRecord{kKernel, AtWall(state, begin_ns), AtWall(state, end_ns), device, stream,
                         call, "KERNEL_AIVEC", name});
}

constexpr SoftProfileSink kSink = {NoteCall, NoteTask};

// Listens while somebody wants a kind that is delivered. The device holds its own lock while it
// calls the sink, so that this lock is not held here.
void ListenWhereWanted() {
  State& state = GetState();
  bool wanted = false;
  {
    const std::lock_guard lock(state.mutex);
    wanted = state.request != nullptr &&
             std::ranges::any_of(state.enabled, [](uint32_t kind) { return BytesOf(kind) != 0; });
    if (wanted) state.to_wall = ToWall();
  }
  SoftSetProfileSink(wanted ? &kSink : nullptr);
}

bool IsKind(uint32_t kind) { return kind > kInvalid && kind < kKinds; }

}  // namespace

ACLTAPE_COMPAT int msptiSubscribe(void** subscriber, void*, void*) {
  if (subscriber == nullptr) return kInvalidParameter;
  State& state = GetState();
  const std::lock_guard lock(state.mutex);
  if (state.subscribed) return kMultipleSubscribers;
  state.subscribed = true;
  *subscriber = &state;
  return kSuccess;
}

ACLTAPE_COMPAT int msptiUnsubscribe(void* subscriber) {
  State& state = GetState();
  if (subscriber != &state) return kInvalidParameter;
  {
    const std::lock_guard lock(state.mutex);
    if (!state.subscribed) return kInvalidParameter;
    state.subscribed = false;
    state.enabled.clear();
  }
  ListenWhereWanted();
  const std::lock_guard lock(state.mutex);
  state.Complete();
  return kSuccess;
}

ACLTAPE_COMPAT int msptiEnableCallback(uint32_t, void* subscriber, int, uint32_t) {
  return subscriber == &GetState() ? kSuccess : kInvalidParameter;
}

ACLTAPE_COMPAT int msptiEnableDomain(uint32_t, void* subscriber, int) {
  return subscriber == &GetState() ? kSuccess : kInvalidParameter;
}

ACLTAPE_COMPAT int msptiActivityRegisterCallbacks(BufferRequest request, BufferComplete complete) {
  if (request == nullptr || complete == nullptr) return kInvalidParameter;
  State& state = GetState();
  {
    const std::lock_guard lock(state.mutex);
    state.request = request;
    state.complete = complete;
  }
  ListenWhereWanted();
  return kSuccess;
}

ACLTAPE_COMPAT int msptiActivityEnable(uint32_t kind) {
  if (!IsKind(kind)) return kInvalidParameter;
  State& state = GetState();
  {
    const std::lock_guard lock(state.mutex);
    state.enabled.insert(kind);
  }
  ListenWhereWanted();
  return kSuccess;
}

ACLTAPE_COMPAT int msptiActivityDisable(uint32_t kind) {
  if (!IsKind(kind)) return kInvalidParameter;
  State& state = GetState();
  {
    const std::lock_guard lock(state.mutex);
    state.enabled.erase(kind);
  }
  ListenWhereWanted();
  return kSuccess;
}

ACLTAPE_COMPAT bool msptiActivityIsEnabled(uint32_t kind) {
  State& state = GetState();
  const std::lock_guard lock(state.mutex);
  return state.Wants(kind);
}

ACLTAPE_COMPAT int msptiActivityGetNextRecord(uint8_t* buffer, size_t valid, uint8_t** record) {
  if (buffer == nullptr || record == nullptr) return kInvalidParameter;
  uint8_t* next = buffer;
  if (*record != nullptr) {
    uint32_t kind = 0;
    std::memcpy(&kind, *record, sizeof(kind));
    const size_t bytes = BytesOf(kind);
    if (*record < buffer || bytes == 0) return kInvalidParameter;
    next = *record + bytes;
  }
  if (next + sizeof(uint32_t) > buffer + valid) {
    *record = nullptr;
    return kMaxLimitReached;
  }
  *record = next;
  return kSuccess;
}

ACLTAPE_COMPAT int msptiActivityFlushAll(uint32_t) {
  State& state = GetState();
  const std::lock_guard lock(state.mutex);
  state.Complete();
  return kSuccess;
}

ACLTAPE_COMPAT int msptiActivityFlushPeriod(uint32_t) { return kSuccess; }

ACLTAPE_COMPAT int msptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
  external[kind].push_back(id);
  return kSuccess;
}

ACLTAPE_COMPAT int msptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t* last) {
  std::vector<uint64_t>& ids = external[kind];
  if (ids.empty()) return kInvalidParameter;
  if (last != nullptr) *last = ids.back();
  ids.pop_back();
  return kSuccess;
}

ACLTAPE_COMPAT int msptiActivityEnableMarkerDomain(const char* name) {
  return name != nullptr ? kSuccess : kInvalidParameter;
}

ACLTAPE_COMPAT int msptiActivityDisableMarkerDomain(const char* name) {
  return name != nullptr ? kSuccess : kInvalidParameter;
}
