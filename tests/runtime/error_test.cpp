// Failures: who reports them and how a program goes on (ERR-03 to ERR-06, STR-14 and STR-15).
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class Recovery : public SoftDevice {
 protected:
  void ResetDevice() {
    ASSERT_OK(aclrtResetDeviceForce(0));
    ASSERT_OK(aclrtSetDevice(0));
    ASSERT_OK(aclrtCreateStream(&stream_));
    ASSERT_OK(aclrtCreateStream(&other_));
  }
  static aclError Nothing(void*) { return 0; }
};

TEST_F(Recovery, ERR_03_AFailureShowsAtSynchroniseOrQueryNotAtItsSubmission) {
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  Log log;
  Launch(stream_, log, "a", 507015);  // asserts that the submission succeeds
  Launch(stream_, log, "b");
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
  EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "ab");
  Gate gate;
  Launch(stream_, log, "c", 507034);
  aclrtEvent reached = CreateEx();
  ASSERT_OK(aclrtRecordEvent(reached, stream_));
  ASSERT_OK(aclrtSynchronizeEvent(reached));
  aclrtStreamStatus status;
  EXPECT_CODE(507034, aclrtStreamQuery(stream_, &status));
  EXPECT_CODE(507034, aclrtSynchronizeStream(stream_));
  EXPECT_OK(aclrtStreamQuery(stream_, &status));  // reported once
}

TEST_F(Recovery, ERR_03_STR_15_InStopModeTheNextSubmissionFails) {
  Log log;
  ASSERT_OK(aclrtSetStreamFailureMode(stream_, ACL_STOP_ON_FAILURE));
  Launch(stream_, log, "a", 507015);
  aclrtEvent event = CreateEx();
  while (aclrtRecordEvent(event, stream_) == 0) std::this_thread::yield();
  EXPECT_CODE(507015, SoftLaunchKernel(stream_, "k", Nothing, nullptr, nullptr));
  EXPECT_CODE(507015, aclrtLaunchHostFunc(
                          other_, [](void*) {}, nullptr));
  EXPECT_CODE(507015, aclrtSynchronizeDevice());
  // Objects may still be destroyed, and a reset makes the device usable again.
  EXPECT_OK(aclrtDestroyEvent(event));
  EXPECT_OK(aclrtDestroyStream(other_));
  ResetDevice();
  Launch(stream_, log, "b");
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "ab");
}

TEST_F(Recovery, STR_14_AFailureOfOneStreamLeavesTheOthersAlone) {
  Log log;
  for (int i = 0; i < 20; ++i) {
    Launch(stream_, log, "f", 507015);
    Launch(other_, log, "o");
  }
  EXPECT_OK(aclrtSynchronizeStream(other_));
  EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.entries().size(), 40u);
  Launch(stream_, log, "a");
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(Recovery, ERR_04_FrequentCodesOfTasks) {
  struct Row {
    aclError code;
    bool of_device;  // sticky (ERR-05)
  };
  constexpr Row kRows[] = {
      {507014, false}, {507015, false}, {507017, false}, {507018, false},
      {507034, false}, {507035, false}, {507036, false}, {507053, true},
      {507054, true},  {507055, true},  {507056, true},  {207003, false},
  };
  for (const Row& row : kRows) {
    Log log;
    Launch(stream_, log, "a", row.code);
    EXPECT_CODE(row.code, aclrtSynchronizeStream(stream_));
    EXPECT_CODE(row.of_device ? row.code : 0, aclrtSynchronizeStream(stream_)) << row.code;
    EXPECT_CODE(row.of_device ? row.code : 0, aclrtSynchronizeStream(other_)) << row.code;
    aclrtDeviceStatus status;
    ASSERT_OK(aclrtQueryDeviceStatus(0, &status));
    EXPECT_EQ(status, row.of_device ? ACL_RT_DEVICE_STATUS_ABNORMAL : ACL_RT_DEVICE_STATUS_NORMAL);
    if (row.of_device) ResetDevice();
  }
}

TEST_F(Recovery, ERR_05_AFaultyDeviceRefusesEverySubmission) {
  Log log;
  Launch(stream_, log, "a", 507053);
  EXPECT_CODE(507053, aclrtSynchronizeDevice());
  void* memory = nullptr;
  aclrtStream later = nullptr;
  ASSERT_OK(aclrtCreateStream(&later));
  ASSERT_OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_CODE(507053, aclrtMemsetAsync(memory, 64, 0, 64, later));
  EXPECT_CODE(507053, aclrtRecordEvent(CreateEx(), later));
  EXPECT_CODE(507053, aclrtSynchronizeStream(later));
  EXPECT_CODE(507053, aclrtSynchronizeStream(later));  // sticky
  ASSERT_OK(aclrtFree(memory));
  ResetDevice();
  Launch(stream_, log, "b");
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "ab");
}

TEST_F(Recovery, ERR_06_AModelThatFailedOnceCanBeExecutedAgain) {
  static std::atomic<int> runs;
  runs = 0;
  Log log;
  Begin(stream_);
  Launch(stream_, log, "a");
  ASSERT_OK(SoftLaunchKernel(
      stream_, "second_time", [](void*) -> aclError { return ++runs == 2 ? 507015 : 0; }, nullptr,
      nullptr));
  Launch(stream_, log, "b");
  aclmdlRI model = End(stream_);
  for (aclError expected : {0, 507011, 0}) {
    ASSERT_OK(aclmdlRIExecuteAsync(model, other_));
    EXPECT_EQ(aclrtSynchronizeStream(other_), expected);
    if (expected == 0) continue;
    std::string message = aclGetRecentErrMsg();
    EXPECT_NE(message.find("second_time"), std::string::npos) << message;
    EXPECT_NE(message.find("replay of model"), std::string::npos) << message;
  }
  EXPECT_EQ(log.text(), "ababab");
  EXPECT_OK(aclrtSynchronizeStream(stream_));  // only the exec stream reports it
  EXPECT_OK(aclmdlRIDestroy(model));
}

TEST_F(Recovery, ERR_02_ERR_03_AnErrorInASideThread) {
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  aclrtStream of_side = nullptr;
  InThread([&] {
    Log log;
    ASSERT_OK(aclrtCreateStream(&of_side));
    Launch(of_side, log, "a", 507035);
    EXPECT_CODE(507035, aclrtSynchronizeStream(of_side));
    EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 507035);
    Launch(of_side, log, "b", 507036);  // left for another thread to find
    aclrtEvent end = CreateEx();
    ASSERT_OK(aclrtRecordEvent(end, of_side));
    ASSERT_OK(aclrtSynchronizeEvent(end));
  });
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);  // this thread has none yet
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_CODE(507036, aclrtSynchronizeStream(of_side));
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 507036);
  Log log;
  Launch(of_side, log, "c");
  EXPECT_OK(aclrtSynchronizeStream(of_side));
}

TEST_F(Recovery, ERR_08_RefusedCallsLeaveACaptureAndItsStreamAlone) {
  Log log;
  Begin(stream_);
  Launch(stream_, log, "a");
  EXPECT_EQ(aclrtMemcpyAsync(nullptr, 8, nullptr, 8, ACL_MEMCPY_DEFAULT, stream_), 100000);
  EXPECT_EQ(aclrtRecordEvent(nullptr, stream_), 100000);
  EXPECT_EQ(aclrtLaunchHostFunc(stream_, nullptr, nullptr), 100000);
  Launch(stream_, log, "b");
  EXPECT_EQ(Status(stream_), kActive);
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "ab");
}

}  // namespace
}  // namespace acltape::device
