#include "analyzer/streams/schedule.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

namespace acltape::analyzer::streams {
namespace {

class Simulation {
 public:
  Simulation(const Dag& dag, const StreamAssignment& assignment, const StreamCosts& costs)
      : dag_(dag), assignment_(assignment), costs_(costs), waiters_(dag.nodes.size()) {
    const size_t nodes = dag.nodes.size();
    schedule_.start_ns.assign(nodes, 0);
    schedule_.end_ns.assign(nodes, 0);
    schedule_.awaited.assign(nodes, -1);
    waits_.assign(nodes, 0);
    next_.assign(nodes, -1);
    ready_ns_.assign(nodes, 0);
    for (const StreamWait& wait : assignment.waits) {
      waiters_[wait.record_after].push_back(wait.wait_before);
      ++waits_[wait.wait_before];
    }
    missing_ = waits_;
  }

  Schedule Run() {
    const bool forked = assignment_.streams > 1;
    std::vector<int32_t> last(assignment_.streams, -1);
    std::vector<double> free_ns(assignment_.streams, 0);
    for (const int32_t node : assignment_.order) {
      const int32_t stream = assignment_.stream_of[node];
      if (last[stream] >= 0) {
        next_[last[stream]] = node;
        ++missing_[node];
      } else if (forked) {
        ready_ns_[node] = costs_.record_ns + (stream == 0 ? 0 : costs_.wait_ns);
      }
      last[stream] = node;
    }
    for (const int32_t node : assignment_.order) {
      if (missing_[node] == 0) Push(node);
    }
    std::array<double, 4> lane_free_ns = {};
    std::array<int32_t, 4> lane_last = {-1, -1, -1, -1};
    while (!ready_.empty()) {
      const auto [ready, rank, node] = ready_.top();
      ready_.pop();
      const int lane = costs_.Lane(dag_.nodes[node].resource);
      double start = ready;
      if (lane >= 0 && lane_free_ns[lane] > start) {
        start = lane_free_ns[lane];
        schedule_.awaited[node] = lane_last[lane];
      }
      const double end = start + dag_.nodes[node].duration_ns;
      if (lane >= 0) {
        lane_free_ns[lane] = end;
        lane_last[lane] = node;
      }
      schedule_.start_ns[node] = start;
      schedule_.end_ns[node] = end;
      if (schedule_.last < 0 || end >= schedule_.end_ns[schedule_.last]) schedule_.last = node;
      const double recorded = end + (waiters_[node].empty() ? 0 : costs_.record_ns);
      free_ns[assignment_.stream_of[node]] = recorded;
      if (next_[node] >= 0) Satisfy(next_[node], node, recorded);
      for (const int32_t waiter : waiters_[node]) Satisfy(waiter, node, recorded);
    }
    Join(free_ns);
    return std::move(schedule_);
  }

 private:
  void Push(int32_t node) { ready_.emplace(ready_ns_[node], rank_++, node); }

  void Satisfy(int32_t node, int32_t by, double ready) {
    if (ready > ready_ns_[node]) {
      ready_ns_[node] = ready;
      schedule_.awaited[node] = by;
    }
    if (--missing_[node] > 0) return;
    ready_ns_[node] += costs_.wait_ns * waits_[node];
    Push(node);
  }

  void Join(std::vector<double>& free_ns) {
    double end = free_ns[0];
    if (assignment_.streams > 1) {
      std::sort(free_ns.begin() + 1, free_ns.end());
      for (size_t s = 1; s < free_ns.size(); ++s) {
        end = std::max(end, free_ns[s] + costs_.record_ns) + costs_.wait_ns;
      }
    }
    schedule_.makespan_ns = end;
  }

  const Dag& dag_;
  const StreamAssignment& assignment_;
  const StreamCosts& costs_;
  std::vector<std::vector<int32_t>> waiters_;
  std::vector<int32_t> waits_;    // number of waits, by node
  std::vector<int32_t> missing_;  // number of nodes that a node still has to await
  std::vector<int32_t> next_;     // next node on its stream
  std::vector<double> ready_ns_;
  int32_t rank_ = 0;
  std::priority_queue<std::tuple<double, int32_t, int32_t>,
                      std::vector<std::tuple<double, int32_t, int32_t>>, std::greater<>>
      ready_;
  Schedule schedule_;
};

}  // namespace

std::string_view ResourceName(Resource resource) {
  constexpr std::string_view kNames[] = {"cube", "vector", "copy", "communication"};
  return kNames[static_cast<size_t>(resource)];
}

Schedule Simulate(const Dag& dag, const StreamAssignment& assignment, const StreamCosts& costs) {
  return Simulation(dag, assignment, costs).Run();
}

double MakespanBound::Greatest() const {
  return std::max({critical_path_ns, share_ns, *std::max_element(lane_ns.begin(), lane_ns.end())});
}

MakespanBound BoundMakespan(const Dag& dag, int32_t streams, const StreamCosts& costs) {
  MakespanBound bound;
  const std::vector<double> levels = BottomLevels(dag);
  for (size_t node = 0; node < dag.nodes.size(); ++node) {
    bound.critical_path_ns = std::max(bound.critical_path_ns, levels[node]);
    const int lane = costs.Lane(dag.nodes[node].resource);
    if (lane >= 0) bound.lane_ns[lane] += dag.nodes[node].duration_ns;
  }
  bound.share_ns = TotalWork(dag) / streams;
  return bound;
}

double TotalWork(const Dag& dag) {
  double total = 0;
  for (const DagNode& node : dag.nodes) total += node.duration_ns;
  return total;
}

std::vector<double> BottomLevels(const Dag& dag) {
  std::vector<std::vector<int32_t>> successors(dag.nodes.size());
  for (const DagEdge& edge : dag.edges) successors[edge.from].push_back(edge.to);
  std::vector<double> levels(dag.nodes.size(), 0);
  for (size_t node = dag.nodes.size(); node-- > 0;) {
    for (const int32_t next : successors[node]) levels[node] = std::max(levels[node], levels[next]);
    levels[node] += dag.nodes[node].duration_ns;
  }
  return levels;
}

}  // namespace acltape::analyzer::streams
