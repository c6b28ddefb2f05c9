// Looking into captured models and changing them: rules ENUM-01 to ENUM-17.
#include <algorithm>
#include <cstring>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

struct Store {
  int32_t* to;
  int32_t value;
};

aclError RunStore(void* args) {
  auto* store = static_cast<Store*>(args);
  *store->to = store->value;
  return 0;
}

class ModelTasks : public SoftDevice {
 protected:
  void SetUp() override {
    SoftDevice::SetUp();
    ASSERT_OK(aclrtMalloc(&memory_, 256, ACL_MEM_MALLOC_HUGE_FIRST));
    ASSERT_OK(aclrtMemset(memory_, 256, 0, 256));
  }
  void TearDown() override {
    aclrtFree(memory_);
    SoftDevice::TearDown();
  }

  void LaunchStore(aclrtStream stream, int32_t* to, int32_t value) {
    Store store{to, value};
    ASSERT_OK(SoftLaunchKernelWithArgs(stream, "store", RunStore, &store, sizeof(store)));
  }

  std::vector<aclrtStream> StreamsOf(aclmdlRI model) {
    uint32_t count = 0;
    EXPECT_OK(aclmdlRIGetStreams(model, nullptr, &count));
    std::vector<aclrtStream> streams(count);
    EXPECT_OK(aclmdlRIGetStreams(model, streams.data(), &count));
    return streams;
  }
  std::vector<aclmdlRITask> TasksOf(aclrtStream stream) {
    uint32_t count = 0;
    EXPECT_OK(aclmdlRIGetTasksByStream(stream, nullptr, &count));
    std::vector<aclmdlRITask> tasks(count);
    if (count != 0) {
      EXPECT_OK(aclmdlRIGetTasksByStream(stream, tasks.data(), &count));
    }
    return tasks;
  }
  std::vector<aclmdlRITask> AllTasks(aclmdlRI model) {
    std::vector<aclmdlRITask> all;
    for (aclrtStream stream : StreamsOf(model)) {
      for (aclmdlRITask task : TasksOf(stream)) all.push_back(task);
    }
    return all;
  }
  aclmdlRITaskType TypeOf(aclmdlRITask task) {
    aclmdlRITaskType type = ACL_MODEL_RI_TASK_DEFAULT;
    EXPECT_OK(aclmdlRITaskGetType(task, &type));
    return type;
  }
  aclmdlRITaskParams ParamsOf(aclmdlRITask task) {
    aclmdlRITaskParams params;
    EXPECT_OK(aclmdlRITaskGetParams(task, &params));
    return params;
  }
  void Replay(aclmdlRI model) {
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
  }
  int32_t* Cell(int i) { return static_cast<int32_t*>(memory_) + i; }
  int32_t Value(int i) {
    int32_t value = -1;
    EXPECT_OK(aclrtMemcpy(&value, 4, Cell(i), 4, ACL_MEMCPY_DEVICE_TO_HOST));
    return value;
  }

  void* memory_ = nullptr;
};

TEST_F(ModelTasks, ENUM_01_ENUM_02_TheProtocolOfArrays) {
  aclrtEvent fork = CreateEx();
  aclrtEvent join = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  ASSERT_OK(aclrtRecordEvent(join, other_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, join));
  aclmdlRI model = End(stream_);
  uint32_t count = 77;
  aclrtStream streams[4] = {stream_, stream_, stream_, stream_};
  EXPECT_CODE(107000, aclmdlRIGetStreams(nullptr, nullptr, &count));
  EXPECT_CODE(107000, aclmdlRIGetStreams(model, nullptr, nullptr));
  ASSERT_OK(aclmdlRIGetStreams(model, nullptr, &count));
  EXPECT_EQ(count, 2u);
  count = 0;
  EXPECT_CODE(107039, aclmdlRIGetStreams(model, streams, &count));
  count = 1;
  EXPECT_CODE(107039, aclmdlRIGetStreams(model, streams, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_NE(streams[0], stream_);
  EXPECT_EQ(streams[1], stream_);  // beyond the capacity
  count = 4;
  EXPECT_OK(aclmdlRIGetStreams(model, streams, &count));
  EXPECT_EQ(count, 2u);
  EXPECT_NE(streams[0], streams[1]);
  EXPECT_EQ(streams[2], nullptr);
  EXPECT_EQ(streams[3], nullptr);
}

TEST_F(ModelTasks, ENUM_02_COND_13_SubGraphsAreNotEnumerated) {
  Begin(stream_);
  aclmdlRI parent = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &parent));
  aclmdlRICondHandle handle = nullptr;
  aclmdlRI branch = nullptr;
  ASSERT_OK(aclmdlRICondHandleCreate(parent, 0, static_cast<aclmdlRICondHandleFlag>(0), &handle));
  ASSERT_OK(aclmdlRIAddCondTask({handle, ACL_MODEL_RI_COND_TYPE_IF, 1, &branch}, stream_, 0));
  ASSERT_OK(aclmdlRICaptureToModelRIBegin(other_, branch, kThreadLocal));
  ASSERT_OK(aclmdlRICaptureEnd(other_, nullptr));
  End(stream_);
  uint32_t count = 0;
  EXPECT_CODE(207000, aclmdlRIGetStreams(branch, nullptr, &count));
  EXPECT_CODE(207000, aclmdlRIUpdate(branch));
}

TEST_F(ModelTasks, ENUM_03_ENUM_04_HiddenStreamsAreGoodForTaskListsOnly) {
  Log log;
  Begin(stream_);
  Launch(stream_, log, "a");
  Launch(stream_, log, "b");
  aclmdlRI model = End(stream_);
  std::vector<aclrtStream> streams = StreamsOf(model);
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_NE(streams[0], stream_);
  EXPECT_CODE(107017, aclrtSynchronizeStream(streams[0]));
  uint32_t count = 0;
  EXPECT_CODE(107000, aclmdlRIGetTasksByStream(stream_, nullptr, &count));
  EXPECT_CODE(107000, aclmdlRIGetTasksByStream(nullptr, nullptr, &count));
  EXPECT_CODE(107000, aclmdlRIGetTasksByStream(streams[0], nullptr, nullptr));
  ASSERT_OK(aclmdlRIGetTasksByStream(streams[0], nullptr, &count));
  EXPECT_EQ(count, 2u);
  aclmdlRITask tasks[3] = {};
  count = 1;
  EXPECT_CODE(107039, aclmdlRIGetTasksByStream(streams[0], tasks, &count));
  EXPECT_EQ(count, 1u);
  count = 3;
  tasks[2] = stream_;
  EXPECT_OK(aclmdlRIGetTasksByStream(streams[0], tasks, &count));
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(tasks[2], nullptr);
  EXPECT_EQ(TasksOf(streams[0])[1], tasks[1]);  // handles stay
  ASSERT_OK(aclmdlRIDestroy(model));
  aclmdlRITaskType type;
  EXPECT_CODE(107017, aclmdlRITaskGetType(tasks[0], &type));
  EXPECT_CODE(107000, aclmdlRIGetTasksByStream(streams[0], nullptr, &count));
}

TEST_F(ModelTasks, ENUM_05_JOIN_06_InternalTasksAreListedAsDefault) {
  aclrtEvent fork = CreateEx();
  aclrtEvent join = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  ASSERT_OK(aclrtRecordEvent(join, other_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, join));
  aclmdlRI model = End(stream_);
  std::vector<aclrtStream> streams = StreamsOf(model);
  ASSERT_EQ(streams.size(), 2u);
  std::vector<aclmdlRITaskType> origin;
  for (aclmdlRITask task : TasksOf(streams[0])) origin.push_back(TypeOf(task));
  // The record of the fork, the wait for the join, and a reset for each of the two records.
  EXPECT_EQ(origin, (std::vector<aclmdlRITaskType>{
                        ACL_MODEL_RI_TASK_EVENT_RECORD, ACL_MODEL_RI_TASK_EVENT_WAIT,
                        ACL_MODEL_RI_TASK_DEFAULT, ACL_MODEL_RI_TASK_DEFAULT}));
  std::vector<aclmdlRITaskType> forked;
  for (aclmdlRITask task : TasksOf(streams[1])) forked.push_back(TypeOf(task));
  EXPECT_EQ(forked, (std::vector<aclmdlRITaskType>{ACL_MODEL_RI_TASK_EVENT_WAIT,
                                                   ACL_MODEL_RI_TASK_EVENT_RECORD}));
  aclmdlRITaskParams params;
  EXPECT_CODE(107000, aclmdlRITaskGetParams(TasksOf(streams[0])[3], &params));
}

TEST_F(ModelTasks, ENUM_05_CAP_04_ACascadeShowsItsStreamsAndLinks) {
  Begin(stream_);
  for (int i = 0; i < 2500; ++i) LaunchStore(stream_, Cell(0), i);
  aclmdlRI model = End(stream_);
  std::vector<aclrtStream> streams = StreamsOf(model);
  ASSERT_EQ(streams.size(), 2u);
  std::vector<aclmdlRITask> first = TasksOf(streams[0]);
  EXPECT_EQ(first.size(), 2048u);
  EXPECT_EQ(TypeOf(first.back()), ACL_MODEL_RI_TASK_DEFAULT);
  EXPECT_EQ(TasksOf(streams[1]).size(), 2500u - 2047u);
}

TEST_F(ModelTasks, ENUM_06_TypesOfAllKinds) {
  void* host = nullptr;
  ASSERT_OK(aclrtMallocHost(&host, 8));
  aclrtEvent external = nullptr;
  ASSERT_OK(aclrtCreateEventWithFlag(&external, ACL_EVENT_EXTERNAL));
  Begin(stream_);
  LaunchStore(stream_, Cell(0), 1);
  ASSERT_OK(aclrtRecordEvent(external, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, external));
  ASSERT_OK(aclrtResetEvent(external, stream_));
  ASSERT_OK(aclrtValueWrite(Cell(2), 1, 0, stream_));
  ASSERT_OK(aclrtValueWait(Cell(2), 1, ACL_STREAM_WAIT_VALUE_EQ, stream_));
  ASSERT_OK(aclrtMemcpyAsync(Cell(4), 8, host, 8, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  ASSERT_OK(aclrtLaunchHostFunc(
      stream_, [](void*) {}, nullptr));
  aclmdlRI model = End(stream_);
  std::vector<aclmdlRITaskType> types;
  for (aclmdlRITask task : AllTasks(model)) types.push_back(TypeOf(task));
  EXPECT_EQ(types, (std::vector<aclmdlRITaskType>{
                       ACL_MODEL_RI_TASK_KERNEL, ACL_MODEL_RI_TASK_EVENT_RECORD,
                       ACL_MODEL_RI_TASK_EVENT_WAIT, ACL_MODEL_RI_TASK_EVENT_RESET,
                       ACL_MODEL_RI_TASK_VALUE_WRITE, ACL_MODEL_RI_TASK_VALUE_WAIT,
                       ACL_MODEL_RI_TASK_DEFAULT, ACL_MODEL_RI_TASK_DEFAULT}));
  EXPECT_CODE(107000, aclmdlRITaskGetType(AllTasks(model)[0], nullptr));
  EXPECT_CODE(107000, aclmdlRITaskGetType(nullptr, types.data()));
  ASSERT_OK(aclrtFreeHost(host));
}

TEST_F(ModelTasks, ENUM_07_SequenceNumbersGrowInCaptureOrderOverAllStreams) {
  Log log;
  aclrtEvent fork = CreateEx();
  aclrtEvent join = CreateEx();
  Begin(stream_);
  Launch(stream_, log, "first");
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  Launch(other_, log, "second");
  Launch(stream_, log, "third");
  ASSERT_OK(aclrtRecordEvent(join, other_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, join));
  aclmdlRI model = End(stream_);
  std::vector<std::pair<uint32_t, std::string>> kernels;
  for (aclmdlRITask task : AllTasks(model)) {
    if (TypeOf(task) != ACL_MODEL_RI_TASK_KERNEL) continue;
    uint32_t id = 0;
    char name[64];
    ASSERT_OK(aclmdlRITaskGetSeqId(task, &id));
    ASSERT_OK(aclrtGetFunctionName(ParamsOf(task).kernelTaskParams.funcHandle, 64, name));
    kernels.emplace_back(id, name);
  }
  std::sort(kernels.begin(), kernels.end());
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].second, "kernel_first");
  EXPECT_EQ(kernels[1].second, "kernel_second");
  EXPECT_EQ(kernels[2].second, "kernel_third");
}

TEST_F(ModelTasks, ENUM_08_ParametersOfKernels) {
  aclrtTaskGrp group = nullptr;
  Begin(stream_);
  LaunchStore(stream_, Cell(3), 42);
  ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
  LaunchStore(stream_, Cell(4), 43);
  ASSERT_OK(aclmdlRICaptureTaskGrpEnd(stream_, &group));
  aclmdlRI model = End(stream_);
  std::vector<aclmdlRITask> tasks = AllTasks(model);
  aclmdlRITaskParams alone = ParamsOf(tasks[0]);
  aclmdlRITaskParams grouped = ParamsOf(tasks[1]);
  EXPECT_EQ(alone.type, ACL_MODEL_RI_TASK_KERNEL);
  EXPECT_EQ(alone.taskGrp, nullptr);
  EXPECT_EQ(grouped.taskGrp, group);
  const aclmdlRIKernelTaskParams& kernel = alone.kernelTaskParams;
  EXPECT_EQ(kernel.funcHandle, grouped.kernelTaskParams.funcHandle);  // the same function
  ASSERT_EQ(kernel.argsSize, sizeof(Store));
  Store store;
  std::memcpy(&store, kernel.args, sizeof(store));
  EXPECT_EQ(store.to, Cell(3));
  EXPECT_EQ(store.value, 42);
  EXPECT_EQ(kernel.numBlocks, 1u);
  ASSERT_NE(kernel.cfg, nullptr);
  EXPECT_EQ(kernel.cfg->numAttrs, 0u);
  char name[4];
  ASSERT_OK(aclrtGetFunctionName(kernel.funcHandle, sizeof(name), name));
  EXPECT_STREQ(name, "sto");
  EXPECT_CODE(107017, aclrtGetFunctionName(tasks[0], sizeof(name), name));
}

TEST_F(ModelTasks, ENUM_08_ParametersOfEventsAndValues) {
  aclrtEvent external = nullptr;
  aclrtEvent captured = CreateEx(ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
  aclrtEvent outside = CreateEx(ACL_EVENT_SYNC);
  ASSERT_OK(aclrtCreateEventWithFlag(&external, ACL_EVENT_EXTERNAL));
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(captured, stream_));
  ASSERT_OK(aclrtStreamWaitEventWithFlag(stream_, outside, 0, ACL_EVENT_WAIT_EXTERNAL));
  ASSERT_OK(aclrtResetEvent(external, stream_));
  ASSERT_OK(aclrtValueWrite(Cell(2), 7, 0, stream_));
  ASSERT_OK(aclrtValueWait(Cell(2), 5, ACL_STREAM_WAIT_VALUE_AND, stream_));
  std::vector<aclmdlRITask> tasks = AllTasks(End(stream_));
  aclmdlRITaskParams record = ParamsOf(tasks[0]);
  EXPECT_EQ(record.eventRecordTaskParams.event, captured);
  EXPECT_EQ(record.eventRecordTaskParams.eventFlag, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
  EXPECT_EQ(record.eventRecordTaskParams.recordFlag, ACL_EVENT_RECORD_DEFAULT);
  aclmdlRITaskParams wait = ParamsOf(tasks[1]);
  EXPECT_EQ(wait.eventWaitTaskParams.event, outside);
  EXPECT_EQ(wait.eventWaitTaskParams.waitFlag, ACL_EVENT_WAIT_EXTERNAL);
  aclmdlRITaskParams reset = ParamsOf(tasks[2]);
  EXPECT_EQ(reset.eventResetTaskParams.event, external);
  EXPECT_EQ(reset.eventResetTaskParams.eventFlag, ACL_EVENT_EXTERNAL);
  aclmdlRITaskParams write = ParamsOf(tasks[3]);
  EXPECT_EQ(write.valueWriteTaskParams.devAddr, Cell(2));
  EXPECT_EQ(write.valueWriteTaskParams.value, 7u);
  aclmdlRITaskParams value = ParamsOf(tasks[4]);
  EXPECT_EQ(value.valueWaitTaskParams.devAddr, Cell(2));
  EXPECT_EQ(value.valueWaitTaskParams.value, 5u);
  EXPECT_EQ(value.valueWaitTaskParams.flag, static_cast<uint32_t>(ACL_STREAM_WAIT_VALUE_AND));
}

TEST_F(ModelTasks, ENUM_09_ENUM_12_ENUM_14_ENUM_15_AKernelGetsNewArguments) {
  Begin(stream_);
  LaunchStore(stream_, Cell(0), 1);
  aclmdlRI model = End(stream_);
  aclmdlRITask task = AllTasks(model)[0];
  EXPECT_OK(aclmdlRIUpdate(model));  // nothing to do
  aclmdlRITaskParams params = ParamsOf(task);
  Store store{Cell(1), 2};
  params.kernelTaskParams.args = &store;
  params.kernelTaskParams.numBlocks = 8;
  ASSERT_OK(aclmdlRITaskSetParams(task, &params));
  store.value = 99;  // the block was copied
  EXPECT_CODE(507011, aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclmdlRIUpdate(model));
  Replay(model);
  EXPECT_EQ(Value(0), 0);
  EXPECT_EQ(Value(1), 2);
  EXPECT_EQ(ParamsOf(task).kernelTaskParams.numBlocks, 8u);
}

TEST_F(ModelTasks, ENUM_09_ValueTasksGetNewValues) {
  Begin(stream_);
  ASSERT_OK(aclrtValueWrite(Cell(0), 1, 0, stream_));
  ASSERT_OK(aclrtValueWait(Cell(0), 1, ACL_STREAM_WAIT_VALUE_EQ, stream_));
  aclmdlRI model = End(stream_);
  std::vector<aclmdlRITask> tasks = AllTasks(model);
  aclmdlRITaskParams write = ParamsOf(tasks[0]);
  write.valueWriteTaskParams.value = 6;
  aclmdlRITaskParams wait = ParamsOf(tasks[1]);
  wait.valueWaitTaskParams.value = 2;
  wait.valueWaitTaskParams.flag = ACL_STREAM_WAIT_VALUE_AND;
  ASSERT_OK(aclmdlRITaskSetParams(tasks[0], &write));
  ASSERT_OK(aclmdlRITaskSetParams(tasks[1], &wait));
  ASSERT_OK(aclmdlRIUpdate(model));
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_OK(aclrtSynchronizeStreamWithTimeout(stream_, 5000));
  EXPECT_EQ(Value(0), 6);
}

TEST_F(ModelTasks, ENUM_09_OpaqueArgumentsMoveBetweenKernelsOfOneFunction) {
  // Kernels of the operator library have arguments that only they can read.
  Log log;
  Begin(stream_);
  for (const char* letter : {"a", "b"}) {
    struct Bound {
      Log* log;
      std::string letter;
    };
    ASSERT_OK(SoftLaunchKernel(
        stream_, "append",
        [](void* bound) -> aclError {
          static_cast<Bound*>(bound)->log->Add(static_cast<Bound*>(bound)->letter);
          return 0;
        },
        [](void* bound) { delete static_cast<Bound*>(bound); }, new Bound{&log, letter}));
  }
  aclmdlRI model = End(stream_);
  // The two launches come from one place, so that both have the same function.
  std::vector<aclmdlRITask> tasks = AllTasks(model);
  aclmdlRITaskParams first = ParamsOf(tasks[0]);
  aclmdlRITaskParams second = ParamsOf(tasks[1]);
  ASSERT_EQ(first.kernelTaskParams.funcHandle, second.kernelTaskParams.funcHandle);
  ASSERT_EQ(first.kernelTaskParams.argsSize, sizeof(void*));
  ASSERT_OK(aclmdlRITaskSetParams(tasks[1], &first));
  ASSERT_OK(aclmdlRIUpdate(model));
  Replay(model);
  EXPECT_EQ(log.text(), "aa");
  ASSERT_OK(aclmdlRITaskSetParams(tasks[0], &second));  // the second task had it at first
  ASSERT_OK(aclmdlRIUpdate(model));
  Replay(model);
  EXPECT_EQ(log.text(), "aaba");
}

TEST_F(ModelTasks, ENUM_09_ARunningModelIsNotChanged) {
  Gate gate;
  Begin(stream_);
  LaunchStore(stream_, Cell(0), 1);
  Launch(stream_, gate);
  aclmdlRI model = End(stream_);
  aclmdlRITask task = AllTasks(model)[0];
  aclmdlRITaskParams params = ParamsOf(task);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_CODE(107040, aclmdlRITaskSetParams(task, &params));
  EXPECT_CODE(107040, aclmdlRITaskDisable(task));
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  while (aclmdlRITaskSetParams(task, &params) == 107040) std::this_thread::yield();
  ASSERT_OK(aclmdlRIUpdate(model));
}

TEST_F(ModelTasks, EXE_02_ENUM_10_ABadParameterPutsTheModelIntoFault) {
  struct Row {
    const char* what;
    void (*spoil)(aclmdlRITaskParams&);
  };
  constexpr Row kRows[] = {
      {"type 0", [](aclmdlRITaskParams& p) { p.type = ACL_MODEL_RI_TASK_DEFAULT; }},
      {"other type", [](aclmdlRITaskParams& p) { p.type = ACL_MODEL_RI_TASK_VALUE_WRITE; }},
      {"no block", [](aclmdlRITaskParams& p) { p.kernelTaskParams.args = nullptr; }},
      {"size 0", [](aclmdlRITaskParams& p) { p.kernelTaskParams.argsSize = 0; }},
      {"function", [](aclmdlRITaskParams& p) { p.kernelTaskParams.funcHandle = &p; }},
  };
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.what);
    Begin(stream_);
    LaunchStore(stream_, Cell(0), 1);
    aclmdlRI model = End(stream_);
    aclmdlRITask task = AllTasks(model)[0];
    aclmdlRITaskParams params = ParamsOf(task);
    row.spoil(params);
    EXPECT_CODE(107000, aclmdlRITaskSetParams(task, &params));
    EXPECT_CODE(507011, aclmdlRIExecuteAsync(model, stream_));
    aclmdlRITaskParams good = ParamsOf(task);
    EXPECT_CODE(107040, aclmdlRITaskSetParams(task, &good));
    EXPECT_CODE(107040, aclmdlRITaskDisable(task));
    EXPECT_CODE(107040, aclmdlRIUpdate(model));
    EXPECT_OK(aclmdlRIDestroy(model));
  }
}

TEST_F(ModelTasks, ENUM_10_EventTasksCannotBeSet) {
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(CreateEx(), stream_));
  aclmdlRI model = End(stream_);
  aclmdlRITask task = AllTasks(model)[0];
  aclmdlRITaskParams params = ParamsOf(task);
  EXPECT_CODE(107000, aclmdlRITaskSetParams(task, &params));
  EXPECT_CODE(507011, aclmdlRIExecuteAsync(model, stream_));
}

TEST_F(ModelTasks, ENUM_11_KernelsOfAGroupAreNotSetThisWay) {
  aclrtTaskGrp group = nullptr;
  Begin(stream_);
  ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
  LaunchStore(stream_, Cell(0), 1);
  ASSERT_OK(aclmdlRICaptureTaskGrpEnd(stream_, &group));
  aclmdlRI model = End(stream_);
  aclmdlRITask task = AllTasks(model)[0];
  aclmdlRITaskParams params = ParamsOf(task);
  EXPECT_CODE(107000, aclmdlRITaskSetParams(task, &params));
  Replay(model);  // no fault
  EXPECT_EQ(Value(0), 1);
}

TEST_F(ModelTasks, ENUM_13_ADisabledTaskIsSkipped) {
  Begin(stream_);
  LaunchStore(stream_, Cell(0), 1);
  LaunchStore(stream_, Cell(1), 1);
  ASSERT_OK(aclrtValueWait(Cell(8), 1, ACL_STREAM_WAIT_VALUE_EQ, stream_));
  aclmdlRI model = End(stream_);
  std::vector<aclmdlRITask> tasks = AllTasks(model);
  ASSERT_OK(aclmdlRITaskDisable(tasks[0]));
  ASSERT_OK(aclmdlRITaskDisable(tasks[2]));
  EXPECT_CODE(507011, aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclmdlRIUpdate(model));
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_OK(aclrtSynchronizeStreamWithTimeout(stream_, 5000));
  EXPECT_EQ(Value(0), 0);
  EXPECT_EQ(Value(1), 1);
}

TEST_F(ModelTasks, ENUM_13_ATaskOfTypeDefaultCannotBeDisabled) {
  Begin(stream_);
  ASSERT_OK(aclrtMemsetAsync(Cell(0), 4, 0, 4, stream_));
  aclmdlRI model = End(stream_);
  EXPECT_CODE(107000, aclmdlRITaskDisable(AllTasks(model)[0]));
  EXPECT_CODE(507011, aclmdlRIExecuteAsync(model, stream_));
}

TEST_F(ModelTasks, ENUM_14_UpdateIsForCapturedModels) {
  aclmdlRI built = nullptr;
  ASSERT_OK(aclmdlRIBuildBegin(&built, 0));
  EXPECT_CODE(107000, aclmdlRIUpdate(nullptr));
  EXPECT_CODE(207000, aclmdlRIUpdate(built));
  Begin(stream_);
  aclmdlRI captured = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, nullptr, &captured));
  EXPECT_CODE(107040, aclmdlRIUpdate(captured));
  End(stream_);
}

TEST_F(ModelTasks, ENUM_17_KernelAttributes) {
  Begin(stream_);
  LaunchStore(stream_, Cell(0), 1);
  ASSERT_OK(aclrtMemsetAsync(Cell(0), 4, 0, 4, stream_));
  aclmdlRI model = End(stream_);
  std::vector<aclmdlRITask> tasks = AllTasks(model);
  aclrtLaunchKernelAttrValue value;
  EXPECT_CODE(107000, aclmdlRIKernelTaskGetAttribute(tasks[1], ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE,
                                                     &value));
  for (auto unreadable :
       {ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE, ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET,
        ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH}) {
    EXPECT_CODE(107000, aclmdlRIKernelTaskGetAttribute(tasks[0], unreadable, &value));
  }
  ASSERT_OK(aclmdlRIKernelTaskGetAttribute(tasks[0], ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE, &value));
  EXPECT_EQ(value.schemMode, 0);
  aclrtLaunchKernelAttr attribute{};
  attribute.id = ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE;
  attribute.value.schemMode = 1;
  aclrtLaunchKernelCfg config{&attribute, 1};
  aclmdlRITaskParams params = ParamsOf(tasks[0]);
  params.kernelTaskParams.cfg = &config;
  ASSERT_OK(aclmdlRITaskSetParams(tasks[0], &params));
  ASSERT_OK(aclmdlRIUpdate(model));
  ASSERT_OK(aclmdlRIKernelTaskGetAttribute(tasks[0], ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE, &value));
  EXPECT_EQ(value.schemMode, 1);
}

}  // namespace
}  // namespace acltape::device
