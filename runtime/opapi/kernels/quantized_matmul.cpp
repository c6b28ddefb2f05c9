// Products of quantised matrices. Products of two integer matrices are exact before they are
// scaled; all else is computed in float32 and rounded once.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/quantized_factors.h"
#include "runtime/opapi/kernels/split_bytes.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The sizes of the product of batches of matrices; rejects what does not multiply.
std::vector<int64_t> ProductSizes(const Call& call, at::IntArrayRef a, at::IntArrayRef b) {
  if (a.size() < 2 || b.size() < 2) call.RejectArg(a.size() < 2 ? 0 : 1, "has less than 2 dims");
  const size_t batch_a = a.size() - 2, batch_b = b.size() - 2;
  if (a[batch_a + 1] != b[batch_b]) {
    call.RejectCall("shapes " + SizesText(a) + " and " + SizesText(b) + " do not multiply");
  }
  std::vector<int64_t> sizes = call.Broadcast({a.slice(0, batch_a), b.slice(0, batch_b)});
  sizes.insert(sizes.end(), {a[batch_a], b[batch_b + 1]});
  return sizes;
}

// A bias of each column, for all of a batch or for each of its matrices.
void ExpectBias(const Call& call, int i, const Tensor& bias, const std::vector<int64_t>& sizes) {
  if (bias.dim() == 0 || bias.size(-1) != sizes.back() || (bias.dim() > 1 && bias.size(-2) != 1) ||
      call.Broadcast({bias.sizes(), sizes}) != sizes) {
    call.RejectArg(i, "has shape " + SizesText(bias.sizes()) +
                          ", expected one element for each of " + std::to_string(sizes.back()) +
                          " columns");
  }
}

// --- A matrix of floats times one of integers.

// (weight, weightInt4Pack): integers of 4 bits, each in one of 32, become eight in one, or two in a
// byte.
std::unique_ptr<Kernel> BindPackInt4(const Call& call) {
  const Tensor weight = call.View(0);
  if (weight.scalar_type() != at::kInt) call.RejectArg(0, "is not int32");
  if (weight.dim() < 2 || weight.dim() > 3) call.RejectArg(0, "has not 2 or 3 dims");
  if (IsFourBits(call, 1)) {
    const FourBits out(call, 1, /*written=*/true);
    if (out.sizes() != weight.sizes()) {
      call.RejectArg(
          1, "has shape " + SizesText(out.sizes()) + ", expected " + SizesText(weight.sizes()));
    }
    if (weight.size(-1) % 2 != 0) call.RejectArg(0, "has a last dim of an odd size");
    return MakeKernel([=] { out.Write(weight); });
  }
  const Tensor out = call.Out(1);
  if (out.scalar_type() != at::kInt) {
    call.RejectArg(1, "is neither int4 nor int32, which packs eight integers of 4 bits");
  }
  if (weight.size(-1) % 8 != 0) call.RejectArg(0, "has a last dim that is no multiple of 8");
  std::vector<int64_t> sizes = weight.sizes().vec();
  sizes.back() /= 8;
  call.ExpectSizes(1, out, sizes);
  return MakeKernel([=] { out.copy_(PackInt4(weight)); });
}

// The quantisation of a result to int8: a parameter of the device for all columns, or for each.
// The parameters hold offsets; where others are given, too, those count.
struct ResultQuantisation {
  Tensor parameters, offset;

  bool defined() const { return parameters.defined(); }
  Tensor Apply(const Tensor& result) const {
    const Tensor added = offset.defined() ? offset : OffsetOf(parameters);
    const Tensor scaled = result * ScaleOf(parameters).reshape({-1}) + added.reshape({-1});
    return scaled.round().clamp(-128, 127);
  }
};

ResultQuantisation ReadResultQuantisation(const Call& call, int64_t columns, int out_index) {
  ResultQuantisation read;
  if (call.IsAbsent(4)) {
    if (!call.IsAbsent(5)) call.RejectArg(5, "is given, but quantScaleOptional is absent");
    ExpectFloats(call, out_index, call.View(out_index));
    return read;
  }
  if (call.Described(4).dtype != ACL_UINT64) call.RejectArg(4, "is not uint64");
  read.parameters = call.Bits(4);
  ExpectPerColumn(call, 4, read.parameters, columns);
  if (!call.IsAbsent(5)) {
    read.offset = call.View(5);
    ExpectDtypes(call, 5, read.offset, {at::kFloat});
    call.ExpectSizes(5, read.offset, read.parameters.sizes());
  }
  ExpectInt8(call, out_index, call.View(out_index));
  return read;
}

// The weight may come with parameters of the device in place of scales, and then with offsets of
// int32. The page allows few forms of such a call.
void ExpectParameters(const Call& call, const Operand& x, const IntegerMatrix& weight,
                      int64_t columns) {
  constexpr int64_t kMostRows = 96, kUnit = 64;
  const std::string reason = ", but antiquantScale is of 64 bits";
  if (x.view().scalar_type() != at::kHalf) call.RejectArg(0, "is not float16" + reason);
  if (weight.OfFourBits()) call.RejectArg(1, "is int4" + reason);
  if (x.dim() != 2 || weight.view.dim() != 2) call.RejectArg(1, "is no matrix" + reason);
  if (weight.view.stride(0) != 1) call.RejectArg(1, "is not transposed" + reason);
  if (x.sizes()[0] < 1 || x.sizes()[0] > kMostRows) {
    call.RejectArg(0, "has less than 1 or more than 96 rows" + reason);
  }
  if (x.sizes()[1] % kUnit != 0 || columns % kUnit != 0) {
    call.RejectArg(1, "has rows or columns that are no multiple of 64" + reason);
  }
  if (call.Int(7) != 0) call.RejectArg(7, "is not 0" + reason);
  if (!call.IsAbsent(4)) call.RejectArg(4, "is given" + reason);
  if (!call.IsAbsent(3)) ExpectDtypes(call, 3, call.View(3), {at::kInt});
}

// (x, weight, antiquantScale, antiquantOffset?, quantScale?, quantOffset?, bias?, groupSize,
// [innerPrecise,] y): x times (weight + offset) * scale, plus the bias
std::unique_ptr<Kernel> BindWeightQuant(const Call& call, int out_index) {
  const Operand x = call.In(0), offset = call.OptionalIn(3), bias = call.OptionalIn(6);
  const Tensor scale = call.Bits(2);
  ExpectFloats(call, 0, x.view());
  if (x.dim() < 2) call.RejectArg(0, "has less than 2 dims");
  const IntegerMatrix weight = ReadIntegerMatrix(call, 1, x.sizes().back());
  const std::vector<int64_t> sizes = ProductSizes(call, x.sizes(), weight.sizes());
  const int64_t inner = x.sizes().back(), columns = sizes.back(), group = call.Int(7);
  const bool parameters = scale.scalar_type() == at::kLong;
  parameters ? ExpectParameters(call, x, weight, columns) : ExpectFloats(call, 2, scale);
  if (group < 0) call.RejectArg(7, "must not be negative");
  ExpectSpread(call, 2, scale, inner, columns, group);
  if (offset.defined()) ExpectSpread(call, 3, offset.view(), inner, columns, group);
  if (bias.defined()) ExpectBias(call, 6, bias.view(), sizes);
  const ResultQuantisation quantised = ReadResultQuantisation(call, columns, out_index);
  // Parameters multiply the sums of the products, so no weight is rounded.
  const at::ScalarType rounded = parameters ? at::kFloat : x.view().scalar_type();
  return BindWhole(call, out_index, sizes, [=] {
    const Tensor wide = Dequantized(weight.Read(), offset.defined() ? offset() : Tensor(),
                                    ScaleOf(scale), inner, group, rounded);
    const Tensor product = at::matmul(x().to(at::kFloat), wide);
    const Tensor result = bias.defined() ? product + bias() : product;
    return quantised.defined() ? quantised.Apply(result) : result;
  });
}

// --- Two matrices of integers.

// The positions of the arguments in a version of the operator; -1: none.
struct QuantMatmulArguments {
  int x1_scale, scale, offset, bias, transpose1, transpose2, group, out;
  std::vector<int> absent;  // arguments that the device does not take
  int y_offset = -1;
};
const QuantMatmulArguments kQuantV3 = {-1, 2, 3, 4, 5, 6, -1, 7, {}};
const QuantMatmulArguments kQuantV4 = {4, 2, 3, 5, 6, 7, -1, 8, {}};
const QuantMatmulArguments kQuantV5 = {2, 3, 6, 8, 9, 10, 11, 12, {4, 5}, 7};

struct Factors {
  IntegerMatrix x1, x2;
  bool transposed1, transposed2;
  std::vector<int64_t> sizes;  // those of the product
  int64_t inner = 0;

  int64_t rows() const { return sizes[sizes.size() - 2]; }
  int64_t columns() const { return sizes.back(); }

  static Tensor InDoubles(const IntegerMatrix& matrix, bool transposed) {
    const Tensor wide = matrix.Read().to(at::kDouble);
    return transposed ? wide.transpose(-1, -2) : wide;
  }
  static std::vector<int64_t> Sizes(const IntegerMatrix& matrix, bool transposed) {
    std::vector<int64_t> sizes = matrix.sizes();
    if (transposed) std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
    return sizes;
  }
  Tensor First() const { return InDoubles(x1, transposed1); }
  Tensor Second() const { return InDoubles(x2, transposed2); }
};

Factors ReadFactors(const Call& call, const QuantMatmulArguments& at) {
  Factors factors{ReadIntegers(call, 0),
                  ReadIntegers(call, 1),
                  call.Bool(at.transpose1),
                  call.Bool(at.transpose2),
                  {}};
  for (const int i : {0, 1}) {
    if ((i == 0 ? factors.x1 : factors.x2).sizes().size() < 2) {
      call.RejectArg(i, "has less than 2 dims");
    }
  }
  if (factors.x1.OfFourBits() != factors.x2.OfFourBits()) {
    call.RejectArg(1, "needs integers of as many bits as x1");
  }
  if (factors.x1.OfFourBits() && factors.transposed1) {
    call.RejectArg(at.transpose1, "must be false for integers of 4 bits");
  }
  const std::vector<int64_t> left = Factors::Sizes(factors.x1, factors.transposed1);
  factors.sizes = ProductSizes(call, left, Factors::Sizes(factors.x2, factors.transposed2));
  factors.inner = left.back();
  return factors;
}

// --- Products with scales of groups, by the page of aclnnQuantMatmulV5.

constexpr int64_t GroupsOf(int64_t rows, int64_t columns, int64_t inner) {
  return inner | columns << 16 | rows << 32;
}
constexpr int64_t kInnerGroup = 256, kBlock = 128;

// The inner dim comes in groups, each with scales and offsets of its own:
// x1Scale * sum over groups of x2Scale * (x1 @ x2 - x1 @ x2Offset)
std::unique_ptr<Kernel> BindGroupedFourBits(const Call& call, const QuantMatmulArguments& at) {
  const Factors factors = ReadFactors(call, at);
  const std::vector<int64_t>& sizes = factors.sizes;
  if (!factors.x1.OfFourBits() || sizes.size() != 2) {
    call.RejectArg(0, "is no matrix of int4, which groups of 256 need");
  }
  const int64_t rows = factors.rows(), columns = factors.columns(), inner = factors.inner;
  constexpr int64_t kInnerUnit = 1024;
  if (!factors.transposed2) call.RejectArg(at.transpose2, "must be true for groups of 256");
  if (inner % kInnerUnit != 0) call.RejectArg(0, "has an inner dim that is no multiple of 1024");
  if (columns % kInnerGroup != 0) call.RejectArg(1, "has columns that are no multiple of 256");
  call.ExpectAbsent({at.bias});
  const Tensor x1_scale = call.View(at.x1_scale), scale = call.View(at.scale);
  const Tensor offset = call.View(at.offset), out = call.Out(at.out);
  for (const int i : {at.x1_scale, at.scale}) {
    if (call.View(i).scalar_type() != at::kFloat) call.RejectArg(i, "is not float32");
  }
  if (offset.scalar_type() != at::kHalf) call.RejectArg(at.offset, "is not float16");
  call.ExpectSizes(at.x1_scale, x1_scale, {rows, 1});
  call.ExpectSizes(at.scale, scale, {inner / kInnerGroup, columns});
  call.ExpectSizes(at.offset, offset, {inner / kInnerGroup, columns});
  ExpectFloats(call, at.out, out);
  call.ExpectSizes(at.out, out, sizes);
  return MakeKernel([=] {
    const Tensor wide = Spread(offset.to(at::kDouble), inner, kInnerGroup);
    const Tensor shifted =
        (factors.Second() - wide) * Spread(scale.to(at::kDouble), inner, kInnerGroup);
    out.copy_(at::matmul(factors.First(), shifted) * x1_scale.to(at::kDouble));
  });
}

// Both factors come in blocks of 128 along the inner dim, and the second one along its columns,
// too; each block has a scale.
std::unique_ptr<Kernel> BindBlocks(const Call& call, const QuantMatmulArguments& at) {
  const Factors factors = ReadFactors(call, at);
  const std::vector<int64_t>& sizes = factors.sizes;
  if (factors.x1.OfFourBits() || sizes.size() != 2) {
    call.RejectArg(0, "is no matrix of int8, which blocks of 128 need");
  }
  const int64_t rows = factors.rows(), columns = factors.columns(), inner = factors.inner;
  if (factors.transposed1) call.RejectArg(at.transpose1, "must be false for blocks of 128");
  if (!factors.transposed2) call.RejectArg(at.transpose2, "must be true for blocks of 128");
  if (inner % (4 * kBlock) != 0) call.RejectArg(0, "has an inner dim that is no multiple of 512");
  if (columns % (2 * kBlock) != 0) call.RejectArg(1, "has columns that are no multiple of 256");
  call.ExpectAbsent({at.offset});
  const Tensor x1_scale = call.View(at.x1_scale), scale = call.View(at.scale);
  for (const int i : {at.x1_scale, at.scale}) {
    if (call.View(i).scalar_type() != at::kFloat) call.RejectArg(i, "is not float32");
  }
  call.ExpectSizes(at.x1_scale, x1_scale, {rows, inner / kBlock});
  call.ExpectSizes(at.scale, scale, {columns / kBlock, inner / kBlock});
  Tensor bias;
  if (!call.IsAbsent(at.bias)) {
    bias = call.View(at.bias);
    if (bias.scalar_type() != at::kFloat) call.RejectArg(at.bias, "is not float32");
    call.ExpectSizes(at.bias, bias, {columns});
  }
  const Tensor out = call.Out(at.out);
  ExpectFloats(call, at.out, out);
  call.ExpectSizes(at.out, out, sizes);
  return MakeKernel([=] {
    const auto each = [](const Tensor& scales, int64_t dim) {
      return scales.to(at::kDouble).repeat_interleave(kBlock, dim);
    };
    const Tensor first = factors.First() * each(x1_scale, 1);
    const Tensor second = factors.Second() * each(each(scale, 0), 1).t();
    const Tensor product = at::matmul(first, second);
    out.copy_(bias.defined() ? product + bias.to(at::kDouble) : product);
  });
}

// The product itself, plus a bias of integers, in int32. The scale is given, but nothing reads it.
std::unique_ptr<Kernel> BindExactProduct(const Call& call, const QuantMatmulArguments& at,
                                         const Factors& factors) {
  const std::string reason = ", but out is int32";
  if (factors.x1.OfFourBits()) call.RejectArg(at.out, "is int32, but x1 is int4");
  if (call.Bits(at.scale).scalar_type() == at::kLong) {
    call.RejectArg(at.scale, "is of 64 bits" + reason);
  }
  for (const int i : {at.x1_scale, at.offset}) {
    if (i >= 0 && !call.IsAbsent(i)) call.RejectArg(i, "is given" + reason);
  }
  Tensor bias;
  if (!call.IsAbsent(at.bias)) {
    bias = call.View(at.bias);
    if (bias.scalar_type() != at::kInt) call.RejectArg(at.bias, "is not int32" + reason);
  }
  const Tensor out = call.Out(at.out);
  return MakeKernel([=] {
    const Tensor product = at::matmul(factors.First(), factors.Second()).to(at::kLong);
    out.copy_(bias.defined() ? product + bias : product);
  });
}

// (x1, x2, ..., scale, ..., out): the product, plus a bias of integers, times the scale of each
// column and that of each row, plus the offset or a bias of floats
std::unique_ptr<Kernel> BindQuantMatmul(const Call& call, const QuantMatmulArguments& at) {
  call.ExpectAbsent(at.absent);
  if (at.y_offset >= 0) {
    if (MultipliesBytesWithFourBits(call)) return BindSplitBytes(call);
    if (!call.IsAbsent(at.y_offset)) {
      call.RejectArg(at.y_offset, "is given, but only int8 with int4 in int32 takes it");
    }
  }
  if (at.group >= 0 && call.Int(at.group) != 0) {
    if (call.Int(at.group) == GroupsOf(0, 0, kInnerGroup)) return BindGroupedFourBits(call, at);
    if (call.Int(at.group) == GroupsOf(1, kBlock, kBlock)) return BindBlocks(call, at);
    call.RejectArg(at.group,
                   "must be 0, or stand for the groups [0, 0, 256] or [1, 128, 128] of rows, "
                   "columns and the inner dim");
  }
  const Factors factors = ReadFactors(call, at);
  const std::vector<int64_t>& sizes = factors.sizes;
  const int64_t rows = factors.rows(), columns = factors.columns();
  const Tensor scale = call.Bits(at.scale);
  if (scale.scalar_type() != at::kLong) ExpectFloats(call, at.scale, scale);
  ExpectPerColumn(call, at.scale, scale, columns);
  Tensor x1_scale, offset, bias;
  if (at.x1_scale >= 0 && !call.IsAbsent(at.x1_scale)) {
    x1_scale = call.View(at.x1_scale);
    ExpectFloats(call, at.x1_scale, x1_scale);
    if (x1_scale.numel() != 1 && x1_scale.numel() != rows) {
      call.RejectArg(at.x1_scale,
                     "needs one element, or one for each of " + std::to_string(rows) + " rows");
    }
  }
  if (!call.IsAbsent(at.offset)) {
    offset = call.View(at.offset);
    ExpectFloats(call, at.offset, offset);
    ExpectPerColumn(call, at.offset, offset, columns);
  }
  if (!call.IsAbsent(at.bias)) {
    bias = call.View(at.bias);
    if (bias.scalar_type() != at::kInt) ExpectFloats(call, at.bias, bias);
    ExpectBias(call, at.bias, bias, sizes);
  }
  const Tensor out = call.Out(at.out);
  call.ExpectSizes(at.out, out, sizes);
  if (out.scalar_type() == at::kInt) return BindExactProduct(call, at, factors);
  const bool rounds = out.scalar_type() == at::kChar;
  if (!rounds && !at::isFloatingType(out.scalar_type())) {
    call.RejectArg(at.out, "is none of int8, int32 and a floating dtype");
  }
  return MakeKernel([=] {
    Tensor product = at::matmul(factors.First(), factors.Second());
    const bool whole_bias = bias.defined() && bias.scalar_type() == at::kInt;
    if (whole_bias) product = product + bias.to(at::kDouble);
    Tensor result = product.to(at::kFloat) * ScaleOf(scale).reshape({-1});
    if (x1_scale.defined()) result = result * x1_scale.to(at::kFloat).reshape({-1, 1});
    if (offset.defined()) {
      result = result + offset.to(at::kFloat).reshape({-1});
    } else if (rounds && scale.scalar_type() == at::kLong) {
      result = result + OffsetOf(scale).reshape({-1});
    }
    if (bias.defined() && !whole_bias) result = result + bias.to(at::kFloat);
    out.copy_(rounds ? result.round().clamp(-128, 127) : result);
  });
}

}  // namespace

KernelRows QuantizedMatmulRows() {
  const auto weight_quant = [](int out_index) {
    return [=](const Call& call) { return BindWeightQuant(call, out_index); };
  };
  const auto quant = [](const QuantMatmulArguments& at) {
    return [&at](const Call& call) { return BindQuantMatmul(call, at); };
  };
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnWeightQuantBatchMatmulV2", weight_quant(8), kBoth},
      {"aclnnWeightQuantBatchMatmulV3", weight_quant(9), kBoth},
      {"aclnnWeightQuantBatchMatmulNz", weight_quant(8), kBoth},
      {"aclnnConvertWeightToINT4Pack", BindPackInt4},
      {"aclnnQuantMatmulV3", quant(kQuantV3)},
      {"aclnnQuantMatmulV4", quant(kQuantV4)},
      {"aclnnQuantMatmulV5", quant(kQuantV5)},
      {"aclnnQuantMatmulWeightNz", quant(kQuantV5)},
  };
}

}  // namespace acltape::opapi
