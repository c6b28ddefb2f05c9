#include "runtime/opapi/kernels/quantized_factors.h"

#include <string>

namespace acltape::opapi {

using at::Tensor;

void ExpectPerColumn(const Call& call, int i, const Tensor& values, int64_t columns) {
  const bool row = values.dim() <= 2 && values.numel() == columns &&
                   (values.dim() == 0 || values.size(-1) == columns);
  if (values.numel() != 1 && !row) {
    call.RejectArg(i, "has shape " + SizesText(values.sizes()) + ", expected one element or " +
                          std::to_string(columns));
  }
}

Tensor ScaleOf(const Tensor& scale) {
  if (scale.scalar_type() != at::kLong) return scale.to(at::kFloat);
  constexpr int64_t kScaleBits = 0xFFFFE000;
  return scale.bitwise_and(at::Scalar(kScaleBits)).to(at::kInt).contiguous().view(at::kFloat);
}

Tensor OffsetOf(const Tensor& scale) {
  const Tensor bits = scale.bitwise_right_shift(37).bitwise_and(0x1FF);
  return at::where(bits.ge(256), bits - 512, bits).to(at::kFloat);
}

Tensor Spread(const Tensor& values, int64_t inner, int64_t group) {
  if (values.numel() == 1) return values.reshape({1, 1});
  const int64_t columns = values.size(-1);
  if (group == 0) return values.reshape({1, columns});
  const int64_t groups = values.size(0);
  return values.unsqueeze(1)
      .expand({groups, group, columns})
      .reshape({groups * group, columns})
      .narrow(0, 0, inner);
}

Tensor Dequantized(const Tensor& matrix, const Tensor& offset, const Tensor& scale, int64_t inner,
                   int64_t group, at::ScalarType dtype) {
  const auto rounded = [dtype](const Tensor& values) { return values.to(dtype).to(at::kFloat); };
  Tensor result = matrix.to(at::kFloat);
  if (offset.defined()) result = rounded(result + Spread(offset.to(at::kFloat), inner, group));
  return rounded(result * Spread(scale.to(at::kFloat), inner, group));
}

void ExpectSpread(const Call& call, int i, const Tensor& values, int64_t inner, int64_t columns,
                  int64_t group) {
  if (group == 0) return ExpectPerColumn(call, i, values, columns);
  call.ExpectSizes(i, values, {(inner + group - 1) / group, columns});
}

std::vector<int64_t> IntegerMatrix::sizes() const {
  if (four_bits.defined()) return four_bits.sizes().vec();
  std::vector<int64_t> sizes = view.sizes().vec();
  if (packed_dim != 0) sizes[sizes.size() + packed_dim] *= 8;
  return sizes;
}

Tensor IntegerMatrix::Read() const {
  if (four_bits.defined()) return four_bits.Read().to(at::kFloat);
  if (packed_dim == 0) return view.to(at::kFloat);
  const Tensor values =
      packed_dim == -1 ? UnpackInt4(view) : UnpackInt4(view.transpose(-1, -2)).transpose(-1, -2);
  return values.to(at::kFloat);
}

IntegerMatrix ReadIntegers(const Call& call, int i) {
  if (IsFourBits(call, i)) return {.four_bits = FourBits(call, i)};
  IntegerMatrix matrix{.view = call.View(i)};
  if (matrix.view.scalar_type() == at::kInt) {
    if (matrix.view.dim() == 0) call.RejectArg(i, "has no dims");
    matrix.packed_dim = -1;
  } else if (matrix.view.scalar_type() != at::kChar) {
    call.RejectArg(i, "is none of int4, int8 and int32, which packs eight integers of 4 bits");
  }
  return matrix;
}

IntegerMatrix ReadIntegerMatrix(const Call& call, int i, int64_t inner) {
  IntegerMatrix matrix = ReadIntegers(call, i);
  if (matrix.sizes().size() < 2) call.RejectArg(i, "has less than 2 dims");
  if (matrix.packed_dim != 0 && matrix.view.size(-2) != inner) matrix.packed_dim = -2;
  return matrix;
}

}  // namespace acltape::opapi
