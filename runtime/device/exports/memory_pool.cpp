// Memory pools (POOL-01 to POOL-12).
#include "runtime/device/memory_pool.h"

#include <algorithm>
#include <iterator>

#include "acl/acl_rt_memory_soma.h"
#include "runtime/device/call.h"

using namespace acltape::device;

namespace {

// POOL-01.
aclError CheckProperties(const aclrtMemPoolProps& properties, const char* call) {
  if (properties.allocType != ACL_MEM_ALLOCATION_TYPE_PINNED) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: allocType %d is not ACL_MEM_ALLOCATION_TYPE_PINNED",
                call, static_cast<int>(properties.allocType));
  }
  if (properties.location.type != ACL_MEM_LOCATION_TYPE_DEVICE) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: a pool lies on a device, not at location type %d",
                call, static_cast<int>(properties.location.type));
  }
  const auto& reserved = properties.reserved;
  if (std::any_of(std::begin(reserved), std::end(reserved), [](auto byte) { return byte != 0; })) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: reserved is not 0", call);
  }
  if (properties.handleType != ACL_MEM_HANDLE_TYPE_NONE &&
      properties.handleType != ACL_MEM_HANDLE_TYPE_POSIX) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no handle type %d", call,
                static_cast<int>(properties.handleType));
  }
  return ACL_SUCCESS;
}

// POOL-01: 0 means all of the device's memory; other sizes are rounded up.
aclError SizeOf(const aclrtMemPoolProps& properties, const char* call, size_t* most) {
  const size_t total = GetProfile().memory / MemoryPool::kUnit * MemoryPool::kUnit;
  if (properties.maxSize > total) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: maxSize %zu is more than the device has", call,
                properties.maxSize);
  }
  const size_t units = (properties.maxSize + MemoryPool::kUnit - 1) / MemoryPool::kUnit;
  *most = properties.maxSize == 0 ? total : units * MemoryPool::kUnit;
  return ACL_SUCCESS;
}

// POOL-11: streams that keep their tasks, or give them to somebody else, have no order in which
// memory could begin and end.
aclError CheckRunsItsTasks(const Stream& stream, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckNotCapturing(stream, call));
  std::lock_guard lock(CaptureLock());
  if (stream.built != nullptr || stream.persistent()) {
    return Fail(
        ACL_ERROR_RT_STREAM_MODEL,
        "%s: the tasks of stream %u are kept for a model, and memory of a pool is no part of "
        "one",
        call, stream.id());
  }
  if (stream.update != nullptr) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, "%s: stream %u updates a task group", call,
                stream.id());
  }
  return ACL_SUCCESS;
}

using Attributes = MemoryPool::Attributes;

// POOL-08, POOL-09: what a program may set an attribute to.
enum class Access : uint8_t { kAny, kZero, kNone };

// An attribute is a number of four or eight bytes.
struct AttributeRow {
  aclrtMemPoolAttr attribute;
  Access access;
  uint32_t Attributes::*small;
  uint64_t Attributes::*large;
};

constexpr AttributeRow kAttributes[] = {
    {ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES, Access::kAny, &Attributes::follow_events,
     nullptr},
    {ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC, Access::kAny, &Attributes::opportunistic, nullptr},
    {ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES, Access::kAny,
     &Attributes::internal_dependencies, nullptr},
    {ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, Access::kAny, nullptr, &Attributes::release_threshold},
    {ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT, Access::kNone, nullptr, &Attributes::reserved},
    {ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH, Access::kZero, nullptr, &Attributes::reserved_high},
    {ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, Access::kNone, nullptr, &Attributes::used},
    {ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH, Access::kZero, nullptr, &Attributes::used_high},
};

aclError FindAttribute(aclrtMemPoolAttr attribute, const char* call, const AttributeRow** row) {
  *row = std::find_if(std::begin(kAttributes), std::end(kAttributes),
                      [&](const AttributeRow& each) { return each.attribute == attribute; });
  if (*row != std::end(kAttributes)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no attribute %d", call,
              static_cast<int>(attribute));
}

aclError SetLarge(MemoryPool& pool, const AttributeRow& row, uint64_t value, const char* call) {
  if (row.access == Access::kZero && value != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: attribute %d can be set to 0 alone", call,
                static_cast<int>(row.attribute));
  }
  if (value > pool.most()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %llu is more than the %zu bytes of the pool", call,
                static_cast<unsigned long long>(value), pool.most());
  }
  pool.attributes.*row.large = value;
  return ACL_SUCCESS;
}

}  // namespace

aclError aclrtMemPoolCreate(aclrtMemPool* memPool, const aclrtMemPoolProps* poolProps) {
  ACLTAPE_CALL("aclrtMemPoolCreate");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(memPool, kCall, "memPool"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(poolProps, kCall, "poolProps"));
  ACLTAPE_RETURN_IF_FAILED(CheckProperties(*poolProps, kCall));
  if (CurrentContext(kCall) == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  Device* device = DeviceAt(static_cast<int32_t>(poolProps->location.id));
  if (device == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device %u", kCall,
                poolProps->location.id);
  }
  size_t most = 0;
  ACLTAPE_RETURN_IF_FAILED(SizeOf(*poolProps, kCall, &most));
  return CreatePool(*device, most, memPool);
}

aclError aclrtMemPoolDestroy(const aclrtMemPool memPool) {
  ACLTAPE_CALL("aclrtMemPoolDestroy");
  return DestroyPool(memPool, kCall);
}

aclError aclrtMemPoolSetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void* value) {
  ACLTAPE_CALL("aclrtMemPoolSetAttr");
  std::shared_ptr<MemoryPool> pool;
  ACLTAPE_RETURN_IF_FAILED(FindPool(memPool, kCall, &pool));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  const AttributeRow* row = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAttribute(attr, kCall, &row));
  if (row->access == Access::kNone) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: attribute %d can only be read", kCall,
                static_cast<int>(attr));
  }
  std::lock_guard lock(PoolLock());
  if (row->large != nullptr) {
    return SetLarge(*pool, *row, *static_cast<const uint64_t*>(value), kCall);
  }
  pool->attributes.*row->small = *static_cast<const uint32_t*>(value) != 0 ? 1 : 0;
  return ACL_SUCCESS;
}

aclError aclrtMemPoolGetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void* value) {
  ACLTAPE_CALL("aclrtMemPoolGetAttr");
  std::shared_ptr<MemoryPool> pool;
  ACLTAPE_RETURN_IF_FAILED(FindPool(memPool, kCall, &pool));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  const AttributeRow* row = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAttribute(attr, kCall, &row));
  std::lock_guard lock(PoolLock());
  if (row->large != nullptr) {
    *static_cast<uint64_t*>(value) = pool->attributes.*row->large;
  } else {
    *static_cast<uint32_t*>(value) = pool->attributes.*row->small;
  }
  return ACL_SUCCESS;
}

aclError aclrtMemPoolMallocAsync(void** ptr, size_t size, aclrtMemPool memPool,
                                 aclrtStream stream) {
  ACLTAPE_CALL("aclrtMemPoolMallocAsync");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(ptr, kCall, "ptr"));
  std::shared_ptr<MemoryPool> pool;
  ACLTAPE_RETURN_IF_FAILED(FindPool(memPool, kCall, &pool));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &found));
  if (size == 0) return ACL_SUCCESS;
  ACLTAPE_RETURN_IF_FAILED(CheckRunsItsTasks(*found, kCall));
  return AllocateInStreamOrder(pool, *found, size, kCall, ptr);
}

aclError aclrtMemPoolFreeAsync(void* ptr, aclrtStream stream) {
  ACLTAPE_CALL("aclrtMemPoolFreeAsync");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(ptr, kCall, "ptr"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &found));
  ACLTAPE_RETURN_IF_FAILED(CheckRunsItsTasks(*found, kCall));
  return FreeInStreamOrder(ptr, *found, kCall);
}

aclError aclrtMemPoolTrimTo(aclrtMemPool memPool, size_t minBytesToKeep) {
  ACLTAPE_CALL("aclrtMemPoolTrimTo");
  std::shared_ptr<MemoryPool> pool;
  ACLTAPE_RETURN_IF_FAILED(FindPool(memPool, kCall, &pool));
  if (minBytesToKeep > pool->most()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu is more than the %zu bytes of the pool", kCall,
                minBytesToKeep, pool->most());
  }
  std::lock_guard lock(PoolLock());
  pool->Trim(minBytesToKeep);
  return ACL_SUCCESS;
}
