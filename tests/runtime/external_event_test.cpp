// Records and waits that connect graphs to the outside: rules EXT-01 to EXT-07, EVT-19, EVT-20.
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

constexpr uint32_t kDefault = ACL_EVENT_RECORD_DEFAULT;
constexpr uint32_t kExternal = ACL_EVENT_RECORD_EXTERNAL;

class ExternalEvent : public SoftDevice {
 protected:
  // A graph of one gate kernel, then an external record.
  aclmdlRI CaptureRecord(Gate& gate, aclrtEvent event) {
    Begin(stream_);
    Launch(stream_, gate);
    EXPECT_OK(aclrtRecordEventWithFlag(event, stream_, kExternal));
    return End(stream_);
  }
  // A graph of an external wait, then a kernel.
  aclmdlRI CaptureWait(Log& log, aclrtEvent event, const std::string& letter) {
    Begin(stream_);
    EXPECT_OK(aclrtStreamWaitEventWithFlag(stream_, event, 0, kExternal));
    Launch(stream_, log, letter);
    return End(stream_);
  }
  bool NeverRecorded(aclrtEvent event) {
    float ms = 0;
    return aclrtEventElapsedTime(&ms, event, event) == 507000;  // EVT-14
  }
};

TEST_F(ExternalEvent, EVT_19_FlagsAndTimeouts) {
  aclrtEvent event = CreateEx(ACL_EVENT_SYNC);
  EXPECT_CODE(100000, aclrtRecordEventWithFlag(event, stream_, 2));
  EXPECT_CODE(100000, aclrtStreamWaitEventWithFlag(stream_, event, 0, 2));
  EXPECT_CODE(100000, aclrtStreamWaitEventWithFlag(stream_, event, 1, kExternal));
  EXPECT_OK(aclrtRecordEventWithFlag(event, stream_, kDefault));  // an ordinary record
  EXPECT_OK(aclrtStreamWaitEventWithFlag(other_, event, 1, kDefault));
  EXPECT_OK(aclrtSynchronizeStream(other_));
  EXPECT_FALSE(NeverRecorded(event));
}

TEST_F(ExternalEvent, EVT_20_TheFirstCallFixesTheFlag) {
  aclrtEvent ordinary = CreateEx(ACL_EVENT_SYNC);
  ASSERT_OK(aclrtRecordEvent(ordinary, other_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, ordinary));
  aclrtEvent external = CreateEx(ACL_EVENT_SYNC);
  EXPECT_CODE(107029, aclrtRecordEventWithFlag(external, stream_, kExternal));  // fails, and sticks
  EXPECT_CODE(107029, aclrtStreamWaitEventWithFlag(stream_, external, 0, kExternal));
  EXPECT_CODE(107000, aclrtRecordEvent(external, stream_));
  EXPECT_CODE(107000, aclrtRecordEventWithFlag(external, stream_, kDefault));
  EXPECT_CODE(107000, aclrtStreamWaitEvent(stream_, external));
  EXPECT_CODE(107000, aclrtStreamWaitEventWithTimeout(stream_, external, 1));
  Begin(stream_);
  EXPECT_CODE(107000, aclrtRecordEventWithFlag(ordinary, stream_, kExternal));
  EXPECT_CODE(107000, aclrtStreamWaitEventWithFlag(stream_, ordinary, 0, kExternal));
  EXPECT_OK(aclrtRecordEventWithFlag(external, stream_, kExternal));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(ExternalEvent, EXT_01_OnlyExEventsWithTheSyncFlagAlone) {
  aclrtEvent more = CreateEx(ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
  aclrtEvent old = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&old, ACL_EVENT_SYNC));
  Begin(stream_);
  for (aclrtEvent event : {more, old}) {
    EXPECT_CODE(207000, aclrtRecordEventWithFlag(event, stream_, kExternal));
    EXPECT_CODE(207000, aclrtStreamWaitEventWithFlag(stream_, event, 0, kExternal));
  }
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(ExternalEvent, EXT_02_TheStreamMustCaptureAModelOfItsOwn) {
  aclrtEvent event = CreateEx(ACL_EVENT_SYNC);
  EXPECT_CODE(107029, aclrtRecordEventWithFlag(event, stream_, kExternal));
  EXPECT_CODE(107029, aclrtStreamWaitEventWithFlag(stream_, event, 0, kExternal));
  Begin(stream_);
  aclmdlRI parent = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &parent));
  aclmdlRICondHandle handle = nullptr;
  aclmdlRI branch = nullptr;
  ASSERT_OK(aclmdlRICondHandleCreate(parent, 0, static_cast<aclmdlRICondHandleFlag>(0), &handle));
  ASSERT_OK(aclmdlRIAddCondTask({handle, ACL_MODEL_RI_COND_TYPE_IF, 1, &branch}, stream_, 0));
  ASSERT_OK(aclmdlRICaptureToModelRIBegin(other_, branch, kThreadLocal));
  EXPECT_CODE(207000, aclrtRecordEventWithFlag(event, other_, kExternal));
  EXPECT_CODE(207000, aclrtStreamWaitEventWithFlag(other_, event, 0, kExternal));
  ASSERT_OK(aclmdlRICaptureEnd(other_, nullptr));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(ExternalEvent, EXT_03_OnceByGraph) {
  aclrtEvent recorded = CreateEx(ACL_EVENT_SYNC);
  aclrtEvent waited = CreateEx(ACL_EVENT_SYNC);
  Begin(stream_);
  ASSERT_OK(aclrtRecordEventWithFlag(recorded, stream_, kExternal));
  EXPECT_CODE(107000, aclrtRecordEventWithFlag(recorded, stream_, kExternal));
  EXPECT_CODE(107000, aclrtStreamWaitEventWithFlag(stream_, recorded, 0, kExternal));
  ASSERT_OK(aclrtStreamWaitEventWithFlag(stream_, waited, 0, kExternal));
  EXPECT_CODE(107000, aclrtStreamWaitEventWithFlag(stream_, waited, 0, kExternal));
  EXPECT_CODE(107000, aclrtRecordEventWithFlag(waited, stream_, kExternal));
  EXPECT_NE(End(stream_), nullptr);
  Begin(stream_);  // another graph
  EXPECT_OK(aclrtStreamWaitEventWithFlag(stream_, recorded, 0, kExternal));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(ExternalEvent, EXT_04_EXT_07_AnOrdinaryWaitWaitsForTheLaunchedRecord) {
  Gate gate;
  Log log;
  aclrtEvent event = CreateEx(ACL_EVENT_SYNC);
  aclmdlRI model = CaptureRecord(gate, event);
  EXPECT_TRUE(NeverRecorded(event));
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  aclrtEventRecordedStatus status;
  ASSERT_OK(aclrtQueryEventStatus(event, &status));  // recorded from the launch call on
  EXPECT_EQ(status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));
  Launch(other_, log, "after");
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(other_, 30));
  EXPECT_EQ(log.text(), "");
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "after");
  EXPECT_OK(aclrtSynchronizeEvent(event));
}

TEST_F(ExternalEvent, EXT_04_AnExternalWaitOfALaterLaunchWaitsForIt) {
  Gate gate;
  Log log;
  aclrtEvent event = CreateEx(ACL_EVENT_SYNC);
  aclmdlRI recorder = CaptureRecord(gate, event);
  aclmdlRI waiter = CaptureWait(log, event, "w");
  ASSERT_OK(aclmdlRIExecuteAsync(recorder, stream_));
  ASSERT_OK(aclmdlRIExecuteAsync(waiter, other_));
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(other_, 30));
  EXPECT_EQ(log.text(), "");
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "w");
}

TEST_F(ExternalEvent, EXT_05_AWaitBindsAtItsLaunchAndPassesWithoutARecord) {
  Gate gate;
  Log log;
  aclrtEvent event = CreateEx(ACL_EVENT_SYNC);
  aclmdlRI recorder = CaptureRecord(gate, event);
  aclmdlRI waiter = CaptureWait(log, event, "w");
  Gate before;
  Launch(other_, before);
  ASSERT_OK(aclmdlRIExecuteAsync(waiter, other_));  // nothing is recorded now
  ASSERT_OK(aclmdlRIExecuteAsync(recorder, stream_));
  before.Open();
  EXPECT_OK(aclrtSynchronizeStreamWithTimeout(other_, 5000));  // the later record is not waited for
  EXPECT_EQ(log.text(), "w");
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(ExternalEvent, EXT_06_ARefusedLaunchPublishesNothing) {
  Gate gate;
  gate.Open();
  Log log;
  aclrtEvent event = CreateEx(ACL_EVENT_SYNC);
  aclmdlRI model = CaptureRecord(gate, event);
  ASSERT_OK(aclrtSetStreamFailureMode(stream_, ACL_STOP_ON_FAILURE));
  Launch(other_, log, "fails", 507015);
  EXPECT_CODE(507015, aclrtSynchronizeStream(other_));
  EXPECT_CODE(507015, aclmdlRIExecuteAsync(model, stream_));
  EXPECT_TRUE(NeverRecorded(event));
  EXPECT_OK(aclmdlRIDestroy(model));  // the launch holds nothing
}

TEST_F(ExternalEvent, EXT_06_AnAbortedLaunchLetsItsWaitersPass) {
  Gate before;
  Gate gate;
  aclrtEvent event = CreateEx(ACL_EVENT_SYNC);
  aclmdlRI model = CaptureRecord(gate, event);
  Launch(stream_, before);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, event));
  ASSERT_OK(aclrtStreamAbort(stream_));
  before.Open();
  EXPECT_OK(aclrtSynchronizeStreamWithTimeout(other_, 5000));
}

TEST_F(ExternalEvent, EXT_07_AnOrdinaryRecordReleasesAnExternalWait) {
  Gate gate;
  Log log;
  aclrtEvent event = CreateEx(ACL_EVENT_SYNC);
  aclmdlRI model = CaptureWait(log, event, "w");
  for (int i = 0; i < 3; ++i) {
    Gate closed;
    Launch(other_, closed);
    ASSERT_OK(aclrtRecordEvent(event, other_));
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(stream_, 20));
    closed.Open();
    ASSERT_OK(aclrtSynchronizeStream(stream_));
  }
  EXPECT_EQ(log.text(), "www");
}

TEST_F(ExternalEvent, EXT_07_ManyReplaysHandOverInOrder) {
  Log log;
  aclrtEvent event = CreateEx(ACL_EVENT_SYNC);
  Begin(stream_);
  Launch(stream_, log, "p");
  ASSERT_OK(aclrtRecordEventWithFlag(event, stream_, kExternal));
  aclmdlRI producer = End(stream_);
  aclmdlRI consumer = CaptureWait(log, event, "c");
  aclrtEvent done = CreateEx();
  std::string expected;
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK(aclmdlRIExecuteAsync(producer, stream_));
    ASSERT_OK(aclmdlRIExecuteAsync(consumer, other_));
    ASSERT_OK(aclrtRecordEvent(done, other_));
    ASSERT_OK(aclrtStreamWaitEvent(stream_, done));
    expected += "pc";
  }
  ASSERT_OK(aclrtSynchronizeDevice());
  EXPECT_EQ(log.text(), expected);
}

}  // namespace
}  // namespace acltape::device
