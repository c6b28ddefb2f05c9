#include "analyzer/streams/matching.h"

#include <algorithm>
#include <limits>

namespace acltape::analyzer::streams {
namespace {

class HopcroftKarp {
 public:
  HopcroftKarp(const BitMatrix& edges, ChainMatching start)
      : edges_(edges), matching_(std::move(start)), layer_(edges.size()) {}

  ChainMatching Run() {
    while (FindLayers()) {
      for (size_t left = 0; left < edges_.size(); ++left) {
        if (matching_.next[left] < 0 && Augment(static_cast<int32_t>(left))) ++matching_.size;
      }
    }
    return std::move(matching_);
  }

 private:
  // Sets the distance of each left node from the free left nodes along alternating paths. Returns
  // true if a path reaches a free right node.
  bool FindLayers() {
    std::fill(layer_.begin(), layer_.end(), -1);
    std::vector<int32_t> open;
    for (size_t left = 0; left < edges_.size(); ++left) {
      if (matching_.next[left] >= 0) continue;
      layer_[left] = 0;
      open.push_back(static_cast<int32_t>(left));
    }
    std::vector<char> seen(edges_.size(), 0);
    bool found = false;
    for (size_t next = 0; next < open.size(); ++next) {
      const int32_t left = open[next];
      edges_.VisitRow(left, [&](size_t right) {
        if (seen[right]) return true;
        seen[right] = 1;
        const int32_t partner = matching_.previous[right];
        if (partner < 0) {
          found = true;
        } else if (layer_[partner] < 0) {
          layer_[partner] = layer_[left] + 1;
          open.push_back(partner);
        }
        return true;
      });
    }
    return found;
  }

  bool Augment(int32_t left) {
    const int32_t layer = layer_[left];
    layer_[left] = -1;  // visited once per phase
    bool augmented = false;
    edges_.VisitRow(left, [&](size_t right) {
      const int32_t partner = matching_.previous[right];
      if (partner >= 0 && (layer_[partner] != layer + 1 || !Augment(partner))) return true;
      matching_.Pair(left, static_cast<int32_t>(right));
      augmented = true;
      return false;
    });
    return augmented;
  }

  const BitMatrix& edges_;
  ChainMatching matching_;
  std::vector<int32_t> layer_;  // by left node, -1: none
};

// Finds a maximum matching with the most preferred pairs. A pair costs 0 when it is preferred, else
// 1. The reduced cost of a pair, Cost + left - right with the potentials, is never negative, and it
// is 0 for matched pairs. `sink_` is the potential beyond the free right nodes.
class PreferringMatcher {
 public:
  PreferringMatcher(const BitMatrix& edges, const BitMatrix& preferred)
      : edges_(edges),
        preferred_(preferred),
        matching_(MaximumMatching(preferred, ChainMatching(edges.size()))),
        left_(edges.size(), 0),
        right_(edges.size(), 0) {}

  ChainMatching Run() {
    while (RaisePotentials()) {
      for (bool grown = true; grown;) {
        grown = false;
        seen_.assign(edges_.size(), 0);
        for (size_t left = 0; left < edges_.size(); ++left) {
          if (matching_.next[left] < 0 && Augment(static_cast<int32_t>(left))) {
            ++matching_.size;
            grown = true;
          }
        }
      }
    }
    return std::move(matching_);
  }

 private:
  static constexpr int32_t kFar = std::numeric_limits<int32_t>::max();

  int32_t Cost(size_t left, size_t right) const {
    return (preferred_.Get(left, right) ? 0 : 1) + left_[left] - right_[right];
  }

  // Runs Dijkstra's algorithm with buckets from all free left nodes to the nearest free right node.
  // Afterwards the shortest paths have reduced cost 0. Returns false when no free right node can be
  // reached.
  bool RaisePotentials() {
    const size_t nodes = edges_.size();
    std::vector<int32_t> left_far(nodes, kFar);
    std::vector<int32_t> right_far(nodes, kFar);
    std::vector<std::vector<int32_t>> buckets(1);  // right nodes by distance
    int32_t nearest = kFar;
    const auto expand = [&](int32_t left, int32_t distance) {
      left_far[left] = distance;
      edges_.VisitRow(left, [&](size_t right) {
        if (right_far[right] <= distance) return true;
        const int32_t far = distance + Cost(left, right);
        if (far >= right_far[right] || far >= nearest) return true;
        right_far[right] = far;
        if (buckets.size() <= static_cast<size_t>(far)) buckets.resize(far + 1);
        buckets[far].push_back(static_cast<int32_t>(right));
        return true;
      });
    };
    for (size_t left = 0; left < nodes; ++left) {
      if (matching_.next[left] < 0) expand(static_cast<int32_t>(left), 0);
    }
    for (int32_t distance = 0; distance < static_cast<int32_t>(buckets.size()); ++distance) {
      if (distance >= nearest) break;
      for (size_t next = 0; next < buckets[distance].size(); ++next) {
        const int32_t right = buckets[distance][next];
        if (right_far[right] != distance) continue;
        const int32_t partner = matching_.previous[right];
        if (partner < 0) {
          nearest = std::min(nearest, distance + right_[right] - sink_);
        } else if (left_far[partner] == kFar) {
          expand(partner, distance);
        }
      }
    }
    if (nearest == kFar) return false;
    for (size_t node = 0; node < nodes; ++node) {
      left_[node] += std::min(left_far[node], nearest);
      right_[node] += std::min(right_far[node], nearest);
    }
    sink_ += nearest;
    return true;
  }

  bool Augment(int32_t left) {
    bool augmented = false;
    edges_.VisitRow(left, [&](size_t right) {
      if (seen_[right] || Cost(left, right) != 0) return true;
      seen_[right] = 1;
      const int32_t partner = matching_.previous[right];
      if (partner < 0 ? right_[right] != sink_ : partner == left || !Augment(partner)) return true;
      matching_.Pair(left, static_cast<int32_t>(right));
      augmented = true;
      return false;
    });
    return augmented;
  }

  const BitMatrix& edges_;
  const BitMatrix& preferred_;
  ChainMatching matching_;
  std::vector<int32_t> left_;
  std::vector<int32_t> right_;
  int32_t sink_ = 0;
  std::vector<char> seen_;  // right nodes of this pass
};

}  // namespace

ChainMatching MaximumMatching(const BitMatrix& edges, ChainMatching start) {
  return HopcroftKarp(edges, std::move(start)).Run();
}

ChainMatching MaximumMatchingPreferring(const BitMatrix& edges, const BitMatrix& preferred) {
  return PreferringMatcher(edges, preferred).Run();
}

}  // namespace acltape::analyzer::streams
