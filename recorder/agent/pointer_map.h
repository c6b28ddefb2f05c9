// A map from addresses to small values, for any thread: open addressing with linear probing in
// shards that have a lock each. When there is no memory for a new entry, the caller learns it.
#pragma once

#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/hash.h"
#include "recorder/agent/lock.h"
#include "recorder/agent/memory.h"

namespace acltape::agent {

enum class PutResult : uint8_t { kAdded, kReplaced, kNoMemory };

template <typename T>
class PointerMap {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Adds, or replaces and gives the former value to `before`, which may be null. Replacing needs no
  // memory.
  PutResult Put(const void* pointer, const T& value, T* before = nullptr) {
    return Write(pointer, [&](T& entry, bool replaces) {
      if (replaces && before != nullptr) *before = entry;
      entry = value;
    });
  }

  // Adds or replaces as Put does, by `write(value, replaces)`, while nobody else uses the entry. A
  // value that is not replaced holds anything before.
  template <typename Action>
  PutResult Write(const void* pointer, const Action& write) {
    const auto key = reinterpret_cast<uint64_t>(pointer);
    Shard& shard = ShardOf(key);
    Lock lock(shard.mutex);
    Entry* entry = shard.capacity == 0 ? nullptr : Find(shard, key);
    if (entry != nullptr && entry->key != 0) {
      write(entry->value, true);
      return PutResult::kReplaced;
    }
    if (2 * (shard.used + 1) > shard.capacity) {
      if (!Grow(shard)) return PutResult::kNoMemory;
      entry = Find(shard, key);
    }
    shard.used++;
    entry->key = key;
    write(entry->value, false);
    return PutResult::kAdded;
  }

  bool Get(const void* pointer, T* value) {
    return Change(pointer, [&](const T& found) { *value = found; });
  }

  // Calls `action(value)` on the entry while nobody else uses it; false when there is none.
  template <typename Action>
  bool Change(const void* pointer, const Action& action) {
    const auto key = reinterpret_cast<uint64_t>(pointer);
    Shard& shard = ShardOf(key);
    Lock lock(shard.mutex);
    if (shard.used == 0) return false;
    Entry* entry = Find(shard, key);
    if (entry->key == 0) return false;
    action(entry->value);
    return true;
  }

  // Removes; `value` may be null.
  bool Take(const void* pointer, T* value) {
    const auto key = reinterpret_cast<uint64_t>(pointer);
    Shard& shard = ShardOf(key);
    Lock lock(shard.mutex);
    if (shard.used == 0) return false;
    Entry* entry = Find(shard, key);
    if (entry->key == 0) return false;
    if (value != nullptr) *value = entry->value;
    Remove(shard, static_cast<size_t>(entry - shard.entries));
    return true;
  }

  // Frees all locks in a forked child, where the parent's threads that held them do not exist.
  void ForgetLocks() {
    for (Shard& shard : shards_) shard.mutex.Forget();
  }

 private:
  static constexpr size_t kShards = 16;
  struct Entry {
    uint64_t key;  // 0: free
    T value;
  };
  struct Shard {
    Mutex mutex;
    Entry* entries = nullptr;
    size_t capacity = 0;  // a power of two
    size_t used = 0;
  };

  static uint64_t Hash(uint64_t key) { return base::SpreadBits(key >> 4); }
  Shard& ShardOf(uint64_t key) { return shards_[Hash(key) >> 60]; }
  static size_t Home(const Shard& shard, uint64_t key) {
    return (Hash(key) >> 28) & (shard.capacity - 1);
  }
  // The entry of `key`, or the free one where it belongs.
  static Entry* Find(Shard& shard, uint64_t key) {
    size_t slot = Home(shard, key);
    while (shard.entries[slot].key != 0 && shard.entries[slot].key != key) {
      slot = (slot + 1) & (shard.capacity - 1);
    }
    return &shard.entries[slot];
  }
  static bool Grow(Shard& shard) {
    const size_t capacity = shard.capacity == 0 ? 64 : 2 * shard.capacity;
    auto* entries = static_cast<Entry*>(TryAllocateZeros(capacity, sizeof(Entry)));
    if (entries == nullptr) return shard.used + 1 < shard.capacity;
    Entry* before = shard.entries;
    const size_t count = shard.capacity;
    shard.entries = entries;
    shard.capacity = capacity;
    for (size_t i = 0; i < count; ++i) {
      if (before[i].key != 0) *Find(shard, before[i].key) = before[i];
    }
    free(before);
    return true;
  }
  // Later entries of the run move up, so that none comes after a gap (Knuth, volume 3, algorithm
  // R).
  static void Remove(Shard& shard, size_t slot) {
    const size_t mask = shard.capacity - 1;
    shard.used--;
    for (size_t next = (slot + 1) & mask;; next = (next + 1) & mask) {
      if (shard.entries[next].key == 0) break;
      const size_t home = Home(shard, shard.entries[next].key);
      if (((next - home) & mask) < ((next - slot) & mask)) continue;
      shard.entries[slot] = shard.entries[next];
      slot = next;
    }
    shard.entries[slot].key = 0;
  }

  Shard shards_[kShards];
};

}  // namespace acltape::agent
