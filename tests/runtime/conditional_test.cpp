// Conditional tasks and sub-graphs: rules COND-01 to COND-15, CAP-18 and CLI-05.
#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

constexpr auto kKeep = static_cast<aclmdlRICondHandleFlag>(0);
constexpr auto kAssign = ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT;
constexpr auto kIf = ACL_MODEL_RI_COND_TYPE_IF;
constexpr auto kWhile = ACL_MODEL_RI_COND_TYPE_WHILE;
constexpr auto kSwitch = ACL_MODEL_RI_COND_TYPE_SWITCH;

class Conditional : public SoftDevice {
 protected:
  void SetUp() override {
    SoftDevice::SetUp();
    ASSERT_OK(aclrtCreateStream(&third_));
  }

  aclmdlRI ModelOf(aclrtStream stream) {
    aclmdlRI model = nullptr;
    EXPECT_OK(aclmdlRICaptureGetInfo(stream, nullptr, &model));
    return model;
  }
  aclmdlRICondHandle CreateHandle(aclrtStream stream, uint32_t value = 0,
                                  aclmdlRICondHandleFlag flag = kKeep) {
    aclmdlRICondHandle handle = nullptr;
    EXPECT_OK(aclmdlRICondHandleCreate(ModelOf(stream), value, flag, &handle));
    return handle;
  }
  uint64_t* CellOf(aclmdlRICondHandle handle) {
    uint64_t* cell = nullptr;
    EXPECT_OK(aclmdlRICondHandleGetCondPtr(handle, &cell));
    return cell;
  }
  std::vector<aclmdlRI> AddTask(aclrtStream stream, aclmdlRICondHandle handle,
                                aclmdlRICondTaskType type, uint32_t size) {
    std::vector<aclmdlRI> sub_graphs(size);
    EXPECT_OK(aclmdlRIAddCondTask({handle, type, size, sub_graphs.data()}, stream, 0));
    return sub_graphs;
  }
  template <typename Body>
  void CaptureBranch(aclrtStream stream, aclmdlRI sub_graph, Body body) {
    ASSERT_OK(aclmdlRICaptureToModelRIBegin(stream, sub_graph, kThreadLocal));
    body();
    ASSERT_OK(aclmdlRICaptureEnd(stream, nullptr));
  }
  void CaptureBranch(aclrtStream stream, aclmdlRI sub_graph, Log& log, const char* letter) {
    CaptureBranch(stream, sub_graph, [&] { Launch(stream, log, letter); });
  }
  void Replay(aclmdlRI model) {
    ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
    ASSERT_OK(aclrtSynchronizeStream(stream_));
  }
  void Write(uint64_t* cell, uint64_t value) {
    ASSERT_OK(aclrtMemcpy(cell, 8, &value, 8, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  // A kernel that lowers the cell by one.
  void LaunchCountdown(aclrtStream stream, uint64_t* cell) {
    ASSERT_OK(SoftLaunchKernel(
        stream, "countdown",
        [](void* bound) -> aclError {
          --*static_cast<uint64_t*>(bound);
          return 0;
        },
        nullptr, cell));
  }

  aclrtStream third_ = nullptr;
};

TEST_F(Conditional, COND_01_HandlesBelongToModelsThatAreBeingCaptured) {
  aclmdlRICondHandle handle = nullptr;
  aclmdlRI built = nullptr;
  ASSERT_OK(aclmdlRIBuildBegin(&built, 0));
  EXPECT_CODE(100000, aclmdlRICondHandleCreate(nullptr, 0, kKeep, &handle));
  EXPECT_CODE(207000, aclmdlRICondHandleCreate(built, 0, kKeep, &handle));
  Begin(stream_);
  aclmdlRI model = ModelOf(stream_);
  EXPECT_CODE(107000,
              aclmdlRICondHandleCreate(model, 0, static_cast<aclmdlRICondHandleFlag>(2), &handle));
  EXPECT_CODE(100000, aclmdlRICondHandleCreate(model, 0, kKeep, nullptr));
  EXPECT_OK(aclmdlRICondHandleCreate(model, 0, kKeep, &handle));
  End(stream_);
  EXPECT_CODE(107000, aclmdlRICondHandleCreate(model, 0, kKeep, &handle));
}

TEST_F(Conditional, COND_02_TheCellIsDeviceMemoryThatLivesWithTheModel) {
  size_t before = 0;
  size_t during = 0;
  size_t after = 0;
  size_t total = 0;
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
  Begin(stream_, kRelaxed);
  aclmdlRICondHandle handle = CreateHandle(stream_, 5, kAssign);
  uint64_t* cell = CellOf(handle);
  uint64_t value = 77;
  ASSERT_OK(aclrtMemcpy(&value, 8, cell, 8, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(value, 0u);  // the default comes with a launch
  aclrtPtrAttributes attributes{};
  ASSERT_OK(aclrtPointerGetAttributes(cell, &attributes));
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &during, &total));
  EXPECT_LT(during, before);
  aclmdlRI model = End(stream_);
  EXPECT_EQ(CellOf(handle), cell);
  ASSERT_OK(aclmdlRIDestroy(model));
  EXPECT_CODE(107017, aclmdlRICondHandleGetCondPtr(handle, &cell));
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
  EXPECT_EQ(after, before);
}

TEST_F(Conditional, COND_03_COND_05_Flag1AssignsTheDefaultAtEachLaunch) {
  Log log;
  Begin(stream_);
  aclmdlRICondHandle assigned = CreateHandle(stream_, 1, kAssign);
  aclmdlRICondHandle lost = CreateHandle(stream_, 0, kAssign);
  aclmdlRI first = AddTask(stream_, assigned, kIf, 1)[0];
  aclmdlRI second = AddTask(stream_, lost, kIf, 1)[0];
  CaptureBranch(other_, first, [&] {
    Launch(other_, log, "a");
    ASSERT_OK(aclrtValueWrite(CellOf(assigned), 0, 0, other_));
  });
  CaptureBranch(other_, second, log, "never");
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 2; ++i) {
    Write(CellOf(lost), 1);  // overwritten by the launch
    Replay(model);
  }
  EXPECT_EQ(log.text(), "aa");
}

TEST_F(Conditional, COND_03_AlsoForCellsOfNestedSubGraphs) {
  Log log;
  Begin(stream_);
  aclmdlRI outer = AddTask(stream_, CreateHandle(stream_, 1, kAssign), kIf, 1)[0];
  uint64_t* cell = nullptr;
  CaptureBranch(other_, outer, [&] {
    aclmdlRICondHandle nested = CreateHandle(other_, 1, kAssign);
    cell = CellOf(nested);
    aclmdlRI inner = AddTask(other_, nested, kIf, 1)[0];
    CaptureBranch(third_, inner, log, "n");
  });
  aclmdlRI model = End(stream_);
  Write(cell, 0);
  Replay(model);
  EXPECT_EQ(log.text(), "n");
}

TEST_F(Conditional, COND_03_Flag0KeepsWhatWasWritten) {
  Log log;
  Begin(stream_);
  aclmdlRICondHandle handle = CreateHandle(stream_, 1, kKeep);
  std::vector<aclmdlRI> branches = AddTask(stream_, handle, kIf, 2);
  CaptureBranch(other_, branches[0], log, "t");
  CaptureBranch(other_, branches[1], log, "f");
  aclmdlRI model = End(stream_);
  Replay(model);
  Write(CellOf(handle), 3);
  Replay(model);
  Replay(model);
  EXPECT_EQ(log.text(), "ftt");
}

TEST_F(Conditional, COND_04_TheDefaultIsWrittenByTheLaunchCallItself) {
  Begin(stream_);
  aclmdlRICondHandle handle = CreateHandle(stream_, 9, kAssign);
  aclmdlRI model = End(stream_);
  Gate gate;
  Launch(stream_, gate);
  gate.WaitUntilEntered();
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));  // has not begun to run
  uint64_t value = 0;
  ASSERT_OK(aclrtMemcpy(&value, 8, CellOf(handle), 8, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(value, 9u);
}

TEST_F(Conditional, COND_06_COND_07_AddRefusals) {
  aclmdlRI subs[4] = {};
  Begin(other_);
  aclmdlRICondHandle foreign = CreateHandle(other_);
  EXPECT_CODE(107029, aclmdlRIAddCondTask({foreign, kIf, 1, subs}, stream_, 0));
  EXPECT_CODE(100000, aclmdlRIAddCondTask({foreign, kIf, 1, subs}, nullptr, 0));
  Begin(stream_);
  aclmdlRICondHandle handle = CreateHandle(stream_);
  EXPECT_CODE(107000, aclmdlRIAddCondTask({handle, kIf, 1, subs}, stream_, 1));
  EXPECT_CODE(107000, aclmdlRIAddCondTask({handle, static_cast<aclmdlRICondTaskType>(3), 1, subs},
                                          stream_, 0));
  EXPECT_CODE(107000, aclmdlRIAddCondTask({nullptr, kIf, 1, subs}, stream_, 0));
  EXPECT_CODE(107000, aclmdlRIAddCondTask({handle, kIf, 1, nullptr}, stream_, 0));
  EXPECT_CODE(107000, aclmdlRIAddCondTask({foreign, kIf, 1, subs}, stream_, 0));
  struct Row {
    aclmdlRICondTaskType type;
    uint32_t size;
  };
  for (const Row& row :
       {Row{kIf, 0}, Row{kIf, 3}, Row{kWhile, 0}, Row{kWhile, 2}, Row{kSwitch, 0}}) {
    EXPECT_CODE(107000, aclmdlRIAddCondTask({handle, row.type, row.size, subs}, stream_, 0))
        << row.type << " " << row.size;
  }
  EXPECT_EQ(Status(stream_), kActive);
  EXPECT_OK(aclmdlRIAddCondTask({handle, kSwitch, 3, subs}, stream_, 0));
  for (int i = 0; i < 3; ++i) EXPECT_NE(subs[i], nullptr);
  EXPECT_NE(subs[0], subs[1]);
  EXPECT_EQ(subs[3], nullptr);
  EXPECT_CODE(107000, aclmdlRIAddCondTask({handle, kIf, 1, subs}, stream_, 0));  // used
  End(stream_, 107045);
  End(other_);
}

TEST_F(Conditional, COND_08_If) {
  Log log;
  Begin(stream_);
  aclmdlRICondHandle one = CreateHandle(stream_);
  aclmdlRICondHandle two = CreateHandle(stream_);
  aclmdlRI single = AddTask(stream_, one, kIf, 1)[0];
  std::vector<aclmdlRI> both = AddTask(stream_, two, kIf, 2);
  CaptureBranch(other_, single, log, "s");
  CaptureBranch(other_, both[0], log, "t");
  CaptureBranch(other_, both[1], log, "f");
  aclmdlRI model = End(stream_);
  Replay(model);
  EXPECT_EQ(log.text(), "f");
  Write(CellOf(one), 1);
  Write(CellOf(two), 1);
  Replay(model);
  EXPECT_EQ(log.text(), "fst");
}

TEST_F(Conditional, COND_09_WhileTestsFirstAndAfterEachRound) {
  Log log;
  Begin(stream_);
  aclmdlRICondHandle handle = CreateHandle(stream_);
  uint64_t* cell = CellOf(handle);
  aclmdlRI body = AddTask(stream_, handle, kWhile, 1)[0];
  CaptureBranch(other_, body, [&] {
    Launch(other_, log, "r");
    LaunchCountdown(other_, cell);
  });
  aclmdlRI model = End(stream_);
  Replay(model);
  EXPECT_EQ(log.text(), "");
  Write(cell, 4);
  Replay(model);
  EXPECT_EQ(log.text(), "rrrr");
}

TEST_F(Conditional, COND_09_SwitchRunsTheIndexedSubGraph) {
  Log log;
  Begin(stream_);
  aclmdlRICondHandle handle = CreateHandle(stream_);
  std::vector<aclmdlRI> cases = AddTask(stream_, handle, kSwitch, 3);
  for (size_t i = 0; i < 3; ++i) {
    CaptureBranch(other_, cases[i], log, std::string(1, static_cast<char>('0' + i)).c_str());
  }
  aclmdlRI model = End(stream_);
  for (uint64_t value : {uint64_t{2}, uint64_t{0}, uint64_t{3}, uint64_t{1}, UINT64_MAX}) {
    Write(CellOf(handle), value);
    Replay(model);
  }
  EXPECT_EQ(log.text(), "201");
}

TEST_F(Conditional, COND_10_CapturingIntoASubGraph) {
  Log log;
  Begin(stream_);
  aclmdlRI parent = ModelOf(stream_);
  aclmdlRI branch = AddTask(stream_, CreateHandle(stream_), kIf, 1)[0];
  EXPECT_CODE(100000, aclmdlRICaptureToModelRIBegin(nullptr, branch, kThreadLocal));
  EXPECT_CODE(100000, aclmdlRICaptureToModelRIBegin(other_, nullptr, kThreadLocal));
  EXPECT_CODE(107000,
              aclmdlRICaptureToModelRIBegin(other_, branch, static_cast<aclmdlRICaptureMode>(3)));
  EXPECT_CODE(107000, aclmdlRICaptureToModelRIBegin(other_, parent, kThreadLocal));
  EXPECT_CODE(107027, aclmdlRICaptureToModelRIBegin(stream_, branch, kThreadLocal));  // COND-12
  ASSERT_OK(aclmdlRICaptureToModelRIBegin(other_, branch, kThreadLocal));
  EXPECT_EQ(ModelOf(other_), branch);
  EXPECT_CODE(107026, aclmdlRICaptureToModelRIBegin(third_, branch, kThreadLocal));
  aclmdlRI same = branch;
  EXPECT_OK(aclmdlRICaptureEnd(other_, &same));
  EXPECT_EQ(same, branch);
  EXPECT_CODE(107026, aclmdlRICaptureToModelRIBegin(other_, branch, kThreadLocal));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(Conditional, CAP_12_OnlySubGraphsEndWithoutAnOutput) {
  Begin(stream_);
  EXPECT_CODE(107000, aclmdlRICaptureEnd(stream_, nullptr));
  aclmdlRI branch = AddTask(stream_, CreateHandle(stream_), kIf, 1)[0];
  ASSERT_OK(aclmdlRICaptureToModelRIBegin(other_, branch, kThreadLocal));
  EXPECT_OK(aclmdlRICaptureEnd(other_, nullptr));
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(Conditional, CAP_18_COND_11_TheParentNeedsAllItsSubGraphs) {
  Log log;
  for (bool begun : {false, true}) {
    Begin(stream_);
    std::vector<aclmdlRI> branches = AddTask(stream_, CreateHandle(stream_), kIf, 2);
    CaptureBranch(other_, branches[0], log, "t");
    if (begun) {
      ASSERT_OK(aclmdlRICaptureToModelRIBegin(other_, branches[1], kThreadLocal));
    }
    End(stream_, 107045);
    EXPECT_EQ(Status(stream_), kNone);
    EXPECT_EQ(Status(other_), kNone);  // its capture is discarded with the parent
    EXPECT_CODE(107017, aclmdlRICaptureToModelRIBegin(other_, branches[1], kThreadLocal));
  }
}

TEST_F(Conditional, COND_10_AFailedCaptureOfASubGraphCanBeRepeated) {
  Log log;
  Begin(stream_);
  aclmdlRI branch = AddTask(stream_, CreateHandle(stream_, 1, kAssign), kIf, 1)[0];
  ASSERT_OK(aclmdlRICaptureToModelRIBegin(other_, branch, kThreadLocal));
  Launch(other_, log, "lost");
  aclrtEvent fork = CreateEx();
  ASSERT_OK(aclrtRecordEvent(fork, other_));
  ASSERT_OK(aclrtStreamWaitEvent(third_, fork));
  EXPECT_CODE(107025, aclmdlRICaptureEnd(other_, nullptr));
  CaptureBranch(other_, branch, log, "b");
  Replay(End(stream_));
  EXPECT_EQ(log.text(), "b");
}

TEST_F(Conditional, COND_12_OneStreamCapturesSeveralSubGraphsAndMayForkInThem) {
  Log log;
  Begin(stream_);
  std::vector<aclmdlRI> cases = AddTask(stream_, CreateHandle(stream_, 1, kAssign), kSwitch, 2);
  CaptureBranch(other_, cases[0], log, "0");
  CaptureBranch(other_, cases[1], [&] {
    aclrtEvent fork = CreateEx();
    aclrtEvent join = CreateEx();
    ASSERT_OK(aclrtRecordEvent(fork, other_));
    ASSERT_OK(aclrtStreamWaitEvent(third_, fork));
    Launch(third_, log, "x");
    ASSERT_OK(aclrtRecordEvent(join, third_));
    ASSERT_OK(aclrtStreamWaitEvent(other_, join));
    Launch(other_, log, "y");
  });
  aclmdlRI model = End(stream_);
  Replay(model);
  EXPECT_EQ(log.text(), "xy");
}

TEST_F(Conditional, COND_13_SubGraphsStandNotOnTheirOwn) {
  Log log;
  Begin(stream_);
  aclmdlRI branch = AddTask(stream_, CreateHandle(stream_), kIf, 1)[0];
  CaptureBranch(other_, branch, log, "b");
  aclmdlRI model = End(stream_);
  auto callback = [](void*) {};
  EXPECT_CODE(207000, aclmdlRIExecuteAsync(branch, stream_));
  EXPECT_CODE(207000, aclmdlRIDestroy(branch));
  EXPECT_CODE(207000, aclmdlRIDestroyRegisterCallback(branch, callback, nullptr));
  EXPECT_CODE(207000, aclmdlRIDestroyUnregisterCallback(branch, callback));
  ASSERT_OK(aclmdlRIDestroy(model));
  EXPECT_CODE(107017, aclmdlRIExecuteAsync(branch, stream_));  // it went with its parent
}

TEST_F(Conditional, COND_13_NestedLoops) {
  Log log;
  Begin(stream_);
  aclmdlRICondHandle outer = CreateHandle(stream_, 3, kAssign);
  aclmdlRI body = AddTask(stream_, outer, kWhile, 1)[0];
  CaptureBranch(other_, body, [&] {
    Launch(other_, log, "o");
    aclmdlRICondHandle inner = CreateHandle(other_);
    ASSERT_OK(aclrtValueWrite(CellOf(inner), 2, 0, other_));
    aclmdlRI inner_body = AddTask(other_, inner, kWhile, 1)[0];
    CaptureBranch(third_, inner_body, [&] {
      Launch(third_, log, "i");
      LaunchCountdown(third_, CellOf(inner));
    });
    LaunchCountdown(other_, CellOf(outer));
  });
  aclmdlRI model = End(stream_);
  Replay(model);
  Replay(model);
  EXPECT_EQ(log.text(), "oiioiioiioiioiioii");
}

TEST_F(Conditional, COND_14_LaterTasksWaitForTheLoop) {
  Log log;
  Begin(stream_);
  Launch(stream_, log, "<");
  aclmdlRICondHandle handle = CreateHandle(stream_, 3, kAssign);
  aclmdlRI body = AddTask(stream_, handle, kWhile, 1)[0];
  Launch(stream_, log, ">");
  CaptureBranch(other_, body, [&] {
    Launch(other_, log, "r");
    LaunchCountdown(other_, CellOf(handle));
  });
  aclmdlRI model = End(stream_);
  Replay(model);
  Replay(model);
  EXPECT_EQ(log.text(), "<rrr><rrr>");
}

TEST_F(Conditional, COND_14_OtherStreamsOfTheGraphGoOnDuringTheLoop) {
  // The body waits for a value that another stream of the parent writes.
  void* value = nullptr;
  ASSERT_OK(aclrtMalloc(&value, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMemset(value, 64, 0, 64));
  Log log;
  aclrtEvent fork = CreateEx();
  aclrtEvent join = CreateEx();
  Begin(stream_);
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  aclmdlRI branch = AddTask(stream_, CreateHandle(stream_, 1, kAssign), kIf, 1)[0];
  CaptureBranch(third_, branch, [&] {
    ASSERT_OK(aclrtValueWait(value, 1, ACL_STREAM_WAIT_VALUE_EQ, third_));
    Launch(third_, log, "b");
    ASSERT_OK(aclrtValueWrite(value, 0, 0, third_));
  });
  Launch(other_, log, "a");
  ASSERT_OK(aclrtValueWrite(value, 1, 0, other_));
  ASSERT_OK(aclrtRecordEvent(join, other_));
  ASSERT_OK(aclrtStreamWaitEvent(stream_, join));
  Launch(stream_, log, "c");
  aclmdlRI model = End(stream_);
  for (int i = 0; i < 3; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_OK(aclrtSynchronizeStreamWithTimeout(stream_, 5000));
  EXPECT_EQ(log.text(), "abcabcabc");
  ASSERT_OK(aclrtFree(value));
}

TEST_F(Conditional, COND_15_ABranchMayChangeTheOuterConditionByACopy) {
  void* zero = nullptr;
  ASSERT_OK(aclrtMalloc(&zero, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMemset(zero, 64, 0, 64));
  Log log;
  Begin(stream_);
  aclmdlRICondHandle loop = CreateHandle(stream_, 1, kAssign);
  aclmdlRI body = AddTask(stream_, loop, kWhile, 1)[0];
  CaptureBranch(other_, body, [&] {
    Launch(other_, log, "r");
    aclmdlRI stop = AddTask(other_, CreateHandle(other_, 1, kAssign), kIf, 1)[0];
    CaptureBranch(third_, stop, [&] {
      ASSERT_OK(aclrtMemcpyAsync(CellOf(loop), 8, zero, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, third_));
    });
  });
  Replay(End(stream_));
  EXPECT_EQ(log.text(), "r");
  ASSERT_OK(aclrtFree(zero));
}

// Captures a conditional branch the way a framework does: the cell is cleared, and one byte of it
// is copied from a bool tensor. The branch is captured on a fresh stream, in the mode of the
// parent.
TEST_F(Conditional, CLI_05_TheBranchOfAFramework) {
  void* predicate = nullptr;
  ASSERT_OK(aclrtMalloc(&predicate, 1, ACL_MEM_MALLOC_HUGE_FIRST));
  Log log;
  Begin(stream_, kGlobal);
  aclmdlRICondHandle handle = CreateHandle(stream_, 0, kAssign);
  uint64_t* cell = CellOf(handle);
  ASSERT_OK(aclrtMemsetAsync(cell, 8, 0, 8, stream_));
  ASSERT_OK(aclrtMemcpyAsync(cell, 1, predicate, 1, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_));
  aclmdlRI branch = AddTask(stream_, handle, kIf, 1)[0];
  ASSERT_OK(aclmdlRICaptureToModelRIBegin(other_, branch, kGlobal));
  Launch(other_, log, "b");
  aclmdlRI same = branch;
  ASSERT_OK(aclmdlRICaptureEnd(other_, &same));
  aclmdlRI model = End(stream_);
  for (uint8_t value : {1, 0, 1}) {
    ASSERT_OK(aclrtMemcpy(predicate, 1, &value, 1, ACL_MEMCPY_HOST_TO_DEVICE));
    Replay(model);
    log.Add(value != 0 ? "+" : "-");
  }
  EXPECT_EQ(log.text(), "b+-b+");
  ASSERT_OK(aclrtFree(predicate));
}

TEST_F(Conditional, ERR_06_AFailureInABranchNamesTheKernel) {
  Log log;
  Begin(stream_);
  aclmdlRI branch = AddTask(stream_, CreateHandle(stream_, 1, kAssign), kIf, 1)[0];
  CaptureBranch(other_, branch, [&] { Launch(other_, log, "bad", 507015); });
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 507011);
  std::string message = aclGetRecentErrMsg();
  EXPECT_NE(message.find("kernel_bad"), std::string::npos) << message;
}

}  // namespace
}  // namespace acltape::device
