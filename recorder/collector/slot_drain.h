// Follows the slots of an arena: adopts each that a thread claims, drains its ring into a sink, and
// frees it when the thread or its process is gone (life of a slot: recorder/wire/arena.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "recorder/collector/arena_owner.h"
#include "recorder/collector/record_sink.h"
#include "recorder/collector/ring_lag.h"
#include "recorder/collector/spool_contents.h"
#include "recorder/wire/ring.h"

namespace acltape::collector {

class SlotDrain {
 public:
  SlotDrain(ArenaOwner& arena, RecordSink& sink);
  ~SlotDrain();
  SlotDrain(const SlotDrain&) = delete;
  SlotDrain& operator=(const SlotDrain&) = delete;

  // Goes on where a killed collector stopped. `logs`: what its spool has, oldest first. To be
  // called before the first round.
  void Resume(std::span<const SpooledLog> logs);

  // One round over all slots; returns the bytes drained.
  size_t Round();

  // Looks which threads and processes of claimed slots still run; the others' slots are drained and
  // freed by the next round. Costs some system calls per slot: a few times a second.
  void CheckLiving();

  // Claimed slots whose thread still runs, as of the last CheckLiving.
  int LivingSlots() const;

  // Ends every log that is left, claimed or not. Nothing is drained after this.
  void FinishAll();

  // Threads whose rings the system did not map for the collector. What they send is not read, and
  // they do not wait for it.
  int64_t unmapped_rings() const { return unmapped_rings_; }

  // Throws away everything that arrives from now on, because the trace cannot be written any more.
  // Round goes on emptying rings, so that no program waits.
  void Discard();

 private:
  struct Adopted {
    wire::Slot* slot = nullptr;
    std::byte* ring = nullptr;  // null: not mapped, and never read
    wire::RingConsumer consumer;
    std::optional<uint32_t> log;  // none: what arrives is thrown away
    uint32_t pid = 0;
    uint32_t tid = 0;         // 0: not known, the thread lives as long as its process
    uint64_t start_time = 0;  // start time of the process
    bool gone = false;        // thread or process has ended without closing the slot
    std::optional<RingLag> lag;
  };

  // `log`: that of this claim which is open already.
  void Adopt(uint32_t index, std::optional<uint32_t> log);
  size_t Drain(Adopted& adopted);
  // Notes a look at the ring that took so much.
  static void Look(Adopted& adopted, int64_t now_ns, size_t bytes);
  void Finish(Adopted& adopted);
  void Free(uint32_t index);

  ArenaOwner& arena_;
  RecordSink& sink_;
  std::vector<Adopted> slots_;  // by index; slot == nullptr: not adopted
  // The claim of each slot whose log had ended when the collector was killed while it freed the
  // slot, by index.
  std::vector<std::optional<uint32_t>> ended_;
  bool discarding_ = false;
  int64_t unmapped_rings_ = 0;
};

}  // namespace acltape::collector
