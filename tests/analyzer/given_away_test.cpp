// Results that other processes are given are results of the step, whatever overwrites them there.
#include "analyzer/program/given_away.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::In;
using test::List;
using test::Out;
using test::Tensor;
using test::TraceBuilder;
using test::Written;

constexpr const char* kReduce = "c10d::allreduce_(Tensor[] tensors) -> Tensor[]";

class GivenAway : public ::testing::Test {
 protected:
  void Load(const std::function<void(TraceBuilder&)>& write) {
    TraceBuilder trace(file_.path());
    write(trace);
    trace.writer().AddStep({0, 1, trace.last_call(), "range:step"});
    trace.Finish();
    reader_.emplace(file_.path());
    program_ = LoadProgram(*reader_);
  }
  int64_t GivenTo(int64_t leaf) const {
    return analyzer::GivenTo(program_, leaf, program_.uses[leaf].writes.at(0),
                             static_cast<int64_t>(program_.leaves.size()));
  }

  test::TemporaryTrace file_{"given-away"};
  std::optional<storage::Reader> reader_;
  Program program_;
};

TEST_F(GivenAway, IsWhatACollectiveGetsBeforeAnythingElseOverwritesIt) {
  Load([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({4});
    const Tensor b = trace.NewTensor({4});
    const Tensor c = trace.NewTensor({4});
    trace.Call("aten::relu", {In("self", a)}, {Out("out", b)});             // 0: overwritten by 1
    trace.Call("aten::mul_.Tensor", {Written("self", b), In("other", a)});  // 1: given to 3
    trace.Call("aten::relu", {In("self", a)}, {Out("out", c)});             // 2: kept by the rank
    trace.Call(kReduce, {List("tensors", {b})});                            // 3
    trace.Call("aten::relu", {In("self", b)}, {Out("out", c)});             // 4
  });
  EXPECT_EQ(GivenTo(0), -1);
  EXPECT_EQ(GivenTo(1), 3);
  EXPECT_EQ(GivenTo(2), -1);
  EXPECT_EQ(GivenTo(4), -1);
}

TEST_F(GivenAway, IsEachPartOfABucketByItself) {
  Load([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({4});
    const Tensor bucket = trace.NewTensor({8});
    const Tensor left = TraceBuilder::View(bucket, {4}, {1}, 0);
    const Tensor right = TraceBuilder::View(bucket, {4}, {1}, 4);
    trace.Call("aten::abs", {In("self", a), Out("out", left)});   // 0
    trace.Call("aten::abs", {In("self", a), Out("out", right)});  // 1
    trace.Call(kReduce, {List("tensors", {bucket})});             // 2
  });
  EXPECT_EQ(GivenTo(0), 2);
  EXPECT_EQ(GivenTo(1), 2);
}

TEST_F(GivenAway, ComesRightBeforeTheNextCallThatIsExecuted) {
  Load([](TraceBuilder& trace) {
    const Tensor a = trace.NewTensor({4});
    const Tensor b = trace.NewTensor({4});
    const Tensor c = trace.NewTensor({4});
    trace.Call("aten::relu", {In("self", a)}, {Out("out", b)});
    trace.Call("aten::view", {In("self", b)}, {Out("out", b)});
    trace.Call(kReduce, {List("tensors", {b})});
    trace.Call("aten::relu", {In("self", b)}, {Out("out", c)});
  });
  StepMatch step;
  step.leaves = {0, 3};
  const std::vector<GivenResult> given = GivenResults(program_, step);
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].place, 0u);
  EXPECT_EQ(given[0].write, 0u);
  EXPECT_EQ(given[0].next, 1u);
}

}  // namespace
}  // namespace acltape::analyzer
