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

// In order of both sides, without gaps. Steps are paired by the nodes that are already aligned, by
// operators, shapes and the contents that they are given, and by position where there are equally
// many, such that the order is kept. `partner`: by node of A the node of B, or -1.
//
// One segment when a side has no steps, when the steps of the two begin at other places of the
// iteration, or when more than a tenth of the aligned nodes would lie in segments that do not
// belong together: steps that were found by their period may differ from one version to the next.
std::vector<Segment> PairSegments(const Flow& a, const Flow& b,
                                  const std::vector<int32_t>& partner);

}  // namespace acltape::analyzer
