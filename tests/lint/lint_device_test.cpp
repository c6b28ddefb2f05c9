// The device gives the codes that lint predicts, for programs drawn at random.
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "analyzer/lint/lint.h"
#include "replayer/probe/prove.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::replayer {
namespace {

using analyzer::lint::CaptureMode;
using analyzer::lint::Finding;
using test::AclTraceBuilder;
using test::In;
using test::Int;
using test::Out;
using test::TemporaryTrace;
using test::Tensor;
using Floats = std::vector<float>;

// A program of three streams, two threads and four events that does anything that may be refused.
class RandomProgram {
 public:
  RandomProgram(const std::string& path, uint64_t seed) : trace_(path), random_(seed) {
    for (int64_t& stream : streams_) stream = trace_.NewStream();
    for (int64_t& event : events_) event = trace_.NewEvent();
    for (Tensor& tensor : tensors_) tensor = trace_.Device({16});
    for (int i = 0; i < 2; ++i) trace_.Record(events_[Draw(4)], streams_[Draw(3)]);
    trace_.Synchronize(streams_[0]);
    Op(streams_[0]);
    for (int i = 0; i < 24; ++i) Step();
    Op(streams_[0]);
    trace_.Finish();
  }

 private:
  size_t Draw(size_t count) { return random_() % count; }
  void Op(int64_t stream) {
    const size_t from = Draw(4);
    trace_.Op("aclnnRelu", stream, {In("self", tensors_[from]), Out("out", tensors_[4 + Draw(4)])});
  }

  void Step() {
    const int64_t stream = streams_[Draw(3)];
    const int64_t event = events_[Draw(4)];
    if (Draw(8) == 0) trace_.Thread(1 + static_cast<int64_t>(Draw(2)));
    switch (Draw(14)) {
      case 0:
      case 1:
      case 2:
        trace_.Record(event, stream);
        return;
      case 3:
      case 4:
      case 5:
        trace_.Wait(stream, event);
        return;
      case 6:
        trace_.Synchronize(stream);
        return;
      case 7:
        trace_.Interface("aclrtSynchronizeEvent", {Int("event", event)});
        return;
      case 8:
        trace_.Upload(tensors_[Draw(4)], Floats(16, 1.0f), stream);
        return;
      case 9:
        trace_.Upload(tensors_[Draw(4)], Floats(16, 1.0f));
        return;
      case 10:
        trace_.Interface("aclmdlRICaptureThreadExchangeMode",
                         {Int("mode", static_cast<int64_t>(Draw(3)))});
        return;
      default:
        Op(stream);
        return;
    }
  }

  AclTraceBuilder trace_;
  std::mt19937_64 random_;
  int64_t streams_[3];
  int64_t events_[4];
  Tensor tensors_[8];
};

class LintOnDevice : public testing::TestWithParam<uint64_t> {};

TEST_P(LintOnDevice, PredictsEveryCodeOfARandomProgramAndNoOther) {
  const TemporaryTrace file("lint-random-" + std::to_string(GetParam()));
  RandomProgram(file.path(), GetParam());
  const storage::Reader reader(file.path());
  const analyzer::Work work = analyzer::LoadWork(reader);
  analyzer::lint::LintReport report = analyzer::lint::Lint(work, {});
  ASSERT_EQ(report.stretches.size(), 1u);
  probe::ProveOptions options;
  options.modes.assign(analyzer::lint::kCaptureModes.begin(), analyzer::lint::kCaptureModes.end());
  options.executions = 0;
  const std::vector<probe::ProbeRow> probes = probe::Prove(work, options, report);
  const auto predicts = [&](int64_t call_id, CaptureMode mode, int32_t code) {
    for (const Finding& finding : report.findings) {
      const bool same = call_id == 0 ? finding.fails_at == analyzer::lint::FailsAt::kEnd
                                     : finding.fails_at == analyzer::lint::FailsAt::kCall &&
                                           finding.call_id == call_id;
      if (same && finding.code(mode) == code) return true;
    }
    return false;
  };
  for (const Finding& finding : report.findings) {
    EXPECT_NE(finding.verdict, "refuted") << finding.rule->id << ": " << finding.message;
  }
  for (const probe::ProbeRow& probe : probes) {
    if (probe.edited) continue;
    EXPECT_TRUE(probe.report.left_out.empty());
    for (const probe::ProbedCall& call : probe.report.refused) {
      EXPECT_TRUE(predicts(call.call_id, probe.mode, call.code))
          << analyzer::lint::CaptureModeName(probe.mode) << ": call " << call.call_id << " gave "
          << call.code << ": " << call.message;
    }
    if (probe.report.end_code != 0) {
      EXPECT_TRUE(predicts(0, probe.mode, probe.report.end_code)) << probe.report.end_message;
    }
  }
}

// A race in a graph that waits for an event from outside, which the region does not record.
class OutsideEvent : public testing::Test {
 protected:
  explicit OutsideEvent(int waits, bool older = false) {
    AclTraceBuilder trace(file_.path());
    const int64_t main = trace.NewStream(), side = trace.NewStream();
    const int64_t outside =
        older ? trace.OlderEvent(/*flags=*/0x20) : trace.NewEvent(/*flags=*/0x20);
    const int64_t fork = trace.NewEvent();
    const int64_t join = trace.NewEvent();
    const Tensor a = trace.Device({16}), b = trace.Device({16}), c = trace.Device({16});
    trace.BeginCapture(main);
    for (int i = 0; i < waits; ++i) {
      trace.Wait(main, outside);
      trace.Reset(outside, main);
    }
    trace.Record(fork, main);
    trace.Wait(side, fork);
    trace.Op("aclnnRelu", side, {In("self", a), Out("out", b)});
    trace.Op("aclnnNeg", main, {In("self", b), Out("out", c)});
    trace.Record(join, side);
    trace.Wait(main, join);
    trace.EndCapture(main);
    trace.Finish();
  }

  std::vector<probe::ProbeRow> Prove(double budget_s = 60) {
    reader_.emplace(file_.path());
    work_ = analyzer::LoadWork(*reader_);
    report_ = analyzer::lint::Lint(work_, {});
    probe::ProveOptions options;
    options.modes = {CaptureMode::kRelaxed};
    options.executions = 3;
    options.budget_s = budget_s;
    return probe::Prove(work_, options, report_);
  }
  std::string VerdictOf(std::string_view rule) const {
    for (const Finding& finding : report_.findings) {
      if (finding.rule->id == rule) return finding.verdict;
    }
    return "no finding";
  }

  TemporaryTrace file_{"lint-outside-event"};
  std::optional<storage::Reader> reader_;
  analyzer::Work work_;
  analyzer::lint::LintReport report_;
};

class OneOutsideEvent : public OutsideEvent {
 protected:
  OneOutsideEvent() : OutsideEvent(/*waits=*/1) {}
};
class TwoOutsideEvents : public OutsideEvent {
 protected:
  TwoOutsideEvents() : OutsideEvent(/*waits=*/2) {}
};

TEST_F(OneOutsideEvent, IsRecordedForEachExecution) {
  const auto probes = Prove();
  ASSERT_EQ(probes.size(), 2u);  // with and without the edit
  EXPECT_EQ(probes[0].report.executed, 3);
  EXPECT_EQ(probes[0].report.stopped, "");
}

class OlderOutsideEvent : public OutsideEvent {
 protected:
  OlderOutsideEvent() : OutsideEvent(/*waits=*/1, /*older=*/true) {}
};

// A window of a recording does not hold the call that made the event, but its flags.
TEST_F(OlderOutsideEvent, IsMadeByTheFunctionThatKnowsItsFlags) {
  const auto probes = Prove();
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_EQ(probes[0].report.executed, 3);
}

TEST_F(OneOutsideEvent, IsNotTriedWhenTheTimeIsOver) {
  EXPECT_TRUE(Prove(/*budget_s=*/1e-9).empty());
  EXPECT_EQ(VerdictOf("LINT-20"), "not known: the time for the proof was over before this region");
}

// The second wait is for a record that the probe does not know of: it ends and says so.
TEST_F(TwoOutsideEvents, EndTheProbeAndAreNotKnown) {
  const auto probes = Prove();
  EXPECT_EQ(probes.at(0).report.executed, 0);
  EXPECT_EQ(VerdictOf("LINT-20"),
            "not known: the device stood still: its work waits for an event or a value that no "
            "call of the region sets");
}

INSTANTIATE_TEST_SUITE_P(Seeds, LintOnDevice, testing::Range<uint64_t>(1, 61));

}  // namespace
}  // namespace acltape::replayer
