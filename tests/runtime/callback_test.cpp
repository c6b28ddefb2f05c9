// Host functions, callbacks and notifies: rules CB and NTF; error reporting: rules ERR.
#include <pthread.h>

#include "tests/runtime/soft_device_test.h"

namespace acltape::device {
namespace {

// A thread that serves callbacks until it is destroyed.
class ServiceThread {
 public:
  ServiceThread() : thread_([this] { Serve(); }) {
    while (id_.load() == 0) std::this_thread::yield();
  }
  ~ServiceThread() {
    stop_ = true;
    thread_.join();
  }
  uint64_t id() const { return id_; }
  std::thread::id thread_id() const { return thread_.get_id(); }

 private:
  void Serve() {
    id_ = static_cast<uint64_t>(pthread_self());
    while (!stop_) {
      aclError code = aclrtProcessReport(20);
      if (code == 107012) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::atomic<uint64_t> id_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

using Callback = SoftDevice;

void AddToLog(void* log) { static_cast<Log*>(log)->Add("host"); }

TEST_F(Callback, CB_06_AHostFunctionBlocksTheStreamUntilItReturns) {
  struct Slow {
    Log log;
    std::thread::id thread;
  } slow;
  Launch(stream_, slow.log, "a");
  ASSERT_OK(aclrtLaunchHostFunc(
      stream_,
      [](void* data) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        static_cast<Slow*>(data)->thread = std::this_thread::get_id();
        static_cast<Slow*>(data)->log.Add("b");
      },
      &slow));
  Launch(stream_, slow.log, "c");
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(slow.log.text(), "abc");
  EXPECT_NE(slow.thread, std::this_thread::get_id());
  EXPECT_CODE(100000, aclrtLaunchHostFunc(stream_, nullptr, nullptr));
}

TEST_F(Callback, CB_06_AHostFunctionThatWaitsForItsStreamGetsACode) {
  struct Seen {
    aclrtStream stream;
    aclError own = -1, device = -1;
  } seen{stream_};
  ASSERT_OK(aclrtLaunchHostFunc(
      stream_,
      [](void* data) {
        auto& seen = *static_cast<Seen*>(data);
        seen.own = aclrtSynchronizeStream(seen.stream);
        aclrtSetDevice(0);
        seen.device = aclrtSynchronizeDevice();
        aclrtResetDevice(0);
      },
      &seen));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(seen.own, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(seen.device, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

TEST_F(Callback, CB_06_AHostFunctionThatEndsItsThreadFailsAndTheStreamGoesOn) {
  Log log;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(aclrtLaunchHostFunc(
        stream_, [](void*) { pthread_exit(nullptr); }, nullptr));
    Launch(stream_, log, "a");
    EXPECT_CODE(ACL_ERROR_RT_INTERNAL_ERROR, aclrtSynchronizeStream(stream_));
    EXPECT_NE(std::string(aclGetRecentErrMsg()).find("ended the thread that ran it"),
              std::string::npos);
    EXPECT_OK(aclrtSynchronizeStream(stream_));
  }
  EXPECT_EQ(log.text(), "aaa");
  // Also where nobody waits before the end of the stream.
  aclrtStream other = nullptr;
  ASSERT_OK(aclrtCreateStream(&other));
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(aclrtLaunchHostFunc(
        other, [](void*) { pthread_exit(nullptr); }, nullptr));
  }
  EXPECT_OK(aclrtDestroyStream(other));
}

TEST_F(Callback, CB_09_ACapturedHostFunctionRunsOncePerReplay) {
  Log log;
  Begin(stream_);
  Launch(stream_, log, "a");
  ASSERT_OK(aclrtLaunchHostFunc(stream_, AddToLog, &log));
  aclmdlRI model = End(stream_);
  EXPECT_EQ(log.text(), "");
  for (int i = 0; i < 2; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "ahostahost");
}

TEST_F(Callback, CB_01_CB_02_CB_05_Subscriptions) {
  ServiceThread service;
  EXPECT_CODE(107015, aclrtLaunchCallback(AddToLog, nullptr, ACL_CALLBACK_BLOCK, stream_));
  EXPECT_OK(aclrtSubscribeReport(service.id(), stream_));
  EXPECT_OK(aclrtSubscribeReport(service.id(), other_));  // one thread, several streams
  EXPECT_CODE(107012, aclrtSubscribeReport(service.id(), stream_));
  EXPECT_CODE(107011, aclrtSubscribeReport(service.id() + 1, stream_));
  EXPECT_CODE(100000, aclrtLaunchCallback(AddToLog, nullptr, static_cast<aclrtCallbackBlockType>(5),
                                          stream_));
  EXPECT_CODE(107012, aclrtUnSubscribeReport(service.id() + 1, stream_));
  EXPECT_OK(aclrtUnSubscribeReport(service.id(), stream_));
  EXPECT_CODE(107011, aclrtUnSubscribeReport(service.id(), stream_));
  EXPECT_OK(aclrtUnSubscribeReport(service.id(), other_));
}

TEST_F(Callback, CB_03_CB_04_CallbacksRunInTheSubscribedThread) {
  ServiceThread service;
  struct Seen {
    Log log;
    std::thread::id thread;
  } seen;
  ASSERT_OK(aclrtSubscribeReport(service.id(), stream_));
  Launch(stream_, seen.log, "a");
  ASSERT_OK(aclrtLaunchCallback(
      [](void* data) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        static_cast<Seen*>(data)->thread = std::this_thread::get_id();
        static_cast<Seen*>(data)->log.Add("b");
      },
      &seen, ACL_CALLBACK_BLOCK, stream_));
  Launch(stream_, seen.log, "c");
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(seen.log.text(), "abc");
  EXPECT_EQ(seen.thread, service.thread_id());
  ASSERT_OK(aclrtUnSubscribeReport(service.id(), stream_));
}

TEST_F(Callback, CB_03_WithoutBlockLaterTasksDoNotWait) {
  ServiceThread service;
  Gate gate;
  Log log;
  ASSERT_OK(aclrtSubscribeReport(service.id(), stream_));
  ASSERT_OK(aclrtLaunchCallback([](void* data) { Gate::Run(data); }, gate.bound(),
                                ACL_CALLBACK_NO_BLOCK, stream_));
  Launch(stream_, log, "a");
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "a");
  gate.WaitUntilEntered();
  gate.Open();
  ASSERT_OK(aclrtUnSubscribeReport(service.id(), stream_));
}

TEST_F(Callback, CB_04_ProcessReportRefusals) {
  EXPECT_CODE(100000, aclrtProcessReport(0));
  EXPECT_CODE(100000, aclrtProcessReport(-2));
  EXPECT_CODE(107012, aclrtProcessReport(10));
  auto self = static_cast<uint64_t>(pthread_self());
  ASSERT_OK(aclrtSubscribeReport(self, stream_));
  EXPECT_CODE(507012, aclrtProcessReport(10));
  ASSERT_OK(aclrtUnSubscribeReport(self, stream_));
}

TEST_F(Callback, NTF_01_NTF_02_ANotifyIsABinaryFlag) {
  Log log;
  aclrtNotify notify = nullptr;
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  EXPECT_CODE(107000, aclrtCreateNotify(&notify, 2));
  ASSERT_OK(aclrtWaitAndResetNotify(notify, stream_, 0));
  Launch(stream_, log, "b");
  Launch(other_, log, "a");
  ASSERT_OK(aclrtRecordNotify(notify, other_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "ab");
  ASSERT_OK(aclrtRecordNotify(notify, other_));
  ASSERT_OK(aclrtRecordNotify(notify, other_));  // does not count
  ASSERT_OK(aclrtSynchronizeStream(other_));
  ASSERT_OK(aclrtWaitAndResetNotify(notify, stream_, 0));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  ASSERT_OK(aclrtWaitAndResetNotify(notify, stream_, 1));
  EXPECT_CODE(107019, aclrtSynchronizeStream(stream_));  // NTF-03
  ASSERT_OK(aclrtRecordNotify(notify, other_));
  ASSERT_OK(aclrtSynchronizeStream(other_));
  ASSERT_OK(aclrtNotifyBatchReset(&notify, 1));  // NTF-05
  ASSERT_OK(aclrtWaitAndResetNotify(notify, stream_, 1));
  EXPECT_CODE(107019, aclrtSynchronizeStream(stream_));
  EXPECT_OK(aclrtDestroyNotify(notify));
  EXPECT_CODE(107017, aclrtRecordNotify(notify, stream_));
}

TEST_F(Callback, NTF_07_NotifiesAreCapturedAsPlainTasks) {
  Log log;
  aclrtNotify notify = nullptr;
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  Begin(stream_);
  ASSERT_OK(aclrtWaitAndResetNotify(notify, stream_, 0));
  Launch(stream_, log, "a");
  ASSERT_OK(aclrtRecordNotify(notify, stream_));
  aclmdlRI model = End(stream_);
  ASSERT_OK(aclrtDestroyNotify(notify));  // the graph keeps what it needs
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(stream_, 20));
  ASSERT_OK(aclrtStreamAbort(stream_));
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "");
}

using Errors = SoftDevice;

TEST_F(Errors, ERR_01_MessagesAreClearedWhenRead) {
  aclGetRecentErrMsg();
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStreamWithConfig(&stream, 0, 0x100), 107000);
  const char* message = aclGetRecentErrMsg();
  ASSERT_NE(message, nullptr);
  EXPECT_NE(std::string(message).find("unknown flags 0x100"), std::string::npos) << message;
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  ASSERT_EQ(aclrtFree(nullptr), 100000);
  std::thread([] { EXPECT_EQ(aclGetRecentErrMsg(), nullptr); }).join();  // per thread
  EXPECT_NE(aclGetRecentErrMsg(), nullptr);
  SoftSetErrorMessage("set by the operator library");
  EXPECT_STREQ(aclGetRecentErrMsg(), "set by the operator library");
}

TEST_F(Errors, ERR_02_TheLastErrorStaysUntilItIsTaken) {
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  EXPECT_EQ(aclrtFree(nullptr), 100000);
  EXPECT_OK(aclrtSynchronizeStream(stream_));  // success does not clear it
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 100000);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 100000);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
  EXPECT_CODE(100000, aclrtPeekAtLastError(static_cast<aclrtLastErrLevel>(1)));
  EXPECT_EQ(SoftSetLastError(161002), 161002);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 161002);
}

TEST_F(Errors, ERR_03_AKernelsOwnMessageReachesTheHost) {
  ASSERT_OK(SoftLaunchKernel(
      stream_, "aclnnBroken",
      [](void*) -> aclError {
        SoftSetErrorMessage("index 7 is out of range");
        return 507015;
      },
      nullptr, nullptr));
  ASSERT_EQ(aclrtSynchronizeStream(stream_), 507015);
  std::string message = aclGetRecentErrMsg();
  EXPECT_NE(message.find("aclnnBroken"), std::string::npos) << message;
  EXPECT_NE(message.find("index 7 is out of range"), std::string::npos) << message;
}

TEST_F(Errors, ERR_05_DeviceFaultsStayUntilTheDeviceIsReset) {
  Log log;
  Launch(stream_, log, "a", 507054);
  EXPECT_CODE(507054, aclrtSynchronizeStream(stream_));
  EXPECT_CODE(507054, aclrtSynchronizeStream(other_));
  auto nothing = [](void*) -> aclError { return 0; };
  EXPECT_CODE(507054, SoftLaunchKernel(other_, "k", nothing, nullptr, nullptr));
  ASSERT_OK(aclrtResetDevice(0));
  ASSERT_OK(aclrtSetDevice(0));
  ASSERT_OK(aclrtCreateStream(&stream_));
  Launch(stream_, log, "b");
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(Errors, ERR_07_ExceptionCallbacks) {
  static std::atomic<uint32_t> code;
  static std::atomic<uint32_t> stream_id;
  code = 0;
  auto callback = [](aclrtExceptionInfo* info) {
    stream_id = aclrtGetStreamIdFromExceptionInfo(info);
    code = aclrtGetErrorCodeFromExceptionInfo(info);
  };
  EXPECT_CODE(107000, aclrtExceptionInfoCallbackRegister(nullptr));
  EXPECT_OK(aclrtExceptionInfoCallbackUnregister(callback));  // unknown: success
  ASSERT_OK(aclrtExceptionInfoCallbackRegister(callback));
  Log log;
  Launch(stream_, log, "a", 507015);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 507015);
  EXPECT_EQ(code, 507015u);
  int32_t id = -1;
  ASSERT_OK(aclrtStreamGetId(stream_, &id));
  EXPECT_EQ(stream_id, static_cast<uint32_t>(id));
  ASSERT_OK(aclrtExceptionInfoCallbackUnregister(callback));
  EXPECT_EQ(aclrtGetTaskIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
  EXPECT_EQ(aclrtGetErrorCodeFromExceptionInfo(nullptr), 0xFFFFFFFFu);
}

TEST_F(Errors, ERR_08_ArgumentErrorsHaveNoEffectOnStreams) {
  EXPECT_EQ(aclrtMemcpyAsync(nullptr, 8, nullptr, 8, ACL_MEMCPY_DEFAULT, stream_), 100000);
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(Errors, ERR_07_SeveralCallbacksRunInAnInternalThread) {
  struct Seen {
    std::atomic<int> first{0};
    std::atomic<int> second{0};
    std::atomic<std::thread::id> thread;
  };
  static Seen seen;
  auto first = [](aclrtExceptionInfo*) {
    ++seen.first;
    seen.thread = std::this_thread::get_id();
  };
  auto second = [](aclrtExceptionInfo*) { ++seen.second; };
  ASSERT_OK(aclrtExceptionInfoCallbackRegister(first));
  ASSERT_OK(aclrtExceptionInfoCallbackRegister(second));
  Log log;
  Launch(stream_, log, "a", 507015);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 507015);
  EXPECT_EQ(seen.first, 1);
  EXPECT_EQ(seen.second, 1);
  EXPECT_NE(seen.thread.load(), std::this_thread::get_id());
  ASSERT_OK(aclrtExceptionInfoCallbackUnregister(first));
  Launch(stream_, log, "a", 507015);
  EXPECT_EQ(aclrtSynchronizeStream(stream_), 507015);
  EXPECT_EQ(seen.first, 1);
  EXPECT_EQ(seen.second, 2);
  ASSERT_OK(aclrtExceptionInfoCallbackUnregister(second));
  EXPECT_EQ(aclrtGetStreamIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
  EXPECT_EQ(aclrtGetThreadIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
  EXPECT_EQ(aclrtGetDeviceIdFromExceptionInfo(nullptr), 0xFFFFFFFFu);
}

TEST_F(Callback, CB_08_AHostFunctionMayTakeTheProgramsLocks) {
  static std::mutex program_lock;
  Log log;
  {
    std::lock_guard lock(program_lock);
    ASSERT_OK(aclrtLaunchHostFunc(
        stream_,
        [](void* data) {
          std::lock_guard lock(program_lock);
          static_cast<Log*>(data)->Add("f");
        },
        &log));
    // The function waits for the lock; calls that do not wait for the stream still return.
    aclrtStreamStatus status;
    aclrtStream created = nullptr;
    void* memory = nullptr;
    for (int i = 0; i < 50; ++i) ASSERT_OK(aclrtRecordEvent(CreateEx(), stream_));
    EXPECT_OK(aclrtStreamQuery(stream_, &status));
    EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
    EXPECT_OK(aclrtCreateStream(&created));
    EXPECT_OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    EXPECT_OK(aclrtFree(memory));
    EXPECT_OK(aclrtSynchronizeStream(other_));
    EXPECT_EQ(log.text(), "");
  }
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "f");
}

TEST_F(Callback, CB_09_ACapturedCallbackUsesTheSubscriptionOfItsStream) {
  ServiceThread service;
  struct Seen {
    Log log;
    std::thread::id thread;
  } seen;
  ASSERT_OK(aclrtSubscribeReport(service.id(), stream_));
  Begin(stream_);
  Launch(stream_, seen.log, "a");
  ASSERT_OK(aclrtLaunchCallback(
      [](void* data) {
        static_cast<Seen*>(data)->thread = std::this_thread::get_id();
        static_cast<Seen*>(data)->log.Add("b");
      },
      &seen, ACL_CALLBACK_BLOCK, stream_));
  Launch(stream_, seen.log, "c");
  aclmdlRI model = End(stream_);
  EXPECT_EQ(seen.log.text(), "");
  for (int i = 0; i < 3; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, other_));
  ASSERT_OK(aclrtSynchronizeStream(other_));  // a stream without subscription
  EXPECT_EQ(seen.log.text(), "abcabcabc");
  EXPECT_EQ(seen.thread, service.thread_id());
  ASSERT_OK(aclrtUnSubscribeReport(service.id(), stream_));
}

TEST_F(Callback, CB_10_AtMost1024ServiceThreads) {
  // Threads are distinguished by number; these need not exist.
  std::vector<aclrtStream> streams(1025);
  for (aclrtStream& stream : streams) ASSERT_OK(aclrtCreateStream(&stream));
  for (uint64_t i = 0; i < 1024; ++i) ASSERT_OK(aclrtSubscribeReport(1000 + i, streams[i]));
  EXPECT_CODE(107012, aclrtSubscribeReport(5000, streams[1024]));
  EXPECT_OK(aclrtSubscribeReport(1000, streams[1024]));  // a known thread takes one more
  EXPECT_OK(aclrtUnSubscribeReport(1000, streams[1024]));
  for (uint64_t i = 0; i < 1024; ++i) ASSERT_OK(aclrtUnSubscribeReport(1000 + i, streams[i]));
  EXPECT_OK(aclrtSubscribeReport(5000, streams[1024]));
  EXPECT_OK(aclrtUnSubscribeReport(5000, streams[1024]));
}

TEST_F(Callback, NTF_03_AWaitTimeoutIsATaskFailure) {
  aclrtNotify notify = nullptr;
  Log log;
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  ASSERT_OK(aclrtWaitAndResetNotify(notify, stream_, 1));  // the call itself succeeds
  Launch(stream_, log, "a");
  EXPECT_CODE(107019, aclrtSynchronizeStream(stream_));
  EXPECT_EQ(log.text(), "a");                              // later tasks run, as after any failure
  ASSERT_OK(aclrtWaitAndResetNotify(notify, stream_, 0));  // 0: for ever
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(stream_, 50));
  ASSERT_OK(aclrtRecordNotify(notify, other_));
  EXPECT_OK(aclrtSynchronizeStream(stream_));
}

TEST_F(Callback, NTF_05_BatchResetClearsAListOfNotifies) {
  aclrtNotify notifies[3] = {};
  for (aclrtNotify& notify : notifies) {
    ASSERT_OK(aclrtCreateNotify(&notify, 0));
    ASSERT_OK(aclrtRecordNotify(notify, stream_));
  }
  ASSERT_OK(aclrtSynchronizeStream(stream_));
  EXPECT_CODE(100000, aclrtNotifyBatchReset(nullptr, 1));
  ASSERT_OK(aclrtNotifyBatchReset(notifies, 2));
  ASSERT_OK(aclrtWaitAndResetNotify(notifies[2], other_, 1));  // still set
  EXPECT_OK(aclrtSynchronizeStream(other_));
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(aclrtWaitAndResetNotify(notifies[i], other_, 1));
    EXPECT_CODE(107019, aclrtSynchronizeStream(other_));
  }
}

TEST_F(Callback, NTF_07_ANotifyDoesNotPullAStreamIntoACapture) {
  aclrtNotify notify = nullptr;
  Log log;
  ASSERT_OK(aclrtCreateNotify(&notify, 0));
  Begin(stream_);
  ASSERT_OK(aclrtRecordNotify(notify, stream_));
  ASSERT_OK(aclrtWaitAndResetNotify(notify, other_, 0));
  EXPECT_EQ(Status(other_), kNone);
  Launch(other_, log, "o");
  aclmdlRI model = End(stream_);  // nothing to join
  EXPECT_CODE(507046, aclrtSynchronizeStreamWithTimeout(other_, 20));
  ASSERT_OK(aclmdlRIExecuteAsync(model, stream_));
  EXPECT_OK(aclrtSynchronizeStream(other_));
  EXPECT_EQ(log.text(), "o");
}

}  // namespace
}  // namespace acltape::device
