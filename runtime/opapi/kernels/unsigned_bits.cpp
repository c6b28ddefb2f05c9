#include "runtime/opapi/kernels/unsigned_bits.h"

#include "runtime/opapi/base/dtype.h"

namespace acltape::opapi {

using at::Tensor;

namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;

// The values of unsigned integers of 16 or 32 bits, in signed ones that hold them.
Tensor ValuesOf(const Tensor& bits) {
  const int64_t mask = bits.scalar_type() == at::kShort ? 0xFFFF : 0xFFFFFFFF;
  return bits.to(at::kLong).bitwise_and(at::Scalar(mask));
}

// The values of unsigned integers of 64 bits as floats. Those of 2^63 and more are halved before
// and doubled after; the last bit that is lost still decides how the half is rounded.
Tensor FloatsOf(const Tensor& bits, at::ScalarType dtype) {
  constexpr int64_t kAllButSign = 0x7FFFFFFFFFFFFFFF;
  const Tensor half = bits.bitwise_right_shift(1)
                          .bitwise_and(at::Scalar(kAllButSign))
                          .bitwise_or(bits.bitwise_and(at::Scalar(int64_t{1})));
  const at::ScalarType wide = dtype == at::kDouble ? at::kDouble : at::kFloat;
  return at::where(bits.lt(0), half.to(wide) * 2, bits.to(wide)).to(dtype);
}

// Integers of 64 bits whose lower bits are those of the values.
Tensor WholeOf(const Tensor& values) {
  if (!at::isFloatingType(values.scalar_type())) return values.to(at::kLong);
  const Tensor wide = values.to(at::kDouble);
  const Tensor large = wide.ge(kTwoTo63);
  const Tensor rest = at::where(large, wide - kTwoTo63, wide).to(at::kLong);
  return at::where(large, rest.bitwise_xor(at::Scalar(INT64_MIN)), rest);
}

}  // namespace

AnyNumbers ReadNumbers(const Call& call, int i) { return {call.Bits(i), call.IsUnsigned(i)}; }

AnyNumbers WrittenNumbers(const Call& call, int i) { return {call.BitsOut(i), call.IsUnsigned(i)}; }

void Convert(const AnyNumbers& to, const AnyNumbers& from) {
  Tensor values = from.tensor;
  const at::ScalarType dtype = to.tensor.scalar_type();
  if (from.unsigned_bits && values.scalar_type() != at::kLong) {
    values = ValuesOf(values);
  } else if (from.unsigned_bits && at::isFloatingType(dtype)) {
    values = FloatsOf(values, dtype);
  } else if (from.unsigned_bits && at::isComplexType(dtype)) {
    values = FloatsOf(values, at::toRealValueType(dtype));
  }
  if (to.unsigned_bits) values = WholeOf(values.is_complex() ? at::real(values) : values);
  to.tensor.copy_(values);
}

}  // namespace acltape::opapi
