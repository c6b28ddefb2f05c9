#include "analyzer/program/step_template.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "analyzer/steps/steps.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::In;
using test::Int;
using test::Out;
using test::Real;
using test::TemporaryTrace;
using test::Tensor;
using test::TraceBuilder;
using test::Written;

// A program of recorded steps: `write_step` is called for each.
class SteppedProgram {
 public:
  SteppedProgram(int steps, const std::function<void(TraceBuilder&, int)>& write_step)
      : file_("template") {
    {
      TraceBuilder trace(file_.path());
      for (int s = 0; s < steps; ++s) {
        storage::Step step;
        step.step = s;
        step.first_call = trace.last_call() + 1;
        write_step(trace, s);
        step.last_call = trace.last_call();
        step.found_by = "range:step";
        trace.writer().AddStep(step);
      }
      trace.Finish();
    }
    reader_ = std::make_unique<storage::Reader>(file_.path());
    program = LoadProgram(*reader_);
    classes = ClassifySteps(program);
  }
  std::string Difference(int64_t step) const {
    return DescribeDifference(program, classes.differences.at(step));
  }
  Program program;
  StepClasses classes;

 private:
  TemporaryTrace file_;
  std::unique_ptr<storage::Reader> reader_;
};

void Add(TraceBuilder& trace, const Tensor& a, const Tensor& b, const Tensor& out) {
  trace.Call("aten::add.Tensor", {In("self", a), In("other", b), Int("alpha", 1)},
             {Out("out", out)});
}

TEST(StepTemplate, FreshInputsMoveAndParametersStay) {
  Tensor weight;
  SteppedProgram stepped(3, [&](TraceBuilder& trace, int step) {
    if (step == 0) weight = trace.NewTensor({4});
    Add(trace, trace.NewTensor({4}), weight, trace.NewTensor({4}));
  });
  ASSERT_EQ(stepped.classes.classes.size(), 1u);
  const StepTemplate& step_class = stepped.classes.Largest();
  EXPECT_EQ(step_class.matches.size(), 3u);
  ASSERT_EQ(step_class.operands.size(), 2u);
  for (const Operand& operand : step_class.operands) {
    EXPECT_EQ(operand.moving, operand.buffer_id != weight.buffer);
    EXPECT_FALSE(operand.written);
  }
  EXPECT_EQ(step_class.internal.size(), 1u);
}

TEST(StepTemplate, ViewsOfOneBufferAtRisingOffsetsAreAMovingOperand) {
  Tensor images;
  SteppedProgram stepped(3, [&](TraceBuilder& trace, int step) {
    if (step == 0) images = trace.NewTensor({3, 4});
    const Tensor image = trace.View(images, {4}, {1}, 4 * step);
    Add(trace, image, image, trace.NewTensor({4}));
  });
  ASSERT_EQ(stepped.classes.classes.size(), 1u);
  const StepTemplate& step_class = stepped.classes.Largest();
  ASSERT_EQ(step_class.operands.size(), 1u);
  EXPECT_TRUE(step_class.operands[0].moving);
  EXPECT_EQ(step_class.matches[2].operands[0].buffer_id, images.buffer);
  EXPECT_EQ(step_class.matches[2].operands[0].first_byte, 32);
}

TEST(StepTemplate, ScalarsThatVaryPartStepsUnlessTheyMayVary) {
  SteppedProgram stepped(3, [&](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({4});
    Add(trace, x, x, trace.NewTensor({4}));
    trace.Call("aten::mul.Scalar", {In("self", x), Real("other", step == 1 ? 2 : 1)},
               {Out("out", trace.NewTensor({4}))});
  });
  EXPECT_EQ(stepped.classes.classes.size(), 2u);
  EXPECT_TRUE(stepped.classes.Largest().varying.empty());
  const StepClasses together = ClassifySteps(stepped.program, HostArguments::kVary);
  ASSERT_EQ(together.classes.size(), 1u);
  EXPECT_EQ(together.classes[0].matches.size(), 3u);
  EXPECT_EQ(together.classes[0].varying, (std::vector<VaryingArgument>{{1, 1}}));
  EXPECT_EQ(together.OfStep(2), &together.classes[0]);
  EXPECT_EQ(together.OfStep(3), nullptr);
}

TEST(StepTemplate, AScalarOfAnotherKindIsADifferenceEvenIfScalarsMayVary) {
  SteppedProgram stepped(2, [&](TraceBuilder& trace, int step) {
    trace.Call("aten::mul.Scalar",
               {In("self", trace.NewTensor({4})), step == 0 ? Int("other", 1) : Real("other", 1.5)},
               {Out("out", trace.NewTensor({4}))});
  });
  EXPECT_EQ(ClassifySteps(stepped.program, HostArguments::kVary).classes.size(), 2u);
}

TEST(StepTemplate, StateWrittenInPlaceIsOneWrittenStableOperand) {
  Tensor state;
  SteppedProgram stepped(2, [&](TraceBuilder& trace, int step) {
    if (step == 0) state = trace.NewTensor({4});
    trace.Call("aten::add_.Tensor",
               {Written("self", state), In("other", trace.NewTensor({4})), Int("alpha", 1)});
  });
  const StepTemplate& step_class = stepped.classes.Largest();
  ASSERT_EQ(step_class.matches.size(), 2u);
  const Operand& operand = step_class.operands[step_class.FindOperand(state.buffer, 0)];
  EXPECT_TRUE(operand.written);
  EXPECT_FALSE(operand.moving);
}

TEST(StepTemplate, AShapeThatGrowsIsNamedWithBothShapes) {
  SteppedProgram stepped(2, [&](TraceBuilder& trace, int step) {
    const Tensor a = trace.NewTensor({2, step + 1});
    const Tensor b = trace.NewTensor({2, 1});
    trace.Call("aten::cat", {test::List("tensors", {a, b}), Int("dim", 1)},
               {Out("out", trace.NewTensor({2, step + 2}))});
  });
  EXPECT_EQ(stepped.classes.classes.size(), 2u);
  const std::string text = stepped.Difference(1);
  EXPECT_NE(text.find("call 1 aten::cat"), std::string::npos) << text;
  EXPECT_NE(text.find("tensors[0] has shape [2, 1] in step 0 and [2, 2] in step 1 (call 2)"),
            std::string::npos)
      << text;
}

TEST(StepTemplate, AScalarThatVariesIsNamedWithBothValues) {
  SteppedProgram stepped(2, [&](TraceBuilder& trace, int step) {
    trace.Call("aten::mul.Scalar", {In("self", trace.NewTensor({4})), Real("other", 0.5 + step)},
               {Out("out", trace.NewTensor({4}))});
  });
  EXPECT_EQ(stepped.classes.classes.size(), 2u);
  const std::string text = stepped.Difference(1);
  EXPECT_NE(text.find("argument other has value 0.5 in step 0 and 1.5 in step 1"),
            std::string::npos)
      << text;
}

TEST(StepTemplate, AnotherOperatorInItsPlaceIsNamed) {
  SteppedProgram stepped(2, [&](TraceBuilder& trace, int step) {
    trace.Call(step == 0 ? "aten::relu" : "aten::tanh", {In("self", trace.NewTensor({4}))},
               {Out("out", trace.NewTensor({4}))});
  });
  const std::string text = stepped.Difference(1);
  EXPECT_NE(text.find("call 1 aten::relu: in its place step 1 has call 2 aten::tanh"),
            std::string::npos)
      << text;
}

TEST(StepTemplate, AWriteIntoACacheAtARisingPlaceCannotBeOneGraphWhenAllOfItIsRead) {
  Tensor cache;
  SteppedProgram stepped(2, [&](TraceBuilder& trace, int step) {
    if (step == 0) cache = trace.NewTensor({2, 4});
    trace.Call("aten::copy_", {Written("self", trace.View(cache, {4}, {1}, 4 * step)),
                               In("src", trace.NewTensor({4}))});
    trace.Call("aten::relu", {In("self", cache)}, {Out("out", trace.NewTensor({2, 4}))});
  });
  EXPECT_EQ(stepped.classes.classes.size(), 2u);
  EXPECT_EQ(stepped.classes.differences.at(1).aspect, "place");
}

TEST(StepTemplate, OperandsThatShareBytesInOneStepOnlyDoNotMatchWhenOneIsWritten) {
  Tensor a;
  Tensor b;
  SteppedProgram stepped(2, [&](TraceBuilder& trace, int step) {
    if (step == 0) {
      a = trace.NewTensor({4});
      b = trace.NewTensor({4});
    }
    trace.Call("aten::add_.Tensor", {Written("self", a), In("other", a), Int("alpha", 1)});
    trace.Call("aten::relu", {In("self", step == 0 ? b : a)}, {Out("out", trace.NewTensor({4}))});
  });
  EXPECT_EQ(stepped.classes.classes.size(), 2u);
  EXPECT_EQ(stepped.classes.differences.at(1).aspect, "aliasing of buffers");
}

TEST(StepTemplate, StepsOfALargestClassAreFoundAmongIrregularOnes) {
  SteppedProgram stepped(5, [&](TraceBuilder& trace, int step) {
    const Tensor x = trace.NewTensor({4});
    if (step == 0) {
      trace.Call("aten::clone", {In("self", x)}, {Out("out", trace.NewTensor({4}))});
    }
    Add(trace, x, x, trace.NewTensor({4}));
  });
  EXPECT_EQ(stepped.classes.classes.size(), 2u);
  EXPECT_EQ(stepped.classes.Largest().matches.size(), 4u);
  EXPECT_EQ(stepped.classes.Largest().step_index, 1);
}

}  // namespace
}  // namespace acltape::analyzer
