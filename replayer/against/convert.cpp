#include "replayer/against/convert.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "analyzer/metrics/metrics.h"
#include "storage/packing.h"

namespace acltape::replayer::against {
namespace {

using storage::DType;
using storage::Layout;

// Rounds to an IEEE binary format of 16 bits with `mantissa` bits of mantissa. `least_exponent` is
// its smallest exponent.
uint16_t Rounded(double value, int mantissa, int least_exponent) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const auto infinity = static_cast<uint16_t>(0x7fff >> mantissa << mantissa);
  if (std::isnan(value)) return static_cast<uint16_t>(infinity | 1 << (mantissa - 1));
  const double size = std::fabs(value);
  if (std::isinf(size)) return sign | infinity;
  if (size == 0) return sign;
  const int exponent = std::max(std::ilogb(size), least_exponent);
  const double units = std::nearbyint(std::ldexp(size, mantissa - exponent));
  const int64_t bits = (static_cast<int64_t>(exponent - least_exponent) << mantissa) +
                       static_cast<int64_t>(std::min(units, 65536.0));
  return static_cast<uint16_t>(sign | std::min<int64_t>(bits, infinity));
}

template <typename T>
void Store(T value, uint8_t* to) {
  std::memcpy(to, &value, sizeof value);
}

template <typename T>
void StoreInteger(double value, uint8_t* to) {
  const double low = static_cast<double>(std::numeric_limits<T>::min());
  const double high = static_cast<double>(std::numeric_limits<T>::max());
  if (!(value > low)) return Store(std::isnan(value) ? T{0} : std::numeric_limits<T>::min(), to);
  Store(value >= high ? std::numeric_limits<T>::max() : static_cast<T>(value), to);
}

using StoreNumber = void (*)(double, uint8_t*);
struct TypeRow {
  DType dtype;
  StoreNumber store;
};
constexpr TypeRow kTypes[] = {
    {DType::kFloat32, [](double v, uint8_t* to) { Store(static_cast<float>(v), to); }},
    {DType::kFloat64, [](double v, uint8_t* to) { Store(v, to); }},
    {DType::kFloat16, [](double v, uint8_t* to) { Store(Rounded(v, 10, -14), to); }},
    {DType::kBfloat16, [](double v, uint8_t* to) { Store(Rounded(v, 7, -126), to); }},
    {DType::kBool, [](double v, uint8_t* to) { *to = v != 0 ? 1 : 0; }},
    {DType::kInt8, StoreInteger<int8_t>},
    {DType::kUint8, StoreInteger<uint8_t>},
    {DType::kInt16, StoreInteger<int16_t>},
    {DType::kInt32, StoreInteger<int32_t>},
    {DType::kInt64, StoreInteger<int64_t>},
};

StoreNumber StoreOf(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return row.store;
  }
  return nullptr;
}

}  // namespace

std::string WhyNotConvertible(const Layout& from, const Layout& to) {
  const auto shape = [](const Layout& layout) {
    std::string text = "[";
    for (const int64_t size : layout.shape) {
      text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    }
    return text + "]";
  };
  if (from.shape != to.shape) return "shapes differ: " + shape(from) + " and " + shape(to);
  if (from.dtype == to.dtype) return "";
  if (StoreOf(from.dtype) != nullptr && StoreOf(to.dtype) != nullptr) return "";
  return "elements of type " + std::string(storage::DTypeName(from.dtype)) +
         " have no counterpart of type " + std::string(storage::DTypeName(to.dtype));
}

std::vector<uint8_t> RowMajorOf(const Layout& layout, const std::vector<uint8_t>& content) {
  if (!layout.IsDense()) return content;
  std::vector<uint8_t> packed(layout.ElementCount() * storage::DTypeBytes(layout.dtype));
  const int64_t before_base = layout.byte_offset - layout.FirstByte();
  PackRowMajor(layout, content.data() + before_base, packed.data());
  return packed;
}

Bytes Convert(const Layout& from, const Bytes& content, const Layout& to) {
  if (from.dtype == to.dtype && from.strides == to.strides && from.shape == to.shape) {
    return content;
  }
  std::vector<uint8_t> packed = RowMajorOf(from, *content);
  if (from.dtype != to.dtype) {
    const int64_t elements = from.ElementCount();
    const int64_t from_bytes = storage::DTypeBytes(from.dtype);
    const int64_t to_bytes = storage::DTypeBytes(to.dtype);
    std::vector<uint8_t> converted(elements * to_bytes);
    const StoreNumber store = StoreOf(to.dtype);
    for (int64_t i = 0; i < elements; ++i) {
      store(analyzer::metrics::ElementValue(from.dtype, packed.data() + i * from_bytes),
            converted.data() + i * to_bytes);
    }
    packed = std::move(converted);
  }
  if (to.IsDense()) {
    std::vector<uint8_t> ordered(packed.size());
    UnpackRowMajor(to, packed.data(), ordered.data() + (to.byte_offset - to.FirstByte()));
    packed = std::move(ordered);
  }
  return std::make_shared<const std::vector<uint8_t>>(std::move(packed));
}

}  // namespace acltape::replayer::against
