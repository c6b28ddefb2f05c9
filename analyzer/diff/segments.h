// Finds the parts of two programs that belong together: steps with steps, and the calls around
// them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyzer/diff/flow.h"

namespace acltape::analyzer::diff {

struct NodeRange {
  size_t first = 0;
  size_t end = 0;
  size_t size() const { return end - first; }
};

// A range of nodes of each side. One of the two may be empty. A step of -1 means no step.
struct Segment {
  std::array<NodeRange, 2> nodes;
  std::array<int64_t, 2> step = {-1, -1};
};

// Pairs the segments, in order of both sides and without gaps. Steps are paired so that the order
// is kept. The criteria are already aligned nodes, operators, shapes, and contents from outside. If
// both sides have equally many steps, the position counts too. `partner` gives for each node of A
// the node of B, or -1.
//
// There is one segment for everything in four cases: a side has no steps; the steps of the two
// begin at other places of the iteration; more than a tenth of the aligned nodes would be in
// segments that do not belong together; or more than a tenth of the nodes would lack a counterpart
// that another segment has to spare. Steps that were found by their period may differ from one
// version to the next.
std::vector<Segment> PairSegments(const Flow& a, const Flow& b,
                                  const std::vector<int32_t>& partner);

}  // namespace acltape::analyzer::diff
