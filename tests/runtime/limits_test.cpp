// Running out of streams, events, notifies, models and memory, and several devices: rules STR-05,
// EVT-17, NTF-04, LIM-01, LIM-02, DEV-14.
#include <cstdlib>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

// Read at the first call into the library.
const bool kEnvironmentIsSet = [] {
  setenv("ACLTAPE_SOFT_DEVICES", "2", 1);
  setenv("ACLTAPE_SOFT_STREAMS", "6", 1);
  setenv("ACLTAPE_SOFT_EVENTS", "3", 1);
  setenv("ACLTAPE_SOFT_NOTIFIES", "2", 1);
  setenv("ACLTAPE_SOFT_MODELS", "2", 1);
  setenv("ACLTAPE_SOFT_MEMORY", "1M", 1);
  setenv("ACLTAPE_SOFT_POISON", "1", 1);
  return true;
}();

using Limits = SoftDevice;

TEST_F(Limits, STR_05_STR_06_StreamExhaustionGives207008) {
  // Of six, the default stream and the two of the fixture are taken.
  aclrtStream streams[4] = {};
  for (int i = 0; i < 3; ++i) ASSERT_OK(aclrtCreateStream(&streams[i]));
  EXPECT_EQ(aclrtCreateStream(&streams[3]), 207008);
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("all 6 streams"), std::string::npos);
  ASSERT_OK(aclrtDestroyStream(streams[0]));
  EXPECT_OK(aclrtCreateStream(&streams[3]));
}

TEST_F(Limits, LIM_01_CapturedStreamsTakeStreamNumbersUntilTheModelIsDestroyed) {
  aclrtStream extra = nullptr;
  ASSERT_OK(aclrtCreateStream(&extra));
  Begin(stream_);
  aclrtEvent fork = CreateEx();
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));  // the sixth number
  EXPECT_CODE(207008, aclrtStreamWaitEvent(extra, fork));
  EXPECT_EQ(Status(stream_), kInvalidated);
  End(stream_, 507903);
  Begin(stream_);
  aclmdlRI model = End(stream_);
  aclrtStream last = nullptr;
  aclrtStream more = nullptr;
  ASSERT_OK(aclrtCreateStream(&last));
  EXPECT_CODE(207008, aclrtCreateStream(&more));
  ASSERT_OK(aclmdlRIDestroy(model));
  EXPECT_OK(aclrtCreateStream(&more));
}

TEST_F(Limits, LIM_01_ExhaustionInACascadeInvalidatesTheCapture) {
  aclrtStream rest[2] = {};
  for (aclrtStream& stream : rest) ASSERT_OK(aclrtCreateStream(&stream));
  Begin(stream_);  // takes the last number
  auto nothing = [](void*) -> aclError { return 0; };
  aclError code = 0;
  int stored = 0;
  while (code == 0 && stored < 5000) {
    code = SoftLaunchKernel(stream_, "k", nothing, nullptr, nullptr);
    if (code == 0) ++stored;
  }
  EXPECT_EQ(code, 207008);
  EXPECT_EQ(stored, 2047);
  EXPECT_EQ(Status(stream_), kInvalidated);
  EXPECT_OK(SoftLaunchKernel(stream_, "k", nothing, nullptr, nullptr));  // CAP-60
  End(stream_, 507903);
}

TEST_F(Limits, LIM_02_ModelExhaustionGives207010) {
  Begin(stream_);
  aclmdlRI first = End(stream_);
  Begin(stream_);
  End(stream_);
  EXPECT_CODE(207010, aclmdlRICaptureBegin(stream_, kGlobal));
  EXPECT_EQ(Status(stream_), kNone);
  ASSERT_OK(aclmdlRIDestroy(first));
  Begin(stream_);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(Limits, EVT_17_EVT_21_EventExhaustion) {
  aclrtEvent flagged[3] = {};
  aclrtEvent plain = nullptr;
  aclrtEvent more = nullptr;
  uint32_t available = 0;
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(aclrtCreateEventWithFlag(&flagged[i], ACL_EVENT_SYNC));
  }
  ASSERT_OK(aclrtCreateEvent(&plain));  // takes its number at the first record
  ASSERT_OK(aclrtGetEventAvailNum(&available));
  EXPECT_EQ(available, 1u);
  ASSERT_OK(aclrtCreateEventWithFlag(&flagged[2], ACL_EVENT_SYNC));
  EXPECT_CODE(207007, aclrtCreateEventWithFlag(&more, ACL_EVENT_SYNC));
  EXPECT_CODE(207007, aclrtRecordEvent(plain, stream_));
  ASSERT_OK(aclrtDestroyEvent(flagged[0]));
  EXPECT_OK(aclrtRecordEvent(plain, stream_));
  for (int i = 0; i < 10; ++i) {
    EXPECT_OK(aclrtRecordEvent(CreateEx(), stream_));  // Ex events are not counted
  }
}

TEST_F(Limits, NTF_04_NotifyExhaustionGives207009) {
  aclrtNotify notify = nullptr;
  aclrtCntNotify counting = nullptr;
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  ASSERT_OK(aclrtCntNotifyCreate(&counting, 0));
  EXPECT_CODE(207009, aclrtCreateNotify(&notify, 0));
}

TEST_F(Limits, MEM_01_MemoryExhaustionGives207001) {
  void* most = nullptr;
  void* more = nullptr;
  ASSERT_OK(aclrtMallocAlign32(&most, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_CODE(207001, aclrtMalloc(&more, 1, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_EQ(more, nullptr);
  ASSERT_OK(aclrtFree(most));
  EXPECT_OK(aclrtMalloc(&more, 1, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_OK(aclrtFree(more));
}

TEST_F(Limits, PoisonedMemoryReadsAsNaN) {
  void* memory = nullptr;
  float value = 0;
  ASSERT_OK(aclrtMalloc(&memory, 4, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMemcpy(&value, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_NE(value, value);
  ASSERT_OK(aclrtFree(memory));
}

TEST_F(Limits, DEV_14_PeerAccessIsPerDirection) {
  int32_t value = -1;
  ASSERT_OK(aclrtDeviceCanAccessPeer(&value, 0, 1));
  EXPECT_EQ(value, 1);
  ASSERT_OK(aclrtDeviceCanAccessPeer(&value, 0, 0));
  EXPECT_EQ(value, 0);
  EXPECT_CODE(107001, aclrtDeviceCanAccessPeer(&value, 0, 2));
  ASSERT_OK(aclrtDeviceEnablePeerAccess(1, 0));
  ASSERT_OK(aclrtDevicePeerAccessStatus(0, 1, &value));
  EXPECT_EQ(value, 1);
  ASSERT_OK(aclrtDevicePeerAccessStatus(1, 0, &value));
  EXPECT_EQ(value, 0);
  ASSERT_OK(aclrtDeviceDisablePeerAccess(1));
  ASSERT_OK(aclrtDevicePeerAccessStatus(0, 1, &value));
  EXPECT_EQ(value, 0);
  EXPECT_CODE(107000, aclrtDeviceEnablePeerAccess(0, 0));
}

TEST_F(Limits, CTX_03_SettingAContextChangesTheDevice) {
  aclrtContext of_first = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&of_first));
  ASSERT_OK(aclrtSetDevice(1));
  int32_t device = -1;
  ASSERT_OK(aclrtGetDevice(&device));
  EXPECT_EQ(device, 1);
  EXPECT_CODE(107003, aclrtRecordEvent(CreateEx(), stream_));  // a stream of device 0
  ASSERT_OK(aclrtSetCurrentContext(of_first));
  ASSERT_OK(aclrtGetDevice(&device));
  EXPECT_EQ(device, 0);
  ASSERT_OK(aclrtResetDevice(1));
}

}  // namespace
}  // namespace acltape::device
