// Chooses the values that a forward pass keeps for its backward pass, by one of two ways to cut the
// joint graph of both.
//
//   default   every value that forward computes and backward reads is kept
//   min-cut   keeps the values of least bytes from which everything that backward reads can be
//             computed again. It is a minimum cut between the values that are there anyway and
//             backward. Each value is an edge with its bytes as capacity (node splitting), as in
//             PyTorch's min-cut rematerialisation partitioner.
//
// The other values that backward reads are recomputed before their use, which costs the time of the
// calls.
#pragma once

#include <cstdint>
#include <vector>

namespace acltape::analyzer::joint {

// Bytes that a call of forward wrote, or that were there before it.
struct JointValue {
  // The bytes that it takes to keep the value; 0 if the program keeps it in any case.
  int64_t bytes = 0;
  int32_t writer = -1;  // index in JointGraph::calls; -1: it was there before
  bool read_by_backward = false;
};

struct JointCall {
  std::vector<int32_t> reads;  // indices in JointGraph::values
  double duration_ns = 0;
  bool recomputable = true;
};

struct JointGraph {
  std::vector<JointValue> values;
  std::vector<JointCall> calls;  // calls of forward, in order
};

struct Partition {
  std::vector<int32_t> kept;        // values in order, including those of 0 bytes
  std::vector<int32_t> recomputed;  // calls, in order
  int64_t bytes = 0;
  double recompute_ns = 0;
};

Partition KeepAll(const JointGraph& graph);
Partition MinCut(const JointGraph& graph);

}  // namespace acltape::analyzer::joint
