// Replays under a plan: streams inside graphs, eager regions, arguments that are updated.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/replayer/small_programs.h"

namespace acltape::replayer {
namespace {

using test::Add;
using test::Explain;
using test::Floats;
using test::In;
using test::Int;
using test::Numbers;
using test::Out;
using test::Real;
using test::Recorded;
using test::Sum;
using test::Tensor;
using test::TraceBuilder;

constexpr int kSteps = 3;

// Per step: y = relu(x); z = x + x; w = y + z; then w = w * factor in place. Calls 1 to 4.
Recorded Diamond(const std::function<float(int)>& factor) {
  return Recorded(kSteps, [=](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({8});
    const Tensor y = trace.NewTensor({8});
    const Tensor z = trace.NewTensor({8});
    const Tensor w = trace.NewTensor({8});
    const Floats in = Numbers(8, step);
    const Floats sum = Sum(test::Relu(in), Sum(in, in));
    trace.Call("aten::relu", {In("self", x)}, {Out("out", y)})
        .Before(x, in)
        .After("out", test::Relu(in));
    Add(trace, x, x, z);
    trace.After("out", Sum(in, in));
    Add(trace, y, z, w);
    trace.After("out", sum);
    trace.Call("aten::mul_.Scalar", {test::Written("self", w), Real("other", factor(step))})
        .After("self", test::Product(sum, {factor(step)}));
  });
}

float Constant(int) { return 3; }
float Scheduled(int step) { return static_cast<float>(step + 1); }

// The step at hand on two streams: relu on the origin, the first sum on the side stream.
std::shared_ptr<ChosenPlan> TwoStreams() {
  const auto chosen = std::make_shared<ChosenPlan>();
  chosen->path = "plan.json";
  analyzer::plan::Plan& plan = chosen->plan;
  plan.step = 0;
  plan.first_call = 1;
  plan.last_call = 4;
  plan.streams = 2;
  analyzer::plan::PlanRegion region;
  region.captured = true;
  region.first_call = 1;
  region.last_call = 4;
  for (const auto& [call, stream] : std::map<int64_t, int>{{1, 0}, {2, 1}, {3, 0}, {4, 0}}) {
    region.placements.push_back({});
    region.placements.back().call_id = call;
    region.placements.back().stream = stream;
  }
  region.waits.push_back({2, 3, 0});
  plan.regions.push_back(region);
  return chosen;
}

ReplayOptions Options(std::shared_ptr<ChosenPlan> plan) {
  ReplayOptions options;
  options.mode = Mode::kCaptured;
  options.plan = std::move(plan);
  return options;
}

std::vector<std::string> Rules(const ReplayReport& report) {
  std::vector<std::string> rules;
  for (const Note& note : report.notes) rules.push_back(note.rule + " " + note.verdict);
  return rules;
}

TEST(PlanReplay, TwoStreamsGiveTheBitsOfTheRecordingInEveryRepetition) {
  for (const char* mode : {"global", "thread_local", "relaxed"}) {
    const auto plan = TwoStreams();
    plan->plan.capture_mode = mode;
    ReplayOptions options = Options(plan);
    options.repetitions = 5;
    const ReplayReport report = Diamond(Constant).Replay(options);
    EXPECT_EQ(report.ExitCode(), 0) << mode << Explain(report);
    EXPECT_EQ(report.compared, 5 * kSteps * 4);
    EXPECT_EQ(report.equal, report.compared);
    ASSERT_EQ(report.capture.regions.size(), 1u);
    EXPECT_EQ(report.capture.regions[0].streams, 2);
    EXPECT_EQ(report.capture.regions[0].waits, 1);
    EXPECT_EQ(Rules(report), std::vector<std::string>{"PLAN reproduced"});
  }
}

TEST(PlanReplay, OutputsOfStepsAloneAreRightWhereBuffersSharePlaces) {
  ReplayOptions options = Options(TwoStreams());
  options.outputs = Outputs::kStep;
  const ReplayReport report = Diamond(Constant).Replay(options);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.compared, kSteps);
}

// A graph is warmed up before its capture. Here index and doubled share memory, because the plan
// issues the choice, which reads the index, before the work that writes doubled.
TEST(PlanReplay, TheWarmUpIssuesInThePlansOrderInWhichBuffersShareMemory) {
  const Recorded program(kSteps, [=](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({8});
    const Tensor index = trace.NewTensor({1}, storage::DType::kInt64);
    const Tensor doubled = trace.NewTensor({8});
    const Tensor choice = trace.NewTensor({1});
    const Tensor sum = trace.NewTensor({8});
    const Floats in = Numbers(8, step);
    const auto greatest = std::max_element(in.begin(), in.end()) - in.begin();
    trace
        .Call("aten::argmax", {In("self", x), Int("dim", 0), test::Bool("keepdim", true)},
              {Out("out", index)})
        .Before(x, in)
        .After("out", std::vector<int64_t>{greatest});
    Add(trace, x, x, doubled);
    trace.After("out", Sum(in, in));
    trace
        .Call("aten::index_select", {In("self", x), Int("dim", 0), In("index", index)},
              {Out("out", choice)})
        .After("out", Floats{in[greatest]});
    Add(trace, doubled, choice, sum);
    Floats expected = Sum(in, in);
    for (float& value : expected) value += in[greatest];
    trace.After("out", expected);
  });
  const auto plan = TwoStreams();
  analyzer::plan::PlanRegion& region = plan->plan.regions[0];
  region.placements.clear();
  region.waits.clear();
  for (const int64_t call : {1, 3, 2, 4}) {
    region.placements.push_back({});
    region.placements.back().call_id = call;
  }
  ReplayOptions options = Options(plan);
  options.outputs = Outputs::kStep;
  const ReplayReport report = program.Replay(options);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.capture.captured_steps, kSteps);
}

TEST(PlanReplay, APlanOfALaterStepServesTheWholeClass) {
  const auto plan = TwoStreams();
  plan->plan.step = 2;
  analyzer::plan::PlanRegion& region = plan->plan.regions[0];
  region.first_call += 8;
  region.last_call += 8;
  for (analyzer::plan::PlanPlacement& placement : region.placements) placement.call_id += 8;
  region.waits[0] = {10, 11, 0};
  const ReplayReport report = Diamond(Constant).Replay(Options(plan));
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.capture.captured_steps, kSteps);
}

TEST(PlanReplay, EagerRegionsRunBetweenGraphs) {
  const auto plan = TwoStreams();
  std::vector<analyzer::plan::PlanRegion>& regions = plan->plan.regions;
  regions[0].last_call = 2;
  regions[0].placements.resize(2);
  regions[0].waits.clear();
  regions.push_back({});
  regions.back().first_call = 3;
  regions.back().last_call = 4;
  regions.back().reason = "because the test says so";
  const ReplayReport report = Diamond(Scheduled).Replay(Options(plan));
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  ASSERT_EQ(report.capture.regions.size(), 2u);
  EXPECT_TRUE(report.capture.regions[0].captured);
  EXPECT_EQ(report.capture.regions[1].reason, "because the test says so");
  EXPECT_EQ(report.capture.updates, 0);  // eager calls have the values of their step
}

TEST(PlanReplay, AnArgumentThatThePlanUpdatesHasTheValueOfEachStep) {
  const auto plan = TwoStreams();
  plan->plan.updates.push_back({4, "other"});
  ReplayOptions options = Options(plan);
  options.repetitions = 2;
  const ReplayReport report = Diamond(Scheduled).Replay(options);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.capture.varying_leaves, 1);
  EXPECT_EQ(report.capture.updated_leaves, 1);
  // The graph holds the value of step 0, then one update to each other value, in both repetitions.
  EXPECT_EQ(report.capture.updates, 2 + 3);
}

TEST(PlanReplay, AnArgumentThatNothingUpdatesIsBakedAndTheReplayShowsTheCall) {
  const auto unplanned = Options(TwoStreams());
  ReplayOptions unwanted = Options(nullptr);
  unwanted.updates = Updates::kNone;
  for (const ReplayOptions& options : {unplanned, unwanted}) {
    const ReplayReport report = Diamond(Scheduled).Replay(options);
    EXPECT_EQ(report.ExitCode(), 1);
    ASSERT_FALSE(report.mismatches.empty());
    EXPECT_EQ(report.mismatches[0].call_id, 8);
    EXPECT_EQ(report.mismatches[0].op, "aten::mul_.Scalar");
    EXPECT_EQ(report.differing_calls, (std::set<int64_t>{8, 12}));
    const auto baked = std::find_if(report.notes.begin(), report.notes.end(),
                                    [](const Note& note) { return note.rule == "CAPTURE-BAKED"; });
    ASSERT_NE(baked, report.notes.end());
    EXPECT_EQ(baked->verdict, "reproduced");
    EXPECT_EQ(baked->call_id, 8);
    EXPECT_NE(
        baked->message.find("call 4 aten::mul_.Scalar: argument other is 1 in step 0 and 2 in "
                            "step 1 (call 8)"),
        std::string::npos)
        << baked->message;
  }
}

TEST(PlanReplay, WithoutAPlanAllThatVariesIsUpdated) {
  const ReplayReport report = Diamond(Scheduled).Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.capture.captured_steps, kSteps);
  EXPECT_EQ(report.capture.updates, 2);
}

TEST(PlanReplay, APlanForAStepThatTheTraceLacksIsRefused) {
  const auto plan = TwoStreams();
  plan->plan.step = 9;
  EXPECT_THROW(Diamond(Constant).Replay(Options(plan)), Error);
}

}  // namespace
}  // namespace acltape::replayer
