// Virtual memory: reserve, create, map, use, unmap, free, release (MEM-08); physical memory between
// processes (IPC-05).
//
// Physical memory is a file without a name; mapping it puts the file's pages at the reserved
// addresses, so two mappings of one handle share their bytes.
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>

#include "runtime/device/call.h"
#include "runtime/device/host_backing.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

constexpr size_t kGranularity = size_t{2} << 20;

// Physical memory lives as long as a handle or a mapping of it.
struct Physical {
  ~Physical() {
    device->memory_used.fetch_sub(accounted);
    if (claimed) ReturnHostMemory(accounted);
  }

  std::unique_ptr<SharedFile> file = nullptr;
  size_t bytes = 0;
  size_t accounted = 0;  // bytes of device memory; a process that shares its own accounts for them
  Device* device = nullptr;
  aclrtPhysicalMemProp prop = {};
  bool claimed = false;  // the bytes are ones of the host's (host_backing.h)
  bool exported = false;
  HandleBlock* handle = nullptr;
  uint32_t holders = 0;                      // calls of aclrtFreePhysical that are due
  std::shared_ptr<Physical> self = nullptr;  // while there is a handle
};

struct Mapping {
  size_t bytes;
  std::shared_ptr<Physical> physical;
  std::map<int32_t, uint64_t> access = {};  // flags by device, as aclrtMemSetAccess set them
};

struct Ranges {
  std::mutex mutex;
  std::map<char*, size_t> reserved;
  std::map<char*, Mapping> mapped;
};

Ranges& GetRanges() {
  static Ranges& ranges = *new Ranges;
  return ranges;
}

// Kinds of memory that a device of this product has. Others exist in the interface: DDR is memory
// of other products, and the P2P kinds of HBM belong to aclrtMalloc alone.
bool KindExists(aclrtMemAttr kind, aclrtMemLocationType location) {
  switch (kind) {
    case ACL_DDR_MEM:
    case ACL_DDR_MEM_HUGE:
    case ACL_DDR_MEM_NORMAL:
    case ACL_DDR_MEM_P2P_HUGE:
    case ACL_DDR_MEM_P2P_NORMAL:
      return location != ACL_MEM_LOCATION_TYPE_DEVICE;
    case ACL_HBM_MEM_P2P_HUGE:
    case ACL_HBM_MEM_P2P_NORMAL:
    case ACL_HBM_MEM_P2P_HUGE1G:
      return false;
    default:
      return kind >= ACL_DDR_MEM && kind <= ACL_MEM_P2P_HUGE1G;
  }
}

// MEM-08: what the properties ask for exists in the interface.
aclError CheckProperties(const aclrtPhysicalMemProp& prop, const char* call) {
  if (!KindExists(prop.memAttr, prop.location.type)) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no memory of kind %d at location type %d",
                call, static_cast<int>(prop.memAttr), static_cast<int>(prop.location.type));
  }
  return ACL_SUCCESS;
}

aclError CheckSize(size_t size, const char* call) {
  if (size != 0 && size % kGranularity == 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %zu bytes are no positive multiple of %zu", call,
              size, kGranularity);
}

aclError FindPhysical(aclrtDrvMemHandle handle, const char* call, Physical** physical) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "handle"));
  *physical = ObjectOf<Physical>(handle, HandleKind::kPhysical);
  if (*physical != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is not a live memory handle", call, handle);
}

std::mutex& HoldersLock() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

// Gives the program one more hold on the memory, by a handle that all its holds share. False when
// no handle is left.
bool Hold(const std::shared_ptr<Physical>& physical) {
  std::lock_guard lock(HoldersLock());
  if (physical->handle == nullptr) {
    physical->handle = AllocateHandle(HandleKind::kPhysical, physical.get());
    if (physical->handle == nullptr) return false;
    physical->self = physical;
  }
  ++physical->holders;
  return true;
}

void LetGo(Physical& physical) {
  std::shared_ptr<Physical> last;  // ends the memory outside of the lock
  std::lock_guard lock(HoldersLock());
  if (--physical.holders != 0) return;
  WipeHandle(physical.handle);
  physical.handle = nullptr;
  last = std::move(physical.self);
}

// The mapping that begins at `address`; null when there is none. Under the lock of the ranges.
Mapping* MappingAt(Ranges& ranges, const void* address) {
  auto found = ranges.mapped.find(static_cast<char*>(const_cast<void*>(address)));
  return found != ranges.mapped.end() ? &found->second : nullptr;
}

aclError RefuseUnmapped(const void* address, const char* call) {
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a mapped address", call, address);
}

// The reserved range that holds all of [begin, begin + bytes).
bool Reserved(const Ranges& ranges, char* begin, size_t bytes) {
  auto after = ranges.reserved.upper_bound(begin);
  if (after == ranges.reserved.begin()) return false;
  auto range = std::prev(after);
  return begin + bytes <= range->first + range->second;
}

bool Overlaps(const Ranges& ranges, char* begin, size_t bytes) {
  auto after = ranges.mapped.lower_bound(begin);
  if (after != ranges.mapped.end() && after->first < begin + bytes) return true;
  if (after == ranges.mapped.begin()) return false;
  auto before = std::prev(after);
  return before->first + before->second.bytes > begin;
}

// Shareable handles of memory that this process exports (IPC-05).
struct PhysicalExports {
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<Physical>> by_handle;
};

PhysicalExports& GetPhysicalExports() {
  static PhysicalExports& exports = *new PhysicalExports;
  return exports;
}

aclError ExportPhysical(aclrtDrvMemHandle handle, uint64_t flags, uint64_t* shareable,
                        const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(shareable, call, "shareableHandle"));
  if (flags > ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flags %llu is not 0 or 1", call,
                static_cast<unsigned long long>(flags));
  }
  Physical* physical = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindPhysical(handle, call, &physical));
  const std::optional<uint64_t> packed = physical->file->name().Packed();
  PhysicalExports& exports = GetPhysicalExports();
  std::lock_guard lock(exports.mutex);
  if (physical->exported || !packed) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: the memory is of another process, or has a shareable handle already", call);
  }
  physical->exported = true;
  physical->file->Publish(flags != 0);
  exports.by_handle[*packed] = physical->self;
  *shareable = *packed;
  return ACL_SUCCESS;
}

std::shared_ptr<Physical> Exported(uint64_t shareable) {
  PhysicalExports& exports = GetPhysicalExports();
  std::lock_guard lock(exports.mutex);
  auto found = exports.by_handle.find(shareable);
  return found != exports.by_handle.end() ? found->second.lock() : nullptr;
}

aclError AllowPhysical(uint64_t shareable, const int32_t* processes, size_t count,
                       const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(processes, call, "pid"));
  const std::shared_ptr<Physical> physical = Exported(shareable);
  if (physical == nullptr || count == 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: this process has exported no such handle, or pidNum is 0", call);
  }
  if (physical->file->Allow(processes, count)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: at most %zu processes can be allowed", call,
              SharedFile::kMostProcesses);
}

aclError ImportPhysical(uint64_t shareable, int32_t device, aclrtDrvMemHandle* handle,
                        const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "handle"));
  if (DeviceAt(device) == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device %d", call, device);
  }
  if (Exported(shareable) != nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: this process has exported the handle itself; it is for other processes", call);
  }
  const SharedName name = SharedName::FromPacked(shareable);
  auto physical = std::make_shared<Physical>();
  physical->device = DeviceAt(device);
  physical->file = SharedFile::Open(name);
  if (physical->file == nullptr || !physical->file->AdmitsUs()) {
    return Fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                "%s: process %u has ended, has freed the memory, or has not allowed process %d",
                call, name.process, static_cast<int>(getpid()));
  }
  physical->bytes = physical->file->bytes();
  physical->exported = true;  // it cannot be exported once more
  physical->prop.memAttr = ACL_HBM_MEM_HUGE;
  physical->prop.location = {static_cast<uint32_t>(device), ACL_MEM_LOCATION_TYPE_DEVICE};
  if (!Hold(physical)) {
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: no handle left", call);
  }
  *handle = physical->handle;
  return ACL_SUCCESS;
}

// IPC-05: between servers there is no memory to share on this product.
aclError CheckShareType(aclrtMemSharedHandleType type, const char* call) {
  if (type == ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT) return ACL_SUCCESS;
  if (type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: memory is shared within one server", call);
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no share type %d", call,
              static_cast<int>(type));
}

}  // namespace

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop,
                                          aclrtMemGranularityOptions option, size_t* granularity) {
  ACLTAPE_CALL("aclrtMemGetAllocationGranularity");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(prop, kCall, "prop"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(granularity, kCall, "granularity"));
  if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM &&
      option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no option %d", kCall,
                static_cast<int>(option));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckProperties(*prop, kCall));
  *granularity = kGranularity;
  return ACL_SUCCESS;
}

aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void* expectPtr,
                                uint64_t flags) {
  ACLTAPE_CALL("aclrtReserveMemAddress");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(virPtr, kCall, "virPtr"));
  // Rounded up: programs try with a few bytes whether ranges can be reserved at all.
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, "%s: the size is 0", kCall);
  if (flags > 1) {  // 1: huge pages
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: flags %llu is not 0 or 1", kCall,
                static_cast<unsigned long long>(flags));
  }
  if (size > (SIZE_MAX >> 1)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: a range of %zu bytes cannot be reserved", kCall,
                size);
  }
  size = (size + kGranularity - 1) / kGranularity * kGranularity;
  if (alignment != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the alignment is reserved and must be 0", kCall);
  }
  // More than asked for, to cut an aligned range out of it.
  void* area = mmap(expectPtr, size + kGranularity, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: no address range of %zu bytes left", kCall,
                size);
  }
  auto base = reinterpret_cast<uintptr_t>(area);
  uintptr_t aligned = (base + kGranularity - 1) / kGranularity * kGranularity;
  if (aligned > base) munmap(area, aligned - base);
  size_t tail = base + kGranularity - aligned;
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + size), tail);
  *virPtr = reinterpret_cast<void*>(aligned);
  Ranges& ranges = GetRanges();
  std::lock_guard lock(ranges.mutex);
  ranges.reserved[static_cast<char*>(*virPtr)] = size;
  NoteReserved(*virPtr, size);
  return ACL_SUCCESS;
}

aclError aclrtReleaseMemAddress(void* virPtr) {
  ACLTAPE_CALL("aclrtReleaseMemAddress");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(virPtr, kCall, "virPtr"));
  Ranges& ranges = GetRanges();
  std::lock_guard lock(ranges.mutex);
  auto found = ranges.reserved.find(static_cast<char*>(virPtr));
  if (found == ranges.reserved.end()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a reserved address", kCall, virPtr);
  }
  if (Overlaps(ranges, found->first, found->second)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: a part of the range at %p is still mapped", kCall,
                virPtr);
  }
  ForgetReserved(virPtr);
  munmap(virPtr, found->second);
  ranges.reserved.erase(found);
  return ACL_SUCCESS;
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size,
                             const aclrtPhysicalMemProp* prop, uint64_t flags) {
  ACLTAPE_CALL("aclrtMallocPhysical");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, kCall, "handle"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(prop, kCall, "prop"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, "%s: the size is 0", kCall);
  ACLTAPE_RETURN_IF_FAILED(CheckSize(size, kCall));
  if (flags != 0 || prop->location.type == ACL_MEM_LOCATION_TYPE_MANAGED ||
      prop->allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED ||
      (prop->handleType != ACL_MEM_HANDLE_TYPE_NONE &&
       prop->handleType != ACL_MEM_HANDLE_TYPE_POSIX)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "%s: flags, or the handle type, allocation type or location of prop, is not one "
                "that memory can be made with",
                kCall);
  }
  ACLTAPE_RETURN_IF_FAILED(CheckProperties(*prop, kCall));
  *handle = nullptr;
  if (prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: only device memory is offered", kCall);
  }
  Device* device = DeviceAt(static_cast<int32_t>(prop->location.id));
  if (device == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device %u", kCall,
                prop->location.id);
  }
  auto physical = std::make_shared<Physical>();
  physical->bytes = physical->accounted = size;
  physical->device = device;
  physical->prop = *prop;
  const bool fits = device->memory_used.fetch_add(size) + size <= GetProfile().memory;
  std::string why;
  physical->claimed = fits && ClaimHostMemory(size, kCall, &why);
  if (physical->claimed) physical->file = SharedFile::Create(size);
  if (physical->file == nullptr || !Hold(physical)) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: no room for %zu bytes on device %d%s%s", kCall,
                size, device->id, why.empty() ? "" : "; ", why.c_str());
  }
  *handle = physical->handle;
  return ACL_SUCCESS;
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  ACLTAPE_CALL("aclrtFreePhysical");
  Physical* physical = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindPhysical(handle, kCall, &physical));
  LetGo(*physical);
  return ACL_SUCCESS;
}

aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle, uint64_t) {
  ACLTAPE_CALL("aclrtMapMem");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(virPtr, kCall, "virPtr"));
  ACLTAPE_RETURN_IF_FAILED(CheckSize(size, kCall));
  Physical* physical = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindPhysical(handle, kCall, &physical));
  if (offset > physical->bytes || size > physical->bytes - offset || offset % kGranularity != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: %zu bytes from %zu are not within the %zu of the "
                "handle",
                kCall, size, offset, physical->bytes);
  }
  Ranges& ranges = GetRanges();
  std::lock_guard lock(ranges.mutex);
  char* begin = static_cast<char*>(virPtr);
  if (!Reserved(ranges, begin, size) || Overlaps(ranges, begin, size)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: %zu bytes at %p are not reserved, or mapped already", kCall, size, virPtr);
  }
  if (physical->file->Map(virPtr, offset, size) == nullptr) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host cannot map %zu bytes", kCall, size);
  }
  ranges.mapped[begin] = {size, physical->self};
  TrackMemory({begin, size, 0, MemoryKind::kMapped, physical->device->id});
  return ACL_SUCCESS;
}

aclError aclrtUnmapMem(void* virPtr) {
  ACLTAPE_CALL("aclrtUnmapMem");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(virPtr, kCall, "virPtr"));
  Ranges& ranges = GetRanges();
  std::lock_guard lock(ranges.mutex);
  auto found = ranges.mapped.find(static_cast<char*>(virPtr));
  if (found == ranges.mapped.end()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not a mapped address", kCall, virPtr);
  }
  // Back to a reservation without memory.
  if (mmap(virPtr, found->second.bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host cannot unmap %p", kCall, virPtr);
  }
  UntrackMemory(virPtr);
  ranges.mapped.erase(found);
  return ACL_SUCCESS;
}

aclError aclrtMemSetAccess(void* virPtr, size_t size, aclrtMemAccessDesc* desc, size_t count) {
  ACLTAPE_CALL("aclrtMemSetAccess");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(virPtr, kCall, "virPtr"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(desc, kCall, "desc"));
  if (count == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: count is 0", kCall);
  Ranges& ranges = GetRanges();
  std::lock_guard lock(ranges.mutex);
  if (!Overlaps(ranges, static_cast<char*>(virPtr), size)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: nothing is mapped at %p", kCall, virPtr);
  }
  for (size_t i = 0; i < count; ++i) {
    // The owner always reads and writes; another device gets access, which needs nothing here.
    if (desc[i].location.type != ACL_MEM_LOCATION_TYPE_DEVICE ||
        DeviceAt(static_cast<int32_t>(desc[i].location.id)) == nullptr) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: location %zu is not a device", kCall, i);
    }
  }
  char* end = static_cast<char*>(virPtr) + size;
  for (auto range = ranges.mapped.lower_bound(static_cast<char*>(virPtr));
       range != ranges.mapped.end() && range->first < end; ++range) {
    for (size_t i = 0; i < count; ++i) {
      range->second.access[static_cast<int32_t>(desc[i].location.id)] = desc[i].flags;
    }
  }
  return ACL_SUCCESS;
}

// MEM-14: the device that has the memory reads and writes it. Others, and the host, may do what
// aclrtMemSetAccess allowed them.
aclError aclrtMemGetAccess(void* virPtr, aclrtMemLocation* location, uint64_t* flag) {
  ACLTAPE_CALL("aclrtMemGetAccess");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(virPtr, kCall, "virPtr"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(location, kCall, "location"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(flag, kCall, "flag"));
  const auto id = static_cast<int32_t>(location->id);
  const bool of_device = location->type == ACL_MEM_LOCATION_TYPE_DEVICE;
  if ((!of_device && location->type != ACL_MEM_LOCATION_TYPE_HOST) ||
      (of_device && DeviceAt(id) == nullptr)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the location is neither the host nor a device",
                kCall);
  }
  Ranges& ranges = GetRanges();
  std::lock_guard lock(ranges.mutex);
  const Mapping* mapping = MappingAt(ranges, virPtr);
  if (mapping == nullptr) return RefuseUnmapped(virPtr, kCall);
  *flag = ACL_RT_MEM_ACCESS_FLAGS_NONE;
  if (!of_device) return ACL_SUCCESS;
  const auto set = mapping->access.find(id);
  if (set != mapping->access.end()) *flag = set->second;
  if (mapping->physical->device->id == id) *flag = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
  return ACL_SUCCESS;
}

// MEM-14: one more hold on the memory that is mapped there; aclrtFreePhysical ends it.
aclError aclrtMemRetainAllocationHandle(void* virPtr, aclrtDrvMemHandle* handle) {
  ACLTAPE_CALL("aclrtMemRetainAllocationHandle");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(virPtr, kCall, "virPtr"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, kCall, "handle"));
  Ranges& ranges = GetRanges();
  std::lock_guard lock(ranges.mutex);
  const Mapping* mapping = MappingAt(ranges, virPtr);
  if (mapping == nullptr) return RefuseUnmapped(virPtr, kCall);
  if (!Hold(mapping->physical)) {
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: no handle left", kCall);
  }
  *handle = mapping->physical->handle;
  return ACL_SUCCESS;
}

aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
                                                   aclrtPhysicalMemProp* prop) {
  ACLTAPE_CALL("aclrtMemGetAllocationPropertiesFromHandle");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(prop, kCall, "prop"));
  Physical* physical = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindPhysical(handle, kCall, &physical));
  *prop = physical->prop;
  return ACL_SUCCESS;
}

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType,
                                         uint64_t flags, uint64_t* shareableHandle) {
  ACLTAPE_CALL("aclrtMemExportToShareableHandle");
  if (handleType != ACL_MEM_HANDLE_TYPE_NONE) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: handleType is reserved and must be 0", kCall);
  }
  return ExportPhysical(handle, flags, shareableHandle, kCall);
}

aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
                                           aclrtMemSharedHandleType shareType,
                                           void* shareableHandle) {
  ACLTAPE_CALL("aclrtMemExportToShareableHandleV2");
  ACLTAPE_RETURN_IF_FAILED(CheckShareType(shareType, kCall));
  return ExportPhysical(handle, flags, static_cast<uint64_t*>(shareableHandle), kCall);
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t* pid, size_t pidNum) {
  ACLTAPE_CALL("aclrtMemSetPidToShareableHandle");
  return AllowPhysical(shareableHandle, pid, pidNum, kCall);
}

aclError aclrtMemSetPidToShareableHandleV2(void* shareableHandle,
                                           aclrtMemSharedHandleType shareType, int32_t* pid,
                                           size_t pidNum) {
  ACLTAPE_CALL("aclrtMemSetPidToShareableHandleV2");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(shareableHandle, kCall, "shareableHandle"));
  ACLTAPE_RETURN_IF_FAILED(CheckShareType(shareType, kCall));
  return AllowPhysical(*static_cast<uint64_t*>(shareableHandle), pid, pidNum, kCall);
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
                                           aclrtDrvMemHandle* handle) {
  ACLTAPE_CALL("aclrtMemImportFromShareableHandle");
  return ImportPhysical(shareableHandle, deviceId, handle, kCall);
}

aclError aclrtMemImportFromShareableHandleV2(void* shareableHandle,
                                             aclrtMemSharedHandleType shareType, uint64_t flags,
                                             aclrtDrvMemHandle* handle) {
  ACLTAPE_CALL("aclrtMemImportFromShareableHandleV2");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(shareableHandle, kCall, "shareableHandle"));
  ACLTAPE_RETURN_IF_FAILED(CheckShareType(shareType, kCall));
  if (flags != 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flags must be 0", kCall);
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  return ImportPhysical(*static_cast<uint64_t*>(shareableHandle), context->device().id, handle,
                        kCall);
}
