#include "analyzer/joint/partition.h"

#include "analyzer/joint/max_flow.h"

namespace acltape::analyzer::joint {
namespace {

// Finds what backward must compute again: the writers of needed values that are not kept, and then
// the writers of what those calls read.
Partition Finish(const JointGraph& graph, const std::vector<bool>& keep) {
  Partition partition;
  std::vector<bool> needed(graph.values.size(), false);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    needed[v] = graph.values[v].read_by_backward;
  }
  // A call reads only what earlier calls wrote, so one pass backwards finds all of them.
  std::vector<std::vector<int32_t>> written(graph.calls.size());
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].writer >= 0) {
      written[graph.values[v].writer].push_back(static_cast<int32_t>(v));
    }
  }
  std::vector<bool> recomputed(graph.calls.size(), false);
  for (size_t c = graph.calls.size(); c-- > 0;) {
    for (const int32_t v : written[c]) recomputed[c] = recomputed[c] || (needed[v] && !keep[v]);
    if (!recomputed[c]) continue;
    for (const int32_t v : graph.calls[c].reads) needed[v] = true;
  }
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (!needed[v] || !keep[v]) continue;
    partition.kept.push_back(static_cast<int32_t>(v));
    partition.bytes += graph.values[v].bytes;
  }
  for (size_t c = 0; c < graph.calls.size(); ++c) {
    if (!recomputed[c]) continue;
    partition.recomputed.push_back(static_cast<int32_t>(c));
    partition.recompute_ns += graph.calls[c].duration_ns;
  }
  return partition;
}

}  // namespace

Partition KeepAll(const JointGraph& graph) {
  return Finish(graph, std::vector<bool>(graph.values.size(), true));
}

Partition MinCut(const JointGraph& graph) {
  const size_t count = graph.values.size();
  const size_t source = 2 * count;
  const size_t sink = source + 1;
  FlowNetwork network(2 * count + 2);
  for (size_t v = 0; v < count; ++v) {
    const JointValue& value = graph.values[v];
    network.AddEdge(2 * v, 2 * v + 1, value.bytes);
    if (value.read_by_backward) network.AddEdge(2 * v + 1, sink, FlowNetwork::kInfinite);
    if (value.writer < 0 || !graph.calls[value.writer].recomputable) {
      network.AddEdge(source, 2 * v, FlowNetwork::kInfinite);
      continue;
    }
    for (const int32_t read : graph.calls[value.writer].reads) {
      network.AddEdge(2 * static_cast<size_t>(read) + 1, 2 * v, FlowNetwork::kInfinite);
    }
  }
  network.Maximise(source, sink);
  // Among equal cuts, the one nearest to backward recomputes least.
  const std::vector<bool> backward = network.SinkSide(sink);
  std::vector<bool> keep(count);
  for (size_t v = 0; v < count; ++v) {
    keep[v] = graph.values[v].bytes == 0 || (!backward[2 * v] && backward[2 * v + 1]);
  }
  return Finish(graph, keep);
}

}  // namespace acltape::analyzer::joint
