// Records that wait in memory: nothing is lost or reordered, whatever the limit, and the collector
// gives way to a program that uses every processor.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "recorder/collector/spare_time.h"
#include "recorder/wire/clock.h"
#include "storage/query.h"
#include "tests/recorder/record_fixture.h"

namespace acltape::test {
namespace {

using BacklogTest = RecordTest;

TEST_F(BacklogTest, EveryCallIsWrittenWhateverMayWait) {
  for (const uint64_t limit : {uint64_t{1}, uint64_t{64} << 10, uint64_t{1} << 30}) {
    auto options = Options({"loop", "50000"});
    options.backlog_bytes = limit;
    options.ring_bytes = 64 << 10;
    options.overwrite = true;
    const auto summary = collector::Record(options);
    EXPECT_EQ(summary.state, "complete") << "limit " << limit;
    ASSERT_EQ(summary.leaves, 50000) << "limit " << limit;
    const storage::Reader reader(Path());
    const auto calls = reader.Calls(true);
    ASSERT_EQ(calls.size(), 50000u);
    for (size_t i = 1; i < calls.size(); ++i) {
      ASSERT_EQ(calls[i].call_id, calls[i - 1].call_id + 1) << "limit " << limit;
    }
  }
}

// A piece of the backlog may hold many contents, or a part of one; writing stops and goes on
// within.
TEST_F(BacklogTest, EveryContentIsWrittenWhateverMayWait) {
  for (const uint64_t limit : {uint64_t{1}, uint64_t{256} << 10, uint64_t{1} << 30}) {
    for (const char* bytes : {"4096", "300000"}) {
      auto options = Options({"payload", "100", bytes});
      options.payload = wire::PayloadPolicy::kAll;
      options.backlog_bytes = limit;
      options.ring_bytes = 256 << 10;
      options.overwrite = true;
      const auto summary = collector::Record(options);
      EXPECT_EQ(summary.state, "complete") << "limit " << limit;
      const storage::Reader reader(Path());
      const auto snapshots = reader.Snapshots();
      ASSERT_EQ(snapshots.size(), 100u) << "limit " << limit << ", " << bytes << " bytes";
      for (size_t i = 0; i < snapshots.size(); ++i) {
        if (i > 0) {
          ASSERT_GT(snapshots[i].call_id, snapshots[i - 1].call_id);
        }
        ASSERT_EQ(reader.Payload(snapshots[i].digest).size(), std::stoull(bytes));
      }
    }
  }
}

TEST(SpareTimeTest, FallsToNextToNothingBesideAProgramThatUsesEveryProcessor) {
  std::vector<pid_t> busy;
  for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      for (volatile bool forever = true; forever;) {
      }
    }
    ASSERT_GT(child, 0);
    busy.push_back(child);
  }
  collector::SpareTime spare(static_cast<int64_t>(wire::MonotonicNs()));
  int64_t least = INT64_MAX;
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    least = std::min(least, spare.Left(static_cast<int64_t>(wire::MonotonicNs()), false));
  }
  for (const pid_t child : busy) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  EXPECT_LE(least, 20'000'000) << "ns of a tenth of a second";
  EXPECT_GT(least, 0) << "the trace grows, whatever the load";
}

TEST(SpareTimeTest, WhatCanWaitGetsNextToNothingBesideAnIdleProcessor) {
  const auto now = static_cast<int64_t>(wire::MonotonicNs());
  collector::SpareTime spare(now);
  EXPECT_LE(spare.Left(now, true), 2'000'000) << "ns of a tenth of a second";
  EXPECT_GT(spare.Left(now, false), 50'000'000) << "nothing is held back in the first tenth";
}

}  // namespace
}  // namespace acltape::test
