// Lint on traces written by hand: what is looked at, and what each rule says of it.
#include "analyzer/lint/lint.h"

#include <gtest/gtest.h>

#include <set>

#include "analyzer/calls/value_text.h"
#include "analyzer/lint/causes.h"
#include "storage/error.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::AclTraceBuilder;
using test::In;
using test::Int;
using test::Out;
using test::TemporaryTrace;
using test::Tensor;
using Floats = std::vector<float>;

constexpr lint::CaptureMode kGlobal = lint::CaptureMode::kGlobal;
constexpr lint::CaptureMode kThreadLocal = lint::CaptureMode::kThreadLocal;
constexpr lint::CaptureMode kRelaxed = lint::CaptureMode::kRelaxed;

class LintTest : public testing::Test {
 protected:
  LintTest() : file_("lint"), trace(file_.path()) {
    main = trace.NewStream();
    side = trace.NewStream();
    third = trace.NewStream();
    for (Tensor* tensor : {&a, &b, &c, &d}) *tensor = trace.Device({16});
  }

  void Relu(int64_t stream, const Tensor& from, const Tensor& to) {
    trace.Op("aclnnRelu", stream, {In("self", from), Out("out", to)});
  }
  void Order(int64_t event, int64_t first, int64_t second) {
    trace.Record(event, first);
    trace.Wait(second, event);
  }

  const lint::LintReport& Run(const lint::LintOptions& options = {}) {
    trace.Finish();
    reader_ = std::make_unique<storage::Reader>(file_.path());
    work_ = LoadWork(*reader_);
    report_ = lint::Lint(work_, options);
    return report_;
  }
  // "LINT-02 LINT-05", in order of calls.
  std::string Rules(const lint::LintOptions& options = {}) {
    std::string text;
    for (const lint::Finding& finding : Run(options).findings) {
      text += (text.empty() ? "" : " ") + std::string(finding.rule->id);
    }
    return text;
  }

  TemporaryTrace file_;
  AclTraceBuilder trace;
  int64_t main, side, third;
  Tensor a, b, c, d;
  std::unique_ptr<storage::Reader> reader_;
  Work work_;
  lint::LintReport report_;
};

TEST(LintRulesTest, HaveIdsOfTheirOwnAndEverythingThatARowNeeds) {
  std::set<std::string_view> ids;
  for (const lint::LintRule& rule : lint::LintRules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_NE(rule.check, nullptr) << rule.id;
    EXPECT_FALSE(rule.title.empty() || rule.source.empty() || rule.edit.empty()) << rule.id;
    const bool refused = rule.codes != lint::Codes{};
    const bool said = rule.fails_at != lint::FailsAt::kNowhere || rule.id == "LINT-08";
    EXPECT_EQ(refused, said) << rule.id;
  }
}

TEST(LintRulesTest, UnsafeCallsAreRefusedAsTheModesOfCaptureAndThreadSay) {
  struct Row {
    lint::CaptureMode capture;
    bool own_thread;
    lint::CaptureMode exchanged;
    bool refused;
  };
  // Rule CAP-32, all of it.
  constexpr Row kRows[] = {
      {kGlobal, true, kGlobal, true},         {kGlobal, true, kThreadLocal, true},
      {kGlobal, true, kRelaxed, false},       {kGlobal, false, kGlobal, true},
      {kGlobal, false, kThreadLocal, false},  {kGlobal, false, kRelaxed, false},
      {kThreadLocal, true, kGlobal, true},    {kThreadLocal, true, kThreadLocal, true},
      {kThreadLocal, true, kRelaxed, false},  {kThreadLocal, false, kGlobal, false},
      {kThreadLocal, false, kRelaxed, false}, {kThreadLocal, false, kThreadLocal, false},
      {kRelaxed, true, kGlobal, false},       {kRelaxed, true, kThreadLocal, false},
      {kRelaxed, true, kRelaxed, false},      {kRelaxed, false, kGlobal, false},
      {kRelaxed, false, kThreadLocal, false}, {kRelaxed, false, kRelaxed, false},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(lint::RefusesUnsafe(row.capture, row.own_thread, row.exchanged), row.refused)
        << lint::CaptureModeName(row.capture) << row.own_thread
        << lint::CaptureModeName(row.exchanged);
  }
}

TEST(LintCauses, AReproducedFindingLeadsItsCauseElseTheLowestRule) {
  const std::vector<analyzer::lint::FindingCause> causes =
      analyzer::lint::CausesOf({{"a", "LINT-15", "predicted"},
                                {"b", "LINT-02", "predicted"},
                                {"a", "LINT-14", "predicted"},
                                {"b", "LINT-40", "reproduced"},
                                {"a", "LINT-14", "predicted", /*apart=*/true}});
  ASSERT_EQ(causes.size(), 3u);  // in the order of their first findings
  EXPECT_EQ(causes[0].members, (std::vector<size_t>{0, 2}));
  EXPECT_EQ(causes[0].lead, 2u);
  EXPECT_EQ(causes[1].members, (std::vector<size_t>{1, 3}));
  EXPECT_EQ(causes[1].lead, 3u);
  EXPECT_EQ(causes[2].lead, 4u);
}

TEST_F(LintTest, WhatLiesBeforeAndAfterTheWorkIsLeftOut) {
  trace.Upload(a, Floats(16, 1.0f));
  trace.Upload(a, Floats(16, 1.0f), main);  // pageable
  Relu(main, a, b);
  Relu(main, b, c);
  trace.Synchronize(main);
  trace.Download(c, Floats(16, 1.0f));
  EXPECT_EQ(Rules(), "");
  ASSERT_EQ(report_.stretches.size(), 1u);
  EXPECT_EQ(report_.stretches[0].end - report_.stretches[0].first, 2u);
  EXPECT_EQ(report_.stretches[0].stream, main);
}

TEST_F(LintTest, TheForkBeforeTheFirstOperatorAndTheJoinAfterTheLastBelongToTheStretch) {
  const int64_t fork = trace.NewEvent(), join = trace.NewEvent();
  trace.Synchronize(main);
  Order(fork, main, side);
  Relu(side, a, b);
  Order(join, side, main);
  trace.Synchronize(main);
  EXPECT_EQ(Rules(), "");
  EXPECT_EQ(report_.stretches[0].stream, main);
  EXPECT_EQ(report_.stretches[0].end - report_.stretches[0].first, 5u);
}

TEST_F(LintTest, WhatAnotherThreadSetsUpCutsNoForkFromItsFirstOperatorAndNoJoinFromTheLast) {
  const int64_t forked = trace.NewEvent();
  trace.Thread(2);  // the one that issues the work
  Order(forked, main, side);
  const int64_t first = trace.last_call() - 1;
  trace.Thread(1);
  const int64_t joined = trace.NewEvent();
  const Tensor taken = trace.Device({16});
  trace.Thread(2);
  Relu(side, a, taken);
  trace.Thread(1);
  trace.Device({16});
  trace.Thread(2);
  Order(joined, side, main);
  const int64_t last = trace.last_call();
  trace.Thread(1);
  trace.Synchronize(main);
  EXPECT_EQ(Rules().find("LINT-01"), std::string::npos) << Rules();
  ASSERT_EQ(report_.stretches.size(), 1u);
  const lint::Stretch& stretch = report_.stretches[0];
  EXPECT_EQ(work_.calls[stretch.first].call_id, first);
  EXPECT_EQ(work_.calls[stretch.end - 1].call_id, last);
  EXPECT_EQ(stretch.stream, main);
}

TEST_F(LintTest, ARegionIsTakenAsItIsGiven) {
  Relu(main, a, b);
  trace.Synchronize(main);
  lint::LintOptions options;
  options.stretch.first_call = 1;
  options.stretch.last_call = 1000;
  EXPECT_EQ(Rules(options), "LINT-04 LINT-04 LINT-04 LINT-04 LINT-02");
}

TEST_F(LintTest, ARegionWithoutCallsIsAUsageError) {
  Relu(main, a, b);
  lint::LintOptions options;
  options.stretch.first_call = 5000;
  options.stretch.last_call = 6000;
  try {
    Run(options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_STREQ(error.what(), "no call of the trace's work lies in 5000-6000");
  }
}

TEST_F(LintTest, AChainOfJoinsLeadsToTheOrigin) {
  const int64_t fork = trace.NewEvent(), fork2 = trace.NewEvent(), join2 = trace.NewEvent(),
                join = trace.NewEvent();
  Relu(main, a, b);
  Order(fork, main, side);
  Order(fork2, side, third);
  Relu(third, a, c);
  Order(join2, third, side);
  Order(join, side, main);
  Relu(main, a, d);
  EXPECT_EQ(Rules(), "");
}

TEST_F(LintTest, StreamsThatJoinEachOtherAreNotJoined) {
  const int64_t fork = trace.NewEvent(), x = trace.NewEvent(), y = trace.NewEvent();
  Relu(main, a, b);
  trace.Record(fork, main);
  trace.Wait(side, fork);
  trace.Wait(third, fork);
  trace.Record(x, side);
  trace.Record(y, third);
  trace.Wait(third, x);
  trace.Wait(side, y);
  Relu(main, b, c);
  // Both waits come after the records, so that both streams have work which nobody waits for.
  EXPECT_EQ(Rules(), "LINT-01 LINT-01");
  EXPECT_EQ(report_.findings[0].codes, lint::InEveryMode(107025));
  EXPECT_EQ(report_.findings[0].fails_at, lint::FailsAt::kEnd);
}

TEST_F(LintTest, ARecordInAnEarlierCaptureIsAsIfItHadNotBeen) {
  const int64_t event = trace.NewEvent();
  trace.BeginCapture(main);
  Relu(main, a, b);
  trace.Record(event, main);
  trace.EndCapture(main);
  trace.BeginCapture(main);
  trace.Wait(main, event);  // rule CAP-52, CAP-46
  Relu(main, a, c);
  trace.EndCapture(main);
  EXPECT_EQ(Rules(), "");
  EXPECT_EQ(report_.stretches.size(), 2u);
}

TEST_F(LintTest, ARecordedCaptureThatMetTheCodeIsReproducedAlready) {
  trace.BeginCapture(main);
  Relu(main, a, b);
  trace.Interface("aclrtSynchronizeStream", {Int("stream", main)}, main, 107027);
  trace.EndCapture(main);
  EXPECT_EQ(Rules(), "LINT-02");
  EXPECT_EQ(report_.findings[0].verdict, "reproduced");
}

TEST_F(LintTest, ARecordedCaptureThatMetNoCodeRefutes) {
  trace.BeginCapture(main);
  Relu(main, a, b);
  trace.Interface("aclrtSynchronizeStream", {Int("stream", main)}, main, 0);
  trace.EndCapture(main);
  Run();
  EXPECT_EQ(report_.findings.at(0).verdict, "refuted");
}

TEST_F(LintTest, CopiesOfNothingAreNotUnsafe) {
  Relu(main, a, b);
  trace.Upload(d, Floats{});
  trace.Upload(d, Floats{}, main);
  Relu(main, b, c);
  EXPECT_EQ(Rules(), "");
}

TEST_F(LintTest, CopiesOfPinnedMemoryAreCaptured) {
  const Tensor pinned = trace.Pinned({16});
  Relu(main, a, b);
  trace.UploadPinned(c, pinned, Floats(16, 1.0f), main);
  Relu(main, c, b);
  EXPECT_EQ(Rules(), "");
}

TEST_F(LintTest, AnEventOfTheExternalKindBelongsToNoCapture) {
  const int64_t event = trace.NewEvent(0x20);
  Relu(main, a, b);
  trace.Wait(main, event);
  trace.Reset(event, main);
  Relu(main, b, c);
  EXPECT_EQ(Rules(), "");
}

// A graph whose task group is updated while the graph waits for an event that the update's stream
// records. The step before has written what the group reads, on the stream of the graph.
class UpdatedGraph : public LintTest {
 protected:
  void Run(int64_t updated) {
    trace.BeginCapture(main);
    trace.Wait(main, updated);
    trace.Reset(updated, main);
    trace.Interface("aclmdlRICaptureTaskGrpBegin", {Int("stream", main)}, main);
    Relu(main, b, c);
    trace.Interface("aclmdlRICaptureTaskGrpEnd", {Int("stream", main), Int("handle", 0x77)}, main);
    const int64_t model = trace.EndCapture(main);
    for (int step = 0; step < 3; ++step) {
      Relu(main, a, b);
      trace.Execute(model, main);
      trace.Interface("aclmdlRICaptureTaskUpdateBegin", {Int("stream", side), Int("handle", 0x77)},
                      side);
      Relu(side, b, c);
      trace.Interface("aclmdlRICaptureTaskUpdateEnd", {Int("stream", side)}, side);
      trace.Record(updated, side);
      trace.Synchronize(main);
    }
  }
};

TEST_F(UpdatedGraph, IsNoRaceAndItsLaunchesDoNotRunOnTheStreamOfTheUpdate) {
  Run(trace.NewEvent(0x20));
  EXPECT_EQ(Rules(), "");
}

TEST_F(UpdatedGraph, IsNoRaceWhereItsEventIsOlderThanTheRecording) {
  Run(trace.OlderEvent(0x20));
  EXPECT_EQ(Rules(), "");
}

TEST_F(LintTest, MemoryFreedBetweenTwoExecutionsIsFoundOnce) {
  trace.BeginCapture(main);
  Relu(main, a, b);
  Relu(main, a, c);
  const int64_t model = trace.EndCapture(main);
  trace.Execute(model, main);
  trace.Free(a);
  trace.Execute(model, main);
  EXPECT_EQ(Rules(), "LINT-10");
  EXPECT_EQ(report_.findings[0].evidence.size(), 2u);
}

TEST_F(LintTest, MemoryFreedAfterTheLastExecutionIsFine) {
  trace.BeginCapture(main);
  Relu(main, a, b);
  const int64_t model = trace.EndCapture(main);
  trace.Execute(model, main);
  trace.Free(a);
  EXPECT_EQ(Rules(), "");
}

TEST_F(LintTest, TheSameFindingOfEveryCaptureIsOneWithACount) {
  for (int i = 0; i < 5; ++i) {
    trace.BeginCapture(main);
    Relu(main, a, b);
    trace.Interface("aclrtSynchronizeStream", {Int("stream", main)}, main, 107027);
    trace.EndCapture(main);
  }
  EXPECT_EQ(Rules(), "LINT-02");
  EXPECT_EQ(report_.findings[0].count, 5);
  EXPECT_EQ(report_.findings[0].stretch, 0u);
}

TEST_F(LintTest, QueueEntriesCountAWaitFourTimesAndStreamsByTheirPieces) {
  const int64_t fork = trace.NewEvent(), join = trace.NewEvent();
  trace.BeginCapture(main);
  for (int i = 0; i < 2016; ++i) Relu(main, a, b);
  Order(fork, main, side);
  Relu(side, a, c);
  Order(join, side, main);
  trace.EndCapture(main);
  Run();
  // main: 2016 operators, a record, a wait; side: a wait, an operator, a record.
  EXPECT_EQ(report_.budgets.at(0).entries, 2016 + 1 + 4 + 4 + 1 + 1);
  EXPECT_EQ(report_.budgets.at(0).streams, 2 + 1);
}

TEST_F(LintTest, TheWaitThatIsMissingIsProposed) {
  const int64_t fork = trace.NewEvent(), join = trace.NewEvent();
  Relu(main, a, b);
  Order(fork, main, side);
  Relu(main, a, c);
  Relu(side, c, d);
  Order(join, side, main);
  Relu(main, d, b);
  EXPECT_EQ(Rules(), "LINT-19 LINT-20");
  const lint::Finding& race = report_.findings[1];
  EXPECT_EQ(race.edits,
            std::vector<lint::Edit>{lint::WaitEdit(race.evidence[1], race.evidence[0])});
}

// Streams that are ordered by what one sets and the other waits for: values in memory and notifies.
class SignalsTest : public LintTest {
 protected:
  static constexpr int kGreaterOrEqual = 0, kEqual = 1;
  SignalsTest() { flag = trace.Device({2}, storage::DType::kInt64); }

  void Write(int64_t stream, int64_t value) {
    trace.Interface(
        "aclrtValueWrite",
        {Out("devAddr", flag), Int("value", value), Int("flag", 0), Int("stream", stream)}, stream);
  }
  void WaitFor(int64_t stream, int64_t value, int condition = kEqual) {
    trace.Interface(
        "aclrtValueWait",
        {In("devAddr", flag), Int("value", value), Int("flag", condition), Int("stream", stream)},
        stream);
  }
  void RecordNotify(int64_t stream) {
    trace.Interface("aclrtRecordNotify", {Int("notify", 77), Int("stream", stream)}, stream);
  }
  void WaitForNotify(int64_t stream) {
    trace.Interface("aclrtWaitAndResetNotify",
                    {Int("notify", 77), Int("stream", stream), Int("timeout", 0)}, stream);
  }
  // The first write comes after the work on b, the second after the work on c.
  void WriteTwiceAndWaitForTheFirst() {
    Relu(main, a, b);
    Write(main, 1);
    Relu(main, a, c);
    Write(main, 2);
    WaitFor(side, 1, kGreaterOrEqual);
  }
  // Findings of work without an order; in a capture, also of that.
  int Races() {
    int count = 0;
    for (const lint::Finding& finding : Run().findings) {
      count += finding.rule->id == "LINT-19" || finding.rule->id == "LINT-20";
    }
    return count;
  }
  Tensor flag;
};

TEST_F(SignalsTest, AValueThatIsWrittenOrdersTheStreamsAndIsNoRaceItself) {
  Relu(main, a, b);
  Write(main, 1);
  WaitFor(side, 1);
  Relu(side, b, c);
  EXPECT_EQ(Races(), 0);
}

TEST_F(SignalsTest, TheWaitMayBeIssuedBeforeTheWrite) {
  WaitFor(side, 1);
  Relu(side, b, c);
  const int64_t event = trace.NewEvent();
  trace.Record(event, side);
  trace.Wait(third, event);
  Relu(third, c, d);  // after the work of side, which is after the write
  Relu(main, a, b);
  Write(main, 1);
  EXPECT_EQ(Races(), 0);
}

TEST_F(SignalsTest, ACopyForWhichTheHostWaitsOrdersWhatItDoesNext) {
  Relu(main, a, b);
  trace.Download(b, Floats{0, 0, 0, 0}, main);  // to pageable memory
  Relu(side, c, b);
  EXPECT_EQ(Races(), 0);
}

TEST_F(SignalsTest, ACopyToPinnedMemoryOrdersNothing) {
  const Tensor pinned = trace.Pinned({4});
  Relu(main, a, b);
  trace.Copy(Out("dst", trace.Bytes(pinned)), In("src", trace.Bytes(b)), 16, 2, main);
  Relu(side, c, b);
  EXPECT_NE(Races(), 0);
}

TEST_F(SignalsTest, AnotherValueOrdersNothing) {
  Relu(main, a, b);
  Write(main, 1);
  WaitFor(side, 2);
  Relu(side, b, c);
  EXPECT_EQ(Races(), 1);
}

TEST_F(SignalsTest, TheEarliestWriteThatSufficesMayHaveReleasedTheWait) {
  WriteTwiceAndWaitForTheFirst();
  Relu(side, b, d);  // ordered
  EXPECT_EQ(Races(), 0);
}

TEST_F(SignalsTest, WhatComesAfterTheEarliestWriteIsNotOrdered) {
  WriteTwiceAndWaitForTheFirst();
  Relu(side, c, d);
  EXPECT_EQ(Races(), 1);
}

TEST_F(SignalsTest, AFillTakesTheValueBack) {
  Relu(main, a, b);
  Write(main, 1);
  WaitFor(side, 1);
  trace.Interface("aclrtMemsetAsync",
                  {Out("devPtr", flag), Int("maxCount", 16), Int("value", 0), Int("count", 16),
                   Int("stream", side)},
                  side);
  WaitFor(third, 1);  // the wait of the second round
  Relu(third, b, c);
  EXPECT_EQ(Races(), 1);
}

TEST_F(SignalsTest, MemoryThatHoldsTheValueFromTheStartOrdersNothing) {
  Relu(main, a, b);
  WaitFor(side, 0, kGreaterOrEqual);
  Relu(side, b, c);
  EXPECT_EQ(Races(), 1);
}

TEST_F(SignalsTest, ACopyOverTheFlagMayBeWhatIsWaitedFor) {
  Relu(main, a, b);
  trace.Copy(Out("dst", flag), In("src", trace.Device({2}, storage::DType::kInt64)), 16, 3, main);
  WaitFor(side, 1);
  Relu(side, b, c);
  EXPECT_EQ(Races(), 0);
}

TEST_F(SignalsTest, ANotifyOrdersTheStreamsInBothOrdersOfIssue) {
  Relu(main, a, b);
  RecordNotify(main);
  WaitForNotify(side);
  Relu(side, b, c);
  WaitForNotify(third);
  Relu(third, c, d);
  RecordNotify(side);
  EXPECT_EQ(Races(), 0);
}

TEST_F(SignalsTest, AWaitTakesTheNotifyBack) {
  Relu(main, a, b);
  RecordNotify(main);
  WaitForNotify(third);
  WaitForNotify(side);
  Relu(side, b, c);
  EXPECT_EQ(Races(), 1);
}

TEST_F(SignalsTest, AGraphThatSetsANotifyOrdersWhatWaitsForIt) {
  trace.BeginCapture(main);
  Relu(main, a, b);
  RecordNotify(main);
  const int64_t model = trace.EndCapture(main);
  trace.Execute(model, main);
  Relu(main, a, d);
  WaitForNotify(side);
  Relu(side, a, c);
  Relu(main, a, d);
  EXPECT_EQ(Races(), 0);
}

TEST_F(SignalsTest, ManyRoundsOfACounterAndANotifyAreOrdered) {
  for (int round = 1; round <= 100; ++round) {
    Relu(main, a, b);
    Write(main, round);
    WaitFor(side, round, kGreaterOrEqual);
    Relu(side, b, c);
    RecordNotify(side);
    WaitForNotify(main);
  }
  EXPECT_EQ(Races(), 0);
}

TEST_F(SignalsTest, AValueOrdersTheStreamsOfAGraph) {
  const int64_t fork = trace.NewEvent(), join = trace.NewEvent();
  trace.BeginCapture(main);
  Order(fork, main, side);
  Relu(main, a, b);
  Write(main, 1);
  WaitFor(side, 1);
  Relu(side, b, c);
  Order(join, side, main);
  trace.Execute(trace.EndCapture(main), main);
  EXPECT_EQ(Races(), 0);
}

TEST_F(SignalsTest, WithoutTheWaitTheStreamsOfTheGraphRace) {
  const int64_t fork = trace.NewEvent(), join = trace.NewEvent();
  trace.BeginCapture(main);
  Order(fork, main, side);
  Relu(main, a, b);
  Write(main, 1);
  Relu(side, b, c);
  Order(join, side, main);
  trace.Execute(trace.EndCapture(main), main);
  EXPECT_EQ(Races(), 1);
}

// A scalar that each run of the same three launches has another value of; captured at the end.
class BakedInCapture : public LintTest {
 protected:
  void Work(int64_t value, bool grouped = false) {
    Relu(main, a, b);
    if (grouped) trace.Interface("aclmdlRICaptureTaskGrpBegin", {Int("stream", main)}, main);
    trace.Op("aclnnMuls", main, {In("self", b), Int("other", value), Out("out", c)});
    if (grouped) {
      trace.Interface("aclmdlRICaptureTaskGrpEnd", {Int("stream", main), Int("handle", 1)}, main);
    }
    Relu(main, c, d);
  }
  void Capture(int64_t value, bool grouped = false, bool updated = false) {
    trace.BeginCapture(main);
    Work(value, grouped);
    const int64_t model = trace.EndCapture(main);
    for (int i = 0; i < 2; ++i) {
      trace.Execute(model, main);
      trace.Synchronize(main);
      if (updated) Update(value + i);
    }
  }
  void Update(int64_t value) {
    trace.Interface("aclmdlRICaptureTaskUpdateBegin", {Int("stream", side), Int("handle", 1)},
                    side);
    trace.Op("aclnnMuls", side, {In("self", b), Int("other", value), Out("out", c)});
    trace.Interface("aclmdlRICaptureTaskUpdateEnd", {Int("stream", side)}, side);
  }
};

TEST_F(BakedInCapture, IsFoundWhereTheSameCallsRanEagerlyWithOtherValues) {
  Work(1);
  trace.Synchronize(main);
  Work(2);
  Capture(3);
  ASSERT_EQ(Rules(), "LINT-14");
  const lint::Finding& finding = report_.findings[0];
  EXPECT_NE(finding.message.find("argument other is 3 in the graph and 1 where the same lines ran "
                                 "eagerly on equal inputs, 3 values over all runs"),
            std::string::npos)
      << finding.message;
}

TEST_F(BakedInCapture, IsNoneWhenTheEagerRunsHadTheCapturesValue) {
  Work(3);
  Work(3);
  Capture(3);
  EXPECT_EQ(Rules(), "");
}

TEST_F(BakedInCapture, IsNoneWhereAGraphWasCapturedWithEachValue) {
  for (const int64_t value : {1, 2, 3}) {
    Work(value);
    trace.Synchronize(main);
    Capture(value);
  }
  EXPECT_EQ(Rules(), "");
}

TEST_F(BakedInCapture, IsFoundForTheValueWithWhichNoGraphWasCaptured) {
  for (const int64_t value : {1, 2, 7}) Work(value);
  Capture(1);
  Capture(2);
  ASSERT_EQ(Rules(), "LINT-14");
  EXPECT_NE(report_.findings[0].message.find("1 in the graph and 7"), std::string::npos)
      << report_.findings[0].message;
}

TEST_F(BakedInCapture, IsNoneWhenOtherCallsRanEagerly) {
  trace.Op("aclnnMuls", main, {In("self", b), Int("other", 1), Out("out", c)});
  Relu(main, c, d);
  Capture(3);
  EXPECT_EQ(Rules(), "");
}

TEST_F(BakedInCapture, IsNoneInATaskGroupWhichTheProgramUpdates) {
  Work(1);
  Capture(3, /*grouped=*/true, /*updated=*/true);
  EXPECT_EQ(Rules(), "");
}

TEST_F(BakedInCapture, IsFoundInATaskGroupWhichNothingUpdates) {
  Work(1);
  Capture(3, /*grouped=*/true);
  EXPECT_EQ(Rules(), "LINT-14");
}

TEST_F(BakedInCapture, IsNoneWhereAGraphOfTheEagerValueServesIt) {
  Work(1);
  Work(3);
  Capture(1);
  Capture(3);
  EXPECT_EQ(Rules(), "");
}

TEST_F(LintTest, AMessageBeginsWithTheFunctionAndEndsWithTheCalls) {
  trace.BeginCapture(main);
  Relu(main, a, b);
  trace.Interface("aclrtSynchronizeStream", {Int("stream", main)}, main, 107027);
  trace.EndCapture(main);
  const lint::Finding finding = Run().findings.at(0);
  const std::string call = std::to_string(finding.call_id);
  EXPECT_EQ(finding.message, "aclrtSynchronizeStream waits for stream " + std::to_string(main) +
                                 ", which is capturing (call " + call + " aclrtSynchronizeStream)");
  EXPECT_EQ(finding.advice, "move aclrtSynchronizeStream (call " + call + ") out of the capture");
}

TEST(ShortValues, OfALongListAreTheFirstOnesAndTheirNumber) {
  storage::ArgumentValue list;
  list.kind = storage::ValueKind::kIntList;
  list.integers = {1, 2, 3, 4};
  EXPECT_EQ(ShortValueText(list), "[1, 2, 3, 4]");
  list.integers = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(ShortValueText(list), "[1, 2, 3, 4, ... (6 values)]");
  list.integers.assign(14, 7);
  EXPECT_EQ(ShortValueText(list), "[7 (14 times)]");
}

// Tests what lint says about random numbers in a capture of one operator.
class RandomInCapture : public LintTest {
 protected:
  std::string Capture(const std::string& op, std::vector<test::Value> arguments) {
    arguments.insert(arguments.begin(), In("self", b));
    arguments.push_back(Out("out", c));
    trace.BeginCapture(main);
    trace.Op(op, main, arguments);
    const int64_t model = trace.EndCapture(main);
    trace.Execute(model, main);
    return Rules();
  }
};

TEST_F(RandomInCapture, ASeedOfTheHostIsRepeated) {
  EXPECT_EQ(Capture("aclnnInplaceNormal", {Int("seed", 1), Int("offset", 2)}), "LINT-25");
}

TEST_F(RandomInCapture, EveryOperatorWithASeedIsKnown) {
  EXPECT_EQ(Capture("aclnnStatelessBernoulli", {}), "LINT-25");
}

// This is what the rule tells to do.
TEST_F(RandomInCapture, ASeedThatIsATensorMayChange) {
  EXPECT_EQ(Capture("aclnnInplaceNormalTensor", {In("seedTensor", a), Int("offset", 2)}), "");
}

TEST_F(RandomInCapture, WhatAppliesAMaskDrawsNothing) {
  EXPECT_EQ(Capture("aclnnDropoutDoMask", {In("mask", a), test::Real("prob", 0.5)}), "");
}

TEST_F(RandomInCapture, DropoutDrawsInTrainingAlone) {
  EXPECT_EQ(Capture("aclnnDropout", {test::Bool("train", true), Int("seed", 1)}), "LINT-25");
}

TEST_F(RandomInCapture, DropoutOutsideOfTrainingDrawsNothing) {
  EXPECT_EQ(Capture("aclnnDropout", {test::Bool("train", false), Int("seed", 1)}), "");
}

}  // namespace
}  // namespace acltape::analyzer
