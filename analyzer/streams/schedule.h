// When the nodes of a Dag would run on given streams: a simulation, and what no streams can beat.
//
// Streams run their nodes first in, first out. A node runs when the node before it on its stream,
// all that it waits for and its resource are free; a resource that saturates takes nodes in the
// order in which they become ready. A record occupies its stream for record_ns, a wait its own for
// wait_ns from the moment on at which all records that the node waits for are done. Side streams
// begin with a fork from the origin and end with a join to it, which are a record and a wait each.
#pragma once

#include <array>
#include <vector>

#include "analyzer/streams/dag.h"

namespace acltape::analyzer {

// What synchronising costs and what does not gain from streams, on the device in question.
struct StreamCosts {
  double record_ns = 300;
  double wait_ns = 1000;
  // By Resource: whether two nodes of the class take as long side by side as one after the other.
  std::array<bool, 4> saturates = {true, true, true, true};
  // Whether streams of one graph run side by side at all.
  bool overlaps = true;

  // What a node has to itself while it runs: an index below 4, or -1 for nothing.
  int Lane(Resource resource) const {
    if (!overlaps) return 0;
    return saturates[static_cast<size_t>(resource)] ? static_cast<int>(resource) : -1;
  }
};

struct Schedule {
  std::vector<double> start_ns;  // by node
  std::vector<double> end_ns;
  // By node: the node whose end its start had to await (on its stream, by a wait or by its
  // resource); -1 for none. Leads back along the critical path of the schedule.
  std::vector<int32_t> awaited;
  double makespan_ns = 0;
  int32_t last = -1;  // the node that ends last
};

// Only streams, order and waits (without events) of the assignment count.
Schedule Simulate(const Dag& dag, const StreamAssignment& assignment, const StreamCosts& costs);

// No assignment to `streams` streams ends sooner than the greatest of these.
struct MakespanBound {
  double critical_path_ns = 0;
  std::array<double, 4> lane_ns = {};  // by StreamCosts::Lane: its work
  double share_ns = 0;                 // all work / streams
  double Greatest() const;
};
MakespanBound BoundMakespan(const Dag& dag, int32_t streams, const StreamCosts& costs);

double TotalWork(const Dag& dag);  // nanoseconds

// By node: its duration and the longest way from its end to the end of the Dag.
std::vector<double> BottomLevels(const Dag& dag);

}  // namespace acltape::analyzer
