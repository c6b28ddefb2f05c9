#include "analyzer/streams/list_schedule.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "analyzer/streams/waits.h"

namespace acltape::analyzer::streams {
namespace {

using Nodes = std::vector<int32_t>;

std::vector<Nodes> ParentsOf(const Dag& dag) {
  std::vector<Nodes> parents(dag.nodes.size());
  for (const DagEdge& edge : dag.edges) parents[edge.to].push_back(edge.from);
  return parents;
}

// Lists all nodes, the one with the lowest key first. Nodes with equal keys are ordered by number.
Nodes SortedBy(const std::vector<double>& key) {
  Nodes nodes(key.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  std::stable_sort(nodes.begin(), nodes.end(),
                   [&](int32_t a, int32_t b) { return key[a] < key[b]; });
  return nodes;
}

// The start of each node if nothing but the edges holds it up.
std::vector<double> EarliestStarts(const Dag& dag) {
  std::vector<double> start_ns(dag.nodes.size(), 0);
  const std::vector<Nodes> parents = ParentsOf(dag);
  for (size_t node = 0; node < dag.nodes.size(); ++node) {
    for (const int32_t parent : parents[node]) {
      start_ns[node] = std::max(start_ns[node], start_ns[parent] + dag.nodes[parent].duration_ns);
    }
  }
  return start_ns;
}

// Numbers the streams in the order of their first nodes and drops streams without nodes.
void Renumber(StreamAssignment& assignment) {
  std::map<int32_t, int32_t> number;
  for (const int32_t node : assignment.order) {
    int32_t& stream = assignment.stream_of[node];
    stream = number.emplace(stream, static_cast<int32_t>(number.size())).first->second;
  }
  assignment.streams = std::max(1, static_cast<int32_t>(number.size()));
}

}  // namespace

StreamAssignment ListSchedule(const Dag& dag, int32_t streams, IssueOrder order,
                              const StreamCosts& costs) {
  const size_t nodes = dag.nodes.size();
  StreamAssignment assignment;
  assignment.streams = streams;
  assignment.stream_of.assign(nodes, 0);
  std::vector<double> key(nodes, 0);
  if (order == IssueOrder::kCriticalPath) {
    key = BottomLevels(dag);
    for (double& level : key) level = -level;
  }
  assignment.order = SortedBy(key);

  const std::vector<Nodes> parents = ParentsOf(dag);
  std::vector<double> end_ns(nodes, 0);
  std::vector<double> free_ns(streams, costs.record_ns);
  std::fill(free_ns.begin() + 1, free_ns.end(), costs.record_ns + costs.wait_ns);  // forks
  std::array<double, 4> lane_free_ns = {};
  for (const int32_t node : assignment.order) {
    const int lane = costs.Lane(dag.nodes[node].resource);
    double best_start = 0;
    int32_t best = -1;
    int32_t best_waits = 0;
    for (int32_t stream = 0; stream < streams; ++stream) {
      double start = free_ns[stream];
      int32_t waits = 0;
      for (const int32_t parent : parents[node]) {
        if (assignment.stream_of[parent] == stream) continue;
        start = std::max(start, end_ns[parent] + costs.record_ns + costs.wait_ns);
        ++waits;
      }
      if (lane >= 0) start = std::max(start, lane_free_ns[lane]);
      if (best >= 0 && (start > best_start || (start == best_start && waits >= best_waits))) {
        continue;
      }
      best_start = start;
      best = stream;
      best_waits = waits;
    }
    assignment.stream_of[node] = best;
    end_ns[node] = best_start + dag.nodes[node].duration_ns;
    free_ns[best] = end_ns[node];
    if (lane >= 0) lane_free_ns[lane] = end_ns[node];
  }
  Renumber(assignment);
  PlaceWaits(dag, assignment);
  return assignment;
}

StreamAssignment MergeStreams(const Dag& dag, StreamAssignment assignment, int32_t streams,
                              const StreamCosts& costs) {
  const std::vector<double> start_ns = EarliestStarts(dag);
  assignment.order = SortedBy(start_ns);
  const auto count = static_cast<size_t>(assignment.streams);
  std::vector<Nodes> nodes_of(count);
  for (const int32_t node : assignment.order) {
    nodes_of[assignment.stream_of[node]].push_back(node);
  }
  std::vector<std::vector<double>> saved_ns(count, std::vector<double>(count, 0));
  for (const StreamWait& wait : assignment.waits) {
    const int32_t a = assignment.stream_of[wait.record_after];
    const int32_t b = assignment.stream_of[wait.wait_before];
    saved_ns[a][b] += costs.record_ns + costs.wait_ns;
    saved_ns[b][a] += costs.record_ns + costs.wait_ns;
  }
  const auto end_of = [&](int32_t node) { return start_ns[node] + dag.nodes[node].duration_ns; };
  const auto loss_ns = [&](size_t a, size_t b) {
    double overlap = 0;
    for (size_t i = 0, j = 0; i < nodes_of[a].size() && j < nodes_of[b].size();) {
      const int32_t left = nodes_of[a][i];
      const int32_t right = nodes_of[b][j];
      const double both_ns =
          std::min(end_of(left), end_of(right)) - std::max(start_ns[left], start_ns[right]);
      overlap += std::max(0.0, both_ns);
      end_of(left) < end_of(right) ? ++i : ++j;
    }
    return overlap - saved_ns[a][b];
  };
  std::vector<std::vector<double>> losses(count, std::vector<double>(count, 0));
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = 0; b < a; ++b) losses[a][b] = loss_ns(a, b);
  }
  std::vector<size_t> left(count);  // remaining streams, ascending
  std::iota(left.begin(), left.end(), 0);
  while (left.size() > static_cast<size_t>(streams)) {
    double least = std::numeric_limits<double>::infinity();
    size_t into = 0;
    size_t from = 0;
    for (const size_t a : left) {
      for (const size_t b : left) {
        if (b >= a) break;
        if (losses[a][b] >= least) continue;
        least = losses[a][b];
        from = a;
        into = b;
      }
    }
    left.erase(std::find(left.begin(), left.end(), from));
    Nodes merged;
    std::merge(nodes_of[into].begin(), nodes_of[into].end(), nodes_of[from].begin(),
               nodes_of[from].end(), std::back_inserter(merged), [&](int32_t a, int32_t b) {
                 return std::pair(start_ns[a], a) < std::pair(start_ns[b], b);
               });
    nodes_of[into] = std::move(merged);
    for (const size_t other : left) {
      saved_ns[into][other] += saved_ns[from][other];
      saved_ns[other][into] += saved_ns[other][from];
    }
    for (const size_t other : left) {
      if (other != into) {
        losses[std::max(into, other)][std::min(into, other)] = loss_ns(into, other);
      }
    }
  }
  for (const size_t stream : left) {
    for (const int32_t node : nodes_of[stream]) {
      assignment.stream_of[node] = static_cast<int32_t>(stream);
    }
  }
  Renumber(assignment);
  PlaceWaits(dag, assignment);
  return assignment;
}

namespace {

class Improvement {
 public:
  Improvement(const Dag& dag, StreamAssignment assignment, int trials, double noise,
              const StreamCosts& costs)
      : dag_(dag), best_(std::move(assignment)), trials_(trials), noise_(noise), costs_(costs) {}

  StreamAssignment Run() {
    nodes_.assign(best_.streams, 0);
    for (const int32_t stream : best_.stream_of) ++nodes_[stream];
    schedule_ = Simulate(dag_, best_, costs_);
    while (Step()) {
    }
    return std::move(best_);
  }

 private:
  // Tries to move the nodes of the critical path, the last one first. Returns true if it accepted a
  // move.
  bool Step() {
    for (int32_t node = schedule_.last; node >= 0; node = schedule_.awaited[node]) {
      for (int32_t stream = 0; stream < best_.streams; ++stream) {
        if (stream == best_.stream_of[node]) continue;
        if (nodes_[best_.stream_of[node]] > 1 && Try({{node, stream}})) return true;
        const std::optional<int32_t> other = RunsBeside(node, stream);
        if (other && Try({{node, stream}, {*other, best_.stream_of[node]}})) return true;
        if (trials_ <= 0) return false;
      }
    }
    return false;
  }

  // The node that runs on `stream` when `node` starts.
  std::optional<int32_t> RunsBeside(int32_t node, int32_t stream) const {
    for (const int32_t other : best_.order) {
      if (best_.stream_of[other] == stream && schedule_.end_ns[other] > schedule_.start_ns[node]) {
        return other;
      }
    }
    return std::nullopt;
  }

  bool Try(const std::vector<std::pair<int32_t, int32_t>>& moves) {
    --trials_;
    StreamAssignment moved = best_;
    for (const auto& [node, stream] : moves) moved.stream_of[node] = stream;
    PlaceWaits(dag_, moved);
    Schedule schedule = Simulate(dag_, moved, costs_);
    if (schedule.makespan_ns >= schedule_.makespan_ns * (1 - noise_)) return false;
    for (const auto& [node, stream] : moves) {
      --nodes_[best_.stream_of[node]];
      ++nodes_[stream];
    }
    best_ = std::move(moved);
    schedule_ = std::move(schedule);
    return true;
  }

  const Dag& dag_;
  StreamAssignment best_;
  std::vector<int32_t> nodes_;  // number of nodes, by stream
  Schedule schedule_;
  int trials_;
  double noise_;
  const StreamCosts& costs_;
};

}  // namespace

StreamAssignment ImproveSchedule(const Dag& dag, StreamAssignment assignment, int trials,
                                 double noise, const StreamCosts& costs) {
  assignment = Improvement(dag, std::move(assignment), trials, noise, costs).Run();
  Renumber(assignment);
  PlaceWaits(dag, assignment);
  return assignment;
}

StreamAssignment MergeWaits(const Dag& dag, StreamAssignment assignment, const StreamCosts& costs) {
  std::vector<int32_t> rank(dag.nodes.size());
  for (size_t i = 0; i < assignment.order.size(); ++i) {
    rank[assignment.order[i]] = static_cast<int32_t>(i);
  }
  Dag ordered = dag;  // and the order that the merged waits add
  for (;;) {
    const Schedule schedule = Simulate(dag, assignment, costs);
    std::map<std::pair<int32_t, int32_t>, std::vector<StreamWait>> waits_between;
    for (const StreamWait& wait : assignment.waits) {
      waits_between[{assignment.stream_of[wait.record_after],
                     assignment.stream_of[wait.wait_before]}]
          .push_back(wait);
    }
    const size_t edges = ordered.edges.size();
    for (const auto& [streams, waits] : waits_between) {
      for (size_t first = 0; first < waits.size();) {
        const int32_t waiter = waits[first].wait_before;
        size_t next = first + 1;
        for (; next < waits.size(); ++next) {
          const int32_t recorder = waits[next].record_after;
          if (rank[recorder] >= rank[waiter] ||
              schedule.end_ns[recorder] + costs.record_ns + costs.wait_ns >
                  schedule.start_ns[waiter]) {
            break;
          }
        }
        if (next > first + 1) ordered.edges.push_back({waits[next - 1].record_after, waiter});
        first = next;
      }
    }
    if (ordered.edges.size() == edges) return assignment;
    StreamAssignment merged = assignment;
    PlaceWaits(ordered, merged);
    if (merged.waits.size() >= assignment.waits.size() ||
        Simulate(dag, merged, costs).makespan_ns > schedule.makespan_ns) {
      return assignment;
    }
    assignment = std::move(merged);
  }
}

}  // namespace acltape::analyzer::streams
