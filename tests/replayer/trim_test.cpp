// Trimmed traces: what is kept, what becomes a stored input, and that the result replays.
#include "replayer/reproducer/trim.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "analyzer/steps/steps.h"
#include "tests/replayer/small_programs.h"

namespace acltape::replayer {
namespace {

using namespace acltape::test;
using storage::Reader;

// Four steps of y = x + w, z = y + y, state += z; x is new in every step. Calls 3s + 1 to 3s + 3.
void WriteStep(TraceBuilder& trace, int step) {
  static Tensor w, state;
  static Floats sum;
  if (step == 0) {
    w = trace.NewTensor({4});
    state = trace.NewTensor({4});
    sum = Numbers(4, 99);
  }
  const Floats x = Numbers(4, step);
  const Tensor x_tensor = trace.NewTensor({4});
  const Tensor y = trace.NewTensor({4});
  const Tensor z = trace.NewTensor({4});
  Add(trace, x_tensor, w, y);
  trace.Before(x_tensor, x);
  if (step == 0) trace.Before(w, Numbers(4, 50));
  const Floats y_values = Sum(x, Numbers(4, 50));
  trace.After("out", y_values);
  Add(trace, y, y, z);
  const Floats z_values = Sum(y_values, y_values);
  trace.After("out", z_values);
  trace.Call("aten::add_.Tensor", {Written("self", state), In("other", z), Int("alpha", 1)},
             {Out("out", state)});
  if (step == 0) trace.Before(state, sum);
  sum = Sum(sum, z_values);
  trace.After("out", sum);
}

class TrimTest : public ::testing::Test {
 protected:
  TrimTest() : recorded_(4, WriteStep), small_("trimmed") {}

  reproducer::TrimOptions Options(std::vector<int64_t> calls,
                                  std::vector<int64_t> steps = {}) const {
    reproducer::TrimOptions options;
    options.calls = std::move(calls);
    options.steps = std::move(steps);
    options.output = small_.path();
    options.selection = "of the test";
    return options;
  }
  reproducer::TrimReport Run(const reproducer::TrimOptions& options) const {
    const Reader reader(recorded_.path());
    return reproducer::Trim(reader, options);
  }
  static std::vector<int64_t> CallsOf(const Reader& reader) {
    std::vector<int64_t> calls;
    for (const storage::Call& call : reader.Calls(true)) calls.push_back(call.call_id);
    return calls;
  }
  // The inputs of a plan as "call:buffer".
  std::vector<std::string> Inputs(const reproducer::TrimOptions& options) const {
    const Reader reader(recorded_.path());
    analyzer::Program program = analyzer::LoadProgram(reader);
    std::vector<std::string> text;
    for (const reproducer::TrimPlan::Input& input : reproducer::PlanTrim(program, options).inputs) {
      text.push_back(std::to_string(program.leaves[input.leaf].call.call_id) + ":" +
                     std::to_string(input.buffer_id));
    }
    return text;
  }

  Recorded recorded_;
  TemporaryTrace small_;
};

// Buffers: 1 w, 2 state, then x, y, z of each step.
TEST_F(TrimTest, WhatCallsLeftOutHaveWrittenBecomesAnInput) {
  EXPECT_EQ(Inputs(Options({5})), (std::vector<std::string>{"5:7"}));            // y of step 1
  EXPECT_EQ(Inputs(Options({6})), (std::vector<std::string>{"6:2", "6:8"}));     // state and z
  EXPECT_EQ(Inputs(Options({5, 6})), (std::vector<std::string>{"5:7", "6:2"}));  // z is computed
  EXPECT_EQ(Inputs(Options({4})), (std::vector<std::string>{"4:1"}));  // x is recorded there
  EXPECT_EQ(Inputs(Options({6, 9})),
            (std::vector<std::string>{"6:2", "6:8", "9:11"}));  // state is carried from 6 to 9
  EXPECT_EQ(Inputs(Options({6, 12})),
            (std::vector<std::string>{"6:2", "6:8", "12:2", "12:14"}));  // 9 wrote in between
}

TEST_F(TrimTest, TheSameCallsOfOtherStepsReplayCaptured) {
  const reproducer::TrimReport report = Run(Options({6}, {2, 3}));
  EXPECT_EQ(report.refusal, "");
  EXPECT_EQ(report.calls, 3);
  EXPECT_EQ(report.calls_before, 12);
  EXPECT_EQ(report.steps, 3);
  EXPECT_EQ(report.compared, 3);
  EXPECT_TRUE(report.captured) << report.captured_note;
  const Reader small(small_.path());
  EXPECT_EQ(CallsOf(small), (std::vector<int64_t>{6, 9, 12}));
  EXPECT_EQ(small.Steps().size(), 3u);
  EXPECT_EQ(small.Meta("trimmed_calls"), "3 of 12");
  EXPECT_EQ(small.Meta("trimmed_selection"), "of the test");
  EXPECT_FALSE(std::filesystem::exists(small_.path() + ".partial"));
}

TEST_F(TrimTest, OneStepReplaysEagerlyAndSaysWhyNotCaptured) {
  const reproducer::TrimReport report = Run(Options({5}));
  EXPECT_EQ(report.refusal, "");
  EXPECT_FALSE(report.captured);
  EXPECT_NE(report.captured_note.find("one step only"), std::string::npos) << report.captured_note;
}

TEST_F(TrimTest, ProducersAreKeptForAsManyGenerationsAsAsked) {
  reproducer::TrimOptions options = Options({6});
  options.producers = 1;  // z of call 5, and the state of call 3
  EXPECT_EQ(Inputs(options), (std::vector<std::string>{"3:5", "5:7"}));
  EXPECT_EQ(Run(options).calls, 3);
}

TEST_F(TrimTest, ATrimmedTraceCanBeTrimmedAgain) {
  ASSERT_EQ(Run(Options({4, 5, 6}, {2, 3})).refusal, "");
  const Reader reader(small_.path());
  TemporaryTrace smaller("trimmed-twice");
  reproducer::TrimOptions options = Options({9}, {3});
  options.output = smaller.path();
  const reproducer::TrimReport report = reproducer::Trim(reader, options);
  EXPECT_EQ(report.refusal, "");
  EXPECT_TRUE(report.captured) << report.captured_note;
  EXPECT_EQ(CallsOf(Reader(smaller.path())), (std::vector<int64_t>{9, 12}));
}

TEST_F(TrimTest, CallsAndStepsThatAreNotThereAreRefused) {
  const auto sentence = [&](const reproducer::TrimOptions& options) -> std::string {
    try {
      Run(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(sentence(Options({99})).find("no operator call 99"), std::string::npos);
  EXPECT_NE(sentence(Options({5}, {17})).find("no step 17"), std::string::npos);
  EXPECT_NE(sentence(Options({})).find("picks no call"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(small_.path()));
}

// A recording whose second result is not what its inputs give.
TEST(TrimProof, AResultThatDoesNotReplayIsRefusedUnlessTheWholeTraceDiffersToo) {
  Recorded recorded([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({4}), b = trace.NewTensor({4}), c = trace.NewTensor({4});
    Add(trace, a, a, b);
    trace.Before(a, Numbers(4, 1));
    trace.After("out", Sum(Numbers(4, 1), Numbers(4, 1)));
    Add(trace, b, b, c);
    trace.After("out", Floats{1, 2, 3, 4.5});
  });
  TemporaryTrace small("trim-different");
  const Reader reader(recorded.path());
  reproducer::TrimOptions options;
  options.calls = {2};
  options.output = small.path();
  const reproducer::TrimReport refused = reproducer::Trim(reader, options);
  EXPECT_NE(refused.refusal.find("call 2 aten::add.Tensor"), std::string::npos) << refused.refusal;
  EXPECT_FALSE(std::filesystem::exists(small.path()));
  EXPECT_FALSE(std::filesystem::exists(small.path() + ".partial"));
  options.accept_different = true;
  EXPECT_EQ(reproducer::Trim(reader, options).refusal, "");
  EXPECT_TRUE(std::filesystem::exists(small.path()));
  options.accept_different = false;
  options.calls = {1};
  options.overwrite = true;
  EXPECT_EQ(reproducer::Trim(reader, options).refusal, "");
}

// Column 1 of a matrix is written by a call that is left out, column 0 by one that is kept: the
// input that brings column 1 must not undo column 0.
TEST(TrimProof, StridedResultsAreLaidOverEachOther) {
  Recorded recorded([](TraceBuilder& trace) {
    const Tensor whole = trace.NewTensor({3, 2});
    const Tensor column[] = {TraceBuilder::View(whole, {3}, {2}, 0),
                             TraceBuilder::View(whole, {3}, {2}, 1)};
    const Tensor x = trace.NewTensor({3});
    const Tensor out = trace.NewTensor({3, 2});
    for (int c = 0; c < 2; ++c) {
      Add(trace, x, x, column[c]);
      if (c == 0) trace.Before(x, Floats{1, 2, 3});
      trace.After("out", Floats{2, 4, 6});
    }
    trace.Call("aten::relu", {In("self", whole)}, {Out("out", out)});
    trace.After("out", Floats{2, 2, 4, 4, 6, 6});
  });
  TemporaryTrace small("trim-strided");
  const Reader reader(recorded.path());
  reproducer::TrimOptions options;
  options.calls = {1, 3};
  options.output = small.path();
  const reproducer::TrimReport report = reproducer::Trim(reader, options);
  EXPECT_EQ(report.refusal, "");
  EXPECT_EQ(report.inputs, 1);
  EXPECT_EQ(report.compared, 2);
}

// The input of the kept call is its whole buffer, of which the call reads the second half.
TEST(TrimProof, AnInputReadThroughAViewReplacesItsWholeBuffer) {
  Recorded recorded([](TraceBuilder& trace) {
    const Tensor x = trace.NewTensor({4}), whole = trace.NewTensor({4}), out = trace.NewTensor({2});
    const Tensor half = TraceBuilder::View(whole, {2}, {1}, 2);
    Add(trace, x, x, whole);
    trace.Before(x, Floats{1, 2, 3, 4});
    trace.After("out", Floats{2, 4, 6, 8});
    Add(trace, half, half, out);
    trace.After("out", Floats{12, 16});
  });
  TemporaryTrace small("trim-view");
  const Reader reader(recorded.path());
  reproducer::TrimOptions options;
  options.calls = {2};
  options.output = small.path();
  const reproducer::TrimReport report = reproducer::Trim(reader, options);
  EXPECT_EQ(report.refusal, "");
  EXPECT_EQ(report.input_bytes, 16);
  EXPECT_EQ(report.compared, 1);
  const std::vector<storage::Snapshot> inputs = Reader(small.path()).Snapshots();
  ASSERT_FALSE(inputs.empty());
  EXPECT_EQ(inputs[0].bytes, 16);
}

// Two of three results were not kept.
TEST(TrimProof, TooFewResultsProveNothing) {
  Recorded recorded([](TraceBuilder& trace) {
    Tensor from = trace.NewTensor({4});
    Floats values = Numbers(4, 1);
    for (int call = 0; call < 3; ++call) {
      const Tensor to = trace.NewTensor({4});
      Add(trace, from, from, to);
      if (call == 0) trace.Before(from, values);
      values = Sum(values, values);
      if (call == 2) trace.After("out", values);
      from = to;
    }
  });
  const auto trim = [&](std::vector<int64_t> calls) {
    TemporaryTrace small("trim-unproven");
    const Reader reader(recorded.path());
    reproducer::TrimOptions options;
    options.calls = std::move(calls);
    options.output = small.path();
    return reproducer::Trim(reader, options);
  };
  const reproducer::TrimReport report = trim({1, 2, 3});
  EXPECT_EQ(report.refusal, "");
  EXPECT_EQ(report.kernels, 3);
  EXPECT_EQ(report.with_result, 1);
  EXPECT_EQ(report.compared, 1);
  EXPECT_TRUE(report.Unproven());
  EXPECT_TRUE(reproducer::TrimReport().Unproven());
}

TEST(TrimProof, ATraceWithoutTheValuesSaysHowToRecordThem) {
  Recorded recorded([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({4}), b = trace.NewTensor({4}), c = trace.NewTensor({4});
    Add(trace, a, a, b);
    trace.Before(a, Numbers(4, 1));
    trace.After("out", Sum(Numbers(4, 1), Numbers(4, 1)), /*payload=*/false);
    Add(trace, b, b, c);
  });
  TemporaryTrace small("trim-without");
  const Reader reader(recorded.path());
  reproducer::TrimOptions options;
  options.calls = {2};
  options.output = small.path();
  try {
    reproducer::Trim(reader, options);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTrace);
    EXPECT_NE(std::string(error.what()).find("call 1 aten::add.Tensor left in buffer 2"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what())
                  .find("--payload all, or keep the calls that lead to it with --with-producers"),
              std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::exists(small.path() + ".partial"));
}

}  // namespace
}  // namespace acltape::replayer
