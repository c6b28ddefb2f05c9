// Task groups and their update: rules TG-01 to TG-05 and UPD-01 to UPD-09.
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class TaskGroup : public SoftDevice {
 protected:
  // Captures "a", a group of the kernels named by the letters of `grouped`, and "z".
  aclmdlRI CaptureGroup(Log& log, const std::string& grouped) {
    Begin(stream_);
    Launch(stream_, log, "a");
    EXPECT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
    for (char letter : grouped) Launch(stream_, log, std::string(1, letter));
    EXPECT_OK(aclmdlRICaptureTaskGrpEnd(stream_, &group_));
    EXPECT_NE(group_, nullptr);
    Launch(stream_, log, "z");
    return End(stream_);
  }

  void Update(aclrtStream stream, Log& log, const std::string& letters) {
    ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(stream, group_));
    for (char letter : letters) Launch(stream, log, std::string(1, letter));
    ASSERT_OK(aclmdlRICaptureTaskUpdateEnd(stream));
  }

  void Replay(aclmdlRI model, aclrtStream stream) {
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream));
    ASSERT_OK(aclrtSynchronizeStream(stream));
  }

  aclrtEvent CreateExternal() {
    aclrtEvent event = nullptr;
    EXPECT_OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_EXTERNAL));
    return event;
  }

  aclrtTaskGrp group_ = nullptr;
};

TEST_F(TaskGroup, TG_01_BeginRefusals) {
  EXPECT_CODE(100000, aclmdlRICaptureTaskGrpBegin(nullptr));
  EXPECT_CODE(107029, aclmdlRICaptureTaskGrpBegin(stream_));
  Begin(stream_);
  ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
  EXPECT_CODE(107033, aclmdlRICaptureTaskGrpBegin(stream_));
  ASSERT_OK(aclmdlRICaptureTaskGrpEnd(stream_, &group_));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(TaskGroup, TG_01_AStreamInAnUpdateOpensNoGroup) {
  Log log;
  CaptureGroup(log, "k");
  ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(other_, group_));
  Begin(other_);
  EXPECT_CODE(107033, aclmdlRICaptureTaskGrpBegin(other_));
  EXPECT_NE(End(other_), nullptr);
}

TEST_F(TaskGroup, TG_02_EndNeedsAnOpenGroupAndTheHandleLivesWithTheModel) {
  Log log;
  EXPECT_CODE(100000, aclmdlRICaptureTaskGrpEnd(stream_, nullptr));
  EXPECT_CODE(107033, aclmdlRICaptureTaskGrpEnd(stream_, &group_));
  Begin(stream_);
  EXPECT_CODE(107033, aclmdlRICaptureTaskGrpEnd(stream_, &group_));
  End(stream_);
  aclmdlRI model = CaptureGroup(log, "k");
  Update(other_, log, "K");
  ASSERT_OK(aclrtSynchronizeStream(other_));
  ASSERT_OK(aclmdlRIDestroy(model));
  EXPECT_CODE(107017, aclmdlRICaptureTaskUpdateBegin(other_, group_));
}

TEST_F(TaskGroup, CAP_17_EndOfTheCaptureWithAnOpenGroupGives107033) {
  Begin(stream_);
  ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
  End(stream_, 107033);
  EXPECT_EQ(Status(stream_), kNone);  // CAP-20
  Begin(stream_);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(TaskGroup, TG_03_TG_05_OtherTasksThanKernelsBreakTheGroupAndTheCapture) {
  void* device = nullptr;
  ASSERT_OK(aclrtMalloc(&device, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  for (bool by_event : {false, true}) {
    Begin(stream_);
    ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
    EXPECT_CODE(507009, by_event ? aclrtRecordEvent(CreateEx(), stream_)
                                 : aclrtMemsetAsync(device, 64, 0, 64, stream_));
    EXPECT_EQ(Status(stream_), kInvalidated);
    group_ = stream_;
    EXPECT_CODE(507009, aclmdlRICaptureTaskGrpEnd(stream_, &group_));
    EXPECT_EQ(group_, nullptr);
    End(stream_, 507903);
  }
  ASSERT_OK(aclrtFree(device));
}

TEST_F(TaskGroup, TG_04_TG_05_ATaskOnAnotherStreamOfTheCaptureInterruptsTheGroup) {
  Log log;
  aclrtEvent fork = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
  EXPECT_CODE(107034, SoftLaunchKernel(
                          other_, "k", [](void*) -> aclError { return 0; }, nullptr, nullptr));
  EXPECT_EQ(Status(other_), kInvalidated);
  EXPECT_CODE(107034, aclmdlRICaptureTaskGrpEnd(stream_, &group_));
  EXPECT_EQ(group_, nullptr);
  End(stream_, 507903);
}

TEST_F(TaskGroup, TG_05_InvalidatedByOtherMeansTheGroupEndsWith507903) {
  aclrtEvent foreign = CreateEx();
  aclrtStream third = nullptr;
  ASSERT_OK(aclrtCreateStream(&third));
  Begin(third);
  ASSERT_OK(aclrtRecordEvent(foreign, third));
  Begin(stream_);
  ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
  EXPECT_CODE(107032, aclrtStreamWaitEvent(stream_, foreign));
  EXPECT_CODE(507903, aclmdlRICaptureTaskGrpEnd(stream_, &group_));
  End(stream_, 507903);
  End(third, 507903);
}

TEST_F(TaskGroup, TG_06_AGroupTakesAsManyUpdatesAsItWasGivenKernels) {
  // The soft device inserts no filler tasks, so that the room is exact.
  Log log;
  CaptureGroup(log, "kl");
  ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(other_, group_));
  Launch(other_, log, "K");
  Launch(other_, log, "L");
  EXPECT_CODE(507000, SoftLaunchKernel(
                          other_, "more", [](void*) -> aclError { return 0; }, nullptr, nullptr));
  EXPECT_OK(aclmdlRICaptureTaskUpdateEnd(other_));
}

TEST_F(TaskGroup, UPD_01_BeginRefusals) {
  Log log;
  CaptureGroup(log, "k");
  EXPECT_CODE(100000, aclmdlRICaptureTaskUpdateBegin(nullptr, group_));
  EXPECT_CODE(100000, aclmdlRICaptureTaskUpdateBegin(stream_, nullptr));
  EXPECT_CODE(107017, aclmdlRICaptureTaskUpdateBegin(stream_, other_));
  Begin(stream_);
  EXPECT_CODE(107027, aclmdlRICaptureTaskUpdateBegin(stream_, group_));
  End(stream_);
  aclmdlRI built = nullptr;
  aclrtStream bound = nullptr;
  ASSERT_OK(aclmdlRIBuildBegin(&built, 0));
  ASSERT_OK(aclrtCreateStreamWithConfig(&bound, 0, ACL_STREAM_PERSISTENT));
  ASSERT_OK(aclmdlRIBindStream(built, bound, ACL_MODEL_STREAM_FLAG_HEAD));
  EXPECT_CODE(107005, aclmdlRICaptureTaskUpdateBegin(bound, group_));

  ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(stream_, group_));
  EXPECT_CODE(107033, aclmdlRICaptureTaskUpdateBegin(stream_, group_));
  EXPECT_CODE(107033, aclmdlRICaptureTaskUpdateBegin(other_, group_));
  Launch(stream_, log, "K");
  ASSERT_OK(aclmdlRICaptureTaskUpdateEnd(stream_));
  Update(other_, log, "K");
}

TEST_F(TaskGroup, UPD_01_AStreamDestroyedInAnUpdateReleasesTheGroup) {
  Log log;
  CaptureGroup(log, "k");
  ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(other_, group_));
  ASSERT_OK(aclrtDestroyStream(other_));
  Update(stream_, log, "K");
}

TEST_F(TaskGroup, UPD_02_UpdatesDoNotRunAndRewriteTheCapturedTasksInOrder) {
  Log log;
  aclmdlRI model = CaptureGroup(log, "kl");
  Replay(model, stream_);
  EXPECT_EQ(log.text(), "aklz");
  Update(other_, log, "KL");
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "aklz");  // nothing ran
  Replay(model, stream_);
  Replay(model, stream_);
  EXPECT_EQ(log.text(), "aklzaKLzaKLz");
}

TEST_F(TaskGroup, UPD_02_ReplacedKernelsAreFreed) {
  static std::atomic<int> drops;
  drops = 0;
  auto nothing = [](void*) -> aclError { return 0; };
  auto count = [](void*) { ++drops; };
  Begin(stream_);
  ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
  ASSERT_OK(SoftLaunchKernel(stream_, "k", nothing, count, nullptr));
  ASSERT_OK(aclmdlRICaptureTaskGrpEnd(stream_, &group_));
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(other_, group_));
    ASSERT_OK(SoftLaunchKernel(other_, "k", nothing, count, nullptr));
    ASSERT_OK(aclmdlRICaptureTaskUpdateEnd(other_));
  }
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(drops, 3);
  ASSERT_OK(aclmdlRIDestroy(model));
  EXPECT_EQ(drops, 4);
}

TEST_F(TaskGroup, UPD_03_OtherTasksThanKernelsAreRefusedInAnUpdate) {
  Log log;
  aclmdlRI model = CaptureGroup(log, "k");
  void* device = nullptr;
  ASSERT_OK(aclrtMalloc(&device, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(other_, group_));
  EXPECT_CODE(507009, aclrtMemsetAsync(device, 64, 0, 64, other_));
  EXPECT_CODE(507009, aclrtRecordEvent(CreateEx(), other_));
  EXPECT_CODE(507009, aclrtStreamWaitEvent(other_, CreateEx()));
  EXPECT_CODE(507009, aclrtResetEvent(CreateExternal(), other_));
  EXPECT_CODE(507009, aclmdlRIExecuteAsync(model, other_));
  Launch(other_, log, "K");
  ASSERT_OK(aclmdlRICaptureTaskUpdateEnd(other_));
  Replay(model, other_);
  EXPECT_EQ(log.text(), "aKz");
  ASSERT_OK(aclrtFree(device));
}

TEST_F(TaskGroup, UPD_04_UPD_05_EndWithFewerTasksThanTheGroupHoldsGives507000) {
  Log log;
  CaptureGroup(log, "kl");
  EXPECT_CODE(100000, aclmdlRICaptureTaskUpdateEnd(nullptr));
  EXPECT_CODE(107033, aclmdlRICaptureTaskUpdateEnd(other_));
  for (int launched : {0, 1}) {
    ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(other_, group_));
    if (launched == 1) Launch(other_, log, "K");
    EXPECT_CODE(507000, aclmdlRICaptureTaskUpdateEnd(other_)) << launched;
    EXPECT_CODE(107033, aclmdlRICaptureTaskUpdateEnd(other_));  // it is over
  }
  Update(other_, log, "KL");
}

TEST_F(TaskGroup, CAP_62_UpdateCallsOnACapturingStreamGive107027) {
  Log log;
  CaptureGroup(log, "k");
  ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(other_, group_));
  Begin(other_);
  EXPECT_CODE(107027, aclmdlRICaptureTaskUpdateEnd(other_));
  EXPECT_EQ(Status(other_), kActive);
  EXPECT_NE(End(other_), nullptr);
  Launch(other_, log, "K");
  EXPECT_OK(aclmdlRICaptureTaskUpdateEnd(other_));
}

TEST_F(TaskGroup, UPD_06_AnUpdateTakesEffectInTheOrderOfItsStream) {
  Log log;
  Gate gate;
  aclmdlRI model = CaptureGroup(log, "k");
  Launch(other_, gate);
  Update(other_, log, "K");  // waits for the gate
  Replay(model, stream_);
  EXPECT_EQ(log.text(), "akz");
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(other_));
  Replay(model, stream_);
  EXPECT_EQ(log.text(), "akzaKz");
}

// The pattern of the guides: the graph waits on and resets an external event right before the
// group, and the client records it on the update stream after the update.
TEST_F(TaskGroup, UPD_06_UPD_07_CAP_50_AnUpdateAfterTheLaunchIsSeenThroughAnExternalEvent) {
  Log log;
  aclrtEvent updated = CreateExternal();
  Begin(stream_);
  Launch(stream_, log, "a");
  ASSERT_OK(aclrtStreamWaitEvent(stream_, updated));
  ASSERT_OK(aclrtResetEvent(updated, stream_));
  ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
  Launch(stream_, log, "?");
  ASSERT_OK(aclmdlRICaptureTaskGrpEnd(stream_, &group_));
  aclmdlRI model = End(stream_);
  std::string expected;
  for (int step = 0; step < 50; ++step) {
    std::string letter(1, static_cast<char>('A' + step % 26));
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    Update(other_, log, letter);
    ASSERT_OK(aclrtRecordEvent(updated, other_));
    // The next update must not overtake this replay.
    ASSERT_OK(aclrtSynchronizeStream(stream_));
    expected += "a" + letter;
  }
  EXPECT_EQ(log.text(), expected);
}

TEST_F(TaskGroup, UPD_06_AnUpdateThatNothingOrdersDoesNotFreeARunningKernel) {
  struct Bound {
    std::atomic<int> alive{1};
  };
  auto run = [](void* bound) -> aclError {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    return static_cast<Bound*>(bound)->alive.load() == 1 ? 0 : 507015;
  };
  auto drop = [](void* bound) {
    static_cast<Bound*>(bound)->alive = 0;
    delete static_cast<Bound*>(bound);
  };
  Begin(stream_);
  ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
  ASSERT_OK(SoftLaunchKernel(stream_, "k", run, drop, new Bound));
  ASSERT_OK(aclmdlRICaptureTaskGrpEnd(stream_, &group_));
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(other_, group_));
    ASSERT_OK(SoftLaunchKernel(other_, "k", run, drop, new Bound));
    ASSERT_OK(aclmdlRICaptureTaskUpdateEnd(other_));
  }
  EXPECT_OK(aclrtSynchronizeDevice());
}

TEST_F(TaskGroup, UPD_09_DestroyingTheModelWithPendingUpdatesIsSafe) {
  Log log;
  Gate gate;
  aclmdlRI model = CaptureGroup(log, "k");
  Launch(other_, gate);
  ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(other_, group_));
  ASSERT_OK(aclmdlRIDestroy(model));
  Launch(other_, log, "K");
  EXPECT_OK(aclmdlRICaptureTaskUpdateEnd(other_));
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(other_));
  EXPECT_CODE(107017, aclmdlRICaptureTaskUpdateBegin(other_, group_));
}

}  // namespace
}  // namespace acltape::device
