#include "runtime/device/device_heap.h"

#include <sys/mman.h>

#include <cstdint>
#include <iterator>

#include "acl/invoke/memory_padding.h"

// AddressSanitizer learns which bytes nobody owns.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) static_cast<void>(0)
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) static_cast<void>(0)
#endif

namespace acltape::device {
namespace {

constexpr size_t kRegionBytes = size_t{64} << 20;
// A free range with at least this many pages gives them back to the host.
constexpr size_t kGivenBack = size_t{256} << 10;

// Whole large pages; null when the host has no more addresses.
char* MapPages(size_t bytes) {
  const size_t mapped = bytes + acl::kMemoryPage - kPageBytes;
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  char* const first = static_cast<char*>(memory);
  const size_t before = RoundUp(reinterpret_cast<uintptr_t>(first), acl::kMemoryPage) -
                        reinterpret_cast<uintptr_t>(first);
  if (before != 0) munmap(first, before);
  if (before + bytes < mapped) munmap(first + before + bytes, mapped - before - bytes);
  // Large pages: fewer faults at first use, and other ranks read the memory faster.
  madvise(first + before, bytes, MADV_HUGEPAGE);
  return first + before;
}

void GiveBackPages(char* begin, size_t bytes) {
  if (bytes < kGivenBack) return;
  const uintptr_t first = RoundUp(reinterpret_cast<uintptr_t>(begin), kPageBytes);
  const uintptr_t end = reinterpret_cast<uintptr_t>(begin + bytes) / kPageBytes * kPageBytes;
  if (end > first) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace

size_t DeviceHeap::Extent(size_t bytes) {
  return RoundUp(RoundUp(bytes, kSizeUnit) + acl::kMemoryPadding + kGuardBytes, kBlockAlignment);
}

bool DeviceHeap::IsLarge(size_t bytes) { return Extent(bytes) > kRegionBytes; }

char* DeviceHeap::Allocate(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  const size_t extent = Extent(bytes);
  std::lock_guard lock(mutex_);
  if (IsLarge(bytes)) return Map(RoundUp(extent, acl::kMemoryPage));
  auto best = by_size_.lower_bound({extent, nullptr});
  if (best == by_size_.end()) {
    if (!Grow()) return nullptr;
    best = by_size_.lower_bound({extent, nullptr});
  }
  const auto [size, begin] = *best;
  by_size_.erase(best);
  free_.erase(begin);
  if (size > extent) AddFree(begin + extent, size - extent);
  ASAN_UNPOISON_MEMORY_REGION(begin, bytes);
  return begin;
}

void DeviceHeap::Free(char* begin, size_t bytes) {
  if (IsLarge(bytes)) {
    std::lock_guard lock(mutex_);
    mappings_.erase(begin);
    munmap(begin, RoundUp(Extent(bytes), acl::kMemoryPage));
    return;
  }
  size_t size = Extent(bytes);
  GiveBackPages(begin, size);
  ASAN_POISON_MEMORY_REGION(begin, size);
  std::lock_guard lock(mutex_);
  const auto after = free_.lower_bound(begin);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      by_size_.erase({before->second, before->first});
      free_.erase(before);
    }
  }
  if (after != free_.end() && begin + size == after->first) {
    size += after->second;
    by_size_.erase({after->second, after->first});
    free_.erase(after);
  }
  AddFree(begin, size);
}

bool DeviceHeap::Holds(const char* address) {
  std::lock_guard lock(mutex_);
  const auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return address < begin + bytes;
}

char* DeviceHeap::Map(size_t bytes) {
  char* const begin = MapPages(bytes);
  if (begin != nullptr) mappings_[begin] = bytes;
  return begin;
}

bool DeviceHeap::Grow() {
  char* region = Map(kRegionBytes);
  if (region == nullptr) return false;
  ASAN_POISON_MEMORY_REGION(region, kRegionBytes);
  AddFree(region, kRegionBytes);
  return true;
}

void DeviceHeap::AddFree(char* begin, size_t bytes) {
  free_.emplace(begin, bytes);
  by_size_.emplace(bytes, begin);
}

}  // namespace acltape::device
