// Leaves on the host beside a device are no part of the program that plans and replays are made
// of.
#include "analyzer/calls/host_work.h"

#include <gtest/gtest.h>

#include "analyzer/program/program.h"
#include "analyzer/steps/steps.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::In;
using test::Out;
using test::Real;
using test::Tensor;
using test::TraceBuilder;
using test::Written;

constexpr int kHost = 0;
constexpr int kDevice = 1;

// A training step as torch_npu runs it: the host draws a batch, the device takes it and computes,
// and the optimizer counts its steps in a tensor of the host.
class HostWorkTest : public ::testing::Test {
 protected:
  std::vector<std::string> Leaves(int place_of_model, int steps = 1) {
    TraceBuilder trace(file_.path());
    const Tensor weight = trace.NewTensor({4});
    const Tensor count = trace.NewTensor({});
    for (int step = 0; step < steps; ++step) {
      const Tensor batch = trace.NewTensor({4});
      const Tensor moved = trace.NewTensor({4});
      const Tensor result = trace.NewTensor({4});
      trace.On(kHost).Call("aten::randn", {}, {Out("out", batch)});
      trace.On(place_of_model).Call("aten::_to_copy", {In("self", batch)}, {Out("out", moved)});
      trace.Call("aten::mul.Tensor", {In("self", moved), In("other", weight)},
                 {Out("out", result)});
      trace.On(kHost).Call("aten::add_.Tensor", {Written("self", count)}, {});
      trace.Call("aten::_local_scalar_dense", {In("self", count)},
                 {Real("out", 1, storage::Direction::kOut)});
      trace.On(place_of_model).Call("aten::mul_.Tensor", {Written("self", weight)}, {});
    }
    trace.Finish();
    reader_.emplace(file_.path());
    program_ = LoadProgram(*reader_);
    std::vector<std::string> names;
    for (const Leaf& leaf : program_.leaves) names.push_back(leaf.Name());
    return names;
  }

  test::TemporaryTrace file_{"host-work"};
  std::optional<storage::Reader> reader_;
  Program program_;
};

TEST_F(HostWorkTest, ADeviceProgramIsTheWorkOfItsDevice) {
  EXPECT_EQ(Leaves(kDevice),
            (std::vector<std::string>{"aten::_to_copy", "aten::mul.Tensor", "aten::mul_.Tensor"}));
  EXPECT_EQ(program_.work.size(), 3u);
  EXPECT_EQ(TotalHostWork(*reader_, {}).leaves, 3);
  EXPECT_EQ(TotalHostWork(*reader_, CallRange{1, 2}).leaves, 1);
  EXPECT_EQ(LoadWorkOfHostToo(*reader_).size(), 6u);
}

TEST_F(HostWorkTest, AProgramOfTheHostAloneIsAllOfItsLeaves) {
  EXPECT_EQ(Leaves(kHost).size(), 6u);
  EXPECT_EQ(TotalHostWork(*reader_, {}).leaves, 0);
  EXPECT_EQ(Leaves(storage::Call::kDeviceNotKnown).size(), 6u);
}

TEST_F(HostWorkTest, StepsFollowTheDeviceAndLastUntilTheNextOneBegins) {
  Leaves(kDevice, /*steps=*/6);
  const std::vector<storage::Step> rows = StepRows(program_.work);
  ASSERT_GE(rows.size(), 4u);
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    EXPECT_EQ(rows[i].last_call + 1, rows[i + 1].first_call);
    EXPECT_EQ(rows[i].last_call - rows[i].first_call, 5);
  }
}

}  // namespace
}  // namespace acltape::analyzer
