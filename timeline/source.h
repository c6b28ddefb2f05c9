// The sources of the events of a timeline. Each source reads one kind of row and gives it in order
// of time, and the timeline takes from the source whose next event is the earliest.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "storage/reader.h"
#include "timeline/open_slices.h"
#include "timeline/timeline.h"

namespace acltape::timeline {

class CallLookup;

// The groups of slices that processes, threads and streams of a trace have, and the time that is
// shown.
struct Tracks {
  struct Thread {
    int64_t process = 0;
    size_t calls = 0;
    std::optional<size_t> ranges;  // made when the first range comes
  };
  struct Process {
    int64_t track = 0;
    int64_t pid = 0;
    std::optional<size_t> steps;
  };
  std::unordered_map<int64_t, Process> processes;  // by process_id
  std::unordered_map<int64_t, Thread> threads;     // by thread_id; of shown processes alone
  std::unordered_map<int64_t, size_t> streams;     // by stream_id; made when work comes
  int64_t base_ns = 0;
  int64_t first_ns = 0;  // shown are events from here ...
  int64_t last_ns = 0;   // ... to here
};

// The state that all sources share.
struct Output {
  const storage::Reader& trace;
  OpenSlices& slices;
  Tracks& tracks;
  CallLookup& calls;
  TimelineCounts& counts;
};

class Source {
 public:
  virtual ~Source() = default;
  // The time of the next event; nothing: there is none any more.
  virtual std::optional<int64_t> NextTime() = 0;
  virtual void Emit() = 0;
};

}  // namespace acltape::timeline
