// Sums over the ranks of a group of products of quantised matrices. Products of two integer
// matrices are exact before they are scaled; all else is computed in float32. A product is rounded
// once to the dtype of the output, which the ranks then exchange.
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
    Tensor wide = weight.Read();
    if (offset.defined()) wide = wide + Spread(offset.to(at::kFloat), inner, group);
    wide = wide * Spread(scale.to(at::kFloat), inner, group);
    const Tensor product = at::matmul(x1.reshape({-1, inner}).to(at::kFloat), wide);
    return bias.defined() ? product + bias : product;
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
      {"aclnnWeightQuantMatmulAllReduce",
       [](const Call& call) { return BindWeightQuantSum(call, 11); }},
      {"aclnnWeightQuantMatmulAllReduceV2",
       [](const Call& call) { return BindWeightQuantSum(call, 12); },
       kNever,
       {8}},
  };
}

}  // namespace acltape::opapi
