#include "recorder/collector/takeover.h"

#include <unistd.h>

#include <algorithm>

#include "recorder/collector/record_sink.h"
#include "recorder/collector/slot_drain.h"
#include "recorder/collector/spool_contents.h"
#include "recorder/wire/clock.h"
#include "storage/process_identity.h"

namespace acltape::collector {
namespace {

constexpr int64_t kNsPerMs = 1000000;

int64_t NowNs() { return static_cast<int64_t>(wire::MonotonicNs()); }

// Adds entries to the end of a spool, and takes the last room of the disk for it: what the rings
// hold is little, and nothing else can save it.
class SpoolTail final : public RecordSink {
 public:
  SpoolTail(int file, const SpoolContents& contents, const wire::ArenaHeader& header)
      : file_(file), end_(contents.end), logs_(contents.logs), header_(header) {
    CutOff();
  }

  uint32_t Open(const LogOrigin& origin) override {
    Add(SpoolKind::kOpen, logs_, OpeningOf(origin));
    return logs_++;
  }
  void Append(uint32_t log, std::span<const std::byte> records) override {
    Add(SpoolKind::kRecords, log, records);
  }
  void AppendEnd(uint32_t log, const SlotEnd& end) override {
    Add(SpoolKind::kEnd, log, std::as_bytes(std::span(&end, 1)));
  }
  void Clear() override {}
  void Close(const SpoolClosed& counts) {
    Add(SpoolKind::kClosed, 0, std::as_bytes(std::span(&counts, 1)));
  }

  bool failed() const { return failed_; }

 private:
  void Add(SpoolKind kind, uint32_t log, std::span<const std::byte> body) {
    if (failed_) return;
    const SpoolEntry entry{kind, log, 0, header_.next_call_id.load(),
                           header_.next_buffer_id.load()};
    const uint64_t bytes = WriteEntry(file_, end_, entry, body);
    failed_ = bytes == 0;
    end_ += bytes;
    if (failed_) CutOff();
  }
  // Removes a part of an entry from the end of the file.
  void CutOff() { static_cast<void>(ftruncate(file_, static_cast<off_t>(end_)) == 0); }

  int file_;
  uint64_t end_;
  uint32_t logs_;
  const wire::ArenaHeader& header_;
  bool failed_ = false;
};

// The pause before the rings are looked at again, in milliseconds.
int Pause(int before, size_t drained, uint64_t ring_bytes) {
  constexpr int kLongest = 8;
  if (drained > ring_bytes / 8) return before / 2;
  return drained < ring_bytes / 32 ? std::clamp(2 * before, 1, kLongest) : before;
}

}  // namespace

void TakeOver(const Takeover& takeover, const std::atomic<bool>& asked_to_end) {
  wire::ArenaHeader& header = takeover.arena.header();
  header.collector_pid.store(static_cast<uint32_t>(getpid()));
  header.heartbeat.fetch_add(1);
  const SpoolContents contents = ReadContents(takeover.spool);
  if (contents.closed) return;
  SpoolTail tail(takeover.spool, contents, header);
  SlotDrain drain(takeover.arena, tail);
  drain.Resume(contents.slots);

  bool outlived = false;
  int64_t deadline = 0;  // for processes that the program left behind
  int pause = 1;
  while (!tail.failed()) {
    header.heartbeat.fetch_add(1);
    // Who lives is asked first: what a thread that is gone has written is all in its ring then, and
    // this round empties that ring to its end.
    const bool runs = storage::ProcessRuns(takeover.program_pid, takeover.program_start);
    drain.CheckLiving();
    const size_t drained = drain.Round();
    if (!runs && drain.LivingSlots() == 0) break;
    if (!runs && deadline == 0) deadline = NowNs() + takeover.outlive_ms * kNsPerMs;
    outlived = asked_to_end.load() || (deadline != 0 && NowNs() >= deadline);
    if (outlived) break;
    pause = Pause(pause, drained, header.ring_bytes);
    takeover.server.Serve(pause);
  }
  if (outlived) {
    header.stop.store(1);
    const int64_t end = NowNs() + 200 * kNsPerMs;
    while (drain.Round() > 0 && NowNs() < end) {
    }
  }
  drain.FinishAll();
  if (tail.failed()) header.stop.store(1);
  if (drain.unmapped_rings() == 0) tail.Close(CountsOf(header, outlived));
}

}  // namespace acltape::collector
