// Running out of streams, events, notifies, models and memory, and several devices: rules STR-05,
// EVT-17, NTF-04, LIM-01, LIM-02, DEV-14, CPY-12.
#include <cstdlib>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

// Read at the first call into the library.
const bool kEnvironmentIsSet = [] {
  setenv("ACLTAPE_SOFT_DEVICES", "2", 1);
  setenv("ACLTAPE_SOFT_STREAMS", "6", 1);
  setenv("ACLTAPE_SOFT_EVENTS", "3", 1);
  setenv("ACLTAPE_SOFT_NOTIFIES", "2", 1);
  setenv("ACLTAPE_SOFT_MODELS", "2", 1);
  setenv("ACLTAPE_SOFT_UPDATES", "3", 1);
  setenv("ACLTAPE_SOFT_QUEUES", "2", 1);
  setenv("ACLTAPE_SOFT_MEMORY", "1M", 1);
  setenv("ACLTAPE_SOFT_POISON", "1", 1);
  return true;
}();

using Limits = SoftDevice;

TEST_F(Limits, STR_05_STR_06_StreamExhaustionGives207008ToCallsThatCreateOne) {
  // The limit is six streams. The default stream and the two of the fixture are taken.
  aclrtStream streams[4] = {};
  for (int i = 0; i < 3; ++i) ASSERT_OK(aclrtCreateStream(&streams[i]));
  EXPECT_EQ(aclrtCreateStream(&streams[3]), 207008);
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("all 6 streams"), std::string::npos);
  ASSERT_OK(aclrtDestroyStream(streams[0]));
  EXPECT_OK(aclrtCreateStream(&streams[3]));
}

TEST_F(Limits, STR_06_LIM_01_CapturesTakeStreamNumbersUntilTheModelIsDestroyedAndGive207005) {
  aclrtStream extra = nullptr;
  ASSERT_OK(aclrtCreateStream(&extra));
  Begin(stream_);
  aclrtEvent fork = CreateEx();
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));  // the sixth number
  EXPECT_CODE(207005, aclrtStreamWaitEvent(extra, fork));
  EXPECT_EQ(Status(stream_), kInvalidated);
  End(stream_, 507903);
  Begin(stream_);
  aclmdlRI model = End(stream_);
  aclrtStream last = nullptr;
  aclrtStream more = nullptr;
  ASSERT_OK(aclrtCreateStream(&last));
  EXPECT_CODE(207008, aclrtCreateStream(&more));
  ASSERT_OK(aclmdlRIDestroy(model));
  EXPECT_OK(aclrtCreateStream(&more));
}

TEST_F(Limits, LIM_01_ExhaustionInACascadeInvalidatesTheCapture) {
  aclrtStream rest[2] = {};
  for (aclrtStream& stream : rest) ASSERT_OK(aclrtCreateStream(&stream));
  Begin(stream_);  // takes the last number
  auto nothing = [](void*) -> aclError { return 0; };
  aclError code = 0;
  int stored = 0;
  while (code == 0 && stored < 5000) {
    code = SoftLaunchKernel(stream_, "k", nothing, nullptr, nullptr);
    if (code == 0) ++stored;
  }
  EXPECT_EQ(code, 207005);
  EXPECT_EQ(stored, 2047);
  EXPECT_EQ(Status(stream_), kInvalidated);
  EXPECT_OK(SoftLaunchKernel(stream_, "k", nothing, nullptr, nullptr));  // CAP-60
  End(stream_, 507903);
}

TEST_F(Limits, CAP_19_AFullCaptureThatCannotBeClosedGives207005) {
  aclrtStream rest[2] = {};
  for (aclrtStream& stream : rest) ASSERT_OK(aclrtCreateStream(&stream));
  Begin(stream_);  // takes the last number
  auto nothing = [](void*) -> aclError { return 0; };
  for (int i = 0; i < 2046; ++i) {
    ASSERT_OK(SoftLaunchKernel(stream_, "k", nothing, nullptr, nullptr));
  }
  // The record is the last task with a place; its reset needs another hidden stream.
  ASSERT_OK(aclrtRecordEvent(CreateEx(), stream_));
  End(stream_, 207005);
  EXPECT_EQ(Status(stream_), kNone);
  Begin(stream_);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(Limits, LIM_02_ModelExhaustionGives207010) {
  Begin(stream_);
  aclmdlRI first = End(stream_);
  Begin(stream_);
  End(stream_);
  EXPECT_CODE(207010, aclmdlRICaptureBegin(stream_, kGlobal));
  EXPECT_EQ(Status(stream_), kNone);
  ASSERT_OK(aclmdlRIDestroy(first));
  Begin(stream_);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(Limits, EVT_17_EVT_21_EventExhaustion) {
  aclrtEvent flagged[3] = {};
  aclrtEvent plain = nullptr;
  aclrtEvent more = nullptr;
  uint32_t available = 0;
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(aclrtCreateEventWithFlag(&flagged[i], ACL_EVENT_SYNC));
  }
  ASSERT_OK(aclrtCreateEvent(&plain));  // takes its number at the first record
  ASSERT_OK(aclrtGetEventAvailNum(&available));
  EXPECT_EQ(available, 1u);
  ASSERT_OK(aclrtCreateEventWithFlag(&flagged[2], ACL_EVENT_SYNC));
  EXPECT_CODE(207007, aclrtCreateEventWithFlag(&more, ACL_EVENT_SYNC));
  EXPECT_CODE(207007, aclrtRecordEvent(plain, stream_));
  ASSERT_OK(aclrtDestroyEvent(flagged[0]));
  EXPECT_OK(aclrtRecordEvent(plain, stream_));
  for (int i = 0; i < 10; ++i) {
    EXPECT_OK(aclrtRecordEvent(CreateEx(), stream_));  // Ex events are not counted
  }
}

TEST_F(Limits, EXE_10_AModelThatNeedsMoreQueuesThanTheDeviceHas) {
  // The device has two.
  aclrtStream third = nullptr;
  ASSERT_OK(aclrtSetDevice(1));  // six stream numbers of its own, of which one is taken
  aclrtStream origin = nullptr;
  ASSERT_OK(aclrtCreateStream(&origin));
  ASSERT_OK(aclrtCreateStream(&third));
  Begin(origin);
  auto nothing = [](void*) -> aclError { return 0; };
  // One stream that goes on in two more: three hidden streams.
  for (int i = 0; i < 3 * 2047; ++i) {
    ASSERT_OK(SoftLaunchKernel(origin, "k", nothing, nullptr, nullptr));
  }
  aclmdlRI model = End(origin);
  EXPECT_CODE(207005, aclmdlRIExecuteAsync(model, third));
  EXPECT_NE(std::string(aclGetRecentErrMsg()).find("3 hardware queues"), std::string::npos);
  EXPECT_OK(aclmdlRIDestroy(model));  // nothing is left of the launch
  ASSERT_OK(aclrtResetDevice(1));
}

TEST_F(Limits, EXE_09_QueuesAreTakenFromIdleModelsAndWaitedForOtherwise) {
  // Two queues, two models, of which each needs both.
  Gate gate;
  auto nothing = [](void*) -> aclError { return 0; };
  auto capture = [&](Gate* first) {
    Begin(stream_);
    if (first != nullptr) Launch(stream_, *first);
    for (int i = 0; i < 2100; ++i) {
      EXPECT_OK(SoftLaunchKernel(stream_, "k", nothing, nullptr, nullptr));
    }
    return End(stream_);
  };
  aclmdlRI gated = capture(&gate);
  ASSERT_OK(aclmdlRIExecuteAsync(gated, stream_));
  gate.WaitUntilEntered();
  // All stream numbers are taken now: of six, three by streams, two by the first model.
  aclmdlRI second = nullptr;
  Begin(other_);
  second = End(other_);
  std::atomic<bool> launched{false};
  std::thread launching([&] {
    ASSERT_OK(aclrtSetDevice(0));
    ASSERT_OK(aclmdlRIExecuteAsync(second, other_));
    launched = true;
    ASSERT_OK(aclrtResetDevice(0));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(launched);  // the call waits
  gate.Open();
  launching.join();
  EXPECT_TRUE(launched);
  EXPECT_OK(aclrtSynchronizeDevice());
  for (int i = 0; i < 20; ++i) {  // they take the queues from each other
    ASSERT_OK(aclmdlRIExecuteAsync(i % 2 == 0 ? gated : second, i % 2 == 0 ? stream_ : other_));
  }
  EXPECT_OK(aclrtSynchronizeDevice());
}

TEST_F(Limits, UPD_08_LIM_04_UpdatesBeyondTheLimitFailWhenTheyRun) {
  static std::atomic<int> runs;
  runs = 0;
  auto count = [](void*) -> aclError {
    ++runs;
    return 0;
  };
  aclrtTaskGrp group = nullptr;
  Begin(stream_);
  ASSERT_OK(aclmdlRICaptureTaskGrpBegin(stream_));
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(SoftLaunchKernel(
        stream_, "old", [](void*) -> aclError { return 0; }, nullptr, nullptr));
  }
  ASSERT_OK(aclmdlRICaptureTaskGrpEnd(stream_, &group));
  aclmdlRI model = End(stream_);
  Gate gate;
  Launch(other_, gate);  // all updates are pending
  ASSERT_OK(aclmdlRICaptureTaskUpdateBegin(other_, group));
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK(SoftLaunchKernel(other_, "new", count, nullptr, nullptr));
  }
  ASSERT_OK(aclmdlRICaptureTaskUpdateEnd(other_));
  gate.Open();
  EXPECT_CODE(207005, aclrtSynchronizeStream(other_));
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(runs, 3);  // only three of four changes may be pending
}

TEST_F(Limits, NTF_04_NotifyExhaustionGives207009) {
  aclrtNotify notify = nullptr;
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  EXPECT_CODE(207009, aclrtCreateNotify(&notify, 0));
}

TEST_F(Limits, MEM_01_MemoryExhaustionGives207001) {
  void* most = nullptr;
  void* more = nullptr;
  ASSERT_OK(aclrtMallocAlign32(&most, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_CODE(207001, aclrtMalloc(&more, 1, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_EQ(more, nullptr);
  ASSERT_OK(aclrtFree(most));
  EXPECT_OK(aclrtMalloc(&more, 1, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_OK(aclrtFree(more));
}

TEST_F(Limits, PoisonedMemoryReadsAsNaN) {
  void* memory = nullptr;
  float value = 0;
  ASSERT_OK(aclrtMalloc(&memory, 4, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMemcpy(&value, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_NE(value, value);
  ASSERT_OK(aclrtFree(memory));
}

TEST_F(Limits, DEV_14_PeerAccessIsPerDirection) {
  int32_t value = -1;
  ASSERT_OK(aclrtDeviceCanAccessPeer(&value, 0, 1));
  EXPECT_EQ(value, 1);
  EXPECT_CODE(100000, aclrtDeviceCanAccessPeer(&value, 0, 0));
  EXPECT_CODE(107001, aclrtDeviceCanAccessPeer(&value, 0, 2));
  ASSERT_OK(aclrtDeviceEnablePeerAccess(1, 0));
  ASSERT_OK(aclrtDevicePeerAccessStatus(0, 1, &value));
  EXPECT_EQ(value, 1);
  ASSERT_OK(aclrtDevicePeerAccessStatus(1, 0, &value));
  EXPECT_EQ(value, 0);
  ASSERT_OK(aclrtDeviceDisablePeerAccess(1));
  ASSERT_OK(aclrtDevicePeerAccessStatus(0, 1, &value));
  EXPECT_EQ(value, 0);
  EXPECT_CODE(100000, aclrtDeviceEnablePeerAccess(0, 0));
  EXPECT_CODE(200006, aclrtDeviceEnablePeerAccess(1, 1));
  EXPECT_CODE(100000, aclrtDeviceDisablePeerAccess(0));
}

TEST_F(Limits, DEV_20_MappingMemoryForAPeerNeedsItsAccess) {
  void* memory = nullptr;
  ASSERT_OK(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST));  // memory of device 0
  EXPECT_OK(aclrtMemP2PMap(memory, 4096, 0, 0)) << "its own";
  EXPECT_CODE(107000, aclrtMemP2PMap(memory, 4096, 1, 0));
  ASSERT_OK(aclrtSetDevice(1));
  ASSERT_OK(aclrtDeviceEnablePeerAccess(0, 0));
  EXPECT_OK(aclrtMemP2PMap(memory, 4096, 1, 0));
  EXPECT_CODE(107000, aclrtMemP2PMap(memory, 4097, 1, 0)) << "longer than the block";
  EXPECT_CODE(100000, aclrtMemP2PMap(nullptr, 4096, 1, 0));
  EXPECT_CODE(100000, aclrtMemP2PMap(memory, 0, 1, 0));
  EXPECT_CODE(100000, aclrtMemP2PMap(memory, 4096, 1, 1));
  EXPECT_CODE(107001, aclrtMemP2PMap(memory, 4096, 2, 0));
  int mine = 0;
  EXPECT_CODE(107000, aclrtMemP2PMap(&mine, 4, 1, 0));
  ASSERT_OK(aclrtDeviceDisablePeerAccess(0));
  ASSERT_OK(aclrtResetDevice(1));
  ASSERT_OK(aclrtSetDevice(0));
  ASSERT_OK(aclrtFree(memory));
}

TEST_F(Limits, CTX_03_SettingAContextChangesTheDevice) {
  aclrtContext of_first = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&of_first));
  ASSERT_OK(aclrtSetDevice(1));
  int32_t device = -1;
  ASSERT_OK(aclrtGetDevice(&device));
  EXPECT_EQ(device, 1);
  EXPECT_CODE(107003, aclrtRecordEvent(CreateEx(), stream_));  // a stream of device 0
  ASSERT_OK(aclrtSetCurrentContext(of_first));
  ASSERT_OK(aclrtGetDevice(&device));
  EXPECT_EQ(device, 0);
  ASSERT_OK(aclrtResetDevice(1));
}

TEST_F(Limits, GEN_11_LIM_02_EveryExhaustionHasItsCodeAndPasses) {
  // Takes all of a resource, finds the next one refused, gives one back, and gets one again.
  auto exhaust = [](aclError code, auto create, auto destroy) {
    std::vector<void*> taken;
    void* object = nullptr;
    aclError result = 0;
    while (taken.size() < 100 && (result = create(&object)) == 0) taken.push_back(object);
    EXPECT_EQ(result, code);
    ASSERT_FALSE(taken.empty());
    const char* message = aclGetRecentErrMsg();
    ASSERT_NE(message, nullptr);
    EXPECT_NE(std::string(message).find(std::to_string(code)), std::string::npos) << message;
    EXPECT_OK(destroy(taken.back()));
    EXPECT_OK(create(&taken.back()));
    for (void* each : taken) EXPECT_OK(destroy(each));
  };
  exhaust(207008, aclrtCreateStream, aclrtDestroyStream);
  exhaust(
      207007, [](void** event) { return aclrtCreateEventWithFlag(event, ACL_EVENT_SYNC); },
      aclrtDestroyEvent);
  exhaust(
      207009, [](void** notify) { return aclrtCreateNotify(notify, 0); }, aclrtDestroyNotify);
  exhaust(
      207001,
      [](void** memory) { return aclrtMalloc(memory, 100 << 10, ACL_MEM_MALLOC_HUGE_FIRST); },
      aclrtFree);
  exhaust(
      207010,
      [this](void** model) {
        aclError code = aclmdlRICaptureBegin(stream_, kGlobal);
        return code != 0 ? code : aclmdlRICaptureEnd(stream_, model);
      },
      aclmdlRIDestroy);
  Log log;
  Launch(stream_, log, "a");
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(Limits, MEM_01_AProgramGoesOnAfterAFailedAllocation) {
  void* large = nullptr;
  void* more = nullptr;
  Log log;
  ASSERT_OK(aclrtMalloc(&large, 600 << 10, ACL_MEM_MALLOC_HUGE_FIRST));
  Launch(stream_, log, "a");
  EXPECT_CODE(207001, aclrtMalloc(&more, 600 << 10, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 207001);
  size_t free_bytes = 0;
  size_t total = 0;
  ASSERT_OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
  EXPECT_EQ(total, size_t{1} << 20);
  EXPECT_LT(free_bytes, size_t{500} << 10);
  ASSERT_OK(aclrtSynchronizeStream(stream_));  // the failure belongs to no stream
  ASSERT_OK(aclrtFree(large));
  EXPECT_OK(aclrtMalloc(&more, 600 << 10, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtFree(more));
  EXPECT_EQ(log.text(), "a");
}

TEST_F(Limits, STR_05_AProgramGoesOnAfterAStreamWasRefused) {
  Log log;
  std::vector<aclrtStream> streams;
  aclrtStream created = nullptr;
  while (aclrtCreateStream(&created) == 0) streams.push_back(created);
  EXPECT_EQ(streams.size(), 3u);
  for (aclrtStream stream : streams) Launch(stream, log, "x");
  uint32_t available = 99;
  ASSERT_OK(aclrtGetStreamAvailableNum(&available));
  EXPECT_EQ(available, 0u);
  EXPECT_CODE(207005, aclmdlRICaptureBegin(stream_, kGlobal));  // a hidden stream is one too
  EXPECT_EQ(Status(stream_), kNone);
  for (aclrtStream stream : streams) ASSERT_OK(aclrtDestroyStream(stream));
  EXPECT_EQ(log.text(), "xxx");
  Begin(stream_);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(Limits, CPY_12_CopiesBetweenDevicesNeedPeerAccess) {
  void* here = nullptr;
  void* there = nullptr;
  int32_t value = 6;
  aclrtContext first = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&first));
  ASSERT_OK(aclrtMalloc(&here, 4, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtMemcpy(here, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
  ASSERT_OK(aclrtSetDevice(1));
  ASSERT_OK(aclrtMalloc(&there, 4, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_OK(aclrtSetCurrentContext(first));
  EXPECT_CODE(107000, aclrtMemcpy(there, 4, here, 4, ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_CODE(107000, aclrtMemcpyAsync(there, 4, here, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_));
  ASSERT_OK(aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_OK(aclrtMemcpyAsync(there, 4, here, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  ASSERT_OK(aclrtSetDevice(1));  // the other direction is another access
  EXPECT_CODE(107000, aclrtMemcpy(here, 4, there, 4, ACL_MEMCPY_DEVICE_TO_DEVICE));
  value = 0;
  ASSERT_OK(aclrtMemcpy(&value, 4, there, 4, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(value, 6);
  ASSERT_OK(aclrtFree(there));
  ASSERT_OK(aclrtSetCurrentContext(first));
  ASSERT_OK(aclrtDeviceDisablePeerAccess(1));
  ASSERT_OK(aclrtFree(here));
  ASSERT_OK(aclrtResetDevice(1));
}

}  // namespace
}  // namespace acltape::device
