// Exception callbacks (ERR-07).
#include "runtime/device/exception.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/device/call.h"

using namespace acltape::device;

namespace {

constexpr uint32_t kNoInfo = 0xFFFFFFFF;

struct Callbacks {
  std::mutex mutex;
  std::vector<aclrtExceptionInfoCallback> registered;
  aclrtExceptionInfoCallback single = nullptr;  // of the deprecated setter
  std::set<const rtExceptionInfo*> live;        // that callbacks are looking at
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
  std::lock_guard lock(callbacks.mutex);
  callbacks.live.erase(&copy);
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
