// Simulates when the nodes of a Dag would run on given streams, and computes a lower bound.
//
// A stream runs its nodes first in, first out. A node runs when the node before it on its stream
// has ended, its waits are over, and its resource is free. A resource that saturates takes nodes in
// the order in which they become ready. A record occupies its stream for record_ns. A wait occupies
// its own stream for wait_ns, beginning when all records that the node waits for are done. A side
// stream begins with a fork from the origin and ends with a join to it; each is a record and a
// wait.
#pragma once

#include <array>
#include <vector>

#include "analyzer/streams/dag.h"

namespace acltape::analyzer::streams {

// The costs of synchronisation on a device, and the resources that do not gain from streams.
struct StreamCosts {
  double record_ns = 300;
  double wait_ns = 1000;
  // True if two nodes of the class take as long side by side as one after the other; by Resource.
  std::array<bool, 4> saturates = {true, true, true, true};
  // True if streams of one graph run side by side at all.
  bool overlaps = true;

  // The lane that a node occupies alone while it runs: an index below 4, or -1 for none.
  int Lane(Resource resource) const {
    if (!overlaps) return 0;
    return saturates[static_cast<size_t>(resource)] ? static_cast<int>(resource) : -1;
  }
};

struct Schedule {
  std::vector<double> start_ns;  // by node
  std::vector<double> end_ns;
  // The node whose end each node's start had to await (on its stream, by a wait or by its
  // resource); -1 for none. It leads back along the critical path of the schedule.
  std::vector<int32_t> awaited;
  double makespan_ns = 0;
  int32_t last = -1;  // the node that ends last
};

// Reads only the streams, the order and the waits (without events) of the assignment.
Schedule Simulate(const Dag& dag, const StreamAssignment& assignment, const StreamCosts& costs);

// Lower bounds of the makespan on `streams` streams. No assignment ends sooner than the greatest.
struct MakespanBound {
  double critical_path_ns = 0;
  std::array<double, 4> lane_ns = {};  // work of each StreamCosts::Lane
  double share_ns = 0;                 // all work / streams
  double Greatest() const;
};
MakespanBound BoundMakespan(const Dag& dag, int32_t streams, const StreamCosts& costs);

double TotalWork(const Dag& dag);  // nanoseconds

// Returns for each node its duration plus the longest way from its end to the end of the Dag.
std::vector<double> BottomLevels(const Dag& dag);

}  // namespace acltape::analyzer::streams
