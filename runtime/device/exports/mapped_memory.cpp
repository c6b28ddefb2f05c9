// Virtual memory: reserve, create, map, use, unmap, free, release (MEM-08).
//
// A physical handle is an anonymous file; mapping it puts the file's pages at the reserved
// addresses, so two mappings of one handle share their bytes.
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "runtime/device/call.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

constexpr size_t kGranularity = size_t{2} << 20;

struct Physical {
  int file = -1;
  size_t bytes = 0;
  Device* device = nullptr;
  HandleBlock* handle = nullptr;
};

struct Mapping {
  size_t bytes;
  int32_t device;
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

void DeletePhysical(Physical* physical) {
  if (physical->handle != nullptr) WipeHandle(physical->handle);
  if (physical->file >= 0) close(physical->file);
  physical->device->memory_used.fetch_sub(physical->bytes);
  delete physical;
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
  auto* physical = new Physical{-1, size, device, nullptr};
  bool fits = device->memory_used.fetch_add(size) + size <= GetProfile().memory;
  if (fits) {
    physical->file = memfd_create("acltape soft device", MFD_CLOEXEC);
    fits = physical->file >= 0 && ftruncate(physical->file, static_cast<off_t>(size)) == 0;
  }
  if (fits) physical->handle = AllocateHandle(HandleKind::kPhysical, physical);
  if (physical->handle == nullptr) {
    DeletePhysical(physical);
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: no room for %zu bytes on device %d", kCall,
                size, device->id);
  }
  *handle = physical->handle;
  return ACL_SUCCESS;
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  ACLTAPE_CALL("aclrtFreePhysical");
  Physical* physical = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindPhysical(handle, kCall, &physical));
  DeletePhysical(physical);
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
  void* mapped = mmap(virPtr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->file,
                      static_cast<off_t>(offset));
  if (mapped == MAP_FAILED) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host cannot map %zu bytes", kCall, size);
  }
  ranges.mapped[begin] = {size, physical->device->id};
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
  return ACL_SUCCESS;
}
