// The product that the soft device stands for, and the faults that it reports: rules PRD, OVF
// and ERR-09.
#include <cstring>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class Product : public SoftDevice {
 protected:
  int32_t VersionOf(const char* package) {
    std::string name = package;
    int32_t number = 0;
    EXPECT_OK(aclsysGetVersionNum(name.data(), &number));
    return number;
  }
  int32_t Runs(const char* product) {
    int32_t compatible = -1;
    EXPECT_OK(aclrtCheckArchCompatibility(product, &compatible));
    return compatible;
  }
  aclrtErrorType Fault() {
    aclrtErrorInfo info;
    std::memset(&info, 0xFF, sizeof(info));
    EXPECT_OK(aclrtGetErrorVerbose(0, &info));
    EXPECT_EQ(info.hasDetail, 0);
    EXPECT_EQ(info.tryRepair, 0);
    return info.errorType;
  }
  void Fail(aclError code) {
    Log log;
    Launch(stream_, log, "a", code);
    EXPECT_CODE(code, aclrtSynchronizeStream(stream_));
  }
};

TEST_F(Product, PRD_01_VersionsAreOrderedNumbers) {
  EXPECT_EQ(VersionOf("runtime"), 90000000);
  EXPECT_EQ(VersionOf("ops_math"), 90000000);
  EXPECT_EQ(VersionOf("driver"), 250500000);
  char name[] = "runtime";
  int32_t number = 0;
  EXPECT_CODE(100000, aclsysGetVersionNum(nullptr, &number));
  EXPECT_CODE(100000, aclsysGetVersionNum(name, nullptr));
}

TEST_F(Product, PRD_02_KernelsOfProductsWithTheSameCoresRun) {
  EXPECT_EQ(Runs("Ascend910B1"), 1);
  EXPECT_EQ(Runs("Ascend910B4-1"), 1);
  EXPECT_EQ(Runs("Ascend910_9391"), 1);
  EXPECT_EQ(Runs("Ascend310P3"), 0);
  EXPECT_EQ(Runs("Ascend310B4"), 0);
  EXPECT_EQ(Runs("a name that no product has"), 0);
  int32_t compatible = 0;
  EXPECT_CODE(100000, aclrtCheckArchCompatibility(nullptr, &compatible));
  EXPECT_CODE(100000, aclrtCheckArchCompatibility("Ascend910B1", nullptr));
}

TEST_F(Product, PRD_03_TheDeviceHasNeitherOfTheCapabilitiesWithToolkit90) {
  for (aclrtDevFeatureType feature :
       {ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV}) {
    int32_t value = -1;
    EXPECT_OK(aclrtGetDeviceCapability(0, feature, &value));
    EXPECT_EQ(value, 0);
  }
  constexpr auto kFeature = ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV;
  int32_t value = -1;
  EXPECT_CODE(100000, aclrtGetDeviceCapability(0, kFeature, nullptr));
  EXPECT_CODE(107001, aclrtGetDeviceCapability(99, kFeature, &value));
  EXPECT_CODE(107001, aclrtGetDeviceCapability(-1, kFeature, &value));
  EXPECT_CODE(107000, aclrtGetDeviceCapability(0, static_cast<aclrtDevFeatureType>(2), &value));
  EXPECT_EQ(value, -1);
}

TEST_F(Product, OVF_01_TheSwitchOfAStreamIsKeptAndTold) {
  uint32_t flag = 7;
  ASSERT_OK(aclrtGetStreamOverflowSwitch(stream_, &flag));
  EXPECT_EQ(flag, 0u);
  ASSERT_OK(aclrtSetStreamOverflowSwitch(stream_, 1));
  ASSERT_OK(aclrtGetStreamOverflowSwitch(stream_, &flag));
  EXPECT_EQ(flag, 1u);
  ASSERT_OK(aclrtGetStreamOverflowSwitch(other_, &flag));
  EXPECT_EQ(flag, 0u);
  ASSERT_OK(aclrtSetStreamOverflowSwitch(nullptr, 1));  // the default stream
  ASSERT_OK(aclrtGetStreamOverflowSwitch(nullptr, &flag));
  EXPECT_EQ(flag, 1u);
}

TEST_F(Product, OVF_01_TheAttributeOfTheStreamIsTheSameSwitch) {
  ASSERT_OK(aclrtSetStreamOverflowSwitch(stream_, 1));
  aclrtStreamAttrValue value{};
  ASSERT_OK(aclrtGetStreamAttribute(stream_, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value));
  EXPECT_EQ(value.overflowSwitch, 1u);
}

TEST_F(Product, OVF_01_RefusalsOfTheSwitch) {
  uint32_t flag = 0;
  EXPECT_CODE(107000, aclrtSetStreamOverflowSwitch(stream_, 2));
  EXPECT_CODE(100000, aclrtGetStreamOverflowSwitch(stream_, nullptr));
  auto* event = reinterpret_cast<aclrtStream>(CreateEx());
  EXPECT_CODE(107017, aclrtSetStreamOverflowSwitch(event, 1));
  EXPECT_CODE(107017, aclrtGetStreamOverflowSwitch(event, &flag));
  Begin(stream_);
  EXPECT_CODE(107027, aclrtSetStreamOverflowSwitch(stream_, 1));
  EXPECT_OK(aclrtGetStreamOverflowSwitch(stream_, &flag));
  EXPECT_EQ(flag, 0u);
  EXPECT_OK(aclmdlRIDestroy(End(stream_)));
}

TEST_F(Product, ERR_09_WithoutAFaultOfTheDeviceThereIsNoError) {
  EXPECT_EQ(Fault(), ACL_RT_NO_ERROR);
  Fail(507015);  // one kernel fails, which is no fault of the device
  EXPECT_EQ(Fault(), ACL_RT_NO_ERROR);
}

TEST_F(Product, ERR_09_FaultsAreThoseOfMemoryAndOthersUntilTheDeviceIsReset) {
  Fail(507054);
  EXPECT_EQ(Fault(), ACL_RT_ERROR_MEMORY);
  ASSERT_OK(aclrtResetDevice(0));
  ASSERT_OK(aclrtSetDevice(0));
  EXPECT_EQ(Fault(), ACL_RT_NO_ERROR);
  ASSERT_OK(aclrtCreateStream(&stream_));
  Fail(507056);
  EXPECT_EQ(Fault(), ACL_RT_ERROR_OTHERS);
}

TEST_F(Product, ERR_09_Refusals) {
  aclrtErrorInfo info{};
  EXPECT_CODE(100000, aclrtGetErrorVerbose(0, nullptr));
  EXPECT_CODE(107001, aclrtGetErrorVerbose(99, &info));
  EXPECT_CODE(107001, aclrtGetErrorVerbose(-1, &info));
}

}  // namespace
}  // namespace acltape::device
