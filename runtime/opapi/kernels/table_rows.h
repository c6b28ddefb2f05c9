// Rows of a sequence that lie in blocks of a cache, which one row of a table names.
#pragma once

#include <ATen/ATen.h>

#include "runtime/opapi/kernels/within.h"

namespace acltape::opapi {

// The rows at `positions` (int64, any shape) of the sequence: [positions..., row...]. `cache` is
// [blocks, rows of a block, row...]; `blocks` are the ids of the sequence's blocks in order. Throws
// where an id is outside of the cache.
inline at::Tensor RowsOfTable(const at::Tensor& cache, const at::Tensor& blocks,
                              const at::Tensor& positions) {
  const int64_t page = cache.size(1);
  const at::Tensor flat = positions.flatten();
  const at::Tensor order = at::floor_divide(flat, page);
  const at::Tensor ids = Within(blocks.index_select(0, order), cache.size(0), "blockTable");
  const at::Tensor rows = cache.flatten(0, 1).index_select(0, ids * page + flat.remainder(page));
  std::vector<int64_t> sizes = positions.sizes().vec();
  const at::IntArrayRef row = cache.sizes().slice(2);
  sizes.insert(sizes.end(), row.begin(), row.end());
  return rows.view(sizes);
}

}  // namespace acltape::opapi
