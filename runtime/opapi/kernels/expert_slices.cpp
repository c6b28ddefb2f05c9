// Tokens in the order of their experts where a rank has only a slice of the rows: those of its own
// experts. The rules are those of the vendor's pages aclnnMoeTokenPermuteWithEp,
// aclnnMoeTokenUnpermuteWithEp and of their gradients.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/moe_rows.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The rows [begin, end) of all rows in the order of the experts.
struct RowSlice {
  int64_t begin, end;

  int64_t size() const { return end - begin; }
  // The rows of the slice that go to each flat position; others are no rows of the slice.
  Tensor Within(const Tensor& where) const {
    const Tensor index = where.to(at::kLong);
    const Tensor outside = index.lt(begin).logical_or(index.ge(end));
    return (index - begin).masked_fill(outside, -1);
  }
};

// Reads the range at position `i`; `otherwise` where it is absent.
RowSlice ReadSlice(const Call& call, int i, int64_t rows, RowSlice otherwise) {
  const std::vector<int64_t> range = call.Ints(i);
  if (range.empty()) return otherwise;
  if (range.size() != 2 || range[0] < 0 || range[1] < range[0] || range[1] > rows) {
    call.RejectArg(i, "must be the begin and the end of a range of " + std::to_string(rows));
  }
  return {range[0], range[1]};
}

void ExpectPlainFloats(const Call& call, const std::vector<int>& positions) {
  for (int i : positions) {
    if (!call.IsAbsent(i)) {
      ExpectDtypes(call, i, call.View(i), {at::kFloat, at::kHalf, at::kBFloat16});
    }
  }
}

// (tokens, indices, probs?, range?, numOutTokens, paddedMode, permuteTokens, sortedIndices,
// permuteProbs?). Without a range the probabilities are not looked at.
std::unique_ptr<Kernel> BindPermuteSlice(const Call& call) {
  const Operand tokens = call.In(0);
  const Tensor indices = call.View(1);
  call.ExpectRank(0, tokens.view(), 2);
  if (indices.dim() != 1 && indices.dim() != 2) call.RejectArg(1, "must have 1 or 2 dims");
  call.ExpectIndex(1, indices);
  if (indices.size(0) != tokens.sizes()[0]) call.RejectArg(1, "has not one row for each token");
  ExpectNoPadding(call, 5);
  ExpectPlainFloats(call, {0, 2});
  const int64_t k = indices.dim() == 1 ? 1 : std::max<int64_t>(indices.size(1), 1);
  const int64_t rows = indices.numel();
  const RowSlice slice = ReadSlice(call, 3, rows, {0, KeptRows(call.Int(4), rows)});
  const Tensor out = call.Out(6), where = call.Out(7);
  call.ExpectSizes(6, out, {slice.size(), tokens.sizes()[1]});
  ExpectVector(call, 7, rows);
  Operand probs;
  Tensor permuted_probs;
  if (!call.Ints(3).empty() && !call.IsAbsent(2)) {
    probs = call.In(2);
    call.ExpectSizes(2, probs.view(), indices.sizes());
    permuted_probs = call.Out(8);
    call.ExpectSizes(8, permuted_probs, {slice.size()});
  }
  return MakeKernel([=] {
    const Tensor order = SortedPositions(indices.to(at::kLong).flatten());
    where.copy_(Inverse(order));
    const Tensor from = order.narrow(0, slice.begin, slice.size());
    out.copy_(tokens().index_select(0, from.floor_divide(k)));
    if (probs.defined()) permuted_probs.copy_(probs().flatten().index_select(0, from));
  });
}

// (permutedTokensOutputGrad, sortedIndices, permutedProbsOutputGrad?, numTopk, range?, paddedMode,
// tokenGrad, probsGrad?)
std::unique_ptr<Kernel> BindPermuteSliceGrad(const Call& call) {
  const Operand gradient = call.In(0);
  const Tensor where = call.View(1);
  const int64_t k = call.Int(3);
  call.ExpectRank(0, gradient.view(), 2);
  call.ExpectRank(1, where, 1);
  call.ExpectIndex(1, where);
  if (k < 1 || where.size(0) % k != 0) call.RejectArg(3, "does not divide the number of rows");
  ExpectNoPadding(call, 5);
  ExpectPlainFloats(call, {0, 2});
  const int64_t tokens = where.size(0) / k, width = gradient.sizes()[1];
  const RowSlice slice = ReadSlice(call, 4, where.size(0), {0, gradient.sizes()[0]});
  call.ExpectSizes(0, gradient.view(), {slice.size(), width});
  const Tensor out = call.Out(6);
  call.ExpectSizes(6, out, {tokens, width});
  Operand of_permuted;
  Tensor of_probs;
  if (!call.Ints(4).empty() && !call.IsAbsent(2)) {
    of_permuted = call.In(2);
    call.ExpectSizes(2, of_permuted.view(), {slice.size()});
    of_probs = call.Out(7);
    call.ExpectSizes(7, of_probs, {tokens, k});
  }
  return MakeKernel([=] {
    const Tensor index = slice.Within(where);
    out.copy_(RowsOrZeros(gradient(), index).view({tokens, k, width}).sum(1));
    if (of_probs.defined()) {
      of_probs.copy_(RowsOrZeros(of_permuted().unsqueeze(1), index).view({tokens, k}));
    }
  });
}

// (permutedTokens, sortedIndices, probs?, numTopk, range?, paddedMode, restoreShape?, out). Without
// a range the probabilities tell how many experts a token has.
std::unique_ptr<Kernel> BindUnpermuteSlice(const Call& call) {
  const Operand permuted = call.In(0), probs = call.OptionalIn(2);
  const Tensor where = call.View(1);
  call.ExpectRank(0, permuted.view(), 2);
  call.ExpectRank(1, where, 1);
  call.ExpectIndex(1, where);
  ExpectNoPadding(call, 5);
  ExpectPlainFloats(call, {0, 2});
  const bool sliced = !call.Ints(4).empty();
  const int64_t k = sliced ? call.Int(3) : ChoicesOf(call, 2, probs, where);
  if (k < 1 || where.size(0) % k != 0) call.RejectArg(3, "does not divide the number of rows");
  const int64_t tokens = where.size(0) / k, width = permuted.sizes()[1];
  const RowSlice slice = ReadSlice(call, 4, where.size(0), {0, permuted.sizes()[0]});
  call.ExpectSizes(0, permuted.view(), {slice.size(), width});
  if (probs.defined()) call.ExpectSizes(2, probs.view(), {tokens, k});
  return BindWhole(call, 7, {tokens, width}, [=] {
    Tensor each = RowsOrZeros(permuted(), slice.Within(where)).view({tokens, k, width});
    if (probs.defined()) each = each * probs().unsqueeze(-1);
    return each.sum(1);
  });
}

// (unpermutedTokensGrad, sortedIndices, permutedTokens?, probs?, paddedMode, restoreShape?, range?,
// topkNum, permutedTokensGrad, probsGrad?). Without probabilities a token has one expert.
std::unique_ptr<Kernel> BindUnpermuteSliceGrad(const Call& call) {
  const Operand gradient = call.In(0), permuted = call.OptionalIn(2), probs = call.OptionalIn(3);
  const Tensor where = call.View(1);
  call.ExpectRank(0, gradient.view(), 2);
  call.ExpectRank(1, where, 1);
  call.ExpectIndex(1, where);
  ExpectNoPadding(call, 4);
  ExpectPlainFloats(call, {0, 2, 3});
  const int64_t k = ChoicesOf(call, 3, probs, where), width = gradient.sizes()[1];
  if (probs.defined() && call.Int(7) != k) call.RejectArg(7, "is not the number of probs' columns");
  if (where.size(0) % k != 0) call.RejectArg(1, "has no whole number of rows for each token");
  const int64_t tokens = where.size(0) / k;
  call.ExpectSizes(0, gradient.view(), {tokens, width});
  const RowSlice slice = ReadSlice(call, 6, where.size(0), {0, where.size(0)});
  const Tensor out = call.Out(8);
  call.ExpectSizes(8, out, {slice.size(), width});
  Tensor of_probs;
  if (probs.defined()) {
    call.ExpectSizes(3, probs.view(), {tokens, k});
    if (!permuted.defined()) call.RejectArg(2, "is absent, but probs are given");
    call.ExpectSizes(2, permuted.view(), out.sizes());
    of_probs = call.Out(9);
    call.ExpectSizes(9, of_probs, probs.sizes());
  }
  return MakeKernel([=] {
    const Tensor index = slice.Within(where);
    Tensor each = gradient().unsqueeze(1).expand({tokens, k, width});
    if (of_probs.defined()) {
      const Tensor rows = RowsOrZeros(permuted(), index).view({tokens, k, width});
      of_probs.copy_((rows * each).sum(-1));
      each = each * probs().unsqueeze(-1);
    }
    out.copy_(SumsOfRows(each.reshape({-1, width}), index, slice.size()));
  });
}

}  // namespace

KernelRows ExpertSliceRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnMoeTokenPermuteWithEp", BindPermuteSlice, Widen::kNever, {8}},
      {"aclnnMoeTokenPermuteWithEpGrad", BindPermuteSliceGrad, kBoth, {7}},
      {"aclnnMoeTokenUnpermuteWithEp", BindUnpermuteSlice, kBoth},
      {"aclnnMoeTokenUnpermuteWithEpGrad", BindUnpermuteSliceGrad, kBoth, {9}},
  };
}

}  // namespace acltape::opapi
