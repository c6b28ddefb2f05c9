#include "analyzer/streams/partial_order.h"

#include <algorithm>

#include "analyzer/streams/matching.h"

namespace acltape::analyzer::streams {

PartialOrder::PartialOrder(const Dag& dag) : before_(dag.nodes.size()) {
  const size_t nodes = dag.nodes.size();
  std::vector<std::vector<int32_t>> successors(nodes);
  for (const DagEdge& edge : dag.edges) successors[edge.from].push_back(edge.to);
  for (size_t node = nodes; node-- > 0;) {
    // Successors are visited in ascending order. A longer path to a successor goes through a lesser
    // one, whose row has already been added.
    std::sort(successors[node].begin(), successors[node].end());
    for (const int32_t next : successors[node]) {
      if (before_.Get(node, next)) continue;
      covers_.push_back({static_cast<int32_t>(node), next});
      before_.Set(node, next);
      before_.AddRow(node, next);
    }
  }
  std::sort(covers_.begin(), covers_.end(), [](const DagEdge& a, const DagEdge& b) {
    return a.from != b.from ? a.from < b.from : a.to < b.to;
  });
}

std::vector<int32_t> MaximumAntichain(const PartialOrder& order) {
  const size_t nodes = order.size();
  const ChainMatching matching = MaximumMatching(order.closure(), ChainMatching(nodes));
  // König's theorem gives the cover: the left nodes that no alternating path from a free left node
  // reaches, and the right nodes that one reaches.
  std::vector<char> left(nodes, 0);
  std::vector<char> right(nodes, 0);
  std::vector<int32_t> open;
  for (size_t node = 0; node < nodes; ++node) {
    if (matching.next[node] >= 0) continue;
    left[node] = 1;
    open.push_back(static_cast<int32_t>(node));
  }
  while (!open.empty()) {
    const int32_t node = open.back();
    open.pop_back();
    order.closure().VisitRow(node, [&](size_t later) {
      if (right[later]) return true;
      right[later] = 1;
      const int32_t partner = matching.previous[later];
      if (partner >= 0 && !left[partner]) {
        left[partner] = 1;
        open.push_back(partner);
      }
      return true;
    });
  }
  std::vector<int32_t> antichain;
  for (size_t node = 0; node < nodes; ++node) {
    if (left[node] && !right[node]) antichain.push_back(static_cast<int32_t>(node));
  }
  return antichain;
}

}  // namespace acltape::analyzer::streams
