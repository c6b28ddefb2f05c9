// Measure against a plain implementation of each metric, element by element.
#include "analyzer/metrics/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "analyzer/metrics/measure_with.h"
#include "storage/error.h"

namespace acltape::analyzer {
namespace {

using storage::DType;
using Bytes = std::vector<uint8_t>;

template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TensorMetrics MeasureFloats(const std::vector<float>& a, const std::vector<float>& b) {
  return Measure(DType::kFloat32, BytesOf(a).data(), DType::kFloat32, BytesOf(b).data(),
                 static_cast<int64_t>(a.size()));
}

// The plain implementation. A floating type by the bits of its exponent and mantissa; the values of
// all finite numbers follow from them.
struct Format {
  DType type;
  int exponent;
  int mantissa;
};
constexpr Format kFormats[] = {{DType::kBfloat16, 8, 7},
                               {DType::kFloat16, 5, 10},
                               {DType::kFloat32, 8, 23},
                               {DType::kFloat64, 11, 52}};

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

// To the nearest number of a format, ties to even.
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

// As a whole number on which neighbours differ by one.
__int128 Place(const Format& format, uint64_t bits) {
  const uint64_t sign = uint64_t{1} << (format.mantissa + format.exponent);
  const auto size = static_cast<__int128>(bits & (sign - 1));
  return (bits & sign) != 0 ? -size : size;
}

TensorMetrics Plain(DType a_type, const Bytes& a, DType b_type, const Bytes& b, size_t n) {
  TensorMetrics m;
  m.elements = static_cast<int64_t>(n);
  const Format* format_a = FormatOf(a_type);
  const Format* format_b = FormatOf(b_type);
  const Format* units = nullptr;
  if (format_a != nullptr && format_b != nullptr) {
    units = format_a->mantissa < format_b->mantissa ? format_a : format_b;
  }
  const DType coarser = units != nullptr ? units->type : format_b != nullptr ? b_type : a_type;
  m.small_value = DefaultSmallValue(coarser);
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
      SideStatistics& side = first ? m.a : m.b;
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
      // Rounding may make infinities of finite numbers, which lie behind the last number.
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

// Sums may be rounded otherwise.
void ExpectNear(double expected, double actual, const char* what) {
  if (std::isinf(expected) || std::isinf(actual)) {
    EXPECT_EQ(expected, actual) << what;
    return;
  }
  EXPECT_NEAR(expected, actual, 1e-11 * std::fabs(expected)) << what;
}

void ExpectSame(const TensorMetrics& expected, const TensorMetrics& actual) {
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
  const std::pair<const SideStatistics*, const SideStatistics*> sides[] = {
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

// Random elements of every kind: ordinary numbers, any bits at all (NaN, infinities, subnormal
// numbers), zeros of both signs.
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

// b is a with some bits changed, or other numbers altogether.
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

constexpr size_t kSizes[] = {0, 1, 2, 7, 8, 9, 511, 512, 513, 1000, 1024, 4099};
constexpr DType kAllTypes[] = {DType::kBool,    DType::kUint8,    DType::kInt8,    DType::kUint16,
                               DType::kInt16,   DType::kUint32,   DType::kInt32,   DType::kInt64,
                               DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64};

TEST(Metrics, AgreeWithAPlainImplementationForEveryTypeOnEveryInstructionSet) {
  std::mt19937_64 random(1);
  for (const DType type : kAllTypes) {
    for (const size_t n : kSizes) {
      for (const bool special : {false, true}) {
        const Bytes a = RandomElements(random, type, n, special);
        const Bytes b = Altered(random, type, a, n, special);
        for (const block::Kernels* kernels : UsableKernels()) {
          SCOPED_TRACE(std::string(storage::DTypeName(type)) + ", " + std::to_string(n) +
                       " elements, " + kernels->instruction_set);
          ExpectSame(Plain(type, a, type, b, n), MeasureWith(*kernels, type, a.data(), type,
                                                             b.data(), static_cast<int64_t>(n)));
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(Metrics, AgreeWithAPlainImplementationForMixedTypes) {
  std::mt19937_64 random(2);
  for (const DType a_type : kAllTypes) {
    for (const DType b_type : kAllTypes) {
      if (a_type == b_type) continue;
      const size_t n = 1500;
      const Bytes a = RandomElements(random, a_type, n, true);
      Bytes b = RandomElements(random, b_type, n, true);
      // Half of them the same number in the other type.
      const Format* to = FormatOf(b_type);
      const auto width = static_cast<size_t>(storage::DTypeBytes(b_type));
      for (size_t i = 0; to != nullptr && i < n; i += 2) {
        const uint64_t bits = Encode(*to, ValueAt(a, a_type, i));
        std::memcpy(&b[i * width], &bits, width);
      }
      for (const block::Kernels* kernels : UsableKernels()) {
        SCOPED_TRACE(std::string(storage::DTypeName(a_type)) + ", " +
                     std::string(storage::DTypeName(b_type)) + ", " + kernels->instruction_set);
        ExpectSame(Plain(a_type, a, b_type, b, n), MeasureWith(*kernels, a_type, a.data(), b_type,
                                                               b.data(), static_cast<int64_t>(n)));
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Metrics, DoNotDependOnTheNumberOfThreadsNorOnTheInstructionSet) {
  std::mt19937_64 random(3);
  const size_t n = 700001;
  const Bytes a = RandomElements(random, DType::kFloat32, n, true);
  const Bytes b = Altered(random, DType::kFloat32, a, n, true);
  const auto json = [&](const block::Kernels* kernels, int threads) {
    return MetricsJson(MeasureWith(*kernels, DType::kFloat32, a.data(), DType::kFloat32, b.data(),
                                   static_cast<int64_t>(n), {.threads = threads}));
  };
  const std::string one = json(UsableKernels().front(), 1);
  for (const block::Kernels* kernels : UsableKernels()) {
    for (const int threads : {0, 1, 2, 5, 64}) {
      EXPECT_EQ(json(kernels, threads), one) << kernels->instruction_set << ", " << threads;
    }
  }
  ExpectSame(
      Plain(DType::kFloat32, a, DType::kFloat32, b, n),
      Measure(DType::kFloat32, a.data(), DType::kFloat32, b.data(), static_cast<int64_t>(n)));
}

TEST(Metrics, EveryHalfAndBfloatIsReadExactly) {
  for (const DType type : {DType::kFloat16, DType::kBfloat16}) {
    std::vector<uint16_t> bits(1 << 16);
    std::vector<double> values(1 << 16);
    for (size_t i = 0; i < bits.size(); ++i) {
      bits[i] = static_cast<uint16_t>(i);
      values[i] = Decode(*FormatOf(type), i);
    }
    const TensorMetrics metrics =
        Measure(type, BytesOf(bits).data(), DType::kFloat64, BytesOf(values).data(), 1 << 16);
    EXPECT_EQ(metrics.differing, 0);
    EXPECT_EQ(metrics.max_ulp, 0);
    EXPECT_EQ(metrics.nan_mismatches, 0);
    EXPECT_EQ(metrics.cosine, 1);
  }
}

TEST(Metrics, ADoubleIsRoundedToAHalfOnce) {
  // Just above a tie, which a float in between would make a tie and round down to even.
  const double value = 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  const uint16_t above = 0x3c01;
  const TensorMetrics metrics =
      Measure(DType::kFloat64, reinterpret_cast<const uint8_t*>(&value), DType::kFloat16,
              reinterpret_cast<const uint8_t*>(&above), 1);
  EXPECT_EQ(metrics.max_ulp, 0);
  EXPECT_EQ(metrics.differing, 1);
}

TEST(Metrics, EqualBitsAreEqualEvenNan) {
  const TensorMetrics metrics = MeasureFloats({1, NAN, -0.0f, INFINITY}, {1, NAN, -0.0f, INFINITY});
  EXPECT_TRUE(metrics.bitwise_equal());
  EXPECT_EQ(metrics.first_index, -1);
  EXPECT_EQ(metrics.comparable(), 4);
  EXPECT_EQ(metrics.a.nan_count, 1);
  EXPECT_EQ(metrics.b.inf_count, 1);
  EXPECT_EQ(metrics.within_ten_thousandth, 1);
  EXPECT_EQ(metrics.agreeing_bits, 32);
}

TEST(Metrics, ReportPlaceValuesAndDistances) {
  const TensorMetrics metrics = MeasureFloats({1, 2, 4}, {1, std::nextafterf(2.0f, 3.0f), 5});
  EXPECT_EQ(metrics.elements, 3);
  EXPECT_EQ(metrics.differing, 2);
  EXPECT_EQ(metrics.first_index, 1);
  EXPECT_EQ(metrics.first_a, "2");
  EXPECT_EQ(metrics.first_b, "2.00000024");
  EXPECT_EQ(metrics.max_abs, 1);
  EXPECT_EQ(metrics.max_abs_index, 2);
  EXPECT_EQ(metrics.max_rel, 0.25);
  EXPECT_EQ(metrics.max_ulp, 1 << 21);  // 4 to 5 are a quarter of the 2^23 steps to 8
}

TEST(Metrics, UlpDistanceCrossesZero) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(MeasureFloats({-tiny}, {tiny}).max_ulp, 2);
  EXPECT_EQ(MeasureFloats({-0.0f}, {0.0f}).differing, 1);  // other bits, no distance
  EXPECT_EQ(MeasureFloats({-0.0f}, {0.0f}).max_ulp, 0);
  EXPECT_EQ(MeasureFloats({-0.0f}, {0.0f}).max_abs, 0);
}

TEST(Metrics, ANanAgainstANumberIsClassedAndEntersNoError) {
  const TensorMetrics metrics = MeasureFloats({1, 2, NAN, INFINITY}, {NAN, 2, NAN, 3e38f});
  EXPECT_EQ(metrics.nan_mismatches, 1);
  EXPECT_EQ(metrics.inf_mismatches, 1);
  EXPECT_EQ(metrics.comparable(), 2);
  EXPECT_EQ(metrics.max_abs, 0);
  EXPECT_EQ(metrics.max_ulp, 0);
  EXPECT_EQ(metrics.ulp_buckets[0], 2);
}

TEST(Metrics, SharesAboveADistanceAreExactAtPowersOfTwo) {
  std::vector<float> a(8, 1);
  std::vector<float> b;
  for (const uint32_t ulp : {0, 1, 2, 3, 32, 33, 64, 65}) {
    const uint32_t bits = 0x3f800000 + ulp;
    float value;
    std::memcpy(&value, &bits, 4);
    b.push_back(value);
  }
  const TensorMetrics metrics = MeasureFloats(a, b);
  EXPECT_EQ(metrics.ShareAboveUlp(0), 7.0 / 8);
  EXPECT_EQ(metrics.ShareAboveUlp(1), 6.0 / 8);
  EXPECT_EQ(metrics.ShareAboveUlp(2), 5.0 / 8);
  EXPECT_EQ(metrics.ShareAboveUlp(32), 3.0 / 8);
  EXPECT_EQ(metrics.ShareAboveUlp(64), 1.0 / 8);
  EXPECT_EQ(metrics.ShareAboveUlp(std::numeric_limits<int64_t>::max()), 0);
}

TEST(Metrics, SquaresOfExtremeDoublesAreNotLost) {
  for (const double scale : {1e-300, 1e300}) {
    const std::vector<double> a{scale, 2 * scale};
    const std::vector<double> b{scale, 2.002 * scale};
    const TensorMetrics metrics =
        Measure(DType::kFloat64, BytesOf(a).data(), DType::kFloat64, BytesOf(b).data(), 2);
    EXPECT_NEAR(metrics.nmse, 8e-7, 1e-9);
    EXPECT_NEAR(metrics.cosine, 1, 1e-6);
    EXPECT_NEAR(metrics.a.norm / scale, std::sqrt(5.0), 1e-9);
    EXPECT_NEAR(metrics.rmse / scale, 0.002 / std::sqrt(2.0), 1e-9);
  }
}

TEST(Metrics, IntegersThatDoublesCannotTellApartStillDiffer) {
  const std::vector<int64_t> a{(int64_t{1} << 60) + 1};
  const std::vector<int64_t> b{int64_t{1} << 60};
  const TensorMetrics metrics =
      Measure(DType::kInt64, BytesOf(a).data(), DType::kInt64, BytesOf(b).data(), 1);
  EXPECT_EQ(metrics.differing, 1);
  EXPECT_EQ(metrics.max_abs, 1);
  EXPECT_EQ(metrics.first_a, "1152921504606846977");
  EXPECT_EQ(metrics.max_ulp, -1);
}

TEST(Metrics, ComplexNumbersAreMeasuredAsTheirParts) {
  const std::vector<float> a{1, 2, 3, 4};
  const std::vector<float> b{1, 2, 3, 5};
  const TensorMetrics metrics =
      Measure(DType::kComplex64, BytesOf(a).data(), DType::kComplex64, BytesOf(b).data(), 2);
  EXPECT_EQ(metrics.elements, 4);
  EXPECT_EQ(metrics.first_index, 3);
  EXPECT_EQ(metrics.max_rel, 0.25);
}

TEST(Metrics, AComplexTensorIsNotComparedWithARealOne) {
  const std::vector<float> a{1, 2};
  EXPECT_THROW(Measure(DType::kComplex64, BytesOf(a).data(), DType::kFloat32, BytesOf(a).data(), 1),
               Error);
}

TEST(Metrics, JsonSaysInfinityInWords) {
  const std::vector<double> a{1e-300, 0};
  const std::vector<double> b{1e300, 1};
  const auto json = nlohmann::json::parse(MetricsJson(
      Measure(DType::kFloat64, BytesOf(a).data(), DType::kFloat64, BytesOf(b).data(), 2)));
  EXPECT_EQ(json["max_rel"], "inf");
  EXPECT_EQ(json["differing"], 2);
  EXPECT_EQ(json["reference"]["max"], 1e-300);
}

}  // namespace
}  // namespace acltape::analyzer
