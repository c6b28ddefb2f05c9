// Execution and destruction of models: rules EXE-01 to EXE-20.
#include <cstring>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class ModelRun : public SoftDevice {
 protected:
  aclmdlRI CaptureLog(Log& log, const std::string& entry) {
    Begin(stream_);
    Launch(stream_, log, entry);
    return End(stream_);
  }
  aclmdlRI CaptureGate(Gate& gate) {
    Begin(stream_);
    Launch(stream_, gate);
    return End(stream_);
  }
};

TEST_F(ModelRun, EXE_01_TheDefaultStreamIsALegalTarget) {
  Log log;
  aclmdlRI model = CaptureLog(log, "a");
  EXPECT_CODE(100000, aclmdlRIExecuteAsync(nullptr, stream_));
  ASSERT_OK(aclmdlRIExecuteAsync(model, nullptr));
  ASSERT_OK(aclrtSynchronizeStream(nullptr));
  EXPECT_EQ(log.text(), "a");
}

TEST_F(ModelRun, EXE_02_Refusals) {
  Log log;
  aclmdlRI model = CaptureLog(log, "a");
  aclrtStream persistent = nullptr;
  ASSERT_OK(aclrtCreateStreamWithConfig(&persistent, 0, ACL_STREAM_PERSISTENT));
  EXPECT_CODE(107000, aclmdlRIExecuteAsync(model, persistent));
  aclrtContext primary = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  aclrtContext second = nullptr;
  ASSERT_OK(aclrtCreateContext(&second, 0));
  EXPECT_CODE(107003, aclmdlRIExecuteAsync(model, stream_));
  EXPECT_CODE(107004, aclmdlRIExecuteAsync(model, nullptr));
  ASSERT_OK(aclrtDestroyContext(second));
  ASSERT_OK(aclrtSetCurrentContext(primary));
}

TEST_F(ModelRun, EXE_03_AReplayIsOneTaskInTheOrderOfItsStream) {
  Log log;
  aclmdlRI model = CaptureLog(log, "m");
  Gate gate;
  Launch(other_, gate);
  Launch(other_, log, "1");
  ASSERT_OK(aclmdlRIExecuteAsync(model, other_));
  Launch(other_, log, "2");
  ASSERT_OK(aclmdlRIExecuteAsync(model, other_));
  EXPECT_EQ(log.text(), "");
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "1m2m");
}

TEST_F(ModelRun, EXE_05_TheExecStreamMayBeNewerThanTheModel) {
  Log log;
  aclmdlRI model = CaptureLog(log, "a");
  ASSERT_OK(aclrtDestroyStream(stream_));  // the captured stream is not needed any more
  aclrtStream later = nullptr;
  ASSERT_OK(aclrtCreateStream(&later));
  ASSERT_OK(aclmdlRIExecuteAsync(model, later));
  ASSERT_OK(aclrtSynchronizeStream(later));
  EXPECT_EQ(log.text(), "a");
}

TEST_F(ModelRun, EXE_07_ReplaysOfOneModelOnTwoStreamsRunInLaunchOrder) {
  static std::atomic<int> running;
  static std::atomic<bool> overlapped;
  running = 0;
  overlapped = false;
  Begin(stream_);
  ASSERT_OK(SoftLaunchKernel(
      stream_, "exclusive",
      [](void*) -> aclError {
        if (running.fetch_add(1) != 0) overlapped = true;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        running.fetch_sub(1);
        return 0;
      },
      nullptr, nullptr));
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(aclmdlRIExecuteAsync(model, i % 2 == 0 ? stream_ : other_));
  }
  ASSERT_OK(aclrtSynchronizeDevice());
  EXPECT_FALSE(overlapped);
}

TEST_F(ModelRun, EXE_08_DifferentModelsMayRunAtTheSameTime) {
  Gate first_gate;
  Gate second_gate;
  aclmdlRI first = CaptureGate(first_gate);
  aclmdlRI second = CaptureGate(second_gate);
  ASSERT_OK(aclmdlRIExecuteAsync(first, stream_));
  ASSERT_OK(aclmdlRIExecuteAsync(second, other_));
  first_gate.WaitUntilEntered();
  second_gate.WaitUntilEntered();  // both stand inside their graphs
  first_gate.Open();
  second_gate.Open();
  ASSERT_OK(aclrtSynchronizeDevice());
}

TEST_F(ModelRun, EXE_11_ExecuteIsForBuiltModels) {
  Log log;
  aclmdlRI model = CaptureLog(log, "a");
  EXPECT_CODE(107000, aclmdlRIExecute(model, 0));
  EXPECT_CODE(107000, aclmdlRIExecute(model, 100));
  EXPECT_CODE(100000, aclmdlRIExecute(nullptr, 100));
}

TEST_F(ModelRun, EXE_12_AReplayUsesTheMemoryAtReplayTime) {
  void* in = nullptr;
  void* out = nullptr;
  ASSERT_OK(aclrtMalloc(&in, 4, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMalloc(&out, 4, ACL_MEM_MALLOC_HUGE_FIRST));
  Begin(stream_);
  ASSERT_OK(aclrtMemcpyAsync(out, 4, in, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_));
  aclmdlRI model = End(stream_);
  for (int32_t value : {3, 4}) {
    ASSERT_OK(aclrtMemcpy(in, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
    int32_t read = 0;
    ASSERT_OK(aclrtMemcpy(&read, 4, out, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT_EQ(read, value);
  }
  ASSERT_OK(aclrtFree(in));
  ASSERT_OK(aclrtFree(out));
}

TEST_F(ModelRun, EXE_13_Destroy) {
  Log log;
  aclmdlRI model = CaptureLog(log, "a");
  EXPECT_CODE(100000, aclmdlRIDestroy(nullptr));
  aclrtContext primary = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  aclrtContext second = nullptr;
  ASSERT_OK(aclrtCreateContext(&second, 0));
  EXPECT_OK(aclmdlRIDestroy(model));  // unknown to this context: nothing happens
  ASSERT_OK(aclrtDestroyContext(second));
  ASSERT_OK(aclrtSetCurrentContext(primary));
  EXPECT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_OK(aclmdlRIDestroy(model));
  EXPECT_CODE(107017, aclmdlRIDestroy(model));  // GEN-09
  EXPECT_CODE(107017, aclmdlRIExecuteAsync(model, stream_));
}

TEST_F(ModelRun, EXE_13_DestroyDropsTheCapturedTasks) {
  static std::atomic<int> drops;
  static std::atomic<int> runs;
  drops = 0;
  runs = 0;
  Begin(stream_);
  ASSERT_OK(SoftLaunchKernel(
      stream_, "k",
      [](void*) -> aclError {
        ++runs;
        return 0;
      },
      [](void*) { ++drops; }, &drops));
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 5; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(runs, 5);
  EXPECT_EQ(drops, 0);
  ASSERT_OK(aclmdlRIDestroy(model));
  EXPECT_EQ(drops, 1);
}

TEST_F(ModelRun, EXE_14_DestroyWaitsForARunningReplay) {
  Gate gate;
  aclmdlRI model = CaptureGate(gate);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  gate.WaitUntilEntered();
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    gate.Open();
  });
  EXPECT_OK(aclmdlRIDestroy(model));
  opener.join();
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(ModelRun, EXE_14_DestroyGivesUpAfterTenSeconds) {
  Gate gate;
  aclmdlRI model = CaptureGate(gate);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_CODE(107037, aclmdlRIDestroy(model));
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_OK(aclmdlRIExecuteAsync(model, stream_));  // the model stayed alive
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_OK(aclmdlRIDestroy(model));
}

TEST_F(ModelRun, EXE_15_DestroyCallbacks) {
  Log log;
  auto add = [](void* user_data) { static_cast<Log*>(user_data)->Add("destroyed"); };
  auto other = [](void* user_data) { static_cast<Log*>(user_data)->Add("other"); };
  Begin(stream_);
  aclmdlRI model = End(stream_);
  EXPECT_CODE(107000, aclmdlRIDestroyRegisterCallback(model, nullptr, nullptr));
  EXPECT_CODE(107000, aclmdlRIDestroyRegisterCallback(nullptr, add, nullptr));
  EXPECT_OK(aclmdlRIDestroyRegisterCallback(model, add, &log));
  EXPECT_CODE(107000, aclmdlRIDestroyRegisterCallback(model, add, &log));
  EXPECT_CODE(107000, aclmdlRIDestroyUnregisterCallback(model, other));
  EXPECT_OK(aclmdlRIDestroyRegisterCallback(model, other, &log));
  EXPECT_OK(aclmdlRIDestroyUnregisterCallback(model, other));
  EXPECT_OK(aclmdlRIDestroy(model));
  EXPECT_EQ(log.text(), "destroyed");
}

TEST_F(ModelRun, EXE_16_ModelsDieWithTheirContext) {
  aclrtContext primary = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  aclrtContext second = nullptr;
  ASSERT_OK(aclrtCreateContext(&second, 0));
  aclrtStream inside = nullptr;
  ASSERT_OK(aclrtCreateStream(&inside));
  Begin(inside);
  aclmdlRI model = End(inside);
  ASSERT_OK(aclrtDestroyContext(second));
  ASSERT_OK(aclrtSetCurrentContext(primary));
  EXPECT_CODE(107017, aclmdlRIDestroy(model));
}

TEST_F(ModelRun, EXE_18_Names) {
  Begin(stream_);
  aclmdlRI model = End(stream_);
  char name[1024] = "x";
  EXPECT_CODE(107000, aclmdlRIGetName(model, 0, name));
  ASSERT_OK(aclmdlRIGetName(model, sizeof(name), name));
  EXPECT_STREQ(name, "");
  std::string longer(600, 'n');
  ASSERT_OK(aclmdlRISetName(model, longer.c_str()));
  ASSERT_OK(aclmdlRIGetName(model, sizeof(name), name));
  EXPECT_EQ(std::strlen(name), 512u);
  ASSERT_OK(aclmdlRIGetName(model, 5, name));
  EXPECT_STREQ(name, "nnnn");
}

TEST_F(ModelRun, EXE_19_IdsWorkWhileCapturingAndAreUnique) {
  uint32_t during = 0;
  uint32_t after = 0;
  uint32_t second_id = 0;
  Begin(stream_);
  aclmdlRI captured = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &captured));
  ASSERT_OK(aclmdlRIGetId(captured, &during));
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIGetId(model, &after));
  EXPECT_EQ(during, after);
  Begin(stream_);
  ASSERT_OK(aclmdlRIGetId(End(stream_), &second_id));
  EXPECT_NE(second_id, after);
}

TEST_F(ModelRun, ERR_06_AFailingGraphTaskIsReportedAtSynchronise) {
  Log log;
  Begin(stream_);
  Launch(stream_, log, "a");
  Launch(stream_, log, "b", 507015);
  Launch(stream_, log, "c");
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 507011);
  std::string message = aclGetRecentErrMsg();
  EXPECT_NE(message.find("kernel_b"), std::string::npos) << message;
  EXPECT_NE(message.find("its kernel failed with 507015 in a replay"), std::string::npos)
      << message;
  EXPECT_EQ(log.text(), "abc");  // continue is the default failure mode
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(ModelRun, ERR_06_InStopModeTheRestOfTheGraphDoesNotRun) {
  Log log;
  Begin(stream_);
  Launch(stream_, log, "a");
  Launch(stream_, log, "b", 507015);
  Launch(stream_, log, "c");
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclrtSetStreamFailureMode(stream_, ACL_STOP_ON_FAILURE));
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_CODE(507011, aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "ab");
}

TEST_F(ModelRun, AbortedReplaysDoNotHoldTheModel) {
  Gate gate;
  Log log;
  aclmdlRI model = CaptureLog(log, "a");
  Launch(stream_, gate);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtStreamAbort(stream_));
  gate.Open();
  ASSERT_OK(aclmdlRIExecuteAsync(model, other_));
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "a");
  EXPECT_OK(aclmdlRIDestroy(model));
}

}  // namespace
}  // namespace acltape::device
