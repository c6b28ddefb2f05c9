#include "replayer/difference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>

namespace acltape::replayer {
namespace {

using storage::DType;

template <typename T>
T Read(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Floating bits on one ordered integer scale, on which neighbours differ by one.
template <typename Bits>
int64_t Ordered(Bits bits) {
  using Signed = std::make_signed_t<Bits>;
  const auto value = static_cast<Signed>(bits);
  const int64_t lowest = std::numeric_limits<Signed>::min();
  return value < 0 ? lowest - static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

int64_t Distance(int64_t a, int64_t b) {
  const uint64_t distance = a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
                                  : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
  return distance > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
             ? std::numeric_limits<int64_t>::max()
             : static_cast<int64_t>(distance);
}

// The value of one element as a double, and its place on the ULP scale (0 for other types).
struct Element {
  double value = 0;
  int64_t ordered = 0;
  bool floating = false;
};

Element ReadElement(DType dtype, const uint8_t* bytes) {
  Element element;
  switch (dtype) {
    case DType::kFloat16:
      element = {HalfToFloat(Read<uint16_t>(bytes)), Ordered(Read<uint16_t>(bytes)), true};
      break;
    case DType::kBfloat16:
      element = {BfloatToFloat(Read<uint16_t>(bytes)), Ordered(Read<uint16_t>(bytes)), true};
      break;
    case DType::kFloat32:
      element = {Read<float>(bytes), Ordered(Read<uint32_t>(bytes)), true};
      break;
    case DType::kFloat64:
      element = {Read<double>(bytes), Ordered(Read<uint64_t>(bytes)), true};
      break;
    case DType::kComplex64:  // the real part stands for the element
      element = {Read<float>(bytes), Ordered(Read<uint32_t>(bytes)), true};
      break;
    case DType::kComplex128:
      element = {Read<double>(bytes), Ordered(Read<uint64_t>(bytes)), true};
      break;
    case DType::kInt8:
      element.value = Read<int8_t>(bytes);
      break;
    case DType::kInt16:
      element.value = Read<int16_t>(bytes);
      break;
    case DType::kInt32:
      element.value = Read<int32_t>(bytes);
      break;
    case DType::kInt64:
      element.value = static_cast<double>(Read<int64_t>(bytes));
      break;
    default:
      element.value = bytes[0];
  }
  return element;
}

// Calls `visit(byte offset from element 0)` for each element in row-major order.
void ForEachElement(const storage::Layout& layout, const std::function<void(int64_t)>& visit) {
  const int64_t count = layout.ElementCount();
  const int64_t bytes = storage::DTypeBytes(layout.dtype);
  const size_t rank = layout.shape.size();
  std::vector<int64_t> index(rank, 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    visit(offset * bytes);
    for (size_t d = rank; d-- > 0;) {
      offset += layout.strides[d];
      if (++index[d] < layout.shape[d]) break;
      offset -= layout.strides[d] * layout.shape[d];
      index[d] = 0;
    }
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

std::string ElementText(DType dtype, const uint8_t* element) {
  if (dtype == DType::kInt64) return std::to_string(Read<int64_t>(element));
  if (dtype == DType::kBool) return element[0] != 0 ? "true" : "false";
  char text[40];
  const Element read = ReadElement(dtype, element);
  snprintf(text, sizeof text, dtype == DType::kFloat64 ? "%.17g" : "%.9g", read.value);
  return text;
}

Difference Compare(DType dtype, const uint8_t* expected, const uint8_t* actual, int64_t elements) {
  Difference difference;
  difference.elements = elements;
  const int64_t bytes = storage::DTypeBytes(dtype);
  bool nan_met_number = false;
  for (int64_t i = 0; i < elements; ++i) {
    const uint8_t* a = expected + i * bytes;
    const uint8_t* b = actual + i * bytes;
    const Element x = ReadElement(dtype, a);
    const Element y = ReadElement(dtype, b);
    difference.nan_expected += std::isnan(x.value) ? 1 : 0;
    difference.nan_actual += std::isnan(y.value) ? 1 : 0;
    if (std::memcmp(a, b, bytes) == 0) continue;
    if (difference.differing++ == 0) {
      difference.first_index = i;
      difference.expected = ElementText(dtype, a);
      difference.actual = ElementText(dtype, b);
    }
    if (std::isnan(x.value) || std::isnan(y.value)) {
      nan_met_number = nan_met_number || std::isnan(x.value) != std::isnan(y.value);
      continue;
    }
    const double distance = x.value == y.value ? 0 : std::fabs(x.value - y.value);
    difference.max_abs = std::max(difference.max_abs, distance);
    if (x.value != 0) {
      difference.max_rel = std::max(difference.max_rel, distance / std::fabs(x.value));
    } else if (distance > 0) {
      difference.max_rel = INFINITY;
    }
    if (x.floating) {
      difference.max_ulp = std::max(difference.max_ulp, Distance(x.ordered, y.ordered));
    }
  }
  if (nan_met_number) difference.max_ulp = -1;
  return difference;
}

void PackRowMajor(const storage::Layout& layout, const uint8_t* base, uint8_t* packed) {
  const int64_t bytes = storage::DTypeBytes(layout.dtype);
  ForEachElement(layout, [&](int64_t offset) {
    std::memcpy(packed, base + offset, bytes);
    packed += bytes;
  });
}

void UnpackRowMajor(const storage::Layout& layout, const uint8_t* packed, uint8_t* base) {
  const int64_t bytes = storage::DTypeBytes(layout.dtype);
  ForEachElement(layout, [&](int64_t offset) {
    std::memcpy(base + offset, packed, bytes);
    packed += bytes;
  });
}

}  // namespace acltape::replayer
