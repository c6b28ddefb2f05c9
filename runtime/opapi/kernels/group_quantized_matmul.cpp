// Products of quantised matrices that communicate with the ranks of a group before or after them.
// Products of two integer matrices are exact before they are scaled; all else is computed in
// float32. A product is rounded once to the dtype of the output, which the ranks then exchange.
#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/group_kernel.h"
#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/quantized_factors.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments in a version of the operator; -1: none. All have (x1, x2, bias?,
// x3?) first.
struct QuantSumArguments {
  int scale, row_scale, group, out;
  std::vector<int> absent, zero;  // tensors and numbers that the soft device lacks
};
const QuantSumArguments kQuantSum = {4, -1, 5, 9, {}, {}};
const QuantSumArguments kQuantSumV2 = {4, 5, 6, 10, {}, {}};
const QuantSumArguments kQuantSumV3 = {4, 5, 8, 12, {6, 7}, {}};
const QuantSumArguments kQuantSumV4 = {5, 4, 8, 14, {6, 7}, {12, 13}};
const QuantSumArguments kQuantSumV5 = {5, 4, 8, 15, {6, 7}, {13, 14}};

// Factors of two or three dims with one of two: the sizes of their product.
std::vector<int64_t> ReadSizes(const Call& call, const Tensor& x1, at::IntArrayRef x2) {
  if (x1.dim() != 2 && x1.dim() != 3) call.RejectArg(0, "must have 2 or 3 dims");
  if (x2.size() != 2) call.RejectArg(1, "has shape " + SizesText(x2) + ", expected 2 dims");
  if (x1.size(-1) != x2[0]) {
    call.RejectCall("shapes " + SizesText(x1.sizes()) + " and " + SizesText(x2) +
                    " do not multiply");
  }
  std::vector<int64_t> sizes = x1.sizes().vec();
  sizes.back() = x2[1];
  return sizes;
}

// The sum's output, and what each rank adds to its product, which may be undefined.
struct SumEnds {
  Tensor out, added;
};
SumEnds ReadEnds(const Call& call, int out, int added, const std::vector<int64_t>& sizes) {
  SumEnds ends{call.Out(out), {}};
  ExpectDtypes(call, out, ends.out, {at::kHalf, at::kBFloat16});
  call.ExpectSizes(out, ends.out, sizes);
  if (call.IsAbsent(added)) return ends;
  ends.added = call.View(added);
  ExpectDtypes(call, added, ends.added, {ends.out.scalar_type()});
  call.ExpectSizes(added, ends.added, sizes);
  return ends;
}

std::unique_ptr<Kernel> MakeSum(Group group, const SumEnds& ends, std::function<Tensor()> product) {
  const auto own = [ends, product] {
    const Tensor whole = product().view(ends.out.sizes());
    return ends.added.defined() ? whole + ends.added : whole;
  };
  return MakeSumKernel(std::move(group), ends.out.scalar_type(), own,
                       [out = ends.out](const Tensor& sum) { out.copy_(sum); });
}

// Two matrices of integers: their product, plus a bias of integers, times the factor of each column
// and that of each row.
std::unique_ptr<Kernel> BindQuantSum(const Call& call, const QuantSumArguments& at) {
  call.ExpectAbsent(at.absent);
  for (int i : at.zero) {
    if (call.Int(i) != 0) call.RejectArg(i, "must be 0: the soft device lacks what it asks for");
  }
  ExpectSum(call, at.group + 1);
  const Tensor x1 = call.View(0), x2 = call.View(1);
  ExpectInt8(call, 0, x1);
  ExpectInt8(call, 1, x2);
  const std::vector<int64_t> sizes = ReadSizes(call, x1, x2.sizes());
  const int64_t columns = sizes.back(), inner = x1.size(-1);
  const Tensor scale = call.View(at.scale);
  if (scale.scalar_type() != at::kLong) ExpectFloats(call, at.scale, scale);
  ExpectPerColumn(call, at.scale, scale, columns);
  Tensor row_scale, bias;
  if (at.row_scale >= 0 && !call.IsAbsent(at.row_scale)) {
    row_scale = call.View(at.row_scale);
    ExpectDtypes(call, at.row_scale, row_scale, {at::kFloat});
    if (inner > 0 && row_scale.numel() != x1.numel() / inner) {
      call.RejectArg(at.row_scale,
                     "has shape " + SizesText(row_scale.sizes()) + ", expected one element a row");
    }
  }
  if (!call.IsAbsent(2)) {
    bias = call.View(2);
    ExpectDtypes(call, 2, bias, {at::kInt});
    call.ExpectSizes(2, bias, {columns});
  }
  const SumEnds ends = ReadEnds(call, at.out, 3, sizes);
  return MakeSum(Group(call, at.group), ends, [=] {
    Tensor product = at::matmul(x1.reshape({-1, inner}).to(at::kDouble), x2.to(at::kDouble));
    if (bias.defined()) product += bias.to(at::kDouble);
    Tensor scaled = product.to(at::kFloat) * ScaleOf(scale).reshape({-1});
    if (row_scale.defined()) scaled *= row_scale.reshape({-1, 1});
    return scaled;
  });
}

// (x1, x2, bias?, antiquantScale, antiquantOffset?, x3?, group, reduceOp, [commMode,] commTurn,
// streamMode, antiquantGroupSize, output): x1 times (x2 + offset) * scale, plus the bias
std::unique_ptr<Kernel> BindWeightQuantSum(const Call& call, int out) {
  ExpectSum(call, 7);
  const Tensor x1 = call.View(0);
  ExpectDtypes(call, 0, x1, {at::kHalf, at::kBFloat16});
  const IntegerMatrix weight = ReadIntegerMatrix(call, 1, x1.size(-1));
  const std::vector<int64_t> sizes = ReadSizes(call, x1, weight.sizes());
  const int64_t columns = sizes.back(), inner = x1.size(-1), group = call.Int(out - 1);
  if (group < 0) call.RejectArg(out - 1, "must not be negative");
  const Tensor scale = call.View(3);
  ExpectFloats(call, 3, scale);
  ExpectSpread(call, 3, scale, inner, columns, group);
  Tensor offset, bias;
  if (!call.IsAbsent(4)) {
    offset = call.View(4);
    ExpectFloats(call, 4, offset);
    ExpectSpread(call, 4, offset, inner, columns, group);
  }
  if (!call.IsAbsent(2)) {
    bias = call.View(2);
    ExpectFloats(call, 2, bias);
    call.ExpectSizes(2, bias, {columns});
  }
  const SumEnds ends = ReadEnds(call, out, 5, sizes);
  return MakeSum(Group(call, 6), ends, [=] {
    const Tensor wide = Dequantized(weight.Read(), offset, scale, inner, group, x1.scalar_type());
    const Tensor product = at::matmul(x1.reshape({-1, inner}).to(at::kFloat), wide);
    return bias.defined() ? product + bias : product;
  });
}

// --- Ranks exchange parts of a factor, or of the product.

// Ways in which a factor is quantised, as the interface counts them.
constexpr int64_t kByColumns = 2, kByRows = 3, kByRowsWhileItRuns = 7;

// The positions of the arguments in a version of the operator. All have (x1, x2, bias?, x1Scale?,
// x2Scale, commScale?, x1Offset?, x2Offset?) first; the numbers of the quantisation lie from
// `modes` on, and the flags of transposition before the output.
struct QuantPartsArguments {
  int group, axes, modes, out;
};
const QuantPartsArguments kQuantOut = {9, 8, 10, 17};
const QuantPartsArguments kQuantOutV2 = {9, 8, 11, 18};
const QuantPartsArguments kQuantIn = {8, 9, 10, 18};
const QuantPartsArguments kQuantInV2 = {8, 10, 11, 19};

// The second factor, a matrix of integers, and what the product with it is scaled with.
struct QuantProduct {
  Tensor x2, scale, bias;  // the bias may be undefined

  // `left` has whole numbers.
  Tensor Of(const Tensor& left, const Tensor& row_scale) const {
    const Tensor exact = at::matmul(left.to(at::kDouble), x2.to(at::kDouble));
    const Tensor scaled =
        exact.to(at::kFloat) * row_scale.to(at::kFloat).reshape({-1, 1}) * scale.to(at::kFloat);
    return bias.defined() ? scaled + bias : scaled;
  }
};

// `rows_mode` is the way in which the first factor is quantised.
QuantProduct ReadQuantProduct(const Call& call, const QuantPartsArguments& at, int64_t rows_mode) {
  call.ExpectAbsent({5, 6, 7});
  const auto expect = [&](int i, int64_t number) {
    if (call.Int(i) != number) {
      call.RejectArg(i, "is " + std::to_string(call.Int(i)) + ", and the soft device knows " +
                            std::to_string(number) + " alone");
    }
  };
  expect(at.modes, rows_mode);
  expect(at.modes + 1, kByColumns);
  expect(at.modes + 2, 0);
  if (call.Bool(at.out - 2)) call.RejectArg(at.out - 2, "must be false");
  QuantProduct product{call.View(1), call.View(4), {}};
  ExpectInt8(call, 1, product.x2);
  call.ExpectRank(1, product.x2, 2);
  if (call.Bool(at.out - 1)) product.x2 = product.x2.t();
  ExpectDtypes(call, 4, product.scale, {at::kFloat});
  call.ExpectSizes(4, product.scale, {product.x2.size(1)});
  if (call.IsAbsent(2)) return product;
  product.bias = call.View(2);
  ExpectFloats(call, 2, product.bias);
  call.ExpectSizes(2, product.bias, {product.x2.size(1)});
  return product;
}

Tensor ReadHalf(const Call& call, int i, at::IntArrayRef sizes) {
  const Tensor out = call.Out(i);
  ExpectDtypes(call, i, out, {at::kHalf, at::kBFloat16});
  call.ExpectSizes(i, out, sizes);
  return out;
}

// Rejects the call unless the ranks share so many rows or columns of argument `i` evenly.
void ExpectShared(const Call& call, int i, const char* what, int64_t count, int64_t ranks) {
  if (count % ranks == 0) return;
  call.RejectArg(i, "has " + std::to_string(count) + " " + what + ", which " +
                        std::to_string(ranks) + " ranks do not share evenly");
}

// This rank's columns of the products of all ranks, one below the other.
std::unique_ptr<Kernel> BindQuantOut(const Call& call, const QuantPartsArguments& at) {
  Group group(call, at.group);
  ExpectAxes(call, at.axes, -1, -2);
  const QuantProduct product = ReadQuantProduct(call, at, kByRows);
  const Tensor x1 = call.View(0), row_scale = call.View(3);
  ExpectInt8(call, 0, x1);
  call.ExpectRank(0, x1, 2);
  ReadSizes(call, x1, product.x2.sizes());
  ExpectDtypes(call, 3, row_scale, {at::kFloat});
  call.ExpectSizes(3, row_scale, {x1.size(0)});
  const int64_t ranks = group.ranks(), rows = x1.size(0), columns = product.x2.size(1) / ranks;
  ExpectShared(call, 1, "columns", product.x2.size(1), ranks);
  const Tensor out = ReadHalf(call, at.out, {rows * ranks, columns});
  const auto own = std::make_shared<Tensor>(), all = std::make_shared<Tensor>();
  const auto before = [=] {
    *own = product.Of(x1, row_scale)
               .to(out.scalar_type())
               .view({rows, ranks, columns})
               .permute({1, 0, 2})
               .contiguous();
    *all = at::empty(out.sizes(), own->options());
    return ExchangeOf(SOFT_ALL_TO_ALL, rows * columns, *own, *all);
  };
  return MakeGroupKernel(std::move(group), before, [=] {
    out.copy_(*all);
    *own = *all = Tensor();
  });
}

// The parts of x1 that the ranks give this one, side by side, become integers row by row, after
// factors of their columns, and are multiplied. These parts are the last output.
std::unique_ptr<Kernel> BindQuantIn(const Call& call, const QuantPartsArguments& at) {
  Group group(call, at.group);
  ExpectAxes(call, at.axes, -2, -1);
  const QuantProduct product = ReadQuantProduct(call, at, kByRowsWhileItRuns);
  const Tensor x1 = call.View(0);
  ExpectDtypes(call, 0, x1, {at::kHalf, at::kBFloat16});
  call.ExpectRank(0, x1, 2);
  const int64_t ranks = group.ranks(), rows = x1.size(0) / ranks, inner = x1.size(1);
  ExpectShared(call, 0, "rows", x1.size(0), ranks);
  if (inner * ranks != product.x2.size(0)) {
    call.RejectCall("shapes " + SizesText(x1.sizes()) + " and " + SizesText(product.x2.sizes()) +
                    " do not multiply for " + std::to_string(ranks) + " ranks");
  }
  Tensor smooth;
  if (!call.IsAbsent(3)) {
    smooth = call.View(3);
    ExpectDtypes(call, 3, smooth, {x1.scalar_type()});
    call.ExpectSizes(3, smooth, {inner * ranks});
  }
  const Tensor out = ReadHalf(call, at.out, {rows, product.x2.size(1)});
  Tensor parts;
  if (!call.IsAbsent(at.out + 1)) {
    parts = call.Out(at.out + 1);
    ExpectDtypes(call, at.out + 1, parts, {x1.scalar_type()});
    call.ExpectSizes(at.out + 1, parts, {rows, inner * ranks});
  }
  const auto own = std::make_shared<Tensor>(), all = std::make_shared<Tensor>();
  const auto before = [=] {
    *own = x1.contiguous();
    *all = at::empty({ranks, rows, inner}, own->options());
    return ExchangeOf(SOFT_ALL_TO_ALL, rows * inner, *own, *all);
  };
  return MakeGroupKernel(std::move(group), before, [=] {
    const Tensor side_by_side = all->permute({1, 0, 2}).reshape({rows, ranks * inner});
    Tensor left = side_by_side.to(at::kFloat);
    if (smooth.defined()) left = left * smooth;
    const ScaledRows scaled = ScaleRows(left);
    out.copy_(product.Of(scaled.values, scaled.scale));
    if (parts.defined()) parts.copy_(side_by_side);
    *own = *all = Tensor();
  });
}

}  // namespace

KernelRows GroupQuantizedMatmulRows() {
  constexpr Widen kNever = Widen::kNever;
  const auto quant = [](const QuantSumArguments& at) {
    return [&at](const Call& call) { return BindQuantSum(call, at); };
  };
  return {
      {"aclnnQuantMatmulAllReduce", quant(kQuantSum), kNever, {2, 3}},
      {"aclnnQuantMatmulAllReduceV2", quant(kQuantSumV2)},
      {"aclnnQuantMatmulAllReduceV3", quant(kQuantSumV3)},
      {"aclnnQuantMatmulAllReduceV4", quant(kQuantSumV4)},
      {"aclnnQuantMatmulAllReduceV5", quant(kQuantSumV5), kNever, {10}},
      {"aclnnQuantMatmulAlltoAll", [](const Call& call) { return BindQuantOut(call, kQuantOut); }},
      {"aclnnQuantMatmulAlltoAllV2",
       [](const Call& call) { return BindQuantOut(call, kQuantOutV2); },
       kNever,
       {10}},
      {"aclnnAlltoAllQuantMatmul", [](const Call& call) { return BindQuantIn(call, kQuantIn); }},
      {"aclnnAlltoAllQuantMatmulV2",
       [](const Call& call) { return BindQuantIn(call, kQuantInV2); },
       kNever,
       {9}},
      {"aclnnWeightQuantMatmulAllReduce",
       [](const Call& call) { return BindWeightQuantSum(call, 11); }},
      {"aclnnWeightQuantMatmulAllReduceV2",
       [](const Call& call) { return BindWeightQuantSum(call, 12); },
       kNever,
       {8}},
  };
}

}  // namespace acltape::opapi
