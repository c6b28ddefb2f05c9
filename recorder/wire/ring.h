// One producer, one consumer ring of records over shared memory (layout in arena.h).
//
// The ring's pages are mapped twice in a row, so a record that crosses the end is still contiguous.
// The producer reserves room, writes the record in place and commits it with one release store; the
// consumer reads committed bytes and releases them. Neither side ever waits inside this file: a
// full ring is reported, the caller decides (Lamport's queue, with the producer's cached tail of
// FastForward, PPoPP 2008).
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "recorder/wire/arena.h"

namespace acltape::wire {

// Makes every page of a writable mapping present, without a change to it.
inline void BringIn(std::byte* begin, size_t bytes) {
  constexpr int kPopulateForWriting = 23;  // MADV_POPULATE_WRITE, since Linux 5.14
  if (madvise(begin, bytes, kPopulateForWriting) == 0) return;
  for (size_t offset = 0; offset < bytes; offset += kPage) {
    reinterpret_cast<std::atomic<uint8_t>*>(begin + offset)->fetch_or(0, std::memory_order_relaxed);
  }
}

// Maps the ring of `slot` twice; nullptr when the kernel refuses.
inline std::byte* MapRing(int fd, const ArenaHeader& header, uint32_t slot) {
  const size_t bytes = header.ring_bytes;
  const auto offset = static_cast<off_t>(RingOffset(header, slot));
  void* room =
      mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* base = static_cast<std::byte*>(room);
  for (int copy = 0; copy < 2; ++copy) {
    if (mmap(base + copy * bytes, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             offset) == MAP_FAILED) {
      munmap(room, 2 * bytes);
      return nullptr;
    }
  }
  return base;
}

// Maps a ring in a process that has the arena's first page mapped and holds no descriptor of it.
//
// Note [No descriptor is kept]. A program may close any descriptor, its own or not, and use the
// number again: daemons and launchers close all from 3 on. A ring mapped from a remembered number
// would then be a range of the program's own file. A mapping cannot be taken away like that. It
// also survives chroot and a change of user, where the arena's path does not.
//
// mremap(2) makes another mapping of the same pages from a shared mapping when the old size is 0,
// and the new one may reach further than the old one. So the arena is mapped up to the end of the
// ring, for address space only and for a moment, and the ring's part is moved to its two places.
inline std::byte* MapRing(ArenaHeader& header, uint32_t slot) {
  const size_t bytes = header.ring_bytes;
  const size_t offset = RingOffset(header, slot);
  void* room =
      mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* base = static_cast<std::byte*>(room);
  void* arena = mremap(&header, 0, offset + bytes, MREMAP_MAYMOVE);
  if (arena == MAP_FAILED) {
    munmap(room, 2 * bytes);
    return nullptr;
  }
  std::byte* ring = static_cast<std::byte*>(arena) + offset;
  constexpr int kTo = MREMAP_MAYMOVE | MREMAP_FIXED;
  const bool mapped = mremap(ring, 0, bytes, kTo, base) != MAP_FAILED &&
                      mremap(ring, bytes, bytes, kTo, base + bytes) != MAP_FAILED;
  munmap(arena, mapped ? offset : offset + bytes);
  if (!mapped) {
    munmap(room, 2 * bytes);
    return nullptr;
  }
  return base;
}

inline void UnmapRing(std::byte* base, const ArenaHeader& header) {
  if (base != nullptr) munmap(base, 2 * header.ring_bytes);
}

class RingProducer {
 public:
  static constexpr size_t kPrefetchDistance = 192;
  // A fault at a record's first use of a page costs more than everything else of that record, so
  // pages are brought in before. A thread that writes little brings in few.
  static constexpr uint64_t kBroughtInAtOnce = uint64_t{256} << 10;
  RingProducer() = default;
  RingProducer(Slot* slot, std::byte* base, uint64_t ring_bytes)
      : slot_(slot), base_(base), capacity_(ring_bytes) {}

  // Room for `bytes` contiguous bytes, or nullptr when the ring is too full. `bring_in`: pages may
  // be asked of the system; else they come with a fault each.
  std::byte* Reserve(size_t bytes, bool bring_in) {
    std::byte* room = ReserveKnown(bytes);
    if (room != nullptr) return room;
    const uint64_t free_to = slot_->tail.load(std::memory_order_acquire) + capacity_;
    if (head_ + bytes > free_to) return nullptr;
    if (present_ < capacity_ && !bring_in) present_ = capacity_;
    while (present_ < capacity_ && present_ < head_ + bytes) BringInMore();
    known_to_ = present_ < capacity_ && present_ < free_to ? present_ : free_to;
    return ReserveKnown(bytes);
  }
  // Like Reserve, but knows only of the room that was free when Reserve last looked. nullptr
  // therefore does not mean that the ring is full.
  std::byte* ReserveKnown(size_t bytes) {
    if (__builtin_expect(head_ + bytes > known_to_, 0)) return nullptr;
    return base_ + (head_ & (capacity_ - 1));
  }
  // Publishes `bytes` bytes written at the last reservation.
  void Commit(size_t bytes) {
    const uint64_t head = head_ + bytes;
    head_ = head;
    // The consumer has read the lines ahead, one turn of the ring ago. They are asked back now, so
    // that the next record's stores do not wait for them.
    const std::byte* ahead = base_ + (head & (capacity_ - 1)) + kPrefetchDistance;
    slot_->head.store(head, std::memory_order_release);
    __builtin_prefetch(ahead, 1);
    __builtin_prefetch(ahead + 64, 1);
  }

  // From now on there is no room for anything.
  void GiveUp() { capacity_ = known_to_ = 0; }

  Slot* slot() const { return slot_; }
  std::byte* base() const { return base_; }
  uint64_t capacity() const { return capacity_; }

 private:
  // A record that crosses the end lies in the second mapping, too.
  void BringInMore() {
    const uint64_t left = capacity_ - present_;
    const uint64_t more = left < kBroughtInAtOnce ? left : kBroughtInAtOnce;
    BringIn(base_ + present_, more);
    present_ += more;
    if (present_ == capacity_) BringIn(base_ + capacity_, more);
  }

  Slot* slot_ = nullptr;
  std::byte* base_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t head_ = 0;
  uint64_t present_ = 0;   // bytes from the beginning whose pages are present
  uint64_t known_to_ = 0;  // `head_` can grow so far without another look
};

class RingConsumer {
 public:
  RingConsumer() = default;
  RingConsumer(Slot* slot, const std::byte* base, uint64_t ring_bytes)
      : slot_(slot), base_(base), capacity_(ring_bytes), tail_(slot->tail.load()) {}

  // Committed bytes that have not been released, as one contiguous range.
  struct Range {
    const std::byte* begin;
    size_t bytes;
  };
  Range Peek() const {
    const uint64_t head = slot_->head.load(std::memory_order_acquire);
    return {base_ + (tail_ & (capacity_ - 1)), static_cast<size_t>(head - tail_)};
  }
  void Release(size_t bytes) {
    tail_ += bytes;
    slot_->tail.store(tail_, std::memory_order_release);
  }

 private:
  Slot* slot_ = nullptr;
  const std::byte* base_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t tail_ = 0;
};

}  // namespace acltape::wire
