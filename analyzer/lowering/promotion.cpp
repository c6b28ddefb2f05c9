#include "analyzer/lowering/promotion.h"

#include <algorithm>

namespace acltape::analyzer::lowering {

using storage::DType;

namespace {

int Category(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 0;
    case DType::kUint8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return 1;
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return 2;
    default:
      return 3;
  }
}

}  // namespace

bool IsFloating(DType dtype) { return Category(dtype) == 2; }

bool IsIntegral(DType dtype, bool with_bool) {
  return Category(dtype) == 1 || (with_bool && dtype == DType::kBool);
}

DType PromoteTypes(DType a, DType b) {
  if (a == b) return a;
  const int category_a = Category(a);
  const int category_b = Category(b);
  if (category_a != category_b) {
    const DType higher = category_a > category_b ? a : b;
    const DType lower = category_a > category_b ? b : a;
    // A complex type is at least as wide as a floating operand.
    if (category_a + category_b == 5 && lower == DType::kFloat64) return DType::kComplex128;
    return higher;
  }
  const int64_t bytes_a = storage::DTypeBytes(a);
  const int64_t bytes_b = storage::DTypeBytes(b);
  if (bytes_a != bytes_b) {
    const DType wide = bytes_a > bytes_b ? a : b;
    return wide;
  }
  if (category_a == 1) return DType::kInt16;    // uint8 with int8
  if (category_a == 2) return DType::kFloat32;  // float16 with bfloat16
  return a;
}

DType ResultType(const storage::Layout& a, const storage::Layout& b) {
  const bool dims_a = !a.shape.empty();
  const bool dims_b = !b.shape.empty();
  if (dims_a == dims_b) return PromoteTypes(a.dtype, b.dtype);
  const storage::Layout& strong = dims_a ? a : b;
  const storage::Layout& weak = dims_a ? b : a;
  if (Category(weak.dtype) > Category(strong.dtype)) {
    // torch.result_type promotes the weak type alone, then combines it with the strong type of a
    // lower category.
    return PromoteTypes(weak.dtype, strong.dtype);
  }
  return strong.dtype;
}

}  // namespace acltape::analyzer::lowering
