// Times of the device's work, over a device that this file makes up: its streams and its clock are
// known to the nanosecond. Meant to run under ThreadSanitizer too.
#include "recorder/acl/device_times.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "recorder/acl/device_clock.h"
#include "recorder/acl/handles.h"
#include "recorder/acl/real.h"
#include "recorder/wire/clock.h"

namespace acltape::acl_agent {
namespace {

// The clock of both sides, whose rate the test measures once.
struct HostClock {
  uint64_t base_tick = 0;
  uint64_t base_ns = 0;
  double ns_per_tick = 1;

  HostClock() {
    const uint64_t tick = wire::Tick();
    const uint64_t ns = wire::MonotonicNs();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    base_tick = wire::Tick();
    base_ns = wire::MonotonicNs();
    ns_per_tick = static_cast<double>(base_ns - ns) / static_cast<double>(base_tick - tick);
  }
  int64_t Now() const {
    return static_cast<int64_t>(base_ns) +
           static_cast<int64_t>(static_cast<double>(wire::Tick() - base_tick) * ns_per_tick);
  }
};
const HostClock& TheHost() {
  static HostClock& host = *new HostClock;
  return host;
}

// The device: streams do one thing after the other. Its clock began elsewhere and drifts.
class Device {
 public:
  static constexpr int64_t kOffset = -123456789012345;
  static constexpr double kRate = 1 + 40e-6;
  static constexpr uint32_t kEvents = 8000;

  static Device& The() {
    static Device& device = *new Device;
    return device;
  }
  static double Clock(int64_t host_ns) { return static_cast<double>(host_ns - kStart()) * kRate; }

  struct Event {
    int64_t reached_ns = 0;  // host time; 0: never recorded
  };

  aclError Create(aclrtEvent* event) {
    std::lock_guard lock(mutex_);
    if (refuse_events) return Fail(207007);
    auto* made = new Event;
    events_.insert(made);
    *event = made;
    return ACL_SUCCESS;
  }
  aclError Destroy(aclrtEvent event) {
    std::lock_guard lock(mutex_);
    if (events_.erase(static_cast<Event*>(event)) == 0) return Fail(107000);
    delete static_cast<Event*>(event);
    return ACL_SUCCESS;
  }
  aclError Record(aclrtEvent event, aclrtStream stream) {
    std::lock_guard lock(mutex_);
    ++records;
    if (refuse_records) return Fail(507015);
    if (events_.count(static_cast<Event*>(event)) == 0) {
      ADD_FAILURE() << "an event of a former device was used";
      return Fail(107000);
    }
    const int64_t now = TheHost().Now() + kLatencyNs;
    static_cast<Event*>(event)->reached_ns = last_event_ns_[stream] =
        std::max(now, free_ns_[stream]);
    return ACL_SUCCESS;
  }
  // When the stream reaches the event that was recorded last on it.
  int64_t LastEvent(aclrtStream stream) {
    std::lock_guard lock(mutex_);
    return last_event_ns_[stream];
  }
  // Work that takes so long. Returns when it begins and ends, as the host's clock shows it.
  std::pair<int64_t, int64_t> Work(aclrtStream stream, int64_t ns) {
    std::lock_guard lock(mutex_);
    const int64_t begin = std::max(TheHost().Now() + kLatencyNs, free_ns_[stream]);
    free_ns_[stream] = begin + ns;
    return {begin, begin + ns};
  }
  void Synchronize(aclrtStream stream) {
    int64_t until = 0;
    {
      std::lock_guard lock(mutex_);
      until = free_ns_[stream];
    }
    while (TheHost().Now() < until) {
    }
  }
  aclError Query(aclrtEvent event, aclrtEventRecordedStatus* status) {
    std::lock_guard lock(mutex_);
    const int64_t reached = static_cast<Event*>(event)->reached_ns;
    *status = reached <= TheHost().Now() ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                                         : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return ACL_SUCCESS;
  }
  aclError Time(aclrtEvent event, uint64_t* us) {
    std::lock_guard lock(mutex_);
    const double ns = Clock(static_cast<Event*>(event)->reached_ns);
    *us = static_cast<uint64_t>(static_cast<int64_t>(ns) / 1000);
    return ACL_SUCCESS;
  }
  aclError Elapsed(float* ms, aclrtEvent begin, aclrtEvent end) {
    std::lock_guard lock(mutex_);
    *ms = static_cast<float>((Clock(static_cast<Event*>(end)->reached_ns) -
                              Clock(static_cast<Event*>(begin)->reached_ns)) /
                             1e6);
    return ACL_SUCCESS;
  }
  aclError Fail(aclError code) {
    last_error = code;
    return code;
  }
  // Ends all events, as the end of the device does.
  void Reset() {
    std::lock_guard lock(mutex_);
    for (Event* event : events_) delete event;
    events_.clear();
  }
  size_t events() {
    std::lock_guard lock(mutex_);
    return events_.size();
  }

  bool refuse_events = false;
  bool refuse_records = false;
  std::atomic<int> records{0};
  std::atomic<aclError> last_error{ACL_SUCCESS};

 private:
  static constexpr int64_t kLatencyNs = 3000;  // until an idle stream reacts
  static int64_t kStart() {
    static const int64_t start = TheHost().Now() + kOffset;
    return start;
  }

  std::mutex mutex_;
  std::set<Event*> events_;
  std::map<aclrtStream, int64_t> free_ns_;
  std::map<aclrtStream, int64_t> last_event_ns_;
};

__thread Thread* t_recorded = nullptr;
std::atomic<int64_t> g_captures_now{0};
std::atomic<uint64_t> g_capturing{0};  // stream
std::atomic<uint64_t> g_updating{0};

}  // namespace

// These replace functions of the agent's other files.
void* RealByName(const char* name) {
  static const std::map<std::string, void*> functions = {
      {"aclrtCreateEventExWithFlag",
       reinterpret_cast<void*>(+[](aclrtEvent* event, uint32_t flags) {
         EXPECT_EQ(flags, static_cast<uint32_t>(ACL_EVENT_TIME_LINE));
         return Device::The().Create(event);
       })},
      {"aclrtDestroyEvent",
       reinterpret_cast<void*>(+[](aclrtEvent event) { return Device::The().Destroy(event); })},
      {"aclrtRecordEvent", reinterpret_cast<void*>(+[](aclrtEvent event, aclrtStream stream) {
         return Device::The().Record(event, stream);
       })},
      {"aclrtQueryEventStatus",
       reinterpret_cast<void*>(+[](aclrtEvent event, aclrtEventRecordedStatus* status) {
         return Device::The().Query(event, status);
       })},
      {"aclrtEventGetTimestamp", reinterpret_cast<void*>(+[](aclrtEvent event, uint64_t* us) {
         return Device::The().Time(event, us);
       })},
      {"aclrtEventElapsedTime",
       reinterpret_cast<void*>(+[](float* ms, aclrtEvent begin, aclrtEvent end) {
         return Device::The().Elapsed(ms, begin, end);
       })},
      {"aclrtGetEventAvailNum", reinterpret_cast<void*>(+[](uint32_t* count) {
         *count = Device::kEvents;
         return aclError{ACL_SUCCESS};
       })},
      {"aclrtPeekAtLastError",
       reinterpret_cast<void*>(+[](aclrtLastErrLevel) { return Device::The().last_error.load(); })},
      {"aclrtGetLastError", reinterpret_cast<void*>(+[](aclrtLastErrLevel) {
         return Device::The().last_error.exchange(ACL_SUCCESS);
       })},
  };
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}
uint64_t IdOf(Thread&, wire::HandleKind, uint64_t handle, bool) { return handle; }
uint64_t DefaultStreamId(Thread&) { return 1; }
int64_t ActiveCaptures() { return g_captures_now.load(); }
uint64_t ModelHandleOf(Thread&, uint64_t stream) { return stream == g_capturing ? 77 : 0; }
uint64_t UpdatedModel(uint64_t stream) { return stream == g_updating ? 78 : 0; }
int32_t CurrentDevice(Thread& thread) { return thread.device = 0; }
Thread* Enter() { return t_recorded; }

namespace {

struct Span {
  int64_t begin_ns;
  int64_t end_ns;
  int64_t error_ns;
  uint32_t stream_id;
};

// The times that the device knows of the work of a call, in the host's time.
struct Truth {
  int64_t begin_ns;
  int64_t end_ns;
  // When the stream reached the event that tells the end: later than the work's end if the host
  // was kept from recording the event until the stream idled.
  int64_t noticed_ns;
};

// One recorded thread with a ring of its own.
class Recorded {
 public:
  Recorded() : ring_(kRingBytes) {
    arena_.device_times = 1;
    arena_.base_tick = TheHost().base_tick;
    arena_.base_ns = TheHost().base_ns;
    arena_.ns_per_tick = TheHost().ns_per_tick;
    tape_.arena = &arena_;
    tape_.ring = wire::RingProducer(&slot_, ring_.data(), kRingBytes);
    thread_.tape = &tape_;
    t_recorded = &thread_;
  }
  ~Recorded() { t_recorded = nullptr; }

  Thread& thread() { return thread_; }

  // A call that puts work on the stream; its true times.
  Truth Call(uint64_t id, uint64_t stream, int64_t ns) {
    DeviceTask* task = BeginDeviceTask(thread_, stream);
    const uint64_t begin = wire::Tick();
    const auto handle = reinterpret_cast<aclrtStream>(stream);
    const auto [begin_ns, end_ns] = Device::The().Work(handle, ns);
    EndDeviceTask(thread_, task, id, begin, true);
    return {begin_ns, end_ns, Device::The().LastEvent(handle)};
  }

  std::map<uint64_t, Span> Spans() const {
    std::map<uint64_t, Span> spans;
    Visit([&](const wire::RecordHeader* header) {
      if (header->kind != wire::RecordKind::kDeviceSpan) return;
      const auto* record = reinterpret_cast<const wire::DeviceSpanRecord*>(header);
      const auto end = record->begin_ns + static_cast<int64_t>(record->duration_ns);
      EXPECT_TRUE(spans
                      .emplace(record->call_id,
                               Span{record->begin_ns, end, record->error_ns, record->stream_id})
                      .second)
          << "call " << record->call_id;
    });
    return spans;
  }
  // Spans that are missing, by the subject of their row of the ledger.
  std::map<std::string, uint64_t> Missing() const {
    std::map<std::string, uint64_t> missing;
    Visit([&](const wire::RecordHeader* header) {
      if (header->kind != wire::RecordKind::kLedger) return;
      const auto* record = reinterpret_cast<const wire::LedgerRecord*>(header);
      const auto* kind = reinterpret_cast<const char*>(record + 1);
      if (std::strcmp(kind, "device_time_missing") == 0) {
        missing[kind + std::strlen(kind) + 1] += record->count;
      }
    });
    return missing;
  }

 private:
  template <typename Action>
  void Visit(const Action& action) const {
    for (uint64_t offset = 0; offset < slot_.head.load();) {
      const auto* header = reinterpret_cast<const wire::RecordHeader*>(ring_.data() + offset);
      action(header);
      offset += header->bytes;
    }
  }

  static constexpr size_t kRingBytes = 1 << 20;  // more than any test writes
  std::vector<std::byte> ring_;
  wire::ArenaHeader arena_{};
  wire::Slot slot_{};
  agent::Tape tape_;
  Thread thread_;
};

class DeviceTimesTest : public ::testing::Test {
 protected:
  void TearDown() override {
    Recorded last;
    EndDeviceTimes(last.thread());
    EXPECT_EQ(Device::The().events(), 0u) << "events that were not given back";
    Device::The().refuse_events = Device::The().refuse_records = false;
    Device::The().last_error = ACL_SUCCESS;
    g_captures_now = 0;
    g_capturing = g_updating = 0;
  }
};

TEST(DeviceClockTest, IsBoundedFromBothSides) {
  DeviceClock clock;
  EXPECT_FALSE(clock.known());
  clock.NotBefore(1000, 5900);  // 4900 or more apart
  EXPECT_FALSE(clock.known());
  clock.NotAfter(2000, 7100);  // 5100 or less
  ASSERT_TRUE(clock.known());
  EXPECT_EQ(clock.ToHost(1500), 6500);
  EXPECT_EQ(clock.Error(1500), 100);
  clock.NotBefore(3000, 7950);  // 4950: closer
  clock.NotBefore(3500, 8000);  // 4500: says nothing new
  EXPECT_EQ(clock.ToHost(3000), 8025);
  EXPECT_EQ(clock.Error(3000), 75);
}

TEST(DeviceClockTest, BoundsLoosenWithTheDrift) {
  DeviceClock clock;
  clock.NotBefore(0, 5000);
  clock.NotAfter(0, 5200);
  constexpr int64_t kSecond = 1000000000;
  EXPECT_EQ(clock.Error(0), 100);
  EXPECT_EQ(clock.Error(kSecond), 100 + kSecond / DeviceClock::kDrift);
  EXPECT_EQ(clock.ToHost(kSecond), kSecond + 5100);
  // A bound that the old one would have hidden without drift.
  clock.NotAfter(kSecond, kSecond + 5250);
  EXPECT_EQ(clock.Error(kSecond), (5250 - (5000 - kSecond / DeviceClock::kDrift)) / 2);
  EXPECT_EQ(clock.jumps(), 0u);
}

TEST(DeviceClockTest, AClockThatIsSetIsLearntAgain) {
  DeviceClock clock;
  clock.NotBefore(0, 5000);
  clock.NotAfter(0, 5200);
  clock.NotBefore(1000, 901000);
  EXPECT_EQ(clock.jumps(), 1u);
  EXPECT_FALSE(clock.known());
  clock.NotAfter(2000, 902100);
  ASSERT_TRUE(clock.known());
  EXPECT_EQ(clock.ToHost(2000), 902050);
}

TEST_F(DeviceTimesTest, LieWithinTheirErrorOfTheTruth) {
  Recorded recorded;
  std::map<uint64_t, Truth> truth;
  uint64_t id = 0;
  for (int round = 0; round < 40; ++round) {
    for (const int64_t ns : {40000, 700, 15000, 250000}) {
      for (const uint64_t stream : {10, 20}) {
        ++id;
        truth[id] = recorded.Call(id, stream, ns + static_cast<int64_t>(stream));
      }
    }
    for (const uint64_t stream : {10, 20}) {
      Device::The().Synchronize(reinterpret_cast<aclrtStream>(stream));
    }
    RecordDeviceTimes(recorded.thread());
  }
  EndDeviceTimes(recorded.thread());
  EXPECT_TRUE(recorded.Missing().empty());
  const auto spans = recorded.Spans();
  ASSERT_EQ(spans.size(), truth.size());
  for (const auto& [call, span] : spans) {
    const auto [begin_ns, end_ns, noticed_ns] = truth[call];
    // If the stream idled, the start may be earlier, by what the host took to launch, and the end
    // later, by what it took to record the event after the work.
    EXPECT_GE(span.end_ns, end_ns - span.error_ns) << "call " << call;
    EXPECT_LE(span.end_ns, noticed_ns + span.error_ns) << "call " << call;
    EXPECT_LE(span.begin_ns, begin_ns + span.error_ns) << "call " << call;
    EXPECT_EQ(span.stream_id, call % 2 == 1 ? 10u : 20u);
    EXPECT_GT(span.error_ns, 0);
  }
  // Work that waited for earlier work of its stream: its time is known to the resolution of a
  // float.
  for (uint64_t call = 7; call <= id; call += 8) {
    if (truth[call].begin_ns != truth[call - 2].end_ns) continue;
    if (truth[call].noticed_ns != truth[call].end_ns) continue;
    EXPECT_NEAR(static_cast<double>(spans.at(call).end_ns - spans.at(call).begin_ns), 250010, 25)
        << "call " << call;
  }
}

TEST_F(DeviceTimesTest, OfOneStreamDoNotOverlap) {
  Recorded recorded;
  for (uint64_t id = 1; id <= 300; ++id) recorded.Call(id, 30, 300 + static_cast<int64_t>(id % 7));
  Device::The().Synchronize(reinterpret_cast<aclrtStream>(30));
  EndDeviceTimes(recorded.thread());
  const auto spans = recorded.Spans();
  ASSERT_EQ(spans.size(), 300u);
  int64_t last = 0;
  for (const auto& [call, span] : spans) {
    EXPECT_GE(span.begin_ns, last) << "call " << call;
    last = span.end_ns;
  }
}

TEST_F(DeviceTimesTest, NothingIsRecordedOnAStreamThatCapturesOrUpdates) {
  Recorded recorded;
  const int before = Device::The().records;
  g_captures_now = 1;
  g_capturing = 40;
  EXPECT_EQ(BeginDeviceTask(recorded.thread(), 40), nullptr);
  g_updating = 41;
  EXPECT_EQ(BeginDeviceTask(recorded.thread(), 41), nullptr);
  EXPECT_EQ(Device::The().records, before);
  // Another stream works meanwhile.
  recorded.Call(1, 42, 10);
  EXPECT_EQ(Device::The().records, before + 2);
}

TEST_F(DeviceTimesTest, AFailedCallHasNone) {
  Recorded recorded;
  DeviceTask* task = BeginDeviceTask(recorded.thread(), 50);
  ASSERT_NE(task, nullptr);
  EndDeviceTask(recorded.thread(), task, 1, wire::Tick(), false);
  EndDeviceTimes(recorded.thread());
  EXPECT_TRUE(recorded.Spans().empty());
  EXPECT_TRUE(recorded.Missing().empty());
}

TEST_F(DeviceTimesTest, RefusalsAreCountedAndTakenBack) {
  Recorded recorded;
  Device::The().refuse_records = true;
  recorded.Call(1, 60, 10);
  EXPECT_EQ(Device::The().last_error, ACL_SUCCESS);
  Device::The().refuse_records = false;
  Device::The().refuse_events = true;
  recorded.Call(2, 61, 10);
  EXPECT_EQ(Device::The().last_error, ACL_SUCCESS);
  // An error that the program has not asked for yet stays.
  Device::The().last_error = 107001;
  recorded.Call(3, 61, 10);
  EXPECT_NE(Device::The().last_error, ACL_SUCCESS);
  EndDeviceTimes(recorded.thread());
  const std::map<std::string, uint64_t> wanted = {{"events", 2}, {"refused events", 1}};
  EXPECT_EQ(recorded.Missing(), wanted);
}

TEST_F(DeviceTimesTest, EventsAreBounded) {
  Recorded recorded;
  recorded.Call(0, 70, 1'000'000'000);  // the rest waits for it
  for (uint64_t id = 1; id < 2100; ++id) recorded.Call(id, 70, 1);
  EXPECT_LE(Device::The().events(), Device::kEvents / 4);
  Device::The().Synchronize(reinterpret_cast<aclrtStream>(70));
  RecordDeviceTimes(recorded.thread());
  EndDeviceTimes(recorded.thread());
  EXPECT_EQ(recorded.Spans().size() + recorded.Missing()["events"], 2100u);
  EXPECT_GT(recorded.Missing()["events"], 0u);
}

TEST_F(DeviceTimesTest, WhatAnEndedStreamHasNotDoneIsCounted) {
  Recorded recorded;
  recorded.Call(1, 80, 100);
  Device::The().Synchronize(reinterpret_cast<aclrtStream>(80));
  recorded.Call(2, 80, 60'000'000'000);
  EndStreamTimes(recorded.thread(), 80);
  EXPECT_EQ(recorded.Spans().size(), 1u);
  EXPECT_EQ(recorded.Missing()["unfinished work"], 1u);
  EXPECT_EQ(Device::The().events(), 0u);
}

TEST_F(DeviceTimesTest, ACallDuringTheEndOfItsDeviceIsCounted) {
  Recorded recorded;
  DeviceTask* task = BeginDeviceTask(recorded.thread(), 90);
  ASSERT_NE(task, nullptr);
  EndDeviceTimes(recorded.thread());
  Device::The().Reset();
  EndDeviceTask(recorded.thread(), task, 1, wire::Tick(), true);
  RecordDeviceTimes(recorded.thread());
  EXPECT_EQ(recorded.Missing()["unfinished work"], 1u);
}

TEST_F(DeviceTimesTest, ThreadsOnStreamsOfTheirOwnAllHaveSpans) {
  constexpr int kThreads = 4;
  constexpr uint64_t kCalls = 400;
  std::atomic<uint64_t> spans{0};
  std::vector<std::thread> threads;
  for (uint64_t number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      Recorded recorded;
      const uint64_t stream = 100 + number;
      for (uint64_t id = 1; id <= kCalls; ++id) {
        recorded.Call(1000 * number + id, stream, 200);
        if (id % 40 != 0) continue;
        Device::The().Synchronize(reinterpret_cast<aclrtStream>(stream));
        RecordDeviceTimes(recorded.thread());  // times of all streams
      }
      EndStreamTimes(recorded.thread(), stream);
      spans += recorded.Spans().size();
      EXPECT_TRUE(recorded.Missing().empty());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(spans, kThreads * kCalls);
}

TEST_F(DeviceTimesTest, ThreadsThatMeetOnAStreamAreCounted) {
  constexpr uint64_t kCalls = 500;
  std::atomic<uint64_t> told{0};
  std::vector<std::thread> threads;
  for (uint64_t number = 0; number < 2; ++number) {
    threads.emplace_back([&, number] {
      Recorded recorded;
      for (uint64_t id = 1; id <= kCalls; ++id) recorded.Call(1000 * number + id, 110, 20);
      Device::The().Synchronize(reinterpret_cast<aclrtStream>(110));
      RecordDeviceTimes(recorded.thread());
      told += recorded.Spans().size();
      for (const auto& [subject, count] : recorded.Missing()) told += count;
    });
  }
  for (std::thread& thread : threads) thread.join();
  Recorded last;
  EndDeviceTimes(last.thread());
  told += last.Spans().size();
  for (const auto& [subject, count] : last.Missing()) told += count;
  EXPECT_EQ(told, 2 * kCalls);
}

}  // namespace
}  // namespace acltape::acl_agent
