// What a stream planner sees of a region: nodes with durations and the edges that order them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace acltape::analyzer {

// What a node keeps busy on the device; two nodes of one class do not gain from two streams.
enum class Resource : uint8_t { kCube, kVector, kCopy, kCommunication };
std::string_view ResourceName(Resource resource);  // "cube", "vector", "copy", "communication"

struct DagNode {
  double duration_ns = 0;
  Resource resource = Resource::kVector;
  int32_t tasks = 1;  // that it puts on its stream
};

struct DagEdge {
  int32_t from = 0;
  int32_t to = 0;
  bool operator==(const DagEdge&) const = default;
};

// Nodes are numbered in an order in which one stream could run them: from < to for every edge.
struct Dag {
  std::vector<DagNode> nodes;
  std::vector<DagEdge> edges;  // each pair at most once
};

// A wait of one stream for another inside a captured region: the event is recorded right behind
// `record_after` on its stream and waited for right before `wait_before` on its own.
struct StreamWait {
  int32_t record_after = 0;
  int32_t wait_before = 0;
  int32_t event = 0;  // an event is used again once its last waiter is ordered before
  bool operator==(const StreamWait&) const = default;
};

// Nodes on streams. Stream 0 is the origin of the capture; the others are forked from it before
// their first node and joined to it behind their last one.
struct StreamAssignment {
  int32_t streams = 1;
  std::vector<int32_t> stream_of;  // by node
  std::vector<int32_t> order;      // nodes in the order in which the host issues them
  std::vector<StreamWait> waits;   // between nodes; forks and joins are not in it
  int32_t events = 0;              // that `waits` use
};

}  // namespace acltape::analyzer
