// Finds work of different streams that touches the same bytes without an order between the two. It
// keeps vector clocks of what the host issues, and for each range of bytes its last writers and
// readers.
//
//   RaceChecker checker;
//   checker.Work(7, /*stream=*/1, accesses);  // in the order in which the host issues
//   checker.Record(1, event);
//   checker.Wait(2, event);
//   checker.Work(8, 2, more);
//   checker.races();  // empty: every conflict is ordered
//
// It checks what a planner made or what a program recorded. It therefore knows accesses and
// synchronisation only, and it takes no dependencies from anyone else. Two reads never race.
// Strided views of one range that share no byte do not race. A view of more than 65,536 separate
// pieces counts as its whole range.
//
// Every reported pair is a race of the program as issued. A race is reported once: from there on,
// the checker acts as if the missing wait existed. A program with all `missing_waits` added
// therefore has no race. Vector clocks and last accesses: Flanagan and Freund, FastTrack, PLDI
// 2009.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/graph/hazards.h"
#include "analyzer/streams/dag.h"

namespace acltape::analyzer::streams {

// Two operations without an order, by the ids that they were given. `first` was issued first. In a
// race of kind RAW, `second` reads what `first` writes.
struct Race {
  int64_t first = 0;
  int64_t second = 0;
  graph::HazardKind kind = graph::HazardKind::kRaw;
  int64_t buffer = 0;
  int64_t first_byte = 0;  // the range in which both touch the same bytes
  int64_t end_byte = 0;
  bool operator==(const Race&) const = default;
};

// A change of the program that orders one or several races: record an event right after one
// operation, on its stream, and wait for it right before the other one, on that one's stream.
struct MissingWait {
  int64_t record_after = 0;
  int64_t wait_before = 0;
  bool operator==(const MissingWait&) const = default;
};

// The issue order is that of one host thread. Any integers can name streams, events and operations.
// If an event is recorded again, later waits are for the later record.
class RaceChecker {
 public:
  // The stream of work that the host itself does between its calls, such as a synchronous copy. It
  // is ordered after everything that the host has waited for, and before everything that it issues
  // later.
  static constexpr int64_t kHost = INT64_MIN;

  // Adds a kernel or a copy on a stream. The execution of a graph counts as the work of its calls,
  // one after the other, on the stream that executes it. Another checker judges the order inside
  // the graph.
  void Work(int64_t operation, int64_t stream, std::span<const ByteAccess> accesses);

  void Record(int64_t stream, int64_t event);
  // A wait for an event that was never recorded orders nothing.
  void Wait(int64_t stream, int64_t event);

  // The host waits. Everything that it issues later is ordered after that.
  void SynchronizeStream(int64_t stream);
  void SynchronizeEvent(int64_t event);
  void SynchronizeDevice();

  // Races in order of `second`. There is at most one race of each kind and buffer between two
  // operations.
  const std::vector<Race>& races() const { return races_; }
  // The fewest waits that order the races of each operation.
  const std::vector<MissingWait>& missing_waits() const { return missing_waits_; }

 private:
  // The number of operations of each stream that are ordered before. A stream beyond the end of the
  // vector has 0.
  using Clock = std::vector<uint32_t>;
  struct Stream {
    Clock clock;
    uint32_t issued = 0;
    uint64_t seen_host = 0;  // the host_version_ that the clock contains
    bool changed = true;     // the clock has changed since the last entry of history
    // The clocks of its operations. Each entry holds from its operation on, except for the stream's
    // own component.
    std::vector<std::pair<uint32_t, Clock>> history;
  };
  // The last use of bytes by an operation, kept until a later use makes it superfluous.
  struct Use {
    uint32_t stream = 0;
    uint32_t number = 0;  // place among the operations of its stream, from 1
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
  Stream& Touch(uint32_t stream);  // with the order of all that the host has waited for
  void AddToHost(const Clock& clock);
  Clock ClockOf(uint32_t stream, uint32_t number) const;
  void CheckSegment(const Clock& clock, const Use& use, const ByteAccess& access, int64_t first,
                    Segment& segment);
  void AddRace(const Use& before, const Use& use, int64_t buffer, int64_t first, int64_t end);
  void OrderAfterConflicts(Stream& stream, int64_t operation);
  const storage::Layout* StridedLayout(const ByteAccess& access);

  std::unordered_map<int64_t, uint32_t> stream_of_;
  std::vector<Stream> streams_ = std::vector<Stream>(1);  // 0 is the host
  uint64_t host_version_ = 0;
  std::unordered_map<int64_t, Clock> events_;
  std::unordered_map<int64_t, Segments> buffers_;
  std::unordered_map<const storage::Layout*, bool> is_dense_;
  std::vector<Use> conflicts_;  // conflicts of the operation that is being issued
  size_t first_race_ = 0;       // first race of that operation
  std::vector<Race> races_;
  std::vector<MissingWait> missing_waits_;
};

// The races of a captured region on the streams of `assignment`. Operations are node numbers.
// `accesses` gives the byte ranges of each node. An event that is recorded again while one of its
// waiters may still wait is reported as a WAR race in buffer -1 - event.
RaceChecker CheckAssignment(const StreamAssignment& assignment,
                            std::span<const std::vector<ByteAccess>> accesses);

}  // namespace acltape::analyzer::streams
