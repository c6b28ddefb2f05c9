// Exception callbacks (ERR-07).
#include "runtime/device/exception.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "runtime/device/call.h"

using namespace acltape::device;

namespace {

constexpr uint32_t kNoInfo = 0xFFFFFFFF;

struct Callbacks {
  std::mutex mutex;
  std::vector<aclrtExceptionInfoCallback> registered;
  aclrtExceptionInfoCallback single = nullptr;  // of the deprecated setter
};

Callbacks& GetCallbacks() {
  static Callbacks& callbacks = *new Callbacks;
  return callbacks;
}

}  // namespace

namespace acltape::device {

void ReportException(const rtExceptionInfo& info) {
  std::vector<aclrtExceptionInfoCallback> called;
  {
    Callbacks& callbacks = GetCallbacks();
    std::lock_guard lock(callbacks.mutex);
    called = callbacks.registered;
    if (callbacks.single != nullptr) called.push_back(callbacks.single);
  }
  rtExceptionInfo copy = info;
  for (aclrtExceptionInfoCallback callback : called) callback(&copy);
}

}  // namespace acltape::device

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
  return info != nullptr ? info->task_id : kNoInfo;
}

uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info != nullptr ? info->stream_id : kNoInfo;
}

uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info != nullptr ? info->thread_id : kNoInfo;
}

uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info != nullptr ? info->device_id : kNoInfo;
}

uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info != nullptr ? info->code : kNoInfo;
}
