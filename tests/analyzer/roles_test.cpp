#include "analyzer/program/roles.h"

#include <gtest/gtest.h>

#include "analyzer/steps/steps.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::In;
using test::Out;
using test::TemporaryTrace;
using test::Tensor;
using test::TraceBuilder;
using test::Written;

TEST(Roles, FollowFromHowTheLeavesUseABuffer) {
  TemporaryTrace file("roles");
  Tensor weight, state, input, noise, activation, output, score;
  {
    TraceBuilder trace(file.path());
    weight = trace.NewTensor({4});
    weight.layout.flags = 1;  // a parameter
    state = trace.NewTensor({4});
    for (int s = 0; s < 2; ++s) {
      storage::Step step;
      step.step = s;
      step.first_call = trace.last_call() + 1;
      input = trace.NewTensor({4});
      noise = trace.NewTensor({4});
      activation = trace.NewTensor({4});
      output = trace.NewTensor({4});
      score = trace.NewTensor({});
      trace.Call("aten::normal_", {Written("self", noise)});
      trace.Call("aten::add.Tensor", {In("self", input), In("other", weight)},
                 {Out("out", activation)});
      trace.Call("aten::add_.Tensor", {Written("self", state), In("other", activation)});
      trace.Call("aten::mul.Tensor", {In("self", activation), In("other", noise)},
                 {Out("out", output)});
      trace.Call("aten::max", {In("self", activation)}, {Out("out", score)});
      trace.Call("aten::_local_scalar_dense", {In("self", score)},
                 {test::Real("out", 0, storage::Direction::kOut)});
      step.last_call = trace.last_call();
      step.found_by = "range:step";
      trace.writer().AddStep(step);
    }
    trace.Finish();
  }
  const storage::Reader reader(file.path());
  Program program = LoadProgram(reader);
  const std::map<int64_t, BufferRole> roles = ClassifyBuffers(program);
  const auto name = [&](const Tensor& tensor) {
    return std::string(BufferRoleName(roles.at(tensor.buffer)));
  };
  EXPECT_EQ(name(weight), "parameter");
  EXPECT_EQ(name(state), "state");
  EXPECT_EQ(name(input), "input");
  EXPECT_EQ(name(noise), "input");
  EXPECT_EQ(name(activation), "activation");
  EXPECT_EQ(name(output), "output");
  EXPECT_EQ(name(score), "host");
}

// A program that does not train makes its weights once, and a product reads the transposed one.
TEST(Roles, AWeightIsToldByItsOwnTensorOrByBeingMadeOnceForAllSteps) {
  TemporaryTrace file("roles-weights");
  Tensor trained, fixed, passing;
  {
    TraceBuilder trace(file.path());
    trained = trace.NewTensor({4});
    fixed = trace.NewTensor({4});
    trace.Call("aten::zeros", {}, {Out("out", trained)});
    trace.Call("aten::zeros", {}, {Out("out", fixed)});
    for (int s = 0; s < 2; ++s) {
      storage::Step step;
      step.step = s;
      step.first_call = trace.last_call() + 1;
      Tensor parameter = trained;
      parameter.layout.flags = 1;
      passing = trace.NewTensor({4});
      const Tensor result = trace.NewTensor({4});
      trace.Call("aten::t(Tensor(a) self) -> Tensor(a)", {In("self", parameter)},
                 {Out("out", trained)});
      trace.Call("aten::mul.Tensor", {In("self", fixed), In("other", trained)},
                 {Out("out", passing)});
      trace.Call("aten::relu", {In("self", passing)}, {Out("out", result)});
      step.last_call = trace.last_call();
      step.found_by = "range:step";
      trace.writer().AddStep(step);
    }
    trace.Finish();
  }
  const storage::Reader reader(file.path());
  const std::map<int64_t, BufferRole> roles = ClassifyBuffers(LoadProgram(reader));
  EXPECT_EQ(BufferRoleName(roles.at(trained.buffer)), "parameter");
  EXPECT_EQ(BufferRoleName(roles.at(fixed.buffer)), "parameter");
  EXPECT_EQ(BufferRoleName(roles.at(passing.buffer)), "activation");
}

}  // namespace
}  // namespace acltape::analyzer
