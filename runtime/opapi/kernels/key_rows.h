// The keys or values of sequences, wherever they lie: in one tensor of all batches, in one tensor
// of each batch, or in blocks of a cache that a table names.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <vector>

#include "runtime/opapi/engine/call.h"
#include "runtime/opapi/kernels/attention.h"

namespace acltape::opapi {

// Where the keys of one sequence lie.
struct KeyPlace {
  int64_t batch = 0;  // the batch whose tensor holds them
  int64_t first = 0;  // their first row there
  int64_t count = 0;  // how many rows they are
  at::Tensor blocks;  // the ids (int64) of their blocks in order, where keys lie in blocks
};

// Rows of keys or values, or of anything that goes with them row by row.
struct KeyRows {
  int64_t heads = 0, width = 0;
  // The rows of one sequence as [1, heads, rows, width]. Called while the task runs, for it reads
  // device memory.
  std::function<at::Tensor(const KeyPlace&)> at;
};

// Rows of one tensor [1, heads, rows, width] for each batch.
KeyRows RowsOfBatches(std::vector<at::Tensor> batches);
// Rows in blocks: [blocks, rows, heads * width], [blocks, heads, rows, width], or the latter in
// fractals [blocks, heads, width / n, rows, n].
KeyRows RowsInBlocks(const at::Tensor& cache, int64_t heads);

// The rows of `rows` after those of `first`, which are the same for all sequences.
KeyRows After(const KeyRows& rows, const KeyRows& first, int64_t count);
// The rows of `rows` with the columns of `more` after theirs.
KeyRows WithColumns(const KeyRows& rows, const KeyRows& more);

// The members of argument `i`, a tensor or a list of tensors.
std::vector<at::Tensor> KeyTensors(const Call& call, int i);
// Argument `i` of `heads` heads for each of `batches` batches: one tensor of all, or one of each.
std::vector<at::Tensor> ReadKeyBatches(const Call& call, int i, const HeadLayout& layout,
                                       int64_t batches, int64_t heads);
// The cache that is argument `i`, in blocks of `rows` rows.
at::Tensor ReadKeyBlocks(const Call& call, int i, int64_t heads, int64_t rows);

}  // namespace acltape::opapi
