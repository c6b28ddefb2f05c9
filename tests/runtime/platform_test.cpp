// Facts about the chip, and subscriptions of profiles (sections 27 and 35 of the rules).
#include <cstring>

#include "acl/acl_platform.h"
#include "acl/acl_prof.h"
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class Platform : public SoftDevice {
 protected:
  std::string Info(aclplatformDevInfo info) {
    char text[64] = {};
    EXPECT_OK(aclplatformGetDeviceInfo(info, text, sizeof(text)));
    return text;
  }
};

TEST_F(Platform, PLT_01_TheNumbersOfTheProductAsTexts) {
  EXPECT_EQ(Info(ACL_PLATFORM_AICORE_CNT), "24");
  EXPECT_EQ(Info(ACL_PLATFORM_CUBE_CORE_CNT), "24");
  EXPECT_EQ(Info(ACL_PLATFORM_VECTOR_CORE_CNT), "48");
  EXPECT_EQ(Info(ACL_PLATFORM_AICORE_UB_SIZE), "196608");
  EXPECT_EQ(Info(ACL_PLATFORM_L2_SIZE), "201326592");
  EXPECT_EQ(Info(ACL_PLATFORM_MEMORY_SIZE), "68719476736");
  EXPECT_EQ(Info(ACL_PLATFORM_CUBE_FREQ), "1850");
  EXPECT_EQ(Info(ACL_PLATFORM_BT_SIZE), "1024");
  EXPECT_EQ(Info(ACL_PLATFORM_L0_A_SIZE), "65536");
  EXPECT_EQ(Info(ACL_PLATFORM_L0_B_SIZE), "65536");
  EXPECT_EQ(Info(ACL_PLATFORM_L0_C_SIZE), "131072");
  EXPECT_EQ(Info(ACL_PLATFORM_L1_SIZE), "524288");
  EXPECT_EQ(Info(ACL_PLATFORM_SOC_VERSION), "Ascend910B1");
  EXPECT_EQ(Info(ACL_PLATFORM_AIC_VERSION), "AIC-C-220");
  EXPECT_EQ(Info(ACL_PLATFORM_NPU_ARCH), "2201");
}

TEST_F(Platform, PLT_01_WhatItDoesNotTellAndRoomThatIsTooSmall) {
  char text[64] = {};
  EXPECT_CODE(100024, aclplatformGetDeviceInfo(ACL_PLATFORM_VEC_FREQ, text, 64));
  EXPECT_CODE(100024, aclplatformGetDeviceInfo(ACL_PLATFORM_MEMORY_TYPE, text, 64));
  EXPECT_CODE(100000, aclplatformGetDeviceInfo(static_cast<aclplatformDevInfo>(999), text, 64));
  EXPECT_CODE(100000, aclplatformGetDeviceInfo(ACL_PLATFORM_SOC_VERSION, text, 11));
  EXPECT_OK(aclplatformGetDeviceInfo(ACL_PLATFORM_SOC_VERSION, text, 12));
  EXPECT_CODE(100000, aclplatformGetDeviceInfo(ACL_PLATFORM_SOC_VERSION, text, 0));
}

TEST_F(Platform, PLT_02_TypesOfVectorInstructions) {
  char text[64] = {};
  for (auto core : {ACL_PLATFORM_CORE_TYPE_AI_CORE, ACL_PLATFORM_CORE_TYPE_VECTOR_CORE}) {
    EXPECT_OK(aclplatformGetInstructionInfo(core, "Intrinsic_vadd", text, sizeof(text)));
    EXPECT_STREQ(text, "float16,float32,int32,int16");
    EXPECT_OK(aclplatformGetInstructionInfo(core, "Intrinsic_vrec", text, sizeof(text)));
    EXPECT_STREQ(text, "float16,float32");
    EXPECT_CODE(100024, aclplatformGetInstructionInfo(core, "Intrinsic_none", text, 64));
    EXPECT_CODE(100000, aclplatformGetInstructionInfo(core, "Intrinsic_vadd", text, 4));
  }
  EXPECT_CODE(100000, aclplatformGetInstructionInfo(static_cast<aclplatformCoreType>(9),
                                                    "Intrinsic_vadd", text, 64));
}

TEST_F(Platform, PROF_02_SubscriptionsAreTakenAndGiveNoDescription) {
  int pipe = 1;
  EXPECT_EQ(aclprofCreateSubscribeConfig(2, ACL_AICORE_NONE, &pipe), nullptr);
  aclprofSubscribeConfig* nothing = aclprofCreateSubscribeConfig(0, ACL_AICORE_NONE, &pipe);
  EXPECT_CODE(100000, aclprofModelSubscribe(1, nothing));  // asks for nothing
  EXPECT_OK(aclprofDestroySubscribeConfig(nothing));
  aclprofSubscribeConfig* times = aclprofCreateSubscribeConfig(1, ACL_AICORE_NONE, &pipe);
  EXPECT_OK(aclprofModelSubscribe(1, times));
  EXPECT_CODE(148046, aclprofModelSubscribe(1, times));
  size_t bytes = 0;
  EXPECT_OK(aclprofGetOpDescSize(&bytes));
  std::vector<char> description(bytes);
  uint32_t count = 0;
  EXPECT_CODE(100000, aclprofGetOpNum(description.data(), bytes, &count));
  EXPECT_EQ(aclprofGetOpStart(description.data(), bytes, 0), 0u);
  EXPECT_EQ(aclprofGetOpFlag(description.data(), bytes, 0), ACL_SUBSCRIBE_NONE);
  EXPECT_OK(aclprofModelUnSubscribe(1));
  EXPECT_CODE(100000, aclprofModelUnSubscribe(1));
  EXPECT_OK(aclprofDestroySubscribeConfig(times));
}

TEST_F(Platform, PROF_03_PointsAndTextsForAProfilerAreChecked) {
  char text[19] = "a point";
  EXPECT_OK(aclrtProfTrace(text, 18, stream_));
  EXPECT_CODE(107000, aclrtProfTrace(text, 19, stream_));
  EXPECT_CODE(107000, aclrtProfTrace(text, 0, stream_));
  EXPECT_OK(aclrtCacheLastTaskOpInfo(text, 19));
  EXPECT_CODE(107000, aclrtCacheLastTaskOpInfo(text, (size_t{64} << 10) + 1));
}

}  // namespace
}  // namespace acltape::device
