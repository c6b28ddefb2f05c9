// A trace has steps for plans only where a step that it names holds a leaf.
#include <gtest/gtest.h>

#include <functional>

#include "analyzer/program/leaves.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::AclTraceBuilder;
using test::In;
using test::Out;
using test::Tensor;

// Two steps over the last calls; `per_step` of them each.
bool HasSteps(const std::function<void(AclTraceBuilder&)>& write, int64_t per_step) {
  test::TemporaryTrace file("program-leaves");
  AclTraceBuilder trace(file.path());
  write(trace);
  const int64_t last = trace.last_call();
  trace.writer().AddStep({0, last - 2 * per_step + 1, last - per_step, "period"});
  trace.writer().AddStep({1, last - per_step + 1, last, "period"});
  trace.Finish();
  const storage::Reader reader(file.path());
  const bool has = HasStepsOfLeaves(reader, ChooseLevel(reader));
  EXPECT_EQ(has, !LoadLeaves(reader, nullptr).steps.empty());
  return has;
}

TEST(ProgramLeaves, StepsThatOnlyWaitAreNone) {
  EXPECT_FALSE(HasSteps(
      [](AclTraceBuilder& trace) {
        const int64_t stream = trace.NewStream();
        const Tensor x = trace.Device({4});
        trace.Op("aclnnRelu", stream, {In("self", x), Out("out", x)});
        trace.Synchronize(stream);
        trace.Synchronize(stream);
      },
      1));
}

TEST(ProgramLeaves, StepsWithAnOperatorAre) {
  EXPECT_TRUE(HasSteps(
      [](AclTraceBuilder& trace) {
        const int64_t stream = trace.NewStream();
        const Tensor x = trace.Device({4});
        for (int step = 0; step < 2; ++step) {
          trace.Synchronize(stream);
          trace.Op("aclnnRelu", stream, {In("self", x), Out("out", x)});
        }
      },
      2));
}

TEST(ProgramLeaves, StepsOfPyTorchAre) {
  EXPECT_TRUE(HasSteps(
      [](AclTraceBuilder& trace) {
        const Tensor x = trace.NewTensor({4});
        for (int step = 0; step < 2; ++step)
          trace.Call("aten::relu", {In("self", x)}, {Out("out", x)});
      },
      1));
}

}  // namespace
}  // namespace acltape::analyzer
