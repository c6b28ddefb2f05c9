// Matchings between a left and a right copy of the nodes of an order. A matched pair (a, b) says
// that b comes next after a on its stream; n nodes with m pairs make n - m streams.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/streams/partial_order.h"

namespace acltape::analyzer {

struct Matching {
  explicit Matching(size_t nodes) : next(nodes, -1), previous(nodes, -1) {}
  std::vector<int32_t> next;      // by left node, -1: free
  std::vector<int32_t> previous;  // by right node, -1: free
  int32_t size = 0;
  void Pair(int32_t left, int32_t right) {
    next[left] = right;
    previous[right] = left;
  }
};

// A maximum matching of the pairs in `edges`, grown from `start`. Hopcroft and Karp, SIAM J.
// Comput. 1973: at most about sqrt(n) passes over the edges.
Matching MaximumMatching(const BitMatrix& edges, Matching start);

// Of all maximum matchings of `edges` one with the most pairs in `preferred`, a subset of the
// edges. Minimum-cost matching by shortest augmenting paths with potentials, from a maximum
// matching of `preferred`; distances are small integers, and each pass over the edges augments
// along all shortest paths of one length.
Matching MaximumMatchingPreferring(const BitMatrix& edges, const BitMatrix& preferred);

}  // namespace acltape::analyzer
