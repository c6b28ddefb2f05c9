// What a forward pass keeps for its backward pass: the joint graph of both, and two ways to cut it.
//
//   default   every value that forward computes and backward reads is kept
//   min-cut   the values of least bytes from which all that backward reads can be computed again; a
//             minimum cut between what is there anyway and backward, with each value as an edge of
//             its bytes (node splitting), as PyTorch's min-cut rematerialisation partitioner does
//
// The rest of what backward reads is recomputed before it is used, and costs the calls' time.
#pragma once

#include <cstdint>
#include <vector>

namespace acltape::analyzer {

// Bytes that a call of forward wrote, or that were there before it.
struct JointValue {
  int64_t bytes = 0;    // that keeping it takes; 0 when the program keeps it in any case
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
  std::vector<JointCall> calls;  // of forward, in order
};

struct Partition {
  std::vector<int32_t> kept;        // values, in order, those of 0 bytes included
  std::vector<int32_t> recomputed;  // calls, in order
  int64_t bytes = 0;
  double recompute_ns = 0;
};

Partition KeepAll(const JointGraph& graph);
Partition MinCut(const JointGraph& graph);

}  // namespace acltape::analyzer
