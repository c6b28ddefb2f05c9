// Streams: rules STR-01 to STR-23 and the general rules on handles.
#include <algorithm>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

using StreamTest = SoftDevice;

TEST_F(StreamTest, STR_01_TasksRunInSubmissionOrder) {
  Log log;
  std::string expected;
  for (int i = 0; i < 500; ++i) {
    Launch(stream_, log, std::string(1, static_cast<char>('a' + i % 26)));
    expected += static_cast<char>('a' + i % 26);
  }
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), expected);
}

TEST_F(StreamTest, STR_02_STR_03_StreamsDoNotWaitForEachOther) {
  Gate gate;
  Log log;
  Launch(stream_, gate);
  Launch(other_, log, "a");
  Launch(nullptr, log, "b");  // the default stream
  ASSERT_OK(aclrtSynchronizeStream(other_));
  ASSERT_OK(aclrtSynchronizeStream(nullptr));
  EXPECT_EQ(log.entries().size(), 2u);
  gate.Open();
}

TEST_F(StreamTest, STR_04_SubmissionBlocksWhileTheQueueIsFull) {
  Gate gate;
  std::atomic<int> submitted{0};
  Launch(stream_, gate);
  gate.WaitUntilEntered();
  std::thread producer([&] {
    ASSERT_OK(aclrtSetDevice(0));
    for (int i = 0; i < 3000; ++i) {
      ASSERT_OK(SoftLaunchKernel(
          stream_, "k", [](void*) -> aclError { return 0; }, nullptr, nullptr));
      submitted.fetch_add(1);
    }
  });
  while (submitted.load() < 2047) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(submitted.load(), 2047);  // one slot holds the gate
  gate.Open();
  producer.join();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(StreamTest, STR_01_ManyThreadsMaySubmitToOneStream) {
  static std::atomic<uint64_t> sum;
  sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      ASSERT_OK(aclrtSetDevice(0));
      for (int i = 0; i < 5000; ++i) {
        ASSERT_OK(SoftLaunchKernel(
            stream_, "add",
            [](void*) -> aclError {
              // Only the worker runs tasks, so this is no race.
              sum.store(sum.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
              return 0;
            },
            nullptr, nullptr));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(sum, 20000u);
}

TEST_F(StreamTest, STR_07_FlagsAreChecked) {
  aclrtStream stream = nullptr;
  EXPECT_CODE(100000, aclrtCreateStream(nullptr));
  EXPECT_CODE(107000, aclrtCreateStreamWithConfig(&stream, 0, 0x40));
  ASSERT_OK(aclrtCreateStreamWithConfig(&stream, 3, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
  uint32_t flags = 0;
  uint32_t priority = 0;
  ASSERT_OK(aclrtStreamGetFlags(stream, &flags));
  ASSERT_OK(aclrtStreamGetPriority(stream, &priority));
  EXPECT_EQ(flags, 3u);
  EXPECT_EQ(priority, 3u);
  ASSERT_OK(aclrtDestroyStream(stream));
}

TEST_F(StreamTest, STR_08_APersistentStreamDoesNotRunItsTasks) {
  Log log;
  aclrtStream persistent = nullptr;
  aclrtStreamStatus status;
  ASSERT_OK(aclrtCreateStreamWithConfig(&persistent, 0, ACL_STREAM_PERSISTENT));
  Launch(persistent, log, "a");
  EXPECT_OK(aclrtSynchronizeStream(persistent));
  EXPECT_OK(aclrtStreamQuery(persistent, &status));
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
  EXPECT_EQ(log.text(), "");
  EXPECT_OK(aclrtDestroyStream(persistent));
}

TEST_F(StreamTest, STR_09_DestroyRunsQueuedTasksAndForceDropsThem) {
  for (bool force : {false, true}) {
    Log log;
    Gate gate;
    aclrtStream stream = nullptr;
    ASSERT_OK(aclrtCreateStream(&stream));
    Launch(stream, gate);
    Launch(stream, log, "a");
    gate.WaitUntilEntered();
    std::thread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      gate.Open();
    });
    EXPECT_OK(force ? aclrtDestroyStreamForce(stream) : aclrtDestroyStream(stream));
    opener.join();
    EXPECT_EQ(log.text(), force ? "" : "a");
    EXPECT_CODE(107017, aclrtSynchronizeStream(stream));
  }
}

TEST_F(StreamTest, STR_10_DestroyRefusals) {
  EXPECT_CODE(100000, aclrtDestroyStream(nullptr));
  aclrtContext primary = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  aclrtContext second = nullptr;
  ASSERT_OK(aclrtCreateContext(&second, 0));
  EXPECT_CODE(107003, aclrtDestroyStream(stream_));
  ASSERT_OK(aclrtDestroyContext(second));
  ASSERT_OK(aclrtSetCurrentContext(primary));
  EXPECT_OK(aclrtDestroyStream(stream_));
  EXPECT_CODE(107017, aclrtDestroyStream(stream_));
}

TEST_F(StreamTest, STR_11_Query) {
  Gate gate;
  aclrtStreamStatus status;
  Launch(stream_, gate);
  ASSERT_OK(aclrtStreamQuery(stream_, &status));
  EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  ASSERT_OK(aclrtStreamQuery(stream_, &status));
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
}

TEST_F(StreamTest, STR_13_SynchroniseWithTimeout) {
  Gate gate;
  Launch(stream_, gate);
  EXPECT_CODE(107000, aclrtSynchronizeStreamWithTimeout(stream_, 0));
  EXPECT_CODE(107000, aclrtSynchronizeStreamWithTimeout(stream_, -2));
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(stream_, 20));
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStreamWithTimeout(stream_, -1));
}

TEST_F(StreamTest, STR_14_InContinueModeLaterTasksRunAndTheNewestErrorIsReported) {
  Log log;
  Launch(stream_, log, "a", 507015);
  Launch(stream_, log, "b", 507035);
  Launch(stream_, log, "c");
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 507035);
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("kernel_b"), std::string::npos);
  EXPECT_EQ(log.text(), "abc");
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(StreamTest, STR_15_StopModeStopsTheWholeContext) {
  Log log;
  Gate gate;
  ASSERT_OK(aclrtSetStreamFailureMode(stream_, ACL_STOP_ON_FAILURE));
  Launch(stream_, gate);
  Launch(stream_, log, "a", 507015);
  Launch(stream_, log, "b");
  gate.Open();
  EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "a");
  auto nothing = [](void*) -> aclError { return 0; };
  EXPECT_CODE(507015, SoftLaunchKernel(other_, "k", nothing, nullptr, nullptr));
  EXPECT_CODE(507015, aclrtSynchronizeStream(other_));
  aclrtStreamStatus status;
  EXPECT_CODE(507015, aclrtStreamQuery(other_, &status));
}

TEST_F(StreamTest, STR_16_TheFailureModeIsRaisedOnce) {
  EXPECT_OK(aclrtSetStreamFailureMode(nullptr, ACL_CONTINUE_ON_FAILURE));  // STR-17
  EXPECT_CODE(107000, aclrtSetStreamFailureMode(stream_, 2));
  EXPECT_OK(aclrtSetStreamFailureMode(stream_, ACL_STOP_ON_FAILURE));
  EXPECT_OK(aclrtSetStreamFailureMode(stream_, ACL_STOP_ON_FAILURE));
  EXPECT_CODE(207000, aclrtSetStreamFailureMode(stream_, ACL_CONTINUE_ON_FAILURE));
}

TEST_F(StreamTest, STR_18_AbortDropsTasksAndReleasesSynchronise) {
  Log log;
  Gate gate;
  Launch(stream_, gate);
  Launch(stream_, log, "a");
  gate.WaitUntilEntered();
  std::atomic<aclError> code{0};
  std::atomic<bool> waiting{false};
  std::thread waiter([&] {
    waiting = true;
    code = aclrtSynchronizeStream(stream_);
  });
  while (!waiting) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_OK(aclrtStreamAbort(stream_));
  waiter.join();
  EXPECT_EQ(code, 107023);
  gate.Open();
  Launch(stream_, log, "b");
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "b");
}

TEST_F(StreamTest, STR_18_AbortEndsAWaitingTask) {
  aclrtEvent never = nullptr;
  ASSERT_OK(aclrtCreateEvent(&never));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, never));
  ASSERT_OK(aclrtStreamAbort(stream_));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(StreamTest, STR_19_AttributesAreStored) {
  aclrtStreamAttrValue value{};
  value.userCustomTag = 42;
  ASSERT_OK(aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
  value = {};
  ASSERT_OK(aclrtGetStreamAttribute(stream_, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
  EXPECT_EQ(value.userCustomTag, 42u);
  EXPECT_CODE(107000, aclrtGetStreamAttribute(stream_, static_cast<aclrtStreamAttr>(99), &value));
}

TEST_F(StreamTest, STR_21_ValueWriteAndWait) {
  void* cell = nullptr;
  ASSERT_OK(aclrtMallocAlign32(&cell, 32, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMemset(cell, 32, 0, 32));
  struct Row {
    uint32_t flag;
    uint64_t operand;
    uint64_t blocking;
    uint64_t releasing;
  };
  constexpr Row kRows[] = {
      {ACL_STREAM_WAIT_VALUE_GEQ, 10, 9, 11},
      {ACL_STREAM_WAIT_VALUE_EQ, 10, 11, 10},
      {ACL_STREAM_WAIT_VALUE_AND, 6, 9, 4},
      {ACL_STREAM_WAIT_VALUE_NOR, ~uint64_t{1}, 1, 0},
  };
  for (const Row& row : kRows) {
    Log log;
    ASSERT_OK(aclrtValueWrite(cell, row.blocking, 0, other_));
    ASSERT_OK(aclrtSynchronizeStream(other_));
    ASSERT_OK(aclrtValueWait(cell, row.operand, row.flag, stream_));
    Launch(stream_, log, "a");
    EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(stream_, 20)) << row.flag;
    ASSERT_OK(aclrtValueWrite(cell, row.releasing, 0, other_));
    EXPECT_OK(aclrtSynchronizeStream(stream_)) << row.flag;
    EXPECT_EQ(log.text(), "a");
  }
  EXPECT_CODE(107000, aclrtValueWrite(static_cast<char*>(cell) + 4, 0, 0, stream_));
  uint64_t on_host = 0;
  EXPECT_CODE(107000, aclrtValueWait(&on_host, 0, 0, stream_));
  EXPECT_CODE(100000, aclrtValueWait(nullptr, 0, 0, stream_));
  EXPECT_CODE(107000, aclrtValueWait(cell, 0, 4, stream_));
  ASSERT_OK(aclrtFree(cell));
}

TEST_F(StreamTest, STR_22_IdsAreSmallAndUniqueAmongLiveStreams) {
  int32_t first = -1;
  int32_t second = -1;
  ASSERT_OK(aclrtStreamGetId(stream_, &first));
  ASSERT_OK(aclrtStreamGetId(other_, &second));
  EXPECT_GE(first, 0);
  EXPECT_NE(first, second);
  EXPECT_LT(first, 16);
}

TEST_F(StreamTest, GEN_06_SynchroniseAcceptsAStreamOfAnotherContext) {
  aclrtContext second = nullptr;
  aclrtContext primary = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  ASSERT_OK(aclrtCreateContext(&second, 0));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  aclrtContext now = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&now));
  EXPECT_EQ(now, second);
  ASSERT_OK(aclrtDestroyContext(second));
  ASSERT_OK(aclrtSetCurrentContext(primary));
}

TEST_F(StreamTest, GEN_09_WrongHandlesGive107017) {
  aclrtEvent event = CreateEx();
  EXPECT_CODE(107017, aclrtSynchronizeStream(event));
  EXPECT_CODE(107017, aclrtDestroyEvent(stream_));
  EXPECT_CODE(107017, aclmdlRIDestroy(stream_));
  int on_stack = 0;
  EXPECT_CODE(107017, aclrtSynchronizeStream(&on_stack));
}

TEST_F(StreamTest, GEN_07_AThreadWithoutContextGets107002) {
  std::thread([this] {
    aclrtStream stream = nullptr;
    EXPECT_CODE(107002, aclrtCreateStream(&stream));
    EXPECT_CODE(107002, aclrtSynchronizeStream(nullptr));
    auto nothing = [](void*) -> aclError { return 0; };
    EXPECT_CODE(107002, SoftLaunchKernel(stream_, "k", nothing, nullptr, nullptr));
  }).join();
}

TEST_F(StreamTest, AFailedLaunchDropsTheKernelOnce) {
  int drops = 0;
  int on_stack = 0;
  auto run = [](void*) -> aclError { return 0; };
  auto drop = [](void* bound) { ++*static_cast<int*>(bound); };
  EXPECT_CODE(107017, SoftLaunchKernel(&on_stack, "k", run, drop, &drops));
  EXPECT_EQ(drops, 1);
  EXPECT_OK(SoftLaunchKernel(stream_, "k", run, drop, &drops));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(drops, 2);
}

TEST_F(StreamTest, STR_07_EveryFlagIsAccepted) {
  for (uint32_t flag = 0; flag < 0x40; ++flag) {
    aclrtStream stream = nullptr;
    ASSERT_OK(aclrtCreateStreamWithConfig(&stream, 0, flag)) << flag;
    uint32_t read = 99;
    ASSERT_OK(aclrtStreamGetFlags(stream, &read));
    EXPECT_EQ(read, flag);
    ASSERT_OK(aclrtDestroyStream(stream));
  }
}

TEST_F(StreamTest, STR_10_STR_11_ACapturingStreamIsNeitherDestroyedNorQueried) {
  Begin(stream_);
  aclrtStreamStatus status;
  EXPECT_CODE(107027, aclrtDestroyStream(stream_));
  EXPECT_CODE(107027, aclrtDestroyStreamForce(stream_));
  EXPECT_CODE(107027, aclrtStreamQuery(stream_, &status));
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_NE(End(stream_), nullptr);
  EXPECT_OK(aclrtStreamQuery(stream_, &status));
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
}

TEST_F(StreamTest, STR_12_SynchroniseWaitsForWhatWasSubmittedBeforeIt) {
  Log log;
  Gate first;
  Gate second;
  Launch(stream_, first);
  Launch(stream_, log, "a", 507015);
  std::atomic<aclError> code{-1};
  std::atomic<bool> waiting{false};
  std::thread waiter([&] {
    waiting = true;
    code = aclrtSynchronizeStreamWithTimeout(stream_, 10000);
  });
  while (!waiting) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(code, -1);
  Launch(stream_, second);  // submitted after the call: not waited for
  first.Open();
  waiter.join();
  EXPECT_EQ(code, 507015);
  second.Open();
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  Begin(stream_);
  EXPECT_CODE(107027, aclrtSynchronizeStream(stream_));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(StreamTest, STR_17_TheDefaultStreamMayBeSetToStop) {
  Log log;
  ASSERT_OK(aclrtSetStreamFailureMode(nullptr, ACL_STOP_ON_FAILURE));
  Launch(stream_, log, "a", 507015);
  EXPECT_CODE(507015, aclrtSynchronizeStream(stream_));
  EXPECT_CODE(507015, aclrtSynchronizeStream(other_));
}

TEST_F(StreamTest, STR_19_EveryAttributeIsStored) {
  aclrtStreamAttrValue value{};
  value.overflowSwitch = 1;
  ASSERT_OK(aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value));
  value = {};
  ASSERT_OK(aclrtGetStreamAttribute(stream_, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &value));
  EXPECT_EQ(value.overflowSwitch, 1u);
  value = {};
  value.cacheOpInfoSwitch = 1;
  ASSERT_OK(aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_CACHE_OP_INFO, &value));
  value = {};
  ASSERT_OK(aclrtGetStreamAttribute(stream_, ACL_STREAM_ATTR_CACHE_OP_INFO, &value));
  EXPECT_EQ(value.cacheOpInfoSwitch, 1u);
  value = {};
  value.streamPriority = 5;
  ASSERT_OK(aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_PRIORITY, &value));
  uint32_t priority = 0;
  ASSERT_OK(aclrtStreamGetPriority(stream_, &priority));
  EXPECT_EQ(priority, 5u);
  value = {};
  value.failureMode = ACL_STOP_ON_FAILURE;
  ASSERT_OK(aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_FAILURE_MODE, &value));
  value = {};
  ASSERT_OK(aclrtGetStreamAttribute(other_, ACL_STREAM_ATTR_FAILURE_MODE, &value));
  EXPECT_EQ(value.failureMode, static_cast<uint64_t>(ACL_STOP_ON_FAILURE));  // as the context
}

TEST_F(StreamTest, STR_20_TheOperatorCacheSwitchIsToggledAroundACapture) {
  aclrtStreamAttrValue on{};
  aclrtStreamAttrValue off{};
  on.cacheOpInfoSwitch = 1;
  Log log;
  EXPECT_OK(aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_CACHE_OP_INFO, &on));
  Begin(stream_);
  Launch(stream_, log, "a");
  EXPECT_OK(aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_CACHE_OP_INFO, &off));
  EXPECT_EQ(Status(stream_), kActive);
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "a");
}

TEST_F(StreamTest, STR_21_ValuesOnTheDefaultStreamAndInCaptures) {
  void* cell = nullptr;
  ASSERT_OK(aclrtMallocAlign32(&cell, 32, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMemset(cell, 32, 0, 32));
  Log log;
  Begin(stream_);
  ASSERT_OK(aclrtValueWait(cell, 3, ACL_STREAM_WAIT_VALUE_EQ, stream_));
  Launch(stream_, log, "a");
  ASSERT_OK(aclrtValueWrite(cell, 4, 0, stream_));
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(stream_, 20));
  EXPECT_EQ(log.text(), "");
  ASSERT_OK(aclrtValueWrite(cell, 3, 0, nullptr));
  ASSERT_OK(aclrtValueWait(cell, 4, ACL_STREAM_WAIT_VALUE_EQ, nullptr));
  EXPECT_OK(aclrtSynchronizeStream(nullptr));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "a");
  // The difference is signed: a value far below waits although it is greater without a sign.
  ASSERT_OK(aclrtMemset(cell, 32, 0xFF, 32));  // -1
  ASSERT_OK(aclrtValueWait(cell, 0, ACL_STREAM_WAIT_VALUE_GEQ, stream_));
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(stream_, 20));
  ASSERT_OK(aclrtValueWrite(cell, 0, 0, other_));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  ASSERT_OK(aclrtFree(cell));
}

TEST_F(StreamTest, STR_22_NumbersOfDestroyedStreamsComeBack) {
  std::vector<aclrtStream> streams(20);
  std::vector<int32_t> ids;
  uint32_t available = 0;
  uint32_t with_streams = 0;
  ASSERT_OK(aclrtGetStreamAvailableNum(&available));
  for (aclrtStream& stream : streams) {
    ASSERT_OK(aclrtCreateStream(&stream));
    ids.push_back(-1);
    ASSERT_OK(aclrtStreamGetId(stream, &ids.back()));
  }
  ASSERT_OK(aclrtGetStreamAvailableNum(&with_streams));
  EXPECT_EQ(with_streams, available - 20);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
  for (aclrtStream stream : streams) ASSERT_OK(aclrtDestroyStream(stream));
  ASSERT_OK(aclrtGetStreamAvailableNum(&with_streams));
  EXPECT_EQ(with_streams, available);
}

}  // namespace
}  // namespace acltape::device
