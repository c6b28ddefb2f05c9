// The step of a plan as the host issues it: leaves by region in order of issue, each on a stream,
// with the events that order streams. What one stream runs without a plan has the same form.
//
// A captured region has its own order: every stream but the origin (stream 0) waits for the begin
// of the region before its first leaf, and the origin waits for all of them behind the last.
// Regions run one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/plan/plan.h"

namespace acltape::replayer {

struct IssuedLeaf {
  size_t at = 0;              // place in the list of active leaves of the step
  int stream = 0;             // 0: the origin of the capture
  std::vector<int> wait_for;  // events that its stream waits for right before it
  std::vector<int> record;    // events recorded on its stream right behind it
};

struct IssuedRegion {
  size_t first = 0;  // places [first, end)
  size_t end = 0;
  bool captured = false;
  std::string reason;              // why it is not captured, or why it begins where it does
  std::vector<IssuedLeaf> leaves;  // in order of issue
  int streams = 1;
  int events = 0;  // numbers that its leaves use: [0, events)
};

// What a region must not hold: `barrier` gives the reason for the leaf at a place, empty for none;
// `cut_before` says whether a region must begin there.
struct RegionLimits {
  std::function<std::string(size_t)> barrier;
  std::function<bool(size_t)> cut_before;
};

// The longest regions, all on one stream.
std::vector<IssuedRegion> IssueOnOneStream(size_t leaf_count, const RegionLimits& limits);

// The regions of the plan. A captured one that breaks the limits is cut there; the events between
// its parts, which run one after the other, are dropped. `place_of` gives the places of the active
// calls. Throws Error kUsage when the plan does not name each of them once.
std::vector<IssuedRegion> IssueByPlan(const analyzer::Plan& plan,
                                      const std::unordered_map<int64_t, size_t>& place_of,
                                      const RegionLimits& limits);

// The leaves at [first, end) of the order of issue of a captured region, as a region of their own.
// Parts run one after the other, so waits for events that another part records are dropped.
IssuedRegion PartOf(const IssuedRegion& region, size_t first, size_t end);

// When a leaf runs, as far as the graphs fix it: x is ordered before y if x.end < y.begin.
struct Moment {
  int64_t begin = 0;
  int64_t end = 0;
};

// By place. Vector clocks over the streams of each region: `end` is the position of the leaf in the
// order of issue, `begin` the length of the prefix of that order that is ordered before it.
std::vector<Moment> MomentsOf(const std::vector<IssuedRegion>& regions, size_t leaf_count);

}  // namespace acltape::replayer
