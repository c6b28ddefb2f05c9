// Events in captures, fork and join: rules CAP-40 to CAP-53 and JOIN-01 to JOIN-04.
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class CaptureEvent : public SoftDevice {
 protected:
  void Fork(aclrtStream from, aclrtStream to) {
    aclrtEvent event = CreateEx();
    ASSERT_OK(aclrtRecordEvent(event, from));
    ASSERT_OK(aclrtStreamWaitEvent(to, event));
  }
  // Makes the same two calls as Fork; the name is for the reader.
  void Join(aclrtStream from, aclrtStream to) { Fork(from, to); }
};

TEST_F(CaptureEvent, CAP_40_EachRecordIsANewPointOfTheGraph) {
  Log log;
  aclrtEvent event = CreateEx();
  aclrtStream third = nullptr;
  ASSERT_OK(aclrtCreateStream(&third));
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));  // the first point
  Launch(stream_, log, "a");
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(third, event));  // the second
  Join(other_, stream_);
  Join(third, stream_);
  aclmdlRI model = End(stream_);
  // Each of the four records is a task of its own, with its own reset at the end.
  uint32_t streams = 0;
  ASSERT_OK(aclmdlRIGetStreams(model, nullptr, &streams));
  EXPECT_EQ(streams, 3u);
  std::vector<aclrtStream> hidden(streams);
  ASSERT_OK(aclmdlRIGetStreams(model, hidden.data(), &streams));
  uint32_t tasks = 0;
  ASSERT_OK(aclmdlRIGetTasksByStream(hidden[0], nullptr, &tasks));
  EXPECT_EQ(tasks, 2u + 1u + 2u + 4u);  // records, kernel, waits, resets
}

TEST_F(CaptureEvent, CAP_40_OnlyWaitBitsMakeAnEventBelongToTheCapture) {
  for (uint32_t flags : {0x1u, 0x4u, 0x5u, 0x2u, 0x8u}) {
    aclrtEvent event = CreateEx(flags);
    aclrtEventRecordedStatus status;
    Begin(stream_);
    ASSERT_OK(aclrtRecordEvent(event, stream_));
    EXPECT_CODE((flags & 0x5) != 0 ? 107028 : 0, aclrtQueryEventStatus(event, &status)) << flags;
    End(stream_);
    EXPECT_OK(aclrtQueryEventStatus(event, &status));
  }
}

TEST_F(CaptureEvent, CAP_41_AWaitPullsAStreamIntoTheCapture) {
  Log log;
  Begin(stream_);
  Launch(stream_, log, "a");
  Fork(stream_, other_);
  aclmdlRI of_origin = nullptr;
  aclmdlRI of_fork = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &of_origin));
  ASSERT_OK(aclmdlRICaptureGetInfo(other_, nullptr, &of_fork));
  EXPECT_EQ(of_origin, of_fork);
  Launch(other_, log, "b");
  Join(other_, stream_);
  Launch(stream_, log, "c");
  aclmdlRI model = End(stream_);
  EXPECT_EQ(Status(other_), kNone);
  EXPECT_EQ(log.text(), "");
  for (int i = 0; i < 3; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, other_));
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "abcabcabc");  // EXE-04
}

TEST_F(CaptureEvent, CAP_42_CAP_49_DefaultAndSpecialStreamsCannotJoin) {
  aclrtEvent event = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  EXPECT_CODE(107031, aclrtResetEvent(event, nullptr));
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_CODE(107031, aclrtStreamWaitEvent(nullptr, event));
  EXPECT_EQ(Status(stream_), kInvalidated);  // CAP-49
  End(stream_, 507903);

  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  EXPECT_CODE(107031, aclrtRecordEvent(event, nullptr));
  End(stream_, 507903);

  aclrtStream device_only = nullptr;
  ASSERT_OK(aclrtCreateStreamWithConfig(&device_only, 0, ACL_STREAM_DEVICE_USE_ONLY));
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  EXPECT_CODE(507000, aclrtStreamWaitEvent(device_only, event));
  End(stream_, 507903);
}

TEST_F(CaptureEvent, CAP_43_OldEventsAreRefusedWithoutHarm) {
  aclrtEvent plain = nullptr;
  aclrtEvent flagged = nullptr;
  ASSERT_OK(aclrtCreateEvent(&plain));
  ASSERT_OK(aclrtCreateEventWithFlag(&flagged, ACL_EVENT_SYNC));
  Begin(stream_);
  for (aclrtEvent event : {plain, flagged}) {
    EXPECT_CODE(207000, aclrtRecordEvent(event, stream_));
    EXPECT_CODE(207000, aclrtStreamWaitEvent(stream_, event));
  }
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(CaptureEvent, CAP_44_AnEventWithoutWaitBitStoresNothing) {
  aclrtEvent timeline = CreateEx(ACL_EVENT_TIME_LINE);
  Begin(stream_);
  EXPECT_OK(aclrtRecordEvent(timeline, stream_));
  EXPECT_CODE(207000, aclrtStreamWaitEvent(other_, timeline));
  EXPECT_EQ(Status(other_), kNone);
  aclrtEventRecordedStatus status;
  EXPECT_OK(aclrtQueryEventStatus(timeline, &status));  // it does not belong to the capture
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(CaptureEvent, CAP_45_WaitingForAnOutsideRecordGives107024) {
  aclrtEvent event = CreateEx();
  ASSERT_OK(aclrtRecordEvent(event, other_));
  Begin(stream_);
  EXPECT_CODE(107024, aclrtStreamWaitEvent(stream_, event));
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(CaptureEvent, CAP_46_CAP_47_HarmlessWaits) {
  aclrtEvent never = CreateEx();
  aclrtEvent same = CreateEx();
  Begin(stream_);
  EXPECT_OK(aclrtStreamWaitEvent(stream_, never));
  EXPECT_OK(aclrtRecordEvent(same, stream_));
  EXPECT_OK(aclrtStreamWaitEvent(stream_, same));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(CaptureEvent, CAP_48_EventsOfAnotherCaptureInvalidateBoth) {
  for (bool by_record : {false, true}) {
    aclrtEvent event = CreateEx();
    Begin(stream_);
    Begin(other_);
    ASSERT_OK(aclrtRecordEvent(event, stream_));
    EXPECT_CODE(107032,
                by_record ? aclrtRecordEvent(event, other_) : aclrtStreamWaitEvent(other_, event));
    End(other_, 507903);
    End(stream_, 507903);
  }
}

TEST_F(CaptureEvent, CAP_50_ExternalEventsAreStoredAsPlainTasks) {
  Log log;
  aclrtEvent external = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&external, ACL_EVENT_EXTERNAL));
  Begin(stream_);
  Launch(stream_, log, "a");
  ASSERT_OK(aclrtStreamWaitEvent(stream_, external));
  ASSERT_OK(aclrtResetEvent(external, stream_));
  Launch(stream_, log, "b");
  EXPECT_EQ(Status(other_), kNone);
  aclmdlRI model = End(stream_);
  for (int replay = 0; replay < 2; ++replay) {
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(stream_, 30));  // waits for the release
    ASSERT_OK(aclrtRecordEvent(external, other_));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
  }
  EXPECT_EQ(log.text(), "abab");
}

TEST_F(CaptureEvent, CAP_51_ResettingAnExEventGives207000) {
  aclrtEvent event = CreateEx();
  EXPECT_CODE(207000, aclrtResetEvent(event, stream_));
  Begin(stream_);
  EXPECT_CODE(207000, aclrtResetEvent(event, stream_));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(CaptureEvent, CAP_52_AfterTheCaptureTheEventIsAsBefore) {
  aclrtEvent event = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_OK(aclrtStreamWaitEvent(other_, event));
  EXPECT_EQ(Status(other_), kNone);
  EXPECT_OK(aclrtSynchronizeEvent(event));
  float ms = 0;
  EXPECT_CODE(507000, aclrtEventElapsedTime(&ms, event, event));
  Begin(stream_);  // never recorded: accepted again (CAP-46)
  EXPECT_OK(aclrtStreamWaitEvent(stream_, event));
  End(stream_);
}

TEST_F(CaptureEvent, CAP_53_OutsideRecordOfACapturedEventIsOrdinary) {
  aclrtEvent event = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  EXPECT_OK(aclrtRecordEvent(event, other_));
  EXPECT_EQ(Status(other_), kNone);
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));  // still refers to the capture
  EXPECT_EQ(Status(other_), kActive);
  End(stream_, 107025);
}

TEST_F(CaptureEvent, CAP_54_EventsBetweenProcessesAreRefusedWithoutHarm) {
  aclrtEvent event = CreateEx(ACL_EVENT_IPC);
  Begin(stream_);
  EXPECT_CODE(207000, aclrtRecordEvent(event, stream_));
  EXPECT_CODE(207000, aclrtRecordEventWithFlag(event, stream_, ACL_EVENT_RECORD_DEFAULT));
  EXPECT_CODE(207000, aclrtStreamWaitEvent(stream_, event));
  EXPECT_CODE(207000, aclrtStreamWaitEventWithFlag(stream_, event, 0, ACL_EVENT_WAIT_DEFAULT));
  EXPECT_CODE(207000, aclrtResetEvent(event, stream_));
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(CaptureEvent, EVT_22_HostCallsOnCapturedEventsGive107028) {
  aclrtEvent event = CreateEx();
  aclrtEventRecordedStatus recorded;
  aclrtEventWaitStatus waited;
  aclrtEventStatus status;
  float ms = 0;
  uint64_t time = 0;
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  EXPECT_CODE(107028, aclrtSynchronizeEvent(event));
  EXPECT_CODE(107028, aclrtSynchronizeEventWithTimeout(event, 10));
  EXPECT_CODE(107028, aclrtQueryEventStatus(event, &recorded));
  EXPECT_CODE(107028, aclrtQueryEvent(event, &status));
  EXPECT_CODE(107028, aclrtQueryEventWaitStatus(event, &waited));
  EXPECT_CODE(107028, aclrtEventElapsedTime(&ms, event, event));
  EXPECT_CODE(107028, aclrtEventGetTimestamp(event, &time));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(CaptureEvent, DestroyingACapturedEventDuringTheCaptureIsSafe) {
  Log log;
  aclrtEvent fork = CreateEx();
  aclrtEvent join = CreateEx();
  Begin(stream_);
  Launch(stream_, log, "a");
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  ASSERT_OK(aclrtDestroyEvent(fork));
  Launch(other_, log, "b");
  ASSERT_OK(aclrtRecordEvent(join, other_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, join));
  ASSERT_OK(aclrtDestroyEvent(join));
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "ab");
}

TEST_F(CaptureEvent, JOIN_01_ATaskAfterTheRecordUnjoins) {
  Log log;
  Begin(stream_);
  Fork(stream_, other_);
  Join(other_, stream_);
  Launch(other_, log, "late");
  End(stream_, 107025);
}

TEST_F(CaptureEvent, JOIN_01_ARecordThatNobodyWaitsForDoesNotJoin) {
  aclrtEvent event = CreateEx();
  Begin(stream_);
  Fork(stream_, other_);
  ASSERT_OK(aclrtRecordEvent(event, other_));
  End(stream_, 107025);
}

TEST_F(CaptureEvent, JOIN_02_AChainThroughAnotherForkJoins) {
  aclrtStream third = nullptr;
  ASSERT_OK(aclrtCreateStream(&third));
  Begin(stream_);
  Fork(stream_, other_);
  Fork(other_, third);
  Join(third, other_);
  Join(other_, stream_);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(CaptureEvent, JOIN_02_AChainThatDoesNotReachTheOriginFails) {
  aclrtStream third = nullptr;
  ASSERT_OK(aclrtCreateStream(&third));
  Begin(stream_);
  Fork(stream_, other_);
  Fork(stream_, third);
  Join(third, other_);  // other_ itself is never joined
  End(stream_, 107025);
}

TEST_F(CaptureEvent, JOIN_02_TwoForksThatOnlyWaitForEachOtherFail) {
  aclrtStream third = nullptr;
  ASSERT_OK(aclrtCreateStream(&third));
  Begin(stream_);
  Fork(stream_, other_);
  Fork(stream_, third);
  aclrtEvent a = CreateEx();
  aclrtEvent b = CreateEx();
  ASSERT_OK(aclrtRecordEvent(a, other_));
  ASSERT_OK(aclrtStreamWaitEvent(third, a));
  ASSERT_OK(aclrtRecordEvent(b, third));
  ASSERT_OK(aclrtStreamWaitEvent(other_, b));
  End(stream_, 107025);
}

TEST_F(CaptureEvent, JOIN_03_AForkWithoutTasksMustBeJoinedToo) {
  Begin(stream_);
  Fork(stream_, other_);
  End(stream_, 107025);
}

TEST_F(CaptureEvent, JOIN_04_ForkAndJoinAnyNumberOfTimes) {
  Log log;
  Begin(stream_);
  for (int i = 0; i < 5; ++i) {
    Fork(stream_, other_);
    Launch(other_, log, "o");
    Join(other_, stream_);
    Launch(stream_, log, "s");
  }
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "ososososos");
}

TEST_F(CaptureEvent, AGraphStreamMayWaitForAValueThatAnotherOfItsStreamsWritesLater) {
  // In capture order the wait comes first: one hidden stream must not block the other.
  void* cell = nullptr;
  ASSERT_OK(aclrtMallocAlign32(&cell, 32, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMemset(cell, 32, 0, 32));
  Log log;
  Begin(stream_);
  Fork(stream_, other_);
  ASSERT_OK(aclrtValueWait(cell, 5, ACL_STREAM_WAIT_VALUE_EQ, stream_));
  Launch(stream_, log, "b");
  ASSERT_OK(aclrtValueWrite(cell, 0, 0, stream_));
  Launch(other_, log, "a");
  ASSERT_OK(aclrtValueWrite(cell, 5, 0, other_));
  Join(other_, stream_);
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 3; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "ababab");
  ASSERT_OK(aclrtFree(cell));
}

}  // namespace
}  // namespace acltape::device
