// The first stage of an alignment: calls with equal hashes.
#include <span>
#include <unordered_map>

#include "analyzer/diff/matching.h"

namespace acltape::analyzer::diff {
namespace {

struct Bucket {
  std::array<std::vector<int32_t>, 2> nodes;
};

// Pairs free nodes with equal keys: those that are alone on both sides. With `equal_counts` it also
// pairs nodes in order if both sides have equally many. Key 0 never pairs.
template <typename KeyOf>
size_t PairByKey(Matching& matching, const Segment& segment, bool equal_counts,
                 const KeyOf& key_of) {
  std::unordered_map<uint64_t, Bucket> buckets;
  std::vector<uint64_t> order;  // order of first appearance, so that the outcome is deterministic
  for (int side = 0; side < 2; ++side) {
    for (size_t node = segment.nodes[side].first; node < segment.nodes[side].end; ++node) {
      if (!matching.Free(side, node)) continue;
      const uint64_t key = key_of(side, node);
      if (key == 0) continue;
      const auto [entry, created] = buckets.try_emplace(key);
      if (created) order.push_back(key);
      entry->second.nodes[side].push_back(static_cast<int32_t>(node));
    }
  }
  size_t paired = 0;
  for (const uint64_t key : order) {
    const auto& [left, right] = buckets[key].nodes;
    if (left.size() != right.size() || (left.size() > 1 && !equal_counts)) continue;
    for (size_t i = 0; i < left.size(); ++i) matching.Pair(left[i], right[i]);
    paired += left.size();
  }
  return paired;
}

enum class Look { kBoth, kUp, kDown };

size_t PairByHash(Matching& matching, const Segment& segment, bool exact, int depth, Look look,
                  bool unique) {
  const RangeHashes hashes = HashRange(matching, segment, exact, depth);
  // The hash of a node's readers says little if there are none.
  const auto consumed = [&](int side, size_t node) {
    return !matching.flows[side]->ConsumersOf(node).empty();
  };
  const bool whole = depth == kWhole;
  return PairByKey(matching, segment, whole && look != Look::kDown && !unique,
                   [&](int side, size_t node) {
                     const size_t i = node - segment.nodes[side].first;
                     const uint64_t up = hashes.up[side][i];
                     const uint64_t down = hashes.down[side][i];
                     switch (look) {
                       case Look::kUp:
                         return up;
                       case Look::kDown:
                         return consumed(side, node) ? down : 0;
                       default:
                         return MixHash(up, down);
                     }
                   });
}

bool AnyFree(const Matching& matching, const Segment& segment) {
  for (int side = 0; side < 2; ++side) {
    bool free = false;
    for (size_t node = segment.nodes[side].first; node < segment.nodes[side].end && !free; ++node) {
      free = matching.Free(side, node);
    }
    if (!free) return false;
  }
  return true;
}

struct Pass {
  bool exact;
  int depth;
  Look look;
};

size_t RunPasses(Matching& matching, const Segment& segment, std::span<const Pass> passes,
                 bool unique) {
  size_t paired = 0;
  for (const Pass& pass : passes) {
    if (!AnyFree(matching, segment)) break;
    paired += PairByHash(matching, segment, pass.exact, pass.depth, pass.look,
                         unique && pass.look != Look::kBoth);
  }
  return paired;
}

}  // namespace

size_t MatchByHashes(Matching& matching, const Segment& segment) {
  constexpr Pass kPasses[] = {
      {true, kWhole, Look::kBoth},  {true, kWhole, Look::kUp},  {true, kWhole, Look::kDown},
      {false, kWhole, Look::kBoth}, {false, kWhole, Look::kUp}, {true, 6, Look::kBoth},
      {true, 3, Look::kBoth},       {true, 1, Look::kBoth},     {false, 3, Look::kBoth},
  };
  size_t total = 0;
  constexpr int kMostRounds = 6;
  for (int round = 0; round < kMostRounds; ++round) {
    const size_t paired = RunPasses(matching, segment, kPasses, /*unique=*/false);
    total += paired;
    if (paired == 0) break;
  }
  return total;
}

size_t MatchUnique(Matching& matching, const Segment& segment) {
  constexpr Pass kPasses[] = {
      {true, kWhole, Look::kBoth},
      {true, kWhole, Look::kUp},
      {true, kWhole, Look::kDown},
      {true, 6, Look::kBoth},
  };
  return RunPasses(matching, segment, kPasses, /*unique=*/true);
}

}  // namespace acltape::analyzer::diff
