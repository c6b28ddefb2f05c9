// Memory (section 9 of the rules); copies are in copy.cpp, mapped ranges in mapped_memory.cpp.
#include "runtime/device/memory.h"

#include "acl/invoke/memory_padding.h"
#include "runtime/device/call.h"
#include "runtime/device/memory_pool.h"

using namespace acltape::device;

namespace {

using acltape::acl::kMemoryPadding;

aclError Allocate(void** pointer, size_t size, size_t padding, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pointer, call, "devPtr"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, "%s: the size is 0", call);
  *pointer = nullptr;  // MEM-01
  ACLTAPE_RETURN_IF_REFUSED(call);
  Context* context = CurrentContext(call);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  Device& device = context->device();
  std::string why;
  *pointer = AllocateDeviceMemory(device, size, padding, call, &why);
  // POOL-07
  if (*pointer == nullptr && EmptyPools(device)) {
    why.clear();
    *pointer = AllocateDeviceMemory(device, size, padding, call, &why);
  }
  if (*pointer != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
              "%s: no room for %zu bytes; device %d has %llu bytes, of which %llu are in use%s%s",
              call, size, device.id, static_cast<unsigned long long>(GetProfile().memory),
              static_cast<unsigned long long>(device.memory_used.load()), why.empty() ? "" : "; ",
              why.c_str());
}

// The attributes themselves change nothing here, but a number of them needs an array.
aclError CheckConfig(const aclrtMallocConfig* config, const char* call) {
  if (config == nullptr || config->numAttrs == 0 || config->attrs != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: cfg tells of %zu attributes, and its array is NULL",
              call, config->numAttrs);
}

aclError AllocateHost(void** pointer, size_t size, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pointer, call, "hostPtr"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, "%s: the size is 0", call);
  *pointer = nullptr;
  ACLTAPE_RETURN_IF_REFUSED(call);
  if (CurrentContext(call) == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  std::string why;
  *pointer = AllocatePinnedMemory(size, call, &why);
  if (*pointer != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host has no room for %zu bytes%s%s", call,
              size, why.empty() ? "" : "; ", why.c_str());
}

aclError Free(void* pointer, MemoryKind kind, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pointer, call, "the address"));
  if (FreeMemory(pointer, kind)) return ACL_SUCCESS;
  if (kind == MemoryKind::kDevice && FreePooledNow(pointer)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not the beginning of %s memory in use", call,
              pointer, kind == MemoryKind::kDevice ? "device" : "pinned host");
}

aclError Register(void* pointer, uint64_t size, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pointer, call, "ptr"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, "%s: the size is 0", call);
  if (RegisterHostMemory(pointer, size)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
              "%s: a part of the %llu bytes at %p is registered already, or it lies across pinned "
              "memory",
              call, static_cast<unsigned long long>(size), pointer);
}

}  // namespace

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  bool gigabyte_pages =
      policy == ACL_MEM_MALLOC_HUGE1G_ONLY || policy == ACL_MEM_MALLOC_HUGE1G_ONLY_P2P;
  return Allocate(devPtr, size, gigabyte_pages ? 0 : kMemoryPadding, "aclrtMalloc");
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return Allocate(devPtr, size, 0, "aclrtMallocAlign32");
}

aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return Allocate(devPtr, size, kMemoryPadding, "aclrtMallocCached");
}

aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy,
                            aclrtMallocConfig* cfg) {
  ACLTAPE_RETURN_IF_FAILED(CheckConfig(cfg, "aclrtMallocWithCfg"));
  return Allocate(devPtr, size, kMemoryPadding, "aclrtMallocWithCfg");
}

aclError aclrtMallocForTaskScheduler(void** devPtr, size_t size, aclrtMemMallocPolicy,
                                     aclrtMallocConfig* cfg) {
  ACLTAPE_RETURN_IF_FAILED(CheckConfig(cfg, "aclrtMallocForTaskScheduler"));
  return Allocate(devPtr, size, kMemoryPadding, "aclrtMallocForTaskScheduler");
}

// Flush and invalidate concern the cache of memory that host and device share; here they share all.
aclError aclrtMemFlush(void* devPtr, size_t size) {
  ACLTAPE_CALL("aclrtMemFlush");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(devPtr, kCall, "devPtr"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, "aclrtMemFlush: the size is 0");
  return CheckMemory(devPtr, size, kCall, "devPtr");
}

aclError aclrtMemInvalidate(void* devPtr, size_t size) {
  ACLTAPE_CALL("aclrtMemInvalidate");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(devPtr, kCall, "devPtr"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, "aclrtMemInvalidate: the size is 0");
  return CheckMemory(devPtr, size, kCall, "devPtr");
}

aclError aclrtFree(void* devPtr) {
  ACLTAPE_CALL("aclrtFree");
  return Free(devPtr, MemoryKind::kDevice, kCall);
}

aclError aclrtFreeWithDevSync(void* devPtr) {
  ACLTAPE_CALL("aclrtFreeWithDevSync");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(devPtr, kCall, "devPtr"));
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  ACLTAPE_RETURN_IF_FAILED(context->Synchronize(-1));
  return Free(devPtr, MemoryKind::kDevice, kCall);
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return AllocateHost(hostPtr, size, "aclrtMallocHost");
}

aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig* cfg) {
  ACLTAPE_RETURN_IF_FAILED(CheckConfig(cfg, "aclrtMallocHostWithCfg"));
  return AllocateHost(ptr, size, "aclrtMallocHostWithCfg");
}

aclError aclrtFreeHost(void* hostPtr) {
  ACLTAPE_CALL("aclrtFreeHost");
  return Free(hostPtr, MemoryKind::kPinned, kCall);
}

aclError aclrtFreeHostWithDevSync(void* hostPtr) {
  ACLTAPE_CALL("aclrtFreeHostWithDevSync");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(hostPtr, kCall, "hostPtr"));
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  ACLTAPE_RETURN_IF_FAILED(context->Synchronize(-1));
  return Free(hostPtr, MemoryKind::kPinned, kCall);
}

aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type, void** devPtr) {
  ACLTAPE_CALL("aclrtHostRegister");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(devPtr, kCall, "devPtr"));
  if (type != ACL_HOST_REGISTER_MAPPED && type != ACL_HOST_REGISTER_IOMEMORY &&
      type != ACL_HOST_REGISTER_READONLY) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no register type %d", kCall,
                static_cast<int>(type));
  }
  ACLTAPE_RETURN_IF_FAILED(Register(ptr, size, kCall));
  *devPtr = ptr;
  return ACL_SUCCESS;
}

aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t) {
  ACLTAPE_CALL("aclrtHostRegisterV2");
  return Register(ptr, size, kCall);
}

aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag) {
  ACLTAPE_CALL("aclrtHostGetDevicePointer");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pHost, kCall, "pHost"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pDevice, kCall, "pDevice"));
  if (flag != 0) return Fail(ACL_ERROR_INVALID_PARAM, "%s: flag %u is not 0", kCall, flag);
  auto block = FindMemory(pHost);
  if (!block || IsDevice(block)) {
    return Fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "%s: %p is not registered host memory", kCall,
                pHost);
  }
  *pDevice = pHost;
  return ACL_SUCCESS;
}

// MEM-16: units that this product has reach registered memory; the last two belong to newer ones.
aclError aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType hacType,
                                     aclrtHostMemMapCapability* capabilities) {
  ACLTAPE_CALL("aclrtHostMemMapCapabilities");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(capabilities, kCall, "capabilities"));
  if (DeviceAt(static_cast<int32_t>(deviceId)) == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device %u", kCall, deviceId);
  }
  if (hacType > ACL_RT_HAC_TYPE_CCU) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no unit %d", kCall,
                static_cast<int>(hacType));
  }
  *capabilities = hacType < ACL_RT_HAC_TYPE_UDMA ? ACL_RT_HOST_MEM_MAP_SUPPORTED
                                                 : ACL_RT_HOST_MEM_MAP_NOT_SUPPORTED;
  return ACL_SUCCESS;
}

aclError aclrtHostUnregister(void* ptr) {
  ACLTAPE_CALL("aclrtHostUnregister");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(ptr, kCall, "ptr"));
  if (UnregisterHostMemory(ptr)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, "%s: %p was not registered", kCall, ptr);
}

aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  ACLTAPE_CALL("aclrtPointerGetAttributes");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(ptr, kCall, "ptr"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(attributes, kCall, "attributes"));
  *attributes = {};
  auto block = FindMemory(ptr);
  attributes->location.type = !block            ? ACL_MEM_LOCATION_TYPE_UNREGISTERED
                              : IsDevice(block) ? ACL_MEM_LOCATION_TYPE_DEVICE
                                                : ACL_MEM_LOCATION_TYPE_HOST;
  attributes->location.id = IsDevice(block) ? static_cast<uint32_t>(block->device) : 0;
  attributes->pageSize = 4096;
  return ACL_SUCCESS;
}

aclError aclrtMemGetAddressRange(void* ptr, void** pbase, size_t* psize) {
  ACLTAPE_CALL("aclrtMemGetAddressRange");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(ptr, kCall, "ptr"));
  auto block = FindMemory(ptr);
  if (!IsDevice(block)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not device memory", kCall, ptr);
  }
  if (pbase != nullptr) *pbase = block->begin;
  if (psize != nullptr) *psize = block->bytes;
  return ACL_SUCCESS;
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  ACLTAPE_CALL("aclrtGetMemInfo");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(free, kCall, "free"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(total, kCall, "total"));
  // MEM-09: the device has one kind of memory, which answers for all.
  if (attr > ACL_MEM_P2P_HUGE1G) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no memory kind %d", kCall,
                static_cast<int>(attr));
  }
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  *total = GetProfile().memory;
  *free = GetProfile().memory - context->device().memory_used.load();
  return ACL_SUCCESS;
}
