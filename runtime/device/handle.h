// Handles: what the interface gives out in place of pointers to its objects (GEN-09).
//
// A handle is the address of a small block that is never unmapped and carries the object's kind,
// which is wiped at destruction. So a handle that was destroyed, is of the wrong kind, or never was
// a handle is recognised without touching freed memory. Blocks are reused in the order of their
// release, as late as possible.
//
// Note [Objects in use]. One thread may destroy an object while another one uses it; a code is the
// answer, never memory that is gone. A call of the interface pins each object that it finds, until
// the call ends. Who destroys an object claims its handle, so that nobody finds it any more and no
// second one destroys it, ends what waits on it, and frees the object when no other thread has it
// pinned. One that stays pinned is not freed.
#pragma once

#include <atomic>
#include <cstdint>

namespace acltape::device {

enum class HandleKind : uint16_t {
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
  std::atomic<uint16_t> pins;        // see Note [Objects in use]
  std::atomic<uint32_t> generation;  // counts the lives of this block
  std::atomic<void*> object;
};
// Addresses for all blocks are taken at once, also from a program that has few.
static_assert(sizeof(HandleBlock) == 16);

// Null when two million handles are alive.
HandleBlock* AllocateHandle(HandleKind kind, void* object);
void WipeHandle(HandleBlock* block);

// True for addresses of blocks; the block may be free.
bool IsHandleBlock(const void* handle);

// Exists while this thread is in a call of the interface; calls inside of it count with it.
class InterfaceCall {
 public:
  InterfaceCall();
  ~InterfaceCall();
  InterfaceCall(const InterfaceCall&) = delete;
  InterfaceCall& operator=(const InterfaceCall&) = delete;
};

// Pins the object until the thread's call ends; does nothing outside of one. False: it is not of
// this kind any more.
bool Pin(HandleBlock& block, HandleKind kind);
// One of several that destroy the object succeeds.
bool Claim(HandleBlock& block, HandleKind kind);
// After Claim: waits until no other thread has the object pinned. False: one keeps it so.
bool AwaitUnpinned(HandleBlock& block);
// For an object that cannot be freed: keeps it reachable, so that it is reported as no leak.
void KeepForGood(const void* object);
// Frees an object whose handle is claimed, or keeps it.
template <typename T>
void FreeClaimed(T* object, void (*free)(T*)) {
  if (object->handle() == nullptr || AwaitUnpinned(*object->handle())) return free(object);
  KeepForGood(object);
}

// The live object of `kind` that `handle` names, or null. It is pinned.
template <typename T>
T* ObjectOf(void* handle, HandleKind kind) {
  if (!IsHandleBlock(handle)) return nullptr;
  auto* block = static_cast<HandleBlock*>(handle);
  if (block->kind.load(std::memory_order_acquire) != kind || !Pin(*block, kind)) return nullptr;
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
