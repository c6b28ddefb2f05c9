// Results that no number of their type can hold, on streams that saturate: rule OVF-03.
#include <cmath>
#include <limits>
#include <vector>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr float kInf = std::numeric_limits<float>::infinity();

class Saturation : public testing::Test {
 protected:
  void SetUp() override {
    TestStream();
    ASSERT_EQ(aclrtCreateStream(&before_), ACL_SUCCESS);
    ASSERT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtMalloc(&status_, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtResetOverflowStatus(stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN), ACL_SUCCESS);
    EXPECT_EQ(aclrtFree(status_), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStream(before_), ACL_SUCCESS);
  }

  static void Launch(const char* name, const Args& args, aclrtStream stream) {
    PackedCall call(name, args);
    ASSERT_EQ(call.Prepare(), OK) << TakeMessage();
    ASSERT_EQ(call.Launch(stream), OK) << TakeMessage();
  }
  static void Call(const char* name, const Args& args, aclrtStream stream) {
    Launch(name, args, stream);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS) << TakeMessage();
  }
  uint32_t Status() const {
    EXPECT_EQ(aclrtGetOverflowStatus(status_, 64, stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    uint32_t status = 9;
    EXPECT_EQ(aclrtMemcpy(&status, 4, status_, 4, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    return status;
  }

  aclrtStream before_ = nullptr;
  aclrtStream stream_ = nullptr;
  void* status_ = nullptr;
};

void ExpectEqual(const Tensor& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.numel(), static_cast<int64_t>(expected.size()));
  const Tensor numbers = found.to(at::kDouble).flatten();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(numbers[static_cast<int64_t>(i)].item<double>(), expected[i]) << "element " << i;
  }
}

TEST_F(Saturation, OVF_03_ResultsSaturateOnStreamsThatAreCreatedLater) {
  struct Type {
    at::ScalarType type;
    double greatest;
  };
  for (const auto& [type, greatest] :
       {Type{at::kHalf, 65504}, Type{at::kBFloat16, 3.3895313892515355e38},
        Type{at::kFloat, std::numeric_limits<float>::max()},
        Type{at::kDouble, std::numeric_limits<double>::max()}}) {
    const Tensor given = at::tensor({1.0, -kInf, 0.0, double{kInf}, std::nan("")}, at::kDouble);
    const Tensor self = given.to(type);
    Tensor out = at::zeros({5}, type);
    Call("aclnnNeg", {self, out}, stream_);
    ExpectEqual(out, {-1, greatest, 0, -greatest, 0});
    Call("aclnnNeg", {self, out}, before_);
    EXPECT_TRUE(at::equal(out.slice(0, 0, 4), -self.slice(0, 0, 4)));
    EXPECT_TRUE(std::isnan(out[4].to(at::kDouble).item<double>()));
  }
}

TEST_F(Saturation, OVF_03_ViewsWithStridesAndOffsetsSaturateWhereTheyLie) {
  const Tensor self = at::full({2, 3}, kInf);
  const Tensor whole = at::full({4, 8}, kInf);
  Tensor out = whole.as_strided({2, 3}, {16, 2}, 1);
  Call("aclnnNeg", {self, out}, stream_);
  EXPECT_EQ(at::isinf(whole).sum().item<int64_t>(), 32 - 6);
  EXPECT_EQ(out.min().item<float>(), std::numeric_limits<float>::lowest());
  EXPECT_EQ(out.max().item<float>(), std::numeric_limits<float>::lowest());
  Tensor scalar = at::zeros({});
  Call("aclnnNeg", {at::full({}, kInf), scalar}, stream_);
  ExpectEqual(scalar, {std::numeric_limits<float>::lowest()});
  Tensor nothing = at::zeros({0, 3});
  Call("aclnnNeg", {at::zeros({0, 3}), nothing}, stream_);
}

TEST_F(Saturation, OVF_03_IntegersStayAsTheyAre) {
  Tensor out = at::zeros({2}, at::kInt);
  Call("aclnnNeg", {at::tensor({0x7F800000, -1}, at::kInt), out}, stream_);
  ExpectEqual(out, {-double{0x7F800000}, 1});
}

TEST_F(Saturation, OVF_03_TheStatusTellsItUntilItIsReset) {
  const Tensor self = at::full({2}, kInf);
  Tensor out = at::zeros({2});
  Call("aclnnNeg", {self, out}, stream_);
  EXPECT_EQ(Status(), 0u) << "the stream's switch is off";
  ASSERT_EQ(aclrtSetStreamOverflowSwitch(stream_, 1), ACL_SUCCESS);
  EXPECT_EQ(Status(), 0u);
  Call("aclnnNeg", {at::ones({2}), out}, stream_);
  EXPECT_EQ(Status(), 0u);
  Call("aclnnNeg", {self, out}, stream_);
  EXPECT_EQ(Status(), 1u);
  Call("aclnnNeg", {at::ones({2}), out}, stream_);
  EXPECT_EQ(Status(), 1u);
  ASSERT_EQ(aclrtResetOverflowStatus(stream_), ACL_SUCCESS);
  EXPECT_EQ(Status(), 0u);
}

TEST_F(Saturation, OVF_03_AGraphSaturatesAsItsStreamDid) {
  const Tensor self = at::full({2}, kInf);
  Tensor out = at::zeros({2});
  for (const bool saturates : {true, false}) {
    const aclrtStream stream = saturates ? stream_ : before_;
    aclmdlRI model = nullptr;
    ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
    Launch("aclnnNeg", {self, out}, stream);
    ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
    out.zero_();
    ASSERT_EQ(aclmdlRIExecuteAsync(model, before_), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(before_), ACL_SUCCESS);
    EXPECT_EQ(std::isinf(out[0].item<float>()), !saturates);
    EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  }
}

}  // namespace
}  // namespace acltape::opapi
