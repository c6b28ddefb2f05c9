// Puts slices on tracks so that those of a track nest, and writes begins and ends in order of time.
//
// Slices of one group (a thread, a stream) usually nest. One that ends after the slice around it,
// such as a user range that was not closed in order, goes to a further track of its group. So no
// time is ever changed.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "timeline/event_writer.h"

namespace acltape::timeline {

class OpenSlices {
 public:
  explicit OpenSlices(EventWriter& writer) : writer_(writer) {}

  // Adds a track that holds no slices of its own.
  int64_t AddHolder(Track track);
  // A group of slices; `first` is its first track, the others are made as they are needed. Returns
  // the number of the group.
  size_t AddGroup(Track first);
  // The pid that tracks of the group have.
  const Track& group(size_t number) const { return groups_[number].first; }

  // Writes the slice; sets its track. Slices come in order of `begin_ns`; `end_ns` is not smaller.
  void Add(size_t group, Slice& slice, int64_t end_ns);
  // Writes a value of a counter, a track of AddHolder.
  void Count(int64_t track, int64_t at_ns, int64_t bytes);
  void CloseAll();

  int64_t slices() const { return slices_; }

 private:
  struct Lane {
    int64_t track = 0;
    std::vector<int64_t> ends;  // ends of the open slices, outermost first
  };
  struct Group {
    Track first;
    std::vector<Lane> lanes;
  };
  struct Open {
    int64_t end_ns;
    int64_t number;  // in order of begins
    size_t group, lane;
    // The order of a queue whose top ends first; of two that end together the inner one.
    bool operator<(const Open& other) const {
      return end_ns != other.end_ns ? end_ns > other.end_ns : number < other.number;
    }
  };
  void CloseUpTo(int64_t ns);
  size_t LaneFor(size_t group, int64_t end_ns);

  EventWriter& writer_;
  std::vector<Group> groups_;
  std::priority_queue<Open> open_;
  int64_t slices_ = 0;
  int64_t last_track_ = 0;
};

}  // namespace acltape::timeline
