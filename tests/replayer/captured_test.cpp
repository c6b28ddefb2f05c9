#include <gtest/gtest.h>

#include "tests/replayer/step_programs.h"

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
using test::Written;

// relu(x + weight) with a fresh x in every step, which is read back.
Recorded FreshInputs(bool results = true) {
  Tensor weight;
  return Recorded(4, [=](TraceBuilder& trace, int step) mutable {
    const bool first = step == 0;
    if (first) weight = trace.NewTensor({4});
    const Tensor x = trace.NewTensor({4});
    const Tensor y = trace.NewTensor({4});
    const Tensor z = trace.NewTensor({4});
    const Floats sum = Sum(Numbers(4, step), Numbers(4, 99));
    Add(trace, x, weight, y);
    trace.Before(x, Numbers(4, step));
    if (first) trace.Before(weight, Numbers(4, 99));
    if (results) trace.After("out", sum);
    trace.Call("aten::relu", {In("self", y)}, {Out("out", z)});
    if (results) trace.After("out", test::Relu(sum));
    const Tensor element = trace.View(z, {}, {}, 1);
    trace.Call("aten::select.int", {In("self", z)}, {Out("out", element)});
    trace.Call("aten::_local_scalar_dense", {In("self", element)},
               {Real("out", test::Relu(sum)[1], storage::Direction::kOut)});
  });
}

TEST(CapturedReplay, FreshInputsAreCopiedIntoTheCapturedAddresses) {
  const ReplayReport report = FreshInputs().Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.compared, 4 * 3);
  EXPECT_EQ(report.equal, report.compared);
  EXPECT_EQ(report.capture.captured_steps, 4);
  EXPECT_EQ(report.capture.eager_steps, 0);
  EXPECT_EQ(report.capture.moving_inputs, 1);
  EXPECT_EQ(report.capture.copies_per_step, 1);
  EXPECT_EQ(report.capture.copy_bytes_per_step, 16);
  ASSERT_EQ(report.capture.regions.size(), 2u);
  EXPECT_TRUE(report.capture.regions[0].captured);
  EXPECT_EQ(report.capture.regions[0].tasks, 2);
  EXPECT_EQ(report.capture.regions[1].reason, "host read");
}

TEST(CapturedReplay, WithoutRecordedResultsItIsComparedWithAnEagerReplay) {
  const ReplayReport report = FreshInputs(/*results=*/false).Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.compared, 4 * 3);
  EXPECT_EQ(report.not_comparable, 0);
}

TEST(CapturedReplay, SyntheticValuesProveEagerAgainstCaptured) {
  ReplayOptions options;
  options.mode = Mode::kCaptured;
  options.data = Data::kSynthesised;
  const ReplayReport report = FreshInputs(/*results=*/false).Replay(options);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.compared, 4 * 2);  // host reads have no recorded partner
}

TEST(CapturedReplay, OneInputWithEqualContentInAllStepsIsUploadedOnce) {
  const Recorded recorded(3, [](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({4});
    const Tensor number = trace.NewTensor({});  // a Python number, fresh but equal each time
    const Tensor y = trace.NewTensor({4});
    trace.Call("aten::mul.Tensor", {In("self", x), In("other", number)}, {Out("out", y)})
        .Before(x, Numbers(4, step))
        .Before(number, Floats{2})
        .After("out", test::Product(Numbers(4, step), {2}));
  });
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.capture.moving_inputs, 2);
  EXPECT_EQ(report.capture.copies_per_step, 1);
  EXPECT_EQ(report.capture.copy_bytes_per_step, 16);
}

TEST(CapturedReplay, ViewsAtRisingOffsetsOfOneBufferAreCopiedOnTheDevice) {
  Tensor images;
  const Recorded recorded(3, [=](TraceBuilder& trace, int step) mutable {
    if (step == 0) images = trace.NewTensor({3, 4});
    const Floats all = Numbers(12, 5);
    const Tensor image = trace.View(images, {4}, {1}, 4 * step);
    trace.Call("aten::relu", {In("self", image)}, {Out("out", trace.NewTensor({4}))});
    if (step == 0) trace.Before(images, all);
    trace.After("out", test::Relu({all.begin() + 4 * step, all.begin() + 4 * step + 4}));
  });
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.compared, 3);
  EXPECT_EQ(report.capture.copies_per_step, 1);
}

TEST(CapturedReplay, StateChangedInPlaceIsThatOfTheProgramDespiteTheWarmUp) {
  Tensor state;
  Floats value;
  const Recorded recorded(4, [&](TraceBuilder& trace, int step) {
    if (step == 0) {
      state = trace.NewTensor({4});
      value = Numbers(4, 77);
    }
    const Tensor x = trace.NewTensor({4});
    trace.Call("aten::add_.Tensor", {Written("self", state), In("other", x), Int("alpha", 1)});
    trace.Before(x, Numbers(4, step));
    if (step == 0) trace.Before(state, value);
    value = Sum(value, Numbers(4, step));
    trace.After("self", value);
    trace.Call("aten::mul_.Scalar", {Written("self", state), Real("other", 2)});
    value = test::Product(value, {2});
    trace.After("self", value);
  });
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.compared, 8);  // the value that mul_ overwrites is compared too
}

// As weights that a collective gathers into memory which the backward of the step before still
// reads.
TEST(CapturedReplay, WhatComesInWithinAStepIsNotThereBeforeItDespiteTheWarmUp) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor memory[] = {trace.NewTensor({4}), trace.NewTensor({4})};
    Floats content[2];
    for (int i = 0; i < 2; ++i) {
      content[i] = test::Relu(Numbers(4, 60 + i));
      const Tensor source = trace.NewTensor({4});
      trace.Call("aten::relu", {In("self", source)}, {Out("out", memory[i])})
          .Before(source, Numbers(4, 60 + i))
          .After("out", content[i]);
    }
    for (int s = 0; s < 4; ++s) {
      storage::Step step;
      step.step = s;
      step.first_call = trace.last_call() + 1;
      const int own = s < 2 ? 0 : 1;  // the memory moves
      const Tensor x = trace.NewTensor({4});
      Add(trace, memory[own], x, trace.NewTensor({4}));
      trace.Before(x, Numbers(4, s)).After("out", Sum(content[own], Numbers(4, s)));
      content[own] = Numbers(4, 80 + s);
      Add(trace, memory[own], x, trace.NewTensor({4}));
      trace.Before(memory[own], content[own]).After("out", Sum(content[own], Numbers(4, s)));
      step.last_call = trace.last_call();
      step.found_by = "range:step";
      trace.writer().AddStep(step);
    }
  });
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.compared, 10);
  EXPECT_EQ(report.capture.captured_steps, 4);
}

TEST(CapturedReplay, AResultThatTheNextStepReadsMovesOn) {
  Tensor hidden;
  Floats value;
  const Recorded recorded(4, [&](TraceBuilder& trace, int step) {
    const bool first = step == 0;
    if (first) {
      hidden = trace.NewTensor({4});
      value = Numbers(4, 3);
    }
    const Tensor x = trace.NewTensor({4});
    const Tensor next = trace.NewTensor({4});
    Add(trace, hidden, x, next);
    trace.Before(x, Numbers(4, 40 + step));
    if (first) trace.Before(hidden, value);
    value = Sum(value, Numbers(4, 40 + step));
    trace.After("out", value);
    hidden = next;
  });
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.capture.captured_steps, 4);
}

TEST(CapturedReplay, ResultsOfAllStepsThatTheEndReadsAreKept) {
  std::vector<Tensor> kept;
  Floats all;
  const Recorded recorded([&](TraceBuilder& trace) {
    for (int s = 0; s < 3; ++s) {
      storage::Step step;
      step.step = s;
      step.first_call = trace.last_call() + 1;
      const Tensor x = trace.NewTensor({4});
      kept.push_back(trace.NewTensor({4}));
      trace.Call("aten::relu", {In("self", x)}, {Out("out", kept.back())})
          .Before(x, Numbers(4, s))
          .After("out", test::Relu(Numbers(4, s)));
      const Floats result = test::Relu(Numbers(4, s));
      all.insert(all.end(), result.begin(), result.end());
      step.last_call = trace.last_call();
      step.found_by = "range:step";
      trace.writer().AddStep(step);
    }
    trace
        .Call("aten::cat", {test::List("tensors", kept), Int("dim", 0)},
              {Out("out", trace.NewTensor({12}))})
        .After("out", all);
  });
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.compared, 4);
}

TEST(CapturedReplay, RandomLeavesFeedTheGraphWithTheirRecordedResults) {
  const Recorded recorded(3, [](TraceBuilder& trace, int step) {
    const Tensor noise = trace.NewTensor({4});
    const Tensor y = trace.NewTensor({4});
    trace.Call("aten::randn", {test::Ints("size", {4})}, {Out("out", noise)})
        .After("out", Numbers(4, step));
    trace.Call("aten::relu", {In("self", noise)}, {Out("out", y)})
        .After("out", test::Relu(Numbers(4, step)));
    // Noise drawn into a buffer that the step has used must not arrive too early.
    trace.Call("aten::normal_", {Written("self", noise), Real("mean", 0), Real("std", 1)})
        .After("self", Numbers(4, 50 + step));
    trace.Call("aten::relu", {In("self", noise)}, {Out("out", trace.NewTensor({4}))})
        .After("out", test::Relu(Numbers(4, 50 + step)));
  });
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.compared, 6);
  EXPECT_EQ(report.sources, 6);
  EXPECT_EQ(report.capture.regions.size(), 2u);
}

TEST(CapturedReplay, ASubstitutedLeafRunsBetweenTwoGraphs) {
  const Recorded recorded(2, [](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({2});
    const Tensor y = trace.NewTensor({2});
    const Tensor z = trace.NewTensor({2});
    trace.Call("aten::relu", {In("self", x)}, {Out("out", y)})
        .Before(x, Numbers(2, step))
        .After("out", test::Relu(Numbers(2, step)));
    trace.Call("aten::special_i1", {In("self", y)}, {Out("out", z)})
        .After("out", Numbers(2, 30 + step));
    trace.Call("aten::relu", {In("self", z)}, {Out("out", trace.NewTensor({2}))})
        .After("out", test::Relu(Numbers(2, 30 + step)));
  });
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.substituted, 2);
  ASSERT_EQ(report.capture.regions.size(), 3u);
  EXPECT_EQ(report.capture.regions[1].reason, "substituted by its recorded results");
}

TEST(CapturedReplay, IrregularStepsRunEagerlyWithTheReason) {
  const Recorded recorded(4, [](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({4});
    const Tensor y = trace.NewTensor({4});
    trace.Call(step == 0 ? "aten::neg" : "aten::relu", {In("self", x)}, {Out("out", y)})
        .Before(x, Numbers(4, step))
        .After("out",
               step == 0 ? test::Product(Numbers(4, step), {-1}) : test::Relu(Numbers(4, step)));
  });
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  EXPECT_EQ(report.compared, 4);
  EXPECT_EQ(report.capture.captured_steps, 3);
  ASSERT_EQ(report.capture.eager_reasons.size(), 1u);
  EXPECT_NE(report.capture.eager_reasons[0].find("call 1 aten::neg"), std::string::npos)
      << report.capture.eager_reasons[0];
}

TEST(CapturedReplay, AShapeThatGrowsIsRefusedWithTheLeafAndBothShapes) {
  const Recorded recorded(3, [](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({step + 1});
    trace.Call("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({step + 1}))})
        .Before(x, Numbers(step + 1, step))
        .After("out", test::Relu(Numbers(step + 1, step)));
  });
  EXPECT_EQ(recorded.Replay(Mode::kEager).ExitCode(), 0);
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 1);
  EXPECT_EQ(report.compared, 0);
  EXPECT_NE(report.refusal.find("call 1 aten::relu: argument self has shape [1] in step 0 and [2] "
                                "in step 1 (call 2)"),
            std::string::npos)
      << report.refusal;
  ASSERT_FALSE(report.notes.empty());
  EXPECT_EQ(report.notes.back().rule, "CAPTURE-SHAPE");
}

TEST(CapturedReplay, AScalarThatIsOnceAnIntegerAndOnceARealIsRefused) {
  const Recorded recorded(2, [](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({2});
    const float factor = step == 0 ? 1.0f : 2.5f;
    trace
        .Call("aten::mul.Scalar",
              {In("self", x), step == 0 ? Int("other", 1) : Real("other", factor)},
              {Out("out", trace.NewTensor({2}))})
        .Before(x, Numbers(2, step))
        .After("out", test::Product(Numbers(2, step), {factor}));
  });
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 1);
  EXPECT_NE(report.refusal.find("argument other has value 1 in step 0 and 2.5 in step 1"),
            std::string::npos)
      << report.refusal;
  EXPECT_EQ(report.notes.back().rule, "CAPTURE-VALUE");
}

TEST(CapturedReplay, AProgramWithoutStepsIsRefused) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor x = trace.NewTensor({2});
    trace.Call("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({2}))})
        .Before(x, Floats{1, -2})
        .After("out", Floats{1, 0});
  });
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 1);
  EXPECT_EQ(report.notes.back().rule, "CAPTURE-STEPS");
}

TEST(CapturedReplay, AWrongRecordedValueOfOneStepIsFoundInThatStepAlone) {
  const Recorded recorded(3, [](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({2});
    Floats result = test::Relu(Numbers(2, step));
    if (step == 1) result[1] += 1;
    trace.Call("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({2}))})
        .Before(x, Numbers(2, step))
        .After("out", result);
  });
  const ReplayReport report = recorded.Replay(Mode::kCaptured);
  ASSERT_EQ(report.mismatches.size(), 1u);
  EXPECT_EQ(report.mismatches[0].step, 1);
  EXPECT_EQ(report.mismatches[0].call_id, 2);
  EXPECT_EQ(report.mismatches[0].metrics.first_index, 1);
}

TEST(CapturedReplay, StepOutputsAreThoseThatNothingInTheStepConsumes) {
  ReplayOptions options;
  options.mode = Mode::kCaptured;
  options.outputs = Outputs::kStep;
  const ReplayReport report = FreshInputs().Replay(options);
  EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
  // The sum is consumed by relu; relu's result by the host read, which is compared.
  EXPECT_EQ(report.compared, 4);
}

TEST(CapturedReplay, StepOutputsAreWhatACollectiveIsGivenToo) {
  for (const Mode mode : {Mode::kEager, Mode::kCaptured}) {
    ReplayOptions options;
    options.mode = mode;
    options.outputs = Outputs::kStep;
    const ReplayReport report = test::Reduced(3).Replay(options);
    EXPECT_EQ(report.ExitCode(), 0) << Explain(report);
    EXPECT_EQ(report.compared, 6);  // the sum and the last result of each step
    EXPECT_EQ(report.coverage.covered, 9);
    EXPECT_EQ(report.coverage.computed, 9);
  }
}

}  // namespace
}  // namespace acltape::replayer
