// More on the execution of models: rules EXE-02 to EXE-20, beside model_test.cpp.
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class Execution : public SoftDevice {
 protected:
  aclmdlRI CaptureLog(Log& log, const std::string& entry) {
    Begin(stream_);
    Launch(stream_, log, entry);
    return End(stream_);
  }
};

TEST_F(Execution, EXE_02_EXE_20_TheHandleOfGetInfoBecomesExecutableAtTheEnd) {
  Log log;
  Begin(stream_);
  aclmdlRI during = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &during));
  Launch(stream_, log, "a");
  EXPECT_CODE(107026, aclmdlRIExecuteAsync(during, other_));
  EXPECT_CODE(107026, aclmdlRIExecuteAsync(during, stream_));
  EXPECT_CODE(107026, aclmdlRIDestroy(during));
  EXPECT_EQ(End(stream_), during);
  EXPECT_EQ(log.text(), "");
  EXPECT_OK(aclmdlRIExecuteAsync(during, other_));
  ASSERT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "a");
}

TEST_F(Execution, EXE_02_StreamsThatCannotExecute) {
  Log log;
  aclmdlRI model = CaptureLog(log, "a");
  for (uint32_t flag :
       {ACL_STREAM_PERSISTENT, ACL_STREAM_CPU_SCHEDULE, ACL_STREAM_DEVICE_USE_ONLY}) {
    aclrtStream special = nullptr;
    ASSERT_OK(aclrtCreateStreamWithConfig(&special, 0, flag));
    EXPECT_CODE(107000, aclmdlRIExecuteAsync(model, special)) << flag;
  }
  Begin(other_);
  EXPECT_CODE(107027, aclmdlRIExecuteAsync(model, other_));
  EXPECT_NE(End(other_), nullptr);
}

TEST_F(Execution, EXE_03_LaterTasksWaitForEveryHiddenStream) {
  Log log;
  Gate gate;
  aclrtEvent fork = CreateEx();
  aclrtEvent join = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  Launch(other_, gate);  // on the second hidden stream
  Launch(other_, log, "g");
  ASSERT_OK(aclrtRecordEvent(join, other_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, join));
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  Launch(stream_, log, "s");
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(stream_, 20));
  EXPECT_EQ(log.text(), "");
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "gs");
}

TEST_F(Execution, EXE_06_AModelMayBeLaunchedAgainBeforeItHasEnded) {
  Log log;
  Gate gate;
  Begin(stream_);
  Launch(stream_, gate);
  Launch(stream_, log, "a");
  Launch(stream_, log, "b");
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 10; ++i) EXPECT_OK(aclmdlRIExecuteAsync(model, stream_));
  gate.WaitUntilEntered();
  EXPECT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_EQ(log.text(), "");
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  std::string expected;
  for (int i = 0; i < 11; ++i) expected += "ab";
  EXPECT_EQ(log.text(), expected);  // one after the other
}

TEST_F(Execution, EXE_11_TimeoutsOfTheExecutionOfBuiltModelsAreChecked) {
  Log log;
  aclmdlRI model = CaptureLog(log, "a");
  for (int32_t timeout : {0, -2, -100, 100, -1}) {
    EXPECT_CODE(107000, aclmdlRIExecute(model, timeout)) << timeout;
  }
  EXPECT_EQ(log.text(), "");
}

TEST_F(Execution, EXE_13_AModelThatIsBeingCapturedIsNotDestroyed) {
  Begin(stream_);
  aclmdlRI model = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &model));
  EXPECT_CODE(107026, aclmdlRIDestroy(model));
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_EQ(End(stream_), model);
  EXPECT_OK(aclmdlRIDestroy(model));
}

TEST_F(Execution, EXE_15_DestroyCallbacksRunInTheCallingThread) {
  static std::thread::id thread;
  static int runs;
  runs = 0;
  Begin(stream_);
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIDestroyRegisterCallback(
      model,
      [](void*) {
        thread = std::this_thread::get_id();
        ++runs;
      },
      nullptr));
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(runs, 0);
  ASSERT_OK(aclmdlRIDestroy(model));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(thread, std::this_thread::get_id());
}

}  // namespace
}  // namespace acltape::device
