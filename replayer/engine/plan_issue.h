// A step in the order in which the host issues it. It consists of regions. A region holds leaves in
// order of issue, each on a stream, and the events that order the streams. A step without a plan
// has the same form, with one stream.
//
// In a captured region, every stream except the origin (stream 0) waits for the start of the region
// before its first leaf. The origin waits for all other streams after the last leaf. Regions run
// one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/plan/plan.h"

namespace acltape::replayer {

struct IssuedLeaf {
  size_t place = 0;           // place among the active leaves of the step
  int stream = 0;             // 0: the origin of the capture
  std::vector<int> wait_for;  // events that its stream waits for before it
  std::vector<int> record;    // events recorded on its stream after it
};

struct IssuedRegion {
  size_t first = 0;  // places [first, end)
  size_t end = 0;
  bool captured = false;
  std::string reason;              // why it is not captured, or why it begins here
  std::vector<IssuedLeaf> leaves;  // in order of issue
  int streams = 1;
  int events = 0;  // its leaves use event numbers [0, events)
};

// Limits for captured regions. `barrier` returns the reason why no region may hold the leaf at a
// place; empty if one may. `cut_before` returns true if a region must begin at a place.
struct RegionLimits {
  std::function<std::string(size_t)> barrier;
  std::function<bool(size_t)> cut_before;
};

// Returns the longest regions within the limits, each on one stream.
std::vector<IssuedRegion> IssueOnOneStream(size_t leaf_count, const RegionLimits& limits);

// Returns the regions of the plan. A captured region that breaks the limits is cut. Its parts run
// one after the other, so events between them are dropped. `place_of` gives the place of each
// active call. Throws Error kUsage if the plan does not name each active call exactly once.
std::vector<IssuedRegion> IssueByPlan(const analyzer::plan::Plan& plan,
                                      const std::unordered_map<int64_t, size_t>& place_of,
                                      const RegionLimits& limits);

// Returns the leaves at [first, end) of a captured region's order of issue as a separate region.
// Parts run one after the other, so waits for events that another part records are dropped.
IssuedRegion PartOf(const IssuedRegion& region, size_t first, size_t end);

// The time at which a leaf runs, as far as the graphs fix it. Leaf x is ordered before leaf y if
// x.end < y.begin.
struct Moment {
  int64_t begin = 0;
  int64_t end = 0;
};

// Returns the moments by place, found with vector clocks over the streams of each region. `end` is
// the position of the leaf in the order of issue. `begin` is the length of the longest prefix of
// that order of which all leaves are ordered before it.
std::vector<Moment> MomentsOf(const std::vector<IssuedRegion>& regions, size_t leaf_count);

}  // namespace acltape::replayer
