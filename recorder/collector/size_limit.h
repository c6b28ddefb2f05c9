// Keeps a trace below a size: the newest calls stay, the oldest windows go as a whole
// (`record --max-size`).
//
// A window that opens knows no contents, so that a trace that begins with any window can be
// replayed. So the recording turns to a new window each time that the trace has grown by a quarter
// of the limit: at the end of a step where the program shows its steps, else at once.
#pragma once

#include <cstdint>

#include "recorder/collector/arena_owner.h"
#include "recorder/collector/trace_builder.h"

namespace acltape::collector {

class SizeLimit {
 public:
  // `bytes` 0: none.
  SizeLimit(ArenaOwner& arena, TraceBuilder& trace, int64_t bytes);

  // Looks whether the trace has become too large. The collector calls it often, between two
  // records. `waiting` bytes of records are not in the trace so far. Throws what the trace's writer
  // throws.
  void Look(int64_t now_ns, int64_t waiting);
  // After the last record: drops what is too much and gives its room back.
  void Finish();

  int64_t windows_dropped() const { return windows_; }
  int64_t calls_dropped() const { return calls_; }

 private:
  void AskForWindow(int64_t now_ns);
  // Drops the oldest windows until the trace has at most so many bytes; returns how many it has.
  int64_t DropTo(int64_t most);

  ArenaOwner& arena_;
  TraceBuilder& trace_;
  const int64_t limit_;
  uint32_t window_ = 0;         // the newest that has begun, as the arena counts
  int64_t bytes_at_begin_ = 0;  // bytes that were recorded then and have not been dropped since
  int64_t asked_ns_ = 0;        // 0: not asked for the next window
  int64_t looked_ns_ = 0;
  int64_t windows_ = 0;
  int64_t calls_ = 0;
};

}  // namespace acltape::collector
