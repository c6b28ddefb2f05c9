// Keeps what a program has put on its streams so far, and how much of it is known to have ended
// when something else goes on: another stream that waited for an event, or the host.
//
// A clock has for each stream the number of its pieces of work that come before. Streams are
// numbered as they are met.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::waits {

using Clock = std::vector<uint32_t>;

// Makes each entry at least that of the other.
inline void Advance(Clock& clock, const Clock& to) {
  if (clock.size() < to.size()) clock.resize(to.size());
  for (size_t i = 0; i < to.size(); ++i) {
    if (clock[i] < to[i]) clock[i] = to[i];
  }
}
inline uint32_t At(const Clock& clock, size_t stream) {
  return stream < clock.size() ? clock[stream] : 0;
}

class StreamClocks {
 public:
  // A piece of work joins the stream.
  void AddWork(int64_t stream, uint32_t call) {
    const size_t place = PlaceOf(stream);
    work_[place].push_back(call);
    Clock& clock = clocks_[place];
    if (clock.size() <= place) clock.resize(place + 1);
    clock[place] = static_cast<uint32_t>(work_[place].size());
  }
  void Record(int64_t event, int64_t stream) { records_[event] = OfStream(stream); }
  // The stream goes on after what the event recorded last.
  void Wait(int64_t stream, int64_t event) {
    if (const Clock* record = OfRecord(event)) Advance(clocks_[PlaceOf(stream)], *record);
  }

  // All that has ended once the stream has done what it holds now.
  const Clock& OfStream(int64_t stream) { return clocks_[PlaceOf(stream)]; }
  // Null: the event was not recorded.
  const Clock* OfRecord(int64_t event) const {
    const auto found = records_.find(event);
    return found == records_.end() ? nullptr : &found->second;
  }
  Clock OfAll() const {
    Clock all;
    for (const Clock& clock : clocks_) Advance(all, clock);
    return all;
  }
  size_t PlaceOf(int64_t stream) {
    const auto [entry, created] = place_of_.try_emplace(stream, work_.size());
    if (created) {
      work_.emplace_back();
      clocks_.emplace_back();
      stream_at_.push_back(stream);
    }
    return entry->second;
  }
  int64_t StreamAt(size_t place) const { return stream_at_[place]; }
  // The calls of a stream, in order.
  const std::vector<uint32_t>& WorkAt(size_t place) const { return work_[place]; }

 private:
  std::unordered_map<int64_t, size_t> place_of_;
  std::vector<int64_t> stream_at_;
  std::vector<std::vector<uint32_t>> work_;
  std::vector<Clock> clocks_;
  std::unordered_map<int64_t, Clock> records_;
};

// Finds the work that a call of the host waits for, or has found ended. A copy that blocks waits
// for itself alone, but for one with memory that is not pinned (`pageable`, rule CPY-06).
Clock CoveredByHost(const Work& work, uint32_t call, bool pageable, StreamClocks& clocks);

}  // namespace acltape::analyzer::waits
