// Claims and closes slots, and waits when a ring is full.
#include "recorder/agent/tape.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <new>

#include "recorder/agent/memory.h"
#include "recorder/agent/native_stack.h"
#include "recorder/agent/process.h"
#include "recorder/agent/python_line.h"
#include "recorder/agent/ranges.h"
#include "recorder/agent/sandbox.h"
#include "recorder/agent/window.h"

namespace acltape::agent {

namespace {

pthread_key_t g_end_key;

wire::Slot* SlotAt(uint32_t index) {
  return reinterpret_cast<wire::Slot*>(ThisProcess().slots + wire::kPage * size_t{index});
}

void SleepMicroseconds(long microseconds) {
  if (ThisProcess().sandboxed.load(std::memory_order_relaxed)) {
    const uint64_t end = MonotonicNs() + static_cast<uint64_t>(microseconds) * 1000;
    while (MonotonicNs() < end) {
    }
    return;
  }
  timespec pause{0, microseconds * 1000};
  nanosleep(&pause, nullptr);
}

void WriteName(Tape& tape) {
  char name[64] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  const char* texts[] = {name};
  tape.WriteWithTexts(wire::TextRecord{{wire::RecordKind::kThreadName, 0, 0}}, texts, 1);
}

// A slot that is claimed now; null when all are in use. Those whose rings are mapped come first.
// `closing`: the collector is about to free some of them.
wire::Slot* TakeFreeSlot(const wire::ArenaHeader& arena, uint32_t* index, bool* closing) {
  *closing = false;
  for (const bool mapped : {true, false}) {
    for (*index = 0; *index < arena.slot_count; ++*index) {
      wire::Slot* slot = SlotAt(*index);
      auto state = slot->state.load(std::memory_order_relaxed);
      *closing |= state == wire::SlotState::kClosing;
      if (state != wire::SlotState::kFree || RingIsMapped(*index) != mapped) continue;
      if (slot->state.compare_exchange_strong(state, wire::SlotState::kClaimed)) return slot;
    }
  }
  return nullptr;
}

// Threads may end and begin faster than the collector empties their rings. It is waited for as long
// as it is seen to work, but not for long.
wire::Slot* TakeSlot(const wire::ArenaHeader& arena, uint32_t* index) {
  constexpr uint64_t kSlotPatienceNs = 2'000'000'000;
  constexpr uint64_t kBeatNs = 300'000'000;
  uint64_t begin = 0, beat = 0, beat_ns = 0;
  for (;;) {
    bool closing = false;
    if (wire::Slot* slot = TakeFreeSlot(arena, index, &closing)) return slot;
    if (!closing) return nullptr;
    const uint64_t now = MonotonicNs();
    if (begin == 0) begin = now;
    if (const uint64_t seen = arena.heartbeat.load(); beat_ns == 0 || seen != beat) {
      beat = seen;
      beat_ns = now;
    }
    if (now - begin > kSlotPatienceNs || now - beat_ns > kBeatNs) return nullptr;
    SleepMicroseconds(200);
  }
}

Tape* ClaimSlot() {
  Process& process = ThisProcess();
  wire::ArenaHeader* arena = process.arena;
  if (arena == nullptr || arena->stop.load(std::memory_order_relaxed) != 0) return kNoTape;
  const KeepErrno keep;
  const bool sandboxed = process.sandboxed.load();
  const uint32_t number = ProcessNumber();
  if (number == kNoNumber) return kNoTape;
  uint32_t index = 0;
  wire::Slot* slot = TakeSlot(*arena, &index);
  if (slot == nullptr) {
    arena->threads_without_slot.fetch_add(1);
    return kNoTape;
  }
  // pid and tid are set after the claim: the collector reads them once records arrive.
  slot->pid = number;
  slot->tid = sandboxed ? ThreadNumberHere() : static_cast<uint32_t>(syscall(SYS_gettid));
  slot->tid_is_own = process.elsewhere.load() ? 1 : 0;
  slot->generation++;
  std::byte* ring = MapRingOf(index);
  void* memory = ring != nullptr ? malloc(sizeof(Tape)) : nullptr;
  // Without the key's value nobody would close the slot when the thread ends.
  if (memory == nullptr || pthread_setspecific(g_end_key, memory) != 0) {
    free(memory);
    if (ring != nullptr) GiveBackRing(index, ring);
    slot->state.store(wire::SlotState::kClosing, std::memory_order_release);
    arena->threads_without_ring.fetch_add(1);
    return kNoTape;
  }
  Tape* tape = new (memory) Tape;
  tape->arena = arena;
  tape->ring = wire::RingProducer(slot, ring, arena->ring_bytes);
  tape->process = process.forks;
  tape->last_tick = Tick();
  tape->own.slot = slot;
  if (!sandboxed) WriteName(*tape);
  EnterWindow(*tape);
  return tape;
}

// Destructors of a thread's objects may call the device: those of C++ come before the keys', those
// of other keys in any order, and they may set a key again. So the tape is closed in the last round
// in which the C library asks the keys.
void OnThreadEnd(void* memory) {
  Tape* tape = t_tape;
  if (tape != nullptr && tape != kNoTape && ++tape->end_rounds < PTHREAD_DESTRUCTOR_ITERATIONS &&
      pthread_setspecific(g_end_key, memory) == 0) {
    return;
  }
  CloseTape(false);
}

// True if the process of the collector has ended, so that its heartbeat needs not be waited for. In
// another PID namespace its number is somebody else's. A keeper that takes over has written its
// number long before anybody asks here.
bool CollectorIsGone(const wire::ArenaHeader& arena) {
  const Process& process = ThisProcess();
  if (process.elsewhere.load() || process.sandboxed.load()) return false;
  return kill(static_cast<pid_t>(arena.collector_pid.load()), 0) != 0 && errno == ESRCH;
}

}  // namespace

bool PrepareThreadEnd() {
  const KeepErrno keep;
  return pthread_key_create(&g_end_key, OnThreadEnd) == 0;
}

__thread Tape* t_tape = nullptr;
__thread bool t_inside = false;

Tape* FirstTape() {
  t_tape = kNoTape;  // calls of the claim itself must not recurse
  t_tape = ClaimSlot();
  return t_tape;
}

void CloseTape(bool process_ends) {
  Tape* tape = t_tape;
  if (tape != nullptr && tape != kNoTape && tape->before_close != nullptr)
    tape->before_close(tape, process_ends);
  t_tape = kNoTape;
  if (tape == nullptr || tape == kNoTape) return;
  const auto offset = reinterpret_cast<std::byte*>(tape->ring.slot()) - ThisProcess().slots;
  GiveBackRing(static_cast<uint32_t>(static_cast<size_t>(offset) / wire::kPage), tape->ring.base());
  tape->ring.slot()->state.store(wire::SlotState::kClosing, std::memory_order_release);
  FreeLines(tape->lines);
  FreeRanges(*tape);
  FreeNativeNodes(tape->native_nodes);
  free(tape);
}

void ForgetTapeAfterFork() {
  // The parent's tape is copied memory; its ring stays mapped here but is never written again.
  t_tape = nullptr;
  pthread_setspecific(g_end_key, nullptr);
}

std::byte* WaitForRoom(Tape* tape, size_t bytes) {
  const KeepErrno keep;
  const bool bring_in = !ThisProcess().sandboxed.load(std::memory_order_relaxed);
  if (std::byte* room = tape->ring.Reserve(bytes, bring_in)) return room;
  wire::Slot* slot = tape->ring.slot();
  if (bytes <= tape->ring.capacity()) {
    const uint64_t begin = MonotonicNs();
    const uint64_t begin_tick = Tick();
    uint64_t heartbeat = tape->arena->heartbeat.load(std::memory_order_relaxed);
    uint64_t heartbeat_seen = begin;
    for (uint32_t round = 0;; ++round) {
      if (std::byte* room = tape->ring.Reserve(bytes, bring_in)) {
        slot->stalled_ns.fetch_add(MonotonicNs() - begin, std::memory_order_relaxed);
        tape->own.waited_ticks += Tick() - begin_tick;
        return room;
      }
      SleepMicroseconds(round < 20 ? 20 : 200);
      if (round % 256 != 255) continue;
      // A slow collector is waited for; a dead or frozen one is not.
      if (CollectorIsGone(*tape->arena)) break;
      const uint64_t beat = tape->arena->heartbeat.load(std::memory_order_relaxed);
      const uint64_t now = MonotonicNs();
      if (beat != heartbeat) {
        heartbeat = beat;
        heartbeat_seen = now;
      } else if (now - heartbeat_seen > tape->arena->patience_ns) {
        break;
      }
    }
  }
  slot->dropped_records.fetch_add(1, std::memory_order_relaxed);
  // Later records can mean nothing without this one, so that none follows; all are counted.
  if (bytes <= tape->ring.capacity()) tape->ring.GiveUp();
  return nullptr;
}

}  // namespace acltape::agent
