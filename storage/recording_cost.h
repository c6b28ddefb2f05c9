// The cost of a recording to the program, thread by thread: the recorder's own time, waits for room
// in a ring, and what filled the rings. It is the row `recording_cost` of table meta.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/reader.h"

namespace acltape::storage {

constexpr char kRecordingCostKey[] = "recording_cost";

struct ThreadCost {
  int64_t thread_id = 0;
  // Names of the thread. They are in the tables of threads and processes, and not in the row.
  int64_t pid = 0;
  int64_t tid = 0;
  std::string name;
  // The recorder took `own_ns` of `counted_ns` of the thread's time, estimated from so many hooks.
  int64_t own_ns = 0;
  int64_t counted_ns = 0;
  int64_t timed_hooks = 0;
  int64_t waited_ns = 0;    // for room in its ring; no part of own_ns
  int64_t ring_needed = 0;  // size in bytes of a ring in which it would not have waited, 0: unknown
  int64_t longest_gap_ns = 0;  // between looks of the collector at the full ring, 0: unknown
  int64_t lived_ns = 0;        // from its first record to its last
  // What it wrote into its ring: contents that calls read and that calls left, and all other
  // records.
  int64_t input_bytes = 0;
  int64_t output_bytes = 0;
  int64_t record_bytes = 0;
};

struct RecordingCost {
  std::string payload;     // as --payload takes it
  int64_t ring_bytes = 0;  // size of each ring
  // Records that might wait by the option; 0: unknown, or the disk or the memory allowed less.
  int64_t backlog_bytes = 0;
  bool backlog_was_full = false;
  bool size_was_limited = false;  // the size of the rings followed from --max-size
  int64_t value_bytes = 0;        // contents that were kept, of all threads
  int64_t values_ns = 0;          // from the first of them to the last
  std::vector<ThreadCost> threads;
  int64_t more_threads = 0;  // left out of the row, because less was taken from them
};

// The value of the row: a JSON object, with the threads from which the recording took most.
std::string RecordingCostText(const RecordingCost& cost);

// Nothing where the trace has no such row: it is older, or nobody was left to write it.
std::optional<RecordingCost> RecordingCostOf(const Reader& trace);

// The part of the thread's time that the recorder took, from 0 to 1; nothing when no hook was
// timed.
std::optional<double> OwnShare(const ThreadCost& thread);

// Names the options that would have spared these threads their waits, as far as they follow from
// what was seen: fewer values, a larger ring or a larger backlog. Else gives a general advice.
std::string RemedyForWaits(const RecordingCost& cost, std::span<const ThreadCost> threads);

}  // namespace acltape::storage
