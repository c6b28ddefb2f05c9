#include "timeline/open_slices.h"

#include <limits>
#include <string>
#include <utility>

namespace acltape::timeline {

int64_t OpenSlices::AddHolder(Track track) {
  track.id = ++last_track_;
  writer_.AddTrack(track);
  return track.id;
}

size_t OpenSlices::AddGroup(Track first) {
  Group group;
  first.id = AddHolder(first);
  group.lanes.push_back({first.id, {}});
  group.first = std::move(first);
  groups_.push_back(std::move(group));
  return groups_.size() - 1;
}

size_t OpenSlices::LaneFor(size_t number, int64_t end_ns) {
  Group& group = groups_[number];
  for (size_t lane = 0; lane < group.lanes.size(); ++lane) {
    const std::vector<int64_t>& ends = group.lanes[lane].ends;
    if (ends.empty() || ends.back() >= end_ns) return lane;
  }
  Track further = group.first;
  further.kind = TrackKind::kSlices;
  // Beside the thread itself, which can have one track of slices alone.
  if (group.first.kind == TrackKind::kThread) further.parent = group.first.id;
  further.name += " (overlapping " + std::to_string(group.lanes.size()) + ")";
  group.lanes.push_back({AddHolder(further), {}});
  return group.lanes.size() - 1;
}

void OpenSlices::Add(size_t group, Slice& slice, int64_t end_ns) {
  CloseUpTo(slice.begin_ns);
  const size_t lane = LaneFor(group, end_ns);
  slice.track = groups_[group].lanes[lane].track;
  writer_.BeginSlice(slice);
  groups_[group].lanes[lane].ends.push_back(end_ns);
  open_.push({end_ns, slices_++, group, lane});
}

void OpenSlices::Count(int64_t track, int64_t at_ns, int64_t bytes) {
  CloseUpTo(at_ns);
  writer_.Count(track, at_ns, bytes);
}

void OpenSlices::CloseUpTo(int64_t ns) {
  while (!open_.empty() && open_.top().end_ns <= ns) {
    const Open& top = open_.top();
    Lane& lane = groups_[top.group].lanes[top.lane];
    writer_.EndSlice(lane.track, top.end_ns);
    lane.ends.pop_back();
    open_.pop();
  }
}

void OpenSlices::CloseAll() { CloseUpTo(std::numeric_limits<int64_t>::max()); }

}  // namespace acltape::timeline
