// Begin, status and end of captures, illegal calls and invalidation: rules CAP-01 to CAP-26 and
// CAP-60 to CAP-70.
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

using Capture = SoftDevice;

TEST_F(Capture, CAP_01_TasksAreStoredAndNotRun) {
  Log log;
  Begin(stream_);
  Launch(stream_, log, "a");
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "");
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "a");
}

TEST_F(Capture, CAP_02_BeginRefusals) {
  EXPECT_CODE(100000, aclmdlRICaptureBegin(nullptr, kGlobal));
  EXPECT_CODE(107000, aclmdlRICaptureBegin(stream_, static_cast<aclmdlRICaptureMode>(3)));
  aclrtStream default_stream = nullptr;
  ASSERT_OK(aclrtCtxGetCurrentDefaultStream(&default_stream));
  EXPECT_CODE(207000, aclmdlRICaptureBegin(default_stream, kGlobal));
  for (uint32_t flag :
       {ACL_STREAM_PERSISTENT, ACL_STREAM_CPU_SCHEDULE, ACL_STREAM_DEVICE_USE_ONLY}) {
    aclrtStream special = nullptr;
    ASSERT_OK(aclrtCreateStreamWithConfig(&special, 0, flag));
    EXPECT_CODE(507000, aclmdlRICaptureBegin(special, kGlobal)) << flag;
  }
  Begin(stream_);
  EXPECT_CODE(107027, aclmdlRICaptureBegin(stream_, kGlobal));
  aclrtContext primary = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  aclrtContext second = nullptr;
  ASSERT_OK(aclrtCreateContext(&second, 0));
  EXPECT_CODE(107003, aclmdlRICaptureBegin(other_, kGlobal));
  ASSERT_OK(aclrtDestroyContext(second));
  ASSERT_OK(aclrtSetCurrentContext(primary));
  End(stream_);
}

TEST_F(Capture, CAP_03_TasksBeforeBeginRunNormally) {
  Log log;
  Gate gate;
  Launch(stream_, gate);
  Launch(stream_, log, "before");
  Begin(stream_);
  Launch(stream_, log, "captured");
  gate.Open();
  End(stream_);
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "before");
}

TEST_F(Capture, CAP_04_LongCaptureCascadesOverHiddenStreams) {
  static std::atomic<uint64_t> runs;
  runs = 0;
  constexpr uint64_t kTasks = 10000;  // a hidden stream holds 2048
  Begin(stream_);
  for (uint64_t i = 0; i < kTasks; ++i) {
    ASSERT_OK(SoftLaunchKernel(
        stream_, "count",
        [](void*) -> aclError {
          ++runs;
          return 0;
        },
        nullptr, nullptr));
  }
  aclmdlRI model = End(stream_);
  for (int replay = 0; replay < 3; ++replay) ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(runs, 3 * kTasks);
}

TEST_F(Capture, CAP_06_GetInfoReportsStatusAndModel) {
  EXPECT_CODE(100000, aclmdlRICaptureGetInfo(stream_, nullptr, nullptr));
  aclmdlRICaptureStatus status = kActive;
  aclmdlRI model = stream_;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, &status, &model));
  EXPECT_EQ(status, kNone);
  EXPECT_EQ(model, nullptr);  // CAP-07
  Begin(stream_);
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, &status, &model));
  EXPECT_EQ(status, kActive);
  EXPECT_NE(model, nullptr);
  aclmdlRI seen_in_thread = nullptr;
  // No current context is needed.
  std::thread([&] { EXPECT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &seen_in_thread)); }).join();
  EXPECT_EQ(seen_in_thread, model);
  EXPECT_EQ(End(stream_), model);  // CAP-08
  EXPECT_EQ(Status(stream_), kNone);
}

TEST_F(Capture, CAP_10_EmptyCaptureGivesAnExecutableModel) {
  Begin(stream_);
  aclmdlRI model = End(stream_);
  EXPECT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(Capture, CAP_12_CAP_13_EndRefusals) {
  aclmdlRI model = nullptr;
  EXPECT_CODE(100000, aclmdlRICaptureEnd(nullptr, &model));
  EXPECT_CODE(107029, aclmdlRICaptureEnd(stream_, &model));
  aclrtStream default_stream = nullptr;
  ASSERT_OK(aclrtCtxGetCurrentDefaultStream(&default_stream));
  EXPECT_CODE(207000, aclmdlRICaptureEnd(default_stream, &model));
  Begin(stream_);
  EXPECT_CODE(107000, aclmdlRICaptureEnd(stream_, nullptr));
  EXPECT_EQ(Status(stream_), kActive);
  End(stream_);
}

TEST_F(Capture, CAP_14_EndOnAJoinedStreamGives107036AndGoesOn) {
  aclrtEvent fork = CreateEx();
  aclrtEvent join = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  End(other_, 107036);
  EXPECT_EQ(Status(stream_), kActive);
  ASSERT_OK(aclrtRecordEvent(join, other_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, join));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(Capture, CAP_16_EndWithUnjoinedForkGives107025) {
  aclrtEvent fork = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  End(stream_, 107025);
}

TEST_F(Capture, CAP_20_AfterAFailingEndAllStreamsAreUsableAgain) {
  Log log;
  aclrtEvent fork = CreateEx();
  Begin(stream_);
  aclmdlRI captured = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &captured));
  Launch(stream_, log, "lost");
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  End(stream_, 107025);
  EXPECT_EQ(Status(stream_), kNone);
  EXPECT_EQ(Status(other_), kNone);
  EXPECT_CODE(107017, aclmdlRIExecuteAsync(captured, stream_));  // the model is gone
  Launch(other_, log, "x");
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "x");
  Begin(other_);
  EXPECT_NE(End(other_), nullptr);
}

TEST_F(Capture, CAP_21_EndInAnotherThreadGives107038AndLosesTheCapture) {
  for (auto mode : {kGlobal, kThreadLocal}) {
    Begin(stream_, mode);
    InThread([&] { End(stream_, 107038); });
    EXPECT_EQ(Status(stream_), kNone);
    End(stream_, 107029);
  }
}

TEST_F(Capture, CAP_21_ARelaxedCaptureMayEndInAnotherThread) {
  Begin(stream_, kRelaxed);
  InThread([&] { EXPECT_NE(End(stream_), nullptr); });
}

TEST_F(Capture, CAP_22_SeveralCapturesAtATime) {
  Log log;
  Begin(stream_);
  Begin(other_);
  Launch(stream_, log, "a");
  Launch(other_, log, "b");
  aclmdlRI first = End(stream_);
  aclmdlRI second = End(other_);
  EXPECT_NE(first, second);
  ASSERT_OK(aclmdlRIExecuteAsync(second, stream_));
  ASSERT_OK(aclmdlRIExecuteAsync(first, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "ba");
}

TEST_F(Capture, CAP_22_CapturesInSeveralThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      ASSERT_OK(aclrtSetDevice(0));
      aclrtStream stream = nullptr;
      ASSERT_OK(aclrtCreateStream(&stream));
      Log log;
      for (int round = 0; round < 20; ++round) {
        Begin(stream, kRelaxed);
        Launch(stream, log, "x");
        aclmdlRI model = End(stream);
        ASSERT_OK(aclmdlRIExecuteAsync(model, stream));
        ASSERT_OK(aclrtSynchronizeStream(stream));
        ASSERT_OK(aclmdlRIDestroy(model));
      }
      EXPECT_EQ(log.entries().size(), 20u);
      ASSERT_OK(aclrtDestroyStream(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Capture, CAP_24_OriginIsCheckedBeforeTheThread) {
  aclrtEvent fork = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  InThread([&] {
    End(other_, 107036);
    End(stream_, 107038);
  });
}

TEST_F(Capture, CAP_26_CapturedHostToDeviceCopyReadsThePinnedBufferAtReplay) {
  void* host = nullptr;
  void* device = nullptr;
  ASSERT_OK(aclrtMallocHost(&host, 4));
  ASSERT_OK(aclrtMalloc(&device, 4, ACL_MEM_MALLOC_HUGE_FIRST));
  auto* value = static_cast<int32_t*>(host);
  *value = 1;
  Begin(stream_);
  ASSERT_OK(aclrtMemcpyAsync(device, 4, host, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  aclmdlRI model = End(stream_);
  *value = 2;
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  int32_t read = 0;
  ASSERT_OK(aclrtMemcpy(&read, 4, device, 4, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(read, 2);
  ASSERT_OK(aclrtFree(device));
  ASSERT_OK(aclrtFreeHost(host));
}

TEST_F(Capture, CAP_60_TasksAfterAnInvalidationAreThrownAway) {
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

TEST_F(Capture, CAP_61_GetInfoReportsTheInvalidationOnAllMembers) {
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

TEST_F(Capture, CAP_62_CallsThatACapturingStreamRefusesWithoutHarm) {
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

TEST_F(Capture, CAP_63_DeviceSynchronisationDuringACaptureGives107027) {
  Begin(stream_);
  EXPECT_CODE(107027, aclrtSynchronizeDevice());
  EXPECT_NE(End(stream_), nullptr);
  EXPECT_OK(aclrtSynchronizeDevice());
}

TEST_F(Capture, CAP_66_OtherStreamsMaySynchroniseInEveryMode) {
  for (auto mode : {kGlobal, kThreadLocal, kRelaxed}) {
    Begin(stream_, mode);
    aclrtStreamStatus status;
    EXPECT_OK(aclrtSynchronizeStream(other_));
    EXPECT_OK(aclrtStreamQuery(other_, &status));
    EXPECT_NE(End(stream_), nullptr);
  }
}

TEST_F(Capture, CAP_69_CAP_70_ModelsDoNotNestAndNeedAnEnd) {
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

TEST_F(Capture, CAP_73_DestroyingTheContextDiscardsTheCapture) {
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
