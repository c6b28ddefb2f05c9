#include "analyzer/diff/alignment.h"

#include <utility>

#include "analyzer/diff/matching.h"

namespace acltape::analyzer::diff {
namespace {

void AlignSegment(Matching& matching, const Segment& segment) {
  if (segment.nodes[0].size() == 0 || segment.nodes[1].size() == 0) return;
  constexpr int kMostRounds = 4;
  for (int round = 0; round < kMostRounds; ++round) {
    size_t found = MatchByHashes(matching, segment);
    const size_t in_gaps = AlignGaps(matching, segment);
    found = FindGroups(matching, segment) + in_gaps;
    if (found == 0) break;
  }
}

// True if both sides still have unaligned nodes.
bool HasRest(const Matching& matching) {
  std::array<bool, 2> rest = {false, false};
  for (int side = 0; side < 2; ++side) {
    for (size_t node = 0; node < matching.flows[side]->size() && !rest[side]; ++node) {
      rest[side] = matching.Free(side, node);
    }
  }
  return rest[0] && rest[1];
}

}  // namespace

Alignment Align(const Flow& a, const Flow& b) {
  Alignment alignment;
  Matching matching(a, b);
  Segment whole;
  whole.nodes[0] = {0, a.size()};
  whole.nodes[1] = {0, b.size()};
  MatchUnique(matching, whole);
  alignment.segments = PairSegments(a, b, matching.partner[0]);
  for (const Segment& segment : alignment.segments) AlignSegment(matching, segment);
  // The two sides may have been cut into steps at different places.
  if (alignment.segments.size() > 1 && HasRest(matching)) AlignSegment(matching, whole);
  alignment.partner = std::move(matching.partner);
  alignment.groups = std::move(matching.groups);
  alignment.group_of = std::move(matching.group_of);
  alignment.external_partner = std::move(matching.external_partner);
  return alignment;
}

}  // namespace acltape::analyzer::diff
