#include "recorder/collector/backlog.h"

#include <fmt/format.h>

#include <utility>

#include "recorder/wire/clock.h"

namespace acltape::collector {

using storage::Severity;

void Backlog::Append(const std::shared_ptr<RingLog>& log, std::span<const std::byte> records) {
  pieces_.push_back({log, {records.begin(), records.end()}, false, {}});
  bytes_ += records.size();
}

void Backlog::AppendEnd(const std::shared_ptr<RingLog>& log, const SlotEnd& end) {
  pieces_.push_back({log, {}, true, end});
}

void Backlog::Write(int64_t until_ns) {
  while (!pieces_.empty()) {
    const Piece piece = std::move(pieces_.front());
    pieces_.pop_front();
    bytes_ -= piece.records.size();
    std::span<const std::byte> rest = piece.records;
    while (!rest.empty()) rest = rest.subspan(piece.log->Consume(rest));
    if (piece.last) Finish(*piece.log, piece.end);
    if (static_cast<int64_t>(wire::MonotonicNs()) >= until_ns) break;
  }
}

void Backlog::Clear() {
  pieces_.clear();
  bytes_ = 0;
}

void Backlog::Finish(RingLog& log, const SlotEnd& end) {
  log.Finish(end.completed_calls);
  if (end.dropped_records > 0) {
    trace_.Note(Severity::kDataLoss, "records_dropped", fmt::format("process {}", end.pid),
                "a thread gave up records: one was larger than the ring, or the collector did not "
                "answer",
                "record with larger rings", static_cast<int64_t>(end.dropped_records));
  }
  if (end.stalled_ns > 0) {
    trace_.Note(Severity::kNotice, "recorder_stall", fmt::format("process {}", end.pid),
                "microseconds that threads waited for room in their rings; times in the trace "
                "include them",
                "record fewer values (--payload), with larger rings, or to a faster disk",
                static_cast<int64_t>(end.stalled_ns / 1000 + 1));
  }
}

}  // namespace acltape::collector
