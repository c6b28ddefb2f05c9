#include "runtime/device/memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace acltape::device {
namespace {

constexpr size_t kAlignment = 64;
// Reads as NaN in every float format, and as an index far out of range.
constexpr int kPoisonNew = 0xFF;
constexpr int kPoisonFreed = 0xFE;

struct Blocks {
  std::shared_mutex mutex;
  std::map<const char*, MemoryBlock> by_begin;
};

Blocks& GetBlocks() {
  static Blocks& blocks = *new Blocks;  // frees may come late (INIT-09)
  return blocks;
}

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Large blocks are address ranges whose pages come with their first use: programs take half of the
// device's memory by one call, on hosts that have less.
constexpr size_t kPagesOnDemand = size_t{64} << 20;

void* MapPages(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void* AllocateAligned(size_t bytes) {
  if (bytes > SIZE_MAX - kAlignment) return nullptr;
  const size_t rounded = RoundUp(bytes, kAlignment);
  void* memory =
      rounded >= kPagesOnDemand ? MapPages(rounded) : std::aligned_alloc(kAlignment, rounded);
  if (memory != nullptr && GetProfile().poison) std::memset(memory, kPoisonNew, bytes);
  return memory;
}

void FreeAligned(void* memory, size_t bytes) {
  const size_t rounded = RoundUp(bytes, kAlignment);
  if (rounded >= kPagesOnDemand) {
    munmap(memory, rounded);
  } else {
    std::free(memory);
  }
}

}  // namespace

void* AllocateDeviceMemory(Device& device, size_t bytes, size_t padding) {
  // MEM-02: multiples of 32 bytes plus the padding count.
  if (bytes > (uint64_t{1} << 46)) return nullptr;
  size_t accounted = RoundUp(bytes, 32) + padding;
  uint64_t used = device.memory_used.fetch_add(accounted) + accounted;
  void* memory = used <= GetProfile().memory ? AllocateAligned(bytes) : nullptr;
  if (memory == nullptr) {
    device.memory_used.fetch_sub(accounted);
    return nullptr;
  }
  TrackMemory({static_cast<char*>(memory), bytes, accounted, MemoryKind::kDevice, device.id});
  return memory;
}

void* AllocatePinnedMemory(size_t bytes) {
  void* memory = AllocateAligned(bytes);
  if (memory != nullptr) {
    TrackMemory({static_cast<char*>(memory), bytes, 0, MemoryKind::kPinned, -1});
  }
  return memory;
}

bool FreeMemory(void* address, MemoryKind kind) {
  size_t bytes = 0;
  {
    Blocks& blocks = GetBlocks();
    std::unique_lock lock(blocks.mutex);
    auto found = blocks.by_begin.find(static_cast<char*>(address));
    if (found == blocks.by_begin.end() || found->second.kind != kind) return false;
    const MemoryBlock& block = found->second;
    if (Device* device = DeviceAt(block.device)) device->memory_used.fetch_sub(block.accounted);
    if (GetProfile().poison) std::memset(block.begin, kPoisonFreed, block.bytes);
    bytes = block.bytes;
    blocks.by_begin.erase(found);
  }
  FreeAligned(address, bytes);
  return true;
}

void TrackMemory(const MemoryBlock& block) {
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  blocks.by_begin[block.begin] = block;
}

std::optional<MemoryBlock> UntrackMemory(void* address) {
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  auto found = blocks.by_begin.find(static_cast<char*>(address));
  if (found == blocks.by_begin.end()) return std::nullopt;
  MemoryBlock block = found->second;
  blocks.by_begin.erase(found);
  return block;
}

std::optional<MemoryBlock> FindMemory(const void* address) {
  Blocks& blocks = GetBlocks();
  const char* at = static_cast<const char*>(address);
  std::shared_lock lock(blocks.mutex);
  auto after = blocks.by_begin.upper_bound(at);
  if (after == blocks.by_begin.begin()) return std::nullopt;
  const MemoryBlock& block = std::prev(after)->second;
  if (at >= block.begin + block.bytes) return std::nullopt;
  return block;
}

bool RegisterHostMemory(void* address, size_t bytes) {
  Blocks& blocks = GetBlocks();
  char* begin = static_cast<char*>(address);
  std::unique_lock lock(blocks.mutex);
  auto after = blocks.by_begin.lower_bound(begin);
  if (after != blocks.by_begin.end() && after->second.begin < begin + bytes) return false;
  if (after != blocks.by_begin.begin()) {
    const MemoryBlock& before = std::prev(after)->second;
    if (before.begin + before.bytes > begin) return false;
  }
  blocks.by_begin[begin] = {begin, bytes, 0, MemoryKind::kRegistered, -1};
  return true;
}

bool UnregisterHostMemory(void* address) {
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  auto found = blocks.by_begin.find(static_cast<char*>(address));
  if (found == blocks.by_begin.end() || found->second.kind != MemoryKind::kRegistered) return false;
  blocks.by_begin.erase(found);
  return true;
}

bool IsPageable(const std::optional<MemoryBlock>& block) { return !block.has_value(); }

bool IsDevice(const std::optional<MemoryBlock>& block) {
  return block.has_value() &&
         (block->kind == MemoryKind::kDevice || block->kind == MemoryKind::kMapped);
}

}  // namespace acltape::device
