// The results of reference runs decide which differences count as noise.
#include "replayer/values/noise_floor.h"

#include <gtest/gtest.h>

#include <cmath>

#include "storage/payload.h"
#include "tests/replayer/small_programs.h"

namespace acltape::replayer {
namespace {

using test::Floats;
using test::In;
using test::Numbers;
using test::Out;
using test::Recorded;
using test::Relu;
using test::Tensor;
using test::TraceBuilder;

TEST(Flakiness, IsTheShareOfRunsWithoutTheUsualResult) {
  const Flakiness flakiness = FlakinessOf({"a", "b", "a", "c", "a"});
  EXPECT_EQ(flakiness.usual, "a");
  EXPECT_EQ(flakiness.runs, 5);
  EXPECT_EQ(flakiness.deviating, 2);
  EXPECT_EQ(flakiness.rate(), 0.4);
  EXPECT_FALSE(FlakinessOf({"a", "a"}).flaky());
  EXPECT_EQ(FlakinessOf({"b", "a"}).usual, "b");
  EXPECT_EQ(FlakinessOf({}).rate(), 0);
}

// Call 1: x = relu(a); call 2: y = exp(x); call 3: z = relu(b).
class NoiseFloorTest : public testing::Test {
 protected:
  NoiseFloorTest()
      : recorded_([](TraceBuilder& trace) {
          const Tensor a = trace.NewTensor({2});
          const Tensor b = trace.NewTensor({2});
          const Tensor x = trace.NewTensor({2});
          trace.Call("aten::relu", {In("self", a)}, {Out("out", x)}).Before(a, Floats{1, 2});
          trace.Call("aten::exp", {In("self", x)}, {Out("out", trace.NewTensor({2}))});
          trace.Call("aten::relu", {In("self", b)}, {Out("out", trace.NewTensor({2}))})
              .Before(b, Floats{3, 4});
        }),
        reader_(recorded_.path()),
        program_(analyzer::LoadProgram(reader_)) {}

  NoiseFloor Floor(bool carried = true) {
    return NoiseFloor(program_, carried, [](const std::string&) { return nullptr; });
  }
  static std::string DigestOf(const Floats& values) {
    return storage::DigestOf(reinterpret_cast<const uint8_t*>(values.data()), values.size() * 4);
  }
  // One reference run with these results of the three calls.
  static void Run(NoiseFloor& floor, const std::vector<Floats>& results) {
    floor.BeginReference();
    for (size_t leaf = 0; leaf < results.size(); ++leaf) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(results[leaf].data());
      floor.Observe(static_cast<int64_t>(leaf), 0, DigestOf(results[leaf]), bytes, 8);
    }
  }
  static analyzer::metrics::TensorMetrics Between(const Floats& a, const Floats& b) {
    return analyzer::metrics::Measure(
        storage::DType::kFloat32, reinterpret_cast<const uint8_t*>(a.data()),
        storage::DType::kFloat32, reinterpret_cast<const uint8_t*>(b.data()), 2);
  }
  static std::string Explain(NoiseFloor& floor, int64_t leaf, const Floats& usual,
                             const Floats& now) {
    const analyzer::metrics::TensorMetrics metrics = Between(usual, now);
    return floor.Explain(leaf, 0, DigestOf(now), &metrics);
  }

  const Recorded recorded_;
  storage::Reader reader_;
  analyzer::Program program_;
};

const float kNext = std::nextafterf(1, 2);

TEST_F(NoiseFloorTest, NothingIsNoiseWhenTheReferenceIsStable) {
  NoiseFloor floor = Floor();
  for (int run = 0; run < 3; ++run) Run(floor, {{1, 2}, {3, 7}, {3, 4}});
  floor.EndReferences();
  EXPECT_TRUE(floor.flaky().empty());
  floor.BeginJudged(true);
  EXPECT_EQ(Explain(floor, 0, {1, 2}, {kNext, 2}), "");
}

TEST_F(NoiseFloorTest, ADeviationIsThatOfTheCallWhoseInputsWereAsUsual) {
  NoiseFloor floor = Floor();
  Run(floor, {{1, 2}, {3, 7}, {3, 4}});
  Run(floor, {{kNext, 2}, {3.5, 7}, {3, 4}});
  Run(floor, {{1, 2}, {3, 7}, {3, 4}});
  floor.EndReferences();
  ASSERT_EQ(floor.flaky().size(), 1u);
  const FlakyOperator& flaky = floor.flaky()[0];
  EXPECT_EQ(flaky.op, "aten::relu");
  EXPECT_EQ(flaky.call_id, 1);
  EXPECT_EQ(flaky.calls, 1);
  EXPECT_EQ(flaky.executions, 6);  // both calls of relu in three runs
  EXPECT_EQ(flaky.deviating, 1);
  EXPECT_TRUE(flaky.values);
  EXPECT_EQ(flaky.max_ulp, 1);
}

TEST_F(NoiseFloorTest, WithoutCarriedValuesEveryDeviationIsItsOwn) {
  NoiseFloor floor = Floor(false);
  Run(floor, {{1, 2}, {3, 7}, {3, 4}});
  Run(floor, {{kNext, 2}, {3.5, 7}, {3, 4}});
  floor.EndReferences();
  EXPECT_EQ(floor.flaky().size(), 2u);
}

TEST_F(NoiseFloorTest, AFirstRunThatDeviatesIsFoundOutByTheOthers) {
  NoiseFloor floor = Floor();
  Run(floor, {{kNext, 2}, {3, 7}, {3, 4}});
  Run(floor, {{1, 2}, {3, 7}, {3, 4}});
  Run(floor, {{1, 2}, {3, 7}, {3, 4}});
  floor.EndReferences();
  ASSERT_EQ(floor.flaky().size(), 1u);
  EXPECT_EQ(floor.flaky()[0].deviating, 1);
  EXPECT_EQ(floor.flaky()[0].max_ulp, 1);
}

TEST_F(NoiseFloorTest, WhatAFlakyOperatorDoesIsNoiseWithinItsSpreadAtOtherCallsToo) {
  NoiseFloor floor = Floor();
  Run(floor, {{1, 2}, {3, 7}, {3, 4}});
  Run(floor, {{kNext, 2}, {3, 7}, {3, 4}});
  Run(floor, {{1, 2}, {3, 7}, {3, 4}});
  floor.EndReferences();
  floor.BeginJudged(true);
  EXPECT_EQ(Explain(floor, 0, {1, 2}, {kNext, 2}), "a run of the reference had the same");
  EXPECT_EQ(Explain(floor, 1, {3, 7}, {3.5, 7}),
            "it reads the result of call 1, which differs by noise");
  EXPECT_EQ(Explain(floor, 2, {3, 4}, {std::nextafterf(3, 4), 4}),
            "1 of 6 executions in runs of the reference deviate");
  // Above the floor, and NaN, which no reference run showed.
  EXPECT_EQ(Explain(floor, 2, {3, 4}, {3.1f, 4}), "");
  EXPECT_EQ(Explain(floor, 2, {3, 4}, {NAN, 4}), "");
}

TEST_F(NoiseFloorTest, NoiseIsForgottenWhenTheResultIsRightTheNextTime) {
  NoiseFloor floor = Floor();
  Run(floor, {{1, 2}, {3, 7}, {3, 4}});
  Run(floor, {{kNext, 2}, {3, 7}, {3, 4}});
  Run(floor, {{1, 2}, {3, 7}, {3, 4}});
  floor.EndReferences();
  floor.BeginJudged(true);
  EXPECT_NE(Explain(floor, 0, {1, 2}, {kNext, 2}), "");
  floor.NoteAccepted(0);
  EXPECT_EQ(Explain(floor, 1, {3, 7}, {3.5, 7}), "");
}

// Three relus of four numbers each. One recorded result is off by a unit in the last place.
Recorded OneBitOff() {
  return Recorded(3, [](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({4});
    Floats result = {1, 2, 3, 4};
    if (step == 1) result[2] = std::nextafterf(3, 4);
    trace.Call("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({4}))})
        .Before(x, Floats{1, 2, 3, 4})
        .After("out", result);
  });
}

TEST(ReplayStandard, AcceptsWhatIsWithinAndStillCountsIt) {
  const Recorded recorded = OneBitOff();
  for (const Mode mode : {Mode::kEager, Mode::kCaptured}) {
    ReplayOptions options;
    options.mode = mode;
    EXPECT_EQ(recorded.Replay(options).differing, 1);
    options.standard = std::make_shared<const analyzer::metrics::Standard>(
        analyzer::metrics::Standard::Load("ascend"));
    const ReplayReport report = recorded.Replay(options);
    EXPECT_EQ(report.compared, 3);
    EXPECT_EQ(report.equal, 2);
    EXPECT_EQ(report.within, 1);
    EXPECT_EQ(report.differing, 0) << test::Explain(report);
    EXPECT_EQ(report.ExitCode(), 0);
  }
}

TEST(ReplayStandard, SaysWhichRuleAResultBreaks) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor x = trace.NewTensor({2});
    trace.Call("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({2}))})
        .Before(x, Floats{1, 2})
        .After("out", Floats{1, 2.5});
  });
  ReplayOptions options;
  options.standard = std::make_shared<const analyzer::metrics::Standard>(
      analyzer::metrics::Standard::Load("ascend"));
  const ReplayReport report = recorded.Replay(options);
  ASSERT_EQ(report.differing, 1);
  EXPECT_EQ(report.mismatches[0].reason, "max_rel_large 0.2 > 9.537e-07 (float32, copy)");
}

}  // namespace
}  // namespace acltape::replayer
