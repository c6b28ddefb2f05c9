#include "recorder/acl/event_calls.h"

#include <algorithm>
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
  Resolve(f.available, "aclrtGetEventAvailNum");
  Resolve(f.peek_error, "aclrtPeekAtLastError");
  Resolve(f.take_error, "aclrtGetLastError");
  Resolve(f.take_message, "aclGetRecentErrMsg");
  f.complete = f.create != nullptr && f.destroy != nullptr && f.record != nullptr &&
               f.query != nullptr && f.time != nullptr && f.elapsed != nullptr;
  found.store(true, std::memory_order_release);
  return f;
}

int64_t EventsToUse(OwnCalls& own) {
  constexpr int64_t kMost = 4096;
  static std::atomic<int64_t> known{0};
  if (const int64_t number = known.load(std::memory_order_relaxed); number != 0) return number;
  const auto available = TheEventFunctions().available;
  uint32_t free = 0;
  if (available == nullptr || !own.Succeeded(available(&free))) return kMost;
  const int64_t quarter = std::clamp<int64_t>(free / 4, 2, kMost);
  known.store(quarter, std::memory_order_relaxed);
  return quarter;
}

void ForgetEventCallLocks() { g_event_functions_mutex.Forget(); }

}  // namespace acltape::acl_agent
