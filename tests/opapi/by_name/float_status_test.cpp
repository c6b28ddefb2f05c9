// The status of results that saturate, by operators (rule OVF-03).
#include <limits>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

class FloatStatusByName : public testing::Test {
 protected:
  void SetUp() override {
    TestStream();
    ASSERT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION), ACL_SUCCESS);
    ASSERT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtSetStreamOverflowSwitch(stream_, 1), ACL_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtResetOverflowStatus(stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    EXPECT_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN), ACL_SUCCESS);
    EXPECT_EQ(aclrtDestroyStream(stream_), ACL_SUCCESS);
  }

  void Negate(float number) {
    const Tensor x = at::full({2}, number), out = at::zeros({2});
    NamedCall call("Neg");
    ASSERT_EQ(call.In(x).Out(out).Run(stream_), ACL_SUCCESS) << TakeMessage();
  }
  Tensor Status() {
    const Tensor status = at::full({8}, 77, at::kInt);
    NamedCall call("NPUGetFloatStatusV2");
    EXPECT_EQ(call.Out(status).Run(stream_), ACL_SUCCESS) << TakeMessage();
    EXPECT_EQ(status.slice(0, 1).abs().sum().item<int64_t>(), 0);
    return status[0];
  }
  void Clear() {
    NamedCall call("NPUClearFloatStatusV2");
    EXPECT_EQ(call.Run(stream_), ACL_SUCCESS) << TakeMessage();
  }

  aclrtStream stream_ = nullptr;
};

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_F(FloatStatusByName, OVF_03_OperatorsGetAndClearTheStatus) {
  const Tensor memory = at::full({8}, 77.0f);
  NamedCall call("NPUAllocFloatStatus");
  ASSERT_EQ(call.Out(memory).Run(stream_), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(memory, at::zeros({8})));
  EXPECT_EQ(Status().item<int>(), 0);
  Negate(1);
  EXPECT_EQ(Status().item<int>(), 0);
  Negate(kInf);
  EXPECT_NE(Status().item<int>(), 0);
  Negate(1);
  EXPECT_NE(Status().item<int>(), 0) << "it stays until it is cleared";
  Clear();
  EXPECT_EQ(Status().item<int>(), 0);
}

TEST_F(FloatStatusByName, OVF_03_AGraphGetsTheStatusWhenItRuns) {
  const Tensor status = at::full({8}, 77, at::kInt);
  NamedCall get("NPUGetFloatStatusV2"), clear("NPUClearFloatStatusV2");
  get.Out(status);
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureBegin(stream_, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), ACL_SUCCESS);
  ASSERT_EQ(get.Launch(stream_), ACL_SUCCESS) << TakeMessage();
  ASSERT_EQ(clear.Launch(stream_), ACL_SUCCESS) << TakeMessage();
  ASSERT_EQ(aclmdlRICaptureEnd(stream_, &model), ACL_SUCCESS);
  Negate(kInf);
  for (const bool overflowed : {true, false}) {
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream_), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream_), ACL_SUCCESS);
    EXPECT_EQ(status[0].item<int>() != 0, overflowed);
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
}

TEST_F(FloatStatusByName, FormsThatAreRefused) {
  const struct {
    const char* name;
    Tensor out;
    const char* part;
  } kCalls[] = {
      {"NPUAllocFloatStatus", at::zeros({7}), "output 0 has the shape [7], expected [8]"},
      {"NPUAllocFloatStatus", at::zeros({8}, at::kInt), "the status has the type 3, expected 0"},
      {"NPUGetFloatStatusV2", at::zeros({8}), "the status has the type 0, expected 3"},
      {"NPUGetFloatStatusV2", at::zeros({2, 4}, at::kInt), "output 0 has the shape [2, 4]"},
  };
  for (const auto& each : kCalls) {
    NamedCall call(each.name);
    TakeMessage();
    EXPECT_NE(call.Out(each.out).Run(stream_), ACL_SUCCESS);
    const std::string message = TakeMessage();
    EXPECT_NE(message.find(each.part), std::string::npos) << message;
  }
  NamedCall none("NPUGetFloatStatusV2");
  EXPECT_NE(none.Run(stream_), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("expected at least 0 and 1"), std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
