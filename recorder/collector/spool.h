// The records that were received, in a file beside the trace until the recording ends.
//
// Note [What was received is kept]. Records wait before they become rows, because rows cost
// processor time that the program may want (recorder/collector/backlog.h). When the program and the
// collector are killed together, by the system that is out of memory or by the end of a container,
// the waiting records must not be lost. So each piece of records goes into this file before
// anything else happens to it, and is read back from there when its rows are written. The kernel
// keeps the file, whoever is killed. It holds the recording from its beginning, because a later
// record means something only together with earlier ones; fold.h makes the trace anew from it.
// The keeper, a process that outlives both, adds the records that still lie in the rings at that
// moment (keeper.h). The file alone says how far a ring was emptied: a log names the claim of a
// slot whose records it has, and has them from the first one on without a gap.
//
// The file is a SpoolHeader, then entries: a SpoolEntry, its body, zeros up to a multiple of 8. The
// contents of tensors are taken out of it again (their blocks of the disk are given back) when the
// trace has them. The last room of a disk is the trace's: when it becomes scarce the file is given
// up. Records wait in memory then, and what the trace has is taken out of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "recorder/collector/tick_clock.h"
#include "recorder/wire/arena.h"
#include "storage/side_files.h"

namespace acltape::collector {

// The process and thread that a log of records is of, as the collector met it, and the claim of a
// slot that the records came through.
struct LogOrigin {
  uint32_t pid = 0;
  uint32_t tid = 0;
  std::string process_name;
  std::optional<int64_t> rank;
  uint32_t slot = 0;
  uint32_t generation = 0;
};

// The final counts of a thread's slot.
struct SlotEnd {
  uint32_t pid = 0;
  uint64_t completed_calls = 0;
  uint64_t dropped_records = 0;
  uint64_t stalled_ns = 0;
  uint64_t ring_needed = 0;    // bytes of a ring in which it would not have waited (ring_lag.h)
  int64_t longest_gap_ns = 0;  // between looks at its ring, if it waited
  // What the recorder took from the thread, as in wire::Slot.
  uint64_t own_ticks = 0;
  uint64_t counted_ticks = 0;
  uint64_t timed_hooks = 0;
};

constexpr uint64_t kSpoolMagic = 0x6c6f6f7073746361;  // "actspool" in memory order
constexpr uint32_t kSpoolVersion = 3;
// The key of table meta that names the spool which belongs to a trace.
constexpr char kSpoolKey[] = "collector_spool";

struct SpoolHeader {
  uint64_t magic = kSpoolMagic;
  uint32_t version = kSpoolVersion;
  uint32_t arena_version = wire::kArenaVersion;  // version of the records
  uint64_t identity[2] = {};                     // random; the trace has the same
  int64_t base_ns = 0;
  uint64_t base_tick = 0;
  double ns_per_tick = 1;
  uint32_t whole = 1;  // 0: given up, parts are missing
  // The recorded program, by pid and start time: while it runs, the keeper of a killed recorder
  // goes on.
  uint32_t program_pid = 0;
  uint64_t program_start = 0;
  int32_t keeper_error = 0;  // 0, or the error that kept the keeper from starting
  uint32_t reserved = 0;
  char steps_from[wire::kStepNameBytes] = {};
};

enum class SpoolKind : uint32_t {
  kOpen = 1,     // a log begins
  kRecords = 2,  // records of a log
  kEnd = 3,      // end of a log
  kClosed = 4    // every ring was emptied to its end; the last entry
};

struct SpoolEntry {
  SpoolKind kind = SpoolKind::kRecords;
  uint32_t log = 0;    // counts from 0, in the order of kOpen
  uint64_t bytes = 0;  // size of the body
  // The next ids of the whole recording when the body was received. No record of the body names
  // these or later ids.
  uint64_t next_call_id = 0;
  uint64_t next_buffer_id = 0;
};

// The body of kOpen, followed by the process's name.
struct SpoolOpen {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t slot = 0;
  uint32_t generation = 0;
  int64_t rank = 0;
  uint32_t has_rank = 0;
  uint32_t reserved = 0;
};

// The body of kClosed: what agents and collector counted in the arena's header.
struct SpoolClosed {
  uint64_t threads_without_slot = 0;
  uint64_t threads_without_ring = 0;
  uint64_t processes_without_number = 0;
  uint64_t processes_not_attached = 0;
  uint64_t processes_unanswered = 0;
  uint64_t left_out[wire::kLeftOutKinds] = {};
  uint64_t torch_processes = 0;
  uint64_t acl_processes = 0;
  uint32_t slots = 0;
  uint32_t outlived = 0;  // 1: a process still ran, and was not recorded any more
};
static_assert(std::is_trivially_copyable_v<SpoolHeader> && sizeof(SpoolEntry) == 32);
static_assert(std::is_trivially_copyable_v<SlotEnd> && std::is_trivially_copyable_v<SpoolClosed>);

// The text of an identity, as table meta has it.
std::string SpoolIdentity(const SpoolHeader& header);

// The body of the entry that opens a log.
std::vector<std::byte> OpeningOf(const LogOrigin& origin);

// The counts of a header, and back into another header.
SpoolClosed CountsOf(const wire::ArenaHeader& header, bool outlived);
void PutCounts(const SpoolClosed& counts, wire::ArenaHeader& header);

// Writes an entry at `end`, where the file ends. Returns how many bytes it took; 0 when the disk
// did not take all of it, then a part may be there.
uint64_t WriteEntry(int file, uint64_t end, SpoolEntry entry, std::span<const std::byte> body);

class Spool {
 public:
  // Creates PATH.spool for the trace PATH; a file that was there is replaced. Where that cannot be
  // done, the spool is given up from the beginning. `most_bytes`: how large it may become.
  Spool(const std::string& path, const TickClock& clock, const std::string& steps_from,
        uint64_t most_bytes);
  // Removes the file.
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // False: nothing is added any more.
  bool taking() const { return taking_; }
  // Why nothing is added any more, as the end of a sentence.
  const std::string& why_not() const { return why_not_; }
  // The descriptor of the file, which stays the spool's own; -1 without a file.
  int file() const { return file_; }
  // Says which program is recorded, and why there is no keeper (0: there is one).
  void SetProgram(uint32_t pid, uint64_t start_time, int keeper_error);
  std::string identity() const { return SpoolIdentity(header_); }
  // Bytes that the disk had left at the last look, above those that make it scarce.
  uint64_t room() const { return room_; }

  // Adds an entry and returns where its body is; nothing when the spool is given up.
  std::optional<uint64_t> Append(SpoolEntry entry, std::span<const std::byte> body);
  // Reads a body back. Throws Error kDevice when the disk does not give it.
  void Read(uint64_t offset, std::span<std::byte> into) const;
  // Gives a range's blocks back to the disk; what is read there is zero from now on.
  void TakeOut(uint64_t offset, uint64_t bytes) const;
  // Adds nothing from now on. The file lives as long as something waits in it.
  void GiveUp(const std::string& why_not);
  // Removes the file: nothing is left in it that the trace does not have.
  void Remove();

 private:
  bool IsDiskScarce();

  SpoolHeader header_;
  std::string path_;
  int file_ = -1;
  uint64_t end_ = 0;
  uint64_t next_look_ = 0;  // at the disk, when the file is so large
  uint64_t room_ = 0;
  uint64_t most_bytes_;
  bool taking_ = false;
  std::string why_not_;
};

}  // namespace acltape::collector
