// Devices (section 3 of the rules).
#include "runtime/device/device.h"

#include <cstring>

#include "runtime/device/call.h"
#include "runtime/device/memory.h"
#include "runtime/device/memory_pool.h"
#include "runtime/device/thread_state.h"

using namespace acltape::device;

namespace {

aclError FindDevice(int64_t id, const char* call, Device** device) {
  *device = id <= INT32_MAX ? DeviceAt(static_cast<int32_t>(id)) : nullptr;
  if (*device != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device %lld; valid: 0 to %u", call,
              static_cast<long long>(id), GetProfile().devices - 1);
}

// DEV-14: a device is no peer of itself.
aclError CheckPeer(int32_t device, int32_t peer, const char* call) {
  if (device != peer) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: device %d is no peer of itself", call, device);
}

struct DeviceFact {
  aclrtDevAttr attribute;
  int64_t (*value)(const Device&);
};

// The attributes that aclrtGetDeviceInfo gives. Others are not offered.
constexpr DeviceFact kDeviceFacts[] = {
    {ACL_DEV_ATTR_AICPU_CORE_NUM,
     [](const Device&) -> int64_t { return GetProfile().ai_cpu_cores; }},
    {ACL_DEV_ATTR_AICORE_CORE_NUM,
     [](const Device&) -> int64_t { return GetProfile().cube_cores; }},
    {ACL_DEV_ATTR_CUBE_CORE_NUM, [](const Device&) -> int64_t { return GetProfile().cube_cores; }},
    {ACL_DEV_ATTR_VECTOR_CORE_NUM,
     [](const Device&) -> int64_t { return GetProfile().vector_cores; }},
    {ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE,
     [](const Device&) { return static_cast<int64_t>(GetProfile().memory); }},
    {ACL_DEV_ATTR_L2_CACHE_SIZE,
     [](const Device&) { return static_cast<int64_t>(GetProfile().l2_bytes); }},
    {ACL_DEV_ATTR_PHY_CHIP_ID, [](const Device& device) -> int64_t { return device.id; }},
    {ACL_DEV_ATTR_IS_VIRTUAL, [](const Device&) -> int64_t { return 0; }},
};

// Resource limits per device (DEV-16).
std::atomic<uint32_t>* LimitOf(Device& device, aclrtDevResLimitType type) {
  switch (type) {
    case ACL_RT_DEV_RES_CUBE_CORE:
      return &device.cube_core_limit;
    case ACL_RT_DEV_RES_VECTOR_CORE:
      return &device.vector_core_limit;
  }
  return nullptr;
}

uint32_t MostOf(aclrtDevResLimitType type) {
  return type == ACL_RT_DEV_RES_CUBE_CORE ? GetProfile().cube_cores : GetProfile().vector_cores;
}

aclError CheckLimit(aclrtDevResLimitType type, uint32_t value, const char* call) {
  if (type != ACL_RT_DEV_RES_CUBE_CORE && type != ACL_RT_DEV_RES_VECTOR_CORE) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no resource type %d", call,
                static_cast<int>(type));
  }
  if (value == 0 || value > MostOf(type)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %u is not a number from 1 to %u", call, value,
                MostOf(type));
  }
  return ACL_SUCCESS;
}

aclError Synchronize(Context& context, int64_t timeout_ns) {
  ACLTAPE_RETURN_IF_FAILED(context.Synchronize(timeout_ns));
  TrimPools();
  return ACL_SUCCESS;
}

}  // namespace

aclError aclrtGetDevice(int32_t* deviceId) {
  ACLTAPE_CALL("aclrtGetDevice");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(deviceId, kCall, "deviceId"));
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  *deviceId = context->device().id;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  ACLTAPE_CALL("aclrtGetDeviceCount");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(count, kCall, "count"));
  *count = GetProfile().devices;
  return ACL_SUCCESS;
}

const char* aclrtGetSocName(void) { return GetProfile().soc_name.c_str(); }

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  ACLTAPE_CALL("aclrtGetRunMode");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(runMode, kCall, "runMode"));
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeDevice(void) {
  ACLTAPE_CALL("aclrtSynchronizeDevice");
  Context* context = CurrentContext(kCall);
  return context == nullptr ? ACL_ERROR_RT_CONTEXT_NULL : Synchronize(*context, -1);
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  ACLTAPE_CALL("aclrtSynchronizeDeviceWithTimeout");
  ACLTAPE_RETURN_IF_FAILED(CheckTimeout(timeout, kCall));
  Context* context = CurrentContext(kCall);
  return context == nullptr ? ACL_ERROR_RT_CONTEXT_NULL : Synchronize(*context, TimeoutNs(timeout));
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  ACLTAPE_CALL("aclrtGetPrimaryCtxState");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(active, kCall, "active"));
  if (flags != nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: flags is reserved and must be NULL", kCall);
  }
  Device* device = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDevice(deviceId, kCall, &device));
  std::lock_guard lock(DeviceLock());
  *active = device->primary != nullptr ? 1 : 0;
  return ACL_SUCCESS;
}

aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  ACLTAPE_CALL("aclrtDeviceCanAccessPeer");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(canAccessPeer, kCall, "canAccessPeer"));
  Device* device = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDevice(deviceId, kCall, &device));
  ACLTAPE_RETURN_IF_FAILED(FindDevice(peerDeviceId, kCall, &device));
  ACLTAPE_RETURN_IF_FAILED(CheckPeer(deviceId, peerDeviceId, kCall));
  *canAccessPeer = 1;
  return ACL_SUCCESS;
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  ACLTAPE_CALL("aclrtDeviceEnablePeerAccess");
  if (flags != 0) return Fail(ACL_ERROR_FEATURE_UNSUPPORTED, "%s: flags must be 0", kCall);
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  Device* peer = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDevice(peerDeviceId, kCall, &peer));
  ACLTAPE_RETURN_IF_FAILED(CheckPeer(context->device().id, peerDeviceId, kCall));
  context->device().peers.fetch_or(uint64_t{1} << peerDeviceId);
  return ACL_SUCCESS;
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  ACLTAPE_CALL("aclrtDeviceDisablePeerAccess");
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  Device* peer = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDevice(peerDeviceId, kCall, &peer));
  ACLTAPE_RETURN_IF_FAILED(CheckPeer(context->device().id, peerDeviceId, kCall));
  context->device().peers.fetch_and(~(uint64_t{1} << peerDeviceId));
  return ACL_SUCCESS;
}

// DEV-20: all memory is reachable without a fault here, so only the arguments matter.
aclError aclrtMemP2PMap(void* devPtr, size_t size, int32_t dstDevId, uint64_t flags) {
  ACLTAPE_CALL("aclrtMemP2PMap");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(devPtr, kCall, "devPtr"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, "%s: the size is 0", kCall);
  if (flags != 0) return Fail(ACL_ERROR_INVALID_PARAM, "%s: flags must be 0", kCall);
  Device* user = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDevice(dstDevId, kCall, &user));
  const std::optional<MemoryBlock> block = FindMemory(devPtr);
  if (!IsDevice(block)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not device memory", kCall, devPtr);
  }
  ACLTAPE_RETURN_IF_FAILED(CheckMemory(devPtr, size, kCall, "devPtr"));
  if (block->device == dstDevId || (user->peers.load() >> block->device & 1) != 0) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: device %d may not access the memory of device %d; call "
              "aclrtDeviceEnablePeerAccess first",
              kCall, dstDevId, block->device);
}

aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t* status) {
  ACLTAPE_CALL("aclrtDevicePeerAccessStatus");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(status, kCall, "status"));
  Device* device = nullptr;
  Device* peer = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDevice(deviceId, kCall, &device));
  ACLTAPE_RETURN_IF_FAILED(FindDevice(peerDeviceId, kCall, &peer));
  *status = (device->peers.load() >> peerDeviceId) & 1 ? 1 : 0;
  return ACL_SUCCESS;
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) {
  ACLTAPE_CALL("aclrtQueryDeviceStatus");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(deviceStatus, kCall, "deviceStatus"));
  Device* device = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDevice(deviceId, kCall, &device));
  *deviceStatus = device->fault.load() == ACL_SUCCESS ? ACL_RT_DEVICE_STATUS_NORMAL
                                                      : ACL_RT_DEVICE_STATUS_ABNORMAL;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
  ACLTAPE_CALL("aclrtGetDeviceInfo");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  Device* device = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDevice(deviceId, kCall, &device));
  for (const DeviceFact& fact : kDeviceFacts) {
    if (fact.attribute != attr) continue;
    *value = fact.value(*device);
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: attribute %d is not offered", kCall,
              static_cast<int>(attr));
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t* value) {
  ACLTAPE_CALL("aclrtGetDeviceResLimit");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  Device* device = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDevice(deviceId, kCall, &device));
  ACLTAPE_RETURN_IF_FAILED(CheckLimit(type, 1, kCall));
  *value = LimitOf(*device, type)->load();
  return ACL_SUCCESS;
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) {
  ACLTAPE_CALL("aclrtSetDeviceResLimit");
  Device* device = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDevice(deviceId, kCall, &device));
  ACLTAPE_RETURN_IF_FAILED(CheckLimit(type, value, kCall));
  LimitOf(*device, type)->store(value);
  return ACL_SUCCESS;
}

aclError aclrtResetDeviceResLimit(int32_t deviceId) {
  ACLTAPE_CALL("aclrtResetDeviceResLimit");
  Device* device = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindDevice(deviceId, kCall, &device));
  device->cube_core_limit.store(GetProfile().cube_cores);
  device->vector_core_limit.store(GetProfile().vector_cores);
  return ACL_SUCCESS;
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t* value) {
  ACLTAPE_CALL("aclrtGetStreamResLimit");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  ACLTAPE_RETURN_IF_FAILED(CheckLimit(type, 1, kCall));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  uint32_t own = found->core_limits[type].load();
  *value = own != 0 ? own : LimitOf(found->context().device(), type)->load();
  return ACL_SUCCESS;
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  ACLTAPE_CALL("aclrtSetStreamResLimit");
  ACLTAPE_RETURN_IF_FAILED(CheckLimit(type, value, kCall));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  found->core_limits[type].store(value);
  return ACL_SUCCESS;
}

aclError aclrtResetStreamResLimit(aclrtStream stream) {
  ACLTAPE_CALL("aclrtResetStreamResLimit");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  for (auto& limit : found->core_limits) limit.store(0);
  return ACL_SUCCESS;
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  ACLTAPE_CALL("aclrtUseStreamResInCurrentThread");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  thread_state.resource_stream = HandleRef::To(found->handle());
  return ACL_SUCCESS;
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
  ACLTAPE_CALL("aclrtUnuseStreamResInCurrentThread");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  if (thread_state.resource_stream.block == found->handle()) thread_state.resource_stream = {};
  return ACL_SUCCESS;
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  ACLTAPE_CALL("aclrtGetResInCurrentThread");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  ACLTAPE_RETURN_IF_FAILED(CheckLimit(type, 1, kCall));
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  auto* stream = thread_state.resource_stream.Get<Stream>(HandleKind::kStream);
  uint32_t own = stream != nullptr ? stream->core_limits[type].load() : 0;
  *value = own != 0 ? own : LimitOf(context->device(), type)->load();
  return ACL_SUCCESS;
}
