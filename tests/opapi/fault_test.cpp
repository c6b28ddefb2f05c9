// Wrong bits on purpose in an operator's output.
#include <cstdlib>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

const bool kEnvironmentIsSet =
    setenv("ACLTAPE_SOFT_FAULTS",
           "aclnnAdd #2 flip=33; aclnnMul every=2 flip=0; aclnnTopk flip=70 output=1; "
           "aclnnSub #2 fail=507015; aclnnDivGetWorkspaceSize #2 return=561103; "
           "aclnnDiv #3 return=361001",
           1) == 0;

at::Tensor Words(const at::Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), at::kInt);
}

TEST(Faults, FlipOneBitOfTheOutputOfOneRun) {
  const at::Tensor a = at::rand({4}), b = at::rand({4}), expected = at::add(a, b);
  for (int run = 1; run <= 3; ++run) {
    const at::Tensor out = at::zeros({4});
    ASSERT_EQ(RunOperator("aclnnAdd", {a, b, at::Scalar(1), out}), 0) << LastMessage();
    const at::Tensor wrong = at::bitwise_xor(Words(out), Words(expected));
    // Bit 33 is bit 1 of the second float.
    EXPECT_TRUE(at::equal(wrong, at::tensor({0, run == 2 ? 2 : 0, 0, 0}, at::kInt))) << wrong;
  }
}

TEST(Faults, OfAStridedOutputFlipTheFirstElement) {
  const at::Tensor a = at::rand({3, 2}), b = at::rand({3, 2});
  for (int run = 1; run <= 2; ++run) {
    const at::Tensor storage = at::zeros({2, 3}), out = storage.t();
    ASSERT_EQ(RunOperator("aclnnMul", {a, b, out}), 0) << LastMessage();
    const at::Tensor expected = at::mul(a, b);
    EXPECT_EQ(at::ne(out, expected).sum().item<int64_t>(), run == 2 ? 1 : 0);
    EXPECT_EQ(out[0][0].item<float>() != expected[0][0].item<float>(), run == 2);
  }
}

TEST(Faults, FlipInAReplayToo) {
  const at::Tensor a = at::rand({8}), values = at::zeros({2}), indices = at::zeros({2}, at::kLong);
  PackedCall call("aclnnTopk", {a, int64_t{2}, int64_t{0}, true, true, values, indices});
  ASSERT_EQ(call.Prepare(), OK) << LastMessage();
  aclrtStream stream = nullptr;
  aclmdlRI model = nullptr;
  TestStream();
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 0);
  ASSERT_EQ(call.Launch(stream), OK);
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), 0);
  const auto [right_values, right_indices] = at::topk(a, 2, 0);
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), 0);
    ASSERT_EQ(aclrtSynchronizeStream(stream), 0);
    EXPECT_TRUE(at::equal(values, right_values));  // the first output is left alone
    EXPECT_EQ(indices[0].item<int64_t>(), right_indices[0].item<int64_t>());
    EXPECT_EQ(indices[1].item<int64_t>(), right_indices[1].item<int64_t>() ^ 64);  // bit 70
  }
  aclmdlRIDestroy(model);
  aclrtDestroyStream(stream);
}

TEST(Faults, FailOneRunOfAnOperator) {
  const at::Tensor a = at::rand({4}), b = at::rand({4});
  for (int run = 1; run <= 3; ++run) {
    const at::Tensor out = at::zeros({4});
    EXPECT_EQ(RunOperator("aclnnSub", {a, b, at::Scalar(1), out}), run == 2 ? 507015 : 0);
    EXPECT_EQ(at::equal(out, at::sub(a, b)), run != 2);
  }
}

TEST(Faults, AreReturnedByEitherPhase) {
  const at::Tensor a = at::rand({4}), b = at::rand({4}) + 1, out = at::zeros({4});
  for (int call = 1; call <= 5; ++call) {
    PackedCall div("aclnnDiv", {a, b, out});
    const aclnnStatus prepared = div.Prepare();
    EXPECT_EQ(prepared, call == 2 ? 561103 : 0);
    if (prepared != 0) {
      const char* message = aclGetRecentErrMsg();
      ASSERT_NE(message, nullptr);
      EXPECT_NE(std::string(message).find("aclnnDivGetWorkspaceSize #2"), std::string::npos);
      continue;
    }
    EXPECT_EQ(div.Launch(TestStream()), call == 4 ? 361001 : 0);  // the third launch
    EXPECT_EQ(aclrtSynchronizeStream(TestStream()), 0);
  }
}

}  // namespace
}  // namespace acltape::opapi
