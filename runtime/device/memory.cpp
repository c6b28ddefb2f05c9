#include "runtime/device/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "acl/invoke/memory_padding.h"
#include "runtime/device/device_heap.h"
#include "runtime/device/error.h"
#include "runtime/device/findings.h"
#include "runtime/device/host_backing.h"
#include "runtime/device/workers_held.h"

namespace acltape::device {
namespace {

// Reads as NaN in every float format, and as an index far out of range.
constexpr int kPoisonNew = 0xFF;
constexpr int kPoisonFreed = 0xFE;
constexpr unsigned char kGuard = 0xFD;

constexpr size_t kMostBytes = size_t{1} << 46;  // no host has addresses for more

// Freed blocks that rest, the oldest first (Note [Memory that is gone]).
struct Resting {
  const size_t most_blocks;
  const size_t most_bytes;
  std::deque<const char*> blocks = {};
  size_t bytes = 0;

  bool Full() const { return blocks.size() > most_blocks || bytes > most_bytes; }
};

struct Blocks {
  std::shared_mutex mutex;
  std::map<const char*, MemoryBlock> by_begin;
  std::map<const char*, size_t> reserved;
  // Parts of pinned memory that are registered; they stay parts of their blocks.
  std::map<const char*, size_t> registered_parts;
  std::map<const char*, MemoryBlock> freed;
  // Blocks of the heap keep their bytes while they rest, large ones only their addresses.
  Resting resting_heap{1024, size_t{64} << 20};
  Resting resting_pages{64, size_t{16} << 30};
  // Addresses of pools, and the blocks of them that tasks see (Note [Memory in stream order]).
  std::map<const char*, size_t> pools;
  std::map<const char*, MemoryBlock> in_stream_order;
  Resting resting_pools{16, size_t{1} << 42};
};

enum class View : uint8_t { kCall, kTask };

// Grows whenever memory that could be used cannot be used any longer.
std::atomic<uint64_t> generation{1};

Blocks& GetBlocks() {
  static Blocks& blocks = *new Blocks;  // frees may come late (INIT-09)
  return blocks;
}

DeviceHeap& GetHeap() {
  static DeviceHeap& heap = *new DeviceHeap;  // as the blocks
  return heap;
}

// AddressSanitizer finds writes past a block itself, and may not see the device look at the bytes.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kGuardsAreOurs = false;
#else
constexpr bool kGuardsAreOurs = true;
#endif

// Note [Past a block].
bool BlocksAreExact() {
  return !kGuardsAreOurs || GetProfile().exact_blocks || GetProfile().poison;
}

// The bytes from its begin that belong to a block.
size_t OwnBytes(const MemoryBlock& block) {
  const bool padded = block.kind == MemoryKind::kDevice && !BlocksAreExact();
  return padded ? std::max(block.bytes, block.accounted) : block.bytes;
}

// With poison, the bytes between the end of a block and that of its extent.
struct Guard {
  unsigned char* begin;
  size_t bytes;

  explicit Guard(const MemoryBlock& block)
      : begin(reinterpret_cast<unsigned char*>(block.begin) + block.bytes),
        bytes(DeviceHeap::Extent(block.bytes) - block.bytes) {}
  void Set() const { std::memset(begin, kGuard, bytes); }
  // All bytes of the guard where `whole` is true, else those next to the block.
  bool IsWhole(bool whole) const {
    const size_t looked_at = whole ? bytes : std::min<size_t>(bytes, 2 * kGuardBytes);
    return std::all_of(begin, begin + looked_at, [](unsigned char byte) { return byte == kGuard; });
  }
};

bool HasGuard(const MemoryBlock& block) {
  return kGuardsAreOurs && block.number != 0 && GetProfile().poison;
}

std::string NameOf(const MemoryBlock& block) {
  char text[160];
  std::snprintf(text, sizeof(text),
                "the block of %zu bytes at %p (allocation %llu of the process, by %s)", block.bytes,
                static_cast<void*>(block.begin), static_cast<unsigned long long>(block.number),
                block.call);
  return text;
}

// With poison, what is in a new block, and its guard.
void PoisonNew(MemoryBlock& block, uint64_t number) {
  block.number = number;
  if (!GetProfile().poison) return;
  std::memset(block.begin, kPoisonNew, block.bytes);
  if (HasGuard(block)) Guard(block).Set();
}

// Reports a write past a block that is freed, unless it was reported before.
void ReportOverrun(const MemoryBlock& block) {
  if (HasGuard(block) && !Guard(block).IsWhole(/*whole=*/true)) {
    std::fprintf(
        stderr,
        "acltape soft device: something wrote past the end of %s; found when it was freed\n",
        NameOf(block).c_str());
    ReportFinding(kWritePastBlock, "an unknown task",
                  "it wrote past the end of " + NameOf(block) + "; found when it was freed");
  }
}

// Takes memory from the heap and tracks it; null when there is none, and `why` then may say more.
void* AllocateBlock(MemoryBlock block, std::string* why) {
  const size_t extent = DeviceHeap::Extent(block.bytes);
  if (!ClaimHostMemory(extent, block.call, why)) return nullptr;
  block.begin = GetHeap().Allocate(block.bytes);
  if (block.begin == nullptr) {
    ReturnHostMemory(extent);
    return nullptr;
  }
  PoisonNew(block, CountAllocation());
  TrackMemory(block);
  return block.begin;
}

size_t SharedBytes(const MemoryBlock& block) { return RoundUp(block.bytes, kPageBytes); }

// Moves the bytes of a block into a shared file that takes the place of its pages. Under the lock,
// while no task runs.
bool MoveIntoFile(MemoryBlock& block) {
  std::unique_ptr<SharedFile> file = SharedFile::Create(SharedBytes(block));
  char* copy = file != nullptr ? file->Map(nullptr, 0, file->bytes()) : nullptr;
  if (copy == nullptr) return false;
  // A guard after the block goes along, unless it is AddressSanitizer's, which nobody may read.
  std::memcpy(copy, block.begin, kGuardsAreOurs ? file->bytes() : block.bytes);
  munmap(copy, file->bytes());
  if (file->Map(block.begin, 0, file->bytes()) == nullptr) return false;
  block.shared = file.release();
  return true;
}

// Gives a block that ends pages of its own again: processes that still use its bytes keep those.
void TakeOutOfFile(MemoryBlock& block) {
  if (block.shared == nullptr) return;
  mmap(block.begin, SharedBytes(block), PROT_READ | PROT_WRITE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  delete block.shared;
  block.shared = nullptr;
}

// Lets a block rest that was taken out of the table, and gives the host what has rested enough.
// Under the lock.
void Rest(Blocks& blocks, const MemoryBlock& block) {
  const bool pooled = block.kind == MemoryKind::kPooled;
  const bool pages = pooled || DeviceHeap::IsLarge(block.bytes);
  // The pages go at once. The addresses stay mapped, so a kernel that runs meanwhile reads zeros.
  if (pages) madvise(block.begin, block.bytes, MADV_DONTNEED);
  // A pool returns what it claims itself.
  if (pages && !pooled) ReturnHostMemory(DeviceHeap::Extent(block.bytes));
  Resting& resting = pooled  ? blocks.resting_pools
                     : pages ? blocks.resting_pages
                             : blocks.resting_heap;
  blocks.freed[block.begin] = block;
  resting.blocks.push_back(block.begin);
  resting.bytes += block.bytes;
  while (resting.Full()) {
    auto oldest = blocks.freed.find(resting.blocks.front());
    resting.blocks.pop_front();
    resting.bytes -= oldest->second.bytes;
    GetHeap().Free(oldest->second.begin, oldest->second.bytes);
    if (!pages) ReturnHostMemory(DeviceHeap::Extent(oldest->second.bytes));
    blocks.freed.erase(oldest);
  }
}

// The last entry that begins at or before `at`; null when there is none.
template <typename Map>
const typename Map::value_type* EntryBefore(const Map& map, const char* at) {
  auto after = map.upper_bound(at);
  return after == map.begin() ? nullptr : &*std::prev(after);
}

const MemoryBlock* BlockAt(const std::map<const char*, MemoryBlock>& blocks, const char* at) {
  const auto* entry = EntryBefore(blocks, at);
  return entry != nullptr && at < entry->second.begin + OwnBytes(entry->second) ? &entry->second
                                                                                : nullptr;
}

bool HoldsDevice(MemoryKind kind) {
  return kind == MemoryKind::kDevice || kind == MemoryKind::kMapped || kind == MemoryKind::kPooled;
}

bool InRange(const std::map<const char*, size_t>& ranges, const char* at) {
  const auto* range = EntryBefore(ranges, at);
  return range != nullptr && at < range->first + range->second;
}

// Bytes from `at` to the end of its device memory. Mapped ranges may follow each other: memory that
// grows in place is one range of addresses.
size_t BytesLeft(const Blocks& blocks, const MemoryBlock& block, const char* at) {
  const char* end = block.begin + OwnBytes(block);
  for (auto next = blocks.by_begin.find(end);
       next != blocks.by_begin.end() && HoldsDevice(next->second.kind) &&
       block.kind == MemoryKind::kMapped;
       next = blocks.by_begin.find(end)) {
    end += next->second.bytes;
  }
  return static_cast<size_t>(end - at);
}

// Gives the bytes past a block that a task can read on.
size_t ReadablePast(const Blocks& blocks, const MemoryBlock& block) {
  if (block.kind != MemoryKind::kDevice || BlocksAreExact()) return 0;
  const auto end = reinterpret_cast<uintptr_t>(block.begin) + OwnBytes(block);
  uintptr_t last = RoundUp(end, acl::kMemoryPage);
  const auto stop_at = [&](const auto& ranges) {
    const auto next = ranges.upper_bound(block.begin);
    if (next != ranges.end()) last = std::min(last, reinterpret_cast<uintptr_t>(next->first));
  };
  stop_at(blocks.by_begin);
  stop_at(blocks.pools);
  return last - end;
}

// Numbers that are no address of a process: the first pages are never mapped, and user addresses
// end at 2^47.
bool IsNoAddress(uintptr_t address) {
  return address < (uintptr_t{1} << 16) || address >= (uintptr_t{1} << 47);
}

// Says of a use of memory why it cannot be, or what is to be noted of it.
struct Verdict {
  std::string why = {};  // ends the sentence that begins with the address; empty if all is well
  const char* kind = kFreedMemory;  // the finding's kind if it cannot be
  std::string past = {};            // a read past the block that goes on
};

// For a use that begins in the device's memory, but in no block that was not freed.
Verdict JudgeNoBlock(const Blocks& blocks, const char* first, size_t bytes, MemoryAccess access) {
  const auto* before = EntryBefore(blocks.by_begin, first);
  if (before != nullptr && before->second.kind == MemoryKind::kPinned) return {};  // the host's
  if (before == nullptr || before->second.kind != MemoryKind::kDevice) {
    return {"lies in no block of device memory", kOutsideBlock};
  }
  const MemoryBlock& block = before->second;
  const char* end = block.begin + OwnBytes(block);
  if (access != MemoryAccess::kWrite && first + bytes <= end + ReadablePast(blocks, block)) {
    if (access == MemoryAccess::kLook) return {};
    return {.past = "it read " + std::to_string(bytes) + " bytes that begin " +
                    std::to_string(first - end) + " bytes past the end of " + NameOf(block)};
  }
  return {"lies " + std::to_string(first - end) + " bytes past the end of " + NameOf(block),
          kOutsideBlock};
}

Verdict JudgeUse(const void* address, size_t bytes, View view, MemoryAccess access) {
  const auto* first = static_cast<const char*>(address);
  Blocks& blocks = GetBlocks();
  std::shared_lock lock(blocks.mutex);
  const bool pooled = InRange(blocks.pools, first);
  const bool in_stream_order = pooled && view == View::kTask;
  if (const MemoryBlock* block =
          BlockAt(in_stream_order ? blocks.in_stream_order : blocks.by_begin, first)) {
    if (!HoldsDevice(block->kind)) return {};
    if (block->leaving && view == View::kCall) return {"lies in memory that a stream frees"};
    const size_t left = BytesLeft(blocks, *block, first);
    if (bytes <= left) return {};
    if (access != MemoryAccess::kWrite && bytes - left <= ReadablePast(blocks, *block)) {
      if (access == MemoryAccess::kLook) return {};
      return {.past = "it read " + std::to_string(bytes - left) + " bytes past the end of " +
                      NameOf(*block)};
    }
    return {"has " + std::to_string(left) + " bytes of device memory left in its block, not " +
                std::to_string(bytes),
            kOutsideBlock};
  }
  if (in_stream_order) return {"lies in a pool where no stream has memory allocated now"};
  if (pooled) return {"lies in memory of a pool that is not allocated, or was freed"};
  if (const MemoryBlock* block = BlockAt(blocks.freed, first)) {
    return {"lies in memory of " + std::to_string(block->bytes) + " bytes that was freed"};
  }
  if (InRange(blocks.reserved, first)) return {"is a reserved address that nothing is mapped to"};
  if (bytes != 0 && GetHeap().Holds(first)) return JudgeNoBlock(blocks, first, bytes, access);
  if (IsNoAddress(reinterpret_cast<uintptr_t>(address))) return {"is no address"};
  return {};
}

// Ends a block in use. Under the lock.
void Free(Blocks& blocks, std::map<const char*, MemoryBlock>::iterator found) {
  MemoryBlock block = found->second;
  if (Device* device = DeviceAt(block.device)) device->memory_used.fetch_sub(block.accounted);
  ReportOverrun(block);
  blocks.by_begin.erase(found);
  generation.fetch_add(1, std::memory_order_release);
  TakeOutOfFile(block);
  if (GetProfile().poison) std::memset(block.begin, kPoisonFreed, block.bytes);
  Rest(blocks, block);
}

// Ranges that this thread has found good, by their address.
struct GoodRange {
  const void* first;
  size_t bytes;
  uint64_t generation;
};
struct GoodRanges {
  GoodRange ranges[256];

  GoodRange& At(const void* address) {
    return ranges[(reinterpret_cast<uintptr_t>(address) >> 4) % std::size(ranges)];
  }
};
thread_local constinit GoodRanges good_ranges = {};

thread_local bool looks_on = false;  // SoftLookOn

// `now` is the generation before anything was looked up: what is freed meanwhile counts as later.
aclError CheckUse(GoodRanges& known, uint64_t now, const SoftMemoryUse& use, MemoryAccess access,
                  aclError code, const char* task) {
  GoodRange& good = known.At(use.first);
  if (good.first == use.first && good.bytes >= use.bytes && good.generation == now) [[likely]] {
    return ACL_SUCCESS;
  }
  const Verdict verdict = JudgeUse(use.first, use.bytes, View::kTask, access);
  if (!verdict.why.empty()) {
    ReportFinding(verdict.kind, task, std::string(use.name) + " " + verdict.why);
    return Fail(code, "%s: %s %p %s", task, use.name, use.first, verdict.why.c_str());
  }
  if (!verdict.past.empty()) {
    ReportFinding(kReadPastBlock, task, verdict.past);
  } else if (access != MemoryAccess::kLook) {
    good = {use.first, use.bytes, now};
  }
  return ACL_SUCCESS;
}

}  // namespace

void* AllocateDeviceMemory(Device& device, size_t bytes, size_t padding, const char* call,
                           std::string* why) {
  // MEM-02: multiples of 32 bytes plus the padding count.
  if (bytes > kMostBytes) return nullptr;
  size_t accounted = RoundUp(bytes, kSizeUnit) + padding;
  uint64_t used = device.memory_used.fetch_add(accounted) + accounted;
  void* memory =
      used <= GetProfile().memory
          ? AllocateBlock({nullptr, bytes, accounted, MemoryKind::kDevice, device.id, call}, why)
          : nullptr;
  if (memory == nullptr) {
    device.memory_used.fetch_sub(accounted);
    return nullptr;
  }
  device.NoteMemoryPeak(used);
  return memory;
}

void* AllocatePinnedMemory(size_t bytes, const char* call, std::string* why) {
  if (bytes > kMostBytes) return nullptr;
  return AllocateBlock({nullptr, bytes, 0, MemoryKind::kPinned, -1, call}, why);
}

bool FreeMemory(void* address, MemoryKind kind) {
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  auto found = blocks.by_begin.find(static_cast<char*>(address));
  if (found == blocks.by_begin.end() || found->second.kind != kind) return false;
  if (found->second.leaving) return false;
  const char* first = found->second.begin;
  std::erase_if(blocks.registered_parts, [&](const auto& part) {
    return part.first >= first && part.first < first + found->second.bytes;
  });
  Free(blocks, found);
  return true;
}

bool BeginLeaving(void* address) {
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  auto found = blocks.by_begin.find(static_cast<char*>(address));
  if (found == blocks.by_begin.end() || found->second.kind != MemoryKind::kDevice) return false;
  return !std::exchange(found->second.leaving, true);
}

void FreeLeaving(void* address) {
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  Free(blocks, blocks.by_begin.find(static_cast<char*>(address)));
}

uint64_t CountAllocation() {
  static std::atomic<uint64_t> allocations{0};
  return allocations.fetch_add(1, std::memory_order_relaxed) + 1;
}

char* ReservePoolAddresses(size_t bytes) {
  char* begin = GetHeap().Allocate(bytes);
  if (begin == nullptr) return nullptr;
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  blocks.pools[begin] = bytes;
  generation.fetch_add(1, std::memory_order_release);
  return begin;
}

void ReleasePoolAddresses(char* begin, size_t bytes) {
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  blocks.pools.erase(begin);
  generation.fetch_add(1, std::memory_order_release);
  Rest(blocks, {begin, bytes, 0, MemoryKind::kPooled, -1});
}

void BeginInStreamOrder(MemoryBlock block, uint64_t number) {
  PoisonNew(block, number);
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  blocks.in_stream_order[block.begin] = block;
}

void EndInStreamOrder(const MemoryBlock& ended) {
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  auto found = blocks.in_stream_order.find(ended.begin);
  ReportOverrun(found->second);
  blocks.in_stream_order.erase(found);
  generation.fetch_add(1, std::memory_order_release);
  if (GetProfile().poison) std::memset(ended.begin, kPoisonFreed, ended.bytes);
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
  generation.fetch_add(1, std::memory_order_release);
  return block;
}

aclError ShareMemory(void* address, size_t bytes, bool anyone, const char* call, SharedPart* part) {
  auto* first = static_cast<char*>(address);
  const WorkersHeld held;  // a write between the copy and its end would be lost
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  auto* block = const_cast<MemoryBlock*>(BlockAt(blocks.by_begin, first));
  if (block == nullptr || block->kind != MemoryKind::kDevice ||
      bytes > static_cast<size_t>(block->begin + block->bytes - first)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: %zu bytes at %p are no part of a block of device memory", call, bytes,
                address);
  }
  if (block->shared == nullptr && !MoveIntoFile(*block)) {
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                "%s: the host cannot make a shared file of %zu bytes", call, block->bytes);
  }
  block->shared->Publish(anyone);
  *part = {block->shared->name(), static_cast<size_t>(first - block->begin), bytes};
  return ACL_SUCCESS;
}

bool ForShared(const SharedName& name, const std::function<void(SharedFile&)>& action) {
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  for (const auto& [begin, block] : blocks.by_begin) {
    if (block.shared == nullptr || !(block.shared->name() == name)) continue;
    action(*block.shared);
    return true;
  }
  return false;
}

void NoteReserved(void* address, size_t bytes) {
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  blocks.reserved[static_cast<char*>(address)] = bytes;
  generation.fetch_add(1, std::memory_order_release);
}

void ForgetReserved(void* address) {
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  blocks.reserved.erase(static_cast<char*>(address));
}

bool IsReserved(const void* address) {
  Blocks& blocks = GetBlocks();
  std::shared_lock lock(blocks.mutex);
  const auto* first = static_cast<const char*>(address);
  return InRange(blocks.reserved, first);
}

std::optional<MemoryBlock> FindMemory(const void* address) {
  Blocks& blocks = GetBlocks();
  std::shared_lock lock(blocks.mutex);
  const MemoryBlock* block = BlockAt(blocks.by_begin, static_cast<const char*>(address));
  return block != nullptr ? std::optional(*block) : std::nullopt;
}

MemoryAccess ReadsOfThisThread() { return looks_on ? MemoryAccess::kLook : MemoryAccess::kRead; }

aclError CheckMemory(const void* address, size_t bytes, const char* call, const char* name,
                     MemoryAccess access) {
  const std::string why = JudgeUse(address, bytes, View::kCall, access).why;
  if (why.empty()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %s %p %s", call, name, address, why.c_str());
}

aclError CheckTaskMemory(const void* address, size_t bytes, aclError code, const char* task,
                         const char* name, MemoryAccess access) {
  return CheckUse(good_ranges, generation.load(std::memory_order_acquire),
                  {address, bytes, name, 0}, access, code, task);
}

aclError CheckTaskMemory(const SoftMemoryUse* uses, size_t count, aclError code, const char* task) {
  const uint64_t now = generation.load(std::memory_order_acquire);
  GoodRanges& known = good_ranges;
  for (size_t i = 0; i < count; ++i) {
    const MemoryAccess access = uses[i].only_read != 0 ? MemoryAccess::kRead : MemoryAccess::kWrite;
    const aclError gone = CheckUse(known, now, uses[i], access, code, task);
    if (gone != ACL_SUCCESS) [[unlikely]]
      return gone;
  }
  return ACL_SUCCESS;
}

aclError CheckGuards(const char* task) {
  Blocks& blocks = GetBlocks();
  std::unique_lock lock(blocks.mutex);
  for (const auto* table : {&blocks.by_begin, &blocks.in_stream_order}) {
    for (const auto& [begin, block] : *table) {
      if (!HasGuard(block) || Guard(block).IsWhole(/*whole=*/false)) continue;
      Guard(block).Set();
      ReportFinding(kWritePastBlock, task, "it wrote past the end of " + NameOf(block));
      return Fail(ACL_ERROR_RT_AICORE_EXCEPTION, "%s wrote past the end of %s", task,
                  NameOf(block).c_str());
    }
  }
  return ACL_SUCCESS;
}

bool RegisterHostMemory(void* address, size_t bytes) {
  Blocks& blocks = GetBlocks();
  char* begin = static_cast<char*>(address);
  std::unique_lock lock(blocks.mutex);
  const MemoryBlock* around = BlockAt(blocks.by_begin, begin);
  if (around != nullptr && around->kind == MemoryKind::kPinned &&
      bytes <= static_cast<size_t>(around->begin + around->bytes - begin)) {
    std::map<const char*, size_t>& parts = blocks.registered_parts;
    const auto after = parts.lower_bound(begin);
    const bool meets_next = after != parts.end() && after->first < begin + bytes;
    const bool meets_former =
        after != parts.begin() && std::prev(after)->first + std::prev(after)->second > begin;
    return !meets_next && !meets_former && parts.emplace(begin, bytes).second;
  }
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
  if (blocks.registered_parts.erase(static_cast<char*>(address)) != 0) return true;
  auto found = blocks.by_begin.find(static_cast<char*>(address));
  if (found == blocks.by_begin.end() || found->second.kind != MemoryKind::kRegistered) return false;
  blocks.by_begin.erase(found);
  return true;
}

bool IsPageable(const std::optional<MemoryBlock>& block) { return !block.has_value(); }

bool IsDevice(const std::optional<MemoryBlock>& block) {
  return block.has_value() && HoldsDevice(block->kind);
}

}  // namespace acltape::device

const uint64_t* SoftMemoryGeneration() {
  static_assert(sizeof(acltape::device::generation) == sizeof(uint64_t));
  return reinterpret_cast<const uint64_t*>(&acltape::device::generation);
}

void SoftLookOn(int looks) { acltape::device::looks_on = looks != 0; }

aclError SoftCheckMemory(const char* op, const SoftMemoryUse* uses, size_t count) {
  return acltape::device::CheckTaskMemory(uses, count, ACL_ERROR_RT_AICORE_EXCEPTION, op);
}
