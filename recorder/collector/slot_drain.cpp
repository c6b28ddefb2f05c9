#include "recorder/collector/slot_drain.h"

#include <unistd.h>

#include "recorder/collector/log_origin.h"
#include "recorder/wire/clock.h"
#include "storage/process_identity.h"

namespace acltape::collector {
namespace {

using wire::SlotState;

bool ThreadRuns(uint32_t pid, uint32_t tid) {
  if (tid == 0) return true;
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%u/task/%u", pid, tid);
  return access(path, F_OK) == 0;
}

}  // namespace

SlotDrain::SlotDrain(ArenaOwner& arena, RecordSink& sink)
    : arena_(arena),
      sink_(sink),
      slots_(arena.header().slot_count),
      ended_(arena.header().slot_count) {}

SlotDrain::~SlotDrain() {
  for (Adopted& adopted : slots_) wire::UnmapRing(adopted.ring, arena_.header());
}

void SlotDrain::Resume(std::span<const SpooledLog> logs) {
  for (const SpooledLog& spooled : logs) {
    if (spooled.slot >= slots_.size()) continue;
    wire::Slot& slot = arena_.slot(spooled.slot);
    if (slot.state.load(std::memory_order_acquire) == SlotState::kFree ||
        slot.generation.load() != spooled.generation) {
      continue;
    }
    if (spooled.ended) {
      ended_[spooled.slot] = spooled.generation;
      continue;
    }
    // The collector may have been killed after it wrote the last records and before it released
    // them. Other counts than these are the program's doing.
    const uint64_t released = slot.tail.load();
    const uint64_t written = slot.head.load(std::memory_order_acquire);
    const bool possible = spooled.taken >= released && spooled.taken <= written;
    slot.tail.store(possible ? spooled.taken : released, std::memory_order_release);
    Adopt(spooled.slot, spooled.log);
  }
}

void SlotDrain::Adopt(uint32_t index, std::optional<uint32_t> log) {
  wire::Slot& slot = arena_.slot(index);
  Adopted& adopted = slots_[index];
  adopted = Adopted{};
  adopted.ring = wire::MapRing(arena_.fd(), arena_.header(), index);
  if (adopted.ring == nullptr) ++unmapped_rings_;
  adopted.slot = &slot;
  adopted.pid = slot.pid;
  adopted.tid = slot.tid_is_own != 0 ? ThreadByOwnNumber(slot.pid, slot.tid) : slot.tid;
  adopted.start_time = storage::ProcessStartTime(adopted.pid);
  adopted.consumer = wire::RingConsumer(&slot, adopted.ring, arena_.header().ring_bytes);
  adopted.lag.emplace(arena_.header().ring_bytes);
  // A program that is replaced by exec claims again under the same ids; its first image will write
  // no more.
  for (Adopted& other : slots_) {
    if (&other != &adopted && other.slot != nullptr && adopted.tid != 0 &&
        other.pid == adopted.pid && other.tid == adopted.tid) {
      other.gone = true;
    }
  }
  adopted.log = log;
  if (log || discarding_) return;
  const uint32_t tid = adopted.tid != 0 ? adopted.tid : slot.tid;
  adopted.log = sink_.Open(OriginOf(adopted.pid, tid, index, slot.generation.load()));
}

size_t SlotDrain::Drain(Adopted& adopted) {
  wire::RingConsumer::Range range = adopted.consumer.Peek();
  if (range.bytes == 0) return 0;
  if (adopted.log && adopted.ring != nullptr && !discarding_) {
    // The producer may have been hit by anything: never read beyond the double mapping. An
    // impossible record ends the log.
    const std::byte nothing[8] = {};
    const bool possible = range.bytes <= arena_.header().ring_bytes;
    sink_.Append(*adopted.log, possible ? std::span(range.begin, range.bytes) : std::span(nothing));
  }
  adopted.consumer.Release(range.bytes);
  return range.bytes;
}

void SlotDrain::Look(Adopted& adopted, int64_t now_ns, size_t bytes) {
  adopted.lag->Look(now_ns, bytes, adopted.slot->stalled_ns.load(std::memory_order_relaxed));
}

void SlotDrain::Discard() {
  discarding_ = true;
  sink_.Clear();
}

void SlotDrain::Finish(Adopted& adopted) {
  if (!adopted.log || discarding_) return;
  const wire::Slot& slot = *adopted.slot;
  // The thread's last wait is told only now.
  Look(adopted, static_cast<int64_t>(wire::MonotonicNs()), 0);
  SlotEnd end;
  end.pid = adopted.pid;
  end.completed_calls = slot.completed_calls.load(std::memory_order_relaxed);
  end.dropped_records = slot.dropped_records.load(std::memory_order_relaxed);
  end.stalled_ns = slot.stalled_ns.load(std::memory_order_relaxed);
  end.ring_needed = adopted.lag->needed();
  end.longest_gap_ns = adopted.lag->longest_gap_ns();
  end.own_ticks = slot.own_ticks.load(std::memory_order_relaxed);
  end.counted_ticks = slot.counted_ticks.load(std::memory_order_relaxed);
  end.timed_hooks = slot.timed_hooks.load(std::memory_order_relaxed);
  sink_.AppendEnd(*adopted.log, end);
}

void SlotDrain::Free(uint32_t index) {
  Adopted& adopted = slots_[index];
  wire::Slot& slot = arena_.slot(index);
  wire::UnmapRing(adopted.ring, arena_.header());
  adopted = Adopted{};
  ended_[index].reset();
  // The next thread uses the first pages again.
  if (slot.head.load() > wire::RingProducer::kBroughtInAtOnce) {
    arena_.ReleasePages(index, wire::RingProducer::kBroughtInAtOnce);
  }
  slot.head.store(0, std::memory_order_relaxed);
  slot.tail.store(0, std::memory_order_relaxed);
  slot.stalled_ns.store(0, std::memory_order_relaxed);
  slot.dropped_records.store(0, std::memory_order_relaxed);
  slot.completed_calls.store(0, std::memory_order_relaxed);
  slot.own_ticks.store(0, std::memory_order_relaxed);
  slot.counted_ticks.store(0, std::memory_order_relaxed);
  slot.timed_hooks.store(0, std::memory_order_relaxed);
  slot.pid = 0;
  slot.tid = 0;
  slot.tid_is_own = 0;
  slot.state.store(SlotState::kFree, std::memory_order_release);
}

size_t SlotDrain::Round() {
  size_t total = 0;
  const auto now_ns = static_cast<int64_t>(wire::MonotonicNs());
  for (uint32_t index = 0; index < slots_.size(); ++index) {
    wire::Slot& slot = arena_.slot(index);
    // Read before draining: what a closed slot holds now is all that it will ever hold.
    const SlotState state = slot.state.load(std::memory_order_acquire);
    if (state == SlotState::kFree) continue;
    if (ended_[index] == slot.generation.load()) {
      // The claim that has ended, or one that has just begun and counts itself next.
      if (state == SlotState::kClosing) Free(index);
      continue;
    }
    Adopted& adopted = slots_[index];
    if (adopted.slot == nullptr) {
      // A claim is complete (pid and tid are set) once there is a record or the slot is closed.
      if (state == SlotState::kClaimed && slot.head.load(std::memory_order_acquire) == 0) continue;
      Adopt(index, {});
    }
    const bool last = state == SlotState::kClosing || adopted.gone;
    const size_t drained = Drain(adopted);
    Look(adopted, now_ns, drained);
    total += drained;
    if (!last) continue;
    while (Drain(adopted) > 0) {
    }
    Finish(adopted);
    Free(index);
  }
  return total;
}

void SlotDrain::CheckLiving() {
  for (Adopted& adopted : slots_) {
    if (adopted.slot == nullptr || adopted.gone) continue;
    if (storage::ProcessRuns(adopted.pid, adopted.start_time) &&
        ThreadRuns(adopted.pid, adopted.tid)) {
      continue;
    }
    adopted.gone = true;
  }
}

int SlotDrain::LivingSlots() const {
  int count = 0;
  for (const Adopted& adopted : slots_) count += adopted.slot != nullptr && !adopted.gone ? 1 : 0;
  return count;
}

void SlotDrain::FinishAll() {
  for (Adopted& adopted : slots_) {
    if (adopted.slot == nullptr) continue;
    Finish(adopted);
    wire::UnmapRing(adopted.ring, arena_.header());
    adopted = Adopted{};
  }
}

}  // namespace acltape::collector
