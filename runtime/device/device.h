// Devices: use counts, primary contexts and what is limited per device (DEV-01 to DEV-16).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

#include "acl/acl.h"
#include "runtime/device/numbers.h"
#include "runtime/device/profile.h"
#include "runtime/device/queues.h"

namespace acltape::device {

class Context;

// Error codes that stand for a faulty device rather than a failed task (ERR-05).
bool IsDeviceFault(aclError code);
// Error codes among those that are about the device's memory (ERR-09).
bool IsMemoryFault(aclError code);

struct Device {
  explicit Device(int32_t number);

  const int32_t id;
  Numbers stream_numbers;
  Numbers event_numbers;
  Numbers notify_numbers;
  Numbers model_numbers;
  Queues queues;

  std::atomic<aclError> fault{ACL_SUCCESS};
  std::atomic<uint64_t> memory_used{0};
  std::atomic<uint64_t> memory_peak{0};  // the most that was in use
  void NoteMemoryPeak(uint64_t used) {
    uint64_t peak = memory_peak.load(std::memory_order_relaxed);
    while (peak < used && !memory_peak.compare_exchange_weak(peak, used)) {
    }
  }
  std::atomic<uint32_t> pending_updates{0};  // launched task updates that have not run (UPD-08)
  std::atomic<uint64_t> peers{0};            // bit n: may access device n (DEV-14)
  std::atomic<bool> saturates{false};        // streams that are created now do (OVF-03)
  uint32_t overflowed = 0;                   // a result of such a stream was infinite or NaN
  std::atomic<uint32_t> cube_core_limit;
  std::atomic<uint32_t> vector_core_limit;

  std::mutex contexts_mutex;
  std::set<Context*> contexts;  // all that are alive

  // Guarded by the device lock.
  uint32_t use_count = 0;
  bool released_by_force = false;
  bool was_set = false;
  Context* primary = nullptr;
};

// Null when out of range (DEV-04).
Device* DeviceAt(int32_t id);

// The lock of use counts and primary contexts.
std::mutex& DeviceLock();

// DEV-01 to DEV-03; makes the primary context current.
aclError SetDevice(int32_t id);
// DEV-05, DEV-06, DEV-07.
aclError ResetDevice(int32_t id, bool force);

// The device that threads without one use (INIT-04); -1: none.
int32_t DefaultDevice();
void SetDefaultDevice(int32_t id);

}  // namespace acltape::device
