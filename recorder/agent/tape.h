// The recording core of one process: what the ACL wrappers and the torch plug-in share.
//
// A Tape is one thread's way into its ring. It is created at the thread's first use and lives until
// the thread ends. All members are for the owning thread alone. The agent library defines the
// functions; the plug-in, loaded later, finds them there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "recorder/agent/clock.h"
#include "recorder/agent/own_time.h"
#include "recorder/wire/arena.h"
#include "recorder/wire/records.h"
#include "recorder/wire/ring.h"

namespace acltape::agent {

class Tape;
struct LineCache;
struct OpenRange;
struct NativeNodes;

// The arena of this process, or nullptr when it is not being recorded.
ACLTAPE_AGENT_API wire::ArenaHeader* Arena();

// The tape of this thread: nullptr before its first use, kNoTape when the thread is not recorded.
// It is in static TLS, which is possible because the agent is always loaded at program start. Only
// the agent writes it.
inline Tape* const kNoTape = reinterpret_cast<Tape*>(1);
ACLTAPE_AGENT_API extern __thread Tape* t_tape __attribute__((tls_model("initial-exec")));

// True while the thread is inside a device library, whose own work is no part of the program;
// t_tape is kNoTape then. Threads that it starts there are its own and are not recorded.
ACLTAPE_AGENT_API extern __thread bool t_inside __attribute__((tls_model("initial-exec")));

// Claims a slot at the first call in a thread.
ACLTAPE_AGENT_API Tape* FirstTape();

// This thread's tape, or nullptr when the process is not recorded or no slot was free.
inline Tape* CurrentTape() {
  Tape* tape = t_tape;
  if (__builtin_expect(tape == nullptr, 0)) tape = FirstTape();
  return tape == kNoTape ? nullptr : tape;
}

// Room for `bytes` bytes in the tape's ring, waited for where need be. nullptr: drop the record, as
// it is larger than the ring, or the collector does not answer. It is counted.
ACLTAPE_AGENT_API std::byte* WaitForRoom(Tape* tape, size_t bytes);

// The most bytes of a content that one record carries. A content of more bytes takes several.
inline size_t PieceBytes(const wire::ArenaHeader& arena) {
  constexpr size_t kMost = size_t{1} << 20;
  const size_t quarter = arena.ring_bytes / 4;
  return quarter < kMost ? quarter : kMost;
}

// Small memory blocks that the plug-in keeps for the thread's next allocations, by size class.
constexpr size_t kSpareClasses = 65;
constexpr uint32_t kSpareBlocks = 32;
struct SpareBlocks {
  void* first = nullptr;
  uint32_t count = 0;
};

class Tape {
 public:
  // Room for one record of `bytes` bytes (a multiple of 8), or nullptr when recording has ended.
  std::byte* Begin(size_t bytes) {
    std::byte* room = ring.ReserveKnown(bytes);
    return __builtin_expect(room != nullptr, 1) ? room : WaitForRoom(this, bytes);
  }
  void End(size_t bytes) { ring.Commit(bytes); }
  // Counts a call that has finished, whether its record found room or not.
  void CountCall() {
    auto& completed = ring.slot()->completed_calls;
    completed.store(completed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // Room for a record of type R and `extra` bytes after it; the header is filled in.
  template <typename R>
  R* Begin(wire::RecordKind kind, size_t extra, uint32_t* total) {
    *total = wire::RoundUp8(sizeof(R) + extra);
    auto* record = reinterpret_cast<R*>(Begin(*total));
    if (record != nullptr) record->header = {kind, 0, *total};
    return record;
  }

  // Writes a record of NUL-terminated strings after `record`'s fixed part.
  template <typename R>
  void WriteWithTexts(const R& fixed, const char* const* texts, size_t count) {
    size_t extra = 0;
    for (size_t i = 0; i < count; ++i) extra += strlen(texts[i]) + 1;
    uint32_t total = 0;
    R* record = Begin<R>(fixed.header.kind, extra, &total);
    if (record == nullptr) return;
    *record = fixed;
    record->header.bytes = total;
    char* out = reinterpret_cast<char*>(record + 1);
    for (size_t i = 0; i < count; ++i) {
      const size_t bytes = strlen(texts[i]) + 1;
      memcpy(out, texts[i], bytes);
      out += bytes;
    }
    End(total);
  }
  void WriteMeta(const char* key, const char* value) {
    const char* texts[] = {key, value};
    WriteWithTexts(wire::TextRecord{{wire::RecordKind::kMeta, 0, 0}}, texts, 2);
  }
  void WriteLedger(uint32_t severity, uint64_t count, const char* kind, const char* subject,
                   const char* cause, const char* remedy) {
    const char* texts[] = {kind, subject, cause, remedy};
    wire::LedgerRecord record{{wire::RecordKind::kLedger, 0, 0}, count, severity, 0};
    WriteWithTexts(record, texts, 4);
  }

  // Records of ranges.h.
  void WriteScopeBegin(const char* name, wire::ScopeKind kind) {
    const wire::ScopeBeginRecord record{{wire::RecordKind::kScopeBegin, 0, 0},
                                        Tick(),
                                        arena->next_call_id.load(std::memory_order_relaxed),
                                        kind,
                                        0};
    WriteWithTexts(record, &name, 1);
  }
  void WriteScopeEnd() {
    uint32_t total = 0;
    auto* record = Begin<wire::ScopeEndRecord>(wire::RecordKind::kScopeEnd, 0, &total);
    if (record == nullptr) return;
    record->tick = Tick();
    record->next_call_id = arena->next_call_id.load(std::memory_order_relaxed);
    End(total);
  }

  uint64_t NextCallId() { return arena->next_call_id.fetch_add(1, std::memory_order_relaxed); }
  // Buffer ids come in blocks, so that most need no shared counter.
  uint64_t NextBufferId() {
    if (buffer_id == buffer_id_end) {
      buffer_id = arena->next_buffer_id.fetch_add(kBufferIdBlock, std::memory_order_relaxed);
      buffer_id_end = buffer_id + kBufferIdBlock;
    }
    return buffer_id++;
  }

  uint32_t NextHandleId() {
    return static_cast<uint32_t>(arena->next_handle_id.fetch_add(1, std::memory_order_relaxed));
  }

  static constexpr uint64_t kBufferIdBlock = 256;

  wire::ArenaHeader* arena = nullptr;
  wire::RingProducer ring;
  uint64_t open_call = 0;  // innermost open call that has an id, 0 when none
  // The last leaf whose values are random: what it leaves is kept with the inputs. The plug-in says
  // so of PyTorch's random operators, the ACL level of a leaf that launches one.
  uint64_t random_call = 0;
  // The tick of the last call that ended, or of the tape's beginning. It stamps what happens
  // between calls.
  uint64_t last_tick = 0;
  OwnTime own;
  uint64_t buffer_id = 0;
  uint64_t buffer_id_end = 0;
  SpareBlocks spare_blocks[kSpareClasses];
  // Changes with every window; a content that is known is known in one window alone (window.h).
  uint32_t window = 0;
  uint64_t window_tick = 0;     // when the thread took notice of it
  bool open = false;            // calls are recorded, as of the last look (window.h)
  OpenRange* ranges = nullptr;  // ranges of the thread, innermost last (ranges.h)
  uint32_t range_count = 0;
  uint32_t range_capacity = 0;
  uint32_t optimizer_depth = 0;         // ranges of optimizers among them
  uint32_t own_ranges = 0;              // ranges among them that the program has marked itself
  LineCache* lines = nullptr;           // python_line.cpp
  NativeNodes* native_nodes = nullptr;  // native_stack.cpp
  // The line that was read for the leaf that is open, and the Python frame in which it began
  // (python_line.h, LeafLine). A frame that is open stays where it is.
  uint64_t line_call = 0;
  const void* line_frame = nullptr;
  uint32_t line_place = 0;
  int end_rounds = 0;      // see OnThreadEnd in tape.cpp
  bool meets_acl = false;  // the thread has called the ACL interface, which asks for that line
  uint32_t next_op = 0;    // index of the next operator that is announced in this ring
  // Set by the plug-in: called before the tape is closed, in its own thread. At the end of the
  // process nothing is freed: what it lies in may be gone.
  void (*before_close)(Tape* tape, bool process_ends) = nullptr;
  uint32_t process = 0;  // counts forks, so that a child's records can be told from its parent's
};

}  // namespace acltape::agent
