// Initialisation, devices and contexts: rules INIT, DEV and CTX.
#include <cstdio>
#include <fstream>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

// These tests start from an untouched process state: each runs in a process of its own under CTest,
// and tidies up for runs of the whole program.
class Untouched : public testing::Test {
 protected:
  // The tests of the initialisation (INIT) begin without one.
  void SetUp() override {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    if (!name.starts_with("INIT_")) aclInit(nullptr);
  }
  void TearDown() override {
    aclrtResetDeviceForce(0);
    aclrtResetDeviceForce(1);
    aclFinalize();
    aclGetRecentErrMsg();
  }
  std::string WriteFile(const std::string& name, const std::string& text) {
    std::string path = testing::TempDir() + name + std::to_string(getpid());
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(Untouched, INIT_02_INIT_05_RepeatedInitAndFinalize) {
  EXPECT_OK(aclInit(nullptr));
  EXPECT_CODE(100002, aclInit(nullptr));
  EXPECT_CODE(100002, aclInit(nullptr));
  EXPECT_OK(aclFinalize());  // drops the count to zero at once
  EXPECT_CODE(100037, aclFinalize());
  EXPECT_OK(aclInit(nullptr));
}

TEST_F(Untouched, INIT_06_FinalizeReferenceCountsDown) {
  uint64_t count = 99;
  EXPECT_CODE(100037, aclFinalizeReference(&count));
  EXPECT_OK(aclInit(nullptr));
  EXPECT_CODE(100002, aclInit(nullptr));
  EXPECT_OK(aclFinalizeReference(&count));
  EXPECT_EQ(count, 1u);
  EXPECT_OK(aclFinalizeReference(nullptr));
  EXPECT_CODE(100037, aclFinalizeReference(&count));
}

TEST_F(Untouched, INIT_01_INIT_03_Configurations) {
  std::string empty = WriteFile("empty", "{}");
  std::string nothing = WriteFile("nothing", "");
  std::string unknown = WriteFile("unknown", R"({"something": {"else": 1}})");
  std::string broken = WriteFile("broken", "{ not json");
  EXPECT_CODE(100003, aclInit("/nonexistent/acl.json"));
  EXPECT_CODE(100006, aclInit(broken.c_str()));
  EXPECT_OK(aclInit(nothing.c_str()));
  EXPECT_CODE(100002, aclInit(empty.c_str()));  // the same content: empty
  EXPECT_CODE(100000, aclInit(unknown.c_str()));
  EXPECT_OK(aclFinalize());
  EXPECT_OK(aclInit(unknown.c_str()));
  for (const std::string& path : {empty, nothing, unknown, broken}) std::remove(path.c_str());
}

TEST_F(Untouched, INIT_04_ADefaultDeviceServesThreadsWithoutOne) {
  std::string path = WriteFile("default", R"({"defaultDevice": {"default_device": "0"}})");
  EXPECT_OK(aclInit(path.c_str()));
  std::remove(path.c_str());
  std::thread([] {
    int32_t device = -1;
    EXPECT_OK(aclrtGetDevice(&device));
    EXPECT_EQ(device, 0);
  }).join();
}

TEST_F(Untouched, DEV_04_DEV_15_CountNameAndRange) {
  uint32_t count = 0;
  EXPECT_OK(aclrtGetDeviceCount(&count));
  EXPECT_EQ(count, 1u);
  EXPECT_STREQ(aclrtGetSocName(), "Ascend910B1");
  EXPECT_EQ(aclrtGetSocName(), aclrtGetSocName());
  EXPECT_CODE(107001, aclrtSetDevice(1));
  EXPECT_CODE(107001, aclrtSetDevice(-1));
  EXPECT_CODE(107001, aclrtResetDevice(7));
}

TEST_F(Untouched, DEV_01_DEV_09_ThePrimaryContextIsSharedAndPerThread) {
  int32_t device = -1;
  EXPECT_CODE(107002, aclrtGetDevice(&device));  // DEV-08
  ASSERT_OK(aclrtSetDevice(0));
  aclrtContext here = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&here));
  std::thread([&] {
    aclrtContext there = nullptr;
    EXPECT_CODE(107002, aclrtGetCurrentContext(&there));  // CTX-04
    EXPECT_OK(aclrtSetDevice(0));
    EXPECT_OK(aclrtGetCurrentContext(&there));
    EXPECT_EQ(there, here);
  }).join();
}

TEST_F(Untouched, DEV_02_DEV_05_DEV_06_UseCounts) {
  EXPECT_CODE(507007, aclrtResetDevice(0));
  ASSERT_OK(aclrtSetDevice(0));
  ASSERT_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  EXPECT_OK(aclrtResetDevice(0));
  EXPECT_OK(aclrtSynchronizeStream(stream));
  EXPECT_OK(aclrtResetDevice(0));
  EXPECT_CODE(107017, aclrtSynchronizeStream(stream));
  int32_t device = -1;
  EXPECT_CODE(107002, aclrtGetDevice(&device));
  EXPECT_CODE(507007, aclrtResetDevice(0));
}

TEST_F(Untouched, DEV_05_ResetWaitsForOutstandingWork) {
  ASSERT_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  static std::atomic<int> runs;
  runs = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(SoftLaunchKernel(
        stream, "slow",
        [](void*) -> aclError {
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          ++runs;
          return 0;
        },
        nullptr, nullptr));
  }
  ASSERT_OK(aclrtResetDevice(0));
  EXPECT_EQ(runs, 100);
}

TEST_F(Untouched, DEV_07_Force) {
  ASSERT_OK(aclrtSetDevice(0));
  ASSERT_OK(aclrtSetDevice(0));
  EXPECT_OK(aclrtResetDeviceForce(0));
  EXPECT_CODE(507007, aclrtResetDeviceForce(0));
  EXPECT_CODE(507007, aclrtResetDevice(0));
  ASSERT_OK(aclrtSetDevice(0));
  EXPECT_OK(aclrtResetDevice(0));
  EXPECT_OK(aclrtResetDeviceForce(0));  // after plain resets it is allowed
}

TEST_F(Untouched, DEV_11_TimeoutOfDeviceSynchronisation) {
  ASSERT_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  Gate gate;
  ASSERT_OK(SoftLaunchKernel(stream, "gate", Gate::Run, nullptr, gate.bound()));
  EXPECT_CODE(107000, aclrtSynchronizeDeviceWithTimeout(0));
  EXPECT_CODE(107000, aclrtSynchronizeDeviceWithTimeout(-2));
  EXPECT_CODE(507046, aclrtSynchronizeDeviceWithTimeout(20));
  gate.Open();
  EXPECT_OK(aclrtSynchronizeDeviceWithTimeout(-1));
}

TEST_F(Untouched, DEV_13_PrimaryContextState) {
  int32_t active = 7;
  uint32_t flags = 7;
  EXPECT_OK(aclrtGetPrimaryCtxState(0, nullptr, &active));
  EXPECT_EQ(active, 0);
  ASSERT_OK(aclrtSetDevice(0));
  EXPECT_OK(aclrtGetPrimaryCtxState(0, nullptr, &active));
  EXPECT_EQ(active, 1);
  ASSERT_OK(aclrtResetDevice(0));
  EXPECT_OK(aclrtGetPrimaryCtxState(0, nullptr, &active));
  EXPECT_EQ(active, 0);
  EXPECT_CODE(100000, aclrtGetPrimaryCtxState(0, &flags, &active));
}

TEST_F(Untouched, DEV_16_ResourceLimits) {
  ASSERT_OK(aclrtSetDevice(0));
  uint32_t most = 0;
  uint32_t value = 0;
  ASSERT_OK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &most));
  ASSERT_OK(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 8));
  aclrtStream stream = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  ASSERT_OK(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, &value));
  EXPECT_EQ(value, 8u);
  ASSERT_OK(aclrtSetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, 4));
  ASSERT_OK(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, &value));
  EXPECT_EQ(value, 4u);
  ASSERT_OK(aclrtUseStreamResInCurrentThread(stream));
  ASSERT_OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &value));
  EXPECT_EQ(value, 4u);
  ASSERT_OK(aclrtUnuseStreamResInCurrentThread(stream));
  ASSERT_OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &value));
  EXPECT_EQ(value, 8u);
  ASSERT_OK(aclrtResetDeviceResLimit(0));
  ASSERT_OK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &value));
  EXPECT_EQ(value, most);
  EXPECT_CODE(107000, aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, most + 1));
}

TEST_F(Untouched, CTX_02_CTX_03_DEV_03_ExplicitContexts) {
  ASSERT_OK(aclrtSetDevice(0));
  aclrtContext primary = nullptr;
  aclrtContext second = nullptr;
  aclrtContext now = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  ASSERT_OK(aclrtCreateContext(&second, 0));
  ASSERT_OK(aclrtGetCurrentContext(&now));
  EXPECT_EQ(now, second);
  aclrtStream of_second = nullptr;
  ASSERT_OK(aclrtCtxGetCurrentDefaultStream(&of_second));
  ASSERT_OK(aclrtSetCurrentContext(primary));
  aclrtStream of_primary = nullptr;
  ASSERT_OK(aclrtCtxGetCurrentDefaultStream(&of_primary));
  EXPECT_NE(of_primary, of_second);
  ASSERT_OK(aclrtSetCurrentContext(second));
  ASSERT_OK(aclrtSetDevice(0));  // drops the explicit context
  ASSERT_OK(aclrtGetCurrentContext(&now));
  EXPECT_EQ(now, primary);
  EXPECT_CODE(100000, aclrtSetCurrentContext(nullptr));
  EXPECT_CODE(107001, aclrtCreateContext(&second, 5));
  EXPECT_OK(aclrtDestroyContext(second));
}

TEST_F(Untouched, CTX_05_CTX_06_CTX_07_CTX_08_Destruction) {
  ASSERT_OK(aclrtSetDevice(0));
  aclrtContext primary = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  EXPECT_CODE(107002, aclrtDestroyContext(primary));
  aclrtContext second = nullptr;
  ASSERT_OK(aclrtCreateContext(&second, 0));
  aclrtStream default_stream = nullptr;
  ASSERT_OK(aclrtCtxGetCurrentDefaultStream(&default_stream));
  EXPECT_CODE(107000, aclrtDestroyStream(default_stream));
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  ASSERT_OK(aclrtCreateEvent(&event));
  EXPECT_OK(aclrtDestroyContext(second));
  EXPECT_CODE(107002, aclrtDestroyContext(second));
  EXPECT_CODE(107017, aclrtSynchronizeStream(stream));
  EXPECT_CODE(107017, aclrtDestroyEvent(event));
  aclrtContext now = nullptr;
  EXPECT_CODE(107002, aclrtGetCurrentContext(&now));
  EXPECT_CODE(100000, aclrtDestroyContext(nullptr));
  int on_stack = 0;
  EXPECT_CODE(107002, aclrtSetCurrentContext(&on_stack));
}

TEST_F(Untouched, CTX_09_OptionsThatWereNeverSet) {
  ASSERT_OK(aclrtSetDevice(0));
  int64_t value = 0;
  EXPECT_CODE(107021, aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  ASSERT_OK(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
  ASSERT_OK(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  EXPECT_EQ(value, 1);
}

TEST_F(Untouched, INIT_04_ErrorMessagesOfTheProcess) {
  std::string path = WriteFile("messages", R"({"err_msg_mode": "1", "dump": {"dump_path": "x"},
      "event_mode": 1, "max_opqueue_num": "2", "StackSize": {"aicore_stack_size": 32768}})");
  EXPECT_OK(aclInit(path.c_str()));
  std::remove(path.c_str());
  aclGetRecentErrMsg();
  EXPECT_EQ(aclrtFree(nullptr), 100000);
  std::thread([] {
    const char* message = aclGetRecentErrMsg();  // the error of the other thread
    ASSERT_NE(message, nullptr);
    EXPECT_NE(std::string(message).find("aclrtFree"), std::string::npos) << message;
  }).join();
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_OK(aclFinalize());
  // Without the key every thread has its own.
  EXPECT_OK(aclInit(nullptr));
  EXPECT_EQ(aclrtFree(nullptr), 100000);
  std::thread([] { EXPECT_EQ(aclGetRecentErrMsg(), nullptr); }).join();
  EXPECT_NE(aclGetRecentErrMsg(), nullptr);
}

TEST_F(Untouched, INIT_07_OneFinaliseIsEnough) {
  EXPECT_OK(aclInit(nullptr));
  for (int i = 0; i < 5; ++i) EXPECT_CODE(100002, aclInit(nullptr));
  EXPECT_OK(aclFinalize());
  EXPECT_CODE(100037, aclFinalize());
  uint64_t count = 0;
  EXPECT_CODE(100037, aclFinalizeReference(&count));
}

TEST_F(Untouched, DEV_08_ADeviceMustBeSetFirst) {
  int32_t device = -1;
  EXPECT_CODE(107002, aclrtGetDevice(&device));
  ASSERT_OK(aclrtSetDevice(0));
  ASSERT_OK(aclrtGetDevice(&device));
  EXPECT_EQ(device, 0);
  std::thread([] {
    int32_t of_thread = -1;
    EXPECT_CODE(107002, aclrtGetDevice(&of_thread));
  }).join();
}

TEST_F(Untouched, DEV_10_SynchronisationIsThatOfTheContext) {
  ASSERT_OK(aclrtSetDevice(0));
  aclrtContext primary = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  aclrtStream first = nullptr;
  aclrtStream second = nullptr;
  ASSERT_OK(aclrtCreateStream(&first));
  ASSERT_OK(aclrtCreateStream(&second));
  Gate one;
  Gate two;
  ASSERT_OK(SoftLaunchKernel(first, "gate", Gate::Run, nullptr, one.bound()));
  ASSERT_OK(SoftLaunchKernel(second, "gate", Gate::Run, nullptr, two.bound()));
  one.Open();
  EXPECT_CODE(507046, aclrtSynchronizeDeviceWithTimeout(20));  // every stream counts
  aclrtContext other = nullptr;
  ASSERT_OK(aclrtCreateContext(&other, 0));
  EXPECT_OK(aclrtSynchronizeDeviceWithTimeout(1000));  // streams of other contexts do not count
  two.Open();
  ASSERT_OK(aclrtSetCurrentContext(primary));
  EXPECT_OK(aclrtSynchronizeDevice());
  ASSERT_OK(aclrtDestroyContext(other));
}

TEST_F(Untouched, DEV_12_ACaptureRefusesDeviceSynchronisation) {
  ASSERT_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  aclrtStream persistent = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  ASSERT_OK(aclrtCreateStreamWithConfig(&persistent, 0, ACL_STREAM_PERSISTENT));
  ASSERT_OK(SoftLaunchKernel(
      persistent, "never", [](void*) -> aclError { return 0; }, nullptr, nullptr));
  EXPECT_OK(aclrtSynchronizeDevice());  // skips the persistent stream
  for (auto mode : {kGlobal, kThreadLocal, kRelaxed}) {
    ASSERT_OK(aclmdlRICaptureBegin(stream, mode));
    EXPECT_CODE(107027, aclrtSynchronizeDevice());
    EXPECT_CODE(107027, aclrtSynchronizeDeviceWithTimeout(10));
    aclmdlRI model = nullptr;
    EXPECT_OK(aclmdlRICaptureEnd(stream, &model));
  }
  EXPECT_OK(aclrtSynchronizeDevice());
}

TEST_F(Untouched, CTX_01_TheCurrentContextBelongsToTheThread) {
  ASSERT_OK(aclrtSetDevice(0));
  aclrtContext primary = nullptr;
  aclrtContext second = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  ASSERT_OK(aclrtCreateContext(&second, 0));
  std::thread([&] {
    ASSERT_OK(aclrtSetCurrentContext(primary));
    aclrtContext now = nullptr;
    ASSERT_OK(aclrtGetCurrentContext(&now));
    EXPECT_EQ(now, primary);
    aclrtStream stream = nullptr;
    ASSERT_OK(aclrtCreateStream(&stream));  // in the thread's context
    ASSERT_OK(aclrtSetCurrentContext(second));
    EXPECT_CODE(107003, aclrtDestroyStream(stream));
  }).join();
  aclrtContext now = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&now));
  EXPECT_EQ(now, second);  // another thread does not change it
  ASSERT_OK(aclrtDestroyContext(second));
}

TEST_F(Untouched, CTX_06_AContextThatIsBeingDestroyedGives507007) {
  ASSERT_OK(aclrtSetDevice(0));
  aclrtContext second = nullptr;
  ASSERT_OK(aclrtCreateContext(&second, 0));
  aclrtStream stream = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  Gate gate;
  ASSERT_OK(SoftLaunchKernel(stream, "gate", Gate::Run, nullptr, gate.bound()));
  gate.WaitUntilEntered();
  std::thread destroyer([&] { EXPECT_OK(aclrtDestroyContext(second)); });
  int32_t device = 0;
  while (aclrtGetDevice(&device) == 0) std::this_thread::yield();  // until the teardown has begun
  EXPECT_CODE(507007, aclrtDestroyContext(second));
  gate.Open();  // CTX-07: it waits for its streams
  destroyer.join();
  EXPECT_CODE(107002, aclrtDestroyContext(second));
}

TEST_F(Untouched, CTX_07_DestroyWaitsForItsStreams) {
  ASSERT_OK(aclrtSetDevice(0));
  aclrtContext second = nullptr;
  ASSERT_OK(aclrtCreateContext(&second, 0));
  aclrtStream stream = nullptr;
  ASSERT_OK(aclrtCreateStream(&stream));
  static std::atomic<int> runs;
  runs = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(SoftLaunchKernel(
        stream, "slow",
        [](void*) -> aclError {
          std::this_thread::sleep_for(std::chrono::microseconds(500));
          ++runs;
          return 0;
        },
        nullptr, nullptr));
  }
  ASSERT_OK(aclrtDestroyContext(second));
  EXPECT_EQ(runs, 20);
}

TEST_F(Untouched, DEV_05_ResetReleasesStreamsEventsAndModels) {
  ASSERT_OK(aclrtSetDevice(0));
  ASSERT_OK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  aclrtNotify notify = nullptr;
  aclmdlRI model = nullptr;
  uint32_t streams_before = 0;
  ASSERT_OK(aclrtGetStreamAvailableNum(&streams_before));
  ASSERT_OK(aclrtCreateStream(&stream));
  ASSERT_OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  ASSERT_OK(aclmdlRICaptureBegin(stream, kGlobal));
  ASSERT_OK(aclmdlRICaptureEnd(stream, &model));
  ASSERT_OK(aclrtResetDevice(0));
  EXPECT_OK(aclmdlRIExecuteAsync(model, stream));  // the count is not zero yet
  ASSERT_OK(aclrtResetDevice(0));
  ASSERT_OK(aclrtSetDevice(0));
  EXPECT_CODE(107017, aclrtSynchronizeStream(stream));
  EXPECT_CODE(107017, aclrtRecordEvent(event, nullptr));
  EXPECT_CODE(107017, aclrtRecordNotify(notify, nullptr));
  EXPECT_CODE(107017, aclmdlRIExecuteAsync(model, nullptr));
  uint32_t streams_after = 0;
  ASSERT_OK(aclrtGetStreamAvailableNum(&streams_after));
  EXPECT_EQ(streams_after, streams_before);
}

}  // namespace
}  // namespace acltape::device
