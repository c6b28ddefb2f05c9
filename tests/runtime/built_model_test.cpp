// Models built without capture, labels, and persistent streams: rules BLD-01 to BLD-05, LBL-01 to
// LBL-03, STR-08, STR-10, STR-16, STR-23, EVT-08, EVT-12, EXE-11 and EXE-17.
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

constexpr uint32_t kHead = ACL_MODEL_STREAM_FLAG_HEAD;
constexpr uint32_t kActivated = ACL_MODEL_STREAM_FLAG_DEFAULT;

class BuiltModel : public SoftDevice {
 protected:
  void SetUp() override {
    SoftDevice::SetUp();
    ASSERT_OK(aclmdlRIBuildBegin(&model_, 0));
    ASSERT_OK(aclrtMalloc(&memory_, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    ASSERT_OK(aclrtMemset(memory_, 64, 0, 64));
    head_ = CreatePersistent();
    ASSERT_OK(aclmdlRIBindStream(model_, head_, kHead));
  }
  void TearDown() override {
    aclrtFree(memory_);
    SoftDevice::TearDown();
  }

  aclrtStream CreatePersistent() {
    aclrtStream stream = nullptr;
    EXPECT_OK(aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_PERSISTENT));
    return stream;
  }
  aclrtStream Bind(uint32_t flag) {
    aclrtStream stream = CreatePersistent();
    EXPECT_OK(aclmdlRIBindStream(model_, stream, flag));
    return stream;
  }
  void Complete(aclrtStream last) {
    ASSERT_OK(aclmdlRIEndTask(model_, last));
    ASSERT_OK(aclmdlRIBuildEnd(model_, nullptr));
  }
  void LaunchCountdown(aclrtStream stream, void* value) {
    ASSERT_OK(SoftLaunchKernel(
        stream, "countdown",
        [](void* bound) -> aclError {
          --*static_cast<int32_t*>(bound);
          return 0;
        },
        nullptr, value));
  }
  int32_t* Int(int i) { return static_cast<int32_t*>(memory_) + i; }
  void Write(int32_t* to, int32_t value) {
    ASSERT_OK(aclrtMemcpy(to, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  }

  aclmdlRI model_ = nullptr;
  aclrtStream head_ = nullptr;
  void* memory_ = nullptr;
};

TEST_F(BuiltModel, BLD_01_LifeCycle) {
  Log log;
  Launch(head_, log, "a");
  Launch(head_, log, "b");
  Complete(head_);
  EXPECT_EQ(log.text(), "");
  ASSERT_OK(aclmdlRIExecute(model_, -1));
  EXPECT_EQ(log.text(), "ab");
  ASSERT_OK(aclmdlRIExecuteAsync(model_, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "abab");
  ASSERT_OK(aclmdlRIUnbindStream(model_, head_));
  ASSERT_OK(aclmdlRIDestroy(model_));
  EXPECT_OK(aclrtDestroyStream(head_));
}

TEST_F(BuiltModel, BLD_02_OnlyHeadStreamsStartWithTheModel) {
  Log log;
  aclrtStream second_head = Bind(kHead);
  aclrtStream activated = Bind(kActivated);
  aclrtStream never = Bind(kActivated);
  Launch(second_head, log, "h");
  Launch(never, log, "n");
  Launch(activated, log, "b");
  ASSERT_OK(aclmdlRIEndTask(model_, activated));
  Launch(head_, log, "a");
  ASSERT_OK(aclrtActiveStream(activated, head_));
  ASSERT_OK(aclmdlRIBuildEnd(model_, nullptr));
  ASSERT_OK(aclmdlRIExecute(model_, 5000));
  std::string text = log.text();
  EXPECT_EQ(text.size(), 3u);
  EXPECT_LT(text.find('a'), text.find('b'));
  EXPECT_NE(text.find('h'), std::string::npos);
  EXPECT_EQ(text.find('n'), std::string::npos);
}

TEST_F(BuiltModel, BLD_02_BLD_03_BindRefusals) {
  aclrtStream persistent = CreatePersistent();
  EXPECT_CODE(107000, aclmdlRIBindStream(model_, stream_, kHead));  // not persistent
  EXPECT_CODE(107000, aclmdlRIBindStream(model_, persistent, 1));
  EXPECT_CODE(107005, aclmdlRIBindStream(model_, head_, kHead));  // bound already
  EXPECT_CODE(100000, aclmdlRIBindStream(nullptr, persistent, kHead));
  EXPECT_CODE(100000, aclmdlRIBindStream(model_, nullptr, kHead));
  EXPECT_EQ(kHead, 0u);
  EXPECT_EQ(kActivated, 0x7FFFFFFFu);
  Complete(head_);
  EXPECT_CODE(107000, aclmdlRIBindStream(model_, persistent, kHead));  // too late
}

TEST_F(BuiltModel, BLD_04_Arguments) {
  aclmdlRI model = nullptr;
  EXPECT_CODE(100000, aclmdlRIBuildBegin(&model, 1));
  EXPECT_CODE(100000, aclmdlRIBuildBegin(nullptr, 0));
  EXPECT_CODE(100000, aclmdlRIBuildEnd(model_, memory_));
  EXPECT_OK(aclmdlRIBuildEnd(model_, nullptr));
}

TEST_F(BuiltModel, BLD_05_ExecutionNeedsTheEndTaskAndTheBuildEnd) {
  Log log;
  Launch(head_, log, "a");
  EXPECT_CODE(507011, aclmdlRIExecuteAsync(model_, stream_));
  ASSERT_OK(aclmdlRIBuildEnd(model_, nullptr));
  EXPECT_CODE(507011, aclmdlRIExecute(model_, 1000));
  ASSERT_OK(aclmdlRIEndTask(model_, head_));
  EXPECT_OK(aclmdlRIExecute(model_, 5000));
  EXPECT_EQ(log.text(), "a");
}

TEST_F(BuiltModel, BLD_05_CapturedModelsHaveNoneOfThese) {
  Begin(stream_);
  aclmdlRI captured = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &captured));
  EXPECT_CODE(107000, aclmdlRIBindStream(captured, other_, kHead));
  EXPECT_CODE(107000, aclmdlRIUnbindStream(captured, other_));
  EXPECT_CODE(107000, aclmdlRIEndTask(captured, other_));
  EXPECT_CODE(107000, aclmdlRIBuildEnd(captured, nullptr));
  End(stream_);
}

TEST_F(BuiltModel, CAP_62_BindUnbindAndEndTaskOnACapturingStreamGive107027) {
  Begin(stream_);
  EXPECT_CODE(107027, aclmdlRIBindStream(model_, stream_, kHead));
  EXPECT_CODE(107027, aclmdlRIUnbindStream(model_, stream_));
  EXPECT_CODE(107027, aclmdlRIEndTask(model_, stream_));
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(BuiltModel, CAP_02_ABoundStreamCannotBeCaptured) {
  EXPECT_CODE(107005, aclmdlRICaptureBegin(head_, kGlobal));
}

TEST_F(BuiltModel, EXE_02_ABoundStreamCannotExecute) {
  Complete(head_);
  EXPECT_CODE(107000, aclmdlRIExecuteAsync(model_, head_));
}

TEST_F(BuiltModel, STR_08_APersistentStreamRunsNothingByItself) {
  Log log;
  aclrtStream alone = CreatePersistent();
  Launch(alone, log, "x");
  Launch(head_, log, "y");
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  EXPECT_OK(aclrtSynchronizeStream(alone));
  EXPECT_OK(aclrtStreamQuery(head_, &status));
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(log.text(), "");
}

TEST_F(BuiltModel, STR_10_ABoundStreamIsNotDestroyed) {
  EXPECT_CODE(107005, aclrtDestroyStream(head_));
  EXPECT_CODE(107005, aclrtDestroyStreamForce(head_));
  EXPECT_CODE(107005, aclmdlRIUnbindStream(model_, CreatePersistent()));
  ASSERT_OK(aclmdlRIUnbindStream(model_, head_));
  EXPECT_OK(aclrtDestroyStream(head_));
}

TEST_F(BuiltModel, STR_10_DestroyingTheModelReleasesItsStreams) {
  ASSERT_OK(aclmdlRIDestroy(model_));
  EXPECT_OK(aclrtDestroyStream(head_));
}

TEST_F(BuiltModel, STR_16_ABoundStreamKeepsItsFailureMode) {
  EXPECT_CODE(207000, aclrtSetStreamFailureMode(head_, ACL_STOP_ON_FAILURE));
}

TEST_F(BuiltModel, CPY_06_PageableCopiesOnBoundAndPersistentStreamsAreDoneAtOnce) {
  aclrtStream persistent = CreatePersistent();
  int32_t host = 0;
  for (aclrtStream stream : {head_, persistent}) {
    Write(Int(0), 0);
    host += 7;
    ASSERT_OK(aclrtMemcpyAsync(Int(0), 4, &host, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    int32_t read = 0;
    ASSERT_OK(aclrtMemcpyAsync(&read, 4, Int(0), 4, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    EXPECT_EQ(read, host);
  }
  // The model got no task of them.
  Complete(head_);
  Write(Int(0), 1);
  ASSERT_OK(aclmdlRIExecute(model_, 5000));
  int32_t read = 0;
  ASSERT_OK(aclrtMemcpy(&read, 4, Int(0), 4, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(read, 1);
}

TEST_F(BuiltModel, STR_23_ASwitchActivatesAStreamIfItsConditionHolds) {
  struct Row {
    aclrtCondition condition;
    int32_t left;
    bool holds;
  };
  constexpr aclrtCondition kOpposite[] = {ACL_RT_NOT_EQUAL,        ACL_RT_EQUAL,
                                          ACL_RT_LESS_OR_EQUAL,    ACL_RT_LESS,
                                          ACL_RT_GREATER_OR_EQUAL, ACL_RT_GREATER};
  constexpr Row kRows[] = {
      {ACL_RT_EQUAL, 5, true},
      {ACL_RT_EQUAL, 4, false},
      {ACL_RT_NOT_EQUAL, 4, true},
      {ACL_RT_NOT_EQUAL, 5, false},
      {ACL_RT_GREATER, 6, true},
      {ACL_RT_GREATER, 5, false},
      {ACL_RT_GREATER_OR_EQUAL, 5, true},
      {ACL_RT_GREATER_OR_EQUAL, 4, false},
      {ACL_RT_LESS, -1, true},
      {ACL_RT_LESS, 5, false},
      {ACL_RT_LESS_OR_EQUAL, 5, true},
      {ACL_RT_LESS_OR_EQUAL, 6, false},
  };
  for (const Row& row : kRows) {
    Log log;
    aclmdlRI model = nullptr;
    ASSERT_OK(aclmdlRIBuildBegin(&model, 0));
    aclrtStream streams[3];
    for (int i = 0; i < 3; ++i) {
      streams[i] = CreatePersistent();
      ASSERT_OK(aclmdlRIBindStream(model, streams[i], i == 0 ? kHead : kActivated));
    }
    ASSERT_OK(aclrtSwitchStream(Int(0), row.condition, Int(1), ACL_RT_SWITCH_INT32, streams[1],
                                nullptr, streams[0]));
    ASSERT_OK(aclrtSwitchStream(Int(0), kOpposite[row.condition], Int(1), ACL_RT_SWITCH_INT32,
                                streams[2], nullptr, streams[0]));
    Launch(streams[1], log, "t");
    Launch(streams[2], log, "f");
    ASSERT_OK(aclmdlRIEndTask(model, streams[1]));
    ASSERT_OK(aclmdlRIEndTask(model, streams[2]));
    ASSERT_OK(aclmdlRIBuildEnd(model, nullptr));
    Write(Int(0), row.left);
    Write(Int(1), 5);
    ASSERT_OK(aclmdlRIExecute(model, 5000));
    EXPECT_EQ(log.text(), row.holds ? "t" : "f") << row.condition << " " << row.left;
    ASSERT_OK(aclmdlRIDestroy(model));
    for (aclrtStream stream : streams) ASSERT_OK(aclrtDestroyStream(stream));
  }
}

TEST_F(BuiltModel, STR_23_SwitchAndActivateNeedBoundStreams) {
  aclrtStream bound = Bind(kActivated);
  EXPECT_CODE(107005, aclrtActiveStream(bound, stream_));
  EXPECT_CODE(107005, aclrtActiveStream(stream_, head_));
  EXPECT_CODE(107005, aclrtSwitchStream(Int(0), ACL_RT_EQUAL, Int(2), ACL_RT_SWITCH_INT64, bound,
                                        nullptr, stream_));
  EXPECT_CODE(107005, aclrtSwitchStream(Int(0), ACL_RT_EQUAL, Int(2), ACL_RT_SWITCH_INT64, stream_,
                                        nullptr, head_));
  EXPECT_OK(
      aclrtSwitchStream(Int(0), ACL_RT_EQUAL, Int(2), ACL_RT_SWITCH_INT64, bound, nullptr, head_));
}

TEST_F(BuiltModel, LBL_01_LabelsNeedABoundStream) {
  aclrtLabel label = nullptr;
  ASSERT_OK(aclrtCreateLabel(&label));
  EXPECT_CODE(107005, aclrtSetLabel(label, stream_));
  EXPECT_OK(aclrtSetLabel(label, head_));
  EXPECT_CODE(107000, aclrtSetLabel(label, head_));  // it stands already
  EXPECT_OK(aclrtDestroyLabel(label));
  EXPECT_CODE(107017, aclrtDestroyLabel(label));
}

TEST_F(BuiltModel, LBL_01_AtMost65535LabelsByProcess) {
  std::vector<aclrtLabel> labels;
  aclrtLabel label = nullptr;
  while (labels.size() < 70000 && aclrtCreateLabel(&label) == ACL_SUCCESS) labels.push_back(label);
  EXPECT_EQ(labels.size(), 65535u);
  for (aclrtLabel created : labels) ASSERT_OK(aclrtDestroyLabel(created));
}

TEST_F(BuiltModel, LBL_02_ALabelOnACapturingStreamGives107027) {
  aclrtLabel label = nullptr;
  ASSERT_OK(aclrtCreateLabel(&label));
  Begin(stream_);
  EXPECT_CODE(107027, aclrtSetLabel(label, stream_));
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_NE(End(stream_), nullptr);
  ASSERT_OK(aclrtDestroyLabel(label));
}

TEST_F(BuiltModel, LBL_03_ASwitchJumpsToTheLabelOfTheIndex) {
  // switch(index) { 0: "a"; 1: "b"; else: "c" } and an end that all lead to.
  Log log;
  aclrtLabel labels[3];
  aclrtLabel end = nullptr;
  aclrtLabelList list = nullptr;
  aclrtLabelList to_end = nullptr;
  for (aclrtLabel& label : labels) ASSERT_OK(aclrtCreateLabel(&label));
  ASSERT_OK(aclrtCreateLabel(&end));
  ASSERT_OK(aclrtCreateLabelList(labels, 3, &list));
  ASSERT_OK(aclrtCreateLabelList(&end, 1, &to_end));
  EXPECT_CODE(107000, aclrtSwitchLabelByIndex(Int(0), 0, list, head_));
  EXPECT_CODE(107000, aclrtSwitchLabelByIndex(Int(0), 4, list, head_));
  EXPECT_CODE(107005, aclrtSwitchLabelByIndex(Int(0), 3, list, stream_));
  ASSERT_OK(aclrtSwitchLabelByIndex(Int(0), 3, list, head_));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(aclrtSetLabel(labels[i], head_));
    Launch(head_, log, std::string(1, static_cast<char>('a' + i)));
    ASSERT_OK(aclrtSwitchLabelByIndex(Int(1), 1, to_end, head_));
  }
  ASSERT_OK(aclrtSetLabel(end, head_));
  Launch(head_, log, ".");
  Complete(head_);
  for (int32_t index : {1, 0, 2, 3, 1000}) {
    Write(Int(0), index);
    ASSERT_OK(aclmdlRIExecute(model_, 5000));
  }
  EXPECT_EQ(log.text(), "b.a.c.c.c.");
  ASSERT_OK(aclrtDestroyLabelList(list));
  EXPECT_CODE(107017, aclrtDestroyLabelList(list));
  ASSERT_OK(aclrtDestroyLabelList(to_end));
  for (aclrtLabel label : labels) ASSERT_OK(aclrtDestroyLabel(label));
  ASSERT_OK(aclrtDestroyLabel(end));
}

TEST_F(BuiltModel, LBL_03_AJumpBackIsALoop) {
  Log log;
  aclrtLabel labels[2];  // 0: leave, else: once more
  aclrtLabelList list = nullptr;
  for (aclrtLabel& label : labels) ASSERT_OK(aclrtCreateLabel(&label));
  ASSERT_OK(aclrtCreateLabelList(labels, 2, &list));
  ASSERT_OK(aclrtSetLabel(labels[1], head_));
  Launch(head_, log, "r");
  LaunchCountdown(head_, memory_);
  ASSERT_OK(aclrtSwitchLabelByIndex(memory_, 2, list, head_));
  ASSERT_OK(aclrtSetLabel(labels[0], head_));
  Launch(head_, log, ".");
  Complete(head_);
  for (int32_t rounds : {3, 1}) {
    Write(Int(0), rounds);
    ASSERT_OK(aclmdlRIExecute(model_, 5000));
  }
  EXPECT_EQ(log.text(), "rrr.r.");
  ASSERT_OK(aclrtDestroyLabelList(list));
  for (aclrtLabel label : labels) ASSERT_OK(aclrtDestroyLabel(label));
}

TEST_F(BuiltModel, EVT_08_EVT_12_EventsOrderTheStreamsOfEachExecution) {
  Log log;
  aclrtStream second = Bind(kHead);
  aclrtEvent plain = nullptr;
  aclrtEvent resettable = nullptr;
  ASSERT_OK(aclrtCreateEvent(&plain));
  ASSERT_OK(aclrtCreateEventWithFlag(&resettable, ACL_EVENT_SYNC));
  ASSERT_OK(aclrtStreamWaitEvent(second, plain));
  Launch(second, log, "b");
  ASSERT_OK(aclrtRecordEvent(resettable, second));
  Launch(head_, log, "a");
  ASSERT_OK(aclrtRecordEvent(plain, head_));
  EXPECT_CODE(207000, aclrtResetEvent(plain, head_));
  ASSERT_OK(aclrtStreamWaitEvent(head_, resettable));
  ASSERT_OK(aclrtResetEvent(resettable, head_));
  Launch(head_, log, "c");
  Complete(head_);
  EXPECT_CODE(107000, aclrtSynchronizeEvent(plain));
  for (int i = 0; i < 5; ++i) ASSERT_OK(aclmdlRIExecute(model_, 5000));
  EXPECT_EQ(log.text(), "abcabcabcabcabc");
}

TEST_F(BuiltModel, EXE_11_ExecuteTimesOut) {
  Gate gate;
  Launch(head_, gate);
  Complete(head_);
  EXPECT_CODE(107000, aclmdlRIExecute(model_, 0));
  EXPECT_CODE(107000, aclmdlRIExecute(model_, -2));
  EXPECT_CODE(507046, aclmdlRIExecute(model_, 20));
  gate.Open();
  EXPECT_OK(aclrtSynchronizeStream(nullptr));
  EXPECT_OK(aclmdlRIExecute(model_, 5000));
}

TEST_F(BuiltModel, EXE_17_AbortStopsARunningModel) {
  Log log;
  Launch(head_, log, "a");
  ASSERT_OK(aclrtValueWait(memory_, 1, ACL_STREAM_WAIT_VALUE_EQ, head_));  // nobody writes it
  Launch(head_, log, "never");
  Complete(head_);
  EXPECT_OK(aclmdlRIAbort(model_));  // nothing runs: nothing happens
  ASSERT_OK(aclmdlRIExecuteAsync(model_, stream_));
  while (log.text().empty()) std::this_thread::yield();
  ASSERT_OK(aclmdlRIAbort(model_));
  EXPECT_CODE(507023, aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "a");
  int64_t one = 1;
  ASSERT_OK(aclrtMemcpy(memory_, 8, &one, 8, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_OK(aclmdlRIExecute(model_, 5000));  // it can run again
  Begin(stream_);
  aclmdlRI captured = End(stream_);
  EXPECT_CODE(107000, aclmdlRIAbort(captured));
  EXPECT_CODE(100000, aclmdlRIAbort(nullptr));
}

TEST_F(BuiltModel, AnExecutionThatDoesNotReachItsEndFails) {
  Log log;
  aclrtStream never = Bind(kActivated);
  Launch(head_, log, "a");
  Complete(never);
  EXPECT_CODE(507011, aclmdlRIExecute(model_, 5000));
}

TEST_F(BuiltModel, TasksAfterTheBuildAreRefused) {
  Complete(head_);
  EXPECT_CODE(107005, SoftLaunchKernel(
                          head_, "k", [](void*) -> aclError { return 0; }, nullptr, nullptr));
}

}  // namespace
}  // namespace acltape::device
