#include "replayer/device/scalar_value.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "generated/meaning/interface_numbers.h"

namespace acltape::replayer {
namespace {

using storage::DType;

struct TypeRow {
  DType dtype;
  aclDataType acl;
};
constexpr TypeRow kTypes[] = {
    {DType::kUint8, ACL_UINT8},           {DType::kInt8, ACL_INT8},
    {DType::kInt16, ACL_INT16},           {DType::kInt32, ACL_INT32},
    {DType::kInt64, ACL_INT64},           {DType::kFloat16, ACL_FLOAT16},
    {DType::kFloat32, ACL_FLOAT},         {DType::kFloat64, ACL_DOUBLE},
    {DType::kComplex32, ACL_COMPLEX32},   {DType::kComplex64, ACL_COMPLEX64},
    {DType::kComplex128, ACL_COMPLEX128}, {DType::kBool, ACL_BOOL},
    {DType::kBfloat16, ACL_BF16},         {DType::kUint16, ACL_UINT16},
    {DType::kUint32, ACL_UINT32},         {DType::kUint64, ACL_UINT64},
};

template <typename T>
ScalarValue Stored(aclDataType dtype, T value) {
  ScalarValue scalar;
  scalar.dtype = dtype;
  std::memcpy(scalar.bytes.data(), &value, sizeof value);
  return scalar;
}

// Returns the 16-bit number that is nearest to `value`. A binary search finds it, because the bits
// of such numbers are in the order of their values.
uint16_t HalfOf(double value, float (*widen)(uint16_t), uint16_t infinity) {
  if (value != value) return static_cast<uint16_t>(infinity | 0x40 | 0x200);
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  uint16_t low = 0;
  uint16_t high = infinity;
  while (low < high) {  // search the smallest number that is not below
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    if (static_cast<double>(widen(middle)) < magnitude) {
      low = static_cast<uint16_t>(middle + 1);
    } else {
      high = middle;
    }
  }
  if (low > 0 && low < infinity) {
    const double above = static_cast<double>(widen(low)) - magnitude;
    const double below = magnitude - static_cast<double>(widen(static_cast<uint16_t>(low - 1)));
    if (below < above || (below == above && (low & 1) != 0)) --low;
  }
  return static_cast<uint16_t>(sign | low);
}

ScalarValue RealScalar(aclDataType dtype, double value) {
  switch (dtype) {
    case ACL_FLOAT16:
      return Stored(dtype, HalfOf(value, HalfToFloat, 0x7c00));
    case ACL_BF16:
      return Stored(dtype, HalfOf(value, BfloatToFloat, 0x7f80));
    case ACL_FLOAT:
      return Stored(dtype, static_cast<float>(value));
    default:
      return Stored(dtype, value);
  }
}

}  // namespace

float HalfToFloat(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 0x1f) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa | 0x400), exponent - 25);
}

float BfloatToFloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

aclDataType AclType(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row.acl;
  }
  return ACL_DT_UNDEFINED;
}

aclFormat AclFormat(const std::string& name) {
  if (name.empty()) return ACL_FORMAT_ND;
  for (const meaning::NamedNumber& known : meaning::kAclFormats) {
    if (known.name == name) return static_cast<aclFormat>(known.number);
  }
  return ACL_FORMAT_UNDEFINED;
}

ScalarValue ScalarOf(int64_t value) { return Stored(ACL_INT64, value); }
ScalarValue ScalarOf(double value) { return Stored(ACL_DOUBLE, value); }
ScalarValue ScalarOf(bool value) { return Stored(ACL_BOOL, value); }

ScalarValue RecordedScalar(DType dtype, int64_t integer, const std::vector<double>& reals) {
  const aclDataType type = AclType(dtype);
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return RealScalar(type, std::bit_cast<double>(integer));
    case DType::kComplex64: {
      std::array<float, 2> parts{};
      for (size_t i = 0; i < 2 && i < reals.size(); ++i) parts[i] = static_cast<float>(reals[i]);
      return Stored(type, parts);
    }
    case DType::kComplex128: {
      std::array<double, 2> parts{};
      for (size_t i = 0; i < 2 && i < reals.size(); ++i) parts[i] = reals[i];
      return Stored(type, parts);
    }
    case DType::kComplex32:
      return Stored(ACL_DT_UNDEFINED, 0);
    case DType::kBool:
      return Stored(type, integer != 0);
    default:
      return Stored(type, integer);  // little endian: the low bytes are the value
  }
}

}  // namespace acltape::replayer
