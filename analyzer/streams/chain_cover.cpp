#include "analyzer/streams/chain_cover.h"

#include <numeric>
#include <vector>

#include "analyzer/streams/matching.h"
#include "analyzer/streams/waits.h"

namespace acltape::analyzer::streams {
namespace {

BitMatrix CoverMatrix(const PartialOrder& order) {
  BitMatrix covers(order.size());
  for (const DagEdge& edge : order.covers()) covers.Set(edge.from, edge.to);
  return covers;
}

// Makes each chain of a matching one stream. Streams are numbered by their first nodes.
StreamAssignment FromChains(const Dag& dag, const ChainMatching& matching) {
  StreamAssignment assignment;
  assignment.streams = 0;
  assignment.stream_of.assign(dag.nodes.size(), -1);
  for (size_t node = 0; node < dag.nodes.size(); ++node) {
    const int32_t previous = matching.previous[node];
    assignment.stream_of[node] =
        previous < 0 ? assignment.streams++ : assignment.stream_of[previous];
  }
  if (assignment.streams == 0) assignment.streams = 1;  // no node
  assignment.order.resize(dag.nodes.size());
  std::iota(assignment.order.begin(), assignment.order.end(), 0);
  PlaceWaits(dag, assignment);
  return assignment;
}

}  // namespace

StreamAssignment CoverByChains(const Dag& dag, const PartialOrder& order) {
  return FromChains(dag, MaximumMatchingPreferring(order.closure(), CoverMatrix(order)));
}

NimbleAssignment AssignLikeNimble(const Dag& dag, const PartialOrder& order) {
  const size_t nodes = dag.nodes.size();
  ChainMatching chains = MaximumMatching(CoverMatrix(order), ChainMatching(nodes));
  // Second phase: chain i can come before chain j if the end of i is ordered before the start of j.
  // A row of `gaps` is the end of a chain and a column is the start of one. The first phase left
  // both free.
  BitMatrix gaps(nodes);
  for (size_t end = 0; end < nodes; ++end) {
    if (chains.next[end] >= 0) continue;
    order.closure().VisitRow(end, [&](size_t begin) {
      if (chains.previous[begin] < 0) gaps.Set(end, begin);
      return true;
    });
  }
  const ChainMatching glue = MaximumMatching(gaps, ChainMatching(nodes));
  for (size_t end = 0; end < nodes; ++end) {
    if (glue.next[end] >= 0) chains.Pair(static_cast<int32_t>(end), glue.next[end]);
  }

  NimbleAssignment nimble;
  nimble.assignment = FromChains(dag, chains);
  nimble.runtime_records = static_cast<int32_t>(nodes);
  for (const DagEdge& edge : dag.edges) {
    const std::vector<int32_t>& stream_of = nimble.assignment.stream_of;
    nimble.runtime_waits += stream_of[edge.from] != stream_of[edge.to] ? 1 : 0;
  }
  return nimble;
}

}  // namespace acltape::analyzer::streams
