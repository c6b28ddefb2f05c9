// How the steps of an engine used its graphs, in traces written by hand.
#include "analyzer/lint/engine_batches.h"

#include <gtest/gtest.h>

#include "analyzer/calls/level.h"
#include "meaning/engine_step.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using meaning::EngineForwardOf;
using meaning::EngineStepFoundBy;
using meaning::EngineStepOf;
using meaning::EngineStepWords;
using test::AclTraceBuilder;
using test::In;
using test::Out;
using test::TemporaryTrace;
using test::Tensor;

TEST(EngineStep, NamesSayWhatWasExecuted) {
  const auto words = [](const char* name) { return EngineStepWords(*EngineStepOf(name)); };
  EXPECT_EQ(words("vllm.step prefill=22 decode=0 requests=3"), "prefill of 22 tokens, 3 requests");
  EXPECT_EQ(words("vllm.step prefill=0 decode=1 requests=1"), "decode of 1 token, 1 request");
  EXPECT_EQ(words("vllm.step prefill=7 decode=2 requests=3"),
            "prefill of 7 tokens and decode of 2, 3 requests");
  EXPECT_EQ(words("vllm.step"), "step of unknown size");
  EXPECT_EQ(EngineStepOf("vllm.step prefill=-1 decode=x requests=3")->Kind(), "step");
  EXPECT_FALSE(EngineStepOf("vllm.stepper prefill=1"));
  EXPECT_EQ(EngineStepFoundBy("range:vllm.step prefill=4 decode=1 requests=2")->tokens(), 5);
  EXPECT_FALSE(EngineStepFoundBy("period"));
  const auto forward = EngineForwardOf("vllm.forward rows=4 graph=FULL");
  EXPECT_EQ(forward->rows, 4);
  EXPECT_EQ(forward->graph, "FULL");
  EXPECT_EQ(EngineForwardOf("vllm.forward")->rows, -1);
}

class EngineBatchesTest : public testing::Test {
 protected:
  EngineBatchesTest() : file_("engine_batches"), trace(file_.path()) {
    main = trace.NewStream();
    input = trace.Device({4});
    output = trace.Device({4});
  }

  // Runs `work` in a range of this name.
  template <typename Work>
  void Range(const std::string& name, Work&& work) {
    const int64_t first = trace.last_call() + 1;
    const int64_t around = scope_;
    const int64_t scope = scope_ = trace.writer().InternScope(around, "user", name);
    work();
    scope_ = around;
    trace.writer().AddScopeRange(scope, 1, first, trace.last_call(), 0, 0);
    if (EngineStepOf(name)) {
      trace.writer().AddStep({steps_++, first, trace.last_call(), "range:" + name});
    }
  }
  void Relu() { trace.Op("aclnnRelu", main, {In("self", input), Out("out", output)}); }
  int64_t Capture() {
    trace.BeginCapture(main);
    Relu();
    return trace.EndCapture(main);
  }

  lint::EngineUse Run() {
    trace.Finish();
    reader_ = std::make_unique<storage::Reader>(file_.path());
    work_ = LoadWork(*reader_, storage::Level::kAcl);
    return lint::FindEngineUse(work_, lint::FindCaptures(work_));
  }

  TemporaryTrace file_;
  AclTraceBuilder trace;
  int64_t main;
  Tensor input, output;
  int64_t steps_ = 0;
  int64_t scope_ = 0;  // the range that is open
  std::unique_ptr<storage::Reader> reader_;
  Work work_;
};

TEST_F(EngineBatchesTest, AProgramWithoutAnEngineHasNothing) {
  trace.Execute(Capture(), main);
  const lint::EngineUse use = Run();
  EXPECT_TRUE(use.steps.empty());
  EXPECT_TRUE(use.batches.empty());
}

TEST_F(EngineBatchesTest, SizesAreUsedWithPaddingOrNeverAndAPrefillIsEager) {
  int64_t of_four = 0;
  Range("vllm.forward rows=4 graph=FULL", [&] { of_four = Capture(); });
  Range("vllm.forward rows=1 graph=FULL", [&] { Capture(); });
  trace.Execute(of_four, main);
  Range("vllm.step prefill=22 decode=0 requests=3",
        [&] { Range("vllm.forward rows=22 graph=NONE", [&] { Relu(); }); });
  for (int i = 0; i < 2; ++i) {
    Range("vllm.step prefill=0 decode=3 requests=3",
          [&] { Range("vllm.forward rows=4 graph=FULL", [&] { trace.Execute(of_four, main); }); });
  }
  const lint::EngineUse use = Run();

  ASSERT_EQ(use.batches.size(), 2u);
  EXPECT_EQ(use.batches[0].rows, 1);
  EXPECT_EQ(use.batches[0].graphs, 1);
  EXPECT_EQ(use.batches[0].steps, 0);
  EXPECT_EQ(use.batches[1].rows, 4);
  EXPECT_EQ(use.batches[1].mode, "FULL");
  EXPECT_EQ(use.batches[1].steps, 2);
  EXPECT_EQ(use.batches[1].executions, 2);
  EXPECT_EQ(use.batches[1].executions_outside, 1);
  EXPECT_EQ(use.batches[1].tokens, 6);
  EXPECT_EQ(use.batches[1].padding, 2);

  ASSERT_EQ(use.steps.size(), 2u);
  EXPECT_EQ(use.steps[0].kind, "prefill");
  EXPECT_EQ(use.steps[0].rows, 22);
  EXPECT_EQ(use.steps[0].eager, 1);
  EXPECT_EQ(use.steps[0].executions, 0);
  EXPECT_EQ(use.steps[1].kind, "decode");
  EXPECT_EQ(use.steps[1].first_step, 1);
  EXPECT_EQ(use.steps[1].steps, 2);
  EXPECT_EQ(use.steps[1].eager, 0);
  EXPECT_EQ(use.steps[1].padding, 2);
}

TEST_F(EngineBatchesTest, WhatIsNotKnownIsNoNumber) {
  int64_t graph = 0;
  Range("vllm.forward", [&] { graph = Capture(); });
  Range("vllm.step", [&] { trace.Execute(graph, main); });
  const lint::EngineUse use = Run();
  ASSERT_EQ(use.batches.size(), 1u);
  EXPECT_EQ(use.batches[0].rows, -1);
  EXPECT_EQ(use.batches[0].padding, -1);
  EXPECT_EQ(use.batches[0].executions, 1);
  ASSERT_EQ(use.steps.size(), 1u);
  EXPECT_EQ(use.steps[0].tokens, -1);
}

}  // namespace
}  // namespace acltape::analyzer
