#include "runtime/device/memory_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "runtime/device/call.h"
#include "runtime/device/device_heap.h"
#include "runtime/device/host_backing.h"

namespace acltape::device {
namespace {

// The addresses that a unit takes: a page after it makes room for a guard of each allocation.
constexpr size_t kStride = MemoryPool::kUnit + kPageBytes;

struct Pools {
  std::map<MemoryPool*, std::pair<std::shared_ptr<MemoryPool>, HandleBlock*>> open;
  std::map<const void*, std::shared_ptr<PoolAllocation>> allocations;  // by address
};

Pools& GetPools() {
  static Pools& pools = *new Pools;  // frees may come late (INIT-09)
  return pools;
}

size_t UnitsFor(size_t bytes) { return RoundUp(bytes, MemoryPool::kUnit) / MemoryPool::kUnit; }

// The lock is held.
void EmptyAll(const Device& device) {
  for (const auto& [pool, open] : GetPools().open) {
    if (&pool->device() == &device) pool->Trim(0);
  }
}

using Allocation = std::shared_ptr<PoolAllocation>;

// POOL-02.
aclError RunAllocation(void* argument) {
  PoolAllocation& allocation = **static_cast<Allocation*>(argument);
  if (allocation.after != nullptr && !allocation.after->reached->Wait(0)) {
    SetMessage("the free that the memory comes from was not reached");
    return ACL_ERROR_RT_STREAM_ABORT;
  }
  std::lock_guard lock(PoolLock());
  allocation.after.reset();
  if (allocation.ended) return ACL_SUCCESS;
  BeginInStreamOrder(allocation.block, allocation.number);
  allocation.begun = true;
  return ACL_SUCCESS;
}

bool AllocationIsReady(void* argument) {
  const PoolAllocation& allocation = **static_cast<Allocation*>(argument);
  return allocation.after == nullptr || allocation.after->reached->done();
}

// A free of the program that its stream has not reached.
struct PendingFree {
  Allocation allocation;
  std::shared_ptr<PoolFree> free;
};

// POOL-03. What a stream drops is free too: nothing that runs can need it.
aclError RunFree(void* argument) {
  auto& pending = *static_cast<PendingFree*>(argument);
  if (pending.free->reached->done()) return ACL_SUCCESS;
  {
    std::lock_guard lock(PoolLock());
    if (pending.allocation->begun) EndInStreamOrder(pending.allocation->block);
    pending.allocation->ended = true;
  }
  pending.free->reached->Complete();
  return ACL_SUCCESS;
}

void DropFree(void* argument) {
  RunFree(argument);
  delete static_cast<PendingFree*>(argument);
}

// POOL-06: memory of aclrtMalloc.
struct PlainFree {
  void* address;
};

aclError FreePlain(void* address, Stream& stream, const char* call) {
  if (!BeginLeaving(address)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not the beginning of device memory in use",
                call, address);
  }
  Task task = MakeTask(TaskKind::kInternal, "POOL_FREE", PlainFree{address},
                       [](void*) -> aclError { return ACL_SUCCESS; });
  task.drop = [](void* argument) { FreeLeaving(static_cast<PlainFree*>(argument)->address); };
  return SubmitTask(stream, std::move(task));
}

}  // namespace

std::mutex& PoolLock() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

size_t MemoryPool::AddressBytes(size_t most) { return most / kUnit * kStride; }

MemoryPool::MemoryPool(Device& device, size_t most, char* begin)
    : device_(device), most_(most), begin_(begin) {
  segments_[0] = {most / kUnit};
  StreamOrder::wanted.fetch_add(1);
}

MemoryPool::~MemoryPool() {
  StreamOrder::wanted.fetch_sub(1);
  device_.memory_used.fetch_sub(attributes.reserved);
  ReturnHostMemory(attributes.reserved);
  ReleasePoolAddresses(begin_, AddressBytes(most_));
}

char* MemoryPool::AddressOf(size_t unit) const { return begin_ + unit * kStride; }

template <typename Fits>
MemoryPool::Segments::iterator MemoryPool::Smallest(State state, size_t units, Fits fits) {
  auto best = segments_.end();
  for (auto segment = segments_.begin(); segment != segments_.end(); ++segment) {
    if (segment->second.state != state || segment->second.units < units || !fits(segment->second))
      continue;
    if (best == segments_.end() || segment->second.units < best->second.units) best = segment;
  }
  return best;
}

// POOL-04, POOL-05.
MemoryPool::Segments::iterator MemoryPool::FindKept(const Stream& stream, size_t units) {
  auto found = Smallest(State::kKept, units, [&](const Segment& kept) {
    return kept.free->position.stream == stream.serial();
  });
  if (found == segments_.end() && attributes.follow_events != 0) {
    found = Smallest(State::kKept, units,
                     [&](const Segment& kept) { return stream.order.Covers(kept.free->position); });
  }
  if (found == segments_.end() && attributes.opportunistic != 0) {
    found = Smallest(State::kKept, units,
                     [](const Segment& kept) { return kept.free->reached->done(); });
  }
  return found;
}

MemoryPool::Segments::iterator MemoryPool::FindPending(size_t units) {
  if (attributes.internal_dependencies == 0) return segments_.end();
  return Smallest(State::kKept, units, [](const Segment&) { return true; });
}

bool MemoryPool::ReserveDeviceMemory(uint64_t bytes, const char* call, std::string* why) {
  const uint64_t used = device_.memory_used.fetch_add(bytes) + bytes;
  if (used > GetProfile().memory || !ClaimHostMemory(bytes, call, why)) {
    device_.memory_used.fetch_sub(bytes);
    return false;
  }
  device_.NoteMemoryPeak(used);
  attributes.reserved += bytes;
  attributes.reserved_high = std::max(attributes.reserved_high, attributes.reserved);
  return true;
}

MemoryPool::Segments::iterator MemoryPool::FindNew(size_t units, const char* call,
                                                   std::string* why) {
  auto found = Smallest(State::kAway, units, [](const Segment&) { return true; });
  if (found == segments_.end() || ReserveDeviceMemory(units * kUnit, call, why)) return found;
  return segments_.end();
}

bool MemoryPool::Take(const Stream& stream, PoolAllocation* allocation, std::string* why) {
  const size_t units = UnitsFor(allocation->block.bytes);
  auto segment = FindKept(stream, units);
  if (segment == segments_.end()) segment = FindNew(units, allocation->block.call, why);
  if (segment == segments_.end()) {
    // Memory that is kept in parts which are too small, or by other pools, may make room.
    EmptyAll(device_);
    why->clear();
    segment = FindNew(units, allocation->block.call, why);
  }
  if (segment == segments_.end()) segment = FindPending(units);
  if (segment == segments_.end()) return false;
  Cut(segment, units);
  Segment& part = segment->second;
  allocation->segment = segment->first;
  allocation->block.begin = AddressOf(segment->first);
  if (part.free != nullptr && part.free->position.stream != stream.serial()) {
    allocation->after = part.free;
  }
  part.state = State::kBusy;
  part.free.reset();
  attributes.used += units * kUnit;
  attributes.used_high = std::max(attributes.used_high, attributes.used);
  return true;
}

void MemoryPool::EndUse(const PoolAllocation& allocation) {
  attributes.used -= segments_.at(allocation.segment).units * kUnit;
}

void MemoryPool::Keep(const PoolAllocation& allocation, std::shared_ptr<PoolFree> free) {
  auto segment = segments_.find(allocation.segment);
  segment->second.state = State::kKept;
  segment->second.free = std::move(free);
  Join(segment);
}

void MemoryPool::GiveBack(const PoolAllocation& allocation) {
  GiveBack(segments_.find(allocation.segment));
}

void MemoryPool::GiveBack(Segments::iterator segment) {
  const size_t units = segment->second.units;
  madvise(AddressOf(segment->first), units * kStride, MADV_DONTNEED);
  segment->second.state = State::kAway;
  segment->second.free.reset();
  device_.memory_used.fetch_sub(units * kUnit);
  ReturnHostMemory(units * kUnit);
  attributes.reserved -= units * kUnit;
  Join(segment);
}

void MemoryPool::Trim(uint64_t keep) {
  while (attributes.reserved > keep) {
    const size_t most_units = (attributes.reserved - keep) / kUnit;
    auto segment =
        Smallest(State::kKept, 1, [](const Segment& kept) { return kept.free->reached->done(); });
    if (most_units == 0 || segment == segments_.end()) return;
    if (segment->second.units > most_units) Cut(segment, most_units);
    GiveBack(segment);
  }
}

void MemoryPool::Cut(Segments::iterator segment, size_t units) {
  Segment& left = segment->second;
  if (left.units == units) return;
  segments_[segment->first + units] = {left.units - units, left.state, left.free};
  left.units = units;
}

void MemoryPool::Join(Segments::iterator segment) {
  auto equal = [](const Segment& left, const Segment& right) {
    if (left.state != right.state) return false;
    // The later one of two frees of a stream stands for both.
    return left.state == State::kAway ||
           (left.state == State::kKept &&
            left.free->position.stream == right.free->position.stream);
  };
  auto join = [&](Segments::iterator left, Segments::iterator right) {
    if (left->second.state == State::kKept &&
        left->second.free->position.tasks < right->second.free->position.tasks) {
      left->second.free = right->second.free;
    }
    left->second.units += right->second.units;
    segments_.erase(right);
  };
  auto next = std::next(segment);
  if (next != segments_.end() && equal(segment->second, next->second)) join(segment, next);
  if (segment == segments_.begin()) return;
  auto before = std::prev(segment);
  if (equal(before->second, segment->second)) join(before, segment);
}

aclError CreatePool(Device& device, size_t most, aclrtMemPool* handle) {
  constexpr const char* kCall = "aclrtMemPoolCreate";
  char* begin = ReservePoolAddresses(MemoryPool::AddressBytes(most));
  if (begin == nullptr) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: the host has no addresses for %zu bytes",
                kCall, most);
  }
  auto pool = std::make_shared<MemoryPool>(device, most, begin);
  HandleBlock* block = AllocateHandle(HandleKind::kMemoryPool, pool.get());
  if (block == nullptr) {
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: no handle is left", kCall);
  }
  std::lock_guard lock(PoolLock());
  GetPools().open[pool.get()] = {pool, block};
  *handle = block;
  return ACL_SUCCESS;
}

aclError FindPool(aclrtMemPool handle, const char* call, std::shared_ptr<MemoryPool>* pool) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "memPool"));
  std::lock_guard lock(PoolLock());
  auto found = GetPools().open.find(ObjectOf<MemoryPool>(handle, HandleKind::kMemoryPool));
  if (found == GetPools().open.end()) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is not a live memory pool", call, handle);
  }
  *pool = found->second.first;
  return ACL_SUCCESS;
}

aclError DestroyPool(aclrtMemPool handle, const char* call) {
  std::shared_ptr<MemoryPool> pool;  // ends outside of the lock
  ACLTAPE_RETURN_IF_FAILED(FindPool(handle, call, &pool));
  std::lock_guard lock(PoolLock());
  auto found = GetPools().open.find(pool.get());
  if (found == GetPools().open.end()) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p was destroyed meanwhile", call, handle);
  }
  WipeHandle(found->second.second);
  GetPools().open.erase(found);
  pool->Trim(0);
  return ACL_SUCCESS;
}

aclError AllocateInStreamOrder(const std::shared_ptr<MemoryPool>& pool, Stream& stream,
                               size_t bytes, const char* call, void** address) {
  auto allocation = std::make_shared<PoolAllocation>();
  allocation->pool = pool;
  allocation->block = {nullptr, bytes, 0, MemoryKind::kPooled, pool->device().id, call};
  allocation->number = CountAllocation();
  {
    std::string why;
    std::lock_guard lock(PoolLock());
    if (bytes > pool->most() || !pool->Take(stream, allocation.get(), &why)) {
      return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                  "%s: no room for %zu bytes; the pool has at most %zu bytes, of which %llu are in "
                  "use, and device %d has %llu bytes, of which %llu are in use%s%s",
                  call, bytes, pool->most(), static_cast<unsigned long long>(pool->attributes.used),
                  pool->device().id, static_cast<unsigned long long>(GetProfile().memory),
                  static_cast<unsigned long long>(pool->device().memory_used.load()),
                  why.empty() ? "" : "; ", why.c_str());
    }
    GetPools().allocations[allocation->block.begin] = allocation;
    TrackMemory(allocation->block);
  }
  Task task;
  task.run = RunAllocation;
  task.drop = [](void* argument) { delete static_cast<Allocation*>(argument); };
  task.ready = AllocationIsReady;
  task.argument = new Allocation(allocation);
  task.name = "POOL_ALLOCATE";
  task.kind = TaskKind::kInternal;
  const aclError code = SubmitTask(stream, std::move(task));
  if (code == ACL_SUCCESS) {
    *address = allocation->block.begin;
  } else {
    FreePooledNow(allocation->block.begin);
  }
  return code;
}

aclError FreeInStreamOrder(void* address, Stream& stream, const char* call) {
  Allocation allocation;
  {
    std::lock_guard lock(PoolLock());
    auto& allocations = GetPools().allocations;
    auto found = allocations.find(address);
    if (found != allocations.end()) {
      allocation = std::move(found->second);
      allocations.erase(found);
      UntrackMemory(address);
      allocation->pool->EndUse(*allocation);
    }
  }
  if (allocation == nullptr) return FreePlain(address, stream, call);
  auto free = std::make_shared<PoolFree>();
  Task task;
  task.run = RunFree;
  task.drop = DropFree;
  task.argument = new PendingFree{allocation, free};
  task.name = "POOL_FREE";
  task.kind = TaskKind::kInternal;
  const aclError code = SubmitTask(stream, std::move(task));
  std::lock_guard lock(PoolLock());
  free->position = stream.Position();
  allocation->pool->Keep(*allocation, std::move(free));
  return code;
}

bool FreePooledNow(void* address) {
  Allocation allocation;  // ends outside of the lock
  std::lock_guard lock(PoolLock());
  auto& allocations = GetPools().allocations;
  auto found = allocations.find(address);
  if (found == allocations.end()) return false;
  allocation = std::move(found->second);
  allocations.erase(found);
  UntrackMemory(address);
  if (allocation->begun) EndInStreamOrder(allocation->block);
  allocation->ended = true;
  allocation->pool->EndUse(*allocation);
  allocation->pool->GiveBack(*allocation);
  return true;
}

void TrimPools() {
  if (!StreamOrder::Wanted()) return;
  std::lock_guard lock(PoolLock());
  for (const auto& [pool, open] : GetPools().open) pool->Trim(pool->attributes.release_threshold);
}

bool EmptyPools(const Device& device) {
  if (!StreamOrder::Wanted()) return false;
  std::lock_guard lock(PoolLock());
  EmptyAll(device);
  return true;
}

}  // namespace acltape::device
