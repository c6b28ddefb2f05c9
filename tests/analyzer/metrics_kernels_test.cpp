// The kernels of every instruction set against each other and against a plain implementation.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "analyzer/metrics/measure_with.h"
#include "analyzer/metrics/metrics.h"
#include "tests/analyzer/plain_metrics.h"

namespace acltape::analyzer {
namespace {

using storage::DType;

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
        for (const metrics::block::Kernels* kernels : metrics::UsableKernels()) {
          SCOPED_TRACE(std::string(storage::DTypeName(type)) + ", " + std::to_string(n) +
                       " elements, " + kernels->instruction_set);
          ExpectSame(PlainMetrics(type, a, type, b, n),
                     metrics::MeasureWith(*kernels, type, a.data(), type, b.data(),
                                          static_cast<int64_t>(n)));
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
      for (const metrics::block::Kernels* kernels : metrics::UsableKernels()) {
        SCOPED_TRACE(std::string(storage::DTypeName(a_type)) + ", " +
                     std::string(storage::DTypeName(b_type)) + ", " + kernels->instruction_set);
        ExpectSame(PlainMetrics(a_type, a, b_type, b, n),
                   metrics::MeasureWith(*kernels, a_type, a.data(), b_type, b.data(),
                                        static_cast<int64_t>(n)));
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
  const auto json = [&](const metrics::block::Kernels* kernels, int threads) {
    return metrics::MetricsJson(
        metrics::MeasureWith(*kernels, DType::kFloat32, a.data(), DType::kFloat32, b.data(),
                             static_cast<int64_t>(n), {.threads = threads}));
  };
  const std::string one = json(metrics::UsableKernels().front(), 1);
  for (const metrics::block::Kernels* kernels : metrics::UsableKernels()) {
    for (const int threads : {0, 1, 2, 5, 64}) {
      EXPECT_EQ(json(kernels, threads), one) << kernels->instruction_set << ", " << threads;
    }
  }
  ExpectSame(PlainMetrics(DType::kFloat32, a, DType::kFloat32, b, n),
             metrics::Measure(DType::kFloat32, a.data(), DType::kFloat32, b.data(),
                              static_cast<int64_t>(n)));
}

TEST(Metrics, EveryHalfAndBfloatIsReadExactly) {
  for (const DType type : {DType::kFloat16, DType::kBfloat16}) {
    std::vector<uint16_t> bits(1 << 16);
    std::vector<double> values(1 << 16);
    for (size_t i = 0; i < bits.size(); ++i) {
      bits[i] = static_cast<uint16_t>(i);
      values[i] = Decode(*FormatOf(type), i);
    }
    const metrics::TensorMetrics metrics = metrics::Measure(
        type, BytesOf(bits).data(), DType::kFloat64, BytesOf(values).data(), 1 << 16);
    EXPECT_EQ(metrics.differing, 0);
    EXPECT_EQ(metrics.max_ulp, 0);
    EXPECT_EQ(metrics.nan_mismatches, 0);
    EXPECT_EQ(metrics.cosine, 1);
  }
}

// Bits of what is no number, and of the greatest and least numbers beside it.
std::vector<uint64_t> Special(const Format& format) {
  const uint64_t sign = uint64_t{1} << (format.mantissa + format.exponent);
  const uint64_t infinity = Encode(format, INFINITY);
  const uint64_t quiet = uint64_t{1} << (format.mantissa - 1);
  return {infinity,
          infinity | sign,
          infinity | quiet,
          infinity | quiet | sign,
          infinity | 1,
          (infinity - 1) | sign,
          sign,
          1};
}

void Set(Bytes& bytes, DType type, size_t i, uint64_t bits) {
  const auto width = static_cast<size_t>(storage::DTypeBytes(type));
  std::memcpy(&bytes[i * width], &bits, width);
}

// Every instruction set gives the plain result, and all give the same bits.
void ExpectSameOnAll(DType a_type, const Bytes& a, DType b_type, const Bytes& b, size_t n) {
  const metrics::TensorMetrics plain = PlainMetrics(a_type, a, b_type, b, n);
  std::string first;
  for (const metrics::block::Kernels* kernels : metrics::UsableKernels()) {
    SCOPED_TRACE(kernels->instruction_set);
    const metrics::TensorMetrics metrics =
        metrics::MeasureWith(*kernels, a_type, a.data(), b_type, b.data(), static_cast<int64_t>(n));
    ExpectSame(plain, metrics);
    const std::string json = metrics::MetricsJson(metrics);
    if (first.empty()) first = json;
    EXPECT_EQ(json, first);
  }
}

constexpr DType kFloatingTypes[] = {DType::kFloat16, DType::kBfloat16, DType::kFloat32,
                                    DType::kFloat64};

TEST(MetricsKernels, NanAndInfinitiesAreTheSameInEveryLaneAndOnEitherSide) {
  std::mt19937_64 random(4);
  for (const DType type : kFloatingTypes) {
    for (const size_t n : {1, 7, 17, 512, 531}) {
      const Bytes a = RandomElements(random, type, n, false);
      const Bytes b = Altered(random, type, a, n, false);
      // The first and the last of every lane that a register may have.
      for (size_t i = 0; i < n; i = i == 33 && n > 500 ? 495 : i + 1) {
        for (const uint64_t bits : Special(*FormatOf(type))) {
          for (int sides = 1; sides <= 3; ++sides) {
            SCOPED_TRACE(std::string(storage::DTypeName(type)) + ", element " + std::to_string(i) +
                         " of " + std::to_string(n) + " is " + std::to_string(bits) + ", sides " +
                         std::to_string(sides));
            Bytes special_a = a;
            Bytes special_b = b;
            if ((sides & 1) != 0) Set(special_a, type, i, bits);
            if ((sides & 2) != 0) Set(special_b, type, i, bits);
            ExpectSameOnAll(type, special_a, type, special_b, n);
            if (testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST(MetricsKernels, NanAndInfinitiesOfTwoTypesAreTheSameInEveryLane) {
  std::mt19937_64 random(5);
  for (const DType a_type : kFloatingTypes) {
    for (const DType b_type : kFloatingTypes) {
      if (a_type == b_type) continue;
      const size_t n = 521;
      const Bytes a = RandomElements(random, a_type, n, false);
      const Bytes b = RandomElements(random, b_type, n, false);
      for (size_t i = 0; i < n; i = i == 17 ? 503 : i + 1) {
        Bytes special_a = a;
        Bytes special_b = b;
        const auto specials_a = Special(*FormatOf(a_type));
        const auto specials_b = Special(*FormatOf(b_type));
        if (random() % 3 != 0) Set(special_a, a_type, i, specials_a[random() % specials_a.size()]);
        if (random() % 3 != 0) Set(special_b, b_type, i, specials_b[random() % specials_b.size()]);
        SCOPED_TRACE(std::string(storage::DTypeName(a_type)) + ", " +
                     std::string(storage::DTypeName(b_type)) + ", element " + std::to_string(i));
        ExpectSameOnAll(a_type, special_a, b_type, special_b, n);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(MetricsKernels, BlocksOfEqualBitsAreMeasuredAsAllOthers) {
  std::mt19937_64 random(6);
  for (const DType type : kAllTypes) {
    for (const size_t n : {1, 511, 512, 1537}) {
      for (const bool special : {false, true}) {
        SCOPED_TRACE(std::string(storage::DTypeName(type)) + ", " + std::to_string(n));
        const Bytes a = RandomElements(random, type, n, special);
        Bytes b = a;
        ExpectSameOnAll(type, a, type, b, n);
        // One element of the last block differs, which takes the other way.
        b[(n - 1) * static_cast<size_t>(storage::DTypeBytes(type))] ^= 1;
        ExpectSameOnAll(type, a, type, b, n);
      }
    }
  }
}

TEST(MetricsKernels, NothingButNanIsMeasured) {
  for (const DType type : kFloatingTypes) {
    for (const size_t n : {1, 8, 512, 700}) {
      Bytes a(n * static_cast<size_t>(storage::DTypeBytes(type)));
      Bytes b = a;
      for (size_t i = 0; i < n; ++i) {
        Set(a, type, i, Encode(*FormatOf(type), NAN));
        Set(b, type, i, Encode(*FormatOf(type), i % 2 == 0 ? NAN : INFINITY));
      }
      SCOPED_TRACE(std::string(storage::DTypeName(type)) + ", " + std::to_string(n));
      ExpectSameOnAll(type, a, type, a, n);
      ExpectSameOnAll(type, a, type, b, n);
    }
  }
}

}  // namespace
}  // namespace acltape::analyzer
