// Objects of the program whose address is their handle: tensors, executors, descriptions.
//
// They lie in slots that are never unmapped. So a look-up decides whether a handle is a live object
// of this kind without following a pointer that may be anything: null, junk, destroyed, or of
// another kind. A slot rests until many others have been given back after it, so that a handle
// which is used after its end is recognised for a while (rule GEN-09).
//
// Look-ups take no lock. That one object is not destroyed while another thread uses it is up to the
// program, as with the vendor's libraries.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

namespace acltape {

// Held for a few instructions, and cheaper than a mutex: phase one of an operator takes it twice
// for each of its objects.
class BriefLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) sched_yield();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

template <typename T>
class LiveObjects {
 public:
  // Null when no memory is left.
  template <typename... Values>
  T* Create(Values&&... values) {
    Slot* slot = TakeSlot();
    if (slot == nullptr) return nullptr;
    T* object = new (slot->bytes) T{std::forward<Values>(values)...};
    slot->state.store(State::kLive, std::memory_order_release);
    return object;
  }

  // The live object that `handle` is, or null.
  T* Find(const void* handle) const {
    Slot* slot = SlotAt(handle);
    if (slot == nullptr || slot->state.load(std::memory_order_acquire) != State::kLive) {
      return nullptr;
    }
    return reinterpret_cast<T*>(slot->bytes);
  }

  // From here on nobody finds the object, and the caller frees it. Of several callers one succeeds.
  bool Claim(const void* handle) {
    Slot* slot = SlotAt(handle);
    State live = State::kLive;
    return slot != nullptr && slot->state.compare_exchange_strong(live, State::kFree);
  }

  // Ends an object that the caller has claimed.
  void Free(T* claimed) {
    claimed->~T();
    Slot* slot = SlotAt(claimed);
    const std::lock_guard<BriefLock> lock(lock_);
    slot->next = nullptr;
    (newest_ == nullptr ? oldest_ : newest_->next) = slot;
    newest_ = slot;
    ++resting_;
  }

  // False when `handle` is no live object.
  bool Destroy(const void* handle) {
    if (!Claim(handle)) return false;
    Free(static_cast<T*>(const_cast<void*>(handle)));
    return true;
  }

 private:
  enum class State : uint32_t { kFree, kLive };

  struct Slot {
    alignas(T) unsigned char bytes[sizeof(T)];
    std::atomic<State> state;
    Slot* next;  // resting slots, the oldest first
  };

  // Slots are made in arenas: address ranges whose pages come with their first use.
  static constexpr size_t kSlots = size_t{1} << 15;
  static constexpr size_t kMostArenas = 512;
  static constexpr size_t kMostResting = 256;

  Slot* SlotAt(const void* handle) const {
    const auto address = reinterpret_cast<uintptr_t>(handle);
    const size_t count = arena_count_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i) {
      const uintptr_t offset = address - reinterpret_cast<uintptr_t>(arenas_[i]);
      if (offset >= kSlots * sizeof(Slot)) continue;
      return offset % sizeof(Slot) == 0 ? reinterpret_cast<Slot*>(address) : nullptr;
    }
    return nullptr;
  }

  Slot* TakeSlot() {
    const std::lock_guard<BriefLock> lock(lock_);
    if (resting_ > kMostResting || !Grow()) return TakeResting();
    return arenas_[arena_count_.load(std::memory_order_relaxed) - 1] + used_++;
  }

  // Makes sure that the newest arena has a slot that was never used; false: there is no room.
  bool Grow() {
    const size_t count = arena_count_.load(std::memory_order_relaxed);
    if (count > 0 && used_ < kSlots) return true;
    if (count == kMostArenas) return false;
    // Zeros: every slot is free.
    auto* arena = static_cast<Slot*>(std::calloc(kSlots, sizeof(Slot)));
    if (arena == nullptr) return false;
    arenas_[count] = arena;
    used_ = 0;
    arena_count_.store(count + 1, std::memory_order_release);
    return true;
  }

  Slot* TakeResting() {
    Slot* slot = oldest_;
    if (slot == nullptr) return nullptr;
    oldest_ = slot->next;
    if (oldest_ == nullptr) newest_ = nullptr;
    --resting_;
    return slot;
  }

  static_assert(alignof(Slot) <= alignof(std::max_align_t));

  std::atomic<size_t> arena_count_{0};
  Slot* arenas_[kMostArenas] = {};
  BriefLock lock_;
  size_t used_ = 0;  // slots of the newest arena
  size_t resting_ = 0;
  Slot* oldest_ = nullptr;
  Slot* newest_ = nullptr;
};

}  // namespace acltape
