#include "runtime/device/workers_held.h"

#include <time.h>

#include <algorithm>

#include "runtime/device/context.h"
#include "runtime/device/futex.h"
#include "runtime/device/profile.h"

namespace acltape::device {
namespace {

constexpr int64_t kLongestWaitNs = 10000000000;

bool AllQuiet() {
  for (uint32_t id = 0; id < GetProfile().devices; ++id) {
    Device* device = DeviceAt(static_cast<int32_t>(id));
    std::lock_guard contexts_lock(device->contexts_mutex);
    for (Context* context : device->contexts) {
      std::lock_guard lock(context->mutex);
      const auto quiet = [](const Stream* stream) { return stream->Quiet(); };
      if (!std::all_of(context->streams.begin(), context->streams.end(), quiet)) return false;
    }
  }
  return true;
}

}  // namespace

std::atomic<uint32_t> WorkersHeld::count_{0};

WorkersHeld::WorkersHeld() {
  count_.fetch_add(1, std::memory_order_seq_cst);
  const int64_t limit = NowNs() + kLongestWaitNs;
  while (!AllQuiet() && !Exiting() && NowNs() < limit) {
    timespec pause{0, 20000};
    nanosleep(&pause, nullptr);
  }
}

WorkersHeld::~WorkersHeld() { count_.fetch_sub(1, std::memory_order_seq_cst); }

}  // namespace acltape::device
