// Callbacks about states, stopping and aborting, and what is known about a failed kernel: CB-11,
// DEV-17, ERR-07, ERR-10, ERR-11, STR-24 and STR-25.
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class States : public SoftDevice {
 protected:
  void TearDown() override {
    aclrtRegStreamStateCallback("test", nullptr, nullptr);
    aclrtRegDeviceStateCallback("test", nullptr, nullptr);
    aclrtSetDeviceTaskAbortCallback("test", nullptr, nullptr);
    SoftDevice::TearDown();
  }
};

TEST_F(States, CB_11_StreamsAreToldWhenTheyBeginAndBeforeTheyEnd) {
  Log log;
  const auto tell = [](aclrtStream stream, aclrtStreamState state, void* args) {
    int32_t id = -1;
    aclrtStreamGetId(stream, &id);  // the stream is alive in both states
    static_cast<Log*>(args)->Add((state == ACL_RT_STREAM_STATE_CREATE_POST ? "+" : "-") +
                                 std::to_string(id));
  };
  ASSERT_OK(aclrtRegStreamStateCallback("test", tell, &log));
  EXPECT_CODE(107000, aclrtRegStreamStateCallback("test", tell, &log));  // once
  EXPECT_CODE(107000, aclrtRegStreamStateCallback("", tell, &log));
  EXPECT_CODE(107000, aclrtRegStreamStateCallback("other", nullptr, nullptr));
  aclrtStream stream = nullptr;
  int32_t id = -1;
  ASSERT_OK(aclrtCreateStream(&stream));
  ASSERT_OK(aclrtStreamGetId(stream, &id));
  ASSERT_OK(aclrtDestroyStream(stream));
  const std::string number = std::to_string(id);
  EXPECT_EQ(log.text(), "+" + number + "-" + number);
  // The default stream of a context is one of them.
  aclrtContext context = nullptr;
  ASSERT_OK(aclrtCreateContext(&context, 0));
  EXPECT_EQ(log.entries().size(), 3u);
  ASSERT_OK(aclrtDestroyContext(context));
  EXPECT_EQ(log.entries().size(), 4u);
  EXPECT_EQ(log.entries()[2][0], '+');
  EXPECT_EQ(log.entries()[3], "-" + log.entries()[2].substr(1));
  ASSERT_OK(aclrtSetDevice(0));
  ASSERT_OK(aclrtRegStreamStateCallback("test", nullptr, nullptr));
  ASSERT_OK(aclrtCreateStream(&stream));
  EXPECT_EQ(log.entries().size(), 4u);
}

TEST_F(States, DEV_17_SettingAndResettingADeviceIsToldBeforeAndAfter) {
  Log log;
  const auto tell = [](int32_t device, aclrtDeviceState state, void* args) {
    static_cast<Log*>(args)->Add(std::to_string(device) + ":" + std::to_string(state) + " ");
  };
  ASSERT_OK(aclrtRegDeviceStateCallback("test", tell, &log));
  EXPECT_CODE(107000, aclrtRegDeviceStateCallback("test", tell, &log));
  ASSERT_OK(aclrtSetDevice(0));
  ASSERT_OK(aclrtResetDevice(0));
  EXPECT_EQ(log.text(), "0:0 0:1 0:2 0:3 ");
  EXPECT_CODE(107001, aclrtSetDevice(99));  // a device that is not there has no state
  EXPECT_EQ(log.entries().size(), 4u);
}

TEST_F(States, STR_24_StoppingEndsTheTaskThatWaitsAndKeepsTheRest) {
  aclrtNotify never = nullptr;
  ASSERT_OK(aclrtCreateNotify(&never, 0));
  Log log;
  ASSERT_OK(aclrtWaitAndResetNotify(never, stream_, 0));
  Launch(stream_, log, "a");
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(stream_, 20));
  ASSERT_OK(aclrtStreamStop(stream_));
  EXPECT_OK(aclrtSynchronizeStream(stream_));  // stopped, not failed
  EXPECT_EQ(log.text(), "a");
  ASSERT_OK(aclrtStreamStop(stream_));  // nothing runs: nothing happens
  Launch(stream_, log, "b");
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "ab");
}

TEST_F(States, STR_24_DefaultAndCapturingAndBoundStreamsAreNotStopped) {
  EXPECT_CODE(100000, aclrtStreamStop(nullptr));
  Begin(stream_);
  EXPECT_CODE(107027, aclrtStreamStop(stream_));
  EXPECT_NE(End(stream_), nullptr);
  aclmdlRI model = nullptr;
  aclrtStream bound = nullptr;
  ASSERT_OK(aclmdlRIBuildBegin(&model, 0));
  ASSERT_OK(aclrtCreateStreamWithConfig(&bound, 0, ACL_STREAM_PERSISTENT));
  ASSERT_OK(aclmdlRIBindStream(model, bound, 0));
  EXPECT_CODE(107005, aclrtStreamStop(bound));
}

TEST_F(States, STR_25_APersistentStreamForgetsItsTasks) {
  Log log;
  aclmdlRI model = nullptr;
  aclrtStream bound = nullptr;
  EXPECT_CODE(107000, aclrtPersistentTaskClean(stream_));
  EXPECT_CODE(100000, aclrtPersistentTaskClean(nullptr));
  ASSERT_OK(aclrtCreateStreamWithConfig(&bound, 0, ACL_STREAM_PERSISTENT));
  Launch(bound, log, "x");  // held, and never run
  ASSERT_OK(aclrtPersistentTaskClean(bound));
  ASSERT_OK(aclmdlRIBuildBegin(&model, 0));
  ASSERT_OK(aclmdlRIBindStream(model, bound, 0));
  Launch(bound, log, "a");
  ASSERT_OK(aclmdlRIEndTask(model, bound));
  ASSERT_OK(aclrtPersistentTaskClean(bound));
  Launch(bound, log, "b");
  ASSERT_OK(aclmdlRIEndTask(model, bound));
  ASSERT_OK(aclmdlRIBuildEnd(model, nullptr));
  EXPECT_CODE(107005, aclrtPersistentTaskClean(bound));  // the model is complete
  ASSERT_OK(aclmdlRIExecute(model, -1));
  EXPECT_EQ(log.text(), "b");
}

TEST_F(States, ERR_10_AbortingADeviceDropsItsTasksBetweenTheCallbacks) {
  Log log;
  const auto tell = [](int32_t device, aclrtDeviceTaskAbortStage stage, uint32_t timeout,
                       void* args) -> int32_t {
    static_cast<Log*>(args)->Add(std::to_string(device) + ":" + std::to_string(stage) + ":" +
                                 std::to_string(timeout) + " ");
    return 0;
  };
  ASSERT_OK(aclrtSetDeviceTaskAbortCallback("test", tell, &log));
  EXPECT_CODE(107000, aclrtSetDeviceTaskAbortCallback("test", tell, &log));
  aclrtNotify never = nullptr;
  ASSERT_OK(aclrtCreateNotify(&never, 0));
  for (aclrtStream stream : {stream_, other_}) {
    ASSERT_OK(aclrtWaitAndResetNotify(never, stream, 0));
    Launch(stream, log, "dropped ");
  }
  ASSERT_OK(aclrtDeviceTaskAbort(0, 5000));
  EXPECT_EQ(log.text(), "0:0:5000 0:1:5000 ");
  Launch(stream_, log, "later");
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "0:0:5000 0:1:5000 later");
  EXPECT_CODE(107001, aclrtDeviceTaskAbort(9, 0));
  EXPECT_CODE(107000, aclrtDeviceTaskAbort(0, 36 * 60 * 1000 + 1));
}

TEST_F(States, ERR_10_ATaskThatDoesNotEndMakesTheAbortTimeOut) {
  Gate gate;
  Launch(stream_, gate);
  gate.WaitUntilEntered();
  EXPECT_CODE(507046, aclrtDeviceTaskAbort(0, 30));
  gate.Open();
  EXPECT_OK(aclrtDeviceTaskAbort(0, 0));
}

TEST_F(States, ERR_10_ACallbackThatFailsEndsTheAbort) {
  Log log;
  ASSERT_OK(aclrtSetDeviceTaskAbortCallback(
      "test", [](int32_t, aclrtDeviceTaskAbortStage, uint32_t, void*) -> int32_t { return 3; },
      nullptr));
  Gate gate;
  Launch(stream_, gate);
  Launch(stream_, log, "a");
  EXPECT_CODE(107035, aclrtDeviceTaskAbort(0, 1000));
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "a");  // nothing was aborted
}

TEST_F(States, ERR_11_AFaultOfTheMemoryIsRepaired) {
  aclrtMemUceInfo infos[2] = {};
  size_t found = 7;
  ASSERT_OK(aclrtGetMemUceInfo(0, infos, 2, &found));
  EXPECT_EQ(found, 0u);
  Log log;
  Launch(stream_, log, "a", 507053);
  EXPECT_CODE(507053, aclrtSynchronizeStream(stream_));
  aclrtErrorInfo error{};
  ASSERT_OK(aclrtGetErrorVerbose(0, &error));
  EXPECT_EQ(error.errorType, ACL_RT_ERROR_MEMORY);
  ASSERT_OK(aclrtRepairError(0, &error));
  Launch(stream_, log, "b");
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  Launch(stream_, log, "c", 507053);
  EXPECT_CODE(507053, aclrtSynchronizeStream(stream_));
  void* memory = nullptr;
  ASSERT_OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  infos[0] = {memory, 64, {}};
  ASSERT_OK(aclrtMemUceRepair(0, infos, 1));
  Launch(stream_, log, "d");
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "abcd");
  // A fault that is not the memory's stays.
  error.errorType = ACL_RT_ERROR_OTHERS;
  EXPECT_CODE(207000, aclrtRepairError(0, &error));
  EXPECT_CODE(107000, aclrtMemUceRepair(0, infos, 0));
  EXPECT_CODE(107000, aclrtMemUceRepair(0, infos, 129));
  EXPECT_CODE(107000, aclrtGetMemUceInfo(0, infos, 0, &found));
  EXPECT_CODE(107001, aclrtGetMemUceInfo(5, infos, 2, &found));
  ASSERT_OK(aclrtFree(memory));
}

// The results of the calls that a callback made about the failed kernel.
struct Seen {
  aclError args_code = -1;
  aclError func_code = -1;
  std::string args;
  std::string name;
} seen;

void LookAtKernel(aclrtExceptionInfo* info) {
  void* args = nullptr;
  uint32_t bytes = 0;
  aclrtFuncHandle function = nullptr;
  char name[64] = {};
  seen.args_code = aclrtGetArgsFromExceptionInfo(info, &args, &bytes);
  seen.func_code = aclrtGetFuncHandleFromExceptionInfo(info, &function);
  if (seen.args_code == 0) seen.args.assign(static_cast<const char*>(args), bytes);
  if (aclrtGetFunctionName(function, sizeof(name), name) == 0) seen.name = name;
}

TEST_F(States, ERR_07_ACallbackSeesTheArgumentsAndTheFunctionOfTheKernel) {
  ASSERT_OK(aclrtSetExceptionInfoCallback(LookAtKernel));
  ASSERT_OK(SoftLaunchKernelWithArgs(
      stream_, "broken", [](void*) -> aclError { return 507015; }, "the arguments", 13));
  EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
  EXPECT_EQ(seen.args_code, 0);
  EXPECT_EQ(seen.args, "the arguments");
  EXPECT_EQ(seen.func_code, 0);
  EXPECT_EQ(seen.name, "broken");
  // A kernel of the operator library shows a block of 8 bytes.
  Log log;
  Launch(stream_, log, "a", 507015);
  EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
  EXPECT_EQ(seen.args.size(), 8u);
  EXPECT_EQ(seen.name, "kernel_a");
  // A wait is no kernel.
  aclrtNotify never = nullptr;
  ASSERT_OK(aclrtCreateNotify(&never, 0));
  ASSERT_OK(aclrtWaitAndResetNotify(never, stream_, 1));
  EXPECT_NE(aclrtSynchronizeStream(stream_), 0);
  EXPECT_EQ(seen.args_code, 107000);
  EXPECT_EQ(seen.func_code, 107000);
  void* args = nullptr;
  uint32_t bytes = 0;
  EXPECT_CODE(100000, aclrtGetArgsFromExceptionInfo(nullptr, &args, &bytes));
  ASSERT_OK(aclrtSetExceptionInfoCallback(nullptr));
}

}  // namespace
}  // namespace acltape::device
