#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>

#include "analyzer/streams/race_checker.h"

namespace acltape::analyzer {
namespace {

ByteAccess Read(int64_t buffer, int64_t first = 0, int64_t end = 64) {
  return {buffer, first, end, false, nullptr};
}
ByteAccess Write(int64_t buffer, int64_t first = 0, int64_t end = 64) {
  return {buffer, first, end, true, nullptr};
}

std::vector<std::string> Races(const streams::RaceChecker& checker) {
  std::vector<std::string> lines;
  for (const streams::Race& race : checker.races()) {
    lines.push_back(std::to_string(race.first) + "-" + std::to_string(race.second) + " " +
                    std::string(graph::HazardKindName(race.kind)) + " buffer " +
                    std::to_string(race.buffer) + " " + std::to_string(race.first_byte) + ".." +
                    std::to_string(race.end_byte));
  }
  return lines;
}

std::vector<std::string> Waits(const streams::RaceChecker& checker) {
  std::vector<std::string> lines;
  for (const streams::MissingWait& wait : checker.missing_waits()) {
    lines.push_back("record after " + std::to_string(wait.record_after) + ", wait before " +
                    std::to_string(wait.wait_before));
  }
  return lines;
}

using Lines = std::vector<std::string>;

void Issue(streams::RaceChecker& checker, int64_t operation, int64_t stream,
           const std::vector<ByteAccess>& accesses) {
  checker.Work(operation, stream, accesses);
}

// mm on the origin, abs then sub on a side stream, add of both on the origin, with one fork and one
// join: the join is recorded before sub.
TEST(RaceChecker, FindsTheDependencyThatOneForkAndOneJoinForget) {
  for (const bool joined_after_sub : {false, true}) {
    streams::RaceChecker checker;
    checker.Record(0, 1);
    checker.Wait(1, 1);
    Issue(checker, 10, 0, {Read(1), Write(2)});  // mm
    Issue(checker, 11, 1, {Read(1), Write(3)});  // abs
    if (!joined_after_sub) checker.Record(1, 2);
    Issue(checker, 12, 1, {Read(3), Write(4)});  // sub
    if (joined_after_sub) checker.Record(1, 2);
    checker.Wait(0, 2);
    Issue(checker, 13, 0, {Read(2), Read(4), Write(5)});  // add
    EXPECT_EQ(Races(checker), joined_after_sub ? Lines{} : Lines{"12-13 RAW buffer 4 0..64"});
    EXPECT_EQ(Waits(checker),
              joined_after_sub ? Lines{} : Lines{"record after 12, wait before 13"});
  }
}

TEST(RaceChecker, TellsReadAfterWriteFromWriteAfterReadAndWriteAfterWrite) {
  streams::RaceChecker checker;
  Issue(checker, 1, 1, {Write(7), Read(8), Write(9)});
  Issue(checker, 2, 2, {Read(7), Write(8), Write(9, 32, 96)});
  EXPECT_EQ(Races(checker),
            (Lines{"1-2 RAW buffer 7 0..64", "1-2 WAR buffer 8 0..64", "1-2 WAW buffer 9 32..64"}));
  EXPECT_EQ(Waits(checker), Lines{"record after 1, wait before 2"});
}

TEST(RaceChecker, LetsReadsAndOtherBytesBe) {
  streams::RaceChecker checker;
  Issue(checker, 1, 1, {Read(7), Write(8, 0, 32)});
  Issue(checker, 2, 2, {Read(7), Write(8, 32, 64), Write(9, 5, 5)});
  Issue(checker, 3, 3, {Write(9, 5, 5)});
  EXPECT_EQ(Races(checker), Lines{});
}

TEST(RaceChecker, AsksForOneWaitWhereItOrdersEverythingBefore) {
  streams::RaceChecker checker;
  Issue(checker, 1, 1, {Write(1)});
  Issue(checker, 2, 1, {Write(2)});
  checker.Record(1, 5);
  checker.Wait(2, 5);
  Issue(checker, 3, 2, {Write(3)});
  // It is ordered after 3, hence after 2, hence after 1.
  Issue(checker, 4, 3, {Read(1), Read(2), Read(3)});
  EXPECT_EQ(Races(checker),
            (Lines{"1-4 RAW buffer 1 0..64", "2-4 RAW buffer 2 0..64", "3-4 RAW buffer 3 0..64"}));
  EXPECT_EQ(Waits(checker), Lines{"record after 3, wait before 4"});
}

TEST(RaceChecker, ReportsAMissingWaitOnceNotAtEachLaterUse) {
  streams::RaceChecker checker;
  Issue(checker, 1, 1, {Write(1), Write(2)});
  Issue(checker, 2, 2, {Read(1)});
  Issue(checker, 3, 2, {Read(2)});
  EXPECT_EQ(Races(checker), Lines{"1-2 RAW buffer 1 0..64"});
}

TEST(RaceChecker, TakesHostWaitsAsOrderForWhatIsIssuedLater) {
  const auto with = [](auto&& wait) {
    streams::RaceChecker checker;
    Issue(checker, 1, 1, {Write(1)});
    checker.Record(1, 4);
    Issue(checker, 2, 1, {Write(2)});
    wait(checker);
    Issue(checker, 3, 2, {Read(1)});
    Issue(checker, 4, 3, {Read(2)});
    return Races(checker);
  };
  const std::string one = "1-3 RAW buffer 1 0..64";
  const std::string two = "2-4 RAW buffer 2 0..64";
  EXPECT_EQ(with([](streams::RaceChecker&) {}), (Lines{one, two}));
  EXPECT_EQ(with([](streams::RaceChecker& c) { c.SynchronizeStream(1); }), Lines{});
  EXPECT_EQ(with([](streams::RaceChecker& c) { c.SynchronizeStream(2); }), (Lines{one, two}));
  EXPECT_EQ(with([](streams::RaceChecker& c) { c.SynchronizeEvent(4); }), Lines{two});
  EXPECT_EQ(with([](streams::RaceChecker& c) { c.SynchronizeEvent(5); }), (Lines{one, two}));
  EXPECT_EQ(with([](streams::RaceChecker& c) { c.SynchronizeDevice(); }), Lines{});
}

TEST(RaceChecker, SeesWhatTheHostItselfDoes) {
  streams::RaceChecker checker;
  Issue(checker, 1, 1, {Write(1)});
  Issue(checker, 2, streams::RaceChecker::kHost, {Write(2)});  // before all that follows
  Issue(checker, 3, 1, {Read(2)});
  Issue(checker, 4, streams::RaceChecker::kHost, {Read(1)});  // has not waited for stream 1
  EXPECT_EQ(Races(checker), Lines{"1-4 RAW buffer 1 0..64"});
}

TEST(RaceChecker, TakesTheLatestRecordOfAnEventAndNoWaitForAnEventNeverRecorded) {
  streams::RaceChecker checker;
  checker.Wait(2, 9);
  checker.Record(1, 9);
  Issue(checker, 1, 1, {Write(1)});
  Issue(checker, 2, 2, {Read(1)});
  EXPECT_EQ(Races(checker), Lines{"1-2 RAW buffer 1 0..64"});

  streams::RaceChecker again;
  again.Record(1, 9);
  Issue(again, 1, 1, {Write(1)});
  again.Record(1, 9);
  again.Wait(2, 9);
  Issue(again, 2, 2, {Read(1)});
  EXPECT_EQ(Races(again), Lines{});
}

TEST(RaceChecker, KnowsThatColumnsOfOneMatrixShareNoByte) {
  storage::Layout left;  // columns 0 and 1 of [8, 4] floats
  left.dtype = storage::DType::kFloat32;
  left.shape = {8, 2};
  left.strides = {4, 1};
  storage::Layout right = left;  // columns 2 and 3
  right.byte_offset = 8;
  storage::Layout middle = left;  // columns 1 and 2
  middle.byte_offset = 4;
  const auto access = [](const FormAccess& form, bool write) {
    return ByteAccess{1, form.layout->FirstByte(), form.layout->EndByte(), write, &form};
  };
  FormAccess in_left, in_right, in_middle;
  in_left.layout = &left;
  in_right.layout = &right;
  in_middle.layout = &middle;

  streams::RaceChecker clean;
  Issue(clean, 1, 1, {access(in_left, true)});
  Issue(clean, 2, 2, {access(in_right, true)});
  EXPECT_EQ(Races(clean), Lines{});
  // The checker still knows the bytes between two rows of a strided view after that view was
  // written.
  Issue(clean, 3, 2, {access(in_left, false)});
  EXPECT_EQ(Races(clean), Lines{"1-3 RAW buffer 1 0..120"});

  streams::RaceChecker overlapping;
  Issue(overlapping, 1, 1, {access(in_left, true)});
  Issue(overlapping, 2, 2, {access(in_middle, true)});
  EXPECT_EQ(Races(overlapping), Lines{"1-2 WAW buffer 1 4..120"});
}

TEST(CheckAssignment, RefusesAnEventThatIsRecordedAgainTooEarly) {
  // 0 -> 1 and 2 -> 3 across streams with one event for both: 1 may still wait when 2 is done.
  streams::StreamAssignment assignment;
  assignment.streams = 3;
  assignment.stream_of = {0, 1, 0, 2};
  assignment.order = {0, 1, 2, 3};
  assignment.waits = {{0, 1, 0}, {2, 3, 0}};
  assignment.events = 1;
  const std::vector<std::vector<ByteAccess>> accesses = {
      {Write(1)}, {Read(1)}, {Write(2)}, {Read(2)}};
  EXPECT_EQ(Races(streams::CheckAssignment(assignment, accesses)), Lines{"1-2 WAR buffer -1 0..1"});
  assignment.waits[1].event = 1;
  EXPECT_EQ(Races(streams::CheckAssignment(assignment, accesses)), Lines{});
  assignment.waits.pop_back();
  EXPECT_EQ(Races(streams::CheckAssignment(assignment, accesses)), Lines{"2-3 RAW buffer 2 0..64"});
}

// A random program, and by reachability over all its operations which pairs race.
struct Step {
  enum Kind { kWork, kRecord, kWait, kSyncStream, kSyncEvent, kSyncDevice } kind = kWork;
  int64_t stream = 0;  // RaceChecker::kHost too
  int64_t event = 0;
  std::vector<ByteAccess> accesses;
};

class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {
    const int streams = Draw(2, 5);
    const int events = Draw(1, 4);
    const int buffers = Draw(1, 6);
    const int steps = Draw(5, 60);
    for (int i = 0; i < 12; ++i) MakeLayout();
    for (int i = 0; i < steps; ++i) {
      Step& step = steps_.emplace_back();
      step.stream = Draw(0, streams - 1);
      step.event = Draw(0, events - 1);
      const int what = Draw(0, 99);
      step.kind = what < 45   ? Step::kWork
                  : what < 68 ? Step::kRecord
                  : what < 94 ? Step::kWait
                  : what < 96 ? Step::kSyncStream
                  : what < 98 ? Step::kSyncEvent
                              : Step::kSyncDevice;
      if (step.kind != Step::kWork) continue;
      if (Draw(0, 19) == 0) step.stream = streams::RaceChecker::kHost;
      for (int a = Draw(0, 3); a > 0; --a) {
        const FormAccess& form = forms_[Draw(0, static_cast<int>(forms_.size()) - 1)];
        step.accesses.push_back({Draw(1, buffers), form.layout->FirstByte(), form.layout->EndByte(),
                                 Draw(0, 1) == 1, &form});
      }
    }
  }

  std::vector<Step>& steps() { return steps_; }

 private:
  int Draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  void MakeLayout() {
    storage::Layout& layout = layouts_.emplace_back();
    layout.dtype = storage::DType::kInt8;
    layout.byte_offset = Draw(0, 8);
    for (int d = Draw(0, 2); d > 0; --d) {
      layout.shape.push_back(Draw(1, 4));
      layout.strides.push_back(Draw(0, 6));
    }
    forms_.emplace_back().layout = &layout;
  }

  std::mt19937 random_;
  std::deque<storage::Layout> layouts_;
  std::deque<FormAccess> forms_;
  std::vector<Step> steps_;
};

streams::RaceChecker Check(const std::vector<Step>& steps) {
  streams::RaceChecker checker;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    switch (step.kind) {
      case Step::kWork:
        checker.Work(static_cast<int64_t>(i), step.stream, step.accesses);
        break;
      case Step::kRecord:
        checker.Record(step.stream, step.event);
        break;
      case Step::kWait:
        checker.Wait(step.stream, step.event);
        break;
      case Step::kSyncStream:
        checker.SynchronizeStream(step.stream);
        break;
      case Step::kSyncEvent:
        checker.SynchronizeEvent(step.event);
        break;
      case Step::kSyncDevice:
        checker.SynchronizeDevice();
        break;
    }
  }
  return checker;
}

std::set<int64_t> AccessedBytes(const ByteAccess& access) {
  const storage::Layout& layout = *access.form->layout;
  std::set<int64_t> bytes = {layout.byte_offset};
  for (size_t d = 0; d < layout.shape.size(); ++d) {
    std::set<int64_t> grown;
    for (const int64_t byte : bytes) {
      for (int64_t i = 0; i < layout.shape[d]; ++i) grown.insert(byte + i * layout.strides[d]);
    }
    bytes = grown;
  }
  return bytes;
}

// (first, second, kind, buffer) to the bytes that both touch.
using RaceKey = std::tuple<int64_t, int64_t, graph::HazardKind, int64_t>;
using RacyBytes = std::map<RaceKey, std::set<int64_t>>;

RacyBytes RacesByReachability(const std::vector<Step>& steps) {
  const size_t n = steps.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n));  // [later][earlier]
  std::map<int64_t, size_t> last_of_stream;
  std::map<int64_t, size_t> last_record;
  std::vector<size_t> host;  // work that the host has waited for or done
  const auto add = [&](size_t later, size_t earlier) {
    before[later][earlier] = true;
    for (size_t i = 0; i < n; ++i) {
      if (before[earlier][i]) before[later][i] = true;
    }
  };
  for (size_t i = 0; i < n; ++i) {
    const Step& step = steps[i];
    if (step.kind == Step::kWork || step.kind == Step::kRecord || step.kind == Step::kWait) {
      for (const size_t earlier : host) add(i, earlier);
      const auto last = last_of_stream.find(step.stream);
      if (last != last_of_stream.end()) add(i, last->second);
      last_of_stream[step.stream] = i;
    }
    if (step.kind == Step::kWork && step.stream == streams::RaceChecker::kHost) host.push_back(i);
    if (step.kind == Step::kRecord) last_record[step.event] = i;
    if (step.kind == Step::kWait && last_record.count(step.event)) {
      add(i, last_record[step.event]);
    }
    if (step.kind == Step::kSyncEvent && last_record.count(step.event)) {
      host.push_back(last_record[step.event]);
    }
    for (const auto& [stream, last] : last_of_stream) {
      if (step.kind == Step::kSyncDevice ||
          (step.kind == Step::kSyncStream && stream == step.stream)) {
        host.push_back(last);
      }
    }
  }
  RacyBytes races;
  for (size_t b = 0; b < n; ++b) {
    for (size_t a = 0; a < b; ++a) {
      if (before[b][a]) continue;
      for (const ByteAccess& first : steps[a].accesses) {
        for (const ByteAccess& second : steps[b].accesses) {
          if (first.buffer != second.buffer || (!first.write && !second.write)) continue;
          const graph::HazardKind kind = !second.write ? graph::HazardKind::kRaw
                                         : first.write ? graph::HazardKind::kWaw
                                                       : graph::HazardKind::kWar;
          const std::set<int64_t> bytes = AccessedBytes(second);
          for (const int64_t byte : AccessedBytes(first)) {
            if (bytes.count(byte)) races[{a, b, kind, first.buffer}].insert(byte);
          }
        }
      }
    }
  }
  return races;
}

// The program with each missing wait added, events of their own.
std::vector<Step> Repaired(const std::vector<Step>& steps, const streams::RaceChecker& checker) {
  std::vector<Step> repaired;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& waits = checker.missing_waits();
    for (size_t w = 0; w < waits.size(); ++w) {
      if (waits[w].wait_before != static_cast<int64_t>(i)) continue;
      const int64_t event = 1000 + static_cast<int64_t>(w);
      if (steps[i].stream == streams::RaceChecker::kHost) {
        repaired.push_back({Step::kSyncEvent, 0, event, {}});
      } else {
        repaired.push_back({Step::kWait, steps[i].stream, event, {}});
      }
    }
    repaired.push_back(steps[i]);
    for (size_t w = 0; w < waits.size(); ++w) {
      if (waits[w].record_after != static_cast<int64_t>(i)) continue;
      repaired.push_back({Step::kRecord, steps[i].stream, 1000 + static_cast<int64_t>(w), {}});
    }
  }
  return repaired;
}

TEST(RaceChecker, AgreesWithReachabilityOnRandomPrograms) {
  int racy = 0;
  int clean = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram program(seed);
    const RacyBytes expected = RacesByReachability(program.steps());
    const streams::RaceChecker checker = Check(program.steps());
    ASSERT_EQ(checker.races().empty(), expected.empty());
    ASSERT_EQ(checker.missing_waits().empty(), expected.empty());
    for (const streams::Race& race : checker.races()) {
      const auto found = expected.find({race.first, race.second, race.kind, race.buffer});
      ASSERT_NE(found, expected.end()) << race.first << "-" << race.second << " is no race";
      const auto shared = found->second.lower_bound(race.first_byte);
      ASSERT_TRUE(shared != found->second.end() && *shared < race.end_byte);
    }
    ASSERT_TRUE(RacesByReachability(Repaired(program.steps(), checker)).empty());
    ++(expected.empty() ? clean : racy);
  }
  EXPECT_GT(racy, 400);
  EXPECT_GT(clean, 400);
}

}  // namespace
}  // namespace acltape::analyzer
