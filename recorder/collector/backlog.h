// Records that were taken from the rings and are not written to the trace yet, in the order of
// arrival.
//
// Emptying a ring is cheap, writing rows is not: about a microsecond a call, on a processor that
// the program may want. So records wait here while the program uses every processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "recorder/collector/ring_log.h"

namespace acltape::collector {

// The final counts of a thread's slot.
struct SlotEnd {
  uint32_t pid = 0;
  uint64_t completed_calls = 0;
  uint64_t dropped_records = 0;
  uint64_t stalled_ns = 0;
};

class Backlog {
 public:
  explicit Backlog(TraceBuilder& trace) : trace_(trace) {}

  void Append(const std::shared_ptr<RingLog>& log, std::span<const std::byte> records);
  // After the last records of a log.
  void AppendEnd(const std::shared_ptr<RingLog>& log, const SlotEnd& end);

  // Writes the oldest until nothing is left or CLOCK_MONOTONIC has passed `until_ns`, always at
  // least what was taken at one look at a ring. Throws what the trace's writer throws.
  void Write(int64_t until_ns);

  void Clear();
  size_t bytes() const { return bytes_; }
  bool empty() const { return pieces_.empty(); }

 private:
  // Records of one ring from one look at it, or the end of its log.
  struct Piece {
    std::shared_ptr<RingLog> log;
    std::vector<std::byte> records;
    bool last = false;
    SlotEnd end;
  };

  void Finish(RingLog& log, const SlotEnd& end);

  TraceBuilder& trace_;
  std::deque<Piece> pieces_;
  size_t bytes_ = 0;
};

}  // namespace acltape::collector
