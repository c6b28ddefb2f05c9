#include "runtime/opapi/kernels/quantized_factors.h"

#include <string>

namespace acltape::opapi {

using at::Tensor;

namespace {

// Integers of 4 bits, eight in one of 32 bits, the lowest first: more of them along the last dim.
Tensor UnpackInt4(const Tensor& packed) {
  const Tensor shifts = at::arange(0, 32, 4, at::TensorOptions(at::kInt));
  const Tensor wide = packed.unsqueeze(-1).bitwise_right_shift(shifts).bitwise_and(15);
  return at::where(wide.ge(8), wide - 16, wide).flatten(-2);
}

}  // namespace

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
  std::vector<int64_t> sizes = view.sizes().vec();
  if (packed_dim != 0) sizes[sizes.size() + packed_dim] *= 8;
  return sizes;
}

Tensor IntegerMatrix::Read() const {
  if (packed_dim == 0) return view.to(at::kFloat);
  const Tensor values =
      packed_dim == -1 ? UnpackInt4(view) : UnpackInt4(view.transpose(-1, -2)).transpose(-1, -2);
  return values.to(at::kFloat);
}

IntegerMatrix ReadIntegerMatrix(const Call& call, int i, int64_t inner) {
  IntegerMatrix matrix{call.View(i)};
  if (matrix.view.dim() < 2) call.RejectArg(i, "has less than 2 dims");
  if (matrix.view.scalar_type() == at::kInt) {
    matrix.packed_dim = matrix.view.size(-2) == inner ? -1 : -2;
  } else if (matrix.view.scalar_type() != at::kChar) {
    call.RejectArg(i, "is neither int8 nor int32, which packs eight integers of 4 bits");
  }
  return matrix;
}

}  // namespace acltape::opapi
