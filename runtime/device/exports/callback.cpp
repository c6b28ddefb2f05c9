// Host functions and callbacks (section 8 of the rules).
#include <pthread.h>

#include <map>
#include <mutex>

#include "runtime/device/call.h"
#include "runtime/device/host_service.h"

using namespace acltape::device;

namespace {

constexpr size_t kMostServiceThreads = 1024;  // CB-10

// Subscribed threads and, in each stream, its queue.
struct Subscriptions {
  struct Thread {
    std::shared_ptr<ReportQueue> queue;
    uint32_t streams = 0;
  };
  std::mutex mutex;
  std::map<uint64_t, Thread> threads;
};

Subscriptions& GetSubscriptions() {
  static Subscriptions& subscriptions = *new Subscriptions;
  return subscriptions;
}

struct HostFunctionPayload {
  HostService* service;
  void (*function)(void*);
  void* user_data;
};

// Waits for the end of the call.
aclError ResultOf(HostCall& call) {
  if (!WaitForHostCall(call)) return ACL_ERROR_RT_STREAM_ABORT;
  if (call.done.load() == HostCall::kReturned) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INTERNAL_ERROR,
              "a function of the program ended the thread that ran it");
}

aclError RunHostFunction(void* argument) {
  auto* payload = static_cast<HostFunctionPayload*>(argument);
  auto call = std::make_shared<HostCall>();
  call->function = payload->function;
  call->user_data = payload->user_data;
  call->stream = Runner::Current()->stream();
  payload->service->Post(call);
  return ResultOf(*call);
}

// A callback of aclrtLaunchCallback; on the heap, as it holds on to the queue.
struct CallbackArgument {
  std::shared_ptr<ReportQueue> queue;
  void (*function)(void*);
  void* user_data;
  bool block;
};

aclError RunCallback(void* argument) {
  auto* callback = static_cast<CallbackArgument*>(argument);
  auto call = std::make_shared<HostCall>();
  call->function = callback->function;
  call->user_data = callback->user_data;
  if (callback->block) call->stream = Runner::Current()->stream();
  callback->queue->Post(call);
  return callback->block ? ResultOf(*call) : ACL_SUCCESS;
}

void DropCallback(void* argument) { delete static_cast<CallbackArgument*>(argument); }

}  // namespace

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  ACLTAPE_CALL("aclrtLaunchHostFunc");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(reinterpret_cast<void*>(fn), kCall, "fn"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  HostFunctionPayload payload{&found->context().host_service(), fn, args};
  return SubmitTask(*found, MakeTask(TaskKind::kCallback, "HOST_FUNC", payload, RunHostFunction));
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  ACLTAPE_CALL("aclrtSubscribeReport");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  Subscriptions& subscriptions = GetSubscriptions();
  std::lock_guard lock(subscriptions.mutex);
  if (found->report_queue != nullptr) {
    bool same = found->report_queue->thread() == threadId;
    return Fail(same ? ACL_ERROR_RT_THREAD_SUBSCRIBE : ACL_ERROR_RT_STREAM_SUBSCRIBE,
                "%s: stream %u has a subscribed thread already", kCall, found->id());
  }
  bool known = subscriptions.threads.count(threadId) != 0;
  if (!known && subscriptions.threads.size() >= kMostServiceThreads) {
    return Fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, "%s: %zu threads are subscribed, which is the limit",
                kCall, subscriptions.threads.size());
  }
  Subscriptions::Thread& thread = subscriptions.threads[threadId];
  if (thread.queue == nullptr) thread.queue = std::make_shared<ReportQueue>(threadId);
  ++thread.streams;
  found->report_queue = thread.queue;
  return ACL_SUCCESS;
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  ACLTAPE_CALL("aclrtUnSubscribeReport");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  Subscriptions& subscriptions = GetSubscriptions();
  std::lock_guard lock(subscriptions.mutex);
  auto thread = subscriptions.threads.find(threadId);
  if (thread == subscriptions.threads.end()) {
    return Fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, "%s: thread %llu is not subscribed", kCall,
                static_cast<unsigned long long>(threadId));
  }
  if (found->report_queue != thread->second.queue) {
    return Fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, "%s: stream %u is not subscribed to this thread",
                kCall, found->id());
  }
  found->report_queue.reset();
  if (--thread->second.streams == 0) subscriptions.threads.erase(thread);
  return ACL_SUCCESS;
}

aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream) {
  ACLTAPE_CALL("aclrtLaunchCallback");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(reinterpret_cast<void*>(fn), kCall, "fn"));
  if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no block type %d", kCall,
                static_cast<int>(blockType));
  }
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  std::shared_ptr<ReportQueue> queue;
  {
    std::lock_guard lock(GetSubscriptions().mutex);
    queue = found->report_queue;
  }
  if (queue == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_NO_CB_REG,
                "%s: no thread is subscribed to stream %u; call aclrtSubscribeReport first", kCall,
                found->id());
  }
  Task task;
  task.run = RunCallback;
  task.drop = DropCallback;
  task.argument = new CallbackArgument{queue, fn, userData, blockType == ACL_CALLBACK_BLOCK};
  task.name = "CALLBACK";
  task.kind = TaskKind::kCallback;
  return SubmitTask(*found, std::move(task));
}

aclError aclrtProcessReport(int32_t timeout) {
  ACLTAPE_CALL("aclrtProcessReport");
  if (timeout == 0 || timeout < -1) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: time-out %d ms is neither positive nor -1", kCall,
                timeout);
  }
  std::shared_ptr<ReportQueue> queue;
  {
    Subscriptions& subscriptions = GetSubscriptions();
    std::lock_guard lock(subscriptions.mutex);
    auto thread = subscriptions.threads.find(static_cast<uint64_t>(pthread_self()));
    if (thread != subscriptions.threads.end()) queue = thread->second.queue;
  }
  if (queue == nullptr) {
    return Fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, "%s: this thread is not subscribed to a stream",
                kCall);
  }
  if (queue->Process(timeout)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_REPORT_TIMEOUT, "%s: no callback came within %d ms", kCall, timeout);
}
