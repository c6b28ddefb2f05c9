// Rules of all calls (GEN), of gaps in the references (GAP) and of things that clients do (CLI).
#include <dlfcn.h>

#include <cstring>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

class General : public SoftDevice {
 protected:
  static aclError Nothing(void*) { return 0; }
};

TEST_F(General, GEN_01_AskingForTooMuchGivesACodeAndNoException) {
  void* memory = nullptr;
  EXPECT_NO_THROW({
    EXPECT_CODE(207001, aclrtMalloc(&memory, SIZE_MAX, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_CODE(207001, aclrtMallocHost(&memory, SIZE_MAX));
    EXPECT_CODE(207001, aclrtMallocAlign32(&memory, SIZE_MAX / 2, ACL_MEM_MALLOC_HUGE_FIRST));
  });
}

TEST_F(General, GEN_02_NullGives100000AndABadValue107000) {
  aclrtEvent event = CreateEx();
  aclrtStreamAttrValue value{};
  aclrtStream stream = nullptr;
  EXPECT_CODE(100000, aclrtCreateStream(nullptr));
  EXPECT_CODE(100000, aclrtCreateEventExWithFlag(nullptr, ACL_EVENT_SYNC));
  EXPECT_CODE(100000, aclrtRecordEvent(nullptr, stream_));
  EXPECT_CODE(100000, aclrtStreamWaitEvent(stream_, nullptr));
  EXPECT_CODE(100000, aclrtQueryEventStatus(event, nullptr));
  EXPECT_CODE(100000, aclrtStreamQuery(stream_, nullptr));
  EXPECT_CODE(100000, aclrtStreamGetId(stream_, nullptr));
  EXPECT_CODE(100000, aclrtGetDevice(nullptr));
  EXPECT_CODE(100000, aclrtGetDeviceCount(nullptr));
  EXPECT_CODE(100000, aclrtCreateContext(nullptr, 0));
  EXPECT_CODE(100000, aclrtGetCurrentContext(nullptr));
  EXPECT_CODE(100000, aclrtSetStreamAttribute(stream_, ACL_STREAM_ATTR_PRIORITY, nullptr));
  EXPECT_CODE(100000, aclrtCreateNotify(nullptr, 0));
  EXPECT_CODE(100000, aclmdlRIExecuteAsync(nullptr, stream_));
  EXPECT_CODE(100000, aclmdlRIDestroy(nullptr));

  EXPECT_CODE(107000, aclrtCreateStreamWithConfig(&stream, 0, 0x80));
  EXPECT_CODE(107000, aclrtCreateEventExWithFlag(&event, 0x100));
  EXPECT_CODE(107000, aclrtSynchronizeStreamWithTimeout(stream_, -7));
  EXPECT_CODE(107000, aclrtSetStreamFailureMode(stream_, 9));
  EXPECT_CODE(107000, aclrtSetStreamAttribute(stream_, static_cast<aclrtStreamAttr>(77), &value));
  EXPECT_CODE(107000, aclmdlRICaptureBegin(stream_, static_cast<aclmdlRICaptureMode>(7)));
  EXPECT_CODE(107000, aclrtCtxSetSysParamOpt(static_cast<aclSysParamOpt>(99), 0));
}

// Arguments that the outer layer checks itself give 100000 for a bad value, too.
TEST_F(General, GEN_12_WhatTheInterfaceLayerChecksGives100000) {
  void* memory = nullptr;
  int64_t option = 0;
  aclrtMallocConfig config{nullptr, 1};
  EXPECT_CODE(100000, aclrtMallocWithCfg(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST, &config));
  EXPECT_CODE(100000, aclrtCtxGetSysParamOpt(static_cast<aclSysParamOpt>(99), &option));

  void* pinned = nullptr;
  ASSERT_OK(aclrtMallocHost(&pinned, 64));
  EXPECT_CODE(100000, aclrtHostGetDevicePointer(pinned, &memory, 1));
  EXPECT_OK(aclrtHostGetDevicePointer(pinned, &memory, 0));
  ASSERT_OK(aclrtFreeHost(pinned));

  // These calls do not mean the default stream by NULL.
  aclrtLabel label = nullptr;
  aclrtLabelList list = nullptr;
  ASSERT_OK(aclrtCreateLabel(&label));
  ASSERT_OK(aclrtCreateLabelList(&label, 1, &list));
  ASSERT_OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_CODE(100000, aclrtSetLabel(label, nullptr));
  EXPECT_CODE(100000, aclrtSwitchLabelByIndex(memory, 1, list, nullptr));
  EXPECT_CODE(100000, aclrtActiveStream(stream_, nullptr));
  EXPECT_CODE(100000, aclrtSwitchStream(memory, ACL_RT_EQUAL, memory, ACL_RT_SWITCH_INT32, stream_,
                                        nullptr, nullptr));
  EXPECT_CODE(100000, aclrtSwitchStream(memory, ACL_RT_EQUAL, memory, ACL_RT_SWITCH_INT32, stream_,
                                        stream_, other_));
  ASSERT_OK(aclrtFree(memory));
  ASSERT_OK(aclrtDestroyLabelList(list));
  ASSERT_OK(aclrtDestroyLabel(label));
}

TEST_F(General, GEN_03_CodesOfTasksReachTheCallerUnchanged) {
  Log log;
  for (aclError code : {507014, 507015, 507035, 207003, 107019, 599999, 1}) {
    Launch(stream_, log, "k", code);
    EXPECT_CODE(code, aclrtSynchronizeStream(stream_));
    Begin(stream_);
    Launch(stream_, log, "k", code);
    aclmdlRI model = End(stream_);
    ASSERT_OK(aclmdlRIExecuteAsync(model, other_));
    // An execution has a code of its own for a kernel that fails (ERR-04).
    EXPECT_CODE(code == 507015 ? 507011 : code, aclrtSynchronizeStream(other_));
    ASSERT_OK(aclmdlRIDestroy(model));
  }
}

TEST_F(General, GEN_04_NullIsTheDefaultStreamButNotForCaptures) {
  Log log;
  Gate gate;
  aclrtStream by_handle = nullptr;
  ASSERT_OK(aclrtCtxGetCurrentDefaultStream(&by_handle));
  int32_t id = -1;
  int32_t id_of_null = -2;
  ASSERT_OK(aclrtStreamGetId(by_handle, &id));
  ASSERT_OK(aclrtStreamGetId(nullptr, &id_of_null));
  EXPECT_EQ(id, id_of_null);
  // All these wait for the gate, whichever way the stream is named.
  aclrtEvent event = CreateEx();
  Launch(by_handle, gate);
  Launch(nullptr, log, "a");
  ASSERT_OK(aclrtRecordEvent(event, nullptr));
  ASSERT_OK(aclrtLaunchHostFunc(
      nullptr, [](void* data) { static_cast<Log*>(data)->Add("b"); }, &log));
  aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
  ASSERT_OK(aclrtStreamQuery(nullptr, &status));
  EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(nullptr, 10));
  EXPECT_EQ(log.text(), "");
  gate.Open();
  ASSERT_OK(aclrtSynchronizeStream(by_handle));
  EXPECT_EQ(log.text(), "ab");

  aclmdlRI model = nullptr;
  aclmdlRICaptureStatus capture_status;
  EXPECT_CODE(100000, aclmdlRICaptureBegin(nullptr, kGlobal));
  EXPECT_CODE(100000, aclmdlRICaptureEnd(nullptr, &model));
  EXPECT_CODE(100000, aclmdlRICaptureGetInfo(nullptr, &capture_status, &model));
}

TEST_F(General, GEN_05_ForeignStreamsGive107003AndForeignModels107004) {
  Begin(stream_);
  aclmdlRI model = End(stream_);
  aclrtContext primary = nullptr;
  aclrtContext second = nullptr;
  ASSERT_OK(aclrtGetCurrentContext(&primary));
  ASSERT_OK(aclrtCreateContext(&second, 0));
  aclrtEvent ex = CreateEx();
  aclrtEvent old_event = nullptr;
  ASSERT_OK(aclrtCreateEvent(&old_event));
  EXPECT_CODE(107003, aclrtRecordEvent(ex, stream_));
  EXPECT_CODE(107003, aclrtStreamWaitEvent(stream_, ex));
  EXPECT_CODE(107003, aclrtResetEvent(old_event, stream_));
  EXPECT_CODE(107003, aclrtDestroyStream(stream_));
  EXPECT_CODE(107003, aclrtDestroyStreamForce(stream_));
  EXPECT_CODE(107003, aclrtLaunchHostFunc(
                          stream_, [](void*) {}, nullptr));
  EXPECT_CODE(107003, aclmdlRICaptureBegin(stream_, kGlobal));
  EXPECT_CODE(107003, SoftLaunchKernel(stream_, "k", Nothing, nullptr, nullptr));
  EXPECT_CODE(107004, aclmdlRIExecuteAsync(model, nullptr));
  ASSERT_OK(aclrtDestroyContext(second));
  ASSERT_OK(aclrtSetCurrentContext(primary));
  EXPECT_OK(aclmdlRIExecuteAsync(model, stream_));  // nothing of it did harm
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(General, GEN_08_WhatTheProductDoesNotOfferGives207000) {
  int64_t value = 0;
  EXPECT_CODE(207000, aclrtGetDeviceInfo(0, static_cast<aclrtDevAttr>(9999), &value));
  EXPECT_CODE(207000, aclrtResetEvent(CreateEx(), stream_));
  char a[4];
  char b[4];
  EXPECT_CODE(207000, aclrtMemcpyAsync(a, 4, b, 4, ACL_MEMCPY_HOST_TO_HOST, stream_));
}

TEST_F(General, GEN_09_DestroyedAndWrongHandlesAreRecognised) {
  aclrtNotify notify = nullptr;
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  aclrtEvent event = CreateEx();
  Begin(stream_);
  aclmdlRI model = End(stream_);
  EXPECT_CODE(107017, aclrtRecordNotify(event, stream_));
  EXPECT_CODE(107017, aclrtRecordEvent(notify, stream_));
  EXPECT_CODE(107017, aclmdlRIExecuteAsync(event, stream_));
  EXPECT_CODE(107017, aclrtSynchronizeStream(model));
  EXPECT_CODE(107002, aclrtSetCurrentContext(stream_));
  EXPECT_CODE(107002, aclrtDestroyContext(event));
  ASSERT_OK(aclrtDestroyNotify(notify));
  ASSERT_OK(aclrtDestroyEvent(event));
  ASSERT_OK(aclmdlRIDestroy(model));
  ASSERT_OK(aclrtDestroyStream(other_));
  EXPECT_CODE(107017, aclrtDestroyNotify(notify));
  EXPECT_CODE(107017, aclrtDestroyEvent(event));
  EXPECT_CODE(107017, aclmdlRIDestroy(model));
  EXPECT_CODE(107017, aclrtDestroyStream(other_));
  // New objects do not come to life under the old handles.
  aclrtEvent newer = CreateEx();
  EXPECT_NE(newer, event);
  EXPECT_CODE(107017, aclrtSynchronizeEvent(event));
}

TEST_F(General, GEN_11_MissingObjectsHaveTheirCodes) {
  // Exhaustion is tested with low limits (Limits).
  float ms = 0;
  aclrtEvent never = CreateEx();
  EXPECT_CODE(507000, aclrtEventElapsedTime(&ms, never, never));  // no record to speak of
  aclrtStream persistent = nullptr;
  ASSERT_OK(aclrtCreateStreamWithConfig(&persistent, 0, ACL_STREAM_PERSISTENT));
  EXPECT_CODE(507000, aclmdlRICaptureBegin(persistent, kGlobal));
  void* memory = nullptr;
  EXPECT_CODE(207001, aclrtMalloc(&memory, size_t{1} << 45, ACL_MEM_MALLOC_HUGE_FIRST));
}

TEST_F(General, GAP_01_CodesThatTheErrorTableLacksAreInTheHeader) {
  EXPECT_EQ(ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING, 107045);
  EXPECT_EQ(ACL_ERROR_RT_DEVICE_OOM, 207018);
}

class Client : public SoftDevice {
 protected:
  void SetUp() override {
    SoftDevice::SetUp();
    ASSERT_OK(aclrtMallocAlign32(&device_, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    ASSERT_OK(aclrtMemset(device_, 64, 0, 64));
  }
  void TearDown() override {
    aclrtFree(device_);
    SoftDevice::TearDown();
  }
  int64_t Read() {
    int64_t value = -1;
    EXPECT_OK(aclrtMemcpy(&value, 8, device_, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    return value;
  }

  void* device_ = nullptr;
};

TEST_F(Client, CLI_01_ACreatedStreamServesAsTheDefaultOne) {
  aclrtStream own = nullptr;
  ASSERT_OK(aclrtCreateStreamWithConfig(&own, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
  Log log;
  Begin(other_);  // side streams are captured, and replayed on it
  Launch(other_, log, "g");
  aclmdlRI model = End(other_);
  Launch(own, log, "a");
  ASSERT_OK(aclmdlRIExecuteAsync(model, own));
  Launch(own, log, "b");
  ASSERT_OK(aclrtSynchronizeStream(own));
  EXPECT_EQ(log.text(), "agb");
  Begin(own);  // and it can be captured itself
  EXPECT_NE(End(own), nullptr);
}

TEST_F(Client, CLI_02_BeginGetInfoAndEndAgree) {
  Begin(stream_, kGlobal);
  aclmdlRICaptureStatus status = kNone;
  aclmdlRI model = nullptr;
  ASSERT_OK(aclmdlRICaptureGetInfo(stream_, &status, &model));
  EXPECT_EQ(status, kActive);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(End(stream_), model);
  // A failing end leaves the stream usable.
  aclrtEvent fork = CreateEx();
  Begin(stream_, kGlobal);
  ASSERT_OK(aclrtRecordEvent(fork, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, fork));
  End(stream_, 107025);
  Log log;
  Launch(stream_, log, "a");
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "a");
}

TEST_F(Client, CLI_03_SymbolsThatClientsLookForArePresent) {
  for (const char* name :
       {"aclrtCreateEventExWithFlag", "aclrtValueWrite", "aclrtValueWait",
        "aclrtCreateEventWithFlag", "aclmdlRICaptureBegin", "aclmdlRICaptureThreadExchangeMode",
        "aclrtLaunchHostFunc", "aclrtGetPrimaryCtxState", "aclrtPeekAtLastError"}) {
    EXPECT_NE(dlsym(RTLD_DEFAULT, name), nullptr) << name;
  }
}

TEST_F(Client, CLI_04_RelaxedAroundASynchronousClear) {
  Begin(stream_, kGlobal);
  EXPECT_CODE(107030, aclrtMemset(device_, 64, 1, 64));
  auto mode = kRelaxed;
  ASSERT_OK(aclmdlRICaptureThreadExchangeMode(&mode));
  EXPECT_EQ(mode, kGlobal);
  EXPECT_OK(aclrtMemset(device_, 64, 1, 64));
  ASSERT_OK(aclmdlRICaptureThreadExchangeMode(&mode));
  EXPECT_EQ(mode, kRelaxed);
  EXPECT_CODE(107030, aclrtMemset(device_, 64, 2, 64));  // as strict as before
  EXPECT_NE(End(stream_), nullptr);
  EXPECT_EQ(Read(), 0x0101010101010101);
}

TEST_F(Client, CLI_06_ManyQueriesNeverFailForNotReady) {
  Gate gate;
  aclrtEvent event = CreateEx();
  Launch(stream_, gate);
  ASSERT_OK(aclrtRecordEvent(event, stream_));
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  auto recorded = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  auto status = ACL_STREAM_STATUS_COMPLETE;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_OK(aclrtQueryEventStatus(event, &recorded));
    ASSERT_OK(aclrtStreamQuery(stream_, &status));
  }
  EXPECT_EQ(recorded, ACL_EVENT_RECORDED_STATUS_NOT_READY);
  EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
  gate.Open();
  ASSERT_OK(aclrtSynchronizeEvent(event));
}

TEST_F(Client, CLI_08_MissingFeaturesAreToldBy107000And207000) {
  aclrtStreamAttrValue value{};
  aclError attribute = aclrtSetStreamAttribute(stream_, static_cast<aclrtStreamAttr>(1000), &value);
  EXPECT_EQ(attribute, 107000);
  int64_t fact = 0;
  EXPECT_EQ(aclrtGetDeviceInfo(0, static_cast<aclrtDevAttr>(1000), &fact), 207000);
  // The fall-backs work: a plain pinned allocation, and a capture without the attribute.
  void* pinned = nullptr;
  EXPECT_OK(aclrtMallocHost(&pinned, 64));
  EXPECT_OK(aclrtFreeHost(pinned));
  Begin(stream_, kGlobal);
  EXPECT_NE(End(stream_), nullptr);
}

TEST_F(Client, CLI_09_OneStreamInGlobalModeWithOldEventsOutside) {
  aclrtEvent plain = nullptr;
  ASSERT_OK(aclrtCreateEvent(&plain));
  int64_t pageable = 5;
  ASSERT_OK(aclrtMemcpyAsync(device_, 8, &pageable, 8, ACL_MEMCPY_HOST_TO_DEVICE, stream_));
  pageable = 6;  // the buffer may be used again at once
  Begin(stream_, kGlobal);
  ASSERT_OK(aclrtMemcpyAsync(static_cast<char*>(device_) + 8, 8, device_, 8,
                             ACL_MEMCPY_DEVICE_TO_DEVICE, stream_));
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtRecordEvent(plain, stream_));
  ASSERT_OK(aclrtStreamWaitEvent(other_, plain));
  ASSERT_OK(aclrtResetEvent(plain, other_));
  ASSERT_OK(aclrtSynchronizeStream(other_));
  int64_t copied = 0;
  ASSERT_OK(aclrtMemcpy(&copied, 8, static_cast<char*>(device_) + 8, 8, ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_EQ(copied, 5);
}

TEST_F(Client, CLI_10_OldModelsAreDestroyedWithoutSynchronising) {
  Log log;
  std::vector<aclmdlRI> cache;
  size_t expected = 0;
  for (int i = 0; i < 12; ++i) {
    Begin(stream_, kGlobal);
    ASSERT_OK(SoftLaunchKernel(
        stream_, "slow",
        [](void* bound) -> aclError {
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          static_cast<Log*>(bound)->Add("x");
          return 0;
        },
        nullptr, &log));
    cache.push_back(End(stream_));
    for (aclmdlRI model : cache) {
      ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
      ++expected;
    }
    if (cache.size() > 3) {
      EXPECT_OK(aclmdlRIDestroy(cache.front()));  // it may still be running
      cache.erase(cache.begin());
    }
  }
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.entries().size(), expected);
}

TEST_F(Client, CLI_11_CodesAreComparedWithZeroAndMessagesMayBeNull) {
  while (aclGetRecentErrMsg() != nullptr) {
  }
  ASSERT_EQ(aclrtSynchronizeStream(stream_), 0);
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  ASSERT_NE(aclrtDestroyStream(nullptr), 0);
  const char* message = aclGetRecentErrMsg();
  ASSERT_NE(message, nullptr);
  EXPECT_GT(std::strlen(message), 10u);
}

}  // namespace
}  // namespace acltape::device
