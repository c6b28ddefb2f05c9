// The heap for blocks of device and of pinned memory. It has mappings of its own, apart from the
// host's heap, so that a kernel which writes outside of its block never damages the program's data
// (MEM-13). The list of mappings lies elsewhere, so that an overrun does not damage it either.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace acltape::device {

inline constexpr size_t kPageBytes = 4096;
// A block has its pages for itself: those of one that is shared with another process are replaced
// (shared_file.h). The product aligns to 512 bytes, which a page is a multiple of.
inline constexpr size_t kBlockAlignment = kPageBytes;
// Sizes of blocks are rounded up to a multiple of this, and acl::kMemoryPadding bytes more are the
// block's (MEM-02).
inline constexpr size_t kSizeUnit = 32;
// At least this many bytes after those belong to nobody.
inline constexpr size_t kGuardBytes = 32;

constexpr size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Best fit over free ranges of mappings that stay, each a whole number of the product's pages
// (acl::kMemoryPage). Large blocks have a mapping each, whose pages come with their first use:
// programs take half of the device's memory by one call, on hosts that have less. Any thread may
// call it.
class DeviceHeap {
 public:
  // Aligned to kBlockAlignment; null when the host has no more.
  char* Allocate(size_t bytes);
  void Free(char* begin, size_t bytes);
  // True if the address lies in a mapping of the heap, in a block or not.
  bool Holds(const char* address);

  // A block with its guard.
  static size_t Extent(size_t bytes);
  // True when the block has a mapping of its own.
  static bool IsLarge(size_t bytes);

 private:
  char* Map(size_t bytes);
  bool Grow();
  void AddFree(char* begin, size_t bytes);

  std::mutex mutex_;
  std::map<const char*, size_t> mappings_;
  std::map<char*, size_t> free_;                // by address
  std::set<std::pair<size_t, char*>> by_size_;  // the same
};

}  // namespace acltape::device
