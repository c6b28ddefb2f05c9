#include "runtime/device/device.h"

#include <array>
#include <utility>

#include "runtime/device/context.h"
#include "runtime/device/error.h"
#include "runtime/device/named_callbacks.h"
#include "runtime/device/thread_state.h"

namespace acltape::device {
namespace {

constexpr aclError kDeviceFaults[] = {
    ACL_ERROR_RT_LOST_HEARTBEAT,
    ACL_ERROR_RT_DEVICE_MEM_ERROR,
    ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR,
    ACL_ERROR_RT_SUSPECT_DEVICE_MEM_ERROR,
    ACL_ERROR_RT_LINK_ERROR,
};

std::atomic<int32_t> default_device{-1};

// Never destroyed (INIT-09).
std::array<Device*, 64>& Devices() {
  static std::array<Device*, 64>& devices = *[] {
    auto* created = new std::array<Device*, 64>{};
    for (uint32_t id = 0; id < GetProfile().devices; ++id) {
      (*created)[id] = new Device(static_cast<int32_t>(id));
    }
    return created;
  }();
  return devices;
}

}  // namespace

bool IsDeviceFault(aclError code) {
  for (aclError fault : kDeviceFaults) {
    if (fault == code) return true;
  }
  return false;
}

bool IsMemoryFault(aclError code) {
  return code == ACL_ERROR_RT_DEVICE_MEM_ERROR || code == ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR ||
         code == ACL_ERROR_RT_SUSPECT_DEVICE_MEM_ERROR;
}

Device::Device(int32_t number)
    : id(number),
      stream_numbers(GetProfile().streams),
      event_numbers(GetProfile().events),
      notify_numbers(GetProfile().notifies),
      model_numbers(GetProfile().models),
      queues(GetProfile().queues),
      cube_core_limit(GetProfile().cube_cores),
      vector_core_limit(GetProfile().vector_cores) {}

Device* DeviceAt(int32_t id) {
  return id >= 0 && static_cast<uint32_t>(id) < GetProfile().devices
             ? Devices()[static_cast<size_t>(id)]
             : nullptr;
}

std::mutex& DeviceLock() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

int32_t DefaultDevice() { return default_device.load(); }
void SetDefaultDevice(int32_t id) { default_device.store(id); }

aclError SetDevice(int32_t id) {
  Device* device = DeviceAt(id);
  if (device == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID,
                "aclrtSetDevice: there is no device %d; valid: 0 to %u", id,
                GetProfile().devices - 1);
  }
  bool created = false;
  {
    std::lock_guard lock(DeviceLock());
    created = device->primary == nullptr;
    if (created) device->primary = Context::Create(*device, true);
    if (device->primary == nullptr) {
      return Fail(ACL_ERROR_RT_NO_STREAM_RESOURCE,
                  "aclrtSetDevice: device %d has no stream left for a default stream", id);
    }
    ++device->use_count;
    device->was_set = true;
    device->released_by_force = false;
    SetCurrentContext(device->primary);
  }
  if (!created) return ACL_SUCCESS;
  if (const Context* context = CurrentContext(nullptr)) {
    CallStreamStateCallbacks(context->default_stream(), ACL_RT_STREAM_STATE_CREATE_POST);
  }
  return ACL_SUCCESS;
}

aclError ResetDevice(int32_t id, bool force) {
  const char* call = force ? "aclrtResetDeviceForce" : "aclrtResetDevice";
  Device* device = DeviceAt(id);
  if (device == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device %d; valid: 0 to %u", call,
                id, GetProfile().devices - 1);
  }
  if (Exiting()) return ACL_SUCCESS;  // a late destructor: the process is going away anyway
  Context* released = nullptr;
  {
    std::lock_guard lock(DeviceLock());
    bool refused = force ? !device->was_set || device->released_by_force : device->use_count == 0;
    if (refused) {
      return Fail(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR,
                  "%s: device %d is not set, or was reset as often as it was set", call, id);
    }
    if (!force && --device->use_count != 0) return ACL_SUCCESS;
    device->use_count = 0;
    device->released_by_force = force;
    released = std::exchange(device->primary, nullptr);
    // From here on the context is nobody's current one.
    if (released != nullptr) released->tearing_down.store(true);
  }
  if (released != nullptr) released->Close();
  device->fault.store(ACL_SUCCESS);
  return ACL_SUCCESS;
}

}  // namespace acltape::device
