// Records a program: starts it with the agent preloaded, drains what its threads write into shared
// memory, and closes the trace when it has ended. The interface of `acltape record`.
//
// The program keeps its standard streams, its signals and its exit code. Ctrl-C in a terminal
// reaches the program, which shares the process group, and so does what a process sends to the
// group; SIGTERM, SIGINT or SIGHUP sent to the recorder alone are passed on to it. In every case
// the collector drains until the program has ended.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "recorder/wire/arena.h"
#include "storage/error.h"
#include "storage/trace.h"

namespace acltape::collector {

struct Progress {
  int64_t calls = 0;
  int64_t leaves = 0;
  int64_t payload_bytes = 0;
  int64_t wall_ns = 0;
};

struct RecordOptions {
  std::string output;
  bool overwrite = false;
  wire::PayloadPolicy payload = wire::PayloadPolicy::kInputs;
  std::vector<std::string> command;  // program and arguments, found as execvp finds them
  uint32_t levels = wire::kLevelAten | wire::kLevelAcl;
  // Every instance of a user range of this name becomes a step; "NAME*" takes every range whose
  // name begins so. Empty: what the program marks as steps itself (recorder/ranges/acltape.h).
  std::string steps_from;
  // When calls are recorded (Note [Windows] in recorder/wire/arena.h). `delay_ns` after its start
  // the program's recording opens, `duration_ns` after that it closes; SIGUSR1 to this process, or
  // the program itself (recorder/ranges/acltape.h), open and close it at any time.
  bool start_closed = false;
  std::optional<int64_t> delay_ns;
  std::optional<int64_t> duration_ns;
  // The first and the last step that are recorded, in each process; see steps_from. A program that
  // marks no steps is cut where a step of an optimizer ends.
  std::optional<std::pair<uint64_t, uint64_t>> steps;
  // The trace is kept below this size, 0: no limit. The oldest steps are dropped as a whole; a row
  // of the ledger says how many calls they had.
  int64_t max_bytes = 0;
  std::function<void(bool open, int64_t wall_ns)> window_changed;  // by time or signal
  uint64_t ring_bytes = uint64_t{4} << 20;  // per thread; rounded up to a power of two
  // The bytes of records that may wait: in the spool so many, and less where its disk has little
  // room; in memory at most kMostInMemory. While a processor is idle, a quarter of what memory may
  // hold.
  uint64_t backlog_bytes = uint64_t{4} << 30;
  static constexpr uint64_t kMostInMemory = uint64_t{256} << 20;
  // Received records are kept in a file beside the trace, at most so much of it (spool.h).
  uint64_t spool_bytes = uint64_t{16} << 30;
  // A thread whose ring is full waits so long for a collector that does not answer.
  uint64_t patience_ns = wire::kPatienceNs;
  uint32_t slots = 64;                                 // threads recorded at the same time
  bool composites = true;                              // enclosing calls, ranges and phases
  bool modules = false;                                // ranges of torch.nn modules
  wire::StackPolicy stacks = wire::StackPolicy::kTop;  // lines of the program's source
  bool device_times = false;                           // when the device did the work of calls
  std::string agent_library;                           // preloaded; empty: none
  std::string acl_agent_library;  // preloaded too when the ACL level is recorded
  // The folders in which the agent looks for kits (kit/place.h). Empty: no plug-in is loaded.
  std::string torch_kits;
  std::vector<std::string> environment;  // "NAME=value", added to the program's
  // The file in which the soft device says what it notices (ACLTAPE_SOFT_FINDINGS); empty: none.
  // Its lines become rows of the ledger.
  std::string soft_findings;
  // Recording goes on for so long after the program has ended, while processes that it started
  // live.
  int64_t outlive_ms = 2000;
  // Called once, at the first tensor in memory that the recorder does not know ("cuda:0").
  std::function<void(const std::string& memory)> memory_not_known;
  std::function<void(const Progress&)> progress;  // called about ten times a second
};

struct RecordSummary {
  int exit_code = 0;  // exit code of the program, when it exited by itself
  int signal = 0;     // the signal that killed it, else 0
  std::string state;  // state of the trace: "complete" or "partial"
  // One sentence when the recording failed although the program ran on, else empty. `record` then
  // ends with exit code 4, unless the program's own is not 0.
  std::string failure;
  int64_t calls = 0;
  int64_t leaves = 0;
  int64_t payload_bytes = 0;  // size of distinct contents, uncompressed
  int64_t file_bytes = 0;
  uint64_t attached_processes = 0;  // processes that the agent came into
  uint64_t torch_processes = 0;
  uint64_t acl_processes = 0;
  int64_t windows = 0;      // windows that hold calls
  uint64_t steps_seen = 0;  // steps of the program, if steps are chosen
  bool never_opened = false;
  std::vector<storage::LedgerEntry> ledger;
  int64_t wall_ns = 0;
};

// Errors before the program starts: kUsage when it cannot be found or run, or when the output
// exists and may not be overwritten; kDevice when the output or the shared memory cannot be made.
// No trace is left then. What goes wrong later never disturbs the program and is in the summary.
RecordSummary Record(const RecordOptions& options);

}  // namespace acltape::collector
