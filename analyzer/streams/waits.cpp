#include "analyzer/streams/waits.h"

#include <algorithm>
#include <vector>

namespace acltape::analyzer::streams {
namespace {

class WaitPlacer {
 public:
  WaitPlacer(const Dag& dag, StreamAssignment& assignment)
      : assignment_(assignment),
        streams_(static_cast<size_t>(assignment.streams)),
        parents_(dag.nodes.size()),
        place_(dag.nodes.size(), 0),
        clocks_(dag.nodes.size() * streams_, 0) {
    for (const DagEdge& edge : dag.edges) {
      if (StreamOf(edge.from) != StreamOf(edge.to)) parents_[edge.to].push_back(edge.from);
    }
  }

  void Run() {
    assignment_.waits.clear();
    std::vector<int32_t> last(streams_, -1);  // node
    for (const int32_t node : assignment_.order) {
      const auto stream = static_cast<size_t>(StreamOf(node));
      uint32_t* clock = Clock(node);
      if (last[stream] >= 0) std::copy_n(Clock(last[stream]), streams_, clock);
      place_[node] = ++clock[stream];
      AddWaits(node, clock);
      last[stream] = node;
    }
    AssignEvents();
  }

 private:
  int32_t StreamOf(int32_t node) const { return assignment_.stream_of[node]; }
  uint32_t* Clock(int32_t node) { return clocks_.data() + static_cast<size_t>(node) * streams_; }
  bool Before(int32_t a, int32_t b) { return place_[a] <= Clock(b)[StreamOf(a)]; }

  void AddWaits(int32_t node, uint32_t* clock) {
    std::vector<int32_t>& sources = parents_[node];
    std::erase_if(sources, [&](int32_t parent) { return Before(parent, node); });
    const size_t first = assignment_.waits.size();
    for (const int32_t parent : sources) {
      const bool implied = std::any_of(sources.begin(), sources.end(), [&](int32_t other) {
        return other != parent && Before(parent, other);
      });
      if (!implied) assignment_.waits.push_back({parent, node, -1});
    }
    for (size_t w = first; w < assignment_.waits.size(); ++w) {
      const uint32_t* source = Clock(assignment_.waits[w].record_after);
      for (size_t s = 0; s < streams_; ++s) clock[s] = std::max(clock[s], source[s]);
    }
  }

  // Assigns events in the order in which the recording nodes are issued.
  void AssignEvents() {
    std::vector<std::vector<size_t>> waits_of(place_.size());  // by recording node
    for (size_t w = 0; w < assignment_.waits.size(); ++w) {
      waits_of[assignment_.waits[w].record_after].push_back(w);
    }
    std::vector<std::vector<int32_t>> waiters;  // by event, of its last record
    for (const int32_t node : assignment_.order) {
      if (waits_of[node].empty()) continue;
      const auto free = std::find_if(waiters.begin(), waiters.end(), [&](const auto& nodes) {
        return std::all_of(nodes.begin(), nodes.end(),
                           [&](int32_t waiter) { return Before(waiter, node); });
      });
      const auto event = static_cast<int32_t>(free - waiters.begin());
      if (free == waiters.end()) waiters.emplace_back();
      waiters[event].clear();
      for (const size_t w : waits_of[node]) {
        assignment_.waits[w].event = event;
        waiters[event].push_back(assignment_.waits[w].wait_before);
      }
    }
    assignment_.events = static_cast<int32_t>(waiters.size());
  }

  StreamAssignment& assignment_;
  size_t streams_;
  std::vector<std::vector<int32_t>> parents_;  // on other streams
  std::vector<uint32_t> place_;                // on the node's stream, from 1
  std::vector<uint32_t> clocks_;               // by node and stream: how many are ordered before
};

}  // namespace

void PlaceWaits(const Dag& dag, StreamAssignment& assignment) { WaitPlacer(dag, assignment).Run(); }

int32_t CountRecords(const StreamAssignment& assignment) {
  std::vector<char> records(assignment.stream_of.size(), 0);
  for (const StreamWait& wait : assignment.waits) records[wait.record_after] = 1;
  return static_cast<int32_t>(std::count(records.begin(), records.end(), 1));
}

}  // namespace acltape::analyzer::streams
