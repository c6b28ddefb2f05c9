// Rows of tokens in the order of their experts, for operators that bring tokens to experts and
// their results back. A token that goes to k experts is k rows; flat positions count the rows token
// by token.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>

#include "runtime/opapi/engine/call.h"

namespace acltape::opapi {

// The positions of a vector's entries in ascending order; equal entries keep their order.
inline at::Tensor SortedPositions(const at::Tensor& values) {
  return std::get<1>(at::sort(values, /*stable=*/c10::optional<bool>(true), /*dim=*/0,
                              /*descending=*/false));
}

// Gives for each flat position the place to which its row went.
inline at::Tensor Inverse(const at::Tensor& order) {
  return at::empty_like(order).scatter_(0, order, at::arange(order.numel()));
}

// Rows of `table`; zeros for indices outside of it, which stand for rows that were dropped.
inline at::Tensor RowsOrZeros(const at::Tensor& table, const at::Tensor& index) {
  const at::Tensor outside = index.lt(0).logical_or(index.ge(table.size(0)));
  if (table.size(0) == 0) return at::zeros({index.numel(), table.size(1)}, table.options());
  return table.index_select(0, index.masked_fill(outside, 0)).masked_fill(outside.unsqueeze(-1), 0);
}

// `count` rows, each the sum of those that have its index. Rows with other indices are left out.
inline at::Tensor SumsOfRows(const at::Tensor& rows, const at::Tensor& index, int64_t count) {
  const at::Tensor kept = index.ge(0).logical_and(index.lt(count)).nonzero().flatten();
  return at::zeros({count, rows.size(1)}, rows.options())
      .index_add_(0, index.index_select(0, kept), rows.index_select(0, kept));
}

// Counts the tokens that each expert gets.
inline at::Tensor CountTokens(const at::Tensor& experts, int64_t count) {
  return at::bincount(experts, {}, count).narrow(0, 0, count);
}

// The way of the rows to their places.
struct RowPlaces {
  at::Tensor from;   // the flat position that each place has its row from; -1: none
  at::Tensor where;  // the place that each flat position's row goes to; -1: none
};

// All rows in the order of their experts, of which the first `kept` have a place.
inline RowPlaces PlacesInOrder(const at::Tensor& flat, int64_t kept) {
  const at::Tensor order = SortedPositions(flat);
  return {order.narrow(0, 0, kept), Inverse(order)};
}

// Each expert has `capacity` places for its first rows.
inline RowPlaces PlacesWithCapacity(const at::Tensor& flat, int64_t experts, int64_t capacity) {
  const at::Tensor order = SortedPositions(flat);
  const at::Tensor sorted = flat.index_select(0, order);
  const at::Tensor counts = CountTokens(sorted, experts), starts = counts.cumsum(0) - counts;
  const at::Tensor place = at::arange(sorted.numel()) - starts.index_select(0, sorted);
  const at::Tensor kept = place.lt(capacity);
  const at::Tensor row = (sorted * capacity + place).masked_fill(kept.logical_not(), -1);
  const at::Tensor from = at::full({experts * capacity}, -1, order.options());
  from.index_copy_(0, row.masked_select(kept), order.masked_select(kept));
  return {from, at::empty_like(row).scatter_(0, order, row)};
}

// [tokens, k] of indices of experts for tokens of [tokens, width].
inline void ExpectExperts(const Call& call, int i, const at::Tensor& experts, const Operand& x) {
  call.ExpectRank(0, x.view(), 2);
  call.ExpectRank(i, experts, 2);
  call.ExpectIndex(i, experts);
  if (experts.size(0) != x.sizes()[0]) call.RejectArg(i, "has another number of tokens than x");
}

inline void ExpectVector(const Call& call, int i, int64_t count) {
  call.ExpectSizes(i, call.View(i), {count});
  call.ExpectIndex(i, call.View(i));
}

inline void ExpectNoPadding(const Call& call, int i) {
  if (call.Bool(i)) call.RejectArg(i, "is set; the soft device has no padded mode");
}

// The rows that are kept of `rows`: all for 0, so many for a positive number, all but so many for a
// negative one.
inline int64_t KeptRows(int64_t wanted, int64_t rows) {
  if (wanted > 0) return std::min(wanted, rows);
  return wanted == 0 ? rows : std::max<int64_t>(rows + wanted, 0);
}

// The number of experts of each token; without probabilities one.
inline int64_t ChoicesOf(const Call& call, int i, const Operand& probs, const at::Tensor& where) {
  if (!probs.defined()) return 1;
  call.ExpectRank(i, probs.view(), 2);
  if (probs.view().numel() != where.size(0)) {
    call.RejectArg(i, "has not one entry for each of sortedIndices");
  }
  return std::max<int64_t>(probs.sizes()[1], 1);
}

}  // namespace acltape::opapi
