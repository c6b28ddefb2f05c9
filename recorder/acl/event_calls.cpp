#include "recorder/acl/event_calls.h"

#include <atomic>

#include "recorder/acl/real.h"
#include "recorder/agent/lock.h"

namespace acltape::acl_agent {

namespace {

agent::Mutex g_event_functions_mutex;

}  // namespace

const EventFunctions& TheEventFunctions() {
  static EventFunctions f{};
  static std::atomic<bool> found{false};
  if (found.load(std::memory_order_acquire)) return f;
  agent::Lock lock(g_event_functions_mutex);
  if (found.load(std::memory_order_relaxed)) return f;  // by the thread that had the lock before
  Resolve(f.create, "aclrtCreateEventExWithFlag");
  Resolve(f.destroy, "aclrtDestroyEvent");
  Resolve(f.record, "aclrtRecordEvent");
  Resolve(f.query, "aclrtQueryEventStatus");
  Resolve(f.time, "aclrtEventGetTimestamp");
  Resolve(f.elapsed, "aclrtEventElapsedTime");
  Resolve(f.flags, "aclrtStreamGetFlags");
  Resolve(f.peek_error, "aclrtPeekAtLastError");
  Resolve(f.take_error, "aclrtGetLastError");
  Resolve(f.take_message, "aclGetRecentErrMsg");
  f.complete = f.create != nullptr && f.destroy != nullptr && f.record != nullptr &&
               f.query != nullptr && f.time != nullptr && f.elapsed != nullptr;
  found.store(true, std::memory_order_release);
  return f;
}

void ForgetEventCallLocks() { g_event_functions_mutex.Forget(); }

}  // namespace acltape::acl_agent
