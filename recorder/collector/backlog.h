// Records that were taken from the rings and are not written to the trace yet, in the order of
// arrival.
//
// Emptying a ring is cheap, writing rows is not: about a microsecond a call, on a processor that
// the program may want. So records wait while the program uses every processor: in the spool, and
// in memory where the spool was given up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "recorder/collector/record_sink.h"
#include "recorder/collector/ring_log.h"
#include "recorder/collector/spool.h"

namespace acltape::collector {

class Backlog final : public RecordSink {
 public:
  using Range = std::pair<uint64_t, uint64_t>;  // offset and size

  Backlog(TraceBuilder& trace, Spool& spool) : trace_(trace), spool_(spool) {}

  uint32_t Open(const LogOrigin& origin) override;
  void Append(uint32_t log, std::span<const std::byte> records) override;
  void AppendEnd(uint32_t log, const SlotEnd& end) override;
  // Says in the spool that the rings are empty and nothing is written into them any more.
  void AppendClosed(const SpoolClosed& closed);

  // Writes the oldest until nothing is left or CLOCK_MONOTONIC has passed `until_ns`, always at
  // least some 64 KiB, or one content of a tensor. Throws what the trace's writer throws, and Error
  // kDevice when the spool cannot be read.
  void Write(int64_t until_ns);

  void Clear() override;
  // Bytes of records that wait, wherever.
  size_t bytes() const { return bytes_; }
  // Bytes of memory that what waits takes.
  size_t memory() const { return in_memory_ + pieces_.size() * sizeof(Piece); }
  bool empty() const { return pieces_.empty(); }

 private:
  // Records of one ring from one look at it, or the end of its log.
  struct Piece {
    std::shared_ptr<RingLog> log;
    size_t bytes = 0;
    std::optional<uint64_t> offset;  // in the spool
    std::vector<std::byte> records;  // the records themselves, if the spool does not have them
    bool last = false;
    SlotEnd end;
  };
  // A piece of the spool whose rows are written.
  struct Done {
    int64_t after_commit = 0;     // this transaction may not have them yet, the next has
    uint64_t end = 0;             // in the spool
    std::vector<Range> contents;  // ranges of the contents of tensors in the spool
  };

  // An entry of the spool; nothing where the spool was given up.
  std::optional<uint64_t> AddToSpool(SpoolKind kind, uint32_t log, std::span<const std::byte> body);
  std::span<const std::byte> RecordsOf(const Piece& piece);
  // The oldest piece is written: what comes after its records.
  void EndPiece();
  void Leave(const Piece& piece, std::span<const std::byte> records);
  // Takes out of the spool what the trace has for good.
  void Settle();

  TraceBuilder& trace_;
  Spool& spool_;
  std::unordered_map<uint32_t, std::shared_ptr<RingLog>> open_;  // logs that have not ended
  std::deque<Piece> pieces_;
  std::deque<Done> done_;
  // Contents of tensors that were read from the spool and may not be in the trace yet.
  std::unordered_map<const RingLog*, std::vector<Range>> contents_;
  std::vector<std::byte> buffer_;  // the piece that is being written, from the spool
  // The records of the oldest piece, of which the first `written_` bytes are written. Nothing while
  // no piece is begun.
  std::optional<std::span<const std::byte>> records_;
  size_t written_ = 0;
  size_t bytes_ = 0;
  size_t in_memory_ = 0;      // bytes of records that the spool does not have
  size_t in_spool_ = 0;       // pieces that wait there
  uint64_t written_end_ = 0;  // in the spool: the trace has what is before
  uint64_t taken_out_ = 0;    // from the beginning of a spool that was given up
  uint32_t logs_ = 0;         // logs that were opened
};

// The rows that follow the last record of a log. Also what the thread could not send becomes a row
// of the ledger.
void FinishLog(TraceBuilder& trace, RingLog& log, const SlotEnd& end);

}  // namespace acltape::collector
