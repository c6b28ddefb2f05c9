// Which stretches of two programs belong together: steps with steps, and what lies around them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyzer/diff/flow.h"

namespace acltape::analyzer {

struct NodeRange {
  size_t first = 0;
  size_t end = 0;
  size_t size() const { return end - first; }
};

// A range of nodes of each side; one of them may be empty. -1: no step.
struct Segment {
  std::array<NodeRange, 2> nodes;
  std::array<int64_t, 2> step = {-1, -1};
};

// In order of both sides, without gaps. Equally many steps are paired by position; else by their
// operators, shapes and the contents that they are given, such that the order is kept. One segment
// when a side has no steps, or when the steps of the two begin at other places of the iteration.
std::vector<Segment> PairSegments(const Flow& a, const Flow& b);

}  // namespace acltape::analyzer
