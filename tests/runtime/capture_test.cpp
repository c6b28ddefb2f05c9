// Begin, status and end of captures: rules CAP-01 to CAP-26.
#include <chrono>
#include <cstring>

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

TEST_F(Capture, CAP_06_CAP_07_CAP_08_GetInfoReportsStatusAndModel) {
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

TEST_F(Capture, CAP_09_GetInfoIsCheapAndWithoutSideEffects) {
  End(stream_, 107029);
  Begin(stream_);
  aclmdlRI model = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &model));
  constexpr int kCalls = 50000;
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) {
    aclmdlRICaptureStatus status;
    aclmdlRI same = nullptr;
    ASSERT_EQ(aclmdlRICaptureGetInfo(stream_, &status, &same), ACL_SUCCESS);
    ASSERT_EQ(same, model);
  }
  // Two loads, so 100 ns each would be much, also under a sanitizer on a busy machine.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::microseconds(5) * kCalls);
  End(stream_);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 107029);  // the failure before
  uint32_t streams = 0;
  ASSERT_OK(aclmdlRIGetStreams(model, nullptr, &streams));
  EXPECT_EQ(streams, 1u);
}

TEST_F(Capture, CAP_09_GetInfoDuringACaptureOfAnotherThread) {
  std::atomic<bool> stop{false};
  std::thread asking([&] {
    while (!stop) {
      aclmdlRICaptureStatus status;
      aclmdlRI model = nullptr;
      ASSERT_OK(aclmdlRICaptureGetInfo(stream_, &status, &model));
      if (status == kNone) {
        EXPECT_EQ(model, nullptr);
      }
    }
  });
  Log log;
  for (int i = 0; i < 200; ++i) {
    Begin(stream_);
    Launch(stream_, log, "a");
    ASSERT_OK(aclmdlRIDestroy(End(stream_)));
  }
  stop = true;
  asking.join();
}

TEST_F(Capture, CAP_10_EmptyCaptureGivesAnExecutableModel) {
  Begin(stream_);
  aclmdlRI model = End(stream_);
  EXPECT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(Capture, CAP_11_EndMakesTheModelReadyAndTheStreamsNormal) {
  Log log;
  aclrtEvent fork = CreateEx();
  aclrtEvent join = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  Launch(other_, log, "m");
  ASSERT_OK(aclrtRecordEvent(join, other_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, join));
  aclmdlRI model = End(stream_);
  Launch(stream_, log, "1");
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  Launch(other_, log, "2");
  ASSERT_OK(aclrtSynchronizeStream(other_));
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "12m");
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

TEST_F(Capture, CAP_15_EndOfAnInvalidatedCaptureGives507903) {
  aclrtEvent event = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  EXPECT_CODE(107031, aclrtStreamWaitEvent(nullptr, event));
  End(stream_, 507903);
  End(stream_, 107029);  // it is over
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

TEST_F(Capture, CAP_05_CAP_21_EndInAnotherThreadGives107038AndLosesTheCapture) {
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

TEST_F(Capture, CAP_23_ACaptureKeepsNoMemoryAndNoEventAlive) {
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
  void* memory = nullptr;
  ASSERT_OK(aclrtMalloc(&memory, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
  aclrtEvent event = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_EXTERNAL));
  Begin(stream_);
  ASSERT_OK(aclrtMemsetAsync(memory, 64, 0, 64, stream_));
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclrtFree(memory));
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
  EXPECT_EQ(after, before);
  ASSERT_OK(aclrtDestroyEvent(event));
  EXPECT_CODE(107017, aclrtRecordEvent(event, stream_));
  EXPECT_OK(aclmdlRIDestroy(model));
}

TEST_F(Capture, CAP_24_TheOrderOfTheOtherChecks) {
  // Each row adds a cause that is checked earlier than those before it.
  aclrtEvent fork = CreateEx();
  auto begin = [&](int causes) {
    Begin(stream_);
    ASSERT_OK(aclrtRecordEvent(fork, stream_));
    ASSERT_OK(aclrtStreamWaitEvent(other_, fork));  // unjoined
    if (causes > 1) {
      aclmdlRI model = nullptr;
      aclmdlRICondHandle handle = nullptr;
      aclmdlRI branch = nullptr;
      ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &model));
      ASSERT_OK(
          aclmdlRICondHandleCreate(model, 0, static_cast<aclmdlRICondHandleFlag>(0), &handle));
      ASSERT_OK(aclmdlRIAddCondTask({handle, ACL_MODEL_RI_COND_TYPE_IF, 1, &branch}, stream_, 0));
    }
    ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
    if (causes > 2) {
      EXPECT_CODE(107031, aclrtStreamWaitEvent(nullptr, fork));
    }
  };
  begin(1);
  End(stream_, 107033);  // the group, before the join
  begin(2);
  End(stream_, 107045);
  begin(3);
  End(stream_, 507903);
  begin(3);
  InThread([&] { End(stream_, 107038); });
  begin(3);
  InThread([&] { End(other_, 107036); });
  End(stream_, 507903);
}

TEST_F(Capture, CAP_25_KernelsKeepACopyOfTheirArgumentBlock) {
  static std::atomic<int> seen;
  seen = 0;
  int argument = 1;
  Begin(stream_);
  ASSERT_OK(SoftLaunchKernelWithArgs(
      stream_, "add",
      [](void* args) -> aclError {
        seen += *static_cast<int*>(args);
        return 0;
      },
      &argument, sizeof(argument)));
  argument = 100;
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 3; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(seen, 3);
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

}  // namespace
}  // namespace acltape::device
