// Maximum flow and minimum cut of a directed network: Dinic's algorithm ("Algorithm for solution of
// a problem of maximum flow in networks with power estimation", 1970).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace acltape::analyzer::joint {

class FlowNetwork {
 public:
  static constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;

  explicit FlowNetwork(size_t nodes) : first_(nodes, -1) {}
  void AddEdge(size_t from, size_t to, int64_t capacity);
  // The greatest flow from source to sink, which equals the capacity of the least cut. The result
  // is kInfinite or more if every cut contains an edge with a capacity of kInfinite.
  int64_t Maximise(size_t source, size_t sink);
  // After Maximise: true for the nodes on the sink's side of the least cut nearest to the sink.
  std::vector<bool> SinkSide(size_t sink) const;

 private:
  struct Edge {
    size_t to = 0;
    int64_t room = 0;
    int64_t next = -1;  // next edge of the node; edges e and e ^ 1 are opposite
  };
  bool FindLevels(size_t source, size_t sink);
  int64_t Augment(size_t source, size_t sink);

  std::vector<int64_t> first_;
  std::vector<Edge> edges_;
  std::vector<int32_t> level_;
  std::vector<int64_t> current_;
};

}  // namespace acltape::analyzer::joint
