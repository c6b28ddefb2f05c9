// A region as a stream planner sees it: nodes with durations, and the edges that order them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "meaning/operator_facts.h"

namespace acltape::analyzer::streams {

using meaning::Resource;
std::string_view ResourceName(Resource resource);  // "cube", "vector", "copy", "communication"

struct DagNode {
  double duration_ns = 0;
  Resource resource = Resource::kVector;
  int32_t tasks = 1;  // tasks that it puts on its stream
};

struct DagEdge {
  int32_t from = 0;
  int32_t to = 0;
  bool operator==(const DagEdge&) const = default;
};

// Nodes are numbered in an order in which one stream could run them: every edge has from < to.
struct Dag {
  std::vector<DagNode> nodes;
  std::vector<DagEdge> edges;  // each pair at most once
};

// A wait of one stream for another one inside a captured region. The event is recorded right after
// `record_after`, on its stream. It is waited for right before `wait_before`, on that stream.
struct StreamWait {
  int32_t record_after = 0;
  int32_t wait_before = 0;
  // An event is used again for a later record only if all its waiters are ordered before that
  // record.
  int32_t event = 0;
  bool operator==(const StreamWait&) const = default;
};

// An assignment of nodes to streams. Stream 0 is the origin of the capture. Each other stream is
// forked from it before its first node and joined to it after its last one.
struct StreamAssignment {
  int32_t streams = 1;
  std::vector<int32_t> stream_of;  // by node
  std::vector<int32_t> order;      // nodes in the order in which the host issues them
  std::vector<StreamWait> waits;   // between nodes, without forks and joins
  int32_t events = 0;              // number of events that `waits` use
};

}  // namespace acltape::analyzer::streams
