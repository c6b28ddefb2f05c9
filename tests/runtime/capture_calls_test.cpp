// Calls that a capture refuses, calls that invalidate it and tasks that it can hold: rules CAP-60
// to CAP-73.
#include <dlfcn.h>
#include <pthread.h>

#include <cstring>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

using CaptureCalls = SoftDevice;

TEST_F(CaptureCalls, CAP_15_CAP_60_TasksAfterAnInvalidationAreThrownAway) {
  Log log;
  aclrtEvent of_first = CreateEx();
  Begin(stream_);
  Begin(other_);
  ASSERT_OK(aclrtRecordEvent(of_first, stream_));
  EXPECT_CODE(107032, aclrtStreamWaitEvent(other_, of_first));
  Launch(stream_, log, "a");
  End(stream_, 507903);
  End(other_, 507903);
  ASSERT_OK(aclrtSynchronizeDevice());
  EXPECT_EQ(log.text(), "");
}

TEST_F(CaptureCalls, CAP_61_GetInfoReportsTheInvalidationOnAllMembers) {
  aclrtEvent fork = CreateEx();
  aclrtEvent foreign = CreateEx();
  aclrtStream third = nullptr;
  ASSERT_OK(aclrtCreateStream(&third));
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  Begin(third);
  ASSERT_OK(aclrtRecordEvent(foreign, third));
  EXPECT_CODE(107032, aclrtStreamWaitEvent(other_, foreign));
  for (aclrtStream member : {stream_, other_, third}) EXPECT_EQ(Status(member), kInvalidated);
  EXPECT_CODE(107027, aclmdlRICaptureBegin(stream_, kGlobal));  // CAP-02
  End(stream_, 507903);
  End(third, 507903);
}

TEST_F(CaptureCalls, CAP_62_CAP_64_CAP_65_CallsThatACapturingStreamRefusesWithoutHarm) {
  Begin(stream_);
  aclrtStreamStatus status;
  aclrtStreamAttrValue value{};
  EXPECT_CODE(107027, aclrtSynchronizeStream(stream_));
  EXPECT_CODE(107027, aclrtSynchronizeStreamWithTimeout(stream_, 10));
  EXPECT_CODE(107027, aclrtStreamQuery(stream_, &status));
  EXPECT_CODE(107027, aclrtDestroyStream(stream_));
  EXPECT_CODE(107027, aclrtDestroyStreamForce(stream_));  // CAP-64
  EXPECT_CODE(107027,
              aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value));
  EXPECT_CODE(107027, aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
  EXPECT_OK(aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_CACHE_OP_INFO, &value));  // STR-19
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(CaptureCalls, CAP_63_DeviceSynchronisationDuringACaptureGives107027) {
  Begin(stream_);
  EXPECT_CODE(107027, aclrtSynchronizeDevice());
  EXPECT_NE(End(stream_), nullptr);
  EXPECT_OK(aclrtSynchronizeDevice());
}

TEST_F(CaptureCalls, CAP_66_OtherStreamsMaySynchroniseInEveryMode) {
  for (auto mode : {kGlobal, kThreadLocal, kRelaxed}) {
    Begin(stream_, mode);
    aclrtStreamStatus status;
    EXPECT_OK(aclrtSynchronizeStream(other_));
    EXPECT_OK(aclrtStreamQuery(other_, &status));
    EXPECT_NE(End(stream_), nullptr);
  }
}

TEST_F(CaptureCalls, CAP_67_CAP_68_WhatActsByTasksOfItsOwn) {
  // Debug registration is not there. Dump does nothing, during a capture too. Overflow settings
  // fail during a capture, which goes on.
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "rtDebugRegister"), nullptr);
  aclrtStreamAttrValue value{};
  Begin(stream_);
  EXPECT_OK(aclmdlInitDump());
  EXPECT_OK(aclmdlFinalizeDump());
  value.overflowSwitch = 1;
  EXPECT_CODE(107027,
              aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value));
  ASSERT_OK(aclrtGetStreamAttribute(stream_, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value));
  EXPECT_EQ(value.overflowSwitch, 0u);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(CaptureCalls, CAP_69_CAP_70_ModelsDoNotNestAndNeedAnEnd) {
  Begin(other_);
  aclmdlRI finished = End(other_);
  Begin(stream_);
  aclmdlRI captured = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &captured));
  EXPECT_CODE(107027, aclmdlRIExecuteAsync(finished, stream_));
  EXPECT_CODE(107026, aclmdlRIExecuteAsync(captured, other_));
  EXPECT_CODE(107026, aclmdlRIDestroy(captured));
  EXPECT_EQ(End(stream_), captured);
}

TEST_F(CaptureCalls, CAP_71_EveryTaskKindIsCapturedAndRunsAtEachReplay) {
  Log log;
  void* host = nullptr;
  void* device = nullptr;
  aclrtEvent external = nullptr;
  aclrtNotify notify = nullptr;
  ASSERT_OK(aclrtMallocHost(&host, 64));
  ASSERT_OK(aclrtMalloc(&device, 256, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMemset(device, 256, 0, 256));
  ASSERT_OK(aclrtCreateEventWithFlag(&external, ACL_EVENT_EXTERNAL));
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  std::memset(host, 7, 64);
  auto* bytes = static_cast<char*>(device);
  // The thread that runs the callbacks of the stream.
  std::atomic<uint64_t> thread_id{0};
  std::atomic<bool> stop{false};
  std::thread serving([&] {
    thread_id = static_cast<uint64_t>(pthread_self());
    while (!stop) aclrtProcessReport(10);
  });
  while (thread_id == 0) std::this_thread::yield();
  ASSERT_OK(aclrtSubscribeReport(thread_id, stream_));
  auto add_host = [](void* to) { static_cast<Log*>(to)->Add("h"); };
  auto add_callback = [](void* to) { static_cast<Log*>(to)->Add("c"); };

  Begin(stream_);
  Launch(stream_, log, "k");
  ASSERT_OK(aclrtMemsetAsync(bytes, 64, 1, 64, stream_));
  ASSERT_OK(aclrtMemcpyAsync(bytes + 64, 64, bytes, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_));
  ASSERT_OK(aclrtMemcpyAsync(bytes + 128, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  ASSERT_OK(aclrtRecordEvent(external, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, external));
  ASSERT_OK(aclrtResetEvent(external, stream_));
  aclrtEvent captured = CreateEx();
  ASSERT_OK(aclrtRecordEvent(captured, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, captured));
  ASSERT_OK(aclrtValueWrite(bytes + 192, 3, 0, stream_));
  ASSERT_OK(aclrtValueWait(bytes + 192, 3, ACL_STREAM_WAIT_VALUE_EQ, stream_));
  ASSERT_OK(aclrtRecordNotify(notify, stream_));
  ASSERT_OK(aclrtWaitAndResetNotify(notify, stream_, 0));
  ASSERT_OK(aclrtLaunchHostFunc(stream_, add_host, &log));
  ASSERT_OK(aclrtLaunchCallback(add_callback, &log, ACL_CALLBACK_BLOCK, stream_));
  aclmdlRI model = End(stream_);
  EXPECT_EQ(log.text(), "");
  for (int replay = 0; replay < 2; ++replay) {
    ASSERT_OK(aclrtMemset(device, 256, 0, 256));
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
    char read[256];
    ASSERT_OK(aclrtMemcpy(read, 256, device, 256, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < 64; ++i) {
      ASSERT_EQ(read[i], 1);
      ASSERT_EQ(read[64 + i], 1);
      ASSERT_EQ(read[128 + i], 7);
    }
    EXPECT_EQ(read[192], 3);
  }
  EXPECT_EQ(log.text(), "khckhc");
  ASSERT_OK(aclrtUnSubscribeReport(thread_id, stream_));
  stop = true;
  serving.join();
  ASSERT_OK(aclrtFreeHost(host));
  ASSERT_OK(aclrtFree(device));
}

TEST_F(CaptureCalls, CAP_72_TasksThatCannotBeCapturedAreRefusedAtSubmission) {
  aclrtEvent old = nullptr;
  ASSERT_OK(aclrtCreateEvent(&old));
  Begin(stream_);
  EXPECT_CODE(207000, aclrtRecordEvent(old, stream_));
  EXPECT_CODE(207000, aclrtStreamWaitEvent(stream_, old));
  EXPECT_EQ(Status(stream_), kActive);
  ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
  EXPECT_CODE(507009, aclrtLaunchHostFunc(
                          stream_, [](void*) {}, nullptr));
  End(stream_, 507903);
}

TEST_F(CaptureCalls, CAP_73_ResettingTheDeviceDiscardsTheCapture) {
  Log log;
  Begin(stream_);
  aclmdlRI model = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &model));
  Launch(stream_, log, "a");
  ASSERT_OK(aclrtResetDeviceForce(0));
  EXPECT_CODE(107017, aclmdlRIDestroy(model));
  ASSERT_OK(aclrtSetDevice(0));
  ASSERT_OK(aclrtCreateStream(&stream_));
  Begin(stream_);
  EXPECT_NE(End(stream_), nullptr);
  EXPECT_EQ(log.text(), "");
}

TEST_F(CaptureCalls, CAP_73_DestroyingTheContextDiscardsTheCapture) {
  aclrtContext primary = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  aclrtContext second = nullptr;
  ASSERT_OK(aclrtCreateContext(&second, 0));
  aclrtStream inside = nullptr;
  ASSERT_OK(aclrtCreateStream(&inside));
  Log log;
  Begin(inside);
  Launch(inside, log, "a");
  ASSERT_OK(aclrtDestroyContext(second));
  ASSERT_OK(aclrtSetCurrentContext(primary));
  EXPECT_CODE(107017, aclrtSynchronizeStream(inside));
  EXPECT_OK(aclrtSynchronizeDevice());
}

}  // namespace
}  // namespace acltape::device
