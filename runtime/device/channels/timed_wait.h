// Waits of senders and receivers: for ever, not at all, or for some milliseconds (TDT-04, QUE-03).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "runtime/device/call.h"

namespace acltape::device {

// -1 waits for ever and 0 not at all.
inline aclError CheckQueueTimeout(int32_t timeout_ms, const char* call) {
  if (timeout_ms >= -1) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: time-out %d ms is neither -1, 0 nor positive", call,
              timeout_ms);
}

// False when `ready()` has not become true in time.
template <typename Ready>
bool WaitUntil(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
               int32_t timeout_ms, const Ready& ready) {
  if (timeout_ms < 0) {
    changed.wait(lock, ready);
    return true;
  }
  return changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), ready);
}

}  // namespace acltape::device
