#include "recorder/collector/backlog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "recorder/wire/clock.h"

namespace acltape::collector {
namespace {

using storage::Severity;

// Contents below this are not worth a call of the system.
constexpr size_t kLeastContent = size_t{32} << 10;

// Returns the ranges of large contents of tensors among records.
std::vector<Backlog::Range> ContentsIn(std::span<const std::byte> records) {
  std::vector<Backlog::Range> found;
  size_t offset = 0;
  while (offset < records.size()) {
    const RecordBytes record = FirstRecord(records.subspan(offset));
    if (record.empty()) break;
    wire::RecordHeader header;
    std::memcpy(&header, record.data(), sizeof(header));
    if (header.kind == wire::RecordKind::kData && record.size() >= kLeastContent) {
      found.emplace_back(offset + sizeof(wire::DataRecord),
                         record.size() - sizeof(wire::DataRecord));
    }
    offset += record.size();
  }
  return found;
}

// A count of a slot, which the program could have overwritten.
int64_t ToCount(uint64_t count) {
  return static_cast<int64_t>(std::min<uint64_t>(count, uint64_t{4000000000000000000}));
}

template <typename T>
std::span<const std::byte> BytesOf(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}

}  // namespace

std::optional<uint64_t> Backlog::AddToSpool(SpoolKind kind, uint32_t log,
                                            std::span<const std::byte> body) {
  return spool_.Append({kind, log, 0, trace_.next_call_id(), trace_.next_buffer_id()}, body);
}

uint32_t Backlog::Open(const LogOrigin& origin) {
  const uint32_t number = logs_++;
  AddToSpool(SpoolKind::kOpen, number, OpeningOf(origin));
  open_.emplace(number, std::make_shared<RingLog>(trace_, number, origin));
  return number;
}

void Backlog::Append(uint32_t log, std::span<const std::byte> records) {
  Piece piece{open_.at(log), records.size(), {}, {}, false, {}};
  piece.offset = AddToSpool(SpoolKind::kRecords, log, records);
  if (piece.offset) {
    ++in_spool_;
  } else {
    piece.records.assign(records.begin(), records.end());
    in_memory_ += records.size();
    Settle();
  }
  pieces_.push_back(std::move(piece));
  bytes_ += records.size();
}

void Backlog::AppendEnd(uint32_t log, const SlotEnd& end) {
  AddToSpool(SpoolKind::kEnd, log, BytesOf(end));
  pieces_.push_back({open_.at(log), 0, {}, {}, true, end});
  open_.erase(log);
}

void Backlog::AppendClosed(const SpoolClosed& closed) {
  AddToSpool(SpoolKind::kClosed, 0, BytesOf(closed));
}

std::span<const std::byte> Backlog::RecordsOf(const Piece& piece) {
  if (!piece.offset) return piece.records;
  if (buffer_.size() < piece.bytes) buffer_.resize(piece.bytes);
  const std::span<std::byte> records = std::span(buffer_).first(piece.bytes);
  spool_.Read(*piece.offset, records);
  return records;
}

void Backlog::Leave(const Piece& piece, std::span<const std::byte> records) {
  if (!piece.offset) return;
  --in_spool_;
  const int64_t commits = trace_.writer().commits();
  if (!spool_.taking()) {
    done_.push_back({commits, *piece.offset + piece.bytes, {}});
    return;
  }
  std::vector<Range>& contents = contents_[piece.log.get()];
  for (const auto& [offset, bytes] : ContentsIn(records)) {
    contents.emplace_back(*piece.offset + offset, bytes);
  }
  // A content that comes in pieces is written when the last is there.
  if (piece.log->has_incoming_payload()) return;
  done_.push_back({commits, *piece.offset + piece.bytes, std::move(contents)});
  contents.clear();
}

void Backlog::Settle() {
  const int64_t commits = trace_.writer().commits();
  while (!done_.empty() && done_.front().after_commit < commits) {
    const Done& done = done_.front();
    for (const auto& [offset, bytes] : done.contents) spool_.TakeOut(offset, bytes);
    written_end_ = done.end;
    done_.pop_front();
  }
  if (!spool_.taking() && written_end_ > taken_out_) {
    const uint64_t begin = taken_out_ - taken_out_ % wire::kPage;
    spool_.TakeOut(begin, written_end_ - begin);
    taken_out_ = written_end_;
  }
  if (!spool_.taking() && in_spool_ == 0 && done_.empty()) spool_.Remove();
}

void Backlog::EndPiece() {
  const Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  const std::span<const std::byte> records = *records_;
  records_.reset();
  in_memory_ -= piece.records.size();
  Leave(piece, records);
  Settle();
  if (!piece.last) return;
  FinishLog(trace_, *piece.log, piece.end);
  contents_.erase(piece.log.get());
}

// A piece may hold as much as a ring does. A ring fills in less time than its rows take, so the
// time is looked at within a piece too.
void Backlog::Write(int64_t until_ns) {
  while (!pieces_.empty()) {
    if (!records_) {
      records_ = RecordsOf(pieces_.front());
      written_ = 0;
    }
    if (written_ < records_->size()) {
      const size_t bytes = pieces_.front().log->Consume(records_->subspan(written_));
      written_ += bytes;
      bytes_ -= bytes;
    }
    if (written_ == records_->size()) EndPiece();
    if (static_cast<int64_t>(wire::MonotonicNs()) >= until_ns) break;
  }
}

void Backlog::Clear() {
  open_.clear();
  pieces_.clear();
  done_.clear();
  contents_.clear();
  records_.reset();
  bytes_ = in_memory_ = in_spool_ = 0;
}

void FinishLog(TraceBuilder& trace, RingLog& log, const SlotEnd& end) {
  log.Finish(end.completed_calls);
  if (end.dropped_records > 0) {
    trace.Note(Severity::kDataLoss, "records_dropped", fmt::format("process {}", end.pid),
               "a thread gave up records: one was larger than the ring, or the collector did not "
               "answer",
               "record with larger rings", static_cast<int64_t>(end.dropped_records));
  }
  if (end.pid == 0) return;  // nobody saw how the thread ended
  storage::ThreadCost cost = log.Cost();
  cost.own_ns = trace.NsOf(end.own_ticks);
  cost.counted_ns = trace.NsOf(end.counted_ticks);
  cost.timed_hooks = ToCount(end.timed_hooks);
  cost.waited_ns = ToCount(end.stalled_ns);
  // A ring that holds all that the thread wrote is large enough.
  cost.ring_needed =
      std::min(ToCount(end.ring_needed), cost.input_bytes + cost.output_bytes + cost.record_bytes);
  cost.longest_gap_ns = std::max<int64_t>(0, end.longest_gap_ns);
  trace.AddCost(cost);
}

}  // namespace acltape::collector
