// Matchings between a left and a right copy of the nodes of an order. A matched pair (a, b) means
// that b comes next after a on its stream. With n nodes and m pairs there are n - m streams.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/streams/partial_order.h"

namespace acltape::analyzer::streams {

struct ChainMatching {
  explicit ChainMatching(size_t nodes) : next(nodes, -1), previous(nodes, -1) {}
  std::vector<int32_t> next;      // by left node, -1: free
  std::vector<int32_t> previous;  // by right node, -1: free
  int32_t size = 0;
  void Pair(int32_t left, int32_t right) {
    next[left] = right;
    previous[right] = left;
  }
};

// Grows `start` to a maximum matching of the pairs in `edges`. Hopcroft and Karp, SIAM J. Comput.
// 1973: at most about sqrt(n) passes over the edges.
ChainMatching MaximumMatching(const BitMatrix& edges, ChainMatching start);

// Finds the maximum matching of `edges` that has the most pairs in `preferred`, a subset of the
// edges. It begins with a maximum matching of `preferred` and augments along shortest paths with
// potentials (minimum-cost matching). Distances are small integers, so each pass over the edges
// augments along all shortest paths of one length.
ChainMatching MaximumMatchingPreferring(const BitMatrix& edges, const BitMatrix& preferred);

}  // namespace acltape::analyzer::streams
