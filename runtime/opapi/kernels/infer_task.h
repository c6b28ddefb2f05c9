// Fused attention of inference once its arguments are read: what runs with the task.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "runtime/opapi/kernels/attention.h"
#include "runtime/opapi/kernels/key_rows.h"
#include "runtime/opapi/kernels/out_scale.h"

namespace acltape::opapi {

// One call. Tensors that may be undefined are absent ones.
struct InferTask {
  std::string op;
  at::Tensor query;       // [batches, heads, rows, width]
  at::Tensor query_rope;  // further columns of the queries; may be undefined
  KeyRows key, value;     // with their columns, scales and prefix
  int64_t prefix = 0;     // keys that lie before those of every sequence
  at::Tensor table;       // [sequences, blocks], where keys lie in blocks; may be undefined
  int64_t block_rows = 0;
  std::vector<SequencePlace> places;
  // How many rows of a batch follow its sequence, [1] in device memory. Undefined: the sequence is
  // at the beginning of its batch.
  at::Tensor query_padding, key_padding;
  int64_t key_rows = 0;  // a batch of keys has so many
  double scale = 1;
  ScoreMask mask;         // the mask and the bias: [batches, heads, queries, keys], each may be 1
  at::Tensor bias;        // may be undefined
  at::Tensor sink;        // may be undefined
  at::Tensor given, out;  // the output, and that split into heads
  OutScale out_scale;
  at::Tensor lse;        // may be undefined
  bool partial = false;  // rows of the output may belong to no sequence: they are zeros

  void Run() const;

 private:
  void RunSequence(size_t index) const;
};

}  // namespace acltape::opapi
