// Finds work of different streams that touches the same bytes without an order between the two:
// vector clocks over what the host issues, and per range of bytes who wrote and read it last.
//
//   RaceChecker checker;
//   checker.Work(7, /*stream=*/1, accesses);  // in the order in which the host issues
//   checker.Record(1, event);
//   checker.Wait(2, event);
//   checker.Work(8, 2, more);
//   checker.races();  // empty: every conflict is ordered
//
// It certifies what a planner made and judges what a program recorded, so it knows accesses and
// synchronisation only: no dependency that someone else found goes in. Two reads never race.
// Strided views of one range that share no byte do not race (a view of more than 65,536 separate
// pieces counts as its whole range).
//
// Every reported pair is a race of the program as issued. A race is reported once: what its missing
// wait would order is taken as ordered from there on, so that adding all `missing_waits` leaves
// none. Vector clocks and last accesses: Flanagan and Freund, FastTrack, PLDI 2009.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "analyzer/graph/hazards.h"
#include "analyzer/streams/dag.h"
#include "analyzer/work/work.h"

namespace acltape::analyzer {

// Two operations without an order, by the ids that they were given; `first` was issued first. RAW:
// `second` reads what `first` writes.
struct Race {
  int64_t first = 0;
  int64_t second = 0;
  HazardKind kind = HazardKind::kRaw;
  int64_t buffer = 0;
  int64_t first_byte = 0;  // the range in which both touch the same bytes
  int64_t end_byte = 0;
  bool operator==(const Race&) const = default;
};

// The edit that orders a race, or several: an event recorded right behind one operation on its
// stream, waited for right before the other on its own.
struct MissingWait {
  int64_t record_after = 0;
  int64_t wait_before = 0;
  bool operator==(const MissingWait&) const = default;
};

// Issue order is that of one host thread. Streams, events and operations are named by any integers;
// an event that was recorded again is the later record for the waits that follow.
class RaceChecker {
 public:
  // What the host itself does between its calls (a synchronous copy): ordered behind what the host
  // has waited for, and before all that it issues later.
  static constexpr int64_t kHost = INT64_MIN;

  // A kernel or copy on a stream. A graph's execution is the work of its calls, one after the
  // other, on the stream that executes it; order inside the graph is judged by a checker of its
  // own.
  void Work(int64_t operation, int64_t stream, std::span<const ByteAccess> accesses);

  void Record(int64_t stream, int64_t event);
  // A wait for an event that was never recorded orders nothing.
  void Wait(int64_t stream, int64_t event);

  // The host waits: what it issues from here on is ordered behind.
  void SynchronizeStream(int64_t stream);
  void SynchronizeEvent(int64_t event);
  void SynchronizeDevice();

  // In order of `second`; at most one of a kind and a buffer between two operations.
  const std::vector<Race>& races() const { return races_; }
  // Per operation the fewest that order its races.
  const std::vector<MissingWait>& missing_waits() const { return missing_waits_; }

 private:
  // By stream: how many operations of it are ordered before. Shorter than the number of streams: 0.
  using Clock = std::vector<uint32_t>;
  struct Stream {
    Clock clock;
    uint32_t issued = 0;
    uint64_t seen_host = 0;  // host_version_ that is in the clock
    bool changed = true;     // the clock has changed since the last entry of history
    // The clocks of its operations: from that operation on, but for its own component.
    std::vector<std::pair<uint32_t, Clock>> history;
  };
  // The last use of bytes by an operation that no later use makes superfluous.
  struct Use {
    uint32_t stream = 0;
    uint32_t at = 0;  // place among the operations of its stream, from 1
    int64_t operation = 0;
    const storage::Layout* strided = nullptr;  // null: touches every byte of the range
    bool write = false;
  };
  struct Segment {
    int64_t end = 0;
    std::vector<Use> uses;
  };
  using Segments = std::map<int64_t, Segment>;  // by first byte

  uint32_t StreamOf(int64_t stream);
  Stream& Touch(uint32_t stream);  // with all that the host has waited for
  void AddToHost(const Clock& clock);
  Clock ClockOf(uint32_t stream, uint32_t at) const;
  void CheckSegment(const Clock& clock, const Use& use, const ByteAccess& access, int64_t first,
                    Segment& segment);
  void AddRace(const Use& before, const Use& use, int64_t buffer, int64_t first, int64_t end);
  void OrderBehindConflicts(Stream& stream, int64_t operation);
  const storage::Layout* StridedLayout(const ByteAccess& access);

  std::unordered_map<int64_t, uint32_t> stream_of_;
  std::vector<Stream> streams_ = std::vector<Stream>(1);  // 0 is the host
  uint64_t host_version_ = 0;
  std::unordered_map<int64_t, Clock> events_;
  std::unordered_map<int64_t, Segments> buffers_;
  std::unordered_map<const storage::Layout*, bool> is_dense_;
  std::vector<Use> conflicts_;  // of the operation that is being issued
  size_t first_race_ = 0;       // of that operation
  std::vector<Race> races_;
  std::vector<MissingWait> missing_waits_;
};

// The races of a captured region on the streams of `assignment`; operations are node numbers.
// `accesses` gives the byte ranges of each node. An event that is recorded again while one of its
// waiters may still wait is a WAR race in buffer -1 - event.
RaceChecker CheckAssignment(const StreamAssignment& assignment,
                            std::span<const std::vector<ByteAccess>> accesses);

}  // namespace acltape::analyzer
