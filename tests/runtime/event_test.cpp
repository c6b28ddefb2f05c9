// Events: rules EVT-01 to EVT-21.
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class EventTest : public SoftDevice {
 protected:
  aclrtEvent CreateOld() {
    aclrtEvent event = nullptr;
    EXPECT_OK(aclrtCreateEvent(&event));
    return event;
  }
  aclrtEventRecordedStatus QueryRecorded(aclrtEvent event) {
    auto status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    EXPECT_OK(aclrtQueryEventStatus(event, &status));
    return status;
  }
};

TEST_F(EventTest, EVT_02_EVT_03_FlagsAreChecked) {
  aclrtEvent event = nullptr;
  for (uint32_t flag : {0x0u, 0x80u, 0x11u, 0x21u, 0x30u, 0x40u}) {
    EXPECT_CODE(107000, aclrtCreateEventWithFlag(&event, flag)) << flag;
  }
  for (uint32_t flag : {0x1u, 0x2u, 0x4u, 0x8u, 0xFu, 0x10u, 0x20u}) {
    EXPECT_OK(aclrtCreateEventWithFlag(&event, flag)) << flag;
  }
  for (uint32_t flag : {0x0u, 0x10u, 0x20u, 0x41u, 0x48u, 0x80u}) {
    EXPECT_CODE(107000, aclrtCreateEventExWithFlag(&event, flag)) << flag;
  }
  for (uint32_t flag : {0x1u, 0x2u, 0x4u, 0x8u, 0xFu, 0x40u}) {
    EXPECT_OK(aclrtCreateEventExWithFlag(&event, flag)) << flag;
  }
  EXPECT_CODE(100000, aclrtCreateEvent(nullptr));
}

TEST_F(EventTest, EVT_04_EventsWithoutWaitBitCannotBeWaitedForOrReset) {
  aclrtEvent old_timeline = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&old_timeline, ACL_EVENT_TIME_LINE));
  aclrtEvent ex_timeline = CreateEx(ACL_EVENT_TIME_LINE);
  for (aclrtEvent event : {old_timeline, ex_timeline}) {
    EXPECT_OK(aclrtRecordEvent(event, stream_));
    EXPECT_CODE(207000, aclrtStreamWaitEvent(other_, event));
    EXPECT_CODE(207000, aclrtResetEvent(event, stream_));
  }
}

TEST_F(EventTest, EVT_05_AWaitBindsToTheNewestRecordAtItsCall) {
  aclrtEvent event = CreateEx();
  Gate gate;
  Log log;
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));
  Launch(stream_, gate);
  ASSERT_OK(aclrtRecordEvent(event, stream_));  // waits for the gate
  Launch(other_, log, "first wait");
  ASSERT_OK(aclrtSynchronizeStream(other_));  // the later record did not move the wait
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));
  Launch(other_, log, "second wait");
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(other_, 20));
  EXPECT_EQ(log.entries().size(), 1u);
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.entries().size(), 2u);
}

TEST_F(EventTest, EVT_05_RecordAndWaitOrderTwoStreams) {
  Log log;
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    aclrtEvent forward = CreateEx();
    aclrtEvent back = CreateEx();
    Launch(stream_, log, "a");
    ASSERT_OK(aclrtRecordEvent(forward, stream_));
    ASSERT_OK(aclrtStreamWaitEvent(other_, forward));
    Launch(other_, log, "b");
    ASSERT_OK(aclrtRecordEvent(back, other_));
    ASSERT_OK(aclrtStreamWaitEvent(stream_, back));
    ASSERT_OK(aclrtDestroyEvent(forward));  // EVT-16: pending waits stay valid
    ASSERT_OK(aclrtDestroyEvent(back));
    expected += "ab";
  }
  ASSERT_OK(aclrtSynchronizeDevice());
  EXPECT_EQ(log.text(), expected);
}

TEST_F(EventTest, EVT_06_WaitingForANeverRecordedExEventPasses) {
  aclrtEvent event = CreateEx();
  EXPECT_OK(aclrtStreamWaitEvent(stream_, event));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(EventTest, EVT_07_OldEventsStaySetUntilReset) {
  aclrtEvent event = CreateOld();
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));
  ASSERT_OK(aclrtSynchronizeStream(other_));
  ASSERT_OK(aclrtResetEvent(event, other_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));  // waits for the next record
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(other_, 20));
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  EXPECT_OK(aclrtSynchronizeStream(other_));
}

TEST_F(EventTest, EVT_07_AnOldEventMayBeWaitedForBeforeItsRecord) {
  aclrtEvent event = CreateOld();
  Log log;
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));
  Launch(other_, log, "b");
  Launch(stream_, log, "a");
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "ab");
}

TEST_F(EventTest, EVT_09_QueryStatus) {
  EXPECT_EQ(QueryRecorded(CreateEx()), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  aclrtEvent event = CreateOld();
  EXPECT_EQ(QueryRecorded(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  Gate gate;
  Launch(stream_, gate);
  for (aclrtEvent recorded : {event, CreateEx()}) {
    ASSERT_OK(aclrtRecordEvent(recorded, stream_));
    EXPECT_EQ(QueryRecorded(recorded), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  }
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(QueryRecorded(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
}

TEST_F(EventTest, EVT_11_TheDeprecatedQueriesKnowOldEventsOnly) {
  aclrtEventStatus status;
  aclrtEventWaitStatus waited;
  aclrtEvent external = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&external, ACL_EVENT_EXTERNAL));
  for (aclrtEvent event : {CreateEx(), external}) {
    EXPECT_CODE(207000, aclrtQueryEvent(event, &status));
    EXPECT_CODE(207000, aclrtQueryEventWaitStatus(event, &waited));
  }
  aclrtEvent old_event = CreateOld();
  Gate gate;
  Launch(stream_, gate);
  ASSERT_OK(aclrtRecordEvent(old_event, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, old_event));
  ASSERT_OK(aclrtQueryEvent(old_event, &status));
  EXPECT_EQ(status, ACL_EVENT_STATUS_NOT_READY);
  ASSERT_OK(aclrtQueryEventWaitStatus(old_event, &waited));
  EXPECT_EQ(waited, ACL_EVENT_WAIT_STATUS_NOT_READY);
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(other_));
  ASSERT_OK(aclrtQueryEvent(old_event, &status));
  EXPECT_EQ(status, ACL_EVENT_STATUS_COMPLETE);
  ASSERT_OK(aclrtQueryEventWaitStatus(old_event, &waited));
  EXPECT_EQ(waited, ACL_EVENT_WAIT_STATUS_COMPLETE);
}

TEST_F(EventTest, EVT_12_EVT_13_Synchronise) {
  aclrtEvent event = CreateEx();
  EXPECT_OK(aclrtSynchronizeEvent(event));
  EXPECT_CODE(107000, aclrtSynchronizeEventWithTimeout(event, 0));
  EXPECT_CODE(107000, aclrtSynchronizeEventWithTimeout(event, -5));
  Gate gate;
  Launch(stream_, gate);
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  EXPECT_CODE(507047, aclrtSynchronizeEventWithTimeout(event, 20));
  gate.Open();
  EXPECT_OK(aclrtSynchronizeEvent(event));
  aclrtEvent external = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&external, ACL_EVENT_EXTERNAL));
  EXPECT_CODE(207000, aclrtSynchronizeEvent(external));
}

TEST_F(EventTest, EVT_14_EVT_15_Times) {
  aclrtEvent start = CreateEx();
  aclrtEvent end = CreateEx();
  aclrtEvent without = CreateEx(ACL_EVENT_SYNC);
  float ms = -1;
  uint64_t start_us = 0;
  uint64_t end_us = 0;
  EXPECT_CODE(507000, aclrtEventElapsedTime(&ms, start, end));
  EXPECT_CODE(507000, aclrtEventGetTimestamp(start, &start_us));
  Gate gate;
  ASSERT_OK(aclrtRecordEvent(start, stream_));
  ASSERT_OK(aclrtRecordEvent(without, stream_));
  Launch(stream_, gate);
  ASSERT_OK(aclrtRecordEvent(end, stream_));
  gate.WaitUntilEntered();
  EXPECT_CODE(107006, aclrtEventElapsedTime(&ms, start, end));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  ASSERT_OK(aclrtEventElapsedTime(&ms, start, end));
  EXPECT_GE(ms, 5.0f);
  ASSERT_OK(aclrtEventGetTimestamp(start, &start_us));
  ASSERT_OK(aclrtEventGetTimestamp(end, &end_us));
  EXPECT_NEAR(static_cast<double>(end_us - start_us), ms * 1000.0, 2.0);
  EXPECT_CODE(107006, aclrtEventElapsedTime(&ms, without, end));
  aclrtEvent external = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&external, ACL_EVENT_EXTERNAL));
  EXPECT_CODE(207000, aclrtEventElapsedTime(&ms, external, end));
}

TEST_F(EventTest, EVT_16_DestroyDoesNotBlockAndEndsTheHandle) {
  Gate gate;
  aclrtEvent event = CreateEx();
  Launch(stream_, gate);
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  EXPECT_OK(aclrtDestroyEvent(event));
  EXPECT_CODE(107017, aclrtDestroyEvent(event));
  EXPECT_CODE(107017, aclrtRecordEvent(event, stream_));
  EXPECT_CODE(100000, aclrtDestroyEvent(nullptr));
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(EventTest, EVT_18_WaitTimeouts) {
  aclrtEvent event = CreateOld();
  EXPECT_CODE(107000, aclrtStreamWaitEventWithTimeout(stream_, event, -1));
  ASSERT_OK(aclrtStreamWaitEventWithTimeout(stream_, event, 1));
  EXPECT_CODE(107019, aclrtSynchronizeStream(stream_));  // the task failed
  ASSERT_OK(aclrtSetOpWaitTimeout(1));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, event));
  ASSERT_OK(aclrtSetOpWaitTimeout(0));
  EXPECT_CODE(107019, aclrtSynchronizeStream(stream_));
}

TEST_F(EventTest, CTX_10_EventsMayBeUsedFromAnyThreadOfTheContext) {
  aclrtEvent event = CreateEx();
  Log log;
  InThread([&] {
    Launch(stream_, log, "a");
    ASSERT_OK(aclrtRecordEvent(event, stream_));
  });
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));
  Launch(other_, log, "b");
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "ab");
}

TEST_F(EventTest, EVT_01_APlainEventIsOldWithProgressAndTimeLine) {
  aclrtEvent event = CreateOld();
  EXPECT_EQ(QueryRecorded(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);  // as old events are
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));  // 0x4
  ASSERT_OK(aclrtSynchronizeStream(other_));
  float ms = -1;
  EXPECT_OK(aclrtEventElapsedTime(&ms, event, event));  // 0x8
  EXPECT_EQ(ms, 0.0f);
  // An event with exactly these flags behaves alike, one without 0x8 has no time.
  aclrtEvent flagged = nullptr;
  aclrtEvent without = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&flagged, 0x0E));
  ASSERT_OK(aclrtCreateEventWithFlag(&without, 0x06));
  for (aclrtEvent other : {flagged, without}) ASSERT_OK(aclrtRecordEvent(other, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_OK(aclrtEventElapsedTime(&ms, event, flagged));
  EXPECT_CODE(107006, aclrtEventElapsedTime(&ms, event, without));
}

TEST_F(EventTest, EVT_08_AResetIsATaskOfItsStream) {
  aclrtEvent event = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  Gate gate;
  Launch(stream_, gate);
  ASSERT_OK(aclrtResetEvent(event, stream_));
  EXPECT_EQ(QueryRecorded(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);  // not yet
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(QueryRecorded(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(QueryRecorded(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  // A reset that runs after a newer record does not take that one away.
  Gate again;
  Launch(stream_, again);
  ASSERT_OK(aclrtResetEvent(event, stream_));
  ASSERT_OK(aclrtRecordEvent(event, other_));
  ASSERT_OK(aclrtSynchronizeStream(other_));
  again.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(QueryRecorded(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  EXPECT_CODE(207000, aclrtResetEvent(CreateEx(), stream_));
}

TEST_F(EventTest, EVT_09_ExternalEventsHaveNoQuery) {
  aclrtEvent external = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&external, ACL_EVENT_EXTERNAL));
  aclrtEventRecordedStatus status;
  EXPECT_CODE(207000, aclrtQueryEventStatus(external, &status));
}

TEST_F(EventTest, EVT_10_TheTwoStatusesHaveOppositeValues) {
  EXPECT_EQ(static_cast<int>(ACL_EVENT_STATUS_COMPLETE), 0);
  EXPECT_EQ(static_cast<int>(ACL_EVENT_RECORDED_STATUS_COMPLETE), 1);
  aclrtEvent event = CreateOld();
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  aclrtEventStatus status;
  aclrtEventRecordedStatus recorded;
  ASSERT_OK(aclrtQueryEvent(event, &status));
  ASSERT_OK(aclrtQueryEventStatus(event, &recorded));
  EXPECT_EQ(static_cast<int>(status), 0);
  EXPECT_EQ(static_cast<int>(recorded), 1);
}

TEST_F(EventTest, EVT_15_TimeStampsHaveTheRefusalsOfElapsedTimes) {
  uint64_t time = 0;
  aclrtEvent external = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&external, ACL_EVENT_EXTERNAL));
  EXPECT_CODE(207000, aclrtEventGetTimestamp(external, &time));
  aclrtEvent without = CreateEx(ACL_EVENT_SYNC);
  aclrtEvent later = CreateEx();
  EXPECT_CODE(507000, aclrtEventGetTimestamp(later, &time));
  Gate gate;
  ASSERT_OK(aclrtRecordEvent(without, stream_));
  Launch(stream_, gate);
  ASSERT_OK(aclrtRecordEvent(later, stream_));
  EXPECT_CODE(107006, aclrtEventGetTimestamp(later, &time));
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_CODE(107006, aclrtEventGetTimestamp(without, &time));
  EXPECT_OK(aclrtEventGetTimestamp(later, &time));
  EXPECT_GT(time, 0u);
}

TEST_F(EventTest, EVT_23_CAP_54_EventsBetweenProcessesInOneProcess) {
  aclrtEvent event = nullptr;
  aclrtEvent opened = nullptr;
  aclrtIpcEventHandle handle;
  ASSERT_OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
  EXPECT_CODE(107000, aclrtIpcGetEventHandle(CreateEx(), &handle));
  EXPECT_CODE(100000, aclrtIpcGetEventHandle(event, nullptr));
  EXPECT_EQ(sizeof(handle), 64u);
  ASSERT_OK(aclrtIpcGetEventHandle(event, &handle));
  ASSERT_OK(aclrtIpcOpenEventHandle(handle, &opened));
  EXPECT_NE(opened, event);
  EXPECT_OK(aclrtStreamWaitEvent(stream_, opened));  // never recorded: passes
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(QueryRecorded(opened), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  Log log;
  Gate gate;
  Launch(stream_, gate);
  Launch(stream_, log, "a");
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, opened));
  Launch(other_, log, "b");
  EXPECT_EQ(QueryRecorded(opened), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  EXPECT_CODE(507047, aclrtSynchronizeEventWithTimeout(opened, 20));
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(other_, 20));
  gate.Open();
  ASSERT_OK(aclrtSynchronizeEvent(opened));
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "ab");
  // Such events cannot be reset, queried or timed (EVT-08, EVT-11, EVT-14), and take no part in
  // captures (CAP-54).
  float ms = 0;
  uint64_t time = 0;
  aclrtEventStatus status;
  aclrtEventWaitStatus waited;
  EXPECT_CODE(207000, aclrtResetEvent(event, stream_));
  EXPECT_CODE(207000, aclrtQueryEvent(event, &status));
  EXPECT_CODE(207000, aclrtQueryEventWaitStatus(event, &waited));
  EXPECT_CODE(207000, aclrtEventElapsedTime(&ms, event, event));
  EXPECT_CODE(207000, aclrtEventGetTimestamp(event, &time));
  Begin(stream_);
  EXPECT_CODE(207000, aclrtRecordEvent(event, stream_));
  EXPECT_CODE(207000, aclrtStreamWaitEvent(stream_, opened));
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_NE(End(stream_), nullptr);
  ASSERT_OK(aclrtDestroyEvent(event));
  EXPECT_OK(aclrtSynchronizeEvent(opened));                      // the opened one lives on
  EXPECT_CODE(107000, aclrtIpcOpenEventHandle(handle, &event));  // but opens no more
}

}  // namespace
}  // namespace acltape::device
