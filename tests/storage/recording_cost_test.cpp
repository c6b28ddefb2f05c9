// The row of table meta that says what a recording took: it reads back as it was written, and the
// remedy for waits follows from it.
#include "storage/recording_cost.h"

#include "storage/database.h"
#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

constexpr int64_t kMiB = 1 << 20;

class RecordingCostRow : public TraceTest {
 protected:
  // Reads a trace with this value of the row.
  std::optional<RecordingCost> Read(const std::string& value) {
    Writer::Options options = WriterOptions();
    options.overwrite = true;
    Writer writer(Path(), options);
    Fill(writer);
    writer.SetMeta(kRecordingCostKey, value);
    writer.Finish("complete");
    const Reader reader(Path());
    return RecordingCostOf(reader);
  }
};

TEST_F(RecordingCostRow, ReadsBackWithTheNamesOfItsThreads) {
  RecordingCost cost;
  cost.payload = "all";
  cost.ring_bytes = 4 * kMiB;
  cost.backlog_bytes = 256 * kMiB;
  cost.backlog_was_full = true;
  cost.value_bytes = 7;
  cost.values_ns = 8;
  ThreadCost& thread = cost.threads.emplace_back();
  thread.thread_id = 1;
  thread.own_ns = 10;
  thread.counted_ns = 100;
  thread.timed_hooks = 3;
  thread.waited_ns = 4;
  thread.ring_needed = 5 * kMiB;
  thread.longest_gap_ns = 6;
  thread.lived_ns = 7;
  thread.input_bytes = 1;
  thread.output_bytes = 2;
  thread.record_bytes = 3;
  const auto read = Read(RecordingCostText(cost));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(RecordingCostText(*read), RecordingCostText(cost));
  EXPECT_EQ(read->threads[0].pid, 4242);
  EXPECT_EQ(read->threads[0].tid, 4242);
  EXPECT_EQ(read->threads[0].name, "main");
}

TEST_F(RecordingCostRow, HasTheThreadsFromWhichMostWasTaken) {
  RecordingCost cost;
  for (int64_t i = 0; i < 100; ++i) {
    ThreadCost& thread = cost.threads.emplace_back();
    thread.thread_id = i + 1;
    (i % 2 == 0 ? thread.own_ns : thread.waited_ns) = i;
  }
  const auto read = Read(RecordingCostText(cost));
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->threads.size(), 16u);
  EXPECT_EQ(read->threads.front().thread_id, 100);
  EXPECT_EQ(read->threads.back().thread_id, 85);
  EXPECT_EQ(read->more_threads, 84);
}

TEST_F(RecordingCostRow, OfADamagedTraceIsTakenAsFarAsItGoes) {
  EXPECT_EQ(Read("no JSON"), std::nullopt);
  EXPECT_EQ(Read("[1]"), std::nullopt);
  const auto empty = Read("{}");
  ASSERT_TRUE(empty.has_value());
  EXPECT_TRUE(empty->threads.empty());
  const auto odd = Read(
      R"({"payload":3,"ring_bytes":-4,"threads":[1,{"thread_id":77,"own_ns":"x","waited_ns":9e99}]})");
  ASSERT_TRUE(odd.has_value());
  EXPECT_EQ(odd->ring_bytes, 0);
  ASSERT_EQ(odd->threads.size(), 1u);
  EXPECT_EQ(odd->threads[0].own_ns, 0);
  EXPECT_EQ(OwnShare(odd->threads[0]), std::nullopt);
  EXPECT_NE(RemedyForWaits(*odd, odd->threads), "");
}

TEST(OwnShareTest, LiesBetweenNothingAndAll) {
  ThreadCost thread;
  EXPECT_EQ(OwnShare(thread), std::nullopt);
  thread.timed_hooks = 1;
  EXPECT_EQ(OwnShare(thread), std::nullopt);
  thread.counted_ns = 100;
  EXPECT_EQ(OwnShare(thread), 0.0);
  thread.own_ns = 25;
  EXPECT_EQ(OwnShare(thread), 0.25);
  thread.own_ns = 250;
  EXPECT_EQ(OwnShare(thread), 1.0);
}

// A thread that lived for a second; its collector looked after 20 ms at the latest. All in MiB.
struct Case {
  const char* payload;
  int64_t ring_needed;
  int64_t inputs, outputs, records;
  bool backlog_was_full;
  int64_t backlog;  // size by the option; 0: something else set the bound
  bool size_was_limited;
  const char* remedy;
};

TEST(RemedyForWaitsTest, FollowsFromWhatWasSeen) {
  constexpr char kInGeneral[] =
      "record fewer values (--payload), with larger rings, or to a faster disk";
  const Case cases[] = {
      // Inputs and records are 40 MiB/s, of which 20 ms bring less than a quarter of a ring.
      {"all", 30, 20, 900, 20, false, 256, false,
       "--payload inputs or --ring-size 64M would have spared it"},
      // The inputs alone are too much.
      {"all", 30, 900, 50, 20, false, 256, false,
       "--payload digest or --ring-size 64M would have spared it"},
      {"inputs", 12, 800, 0, 40, false, 256, false,
       "--payload none or --ring-size 16M would have spared it"},
      // Calls alone filled the ring.
      {"inputs", 5, 0, 0, 100, false, 256, false, "--ring-size 8M would have spared it"},
      {"digest", 5, 0, 0, 10, false, 256, false, "--ring-size 8M would have spared it"},
      // A ring that is only just large enough is not named.
      {"none", 16, 0, 0, 100, false, 256, false, "--ring-size 32M would have spared it"},
      {"none", 2000, 0, 0, 3000, false, 256, false, kInGeneral},
      {"all", 20000, 0, 30000, 1, false, 256, false, "--payload inputs would have spared it"},
      // The collector did not come to the rings.
      {"none", 200, 0, 0, 300, true, 256, false, "--backlog 512M would have spared it"},
      {"none", 200, 0, 0, 300, true, 0, false, kInGeneral},
      // The option does not reach the size of the rings.
      {"none", 5, 0, 0, 100, false, 256, true, kInGeneral},
      // Nobody saw how late the collector was.
      {"all", 0, 5, 90, 5, false, 256, false, kInGeneral},
  };
  for (const Case& one : cases) {
    RecordingCost cost;
    cost.payload = one.payload;
    cost.ring_bytes = 4 * kMiB;
    cost.backlog_bytes = one.backlog * kMiB;
    cost.backlog_was_full = one.backlog_was_full;
    cost.size_was_limited = one.size_was_limited;
    ThreadCost& thread = cost.threads.emplace_back();
    thread.waited_ns = 1;
    thread.ring_needed = one.ring_needed * kMiB;
    thread.longest_gap_ns = one.ring_needed == 0 ? 0 : 20'000'000;
    thread.lived_ns = 1'000'000'000;
    thread.input_bytes = one.inputs * kMiB;
    thread.output_bytes = one.outputs * kMiB;
    thread.record_bytes = one.records * kMiB;
    cost.threads.emplace_back();  // one that did not wait
    EXPECT_EQ(RemedyForWaits(cost, cost.threads), one.remedy)
        << one.payload << ", " << one.ring_needed << " MiB";
  }
}

}  // namespace
}  // namespace acltape::storage
