// Task groups of real operators: rules UPD-02, UPD-06 and UPD-07 end to end.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

class TaskUpdate : public testing::Test {
 protected:
  void SetUp() override {
    TestStream();
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&update_stream_), ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStream(update_stream_), ACL_SUCCESS);
  }

  void Launch(PackedCall& call, aclrtStream stream) {
    ASSERT_EQ(call.Prepare(), OK);
    ASSERT_EQ(call.Launch(stream), OK);
  }

  aclrtStream stream_ = nullptr;
  aclrtStream update_stream_ = nullptr;
};

// A step with two host scalars that change: x is scaled, shifted and summed. Each replay is started
// first and then gets the scalars of its step.
TEST_F(TaskUpdate, UPD_02_UPD_06_UPD_07_EachReplayComputesWithItsOwnScalars) {
  const Tensor x = Random({4, 32}), scaled = at::empty({4, 32}), shifted = at::empty({4, 32});
  const Tensor out = at::empty({4});
  aclrtEvent updated = nullptr;
  ASSERT_EQ(aclrtCreateEventWithFlag(&updated, ACL_EVENT_EXTERNAL), ACL_SUCCESS);
  const auto launch_group = [&](aclrtStream stream, double scale, double shift) {
    PackedCall muls("aclnnMuls", {x, at::Scalar(scale), scaled});
    PackedCall adds("aclnnAdds", {scaled, at::Scalar(shift), at::Scalar(1), shifted});
    Launch(muls, stream);
    Launch(adds, stream);
  };
  aclrtTaskGrp group = nullptr;
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL), ACL_SUCCESS);
  ASSERT_EQ(aclrtStreamWaitEvent(stream_, updated), ACL_SUCCESS);
  ASSERT_EQ(aclrtResetEvent(updated, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureTaskGrpBegin(stream_), ACL_SUCCESS);
  launch_group(stream_, 0, 0);
  ASSERT_EQ(aclmdlRICaptureTaskGrpEnd(stream_, &group), ACL_SUCCESS);
  PackedCall sum("aclnnReduceSum", {shifted, std::vector<int64_t>{1}, false, at::kFloat, out});
  Launch(sum, stream_);
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
  for (int step = 1; step <= 20; ++step) {
    x.copy_(Random({4, 32}));
    const double scale = 0.5 * step, shift = -1.25 * step;
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_SUCCESS);
    ASSERT_EQ(aclmdlRICaptureTaskUpdateBegin(update_stream_, group), ACL_SUCCESS);
    launch_group(update_stream_, scale, shift);
    ASSERT_EQ(aclmdlRICaptureTaskUpdateEnd(update_stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtRecordEvent(updated, update_stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS) << LastMessage();
    const Tensor expected = at::sum(at::add(at::mul(x, scale), shift), 1);
    EXPECT_TRUE(SameBits(out, expected)) << step;
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyEvent(updated), ACL_SUCCESS);
}

TEST_F(TaskUpdate, UPD_02_AnUpdateMayBringOtherAddressesAndShapes) {
  const Tensor a = Random({8}), b = Random({3, 5}), out_a = at::zeros({8}),
               out_b = at::zeros({3, 5});
  aclrtTaskGrp group = nullptr;
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureTaskGrpBegin(stream_), ACL_SUCCESS);
  PackedCall first("aclnnRelu", {a, out_a});
  Launch(first, stream_);
  ASSERT_EQ(aclmdlRICaptureTaskGrpEnd(stream_, &group), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRICaptureTaskUpdateBegin(stream_, group), ACL_SUCCESS);
  PackedCall second("aclnnRelu", {b, out_b});
  Launch(second, stream_);
  ASSERT_EQ(aclmdlRICaptureTaskUpdateEnd(stream_), ACL_SUCCESS);
  ASSERT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS) << LastMessage();
  EXPECT_TRUE(SameBits(out_a, at::zeros({8})));
  EXPECT_TRUE(SameBits(out_b, at::relu(b)));
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

}  // namespace
}  // namespace acltape::opapi
