// Aborting all tasks of a device, and repairs of its faults (ERR-10, ERR-11).
#include <time.h>

#include "runtime/device/futex.h"
#include "runtime/device/memory.h"
#include "runtime/device/named_callbacks.h"

using namespace acltape::device;

namespace {

constexpr uint32_t kLongestMs = 36 * 60 * 1000;
constexpr size_t kMostRanges = MAX_MEM_UCE_INFO_ARRAY_SIZE;

NamedCallbacks<aclrtDeviceTaskAbortCallback>& AbortCallbacks() {
  static auto& callbacks = *new NamedCallbacks<aclrtDeviceTaskAbortCallback>;
  return callbacks;
}

aclError FindFaulty(int32_t id, const char* call, Device** device) {
  *device = DeviceAt(id);
  if (*device != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device %d; valid: 0 to %u", call, id,
              GetProfile().devices - 1);
}

// Every callback is called, also after one that fails.
aclError CallAbortCallbacks(int32_t device, aclrtDeviceTaskAbortStage stage, uint32_t timeout,
                            const char* call) {
  int32_t failed = 0;
  AbortCallbacks().ForEach([&](aclrtDeviceTaskAbortCallback callback, void* args) {
    if (const int32_t code = callback(device, stage, timeout, args); code != 0) failed = code;
  });
  if (failed == 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_TASK_ABORT_STOP, "%s: a callback gave %d", call, failed);
}

template <typename Action>
void ForEachStream(Device& device, const Action& action) {
  std::lock_guard contexts_lock(device.contexts_mutex);
  for (Context* context : device.contexts) {
    std::lock_guard lock(context->mutex);
    for (Stream* stream : context->streams) action(*stream);
  }
}

// False when streams of the device still run at the deadline (0: none).
bool WaitUntilIdle(Device& device, int64_t deadline_ns) {
  while (true) {
    bool idle = true;
    ForEachStream(device, [&](const Stream& stream) { idle = idle && stream.Idle(); });
    if (idle) return true;
    if (Exiting() || (deadline_ns != 0 && NowNs() >= deadline_ns)) return false;
    timespec pause{0, 100000};
    nanosleep(&pause, nullptr);
  }
}

void ClearMemoryFault(Device& device) {
  aclError fault = device.fault.load();
  if (IsMemoryFault(fault)) device.fault.compare_exchange_strong(fault, ACL_SUCCESS);
}

}  // namespace

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) {
  ACLTAPE_CALL("aclrtDeviceTaskAbort");
  Device* device = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindFaulty(deviceId, kCall, &device));
  if (timeout > kLongestMs) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: time-out %u ms is above %u", kCall, timeout,
                kLongestMs);
  }
  const int64_t deadline = timeout == 0 ? 0 : NowNs() + int64_t{timeout} * kMillisecond;
  ACLTAPE_RETURN_IF_FAILED(
      CallAbortCallbacks(deviceId, ACL_RT_DEVICE_TASK_ABORT_PRE, timeout, kCall));
  ForEachStream(*device, [](Stream& stream) { stream.Abort(); });
  if (!WaitUntilIdle(*device, deadline)) {
    return Fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "%s: tasks of device %d did not end within %u ms",
                kCall, deviceId, timeout);
  }
  return CallAbortCallbacks(deviceId, ACL_RT_DEVICE_TASK_ABORT_POST, timeout, kCall);
}

aclError aclrtSetDeviceTaskAbortCallback(const char* regName, aclrtDeviceTaskAbortCallback callback,
                                         void* args) {
  ACLTAPE_CALL("aclrtSetDeviceTaskAbortCallback");
  return AbortCallbacks().Set(regName, callback, args, kCall);
}

// The device's memory has no errors; a fault that was asked for names no address.
aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t arraySize,
                            size_t* retSize) {
  ACLTAPE_CALL("aclrtGetMemUceInfo");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(memUceInfoArray, kCall, "memUceInfoArray"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(retSize, kCall, "retSize"));
  Device* device = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindFaulty(deviceId, kCall, &device));
  if (arraySize == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: arraySize is 0", kCall);
  *retSize = 0;
  return ACL_SUCCESS;
}

aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t arraySize) {
  ACLTAPE_CALL("aclrtMemUceRepair");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(memUceInfoArray, kCall, "memUceInfoArray"));
  Device* device = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindFaulty(deviceId, kCall, &device));
  if (arraySize == 0 || arraySize > kMostRanges) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: arraySize %zu is not a number from 1 to %zu",
                kCall, arraySize, kMostRanges);
  }
  for (size_t i = 0; i < arraySize; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckMemory(memUceInfoArray[i].addr, memUceInfoArray[i].len, kCall,
                                         "an address of memUceInfoArray"));
  }
  ClearMemoryFault(*device);
  return ACL_SUCCESS;
}

aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo* errorInfo) {
  ACLTAPE_CALL("aclrtRepairError");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(errorInfo, kCall, "errorInfo"));
  Device* device = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindFaulty(deviceId, kCall, &device));
  if (errorInfo->errorType == ACL_RT_NO_ERROR) return ACL_SUCCESS;
  if (errorInfo->errorType == ACL_RT_ERROR_MEMORY) {
    ClearMemoryFault(*device);
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: errors of type %u cannot be repaired", kCall,
              static_cast<uint32_t>(errorInfo->errorType));
}
