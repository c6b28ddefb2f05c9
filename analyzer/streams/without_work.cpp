#include "analyzer/streams/without_work.h"

#include <algorithm>
#include <functional>
#include <set>

#include "analyzer/streams/waits.h"

namespace acltape::analyzer::streams {

WithoutWork::WithoutWork(const Dag& dag) : dag_(dag) {
  const auto working = std::count_if(dag.nodes.begin(), dag.nodes.end(),
                                     [](const DagNode& node) { return node.tasks > 0; });
  const auto all = static_cast<std::ptrdiff_t>(dag.nodes.size());
  if (working == 0 || working == all) return;
  for (const DagNode& node : dag.nodes) {
    number_.push_back(node.tasks > 0 ? static_cast<int32_t>(rest_.nodes.size()) : -1);
    if (node.tasks > 0) rest_.nodes.push_back(node);
  }
  // The nodes of the rest that come right before each node. A node without tasks passes its own
  // ones on. Edges lead to higher numbers, so all of them are known when a node is met.
  std::vector<std::set<int32_t>> before(dag.nodes.size());
  std::vector<std::vector<int32_t>> parents(dag.nodes.size());
  for (const DagEdge& edge : dag.edges) parents[edge.to].push_back(edge.from);
  for (size_t node = 0; node < dag.nodes.size(); ++node) {
    for (const int32_t parent : parents[node]) {
      if (number_[parent] >= 0) {
        before[node].insert(number_[parent]);
      } else {
        before[node].insert(before[parent].begin(), before[parent].end());
      }
    }
    if (number_[node] < 0) continue;
    for (const int32_t from : before[node]) rest_.edges.push_back({from, number_[node]});
  }
}

StreamAssignment WithoutWork::Extend(const StreamAssignment& rest) const {
  std::vector<int32_t> node_of;  // by number in the rest
  for (size_t node = 0; node < number_.size(); ++node) {
    if (number_[node] >= 0) node_of.push_back(static_cast<int32_t>(node));
  }
  std::vector<std::vector<int32_t>> parents(number_.size());
  for (const DagEdge& edge : dag_.edges) parents[edge.to].push_back(edge.from);

  StreamAssignment all;
  all.streams = rest.streams;
  all.stream_of.assign(number_.size(), -1);
  // Issues a node after the nodes that it needs. A node without tasks is issued right before the
  // first node that needs it, on its stream.
  const std::function<void(int32_t, int32_t)> issue = [&](int32_t node, int32_t stream) {
    if (all.stream_of[node] >= 0) return;
    all.stream_of[node] = number_[node] >= 0 ? rest.stream_of[number_[node]] : stream;
    for (const int32_t parent : parents[node]) issue(parent, all.stream_of[node]);
    all.order.push_back(node);
  };
  for (const int32_t number : rest.order) issue(node_of[number], 0);
  for (size_t node = 0; node < number_.size(); ++node) {
    // A call whose results nobody needs runs on the stream of the last call that it depends on.
    const int32_t stream = parents[node].empty() ? 0 : all.stream_of[parents[node].back()];
    issue(static_cast<int32_t>(node), std::max(stream, 0));
  }
  PlaceWaits(dag_, all);
  return all;
}

}  // namespace acltape::analyzer::streams
