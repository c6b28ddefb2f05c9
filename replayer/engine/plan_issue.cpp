#include "replayer/engine/plan_issue.h"

#include <algorithm>
#include <map>

#include "analyzer/program/regions.h"
#include "storage/error.h"

namespace acltape::replayer {
namespace {

using analyzer::plan::Plan;
using analyzer::plan::PlanRegion;
using analyzer::plan::PlanWait;

Error Misfit(const PlanRegion& region, const std::string& what) {
  return {ErrorKind::kUsage, "region " + std::to_string(region.region) + " of the plan " + what};
}

class PlanReader {
 public:
  PlanReader(const std::unordered_map<int64_t, size_t>& place_of) : place_of_(place_of) {}

  IssuedRegion Read(const PlanRegion& region) {
    IssuedRegion issued;
    issued.first = PlaceOf(region, region.first_call);
    issued.end = PlaceOf(region, region.last_call) + 1;
    issued.captured = region.captured;
    issued.reason = region.reason;
    if (issued.first != next_ || issued.end <= issued.first) {
      throw Misfit(region, "does not begin right after the region before it");
    }
    next_ = issued.end;
    if (!region.captured) {
      for (size_t place = issued.first; place < issued.end; ++place) {
        issued.leaves.push_back({place, 0, {}, {}});
      }
      return issued;
    }
    // Index of each call in issued.leaves.
    std::unordered_map<int64_t, size_t> index;
    for (const analyzer::plan::PlanPlacement& placement : region.placements) {
      const size_t place = PlaceOf(region, placement.call_id);
      if (place < issued.first || place >= issued.end || placement.stream < 0 ||
          !index.emplace(placement.call_id, issued.leaves.size()).second) {
        throw Misfit(region, "places call " + std::to_string(placement.call_id) + " wrongly");
      }
      issued.leaves.push_back({place, placement.stream, {}, {}});
      issued.streams = std::max(issued.streams, placement.stream + 1);
    }
    if (issued.leaves.size() != issued.end - issued.first) {
      throw Misfit(region, "does not place each of its calls once");
    }
    for (const PlanWait& wait : region.waits) {
      const auto from = index.find(wait.record_after);
      const auto to = index.find(wait.wait_before);
      if (from == index.end() || to == index.end() || from->second >= to->second) {
        throw Misfit(region, "has a wait of call " + std::to_string(wait.wait_before) +
                                 " for call " + std::to_string(wait.record_after) +
                                 ", which is not issued before it");
      }
      std::vector<int>& record = issued.leaves[from->second].record;
      if (std::find(record.begin(), record.end(), wait.event) == record.end()) {
        record.push_back(wait.event);
      }
      issued.leaves[to->second].wait_for.push_back(wait.event);
      issued.events = std::max(issued.events, wait.event + 1);
    }
    return issued;
  }

  size_t next() const { return next_; }

 private:
  size_t PlaceOf(const PlanRegion& region, int64_t call_id) const {
    const auto found = place_of_.find(call_id);
    if (found != place_of_.end()) return found->second;
    throw Misfit(region, "names call " + std::to_string(call_id) +
                             ", which is no active call of the step that was planned");
  }

  const std::unordered_map<int64_t, size_t>& place_of_;
  size_t next_ = 0;
};

// Drops waits for events that another part of the region records, and then records that no leaf
// waits for.
void DropForeignEvents(IssuedRegion& part) {
  std::map<int, std::vector<int>*> recorded;
  std::map<std::pair<std::vector<int>*, int>, bool> waited;
  for (IssuedLeaf& leaf : part.leaves) {
    std::erase_if(leaf.wait_for, [&](int event) { return recorded.count(event) == 0; });
    for (const int event : leaf.wait_for) waited[{recorded[event], event}] = true;
    for (const int event : leaf.record) recorded[event] = &leaf.record;
  }
  for (IssuedLeaf& leaf : part.leaves) {
    std::erase_if(leaf.record, [&](int event) { return !waited[{&leaf.record, event}]; });
  }
}

// Appends the region, and cuts it where the limits require it.
void AppendWithin(const RegionLimits& limits, const IssuedRegion& region,
                  std::vector<IssuedRegion>& regions) {
  const std::vector<analyzer::Region> parts = analyzer::FindRegions(
      region.end - region.first, [&](size_t i) { return limits.barrier(region.first + i); },
      [&](size_t i) { return limits.cut_before(region.first + i); });
  if (parts.size() == 1 && parts[0].captured) {
    regions.push_back(region);
    return;
  }
  for (const analyzer::Region& range : parts) {
    IssuedRegion part;
    part.first = region.first + range.first;
    part.end = region.first + range.end;
    part.captured = range.captured;
    part.reason = range.captured ? region.reason : range.reason;
    part.events = region.events;
    for (const IssuedLeaf& leaf : region.leaves) {
      if (leaf.place < part.first || leaf.place >= part.end) continue;
      part.leaves.push_back(leaf);
      if (!part.captured) part.leaves.back() = {leaf.place, 0, {}, {}};
      part.streams = std::max(part.streams, part.leaves.back().stream + 1);
    }
    DropForeignEvents(part);
    regions.push_back(std::move(part));
  }
}

}  // namespace

std::vector<IssuedRegion> IssueOnOneStream(size_t leaf_count, const RegionLimits& limits) {
  std::vector<IssuedRegion> regions;
  for (const analyzer::Region& range :
       analyzer::FindRegions(leaf_count, limits.barrier, limits.cut_before)) {
    IssuedRegion region;
    region.first = range.first;
    region.end = range.end;
    region.captured = range.captured;
    region.reason = range.reason;
    for (size_t place = range.first; place < range.end; ++place)
      region.leaves.push_back({place, 0, {}, {}});
    regions.push_back(std::move(region));
  }
  return regions;
}

std::vector<IssuedRegion> IssueByPlan(const Plan& plan,
                                      const std::unordered_map<int64_t, size_t>& place_of,
                                      const RegionLimits& limits) {
  std::vector<IssuedRegion> regions;
  PlanReader reader(place_of);
  for (const PlanRegion& region : plan.regions) {
    IssuedRegion issued = reader.Read(region);
    if (issued.captured) {
      AppendWithin(limits, issued, regions);
    } else {
      regions.push_back(std::move(issued));
    }
  }
  if (reader.next() != place_of.size()) {
    throw Error(ErrorKind::kUsage, "the plan holds " + std::to_string(reader.next()) + " of the " +
                                       std::to_string(place_of.size()) +
                                       " active calls of its step");
  }
  return regions;
}

IssuedRegion PartOf(const IssuedRegion& region, size_t first, size_t end) {
  IssuedRegion part;
  part.captured = region.captured;
  part.reason = region.reason;
  part.events = region.events;
  part.first = region.end;
  for (size_t i = first; i < end; ++i) {
    const IssuedLeaf& leaf = region.leaves[i];
    part.leaves.push_back(leaf);
    part.first = std::min(part.first, leaf.place);
    part.end = std::max(part.end, leaf.place + 1);
    part.streams = std::max(part.streams, leaf.stream + 1);
  }
  DropForeignEvents(part);
  return part;
}

std::vector<Moment> MomentsOf(const std::vector<IssuedRegion>& regions, size_t leaf_count) {
  std::vector<Moment> moments(leaf_count);
  int64_t before = 0;  // number of leaves in earlier regions
  for (const IssuedRegion& region : regions) {
    // For each stream, the number of its leaves that are ordered before.
    using Clock = std::vector<size_t>;
    const auto streams = static_cast<size_t>(region.streams);
    // For each stream, the positions of its leaves.
    std::vector<std::vector<int64_t>> positions(streams);
    for (size_t i = 0; i < region.leaves.size(); ++i) {
      positions[region.leaves[i].stream].push_back(before + static_cast<int64_t>(i));
    }
    std::vector<Clock> clocks(streams, Clock(streams, 0));
    std::vector<Clock> recorded(region.events);
    for (size_t i = 0; i < region.leaves.size(); ++i) {
      const IssuedLeaf& leaf = region.leaves[i];
      Clock& clock = clocks[leaf.stream];
      for (const int event : leaf.wait_for) {
        for (size_t s = 0; s < recorded[event].size(); ++s) {
          clock[s] = std::max(clock[s], recorded[event][s]);
        }
      }
      const int64_t own = before + static_cast<int64_t>(i);
      int64_t begin = own;
      for (size_t s = 0; s < streams; ++s) {
        if (clock[s] < positions[s].size()) begin = std::min(begin, positions[s][clock[s]]);
      }
      moments[leaf.place] = {begin, own};
      ++clock[leaf.stream];
      for (const int event : leaf.record) recorded[event] = clock;
    }
    before += static_cast<int64_t>(region.leaves.size());
  }
  return moments;
}

}  // namespace acltape::replayer
