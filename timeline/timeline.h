// Writes the calls of a trace, with what lies around them, as a timeline: a process holds a track
// per thread with its calls, one with its user ranges and modules, one per stream with the work of
// the device, the steps, and the bytes of memory in use. Arrows lead from leaves to their backward
// nodes, from records of an event to waits for it, and from calls to their work on the device.
//
// The memory that it takes does not depend on the length of the trace.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "storage/reader.h"
#include "timeline/event_writer.h"

namespace acltape::timeline {

// A call as a selection sees it.
struct CallKey {
  int64_t call_id = 0;
  int64_t step = -1;    // -1: in none
  int64_t stream = -1;  // -1: of none
  std::string_view name;
  std::string_view full_name;
};

struct TimelineOptions {
  // Says which calls are shown, with what lies in the time from the first to the last of them. None
  // given: all.
  std::function<bool(const CallKey& call)> wanted;
  // Told now and then how many calls are written.
  std::function<void(int64_t calls)> progress;
};

struct TimelineCounts {
  int64_t calls = 0;
  int64_t slices = 0;  // calls and all others
  int64_t device_slices = 0;
  int64_t arrows = 0;
  int64_t memory_values = 0;
  int64_t tracks = 0;
};

// Throws Error kUsage when no call is wanted.
TimelineCounts WriteTimeline(const storage::Reader& trace, const TimelineOptions& options,
                             EventWriter& writer);

}  // namespace acltape::timeline
