#include "analyzer/joint/max_flow.h"

#include <algorithm>

namespace acltape::analyzer::joint {

void FlowNetwork::AddEdge(size_t from, size_t to, int64_t capacity) {
  edges_.push_back({to, capacity, first_[from]});
  first_[from] = static_cast<int64_t>(edges_.size()) - 1;
  edges_.push_back({from, 0, first_[to]});
  first_[to] = static_cast<int64_t>(edges_.size()) - 1;
}

bool FlowNetwork::FindLevels(size_t source, size_t sink) {
  level_.assign(first_.size(), -1);
  level_[source] = 0;
  std::vector<size_t> queue{source};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int64_t e = first_[queue[i]]; e >= 0; e = edges_[e].next) {
      if (edges_[e].room == 0 || level_[edges_[e].to] >= 0) continue;
      level_[edges_[e].to] = level_[queue[i]] + 1;
      queue.push_back(edges_[e].to);
    }
  }
  return level_[sink] >= 0;
}

// Sends flow along one path through the levels. It is not recursive, because a path may be as long
// as the program.
int64_t FlowNetwork::Augment(size_t source, size_t sink) {
  std::vector<int64_t> path;
  size_t node = source;
  while (node != sink) {
    int64_t& e = current_[node];
    while (e >= 0 && (edges_[e].room == 0 || level_[edges_[e].to] != level_[node] + 1)) {
      e = edges_[e].next;
    }
    if (e >= 0) {
      path.push_back(e);
      node = edges_[e].to;
      continue;
    }
    if (path.empty()) return 0;
    node = edges_[path.back() ^ 1].to;
    current_[node] = edges_[path.back()].next;  // a dead end
    path.pop_back();
  }
  int64_t flow = kInfinite;
  for (const int64_t e : path) flow = std::min(flow, edges_[e].room);
  for (const int64_t e : path) {
    edges_[e].room -= flow;
    edges_[e ^ 1].room += flow;
  }
  return flow;
}

int64_t FlowNetwork::Maximise(size_t source, size_t sink) {
  int64_t total = 0;
  while (total < kInfinite && FindLevels(source, sink)) {
    current_ = first_;
    while (const int64_t flow = Augment(source, sink)) {
      total += flow;
      if (total >= kInfinite) break;
    }
  }
  return total;
}

std::vector<bool> FlowNetwork::SinkSide(size_t sink) const {
  std::vector<bool> reaches(first_.size(), false);
  reaches[sink] = true;
  std::vector<size_t> queue{sink};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int64_t e = first_[queue[i]]; e >= 0; e = edges_[e].next) {
      if (edges_[e ^ 1].room == 0 || reaches[edges_[e].to]) continue;
      reaches[edges_[e].to] = true;
      queue.push_back(edges_[e].to);
    }
  }
  return reaches;
}

}  // namespace acltape::analyzer::joint
