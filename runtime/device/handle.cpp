#include "runtime/device/handle.h"

#include <sys/mman.h>

#include <deque>
#include <mutex>

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

bool IsHandleBlock(const void* handle) {
  auto address = reinterpret_cast<uintptr_t>(handle);
  auto base = reinterpret_cast<uintptr_t>(GetPool().base);
  return address - base < kBlocks * sizeof(HandleBlock) && address % sizeof(HandleBlock) == 0;
}

}  // namespace acltape::device
