// The second stage of an alignment: calls between anchors, in program order.
#include <algorithm>
#include <cmath>
#include <utility>

#include "analyzer/diff/matching.h"

namespace acltape::analyzer::diff {
namespace {

using Nodes = std::vector<int32_t>;

// The longest chain of aligned nodes of the segment that rises on both sides, as nodes of A
// (patience sorting).
Nodes LongestChain(const Matching& matching, const Segment& segment) {
  const NodeRange& other = segment.nodes[1];
  // `tails` holds, for each length of a chain, the node of A that ends the chain with the earliest
  // end in B.
  Nodes tails;
  std::vector<int32_t> before(segment.nodes[0].size(), -1);
  const auto& partner = matching.partner[0];
  for (size_t node = segment.nodes[0].first; node < segment.nodes[0].end; ++node) {
    const int32_t image = partner[node];
    if (image < static_cast<int32_t>(other.first) || image >= static_cast<int32_t>(other.end)) {
      continue;
    }
    const auto place = std::lower_bound(tails.begin(), tails.end(), image,
                                        [&](int32_t tail, int32_t b) { return partner[tail] < b; });
    if (place != tails.begin()) before[node - segment.nodes[0].first] = *std::prev(place);
    if (place == tails.end()) {
      tails.push_back(static_cast<int32_t>(node));
    } else {
      *place = static_cast<int32_t>(node);
    }
  }
  Nodes chain;
  for (int32_t node = tails.empty() ? -1 : tails.back(); node >= 0;
       node = before[node - segment.nodes[0].first]) {
    chain.push_back(node);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

// Aligns by Needleman-Wunsch within a band around the diagonal. Gaps cost nothing, but a pair must
// fit. `near` are hashes of the segment's nodes with their neighbours.
class Band {
 public:
  Band(Matching& matching, const Segment& segment, const RangeHashes& near, const Nodes& a,
       const Nodes& b)
      : matching_(matching), segment_(segment), near_(near), a_(a), b_(b) {
    constexpr size_t kMostCells = size_t{2} << 20;
    half_width_ = b.size();
    if (a.size() * b.size() > kMostCells) {
      half_width_ = std::max<size_t>(16, kMostCells / a.size() / 2);
    }
    slope_ = static_cast<double>(b.size()) / static_cast<double>(a.size());
  }

  size_t Align() {
    Fill();
    size_t paired = 0;
    for (size_t i = 0, j = 0; i < a_.size() && j < b_.size();) {
      const Move move = j < First(i)  ? Move::kSkipB
                        : j >= End(i) ? Move::kSkipA
                                      : moves_[i][j - First(i)];
      if (move == Move::kPair) {
        matching_.Pair(a_[i], b_[j]);
        ++paired;
      }
      if (move != Move::kSkipB) ++i;
      if (move != Move::kSkipA) ++j;
    }
    return paired;
  }

 private:
  enum class Move : uint8_t { kPair, kSkipA, kSkipB };

  // The columns of row i are [First, End). They never move back from one row to the next.
  size_t First(size_t i) const { return Center(i) > half_width_ ? Center(i) - half_width_ : 0; }
  size_t End(size_t i) const { return std::min(b_.size(), Center(i) + half_width_ + 1); }
  size_t Center(size_t i) const {
    return std::min(b_.size() - 1, static_cast<size_t>(static_cast<double>(i) * slope_));
  }

  void Fill() {
    moves_.resize(a_.size());
    // `here` and `below` hold the best score of the rest from (row, column) on. Columns outside of
    // a row's band keep the value of the nearest column inside.
    std::vector<double> below(b_.size() + 1);
    std::vector<double> here(b_.size() + 1);
    for (size_t i = a_.size(); i-- > 0;) {
      const size_t first = First(i);
      const size_t end = End(i);
      moves_[i].resize(end - first);
      here[end] = below[end];
      for (size_t j = end; j-- > first;) {
        double best = below[j];
        Move move = Move::kSkipA;
        if (here[j + 1] > best) {
          best = here[j + 1];
          move = Move::kSkipB;
        }
        const double score = Score(a_[i], b_[j]);
        if (score > 0 && below[j + 1] + score >= best) {
          best = below[j + 1] + score;
          move = Move::kPair;
        }
        here[j] = best;
        moves_[i][j - first] = move;
      }
      for (size_t j = i == 0 ? first : First(i - 1); j < first; ++j) here[j] = here[first];
      std::swap(here, below);
    }
  }

  double Score(int32_t a, int32_t b) const {
    double score = FitOf(matching_, a, b).score;
    if (score == 0) return 0;
    const size_t i = a - segment_.nodes[0].first;
    const size_t j = b - segment_.nodes[1].first;
    if (near_.up[0][i] == near_.up[1][j]) score += 1;
    if (near_.down[0][i] == near_.down[1][j]) score += 1;
    return score;
  }

  Matching& matching_;
  const Segment& segment_;
  const RangeHashes& near_;
  const Nodes& a_;
  const Nodes& b_;
  size_t half_width_ = 0;
  double slope_ = 1;
  std::vector<std::vector<Move>> moves_;
};

}  // namespace

size_t AlignGaps(Matching& matching, const Segment& segment) {
  const Nodes chain = LongestChain(matching, segment);
  const RangeHashes near = HashRange(matching, segment, /*exact=*/false, 1);
  std::array<size_t, 2> next = {segment.nodes[0].first, segment.nodes[1].first};
  size_t paired = 0;
  const auto align_until = [&](size_t end_a, size_t end_b) {
    std::array<Nodes, 2> free;
    const std::array<size_t, 2> end = {end_a, end_b};
    for (int side = 0; side < 2; ++side) {
      for (; next[side] < end[side]; ++next[side]) {
        if (matching.Free(side, next[side])) free[side].push_back(static_cast<int32_t>(next[side]));
      }
    }
    if (free[0].empty() || free[1].empty()) return;
    paired += Band(matching, segment, near, free[0], free[1]).Align();
  };
  for (const int32_t node : chain) align_until(node, matching.partner[0][node]);
  align_until(segment.nodes[0].end, segment.nodes[1].end);
  return paired;
}

}  // namespace acltape::analyzer::diff
