// Aligns the dataflow of two programs: which call of one does what which call of the other does.
//
// Neither names nor counts decide. A call is known by what it computes from (a Merkle hash of all
// that lies before it, R. Merkle, "A Digital Signature Based on a Conventional Encryption
// Function", 1987) and by what is computed from it (the same hash of what lies behind). The order
// of the work, as in GumTree (J.-R. Falleri et al., "Fine-grained and Accurate Source Code
// Differencing", 2014) from the most certain to the least:
//
//   1. calls with equal hashes of everything before or behind them, then of shrinking
//      neighbourhoods where they are unique on both sides (patience diff: B. Cohen, 2006); what is
//      aligned gets a common identity, with which hashes behind a change become equal again
//   2. between these anchors, in program order: Needleman and Wunsch, 1970, with scores from
//      operators, shapes, arguments and aligned neighbours
//   3. groups that compute one call's outputs from its inputs: fused and split calls
//
// Time and memory grow about linearly with the number of calls; between two anchors the work is
// bounded by a band.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "analyzer/diff/flow.h"
#include "analyzer/diff/segments.h"

namespace acltape::analyzer {

// Calls of both sides with the same inputs and outputs in the dataflow, as one: a fusion where A
// has more of them than B, else a split. The last node of each side gives the outputs.
struct NodeGroup {
  std::array<std::vector<int32_t>, 2> nodes;
};

struct Alignment {
  std::vector<Segment> segments;
  // By side and node: the node of the other side, or -1.
  std::array<std::vector<int32_t>, 2> partner;
  std::vector<NodeGroup> groups;
  std::array<std::vector<int32_t>, 2> group_of;  // by side and node, -1: in none
  // By side and external: that of the other side, or -1.
  std::array<std::vector<int32_t>, 2> external_partner;
};

Alignment Align(const Flow& a, const Flow& b);

}  // namespace acltape::analyzer
