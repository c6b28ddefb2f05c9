// Whatever part of a step runs captured, its results are the recorded ones.
#include <gtest/gtest.h>

#include <random>

#include "replayer/script/step_coverage.h"
#include "replayer/values/recorded_content.h"
#include "tests/replayer/mixed_step_fixture.h"

namespace acltape::replayer {
namespace {

using test::MixedStepRun;
using test::Recorded;

struct Program {
  const char* name;
  Recorded (*record)();
  bool with_plan = false;  // two streams
};

const Program kPrograms[] = {
    {"diamond", [] { return test::Diamond(3, [](int) { return 3.0f; }); }},
    {"diamond, argument varies",
     [] { return test::Diamond(4, [](int step) { return static_cast<float>(step + 1); }); }},
    {"diamond on two streams",
     [] { return test::Diamond(4, [](int step) { return static_cast<float>(step + 1); }); }, true},
    {"training", [] { return test::Training(4); }},
    {"cache", [] { return test::Cache(6); }},
    {"chain", [] { return test::Chain(3, 24); }},
    {"reduced", [] { return test::Reduced(3); }},
};

class MixedStepOf : public testing::TestWithParam<Program> {
 protected:
  // Runs `body` for the program with its step.
  void With(const std::function<void(MixedStepRun&, const script::MixedStep&)>& body) {
    const Recorded recorded = GetParam().record();
    const analyzer::plan::Plan plan = test::DiamondPlan(0, /*updates=*/true);
    MixedStepRun run(recorded, GetParam().with_plan ? &plan : nullptr);
    run.With([&](const script::MixedStep& step) {
      plan_ = step.plan();
      body(run, step);
    });
  }
  // All steps after the first, with the graphs of the first.
  script::MixedStepOptions Options(const script::MixedStep& step) const {
    script::MixedStepOptions options;
    options.plan = plan_;
    options.run_matches.clear();
    for (size_t m = 1; m < step.step_class().matches.size(); ++m) options.run_matches.push_back(m);
    return options;
  }
  const analyzer::plan::Plan* plan_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Programs, MixedStepOf, testing::ValuesIn(kPrograms), [](const auto& own) {
  std::string name;
  for (const char letter : std::string(own.param.name)) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) name += letter;
  }
  return name;
});

TEST_P(MixedStepOf, IsRecordedRight) {
  const ReplayReport report = GetParam().record().Replay(Mode::kCaptured);
  EXPECT_EQ(report.ExitCode(), 0) << test::Explain(report);
}

TEST_P(MixedStepOf, WithNothingCapturedGivesTheRecordedResults) {
  With([&](MixedStepRun& run, const script::MixedStep& step) {
    script::MixedStepOptions options = Options(step);
    options.captured.assign(step.places(), false);
    EXPECT_EQ(run.Differs(step, options), "");
    EXPECT_GT(run.compared(), 0u);
    EXPECT_EQ(step.Build(options).graphs, 0);
  });
}

TEST_P(MixedStepOf, WithEverythingCapturedGivesTheRecordedResults) {
  With([&](MixedStepRun& run, const script::MixedStep& step) {
    for (const script::Watch watch : {script::Watch::kStepOutputs, script::Watch::kEveryResult}) {
      script::MixedStepOptions options = Options(step);
      options.watch = watch;
      EXPECT_EQ(run.Differs(step, options), "");
      EXPECT_GT(step.Build(options).graphs, 0);
    }
  });
}

TEST_P(MixedStepOf, WithEveryRandomSubsetCapturedGivesTheRecordedResults) {
  With([&](MixedStepRun& run, const script::MixedStep& step) {
    std::mt19937 random(7);
    for (int i = 0; i < 50; ++i) {
      script::MixedStepOptions options = Options(step);
      options.captured.assign(step.places(), false);
      for (const size_t place : step.capturable()) options.captured[place] = random() % 2 == 0;
      options.watch = i % 2 == 0 ? script::Watch::kStepOutputs : script::Watch::kEveryResult;
      options.remedies.own_memory = i % 5 == 0;
      options.remedies.one_stream = i % 7 == 0;
      options.remedies.recapture = i % 3 == 0;
      options.remedies.step_arguments = i % 4 == 0;
      options.remedies.own_workspace = i % 6 == 0;
      options.stress.poison_gaps = i % 2 == 1;
      options.stress.relocate_inputs = i % 4 == 1;
      options.stress.churn_bytes = i % 10 == 0 ? 1 << 20 : 0;
      EXPECT_EQ(run.Differs(step, options), "") << "subset " << i;
    }
  });
}

TEST_P(MixedStepOf, WithTheTasksAfterAPrefixDisabledGivesTheRecordedResults) {
  With([&](MixedStepRun& run, const script::MixedStep& step) {
    for (size_t count = 0; count <= step.capturable().size(); ++count) {
      script::MixedStepOptions options = Options(step);
      options.disable_tasks = true;
      options.captured.assign(step.places(), false);
      for (size_t i = 0; i < count; ++i) options.captured[step.capturable()[i]] = true;
      EXPECT_EQ(run.Differs(step, options), "") << "the first " << count;
      // Whatever is left out was captured: the number of graphs is that of all calls.
      EXPECT_GT(step.Build(options).graphs, 0) << count;
    }
  });
}

TEST_P(MixedStepOf, CallsThatAreNotExecutedHaveTheirRecordedResults) {
  With([&](MixedStepRun& run, const script::MixedStep& step) {
    std::mt19937 random(11);
    for (int i = 0; i < 10; ++i) {
      script::MixedStepOptions options = Options(step);
      options.executed.assign(step.places(), true);
      for (const size_t place : step.capturable()) options.executed[place] = random() % 3 != 0;
      EXPECT_EQ(run.Differs(step, options), "") << "subset " << i;
    }
  });
}

TEST_P(MixedStepOf, EveryOrderOfStepsGivesTheResultsOfEach) {
  With([&](MixedStepRun& run, const script::MixedStep& step) {
    script::MixedStepOptions options = Options(step);
    options.capture_match = 1;
    options.run_matches = {0, 1, 0, 2, 1};
    EXPECT_EQ(run.Differs(step, options), "");
    EXPECT_EQ(run.observed().size(), 5u);
  });
}

TEST(MixedStep, RefusesWhatItCannotExpress) {
  const Recorded recorded = test::Chain(3, 6);
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    const auto refusal = [&](const std::function<void(script::MixedStepOptions&)>& change) {
      script::MixedStepOptions options;
      change(options);
      try {
        step.Build(options);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kUsage);
        return std::string(error.what());
      }
      return std::string("nothing refused");
    };
    EXPECT_EQ(refusal([](script::MixedStepOptions& options) { options.run_matches = {3}; }),
              "step number 3 of the class was asked for, which has 3 steps");
    EXPECT_EQ(refusal([](script::MixedStepOptions& options) { options.captured = {true}; }),
              "a set of calls has 1 places, the step 6");
    EXPECT_EQ(refusal([](script::MixedStepOptions& options) {
                options.disable_tasks = true;
                options.captured = {true, false, true, false, false, false};
              }),
              "the variant that disables tasks runs the first calls of a region captured; call 3 "
              "aten::add.Tensor is captured after one that is not");
    EXPECT_THROW(step.PlaceOf(999), Error);
    EXPECT_EQ(step.PlaceOf(8), step.PlaceOf(2)) << "of any step";
  });
}

TEST(MixedStep, OfASingleStepIsRefused) {
  const Recorded recorded = test::Chain(1, 3);
  MixedStepRun run(recorded);
  EXPECT_THROW(run.With([](const script::MixedStep&) {}), Error);
}

TEST(MixedStep, ComparesWhatACollectiveIsGiven) {
  const Recorded recorded = test::Reduced(3);
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    script::MixedStepOptions options;
    options.run_matches = {1, 2};
    EXPECT_EQ(run.Differs(step, options), "");
    EXPECT_EQ(run.compared(), 4u);  // the sum and the last result of each step
    const analyzer::Coverage coverage = script::CoverageOf(step, {}, step.Build(options));
    EXPECT_EQ(coverage.covered, 6);
    EXPECT_EQ(coverage.computed, 6);
    options.faults = {script::ParseFault("wrong_bits@2")};
    EXPECT_NE(run.Differs(step, options), "");
  });
}

TEST(MixedStep, WhatACollectiveGaveTellsNothingOfWhatItWasGiven) {
  const Recorded recorded = test::Reduced(3);
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    script::MixedStepOptions options;
    const auto last = [](const ScriptOutput& output) { return output.call_id % 4 == 0; };
    const analyzer::Coverage coverage = script::CoverageOf(step, {}, step.Build(options), last);
    EXPECT_EQ(coverage.covered, 1);
    EXPECT_EQ(coverage.computed, 3);
  });
}

TEST(MixedStep, NeedsTheResultsThatTheStateIsMadeOf) {
  test::Tensor state;
  const Recorded recorded(3, [=](test::TraceBuilder& trace, int step) mutable {
    if (step == 0) state = trace.NewTensor({4});
    trace.Call("aten::mul_.Scalar", {test::Written("self", state), test::Real("other", 2)});
    if (step == 0) trace.Before(state, test::Numbers(4, 1));
  });
  MixedStepRun run(recorded);
  try {
    run.With([](const script::MixedStep&) {});
    FAIL() << "a state that was not recorded was made up";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTrace);
    const std::string text = error.what();
    EXPECT_NE(text.find("needs what call 1 aten::mul_"), std::string::npos) << text;
    EXPECT_NE(text.find("--payload all"), std::string::npos) << text;
  }
}

TEST(MixedStep, OutputsAreWhatOutlivesTheStepOrEveryResult) {
  const Recorded recorded = test::Training(3);
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    script::MixedStepOptions options;
    EXPECT_EQ(step.Build(options).outputs.size(), 3u);  // weight, momentum, and what the host reads
    options.watch = script::Watch::kEveryResult;
    EXPECT_EQ(step.Build(options).outputs.size(), 6u);
  });
}

TEST(MixedStep, WhatTheHostReadsIsAnOutput) {
  const Recorded recorded(3, [](test::TraceBuilder& trace, int step) {
    const test::Tensor x = trace.NewTensor({1});
    const test::Tensor y = trace.NewTensor({1});
    const test::Floats in = {static_cast<float>(step + 1)};
    trace.Call("aten::relu", {test::In("self", x)}, {test::Out("out", y)})
        .Before(x, in)
        .After("out", in);
    trace.Call("aten::_local_scalar_dense", {test::In("self", y)},
               {test::Real("out", in[0], storage::Direction::kOut)});
  });
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    script::MixedStepOptions options;
    ASSERT_EQ(step.Build(options).outputs.size(), 1u);
    EXPECT_EQ(run.Differs(step, options), "");
    options.faults = {script::ParseFault("wrong_bits@1")};
    EXPECT_NE(run.Differs(step, options), "");
  });
}

TEST(MixedStep, WhatTheHostReadsOfAResultIsAnOutputAndNotTheRest) {
  const Recorded recorded(3, [](test::TraceBuilder& trace, int step) {
    const test::Tensor x = trace.NewTensor({2});
    const test::Tensor y = trace.NewTensor({2});
    const test::Floats in = {static_cast<float>(step + 1), 7};
    trace.Call("aten::relu", {test::In("self", x)}, {test::Out("out", y)})
        .Before(x, in)
        .After("out", in);
    test::Tensor first = y;
    first.layout.shape = {};
    first.layout.strides = {};
    trace.Call("aten::_local_scalar_dense", {test::In("self", first)},
               {test::Real("out", in[0], storage::Direction::kOut)});
  });
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    const std::vector<ScriptOutput> outputs = step.Build({}).outputs;
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].layout.ElementCount(), 1);
    EXPECT_EQ(script::CoverageOf(step, {}, step.Build({})).covered, 1);
  });
}

TEST(RecordedContent, IsWhatEarlierLeavesLeft) {
  const Recorded recorded = test::Cache(3);
  MixedStepRun run(recorded);
  const analyzer::Program& program = run.session().program();
  // The cache before the second step: its first content with the first step's column.
  const analyzer::Leaf& write = program.leaves[program.work.steps[1].first];
  const int64_t cache = program.uses[write.index].writes[0].tensor.buffer_id;
  test::Floats expected = test::Numbers(8, 7);
  const test::Floats column = test::Numbers(4, 20);
  for (int i = 0; i < 4; ++i) expected[2 * i] = column[i];
  const auto floats = [](const std::vector<uint8_t>& content) {
    test::Floats values(content.size() / sizeof(float));
    std::memcpy(values.data(), content.data(), content.size());
    return values;
  };
  // From the contents of a replay and straight from the trace; a part of it, too.
  RecordedContent of_replay(program, &run.session().contents());
  RecordedContent of_trace(program);
  for (RecordedContent* recorded_content : {&of_replay, &of_trace}) {
    EXPECT_EQ(floats(recorded_content->Before(cache, {0, 32}, write.index)), expected);
    EXPECT_EQ(floats(recorded_content->Before(cache, {8, 16}, write.index)),
              test::Floats(expected.begin() + 2, expected.begin() + 4));
  }
}

}  // namespace
}  // namespace acltape::replayer
