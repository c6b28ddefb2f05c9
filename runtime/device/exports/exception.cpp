// Exception callbacks (ERR-07).
#include "runtime/device/exception.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/device/binary.h"
#include "runtime/device/call.h"
#include "runtime/device/function.h"

using namespace acltape::device;

namespace {

constexpr uint32_t kNoInfo = 0xFFFFFFFF;

struct Callbacks {
  std::mutex mutex;
  std::vector<aclrtExceptionInfoCallback> registered;
  aclrtExceptionInfoCallback single = nullptr;  // registered by the deprecated setter
  std::set<const rtExceptionInfo*> live;        // those that callbacks are reading
};

Callbacks& GetCallbacks() {
  static Callbacks& callbacks = *new Callbacks;
  return callbacks;
}

// A member of the information that a callback was called with, while it is.
uint32_t MemberOf(const rtExceptionInfo* info, uint32_t rtExceptionInfo::*member,
                  const char* call) {
  Callbacks& callbacks = GetCallbacks();
  std::lock_guard lock(callbacks.mutex);
  if (callbacks.live.count(info) != 0) return info->*member;
  Fail(info == nullptr ? ACL_ERROR_INVALID_PARAM : ACL_ERROR_RT_INVALID_HANDLE,
       "%s: %p is not the information of a callback that runs", call,
       static_cast<const void*>(info));
  return kNoInfo;
}

}  // namespace

namespace acltape::device {

void ReportException(const rtExceptionInfo& info) {
  std::vector<aclrtExceptionInfoCallback> called;
  Callbacks& callbacks = GetCallbacks();
  rtExceptionInfo copy = info;
  {
    std::lock_guard lock(callbacks.mutex);
    callbacks.live.insert(&copy);
    called = callbacks.registered;
    if (callbacks.single != nullptr) called.push_back(callbacks.single);
  }
  for (aclrtExceptionInfoCallback callback : called) callback(&copy);
  if (copy.task != nullptr) CallBinaryCallback(*copy.task, &copy);
  std::lock_guard lock(callbacks.mutex);
  callbacks.live.erase(&copy);
}

}  // namespace acltape::device

namespace {

// The kernel whose failure a callback hears about.
aclError KernelOf(const rtExceptionInfo* info, const char* call, Task** kernel) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(info, call, "info"));
  Callbacks& callbacks = GetCallbacks();
  std::lock_guard lock(callbacks.mutex);
  if (callbacks.live.count(info) == 0) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE,
                "%s: %p is not the information of a callback that runs", call,
                static_cast<const void*>(info));
  }
  *kernel = info->task;
  if (*kernel != nullptr && (*kernel)->kind == TaskKind::kKernel) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the task that failed is no kernel of a stream",
              call);
}

}  // namespace

// ERR-07: a kernel with an argument block shows it. One of the operator library shows a block of 8
// bytes that refers to its object (ENUM-08).
aclError aclrtGetArgsFromExceptionInfo(const aclrtExceptionInfo* info, void** devArgsPtr,
                                       uint32_t* devArgsLen) {
  ACLTAPE_CALL("aclrtGetArgsFromExceptionInfo");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(devArgsPtr, kCall, "devArgsPtr"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(devArgsLen, kCall, "devArgsLen"));
  Task* kernel = nullptr;
  ACLTAPE_RETURN_IF_FAILED(KernelOf(info, kCall, &kernel));
  *devArgsPtr = TakesBytes(*kernel) ? kernel->argument : static_cast<void*>(&kernel->argument);
  *devArgsLen = static_cast<uint32_t>(ArgumentBytes(*kernel));
  return ACL_SUCCESS;
}

aclError aclrtGetFuncHandleFromExceptionInfo(const aclrtExceptionInfo* info,
                                             aclrtFuncHandle* func) {
  ACLTAPE_CALL("aclrtGetFuncHandleFromExceptionInfo");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(func, kCall, "func"));
  Task* kernel = nullptr;
  ACLTAPE_RETURN_IF_FAILED(KernelOf(info, kCall, &kernel));
  const Function* function = FunctionOf(*kernel);
  if (function == nullptr) {
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: no handle left", kCall);
  }
  *func = function->handle;
  return ACL_SUCCESS;
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
  ACLTAPE_CALL("aclrtSetExceptionInfoCallback");
  Callbacks& callbacks = GetCallbacks();
  std::lock_guard lock(callbacks.mutex);
  callbacks.single = callback;
  return ACL_SUCCESS;
}

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback) {
  ACLTAPE_CALL("aclrtExceptionInfoCallbackRegister");
  if (callback == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "aclrtExceptionInfoCallbackRegister: the callback is NULL");
  }
  Callbacks& callbacks = GetCallbacks();
  std::lock_guard lock(callbacks.mutex);
  auto& registered = callbacks.registered;
  if (std::find(registered.begin(), registered.end(), callback) == registered.end()) {
    registered.push_back(callback);
  }
  return ACL_SUCCESS;
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback) {
  ACLTAPE_CALL("aclrtExceptionInfoCallbackUnregister");
  if (callback == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "aclrtExceptionInfoCallbackUnregister: the callback is NULL");
  }
  Callbacks& callbacks = GetCallbacks();
  std::lock_guard lock(callbacks.mutex);
  std::erase(callbacks.registered, callback);
  return ACL_SUCCESS;
}

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return MemberOf(info, &rtExceptionInfo::task_id, "aclrtGetTaskIdFromExceptionInfo");
}

uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return MemberOf(info, &rtExceptionInfo::stream_id, "aclrtGetStreamIdFromExceptionInfo");
}

uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return MemberOf(info, &rtExceptionInfo::thread_id, "aclrtGetThreadIdFromExceptionInfo");
}

uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return MemberOf(info, &rtExceptionInfo::device_id, "aclrtGetDeviceIdFromExceptionInfo");
}

uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info) {
  return MemberOf(info, &rtExceptionInfo::code, "aclrtGetErrorCodeFromExceptionInfo");
}
