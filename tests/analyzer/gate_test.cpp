// The measures of a gate over small traces, and the judgement of changes.
#include <gtest/gtest.h>

#include <functional>

#include "analyzer/gate/changes.h"
#include "analyzer/gate/measure.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer::gate {
namespace {

using namespace test;

// A program of steps: a product with a weight, what `more` adds to the step, and a host read.
Measured MeasureSteps(
    int64_t steps, const std::function<void(TraceBuilder&, const Tensor&)>& more =
                       [](TraceBuilder&, const Tensor&) {}) {
  const TemporaryTrace file("gate");
  TraceBuilder trace(file.path());
  const Tensor weight = trace.NewTensor({8, 8});
  const Tensor x = trace.NewTensor({4, 8});
  for (int64_t step = 0; step < steps; ++step) {
    const Tensor y = trace.NewTensor({4, 8});
    trace.Call("aten::mm", {In("self", x), In("mat2", weight)}, {Out("out", y)});
    const Tensor z = trace.NewTensor({4, 8});
    trace.Call("aten::relu", {In("self", y)}, {Out("out", z)});
    more(trace, z);
    trace.Call("aten::_local_scalar_dense", {In("self", z)},
               {Real("out", 1, storage::Direction::kOut)});
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  return Measure(reader);
}

std::string Names(const std::vector<Change>& changes) {
  std::string names;
  for (const Change& change : changes) {
    if (change.verdict == Verdict::kEqual) continue;
    names += change.name + " " + std::string(VerdictName(change.verdict)) + "\n";
  }
  return names;
}

Baseline BaselineOf(const Measured& measured, const std::vector<std::string>& allowed = {}) {
  Baseline baseline;
  baseline.basis = measured.basis;
  baseline.measures = measured.values;
  for (const auto& [key, cause] : measured.causes) baseline.causes[key] = cause.count;
  for (const std::string& rule : allowed) baseline.allowed.push_back(ParseAllowRule(rule, "test"));
  return baseline;
}

TEST(GateMeasures, CountTheWorkOfAStep) {
  const Measured measured = MeasureSteps(8);
  EXPECT_EQ(measured.basis, "step");
  EXPECT_EQ(measured.values.at("step.operators"), 3);
  EXPECT_EQ(measured.values.at("step.host_reads"), 1);
  EXPECT_EQ(measured.values.at("step.graphs"), 1);
  EXPECT_EQ(measured.values.at("step.capturable"), 66.6);  // two of three, rounded down
  EXPECT_EQ(measured.values.at("step.bytes_written"), 2 * 4 * 8 * 4);
  // The weight and x throughout, y and z of the step.
  EXPECT_EQ(measured.values.at("step.bytes_peak"), 8 * 8 * 4 + 4 * 8 * 4 + 2 * 4 * 8 * 4);
  EXPECT_FALSE(measured.values.contains("step.launches"));  // a program without a device
}

TEST(GateMeasures, AreEqualForEightAndTenSteps) {
  const Measured ten = MeasureSteps(10);
  EXPECT_EQ(Names(FindChanges(BaselineOf(MeasureSteps(8)), ten)), "");
}

TEST(GateMeasures, TellOneMoreCopyAndOneMoreHostRead) {
  const Measured copied = MeasureSteps(8, [](TraceBuilder& trace, const Tensor& z) {
    trace.Call("aten::clone", {In("self", z)}, {Out("out", trace.NewTensor({4, 8}))});
  });
  const std::vector<Change> changes = FindChanges(BaselineOf(MeasureSteps(8)), copied);
  EXPECT_NE(Names(changes).find("step.copies worse\n"), std::string::npos) << Names(changes);
  EXPECT_EQ(ExitCodeOf(changes), 1);
  const Measured read = MeasureSteps(8, [](TraceBuilder& trace, const Tensor& z) {
    trace.Call("aten::_local_scalar_dense", {In("self", z)},
               {Real("out", 1, storage::Direction::kOut)});
  });
  EXPECT_NE(Names(FindChanges(BaselineOf(MeasureSteps(8)), read)).find("step.host_reads worse\n"),
            std::string::npos);
}

TEST(GateMeasures, AMeasureThatTheTraceLacksIsNotKnown) {
  const Measured measured = MeasureSteps(8);
  Baseline baseline = BaselineOf(measured);
  baseline.measures["step.launches"] = 3;
  const std::vector<Change> changes = FindChanges(baseline, measured);
  EXPECT_EQ(Names(changes), "step.launches not known\n");
  EXPECT_EQ(ExitCodeOf(changes), 125);
}

TEST(GateMeasures, AStepAndAWholeProgramAreNotCompared) {
  const Measured measured = MeasureSteps(8);
  Baseline baseline = BaselineOf(measured);
  baseline.basis = "program";
  EXPECT_EQ(ExitCodeOf(FindChanges(baseline, measured)), 125);
}

// A program of the ACL level: a graph of two operators, executed in each of six steps, and
// `launches` operators beside it on `streams` streams.
Measured MeasureGraphs(int launches, int streams) {
  const TemporaryTrace file("gate-acl");
  AclTraceBuilder trace(file.path());
  std::vector<int64_t> queues;
  for (int i = 0; i < streams; ++i) queues.push_back(trace.NewStream());
  const Tensor a = trace.Device({16});
  const Tensor b = trace.Device({16});
  trace.Upload(a, std::vector<float>(16));
  const auto relu = [&](int64_t stream) {
    trace.Op("aclnnRelu", stream, {In("self", a), Out("out", b)});
  };
  trace.BeginCapture(queues[0]);
  relu(queues[0]);
  relu(queues[0]);
  const int64_t graph = trace.EndCapture(queues[0]);
  for (int step = 0; step < 6; ++step) {
    trace.Upload(a, std::vector<float>(16));
    trace.Execute(graph, queues[0]);
    for (int i = 0; i < launches; ++i) relu(queues[static_cast<size_t>(i % streams)]);
    for (const int64_t queue : queues) trace.Synchronize(queue);
    trace.Download(b, std::vector<float>(16));
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  return Measure(reader);
}

TEST(GateMeasures, CountGraphsExecutionsLaunchesAndStreams) {
  const Measured measured = MeasureGraphs(/*launches=*/2, /*streams=*/2);
  EXPECT_EQ(measured.basis, "step");
  EXPECT_EQ(measured.values.at("program.graphs"), 1);
  EXPECT_EQ(measured.values.at("program.captured_launches"), 2);
  EXPECT_EQ(measured.values.at("program.streams"), 2);
  EXPECT_EQ(measured.values.at("step.executions"), 1);
  EXPECT_EQ(measured.values.at("step.launches"), 2);
  EXPECT_EQ(measured.values.at("step.captured"), 50);
  EXPECT_EQ(measured.values.at("step.host_waits"), 2);
  EXPECT_EQ(measured.values.at("step.copies_to_device"), 1);
  EXPECT_EQ(measured.values.at("step.copies_to_host"), 1);
}

TEST(GateMeasures, TellALaunchAndAStreamMore) {
  const Baseline before = BaselineOf(MeasureGraphs(2, 1));
  const Measured launched = MeasureGraphs(3, 1);
  EXPECT_NE(Names(FindChanges(before, launched)).find("step.launches worse\n"), std::string::npos);
  const Measured spread = MeasureGraphs(2, 2);
  EXPECT_NE(Names(FindChanges(before, spread)).find("program.streams differs\n"),
            std::string::npos);
}

// The verdict about a measure that was `before` and is `now` under these rules.
Verdict VerdictOf(const std::string& name, double before, double now,
                  const std::vector<std::string>& rules) {
  Measured measured;
  measured.basis = "step";
  measured.values[name] = before;
  const Baseline baseline = BaselineOf(measured, rules);
  measured.values[name] = now;
  return FindChanges(baseline, measured).at(0).verdict;
}

TEST(GateRules, AllowSoMuch) {
  EXPECT_EQ(VerdictOf("step.launches", 10, 12, {}), Verdict::kWorse);
  EXPECT_EQ(VerdictOf("step.launches", 10, 12, {"step.launches +2"}), Verdict::kAllowed);
  EXPECT_EQ(VerdictOf("step.launches", 10, 13, {"step.launches +2"}), Verdict::kWorse);
  EXPECT_EQ(VerdictOf("step.launches", 10, 8, {"step.launches +2"}), Verdict::kBetter);
  EXPECT_EQ(VerdictOf("step.launches", 10, 8, {"step.launches +2 -2"}), Verdict::kAllowed);
  EXPECT_EQ(VerdictOf("step.bytes_peak", 100, 105, {"step.bytes_* +5%  # weights"}),
            Verdict::kAllowed);
  EXPECT_EQ(VerdictOf("step.bytes_peak", 100, 106, {"step.bytes_* +5%"}), Verdict::kWorse);
  EXPECT_EQ(VerdictOf("step.launches", 10, 1, {"* better"}), Verdict::kAllowed);
  EXPECT_EQ(VerdictOf("step.capturable", 10, 1, {"* better"}), Verdict::kWorse);
  EXPECT_EQ(VerdictOf("program.streams", 1, 2, {}), Verdict::kOther);
  EXPECT_EQ(VerdictOf("program.streams", 1, 2, {"program.streams any"}), Verdict::kAllowed);
}

TEST(GateRules, NameACauseOfFindings) {
  Measured measured;
  measured.causes["LINT-40 | aten::item | train.py (main)"].count = 2;
  const Baseline before;
  EXPECT_EQ(ExitCodeOf(FindChanges(before, measured)), 1);
  Baseline allowed;
  allowed.allowed = {ParseAllowRule("LINT-40 | * | train.py (main) +any", "test")};
  EXPECT_EQ(ExitCodeOf(FindChanges(allowed, measured)), 0);
}

TEST(GateRules, RefuseWhatIsNoRule) {
  const auto why = [](const std::string& text) -> std::string {
    try {
      ParseAllowRule(text, "allow.txt:3");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(why("step.launches"),
            "allow.txt:3: 'step.launches' allows nothing; write a measure and how much it may "
            "change, such as 'step.launches +2', 'step.bytes_* +5%' or '* better'");
  EXPECT_EQ(why("step.lunches +2"),
            "allow.txt:3: 'step.lunches' is no measure; `acltape gate --list` lists them");
  EXPECT_NE(why("step.launches +-2"), "");
  EXPECT_NE(why("step.launches 2"), "");
}

}  // namespace
}  // namespace acltape::analyzer::gate
