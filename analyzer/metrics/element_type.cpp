#include "analyzer/metrics/element_type.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "analyzer/metrics/metrics.h"

namespace acltape::analyzer::metrics {
namespace {

using storage::DType;

constexpr ElementType kTypes[] = {
    {DType::kBool, block::kBool, 1, DType::kBool},
    {DType::kUint8, block::kUint8, 1, DType::kUint8},
    {DType::kQuint8, block::kUint8, 1, DType::kUint8},
    {DType::kInt8, block::kInt8, 1, DType::kInt8},
    {DType::kQint8, block::kInt8, 1, DType::kInt8},
    {DType::kUint16, block::kUint16, 1, DType::kUint16},
    {DType::kInt16, block::kInt16, 1, DType::kInt16},
    {DType::kUint32, block::kUint32, 1, DType::kUint32},
    {DType::kInt32, block::kInt32, 1, DType::kInt32},
    {DType::kQint32, block::kInt32, 1, DType::kInt32},
    {DType::kUint64, block::kUint64, 1, DType::kUint64},
    {DType::kInt64, block::kInt64, 1, DType::kInt64},
    {DType::kBfloat16, block::kBfloat16, 1, DType::kBfloat16},
    {DType::kFloat16, block::kFloat16, 1, DType::kFloat16},
    {DType::kFloat32, block::kFloat32, 1, DType::kFloat32},
    {DType::kFloat64, block::kFloat64, 1, DType::kFloat64},
    {DType::kComplex32, block::kFloat16, 2, DType::kFloat16},
    {DType::kComplex64, block::kFloat32, 2, DType::kFloat32},
    {DType::kComplex128, block::kFloat64, 2, DType::kFloat64},
};

}  // namespace

const ElementType* FindElementType(DType dtype) {
  for (const ElementType& row : kTypes) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

DType CoarserType(DType a, DType b) {
  const ElementType* row_a = FindElementType(a);
  const ElementType* row_b = FindElementType(b);
  if (row_a == nullptr || row_b == nullptr) return a;
  const bool floating_a = IsFloating(row_a->type);
  const bool floating_b = IsFloating(row_b->type);
  if (floating_a && floating_b) return row_b->type < row_a->type ? b : a;
  return floating_b ? b : a;
}

double DefaultSmallValue(DType type) {
  const ElementType* row = FindElementType(type);
  const bool sixteen =
      row != nullptr && (row->type == block::kFloat16 || row->type == block::kBfloat16);
  return std::ldexp(1.0, sixteen ? -10 : -20);
}

double ElementValue(DType type, const uint8_t* element) {
  const ElementType* row = FindElementType(type);
  double value = 0;
  if (row != nullptr) block::kBaselineKernels.load[row->type](element, 1, &value);
  return value;
}

std::string ElementText(DType type, const uint8_t* element) {
  const ElementType* row = FindElementType(type);
  if (row == nullptr) return std::to_string(element[0]);
  if (row->type == block::kBool) return element[0] != 0 ? "true" : "false";
  if (row->type == block::kInt64 || row->type == block::kUint64) {
    uint64_t bits;
    std::memcpy(&bits, element, sizeof bits);
    return row->type == block::kUint64 ? std::to_string(bits)
                                       : std::to_string(static_cast<int64_t>(bits));
  }
  const double value = ElementValue(type, element);
  char text[40];
  snprintf(text, sizeof text, row->type == block::kFloat64 ? "%.17g" : "%.9g", value);
  return text;
}

}  // namespace acltape::analyzer::metrics
