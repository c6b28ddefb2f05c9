// Seeded random Dags of the families that programs are made of, for tests and measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/streams/dag.h"

namespace acltape::test {

//   layered          layers of 2 to 8 nodes, each fed by one to three nodes of the two layers
//   before series-parallel  sequences of nodes and of blocks with parallel branches, recursively
//   sparse           about 1.5 edges a node, anywhere
//   dense            each of the 30 nodes before with probability 1/4
enum class DagFamily : uint8_t { kLayered, kSeriesParallel, kSparse, kDense };
inline constexpr DagFamily kDagFamilies[] = {DagFamily::kLayered, DagFamily::kSeriesParallel,
                                             DagFamily::kSparse, DagFamily::kDense};
inline const char* FamilyName(DagFamily family) {
  constexpr const char* kNames[] = {"layered", "series-parallel", "sparse", "dense"};
  return kNames[static_cast<size_t>(family)];
}

class RandomDag {
 public:
  // Durations are log-uniform between 2 and 200 microseconds; of the resource classes vector has
  // three fifths of the nodes, cube one fifth, copy and communication the rest.
  RandomDag(DagFamily family, size_t nodes, uint32_t seed) : random_(seed) {
    switch (family) {
      case DagFamily::kLayered:
        MakeLayered(nodes);
        break;
      case DagFamily::kSeriesParallel:
        MakeSeriesParallel(nodes, {});
        break;
      case DagFamily::kSparse:
        MakeWindowed(nodes, nodes, 1.5);
        break;
      case DagFamily::kDense:
        MakeWindowed(nodes, 30, 7.5);
        break;
    }
    for (analyzer::streams::DagNode& node : dag_.nodes) {
      using analyzer::streams::Resource;
      node.duration_ns = 2000 * std::pow(10.0, std::uniform_real_distribution<>(0, 2)(random_));
      const int kind = Draw(0, 9);
      node.resource = kind < 6   ? Resource::kVector
                      : kind < 8 ? Resource::kCube
                      : kind < 9 ? Resource::kCopy
                                 : Resource::kCommunication;
    }
    for (const auto& [from, to] : edges_) dag_.edges.push_back({from, to});
    std::shuffle(dag_.edges.begin(), dag_.edges.end(), random_);
  }

  const analyzer::streams::Dag& dag() const { return dag_; }

 private:
  using Nodes = std::vector<int32_t>;

  int Draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  int32_t NewNode() {
    dag_.nodes.emplace_back();
    return static_cast<int32_t>(dag_.nodes.size()) - 1;
  }

  void MakeLayered(size_t nodes) {
    std::vector<Nodes> layers;
    while (dag_.nodes.size() < nodes) {
      Nodes layer;
      for (int i = Draw(2, 8); i > 0 && dag_.nodes.size() < nodes; --i) {
        const int32_t node = NewNode();
        layer.push_back(node);
        for (int e = Draw(1, 3); e > 0 && !layers.empty(); --e) {
          const size_t back = layers.size() > 1 && Draw(0, 3) == 0 ? 2 : 1;
          const Nodes& from = layers[layers.size() - back];
          edges_.emplace(from[Draw(0, static_cast<int>(from.size()) - 1)], node);
        }
      }
      layers.push_back(layer);
    }
  }

  // Appends nodes after `ends`; returns the new ends.
  Nodes MakeSeriesParallel(size_t nodes, Nodes ends) {
    while (nodes > 0) {
      const size_t branches = static_cast<size_t>(Draw(2, 4));
      if (nodes < 2 * branches || Draw(0, 1) == 0) {
        const int32_t node = NewNode();
        for (const int32_t end : ends) edges_.emplace(end, node);
        ends = {node};
        --nodes;
        continue;
      }
      const size_t block = static_cast<size_t>(
          Draw(static_cast<int>(branches), static_cast<int>(std::min<size_t>(nodes, 60))));
      Nodes joined;
      for (size_t b = 0; b < branches; ++b) {
        const Nodes branch = MakeSeriesParallel(std::max<size_t>(1, block / branches), ends);
        joined.insert(joined.end(), branch.begin(), branch.end());
      }
      nodes -= std::min(nodes, std::max<size_t>(1, block / branches) * branches);
      ends = joined;
    }
    return ends;
  }

  // `edges` edges a node on average, from the `window` nodes before.
  void MakeWindowed(size_t nodes, size_t window, double edges) {
    for (size_t i = 0; i < nodes; ++i) {
      const int32_t node = NewNode();
      const int32_t first = static_cast<int32_t>(i < window ? 0 : i - window);
      if (node == 0) continue;
      const int count = std::poisson_distribution<int>(edges)(random_);
      for (int e = 0; e < count; ++e) edges_.emplace(Draw(first, node - 1), node);
    }
  }

  std::mt19937 random_;
  analyzer::streams::Dag dag_;
  std::set<std::pair<int32_t, int32_t>> edges_;
};

// Accesses by node that demand exactly the order of the edges: a buffer per edge, written by `from`
// and read by `to`.
inline std::vector<std::vector<analyzer::ByteAccess>> AccessesOf(
    const analyzer::streams::Dag& dag) {
  std::vector<std::vector<analyzer::ByteAccess>> accesses(dag.nodes.size());
  for (size_t e = 0; e < dag.edges.size(); ++e) {
    const auto buffer = static_cast<int64_t>(e) + 1;
    accesses[dag.edges[e].from].push_back({buffer, 0, 1, true, nullptr});
    accesses[dag.edges[e].to].push_back({buffer, 0, 1, false, nullptr});
  }
  return accesses;
}

}  // namespace acltape::test
