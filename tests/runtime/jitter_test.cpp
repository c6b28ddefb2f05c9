// Jitter shows races and leaves programs without races alone.
#include <cstdlib>
#include <set>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

const bool kEnvironmentIsSet = setenv("ACLTAPE_SOFT_JITTER", "20240601", 1) == 0;

class Jitter : public SoftDevice {
 protected:
  // Two branches of a graph, which append their letters; the fork and the join are captured.
  aclmdlRI CaptureTwoBranches(Log& log, bool ordered) {
    aclrtEvent fork = CreateEx();
    aclrtEvent between = CreateEx();
    aclrtEvent join = CreateEx();
    Begin(stream_);
    EXPECT_OK(aclrtRecordEvent(fork, stream_));
    EXPECT_OK(aclrtStreamWaitEvent(other_, fork));
    Launch(stream_, log, "a");
    EXPECT_OK(aclrtRecordEvent(between, stream_));
    if (ordered) {
      EXPECT_OK(aclrtStreamWaitEvent(other_, between));
    }
    Launch(other_, log, "b");
    EXPECT_OK(aclrtRecordEvent(join, other_));
    EXPECT_OK(aclrtStreamWaitEvent(stream_, join));
    Launch(stream_, log, "c");
    return End(stream_);
  }

  std::set<std::string> Orders(bool ordered) {
    std::set<std::string> orders;
    Log all;
    aclmdlRI model = CaptureTwoBranches(all, ordered);
    for (int i = 0; i < 40; ++i) EXPECT_OK(aclmdlRIExecuteAsync(model, stream_));
    EXPECT_OK(aclrtSynchronizeStream(stream_));
    std::string text = all.text();
    EXPECT_EQ(text.size(), 120u);
    for (size_t i = 0; i + 3 <= text.size(); i += 3) orders.insert(text.substr(i, 3));
    return orders;
  }
};

TEST_F(Jitter, AMissingEventBetweenCapturedStreamsShows) {
  EXPECT_EQ(Orders(false), (std::set<std::string>{"abc", "bac"}));
}

TEST_F(Jitter, EXE_04_AnOrderedGraphKeepsItsOrder) {
  EXPECT_EQ(Orders(true), (std::set<std::string>{"abc"}));
}

TEST_F(Jitter, STR_01_OneStreamKeepsItsOrder) {
  Log log;
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    Launch(stream_, log, "xy");
    expected += "xy";
  }
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), expected);
}

TEST_F(Jitter, EVT_05_EventsKeepTheOrderOfTwoStreams) {
  Log log;
  std::string expected;
  for (int i = 0; i < 50; ++i) {
    aclrtEvent there = CreateEx();
    aclrtEvent back = CreateEx();
    Launch(stream_, log, "a");
    ASSERT_OK(aclrtRecordEvent(there, stream_));
    ASSERT_OK(aclrtStreamWaitEvent(other_, there));
    Launch(other_, log, "b");
    ASSERT_OK(aclrtRecordEvent(back, other_));
    ASSERT_OK(aclrtStreamWaitEvent(stream_, back));
    expected += "ab";
  }
  ASSERT_OK(aclrtSynchronizeDevice());
  EXPECT_EQ(log.text(), expected);
}

TEST_F(Jitter, AMissingEventBetweenEagerStreamsShowsInTheBits) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the race is planted, and ThreadSanitizer rightly reports it";
#endif
  void* cells = nullptr;
  ASSERT_OK(aclrtMallocAlign32(&cells, 32, ACL_MEM_MALLOC_HUGE_FIRST));
  char* result = static_cast<char*>(cells) + 16;
  for (bool with_event : {false, true}) {
    std::set<int32_t> results;
    for (int i = 0; i < 80; ++i) {
      ASSERT_OK(aclrtMemset(cells, 32, 0, 32));
      aclrtEvent written = CreateEx();
      ASSERT_OK(aclrtMemsetAsync(cells, 4, 1, 4, stream_));
      ASSERT_OK(aclrtRecordEvent(written, stream_));
      if (with_event) {
        ASSERT_OK(aclrtStreamWaitEvent(other_, written));
      }
      ASSERT_OK(aclrtMemcpyAsync(result, 4, cells, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, other_));
      ASSERT_OK(aclrtSynchronizeDevice());
      int32_t bits = -1;
      ASSERT_OK(aclrtMemcpy(&bits, 4, result, 4, ACL_MEMCPY_DEVICE_TO_HOST));
      results.insert(bits);
    }
    std::set<int32_t> expected = {0x01010101};
    if (!with_event) expected.insert(0);
    EXPECT_EQ(results, expected);
  }
  ASSERT_OK(aclrtFree(cells));
}

}  // namespace
}  // namespace acltape::device
