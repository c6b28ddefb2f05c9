// The cost that a recording tells: the estimate of one thread's time, the ring
// that would have been large enough, and what a trace has of both after any end.
#include "storage/recording_cost.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "recorder/agent/own_time.h"
#include "recorder/collector/fold.h"
#include "recorder/collector/ring_lag.h"
#include "tests/recorder/record_fixture.h"

namespace acltape::test {
namespace {

using collector::RingLag;
using storage::RecordingCost;
using storage::ThreadCost;

// A thread whose hooks take given times. The clock is a number.
class Thread {
 public:
  Thread() { own_.slot = slot_.get(); }

  // A hook of `front` ticks, a real call, and `back` ticks of the hook again.
  void Call(uint64_t front, uint64_t real, uint64_t back) {
    agent::TimedHook hook = {};
    const bool timed = own_.until == 1;
    if (timed) {
      agent::BeginTimedHookAt(own_, hook, now_);
    } else {
      --own_.until;
    }
    now_ += front + real + back;
    if (timed) agent::EndTimedHookAt(own_, hook, real, now_);
    spent_ += front + back;
  }
  void Pass(uint64_t ticks) { now_ += ticks; }
  agent::OwnTime& own() { return own_; }
  uint64_t& now() { return now_; }

  uint64_t estimate() const { return slot_->own_ticks.load(); }
  uint64_t counted() const { return slot_->counted_ticks.load(); }
  uint64_t timed() const { return slot_->timed_hooks.load(); }
  double spent() const { return static_cast<double>(spent_); }

 private:
  std::unique_ptr<wire::Slot> slot_ = std::make_unique<wire::Slot>();
  agent::OwnTime own_;
  uint64_t now_ = 1'000'000;
  uint64_t spent_ = 0;
};

TEST(OwnTime, IsExactForTheFirstHooks) {
  Thread thread;
  for (int i = 0; i < 10; ++i) {
    thread.Call(20, 70, 10);
    thread.Pass(100);
  }
  EXPECT_EQ(thread.estimate(), 300u);
  EXPECT_EQ(thread.counted(), 10 * 100u + 9 * 100u) << "from the first hook to the end of the last";
  EXPECT_EQ(thread.timed(), 10u);
}

TEST(OwnTime, FewHooksStandForMany) {
  Thread thread;
  for (int i = 0; i < 100000; ++i) thread.Call(30, 200, 10);
  EXPECT_LT(thread.timed(), 1000u);
  EXPECT_NEAR(static_cast<double>(thread.estimate()), thread.spent(), 0.01 * thread.spent());
  EXPECT_NEAR(static_cast<double>(thread.estimate()) / static_cast<double>(thread.counted()),
              40.0 / 240, 0.005);
}

TEST(OwnTime, FindsSlowHooksThatComeAtAnyPeriod) {
  for (const int period : {2, 3, 64, 100, 128}) {
    Thread thread;
    for (int i = 0; i < 1000000; ++i) thread.Call(i % period == 0 ? 5000 : 50, 100, 0);
    EXPECT_NEAR(static_cast<double>(thread.estimate()), thread.spent(), 0.2 * thread.spent())
        << "one of " << period;
  }
}

TEST(OwnTime, WaitsForRoomAreNoPartOfIt) {
  Thread thread;
  agent::TimedHook hook = {};
  agent::BeginTimedHookAt(thread.own(), hook, 1000);
  thread.own().waited_ticks += 300;  // in front of the real call
  agent::NoteRealCall(thread.own(), hook);
  thread.own().waited_ticks += 50;  // a call inside the real one
  agent::NoteReturn(thread.own(), hook);
  thread.own().waited_ticks += 200;  // after it
  agent::EndTimedHookAt(thread.own(), hook, 150, 1000 + 300 + 10 + 150 + 200 + 20);
  EXPECT_EQ(thread.estimate(), 30u);
  EXPECT_EQ(thread.counted(), 680u) << "the thread's time has them";
}

TEST(OwnTime, AHookThatLostItsProcessorDoesNotStandForOthers) {
  Thread thread;
  for (int i = 0; i < 1000; ++i) thread.Call(10, 30, 0);
  const uint64_t before = thread.estimate();
  while (thread.own().until != 1) thread.Call(10, 30, 0);
  thread.Call(100'000'000, 30, 0);
  EXPECT_LE(thread.estimate() - before, 170'000'000u) << "it alone, and 256 of a tenth of a ms";
  // Where all are so long, one stands for the others.
  Thread slow;
  for (int i = 0; i < 2000; ++i) slow.Call(1'000'000, 30, 0);
  EXPECT_GT(static_cast<double>(slow.estimate()), 0.8 * slow.spent());
}

TEST(OwnTime, IsNeverNegative) {
  Thread thread;
  agent::TimedHook hook = {};
  agent::BeginTimedHookAt(thread.own(), hook, 1000);
  agent::EndTimedHookAt(thread.own(), hook, 500, 1400);  // on another processor
  EXPECT_EQ(thread.estimate(), 0u);
}

TEST(OwnTime, TheTimeOfAClosedWindowDoesNotCount) {
  Thread thread;
  for (int i = 0; i < 1000; ++i) thread.Call(10, 30, 0);
  const uint64_t before = thread.counted();
  thread.Pass(1'000'000'000);
  agent::BeginCountingAnew(thread.own());
  for (int i = 0; i < 1000; ++i) thread.Call(10, 30, 0);
  EXPECT_LE(thread.counted(), before + 40'000);
  EXPECT_NEAR(static_cast<double>(thread.estimate()) / static_cast<double>(thread.counted()), 0.25,
              0.01);
}

constexpr uint64_t kMiB = 1 << 20;
constexpr int64_t kMs = 1'000'000;

TEST(RingLag, NoWaitNeedsNoLargerRing) {
  RingLag lag(4 * kMiB);
  for (int i = 1; i < 10; ++i) lag.Look(i * kMs, kMiB, 0);
  EXPECT_EQ(lag.needed(), 0u);
}

TEST(RingLag, OneLateLookNeedsWhatTheThreadWouldHaveWritten) {
  RingLag lag(4 * kMiB);
  lag.Look(1 * kMs, kMiB, 0);
  // It filled its ring in 2 ms and waited 6: four rings.
  lag.Look(9 * kMs, 4 * kMiB, 0);
  lag.Look(10 * kMs, kMiB, 6 * kMs);
  EXPECT_EQ(lag.needed(), 16 * kMiB);
  EXPECT_EQ(lag.longest_gap_ns(), 8 * kMs);
}

TEST(RingLag, LateLooksAddUpUntilOneFindsTheRingHalfEmpty) {
  RingLag lag(4 * kMiB);
  uint64_t waited = 0;
  int64_t now = kMs;
  lag.Look(now, kMiB, 0);
  for (int i = 0; i < 3; ++i) lag.Look(now += 2 * kMs, 4 * kMiB, i == 0 ? 0 : waited += kMs);
  lag.Look(now += kMs, kMiB, waited += kMs);
  EXPECT_EQ(lag.needed(), 16 * kMiB) << "three times a ring more";
  lag.Look(now += kMs, kMiB, waited);  // half empty
  lag.Look(now += 2 * kMs, 4 * kMiB, waited);
  lag.Look(now += kMs, kMiB, waited += kMs);
  EXPECT_EQ(lag.needed(), 16 * kMiB) << "this gap alone needs 8 MiB";
}

TEST(RingLag, CountsOfADamagedSlotDoNoHarm) {
  RingLag lag(4 * kMiB);
  lag.Look(1, UINT64_MAX, UINT64_MAX);
  lag.Look(2, UINT64_MAX, 0);
  lag.Look(3, 0, UINT64_MAX);
  lag.Look(4, UINT64_MAX, UINT64_MAX);
  EXPECT_LE(lag.needed(), uint64_t{2} << 50);
}

class RecordingCostTest : public RecordTest {
 protected:
  RecordingCost Cost() const {
    const storage::Reader reader(Path());
    const auto cost = storage::RecordingCostOf(reader);
    EXPECT_TRUE(cost.has_value());
    return cost.value_or(RecordingCost{});
  }
  // The threads of which the program planted that a quarter of their time was the recorder's.
  static void ExpectAQuarter(const RecordingCost& cost, size_t threads, int64_t calls) {
    ASSERT_EQ(cost.threads.size(), threads);
    for (const ThreadCost& thread : cost.threads) {
      EXPECT_EQ(thread.timed_hooks, calls);
      EXPECT_NEAR(storage::OwnShare(thread).value_or(-1), 0.25, 0.001);
      EXPECT_GT(thread.own_ns, 0);
      EXPECT_GT(thread.tid, 0);
    }
  }
};

TEST_F(RecordingCostTest, OfEachThread) {
  EXPECT_EQ(Record({"cost", "5", "100"}).state, "complete");
  ExpectAQuarter(Cost(), 5, 100);
}

TEST_F(RecordingCostTest, OfThreadsThatEndEarlyAndWhoseSlotsAreUsedAgain) {
  auto options = Options({"cost-in-turn", "40", "50"});
  options.slots = 2;
  EXPECT_EQ(collector::Record(options).state, "complete");
  const RecordingCost cost = Cost();
  ExpectAQuarter(cost, 16, 50);
  EXPECT_EQ(cost.more_threads, 24);
}

TEST_F(RecordingCostTest, OfSeveralProcesses) {
  EXPECT_EQ(Record({"cost-fork", "30"}).state, "complete");
  const RecordingCost cost = Cost();
  ExpectAQuarter(cost, 2, 30);
  EXPECT_NE(cost.threads[0].pid, cost.threads[1].pid);
}

TEST_F(RecordingCostTest, OfAProgramThatIsKilled) {
  const auto summary = Record({"cost-kill", "70"});
  EXPECT_EQ(summary.signal, SIGKILL);
  ExpectAQuarter(Cost(), 1, 70);
}

TEST_F(RecordingCostTest, IsNotKnownWithoutATimedHook) {
  Record({"loop", "100"});
  const RecordingCost cost = Cost();
  ASSERT_EQ(cost.threads.size(), 1u);
  EXPECT_EQ(storage::OwnShare(cost.threads[0]), std::nullopt);
  EXPECT_EQ(cost.threads[0].waited_ns, 0);
  EXPECT_EQ(cost.threads[0].input_bytes, 0);
  EXPECT_GT(cost.threads[0].record_bytes, 100 * 64);
}

TEST_F(RecordingCostTest, AfterAKilledRecorderWhatTheKeeperSaw) {
  auto options = Options({"cost-count", Path("count")});
  const pid_t recorder = fork();
  if (recorder == 0) {
    collector::Record(options);
    _exit(0);
  }
  for (int i = 0; i < 10000 && CountIn(Path("count")) < 1000; ++i) usleep(1000);
  pid_t program = 0;
  std::ifstream("/proc/" + std::to_string(recorder) + "/task/" + std::to_string(recorder) +
                "/children") >>
      program;
  ASSERT_GT(program, 0);
  kill(recorder, SIGKILL);
  waitpid(recorder, nullptr, 0);
  const int64_t at_kill = CountIn(Path("count"));
  for (int i = 0; i < 10000 && CountIn(Path("count")) < at_kill + 1000; ++i) usleep(1000);
  kill(program, SIGKILL);
  collector::Folded folded;
  for (int i = 0; i < 1000 && !folded.done; ++i) {
    folded = collector::FoldSpool(Path(), nullptr);
    usleep(10000);
  }
  ASSERT_TRUE(folded.done);
  const RecordingCost cost = Cost();
  ASSERT_EQ(cost.threads.size(), 1u);
  EXPECT_NEAR(storage::OwnShare(cost.threads[0]).value_or(-1), 0.25, 0.001);
  EXPECT_GE(cost.threads[0].timed_hooks, at_kill + 1000);
  EXPECT_EQ(cost.payload, "none");
  EXPECT_EQ(cost.ring_bytes, int64_t{4} << 20);
}

TEST_F(RecordingCostTest, TellsValuesFromOtherRecords) {
  auto options = Options({"payload", "20", "100000"});
  options.payload = wire::PayloadPolicy::kAll;
  collector::Record(options);
  const RecordingCost cost = Cost();
  ASSERT_EQ(cost.threads.size(), 1u);
  EXPECT_EQ(cost.threads[0].input_bytes + cost.threads[0].output_bytes, 20 * 100000);
  EXPECT_EQ(cost.value_bytes, 20 * 100000);
  EXPECT_GT(cost.values_ns, 0);
  EXPECT_EQ(cost.payload, "all");
}

TEST_F(RecordingCostTest, ASmallRingIsToldWithTheOneThatIsLargeEnough) {
  auto options = Options({"loop", "50000"});
  options.ring_bytes = 64 << 10;
  const auto summary = collector::Record(options);
  const storage::LedgerEntry* stall = Find(summary.ledger, "recorder_stall");
  ASSERT_NE(stall, nullptr);
  EXPECT_TRUE(stall->remedy.starts_with("--ring-size ")) << stall->remedy;
  EXPECT_TRUE(stall->remedy.ends_with(" would have spared it")) << stall->remedy;
  const RecordingCost cost = Cost();
  EXPECT_EQ(cost.ring_bytes, 64 << 10);
  EXPECT_GT(cost.threads[0].ring_needed, 64 << 10);
  EXPECT_EQ(storage::RemedyForWaits(cost, cost.threads), stall->remedy);
  // With rings that hold all of it the program does not wait.
  auto again = Options({"loop", "50000"});
  again.output = Path("again.db");
  again.ring_bytes = uint64_t{64} << 20;
  EXPECT_EQ(Find(collector::Record(again).ledger, "recorder_stall"), nullptr);
}

}  // namespace
}  // namespace acltape::test
