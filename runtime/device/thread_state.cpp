#include "runtime/device/thread_state.h"

#include <unistd.h>

#include <atomic>

namespace acltape::device {

thread_local constinit ThreadState thread_state{};

uint64_t ThreadNumber() {
  static std::atomic<uint64_t> newest{0};
  if (thread_state.number == 0) thread_state.number = newest.fetch_add(1) + 1;
  return thread_state.number;
}

uint32_t SystemThreadId() {
  if (thread_state.system_id == 0) thread_state.system_id = static_cast<uint32_t>(gettid());
  return thread_state.system_id;
}

}  // namespace acltape::device
