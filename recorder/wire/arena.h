// The shared memory between a recorded process tree and the collector.
//
// The collector creates one arena (a memfd) and names it in the environment variable ACLTAPE_ARENA,
// as a path ("/proc/<collector>/fd/<n>"). A process opens it once, when it starts, and keeps
// mappings alone (Note [No descriptor is kept]). Where the path does not lead to the arena, because
// the process is another user's or sees another /proc, it asks for a descriptor
// (Note [Asking for the arena]). The arena is a header page, then `slot_count` slot pages, then
// `slot_count` rings of `ring_bytes` each. A recorded thread claims a slot and is the only writer
// of its ring; the collector is the only reader.
//
// Life of a slot, as an observer sees it: free -> claimed (pid, tid set) -> closing (the thread is
// gone or will write no more) -> free again, set by the collector once the ring is drained. After a
// kill a slot stays claimed; the collector sees that the process is gone, drains and frees it. For
// that a slot has the numbers that the collector finds in its /proc (Note [Numbers of processes]).
// Slot and generation together name one claim.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace acltape::wire {

constexpr uint64_t kArenaMagic = 0x6570617474636c61;  // "alcttape" in memory order
constexpr uint32_t kArenaVersion = 11;
constexpr size_t kPage = 4096;
constexpr char kArenaVariable[] = "ACLTAPE_ARENA";
constexpr size_t kStepNameBytes = 256;
constexpr size_t kSocketBytes = 72;
constexpr uint64_t kPatienceNs = 30'000'000'000;

enum class PayloadPolicy : uint32_t { kNone = 0, kDigest = 1, kInputs = 2, kAll = 3 };
constexpr const char* kPayloadNames[] = {"none", "digest", "inputs", "all"};
constexpr const char* NameOf(PayloadPolicy policy) {
  return kPayloadNames[static_cast<size_t>(policy) % 4];
}
enum LevelBits : uint32_t { kLevelAten = 1, kLevelAcl = 2 };

// Says for which calls the line of the program's source is kept, and how much of the stack around
// it.
enum class StackPolicy : uint32_t {
  kNone = 0,
  kTop = 1,  // the innermost frame of the user's own code
  kFull = 2  // all frames
};

// The things that an agent left out because the system refused it memory or a key. Each is a row of
// the ledger (recorder/collector/left_out.h).
enum class LeftOut : uint32_t {
  kProcesses,  // the process is not recorded at all
  kCalls,
  kArguments,   // arguments of calls
  kIdentities,  // identities of memory, streams, events, graphs
  kContents,    // contents of tensors and memory
  kRanges,      // ranges of the program, and enclosing calls
  kLines,       // lines of the program's source
};
constexpr size_t kLeftOutKinds = 7;

enum class SlotState : uint32_t { kFree = 0, kClaimed = 1, kClosing = 2 };

// One page per slot. `head` and `tail` count bytes since the claim and never wrap; the position in
// the ring is the count modulo ring_bytes.
struct Slot {
  std::atomic<SlotState> state;
  uint32_t pid;
  uint32_t tid;
  std::atomic<uint32_t> generation;        // grows by one with each claim
  uint32_t tid_is_own;                     // 1: `tid` is the number in the thread's own namespace
  alignas(64) std::atomic<uint64_t> head;  // written by the producer, released after each record
  std::atomic<uint64_t> completed_calls;   // finished since the claim, those without room too
  alignas(64) std::atomic<uint64_t> tail;  // written by the collector
  alignas(64) std::atomic<uint64_t> stalled_ns;  // time the producer waited for room
  std::atomic<uint64_t> dropped_records;         // records given up, because the collector was gone
  // What the recorder takes from the thread (recorder/agent/own_time.h), in ticks of the clock.
  std::atomic<uint64_t> own_ticks;      // the recorder's own, estimated
  std::atomic<uint64_t> counted_ticks;  // the thread's, of which those are a part
  std::atomic<uint64_t> timed_hooks;    // from which it was estimated
};
static_assert(sizeof(Slot) <= kPage);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct ArenaHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t slot_count;
  uint64_t ring_bytes;  // a power of two, a multiple of the page
  // These say what is recorded. They are fixed before the program starts.
  uint32_t levels;  // LevelBits
  PayloadPolicy payload;
  uint32_t record_composites;  // 1: enclosing calls, scopes and phases too
  uint32_t record_modules;     // 1: scopes of torch.nn modules too (Python)
  // Who empties the rings: the collector, and after its death its keeper (collector/keeper.h).
  std::atomic<uint32_t> collector_pid;
  StackPolicy stacks;
  // The choice of the steps that are recorded (Note [Windows]). 0: all of them.
  uint32_t choose_steps;
  uint64_t first_step;
  uint64_t last_step;
  uint32_t limit_size;  // 1: a new window begins at the end of a step when `turn` asks for it
  char
      step_name[kStepNameBytes];  // name of the ranges that are steps, as wire::IsStepName takes it
  uint32_t device_times;  // 1: the times at which the device did the work of calls (ACL level)
  uint64_t patience_ns;   // how long a thread waits for a collector that does not answer
  // The address where a process asks (arena_request.h), as the environment has it. It tells arenas
  // apart, too.
  char socket[kSocketBytes];
  // The numbers of the collector, see process_number.h. The namespace is 0 when the numbers of the
  // collector's own namespace are not those of its /proc.
  uint64_t pid_namespace;
  uint64_t proc_device;
  // Clock: nanoseconds of CLOCK_MONOTONIC = base_ns + (tick - base_tick) * ns_per_tick.
  uint64_t base_tick;
  uint64_t base_ns;
  double ns_per_tick;
  // Filled while running.
  alignas(64) std::atomic<uint32_t> stop;          // 1: agents stop recording (disk full, limit)
  std::atomic<uint64_t> heartbeat;                 // grows at least ten times a second
  alignas(64) std::atomic<uint64_t> next_call_id;  // next id of the whole process tree, starts at 1
  alignas(
      64) std::atomic<uint64_t> next_buffer_id;  // next id of the whole process tree, starts at 1
  alignas(
      64) std::atomic<uint64_t> next_handle_id;  // next id of the whole process tree, starts at 1
  std::atomic<uint64_t> threads_without_slot;
  std::atomic<uint64_t> threads_without_ring;      // their ring could not be mapped
  std::atomic<uint64_t> processes_without_number;  // they could not learn theirs
  std::atomic<uint64_t> processes_not_attached;    // they could not map the arena and said so
  std::atomic<uint64_t> processes_unanswered;      // they did not wait for the answer
  std::atomic<uint64_t> left_out[kLeftOutKinds];   // by LeftOut
  std::atomic<uint64_t> attached_processes;        // processes that mapped the arena
  std::atomic<uint64_t> torch_processes;  // processes in which the torch plug-in registered
  std::atomic<uint64_t> acl_processes;    // processes in which an ACL library was wrapped
  std::atomic<uint64_t> steps_seen;       // steps of the process that has seen most
  // The first memory that the recorder does not know: 0 none was met, 1 its name is being written,
  // 2 the name is there.
  std::atomic<uint32_t> unknown_memory;
  char unknown_memory_name[28];              // ends with a zero
  std::atomic<uint32_t> turn;                // 1: the collector wants a new window
  alignas(64) std::atomic<uint32_t> window;  // odd: open
};
static_assert(sizeof(ArenaHeader) <= kPage);

// Note [Windows]. Calls are recorded while a window is open. `window` counts openings and closings
// of the whole process tree, by the collector or by the program; where steps are chosen, each
// process has a gate of its own besides (recorder/agent/window.h). While closed, the recorder keeps
// identities alone: which buffers, streams, events and captured graphs there are. A window that
// opens knows no contents, so that its calls' inputs are kept anew.
inline bool OpenWindow(ArenaHeader& header) {
  uint32_t now = header.window.load();
  while ((now & 1) == 0) {
    if (header.window.compare_exchange_weak(now, now + 1)) return true;
  }
  return false;
}
// Begins another window where one is open, so that what came before can be dropped.
inline void TurnWindow(ArenaHeader& header) {
  header.turn.store(0);
  header.window.fetch_add(2);
}
inline bool CloseWindow(ArenaHeader& header) {
  uint32_t now = header.window.load();
  while ((now & 1) == 1) {
    if (header.window.compare_exchange_weak(now, now + 1)) return true;
  }
  return false;
}

constexpr size_t SlotOffset(uint32_t slot) { return kPage * (1 + size_t{slot}); }
constexpr size_t RingOffset(const ArenaHeader& header, uint32_t slot) {
  return kPage * (1 + size_t{header.slot_count}) + size_t{slot} * header.ring_bytes;
}
constexpr size_t ArenaBytes(uint32_t slot_count, uint64_t ring_bytes) {
  return kPage * (1 + size_t{slot_count}) + size_t{slot_count} * ring_bytes;
}

}  // namespace acltape::wire
