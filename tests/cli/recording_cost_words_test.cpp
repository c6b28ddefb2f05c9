// The sentences that say what a recording took from the program.
#include "cli/tables/recording_cost_words.h"

#include <gtest/gtest.h>

namespace acltape::cli {
namespace {

constexpr int64_t kMs = 1'000'000;

storage::ThreadCost Thread(int64_t pid, int64_t tid, int64_t own_ms, int64_t counted_ms) {
  storage::ThreadCost thread;
  thread.pid = pid;
  thread.tid = tid;
  thread.name = "queue";
  thread.own_ns = own_ms * kMs;
  thread.counted_ns = counted_ms * kMs;
  thread.timed_hooks = 100;
  return thread;
}

TEST(RecordingCostWordsTest, NamesThreadsFromWhichMuchWasTaken) {
  storage::RecordingCost cost;
  cost.threads = {Thread(7, 8, 400, 20000), Thread(7, 7, 1205, 20100), Thread(7, 9, 1, 20000)};
  const RecordingCostWords words = WordsOf(cost);
  EXPECT_EQ(words.took,
            "about 6.0 % of the busiest thread's time (main thread: 1.21 s of 20.1 s; thread "
            "'queue' (8): 400 ms of 20.0 s)");
  EXPECT_EQ(words.waited, "");
  EXPECT_EQ(words.values, "");
}

TEST(RecordingCostWordsTest, NamesTheProcessWhereThereAreSeveral) {
  storage::RecordingCost cost;
  cost.threads = {Thread(7, 7, 30, 100), Thread(9, 9, 20, 100)};
  EXPECT_EQ(WordsOf(cost).took,
            "about 30 % of the busiest thread's time (main thread of process 7: 30.0 ms of 100 ms; "
            "main thread of process 9: 20.0 ms of 100 ms)");
}

TEST(RecordingCostWordsTest, SayNothingOfWhatIsNotKnown) {
  storage::RecordingCost cost;
  cost.threads = {Thread(7, 7, 1, 9)};  // too short
  EXPECT_EQ(WordsOf(cost).took, "");
  cost.threads = {Thread(7, 7, 10, 100)};
  cost.threads[0].timed_hooks = 0;
  EXPECT_EQ(WordsOf(cost).took, "");
}

TEST(RecordingCostWordsTest, NeverTellMoreThanAll) {
  storage::RecordingCost cost;
  cost.threads = {Thread(7, 7, 300, 100)};
  EXPECT_EQ(WordsOf(cost).took,
            "about 100 % of the busiest thread's time (main thread: 100 ms of 100 ms)");
}

TEST(RecordingCostWordsTest, WaitsByThreadWithWhatWouldHaveSparedThem) {
  storage::RecordingCost cost;
  cost.payload = "none";
  cost.ring_bytes = 1 << 20;
  cost.threads = {Thread(7, 7, 0, 100), Thread(7, 8, 0, 100)};
  for (storage::ThreadCost& thread : cost.threads) {
    thread.waited_ns = thread.tid * 10 * kMs;
    thread.ring_needed = 3 << 20;
    thread.longest_gap_ns = kMs;
    thread.record_bytes = 1;
  }
  EXPECT_EQ(WordsOf(cost).waited,
            "thread 'queue' (8) 80.0 ms; main thread 70.0 ms; --ring-size 4M would have spared it");
}

TEST(RecordingCostWordsTest, SpeedOfValuesWhereThereAreMany) {
  storage::RecordingCost cost;
  cost.value_bytes = 300 << 20;
  cost.values_ns = 1500 * kMs;
  EXPECT_EQ(WordsOf(cost).values, "200.0 MiB/s (300.0 MiB in 1.50 s)");
  cost.value_bytes = 1 << 20;
  EXPECT_EQ(WordsOf(cost).values, "");
}

}  // namespace
}  // namespace acltape::cli
