#include "tests/analyzer/plain_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace acltape::analyzer {
namespace {

using storage::DType;

constexpr Format kFormats[] = {{DType::kBfloat16, 8, 7},
                               {DType::kFloat16, 5, 10},
                               {DType::kFloat32, 8, 23},
                               {DType::kFloat64, 11, 52}};

// Maps a number to a whole number, so that neighbours among the numbers of a type differ by one.
__int128 Place(const Format& format, uint64_t bits) {
  const uint64_t sign = uint64_t{1} << (format.mantissa + format.exponent);
  const auto size = static_cast<__int128>(bits & (sign - 1));
  return (bits & sign) != 0 ? -size : size;
}

void ExpectNear(double expected, double actual, const char* what) {
  if (std::isinf(expected) || std::isinf(actual)) {
    EXPECT_EQ(expected, actual) << what;
    return;
  }
  EXPECT_NEAR(expected, actual, 1e-11 * std::fabs(expected)) << what;
}

}  // namespace

const Format* FormatOf(DType type) {
  for (const Format& format : kFormats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

uint64_t BitsAt(const Bytes& bytes, DType type, size_t i) {
  const auto width = static_cast<size_t>(storage::DTypeBytes(type));
  uint64_t bits = 0;
  std::memcpy(&bits, &bytes[i * width], width);
  return bits;
}

double Decode(const Format& format, uint64_t bits) {
  const uint64_t mantissa = bits & ((uint64_t{1} << format.mantissa) - 1);
  const auto exponent =
      static_cast<int>(bits >> format.mantissa & ((uint64_t{1} << format.exponent) - 1));
  const double sign = bits >> (format.mantissa + format.exponent) != 0 ? -1 : 1;
  const int most = (1 << format.exponent) - 1;
  if (exponent == most) return mantissa != 0 ? NAN : sign * INFINITY;
  const int bias = most / 2;
  const double value =
      exponent == 0 ? std::ldexp(static_cast<double>(mantissa), 1 - bias - format.mantissa)
                    : std::ldexp(static_cast<double>(mantissa | uint64_t{1} << format.mantissa),
                                 exponent - bias - format.mantissa);
  return sign * value;
}

uint64_t Encode(const Format& format, double value) {
  const uint64_t sign = static_cast<uint64_t>(std::signbit(value))
                        << (format.mantissa + format.exponent);
  const int most = (1 << format.exponent) - 1;
  const uint64_t infinity = static_cast<uint64_t>(most) << format.mantissa;
  if (std::isnan(value)) return sign | infinity | uint64_t{1} << (format.mantissa - 1);
  const double size = std::fabs(value);
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  const int lowest = 1 - most / 2 - format.mantissa;  // exponent of the least subnormal number
  int exponent;
  std::frexp(size, &exponent);
  const int unit = std::max(exponent - 1 - format.mantissa, lowest);
  const auto units = static_cast<uint64_t>(std::nearbyint(std::ldexp(size, -unit)));
  const uint64_t bits = units + (static_cast<uint64_t>(unit - lowest) << format.mantissa);
  return sign | std::min(bits, infinity);
}

double ValueAt(const Bytes& bytes, DType type, size_t i) {
  const uint64_t bits = BitsAt(bytes, type, i);
  if (const Format* format = FormatOf(type)) return Decode(*format, bits);
  switch (type) {
    case DType::kBool:
      return bits != 0 ? 1 : 0;
    case DType::kInt8:
      return static_cast<int8_t>(bits);
    case DType::kInt16:
      return static_cast<int16_t>(bits);
    case DType::kInt32:
      return static_cast<int32_t>(bits);
    case DType::kInt64:
      return static_cast<double>(static_cast<int64_t>(bits));
    default:
      return static_cast<double>(bits);
  }
}

metrics::TensorMetrics PlainMetrics(DType a_type, const Bytes& a, DType b_type, const Bytes& b,
                                    size_t n) {
  metrics::TensorMetrics m;
  m.elements = static_cast<int64_t>(n);
  const Format* format_a = FormatOf(a_type);
  const Format* format_b = FormatOf(b_type);
  const Format* units = nullptr;
  if (format_a != nullptr && format_b != nullptr) {
    units = format_a->mantissa < format_b->mantissa ? format_a : format_b;
  }
  const DType coarser = units != nullptr ? units->type : format_b != nullptr ? b_type : a_type;
  m.small_value = metrics::DefaultSmallValue(coarser);
  m.agreeing_bits = a_type == b_type || units != nullptr ? 64 : -1;
  const int width =
      8 * static_cast<int>(std::min(storage::DTypeBytes(a_type), storage::DTypeBytes(b_type)));
  m.max_ulp = units != nullptr ? 0 : -1;
  long double sum_a = 0, sum_b = 0, square_a = 0, square_b = 0, aa = 0, bb = 0, ab = 0, dd = 0,
              abs = 0, rel = 0, ulp = 0;
  int64_t finite_a = 0, finite_b = 0, within[3] = {};
  for (size_t i = 0; i < n; ++i) {
    const double x = ValueAt(a, a_type, i);
    const double y = ValueAt(b, b_type, i);
    const uint64_t bits_x =
        units != nullptr && a_type != b_type ? Encode(*units, x) : BitsAt(a, a_type, i);
    const uint64_t bits_y =
        units != nullptr && a_type != b_type ? Encode(*units, y) : BitsAt(b, b_type, i);
    const bool differ =
        a_type == b_type ? bits_x != bits_y : !(x == y) && !(std::isnan(x) && std::isnan(y));
    if (differ && m.differing++ == 0) m.first_index = static_cast<int64_t>(i);
    if (m.agreeing_bits >= 0 && bits_x != bits_y) {
      m.agreeing_bits = std::min(m.agreeing_bits, __builtin_clzll(bits_x ^ bits_y) - (64 - width));
    }
    for (const bool first : {true, false}) {
      metrics::SideStatistics& side = first ? m.a : m.b;
      const double value = first ? x : y;
      side.nan_count += std::isnan(value);
      side.inf_count += std::isinf(value);
      if (!std::isfinite(value)) continue;
      int64_t& finite = first ? finite_a : finite_b;
      side.min = finite == 0 ? value : std::min(side.min, value);
      side.max = finite == 0 ? value : std::max(side.max, value);
      ++finite;
      (first ? sum_a : sum_b) += value;
      (first ? square_a : square_b) += static_cast<long double>(value) * value;
    }
    if (std::isnan(x) != std::isnan(y)) {
      ++m.nan_mismatches;
      continue;
    }
    if ((std::isinf(x) || std::isinf(y)) && x != y) {
      ++m.inf_mismatches;
      continue;
    }
    double error = 0;
    double relative = 0;
    if (std::isfinite(x) && std::isfinite(y)) {
      error = std::fabs(x - y);
      if (a_type == DType::kInt64 && b_type == DType::kInt64) {
        const auto distance =
            static_cast<__int128>(static_cast<int64_t>(bits_x)) - static_cast<int64_t>(bits_y);
        error = std::fabs(static_cast<double>(distance));
      }
      relative = error == 0 ? 0 : x == 0 ? 1 : error / std::fabs(x);
      aa += static_cast<long double>(x) * x;
      bb += static_cast<long double>(y) * y;
      ab += static_cast<long double>(x) * y;
      dd += static_cast<long double>(error) * error;
      abs += error;
      rel += relative;
      if (error > m.max_abs) {
        m.max_abs = error;
        m.max_abs_index = static_cast<int64_t>(i);
      }
      m.max_rel = std::max(m.max_rel, relative);
      m.max_abs_or_rel = std::max(m.max_abs_or_rel, std::min(error, relative));
      double& bound = std::fabs(x) >= m.small_value ? m.max_rel_large : m.max_abs_small;
      bound = std::max(bound, std::fabs(x) >= m.small_value ? relative : error);
    }
    within[0] += relative <= 1e-2;
    within[1] += relative <= 1e-3;
    within[2] += relative <= 1e-4;
    if (units != nullptr) {
      // Rounding may make infinities of finite numbers, which come after the last number.
      const bool numbers = std::isfinite(x) && std::isfinite(y);
      __int128 distance = numbers ? Place(*units, bits_x) - Place(*units, bits_y) : 0;
      distance = distance < 0 ? -distance : distance;
      const __int128 furthest = std::numeric_limits<int64_t>::max();
      const auto saturated = static_cast<int64_t>(std::min(distance, furthest));
      m.max_ulp = std::max(m.max_ulp, saturated);
      ulp += saturated;
      size_t bucket = 0;
      if (saturated > 0) {
        bucket = 1;
        while (bucket < 33 && (__int128{1} << (bucket - 1)) < saturated) ++bucket;
      }
      ++m.ulp_buckets[bucket];
    }
  }
  const auto pairs = static_cast<long double>(std::max<int64_t>(m.comparable(), 1));
  if (m.agreeing_bits == 64) m.agreeing_bits = width;
  m.a.mean = finite_a == 0 ? 0 : static_cast<double>(sum_a / finite_a);
  m.b.mean = finite_b == 0 ? 0 : static_cast<double>(sum_b / finite_b);
  m.a.norm = static_cast<double>(std::sqrt(square_a));
  m.b.norm = static_cast<double>(std::sqrt(square_b));
  m.mean_abs = static_cast<double>(abs / pairs);
  m.mean_rel = static_cast<double>(rel / pairs);
  m.mean_ulp = static_cast<double>(ulp / pairs);
  m.rmse = static_cast<double>(std::sqrt(dd / pairs));
  m.nmse = dd == 0 ? 0 : static_cast<double>(dd / aa);
  m.cosine = aa == 0 && bb == 0   ? 1
             : aa == 0 || bb == 0 ? 0
                                  : static_cast<double>(ab / (std::sqrt(aa) * std::sqrt(bb)));
  if (m.comparable() > 0) {
    m.within_hundredth = static_cast<double>(within[0] / pairs);
    m.within_thousandth = static_cast<double>(within[1] / pairs);
    m.within_ten_thousandth = static_cast<double>(within[2] / pairs);
  }
  return m;
}

void ExpectSame(const metrics::TensorMetrics& expected, const metrics::TensorMetrics& actual) {
  EXPECT_EQ(expected.elements, actual.elements);
  EXPECT_EQ(expected.differing, actual.differing);
  EXPECT_EQ(expected.first_index, actual.first_index);
  EXPECT_EQ(expected.agreeing_bits, actual.agreeing_bits);
  EXPECT_EQ(expected.nan_mismatches, actual.nan_mismatches);
  EXPECT_EQ(expected.inf_mismatches, actual.inf_mismatches);
  EXPECT_EQ(expected.max_abs, actual.max_abs);
  EXPECT_EQ(expected.max_abs_index, actual.max_abs_index);
  EXPECT_EQ(expected.max_rel, actual.max_rel);
  EXPECT_EQ(expected.max_abs_or_rel, actual.max_abs_or_rel);
  EXPECT_EQ(expected.max_rel_large, actual.max_rel_large);
  EXPECT_EQ(expected.max_abs_small, actual.max_abs_small);
  EXPECT_EQ(expected.max_ulp, actual.max_ulp);
  EXPECT_EQ(expected.ulp_buckets, actual.ulp_buckets);
  EXPECT_EQ(expected.within_hundredth, actual.within_hundredth);
  EXPECT_EQ(expected.within_thousandth, actual.within_thousandth);
  EXPECT_EQ(expected.within_ten_thousandth, actual.within_ten_thousandth);
  const std::pair<const metrics::SideStatistics*, const metrics::SideStatistics*> sides[] = {
      {&expected.a, &actual.a}, {&expected.b, &actual.b}};
  for (const auto& [plain, measured] : sides) {
    EXPECT_EQ(plain->nan_count, measured->nan_count);
    EXPECT_EQ(plain->inf_count, measured->inf_count);
    EXPECT_EQ(plain->min, measured->min);
    EXPECT_EQ(plain->max, measured->max);
    ExpectNear(plain->norm, measured->norm, "norm");
    const double size = std::max(std::fabs(plain->min), std::fabs(plain->max));
    EXPECT_NEAR(plain->mean, measured->mean, 1e-11 * size);
  }
  ExpectNear(expected.mean_abs, actual.mean_abs, "mean_abs");
  ExpectNear(expected.mean_rel, actual.mean_rel, "mean_rel");
  ExpectNear(expected.mean_ulp, actual.mean_ulp, "mean_ulp");
  ExpectNear(expected.rmse, actual.rmse, "rmse");
  ExpectNear(expected.nmse, actual.nmse, "nmse");
  EXPECT_NEAR(expected.cosine, actual.cosine, 1e-11);
}

Bytes RandomElements(std::mt19937_64& random, DType type, size_t n, bool special) {
  const auto width = static_cast<size_t>(storage::DTypeBytes(type));
  Bytes bytes(n * width);
  const Format* format = FormatOf(type);
  std::normal_distribution<double> normal;
  for (size_t i = 0; i < n; ++i) {
    uint64_t bits = random();
    if (type == DType::kBool) bits &= 1;
    if (format != nullptr && (!special || bits % 4 != 0)) bits = Encode(*format, normal(random));
    if (special && random() % 16 == 0)
      bits = random() % 2 == 0 ? 0 : uint64_t{1} << (8 * width - 1);
    if (special && format != nullptr && random() % 16 == 0) {
      bits = Encode(*format, random() % 2 == 0 ? INFINITY : NAN);
    }
    std::memcpy(&bytes[i * width], &bits, width);
  }
  return bytes;
}

Bytes Altered(std::mt19937_64& random, DType type, const Bytes& a, size_t n, bool special) {
  const auto width = static_cast<size_t>(storage::DTypeBytes(type));
  Bytes b = a;
  const Bytes other = RandomElements(random, type, n, special);
  for (size_t i = 0; i < n; ++i) {
    if (random() % 3 == 0) b[i * width] ^= static_cast<uint8_t>(1u << random() % 3);
    if (random() % 9 == 0) std::memcpy(&b[i * width], &other[i * width], width);
    if (type == DType::kBool) b[i] &= 1;
  }
  return b;
}

}  // namespace acltape::analyzer
