// Memory pools: allocation and free in the order of a stream (POOL-01 to POOL-12).
//
// A pool has a range of addresses and takes the device's memory for parts of it, in units of 2 MiB.
// Which part an allocation gets is decided by the call. A task of the stream then makes it usable
// for tasks, and the task of a free ends that (memory.h, Note [Memory in stream order]). A part
// whose free was called stays with the pool. Another allocation may have it when the order of the
// streams guarantees that its task comes after that of the free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "acl/acl.h"
#include "runtime/device/event.h"
#include "runtime/device/memory.h"
#include "runtime/device/stream.h"
#include "runtime/device/stream_order.h"

namespace acltape::device {

class MemoryPool;

// The place of a free in its stream. Segments refer to it until another stream knows of it.
struct PoolFree {
  StreamPosition position;
  EventPoint* reached = new EventPoint;

  PoolFree() = default;
  PoolFree(const PoolFree&) = delete;
  PoolFree& operator=(const PoolFree&) = delete;
  ~PoolFree() { reached->Release(); }
};

// An allocation of the program. What can change is guarded by the lock of the pools.
struct PoolAllocation {
  std::shared_ptr<MemoryPool> pool;
  MemoryBlock block;
  uint64_t number = 0;                        // among all allocations of the process
  size_t segment = 0;                         // its first unit
  std::shared_ptr<PoolFree> after = nullptr;  // its task waits for this
  bool begun = false;                         // the stream has reached it
  bool ended = false;                         // the host has freed it at once
};

class MemoryPool {
 public:
  static constexpr size_t kUnit = size_t{2} << 20;

  // The sizes and settings that a program reads and sets (POOL-08, POOL-09).
  struct Attributes {
    uint32_t follow_events = 1;
    uint32_t opportunistic = 1;
    uint32_t internal_dependencies = 1;
    uint64_t release_threshold = 0;
    uint64_t reserved = 0;
    uint64_t reserved_high = 0;
    uint64_t used = 0;
    uint64_t used_high = 0;
  };

  // `most` is a multiple of kUnit; `begin` comes from ReservePoolAddresses(AddressBytes(most)).
  MemoryPool(Device& device, size_t most, char* begin);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  static size_t AddressBytes(size_t most);
  size_t most() const { return most_; }
  Device& device() const { return device_; }

  // All below is guarded by the lock of the pools.

  Attributes attributes;

  // A part for an allocation whose task the stream gets next; false when there is no room. Then
  // `why` says what the host has, if it is the host.
  bool Take(const Stream& stream, PoolAllocation* allocation, std::string* why);
  // The program has freed it; its part is not free yet.
  void EndUse(const PoolAllocation& allocation);
  // The task of its free has a place in a stream, so the part can serve other allocations.
  void Keep(const PoolAllocation& allocation, std::shared_ptr<PoolFree> free);
  // Gives the memory of a part back to the device at once.
  void GiveBack(const PoolAllocation& allocation);
  // Gives back memory whose free was reached, until `keep` bytes or those in use are reserved.
  void Trim(uint64_t keep);

 private:
  enum class State : uint8_t { kAway, kKept, kBusy };  // kAway: it has no memory of the device

  // Parts of the range, which follow each other without gaps.
  struct Segment {
    size_t units;
    State state = State::kAway;
    std::shared_ptr<PoolFree> free = nullptr;  // a kept segment has one
  };
  using Segments = std::map<size_t, Segment>;

  char* AddressOf(size_t unit) const;
  // The smallest segment of this state with at least `units` for which `fits` holds; the end of the
  // segments when there is none.
  template <typename Fits>
  Segments::iterator Smallest(State state, size_t units, Fits fits);
  // Finds a kept segment whose free comes before the stream's next task.
  Segments::iterator FindKept(const Stream& stream, size_t units);
  // Finds a segment that the stream may use when it waits for the free of another stream.
  Segments::iterator FindPending(size_t units);
  // Finds a segment without memory, and takes memory of the device for `units` units of it.
  Segments::iterator FindNew(size_t units, const char* call, std::string* why);
  bool ReserveDeviceMemory(uint64_t bytes, const char* call, std::string* why);
  void GiveBack(Segments::iterator segment);
  // Cuts a segment after its first `units` units.
  void Cut(Segments::iterator segment, size_t units);
  // Joins a segment with its neighbours where both are equal.
  void Join(Segments::iterator segment);

  Device& device_;
  const size_t most_;
  char* const begin_;
  Segments segments_;
};

// Pools by their handles (POOL-01, POOL-10).
aclError CreatePool(Device& device, size_t most, aclrtMemPool* handle);
aclError FindPool(aclrtMemPool handle, const char* call, std::shared_ptr<MemoryPool>* pool);
aclError DestroyPool(aclrtMemPool handle, const char* call);
std::mutex& PoolLock();

// POOL-02: *address can be used by calls at once, and by tasks that come later in the stream.
aclError AllocateInStreamOrder(const std::shared_ptr<MemoryPool>& pool, Stream& stream,
                               size_t bytes, const char* call, void** address);
// POOL-03, POOL-06: the address of a pool's allocation, or of memory of aclrtMalloc.
aclError FreeInStreamOrder(void* address, Stream& stream, const char* call);
// POOL-06: frees an allocation of a pool at once; false when none begins at the address.
bool FreePooledNow(void* address);

// POOL-07: the host has waited for the device, so pools give back what they keep beyond their
// thresholds.
void TrimPools();
// Pools of a device that has no room give back all that they can; false when there are none.
bool EmptyPools(const Device& device);

}  // namespace acltape::device
