// Aligns the dataflow of two programs: finds for each call of one program the call of the other
// that does the same.
//
// Neither names nor counts decide. A call is known by its sources: a Merkle hash of all that lies
// before it (R. Merkle, "A Digital Signature Based on a Conventional Encryption Function", 1987).
// It is also known by its users: the same hash of all that lies after it. The stages go from the
// most certain to the least, as in GumTree (J.-R. Falleri et al., "Fine-grained and Accurate Source
// Code Differencing", 2014):
//
//   1. Calls with equal hashes of everything before or after them, then of shrinking
//      neighbourhoods where they are unique on both sides (patience diff: B. Cohen, 2006). Aligned
//      calls get a common identity, with which hashes after a change become equal again.
//   2. Calls between these anchors, in program order: Needleman and Wunsch, 1970, with scores from
//      operators, shapes, arguments and aligned neighbours.
//   3. Groups that compute one call's outputs from its inputs: fused and split calls.
//
// Time and memory grow about linearly with the number of calls. Between two anchors a band bounds
// the work.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analyzer/diff/flow.h"
#include "analyzer/diff/segments.h"

namespace acltape::analyzer::diff {

// Calls of both sides that together have the same inputs and outputs in the dataflow. The group is
// a fusion if A has more calls than B, else a split. The last node of each side gives the outputs.
struct NodeGroup {
  std::array<std::vector<int32_t>, 2> nodes;
};

struct Alignment {
  std::vector<Segment> segments;
  // The node of the other side, or -1, by side and node.
  std::array<std::vector<int32_t>, 2> partner;
  std::vector<NodeGroup> groups;
  std::array<std::vector<int32_t>, 2> group_of;  // by side and node; -1: no group
  // The external content of the other side, or -1, by side and external content.
  std::array<std::vector<int32_t>, 2> external_partner;
};

Alignment Align(const Flow& a, const Flow& b);

}  // namespace acltape::analyzer::diff
