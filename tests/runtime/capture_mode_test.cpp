// A running capture refuses some synchronous calls: rules CAP-30 to CAP-39.
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class CaptureMode : public SoftDevice {
 protected:
  void SetUp() override {
    SoftDevice::SetUp();
    ASSERT_OK(aclrtMalloc(&device_, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  void TearDown() override {
    aclrtFree(device_);
    SoftDevice::TearDown();
  }

  aclError SynchronousFill() { return aclrtMemset(device_, 64, 0, 64); }
  aclmdlRICaptureMode Exchange(aclmdlRICaptureMode mode) {
    EXPECT_OK(aclmdlRICaptureThreadExchangeMode(&mode));
    return mode;
  }

  void* device_ = nullptr;
};

TEST_F(CaptureMode, CAP_32_TableForTheCapturingThread) {
  struct Row {
    aclmdlRICaptureMode capture;
    aclmdlRICaptureMode exchange;
    aclError code;
  };
  constexpr Row kRows[] = {
      {kGlobal, kGlobal, 107030},
      {kGlobal, kThreadLocal, 107030},
      {kGlobal, kRelaxed, 0},
      {kThreadLocal, kGlobal, 107030},
      {kThreadLocal, kThreadLocal, 107030},
      {kThreadLocal, kRelaxed, 0},
      {kRelaxed, kGlobal, 0},
      {kRelaxed, kThreadLocal, 0},
      {kRelaxed, kRelaxed, 0},
  };
  for (const Row& row : kRows) {
    Begin(stream_, row.capture);
    Exchange(row.exchange);
    EXPECT_CODE(row.code, SynchronousFill()) << row.capture << " " << row.exchange;
    EXPECT_NE(End(stream_), nullptr);  // CAP-35: refused calls do no harm
    Exchange(kGlobal);
  }
}

TEST_F(CaptureMode, CAP_32_CAP_34_TableForOtherThreads) {
  struct Row {
    aclmdlRICaptureMode capture;
    aclmdlRICaptureMode exchange;
    aclError code;
  };
  constexpr Row kRows[] = {
      {kGlobal, kGlobal, 107030}, {kGlobal, kThreadLocal, 0}, {kGlobal, kRelaxed, 0},
      {kThreadLocal, kGlobal, 0}, {kRelaxed, kGlobal, 0},
  };
  for (const Row& row : kRows) {
    Begin(stream_, row.capture);
    InThread([&] {
      Exchange(row.exchange);
      EXPECT_CODE(row.code, SynchronousFill()) << row.capture << " " << row.exchange;
    });
    EXPECT_NE(End(stream_), nullptr);
  }
}

TEST_F(CaptureMode, CAP_33_ExchangeReturnsTheFormerMode) {
  EXPECT_CODE(100000, aclmdlRICaptureThreadExchangeMode(nullptr));
  auto wrong = static_cast<aclmdlRICaptureMode>(3);
  EXPECT_CODE(107000, aclmdlRICaptureThreadExchangeMode(&wrong));
  EXPECT_EQ(Exchange(kRelaxed), kGlobal);
  EXPECT_EQ(Exchange(kThreadLocal), kRelaxed);
  EXPECT_EQ(Exchange(kGlobal), kThreadLocal);
  std::thread([] {
    auto mode = kRelaxed;
    EXPECT_CODE(107002, aclmdlRICaptureThreadExchangeMode(&mode));
  }).join();
}

TEST_F(CaptureMode, CAP_31_TheExchangeModeIsOfTheThreadAndStartsAsGlobal) {
  Exchange(kRelaxed);
  InThread([&] { EXPECT_EQ(Exchange(kThreadLocal), kGlobal); });
  EXPECT_EQ(Exchange(kGlobal), kRelaxed);
  // A smaller number is stricter: of two captures the stricter one decides.
  Begin(stream_, kRelaxed);
  EXPECT_OK(SynchronousFill());
  Begin(other_, kGlobal);
  EXPECT_CODE(107030, SynchronousFill());
  End(other_);
  EXPECT_OK(SynchronousFill());
  End(stream_);
}

TEST_F(CaptureMode, CAP_33_TheExchangeModeLastsAcrossCaptures) {
  Exchange(kRelaxed);
  for (int i = 0; i < 2; ++i) {
    Begin(stream_, kGlobal);
    EXPECT_OK(SynchronousFill());
    End(stream_);
  }
  EXPECT_EQ(Exchange(kGlobal), kRelaxed);
}

TEST_F(CaptureMode, CAP_35_CAP_36_ARefusedCallDoesNothingAndHarmsNothing) {
  int32_t value = 5;
  ASSERT_OK(aclrtMemcpy(device_, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  Begin(stream_, kGlobal);
  value = 6;
  EXPECT_CODE(107030, aclrtMemcpy(device_, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_CODE(107030, SynchronousFill());
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_NE(End(stream_), nullptr);
  ASSERT_OK(aclrtMemcpy(&value, 4, device_, 4, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(value, 5);
}

TEST_F(CaptureMode, CAP_30_EverySynchronousCopyAndFillIsUnsafe) {
  int32_t host = 0;
  Begin(stream_, kGlobal);
  EXPECT_CODE(107030, aclrtMemcpy(device_, 4, &host, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_CODE(107030, aclrtMemcpy2d(device_, 4, &host, 4, 4, 1, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_CODE(107030, aclrtMemset(device_, 4, 0, 4));
  EXPECT_CODE(107030, aclrtMemsetD32(device_, 4, 0, 1));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(CaptureMode, MEM_10_AllocationAndEventsAreNotUnsafe) {
  Begin(stream_, kGlobal);
  void* more = nullptr;
  size_t free_bytes = 0;
  size_t total = 0;
  EXPECT_OK(aclrtMalloc(&more, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
  EXPECT_OK(aclrtFree(more));
  aclrtEvent event = CreateEx();
  EXPECT_OK(aclrtDestroyEvent(event));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(CaptureMode, CAP_37_AsynchronousPageableCopies) {
  int32_t host = 7;
  Begin(stream_, kRelaxed);
  EXPECT_CODE(107000, aclrtMemcpyAsync(device_, 4, &host, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  EXPECT_NE(End(stream_), nullptr);
  Begin(stream_, kGlobal);
  EXPECT_CODE(107000, aclrtMemcpyAsync(device_, 4, &host, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  EXPECT_CODE(107041, aclrtMemcpyAsync(device_, 4, &host, 4, ACL_MEMCPY_HOST_TO_DEVICE, other_));
  EXPECT_NE(End(stream_), nullptr);
  EXPECT_OK(aclrtMemcpyAsync(device_, 4, &host, 4, ACL_MEMCPY_HOST_TO_DEVICE, other_));
}

TEST_F(CaptureMode, CAP_38_AnAllowedSynchronousCopyRunsAtOnceAndIsNotCaptured) {
  int32_t host = 7;
  int32_t read = 0;
  Begin(stream_, kRelaxed);
  ASSERT_OK(aclrtMemcpy(device_, 4, &host, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  ASSERT_OK(aclrtMemcpy(&read, 4, device_, 4, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(read, 7);
  aclmdlRI model = End(stream_);
  host = 8;
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  ASSERT_OK(aclrtMemcpy(&read, 4, device_, 4, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(read, 7);
}

TEST_F(CaptureMode, CAP_39_ACaptureCountsForTheThreadThatBeganIt) {
  // Ended in another thread, it must not leave this thread refused.
  Begin(stream_, kRelaxed);
  Begin(other_, kThreadLocal);
  EXPECT_CODE(107030, SynchronousFill());
  End(other_);
  EXPECT_OK(SynchronousFill());
  InThread([&] { EXPECT_NE(End(stream_), nullptr); });
  EXPECT_OK(SynchronousFill());
}

TEST_F(CaptureMode, CAP_32_CapturesOfOtherContextsDoNotCount) {
  Begin(stream_, kGlobal);
  aclrtContext primary = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  InThread([&] {
    aclrtContext second = nullptr;
    ASSERT_OK(aclrtCreateContext(&second, 0));
    EXPECT_OK(SynchronousFill());
    ASSERT_OK(aclrtSetCurrentContext(primary));
    EXPECT_CODE(107030, SynchronousFill());
    ASSERT_OK(aclrtDestroyContext(second));
  });
  EXPECT_NE(End(stream_), nullptr);
}

}  // namespace
}  // namespace acltape::device
