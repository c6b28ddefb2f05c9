// The greatest scores and the sums of packed sequences, each held 8 times, as the attention of
// training hands them from one operator to the next.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>

#include "runtime/opapi/kernels/attention.h"

namespace acltape::opapi {

// How the rows of a statistic follow each other in memory, whatever shape the tensor has.
enum class StatisticOrder : uint8_t {
  kHeadsOfSequence,  // sequence by sequence; in each, all rows of one head follow each other
  kLikeInput,        // row by row, as those of the queries: [rows, heads, 8]
};

// A statistic of `heads` heads as a dense matrix of 8 columns.
struct PackedStatistic {
  at::Tensor rows;  // [all rows * heads, 8]
  int64_t heads = 0;
  StatisticOrder order = StatisticOrder::kHeadsOfSequence;

  // One that is to be filled; rows of no sequence stay 0.
  static PackedStatistic Empty(int64_t count, int64_t heads, StatisticOrder order) {
    return {at::zeros({count * heads, 8}, at::kFloat), heads, order};
  }
  // Gives what a tensor holds.
  static PackedStatistic Of(const at::Tensor& tensor, int64_t heads, StatisticOrder order) {
    return {tensor.contiguous().view({-1, 8}), heads, order};
  }

  // The view of `count` rows of queries from `first` on, which are one sequence:
  // [1, heads, count, 8].
  at::Tensor Sequence(int64_t first, int64_t count) const {
    const at::Tensor part = rows.narrow(0, first * heads, count * heads);
    const at::Tensor split = order == StatisticOrder::kLikeInput
                                 ? part.view({count, heads, 8}).transpose(0, 1)
                                 : part.view({heads, count, 8});
    return split.unsqueeze(0);
  }

  void CopyTo(const at::Tensor& tensor) const { tensor.copy_(rows.view(tensor.sizes())); }
};

}  // namespace acltape::opapi
