#include "runtime/device/handle.h"

#include <sys/mman.h>
#include <time.h>

#include <deque>
#include <mutex>

#include "runtime/device/futex.h"

namespace acltape::device {
namespace {

constexpr size_t kBlocks = size_t{1} << 21;
// A block rests until this many others have been released after it.
constexpr size_t kResting = 4096;

struct Pool {
  HandleBlock* base;
  std::mutex mutex;
  size_t used = 0;
  std::deque<HandleBlock*> released;

  Pool() {
    // Address space only: pages are backed when a block is first used, and start as zeros.
    void* memory = mmap(nullptr, kBlocks * sizeof(HandleBlock), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    base = memory == MAP_FAILED ? nullptr : static_cast<HandleBlock*>(memory);
  }
};

// The objects that this thread has pinned. Plain memory, because calls still come when threads end.
struct Pinned {
  static constexpr uint32_t kMost = 64;
  uint32_t calls = 0;
  uint32_t count = 0;
  HandleBlock* blocks[kMost] = {};
};
thread_local constinit Pinned pinned;

uint32_t OwnPins(const HandleBlock& block) {
  uint32_t own = 0;
  for (uint32_t i = 0; i < pinned.count; ++i) own += pinned.blocks[i] == &block ? 1 : 0;
  return own;
}

// Never destroyed: destroy calls may come from destructors that run at exit (INIT-09).
Pool& GetPool() {
  static Pool& pool = *new Pool;
  return pool;
}

}  // namespace

HandleBlock* AllocateHandle(HandleKind kind, void* object) {
  Pool& pool = GetPool();
  std::lock_guard lock(pool.mutex);
  HandleBlock* block = nullptr;
  if (pool.released.size() > kResting || (pool.used == kBlocks && !pool.released.empty())) {
    block = pool.released.front();
    pool.released.pop_front();
  } else if (pool.base != nullptr && pool.used < kBlocks) {
    block = pool.base + pool.used++;
  } else {
    return nullptr;
  }
  block->object.store(object, std::memory_order_relaxed);
  block->generation.fetch_add(1, std::memory_order_relaxed);
  block->kind.store(kind, std::memory_order_release);
  return block;
}

void WipeHandle(HandleBlock* block) {
  block->kind.store(HandleKind::kNone, std::memory_order_release);
  block->object.store(nullptr, std::memory_order_relaxed);
  Pool& pool = GetPool();
  std::lock_guard lock(pool.mutex);
  pool.released.push_back(block);
}

InterfaceCall::InterfaceCall() { ++pinned.calls; }

InterfaceCall::~InterfaceCall() {
  if (--pinned.calls != 0) return;
  for (uint32_t i = 0; i < pinned.count; ++i) {
    pinned.blocks[i]->pins.fetch_sub(1, std::memory_order_release);
  }
  pinned.count = 0;
}

// Sequentially consistent against Claim: either this sees the claim, or the claimer sees the pin.
bool Pin(HandleBlock& block, HandleKind kind) {
  if (pinned.calls == 0 || pinned.count == Pinned::kMost || OwnPins(block) != 0) return true;
  block.pins.fetch_add(1, std::memory_order_seq_cst);
  if (block.kind.load(std::memory_order_seq_cst) != kind) {
    block.pins.fetch_sub(1, std::memory_order_release);
    return false;
  }
  pinned.blocks[pinned.count++] = &block;
  return true;
}

bool Claim(HandleBlock& block, HandleKind kind) {
  return block.kind.compare_exchange_strong(kind, HandleKind::kNone, std::memory_order_seq_cst);
}

bool AwaitUnpinned(HandleBlock& block) {
  constexpr int64_t kPatienceNs = 2'000'000'000;
  const uint32_t own = OwnPins(block);
  const auto unpinned = [&] { return block.pins.load(std::memory_order_seq_cst) <= own; };
  if (SpinUntil(unpinned)) return true;
  for (const int64_t limit = NowNs() + kPatienceNs; NowNs() < limit;) {
    if (unpinned()) return true;
    timespec pause{0, 50'000};
    nanosleep(&pause, nullptr);
  }
  return false;
}

void KeepForGood(const void* object) {
  static std::mutex& mutex = *new std::mutex;
  static auto& kept = *new std::deque<const void*>;
  std::lock_guard lock(mutex);
  kept.push_back(object);
}

bool IsHandleBlock(const void* handle) {
  auto address = reinterpret_cast<uintptr_t>(handle);
  auto base = reinterpret_cast<uintptr_t>(GetPool().base);
  return address - base < kBlocks * sizeof(HandleBlock) && address % sizeof(HandleBlock) == 0;
}

}  // namespace acltape::device
