#include "recorder/acl/device_times.h"

#include <stdlib.h>

#include <atomic>

#include "acl/acl.h"
#include "meaning/options.h"
#include "recorder/acl/device_clock.h"
#include "recorder/acl/event_calls.h"
#include "recorder/acl/handles.h"
#include "recorder/agent/lock.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/pointer_map.h"

namespace acltape::acl_agent {

namespace {

struct StreamTimes;

}  // namespace

struct DeviceTask {
  DeviceTask* next;
  StreamTimes* owner;
  aclrtStream stream;
  aclrtEvent begin;
  aclrtEvent end;
  uint32_t generation;  // generation of the owner when the task began
  uint64_t call_id;
  int64_t recorded_ns;  // host time just before the first event was recorded
  int64_t called_ns;    // host time at which the call began
  int64_t launched_ns;  // host time just before the second event was recorded
  int64_t device_ns;    // time of the first event, by the device's clock
  int64_t duration_ns;  // from the first event to the second
};

namespace {

constexpr int64_t kEventsOfTask = 2;
// Tasks of a stream that wait before the recorder looks whether some are done, and how often it
// looks then.
constexpr uint32_t kManyWaiting = 128;
constexpr uint32_t kLookEvery = 32;
// Times wait for a clock that is known so well, as long as they are not more of a stream.
constexpr int64_t kGoodErrorNs = 20000;
constexpr uint32_t kMostHeld = 64;
// aclrtEventGetTimestamp counts microseconds (rule EVT-15).
constexpr int64_t kResolutionNs = 1000;
constexpr uint32_t kMostDeviceClocks = 64;
// Streams whose tasks run as part of a built model only (rules STR-08, BLD-02).
constexpr uint32_t kNotTimed =
    ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;

// The tasks of a stream of the program that are on their way. A StreamTimes whose stream has ended
// is used for another stream.
struct StreamTimes {
  StreamTimes* next;  // in g_streams
  agent::Mutex mutex;
  uint64_t stream_id;  // 0: the stream has ended
  uint32_t device;
  bool timed;
  bool mixed;                        // calls of two threads have met on the stream
  uint32_t open;                     // calls that have begun and not returned
  uint32_t waiting;                  // tasks in the queue
  uint32_t done_count;               // tasks in `done`
  std::atomic<uint32_t> generation;  // grows when events are thrown away
  int64_t last_end_ns;               // end of the last span
  DeviceTask* first;                 // the queue, in order of the stream
  DeviceTask* last;
  DeviceTask* done;  // tasks whose times are read and not sent
  DeviceTask* spare;
};

// Why a call has no span.
enum Missing : uint32_t {
  kNoEvent,
  kRefused,
  kMet,
  kNeverDone,
  kUnknown,
  kNoMemory,
  kMissingKinds
};
struct MissingText {
  const char* subject;
  const char* cause;
  const char* remedy;
};
constexpr MissingText kMissingTexts[kMissingKinds] = {
    {"events", "as many events were on their way as the recorder uses, or the device had none left",
     "synchronise more often, or record fewer calls"},
    {"refused events", "the device refused to record an event or to give its time",
     "see the program's own errors; record without @device-times"_cli},
    {"threads on one stream", "two threads issued work on a stream at the same time",
     "give each thread a stream of its own"},
    {"unfinished work",
     "the device had not done the work when its stream, its device or the "
     "program ended",
     "synchronise before the end"},
    {"first calls of unknown streams", "the stream was not seen before this call",
     "record from the program's start"},
    {"memory", "the program had no memory left for the recorder", "give the program more memory"},
};
std::atomic<uint64_t> g_missing[kMissingKinds];
std::atomic<uint64_t> g_jumps{0};

std::atomic<StreamTimes*> g_streams{nullptr};
agent::Mutex g_streams_mutex;
agent::PointerMap<StreamTimes*> g_times;  // by stream_id
std::atomic<int64_t> g_tasks{0};
agent::Mutex g_clock_mutex;
DeviceClock g_clocks[kMostDeviceClocks];
bool g_records_at_exit = false;

const void* TimesKey(uint64_t stream_id) { return reinterpret_cast<const void*>(stream_id << 4); }

void Miss(Missing kind, uint64_t count = 1) {
  g_missing[kind].fetch_add(count, std::memory_order_relaxed);
}

int64_t HostNs(const Thread& thread, uint64_t tick) {
  const wire::ArenaHeader& arena = *thread.tape->arena;
  const auto since = static_cast<double>(static_cast<int64_t>(tick - arena.base_tick));
  return static_cast<int64_t>(arena.base_ns) + static_cast<int64_t>(since * arena.ns_per_tick);
}

void RecordMissingTimes(Thread& thread) {
  for (uint32_t kind = 0; kind < kMissingKinds; ++kind) {
    const uint64_t count = g_missing[kind].exchange(0, std::memory_order_relaxed);
    if (count == 0) continue;
    const MissingText& text = kMissingTexts[kind];
    thread.tape->WriteLedger(1, count, "device_time_missing", text.subject, text.cause,
                             text.remedy);
  }
  const uint64_t jumps = g_jumps.exchange(0, std::memory_order_relaxed);
  if (jumps == 0) return;
  thread.tape->WriteLedger(1, jumps, "device_clock_set", "device times",
                           "the clock of a device was set, so that spans before and after have "
                           "distances that are not theirs",
                           "compare spans of one side only");
}

void RecordTimesAtExit() {
  if (Thread* thread = Enter()) EndDeviceTimes(*thread);
}

// Gives the events back. They may be pending (rule EVT-16).
void FreeTask(OwnCalls& own, DeviceTask* task) {
  own.Succeeded(TheEventFunctions().destroy(task->begin));
  own.Succeeded(TheEventFunctions().destroy(task->end));
  free(task);
  g_tasks.fetch_sub(1);
}

void Keep(StreamTimes& stream, DeviceTask* task) {
  task->next = stream.spare;
  stream.spare = task;
}

// Reads the times of a task. False: the device has not done it.
bool ReadTimes(OwnCalls& own, DeviceTask* task, bool* refused) {
  const EventFunctions& f = TheEventFunctions();
  auto status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  if (!own.Succeeded(f.query(task->end, &status))) return false;
  if (status != ACL_EVENT_RECORDED_STATUS_COMPLETE) return false;
  uint64_t begin_us = 0;
  float elapsed_ms = 0;
  *refused = !own.Succeeded(f.time(task->begin, &begin_us)) ||
             !own.Succeeded(f.elapsed(&elapsed_ms, task->begin, task->end)) || elapsed_ms < 0;
  if (*refused) return true;
  task->device_ns = static_cast<int64_t>(begin_us) * kResolutionNs;
  task->duration_ns = static_cast<int64_t>(static_cast<double>(elapsed_ms) * 1e6);
  return true;
}

void WriteSpan(Thread& thread, StreamTimes& stream, const DeviceTask& task,
               const DeviceClock& clock) {
  const int64_t mapped_ns = clock.ToHost(task.device_ns);
  // Work of a stream does not overlap; what seems to comes from the error of the clock.
  const int64_t free_ns = mapped_ns < stream.last_end_ns ? stream.last_end_ns : mapped_ns;
  const int64_t end_ns = free_ns + task.duration_ns;
  // No work begins before its call.
  const int64_t begin_ns = free_ns < task.called_ns ? task.called_ns : free_ns;
  const int64_t error_ns = clock.Error(task.device_ns) + kResolutionNs + (free_ns - mapped_ns);
  uint32_t total = 0;
  auto* record =
      thread.tape->Begin<wire::DeviceSpanRecord>(wire::RecordKind::kDeviceSpan, 0, &total);
  if (record == nullptr) return;
  record->call_id = task.call_id;
  record->begin_ns = begin_ns;
  record->duration_ns = end_ns > begin_ns ? static_cast<uint64_t>(end_ns - begin_ns) : 0;
  record->stream_id = static_cast<uint32_t>(stream.stream_id);
  record->error_ns = error_ns < UINT32_MAX ? static_cast<uint32_t>(error_ns) : UINT32_MAX;
  thread.tape->End(total);
  stream.last_end_ns = end_ns > begin_ns ? end_ns : begin_ns;
}

// Reads the times of what the stream has done; they tell more of the device's clock. The stream's
// lock is held.
void ReadDone(Thread& thread, StreamTimes& stream) {
  if (stream.first == nullptr) return;
  OwnCalls own(thread);
  agent::Lock lock(g_clock_mutex);
  DeviceClock& clock = g_clocks[stream.device % kMostDeviceClocks];
  const uint64_t jumps = clock.jumps();
  DeviceTask** end_of_done = &stream.done;
  while (*end_of_done != nullptr) end_of_done = &(*end_of_done)->next;
  while (DeviceTask* task = stream.first) {
    bool refused = false;
    if (!ReadTimes(own, task, &refused)) break;
    const int64_t seen_ns = HostNs(thread, agent::Tick());
    stream.first = task->next;
    --stream.waiting;
    if (refused) {
      Miss(kRefused);
      Keep(stream, task);
      continue;
    }
    const int64_t end_ns = task->device_ns + task->duration_ns;
    clock.NotBefore(task->device_ns + kResolutionNs, task->recorded_ns);
    clock.NotBefore(end_ns + kResolutionNs, task->launched_ns);
    clock.NotAfter(end_ns, seen_ns);
    task->next = nullptr;
    *end_of_done = task;
    end_of_done = &task->next;
    ++stream.done_count;
  }
  if (stream.first == nullptr) stream.last = nullptr;
  g_jumps.fetch_add(clock.jumps() - jumps, std::memory_order_relaxed);
}

// Sends the times that were read. While little is known of the clock they may wait for more; `all`
// lets none wait. The stream's lock is held.
void WriteDone(Thread& thread, StreamTimes& stream, bool all) {
  if (stream.done == nullptr) return;
  agent::Lock lock(g_clock_mutex);
  const DeviceClock& clock = g_clocks[stream.device % kMostDeviceClocks];
  if (!all && clock.known() && stream.done_count < kMostHeld &&
      clock.Error(stream.done->device_ns) > kGoodErrorNs) {
    return;
  }
  while (DeviceTask* task = stream.done) {
    stream.done = task->next;
    --stream.done_count;
    if (clock.known()) {
      WriteSpan(thread, stream, *task, clock);
    } else {
      Miss(kRefused);
    }
    Keep(stream, task);
  }
}

void RecordDone(Thread& thread, StreamTimes& stream) {
  ReadDone(thread, stream);
  WriteDone(thread, stream, true);
}

// Sends what all streams have done. The times of all are read before the first is sent, because
// each tells more of the clock.
void RecordAllDone(Thread& thread, bool all) {
  for (StreamTimes* times = g_streams.load(); times != nullptr; times = times->next) {
    agent::Lock lock(times->mutex);
    ReadDone(thread, *times);
  }
  for (StreamTimes* times = g_streams.load(); times != nullptr; times = times->next) {
    agent::Lock lock(times->mutex);
    WriteDone(thread, *times, all);
  }
}

// Throws the queue and all events of the stream away. The stream's lock is held.
void Drop(Thread& thread, StreamTimes& stream) {
  ++stream.generation;
  // Nothing of a library that may have ended is called without need.
  if (stream.first == nullptr && stream.done == nullptr && stream.spare == nullptr) return;
  OwnCalls own(thread);
  if (stream.waiting != 0) Miss(kNeverDone, stream.waiting);
  for (DeviceTask** list : {&stream.first, &stream.done, &stream.spare}) {
    while (DeviceTask* task = *list) {
      *list = task->next;
      FreeTask(own, task);
    }
  }
  stream.last = nullptr;
  stream.waiting = stream.done_count = 0;
}

// The id of a stream that the trace knows, 0: it does not.
uint64_t KnownStream(Thread& thread, uint64_t handle) {
  if (handle != 0) return IdOf(thread, wire::HandleKind::kStream, handle, false);
  CurrentDevice(thread);
  return thread.device < 0 ? 0 : DefaultStreamId(thread);
}

bool RunsItsTasks(Thread& thread, uint64_t handle) {
  if (handle == 0 || TheEventFunctions().flags == nullptr) return true;
  uint32_t flags = 0;
  OwnCalls own(thread);
  return own.Succeeded(TheEventFunctions().flags(reinterpret_cast<aclrtStream>(handle), &flags)) &&
         (flags & kNotTimed) == 0;
}

// Null without memory.
StreamTimes* AddStreamTimes(Thread& thread, uint64_t handle, uint64_t stream_id) {
  const bool timed = RunsItsTasks(thread, handle);
  const auto device = static_cast<uint32_t>(CurrentDevice(thread));
  agent::Lock lock(g_streams_mutex);
  StreamTimes* times = nullptr;
  if (g_times.Get(TimesKey(stream_id), &times)) return times;
  if (!g_records_at_exit) {
    const agent::KeepErrno keep;
    g_records_at_exit = atexit(RecordTimesAtExit) == 0;
  }
  times = g_streams.load();
  while (times != nullptr && times->stream_id != 0) times = times->next;
  if (times == nullptr) {
    times = static_cast<StreamTimes*>(agent::TryAllocateZeros(1, sizeof(StreamTimes)));
    if (times == nullptr) return nullptr;
    times->next = g_streams.load();
    times->stream_id = stream_id;
    g_streams.store(times);
  }
  agent::Lock own_lock(times->mutex);
  times->stream_id = stream_id;
  times->device = device;
  times->timed = timed;
  times->mixed = false;
  times->open = 0;
  times->last_end_ns = 0;
  if (g_times.Put(TimesKey(stream_id), times) != agent::PutResult::kNoMemory) return times;
  times->stream_id = 0;
  return nullptr;
}

int64_t MostTasks(Thread& thread) {
  OwnCalls own(thread);
  return EventsToUse(own) / kEventsOfTask;
}

// A task with its events; null when there may be no more. The stream's lock is held.
DeviceTask* TakeTask(Thread& thread, StreamTimes& stream) {
  const bool none = stream.spare == nullptr;
  if (none && stream.waiting != 0 && g_tasks.load() >= MostTasks(thread))
    RecordDone(thread, stream);
  if (DeviceTask* task = stream.spare) {
    stream.spare = task->next;
    return task;
  }
  bool no_memory = false;
  if (g_tasks.fetch_add(1) < MostTasks(thread)) {
    OwnCalls own(thread);
    auto* task = static_cast<DeviceTask*>(agent::TryAllocateZeros(1, sizeof(DeviceTask)));
    no_memory = task == nullptr;
    // An event without the bit for waits leaves nothing in a capture (rule CAP-44).
    if (task != nullptr &&
        own.Succeeded(TheEventFunctions().create(&task->begin, ACL_EVENT_TIME_LINE))) {
      if (own.Succeeded(TheEventFunctions().create(&task->end, ACL_EVENT_TIME_LINE))) return task;
      own.Succeeded(TheEventFunctions().destroy(task->begin));
    }
    free(task);
  }
  g_tasks.fetch_sub(1);
  Miss(no_memory ? kNoMemory : kNoEvent);
  return nullptr;
}

// True when the device ended while the call ran. The task's events were the device's, so that
// nobody may touch them.
bool IsStale(const StreamTimes& stream, const DeviceTask* task) {
  return task->generation != stream.generation.load();
}

bool DropIfStale(const StreamTimes& stream, DeviceTask* task) {
  if (!IsStale(stream, task)) return false;
  free(task);
  g_tasks.fetch_sub(1);
  return true;
}

// A call on the stream has returned. The stream's lock is held.
void Leave(StreamTimes& stream) {
  if (stream.open > 0) --stream.open;
  if (stream.open == 0) stream.mixed = false;
}

}  // namespace

DeviceTask* BeginDeviceTask(Thread& thread, uint64_t stream) {
  if (ActiveCaptures() != 0 && ModelHandleOf(thread, stream) != 0) return nullptr;
  if (UpdatedModel(stream) != 0) return nullptr;
  if (!TheEventFunctions().complete) {
    Miss(kRefused);
    return nullptr;
  }
  const uint64_t stream_id = KnownStream(thread, stream);
  if (stream_id == 0) {
    Miss(kUnknown);
    return nullptr;
  }
  StreamTimes* times = nullptr;
  if (!g_times.Get(TimesKey(stream_id), &times)) times = AddStreamTimes(thread, stream, stream_id);
  if (times == nullptr) Miss(kNoMemory);
  if (times == nullptr || !times->timed) return nullptr;
  DeviceTask* task = nullptr;
  {
    agent::Lock lock(times->mutex);
    task = TakeTask(thread, *times);
    if (task == nullptr) return nullptr;
    task->generation = times->generation;
    if (++times->open > 1) times->mixed = true;
  }
  task->owner = times;
  task->stream = reinterpret_cast<aclrtStream>(stream);
  OwnCalls own(thread);
  task->recorded_ns = HostNs(thread, agent::Tick());
  if (own.Succeeded(TheEventFunctions().record(task->begin, task->stream))) return task;
  Miss(kRefused);
  agent::Lock lock(times->mutex);
  Leave(*times);
  if (!DropIfStale(*times, task)) Keep(*times, task);
  return nullptr;
}

void EndDeviceTask(Thread& thread, DeviceTask* task, uint64_t call_id, uint64_t begin_tick,
                   bool succeeded) {
  if (task == nullptr) return;
  StreamTimes& times = *task->owner;
  OwnCalls own(thread);
  task->launched_ns = HostNs(thread, agent::Tick());
  const bool refused = succeeded && !IsStale(times, task) &&
                       !own.Succeeded(TheEventFunctions().record(task->end, task->stream));
  if (refused) Miss(kRefused);
  agent::Lock lock(times.mutex);
  const bool met = times.mixed;
  Leave(times);
  if (DropIfStale(times, task)) {
    if (succeeded) Miss(kNeverDone);
    return;
  }
  if (!succeeded || refused || met) {
    if (met && succeeded && !refused) Miss(kMet);
    Keep(times, task);
    return;
  }
  task->call_id = call_id;
  task->called_ns = HostNs(thread, begin_tick);
  task->next = nullptr;
  (times.last == nullptr ? times.first : times.last->next) = task;
  times.last = task;
  if (++times.waiting >= kManyWaiting && times.waiting % kLookEvery == 0) RecordDone(thread, times);
}

void RecordDeviceTimes(Thread& thread) {
  RecordAllDone(thread, false);
  RecordMissingTimes(thread);
}

void EndStreamTimes(Thread& thread, uint64_t stream_id) {
  StreamTimes* times = nullptr;
  if (!g_times.Take(TimesKey(stream_id), &times)) return;
  {
    agent::Lock lock(times->mutex);
    RecordDone(thread, *times);  // the end of a stream may have waited for its work
    Drop(thread, *times);
  }
  {
    agent::Lock lock(g_streams_mutex);
    agent::Lock own_lock(times->mutex);
    times->stream_id = 0;  // free for another stream
  }
  RecordMissingTimes(thread);
}

void EndDeviceTimes(Thread& thread) {
  RecordAllDone(thread, true);
  for (StreamTimes* times = g_streams.load(); times != nullptr; times = times->next) {
    agent::Lock lock(times->mutex);
    Drop(thread, *times);
  }
  RecordMissingTimes(thread);
}

void ForgetDeviceTimeLocks() {
  ForgetEventCallLocks();
  g_times.ForgetLocks();
  g_streams_mutex.Forget();
  g_clock_mutex.Forget();
  // The child has devices and events of its own; the parent's are only copies of memory.
  for (StreamTimes* times = g_streams.load(); times != nullptr; times = times->next) {
    times->mutex.Forget();
    times->first = times->last = times->done = times->spare = nullptr;
    times->waiting = times->done_count = times->open = 0;
    ++times->generation;
    times->mixed = false;
  }
  g_tasks.store(0);
  for (std::atomic<uint64_t>& count : g_missing) count.store(0);
}

}  // namespace acltape::acl_agent
