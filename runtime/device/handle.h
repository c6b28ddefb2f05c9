// Handles: what the interface gives out in place of pointers to its objects (GEN-09).
//
// A handle is the address of a small block that is never unmapped and carries the object's kind,
// which is wiped at destruction. So a handle that was destroyed, is of the wrong kind, or never was
// a handle is recognised without touching freed memory. Blocks are reused in the order of their
// release, as late as possible.
#pragma once

#include <atomic>
#include <cstdint>

namespace acltape::device {

enum class HandleKind : uint32_t {
  kNone,
  kContext,
  kStream,
  kEvent,
  kModel,
  kNotify,
  kCountNotify,
  kPhysical,
  kHiddenStream,
  kModelTask,
  kTaskGroup,
  kFunction,
  kCondition,
  kLabel,
  kLabelList,
  kBinary,
  kBinaryData,
  kMemoryPool,
};

struct alignas(16) HandleBlock {
  std::atomic<HandleKind> kind;
  std::atomic<uint32_t> generation;  // counts the lives of this block
  std::atomic<void*> object;
};

// Null when two million handles are alive.
HandleBlock* AllocateHandle(HandleKind kind, void* object);
void WipeHandle(HandleBlock* block);

// True for addresses of blocks; the block may be free.
bool IsHandleBlock(const void* handle);

// The live object of `kind` that `handle` names, or null.
template <typename T>
T* ObjectOf(void* handle, HandleKind kind) {
  if (!IsHandleBlock(handle)) return nullptr;
  auto* block = static_cast<HandleBlock*>(handle);
  if (block->kind.load(std::memory_order_acquire) != kind) return nullptr;
  return static_cast<T*>(block->object.load(std::memory_order_relaxed));
}

// A handle kept across calls: resolves only while the same object lives.
struct HandleRef {
  HandleBlock* block;
  uint32_t generation;

  static HandleRef To(HandleBlock* block) {
    return {block, block->generation.load(std::memory_order_relaxed)};
  }

  template <typename T>
  T* Get(HandleKind kind) const {
    if (block == nullptr || block->kind.load(std::memory_order_acquire) != kind ||
        block->generation.load(std::memory_order_relaxed) != generation) {
      return nullptr;
    }
    return static_cast<T*>(block->object.load(std::memory_order_relaxed));
  }
};

}  // namespace acltape::device
