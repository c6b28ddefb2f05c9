// Copies whose addresses lie in device memory, and maintenance of the cache (CPY-14, CPY-15,
// CMO-01).
#include <cstring>

#include "runtime/device/call.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

// The content of a descriptor in device memory.
struct CopyDescriptor {
  static constexpr uint64_t kMagic = 0x79706F63456C7061;
  uint64_t magic;
  void* to;
  const void* from;
  size_t bytes;
};

struct CacheDescriptor {
  static constexpr uint64_t kMagic = 0x65686361634C7061;
  uint64_t magic;
  const void* first;
  size_t bytes;
};

aclError CheckInnerKind(aclrtMemcpyKind kind, const char* call) {
  if (kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "%s: copy kind %d is not offered; only copies within a device are", call,
              static_cast<int>(kind));
}

aclError CheckDeviceMemory(const void* address, size_t bytes, const char* call, const char* name) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(address, call, name));
  ACLTAPE_RETURN_IF_FAILED(CheckMemory(address, bytes, call, name));
  if (IsDevice(FindMemory(address))) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %s %p is no device memory", call, name, address);
}

aclError CopyNow(void* to, const void* from, size_t bytes, const char* task) {
  ACLTAPE_RETURN_IF_FAILED(CheckTaskMemory(to, bytes, ACL_ERROR_RT_SYS_DMA, task, "dst"));
  ACLTAPE_RETURN_IF_FAILED(
      CheckTaskMemory(from, bytes, ACL_ERROR_RT_SYS_DMA, task, "src", MemoryAccess::kRead));
  std::memmove(to, from, bytes);
  return ACL_SUCCESS;
}

// The descriptor at an address of device memory, when the task runs.
template <typename Descriptor>
aclError ReadDescriptor(const void* at, const char* task, Descriptor* descriptor) {
  ACLTAPE_RETURN_IF_FAILED(
      CheckTaskMemory(at, sizeof(Descriptor), ACL_ERROR_RT_SYS_DMA, task, "its descriptor"));
  std::memcpy(descriptor, at, sizeof(Descriptor));
  if (descriptor->magic == Descriptor::kMagic) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_SYS_DMA, "%s: there is no descriptor at %p", task, at);
}

struct DescribedPayload {
  const void* descriptor;
};

aclError RunDescribedCopy(void* argument) {
  constexpr const char* kTask = "a copy by descriptor";
  CopyDescriptor copy;
  ACLTAPE_RETURN_IF_FAILED(
      ReadDescriptor(static_cast<DescribedPayload*>(argument)->descriptor, kTask, &copy));
  return CopyNow(copy.to, copy.from, copy.bytes, kTask);
}

aclError RunDescribedPrefetch(void* argument) {
  constexpr const char* kTask = "a prefetch by descriptor";
  CacheDescriptor range;
  ACLTAPE_RETURN_IF_FAILED(
      ReadDescriptor(static_cast<DescribedPayload*>(argument)->descriptor, kTask, &range));
  return CheckTaskMemory(range.first, range.bytes, ACL_ERROR_RT_SYS_DMA, kTask, "src");
}

struct OffsetPayload {
  void** to;
  const void** from;
  size_t to_offset;
  size_t from_offset;
  size_t bytes;
};

aclError RunOffsetCopy(void* argument) {
  constexpr const char* kTask = "a copy with offsets";
  const auto* copy = static_cast<OffsetPayload*>(argument);
  for (const void* place :
       {static_cast<const void*>(copy->to), static_cast<const void*>(copy->from)}) {
    ACLTAPE_RETURN_IF_FAILED(CheckTaskMemory(place, sizeof(void*), ACL_ERROR_RT_SYS_DMA, kTask,
                                             "the place of an address"));
  }
  char* to = nullptr;
  const char* from = nullptr;
  std::memcpy(&to, copy->to, sizeof(to));
  std::memcpy(&from, copy->from, sizeof(from));
  return CopyNow(to + copy->to_offset, from + copy->from_offset, copy->bytes, kTask);
}

struct PrefetchPayload {
  const void* first;
  size_t bytes;
};

// The cache of the host is nobody's business; only the memory is looked at.
aclError RunPrefetch(void* argument) {
  const auto* range = static_cast<PrefetchPayload*>(argument);
  return CheckTaskMemory(range->first, range->bytes, ACL_ERROR_RT_SYS_DMA, "a prefetch", "src");
}

aclError CheckCacheOperation(aclrtCmoType type, const char* call) {
  if (type == ACL_RT_CMO_TYPE_PREFETCH) return ACL_SUCCESS;
  if (type <= ACL_RT_CMO_TYPE_FLUSH) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: only prefetching is offered, not type %u",
                call, static_cast<uint32_t>(type));
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no operation %u", call,
              static_cast<uint32_t>(type));
}

}  // namespace

aclError aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t* descSize) {
  ACLTAPE_CALL("aclrtGetMemcpyDescSize");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(descSize, kCall, "descSize"));
  ACLTAPE_RETURN_IF_FAILED(CheckInnerKind(kind, kCall));
  *descSize = 64;
  return ACL_SUCCESS;
}

aclError aclrtSetMemcpyDesc(void* desc, aclrtMemcpyKind kind, void* srcAddr, void* dstAddr,
                            size_t count, void* config) {
  ACLTAPE_CALL("aclrtSetMemcpyDesc");
  ACLTAPE_RETURN_IF_FAILED(CheckInnerKind(kind, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckDeviceMemory(desc, sizeof(CopyDescriptor), kCall, "desc"));
  if (count == 0 || config != nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: count is 0, or config is not NULL", kCall);
  }
  ACLTAPE_RETURN_IF_FAILED(CheckDeviceMemory(srcAddr, count, kCall, "srcAddr"));
  ACLTAPE_RETURN_IF_FAILED(CheckDeviceMemory(dstAddr, count, kCall, "dstAddr"));
  const CopyDescriptor copy{CopyDescriptor::kMagic, dstAddr, srcAddr, count};
  std::memcpy(desc, &copy, sizeof(copy));
  return ACL_SUCCESS;
}

aclError aclrtMemcpyAsyncWithDesc(void* desc, aclrtMemcpyKind kind, aclrtStream stream) {
  ACLTAPE_CALL("aclrtMemcpyAsyncWithDesc");
  ACLTAPE_RETURN_IF_FAILED(CheckInnerKind(kind, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckDeviceMemory(desc, sizeof(CopyDescriptor), kCall, "desc"));
  return SubmitPayload(stream, kCall, TaskKind::kCopy, "MEMCPY_ASYNC_WITH_DESC",
                       DescribedPayload{desc}, RunDescribedCopy);
}

aclError aclrtMemcpyAsyncWithOffset(void** dst, size_t destMax, size_t dstDataOffset,
                                    const void** src, size_t count, size_t srcDataOffset,
                                    aclrtMemcpyKind kind, aclrtStream stream) {
  ACLTAPE_CALL("aclrtMemcpyAsyncWithOffset");
  ACLTAPE_RETURN_IF_FAILED(CheckInnerKind(kind, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckDeviceMemory(dst, sizeof(void*), kCall, "dst"));
  ACLTAPE_RETURN_IF_FAILED(CheckDeviceMemory(src, sizeof(void*), kCall, "src"));
  if (count == 0 || count > destMax) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes are none, or do not fit into %zu", kCall,
                count, destMax);
  }
  return SubmitPayload(stream, kCall, TaskKind::kCopy, "MEMCPY_ASYNC_WITH_OFFSET",
                       OffsetPayload{dst, src, dstDataOffset, srcDataOffset, count}, RunOffsetCopy);
}

aclError aclrtCmoAsync(void* src, size_t size, aclrtCmoType cmoType, aclrtStream stream) {
  ACLTAPE_CALL("aclrtCmoAsync");
  ACLTAPE_RETURN_IF_FAILED(CheckCacheOperation(cmoType, kCall));
  if (size == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the size is 0", kCall);
  ACLTAPE_RETURN_IF_FAILED(CheckDeviceMemory(src, size, kCall, "src"));
  return SubmitPayload(stream, kCall, TaskKind::kInternal, "CACHE_PREFETCH",
                       PrefetchPayload{src, size}, RunPrefetch);
}

aclError aclrtCmoGetDescSize(size_t* size) {
  ACLTAPE_CALL("aclrtCmoGetDescSize");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(size, kCall, "size"));
  *size = 64;
  return ACL_SUCCESS;
}

aclError aclrtCmoSetDesc(void* cmoDesc, void* src, size_t size) {
  ACLTAPE_CALL("aclrtCmoSetDesc");
  ACLTAPE_RETURN_IF_FAILED(CheckDeviceMemory(cmoDesc, sizeof(CacheDescriptor), kCall, "cmoDesc"));
  if (size == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the size is 0", kCall);
  ACLTAPE_RETURN_IF_FAILED(CheckDeviceMemory(src, size, kCall, "src"));
  const CacheDescriptor range{CacheDescriptor::kMagic, src, size};
  std::memcpy(cmoDesc, &range, sizeof(range));
  return ACL_SUCCESS;
}

aclError aclrtCmoAsyncWithDesc(void* cmoDesc, aclrtCmoType cmoType, aclrtStream stream,
                               const void* reserve) {
  ACLTAPE_CALL("aclrtCmoAsyncWithDesc");
  ACLTAPE_RETURN_IF_FAILED(CheckCacheOperation(cmoType, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckDeviceMemory(cmoDesc, sizeof(CacheDescriptor), kCall, "cmoDesc"));
  if (reserve != nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: reserve must be NULL", kCall);
  }
  return SubmitPayload(stream, kCall, TaskKind::kInternal, "CACHE_PREFETCH",
                       DescribedPayload{cmoDesc}, RunDescribedPrefetch);
}
