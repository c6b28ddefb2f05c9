// Shows the metrics of two tensors by example.
#include "analyzer/metrics/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "storage/error.h"
#include "tests/analyzer/plain_metrics.h"

namespace acltape::analyzer {
namespace {

using storage::DType;

metrics::TensorMetrics MeasureFloats(const std::vector<float>& a, const std::vector<float>& b) {
  return metrics::Measure(DType::kFloat32, BytesOf(a).data(), DType::kFloat32, BytesOf(b).data(),
                          static_cast<int64_t>(a.size()));
}

TEST(Metrics, ADoubleIsRoundedToAHalfOnce) {
  // Just above a tie, which a float in between would make a tie and round down to even.
  const double value = 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  const uint16_t above = 0x3c01;
  const metrics::TensorMetrics metrics =
      metrics::Measure(DType::kFloat64, reinterpret_cast<const uint8_t*>(&value), DType::kFloat16,
                       reinterpret_cast<const uint8_t*>(&above), 1);
  EXPECT_EQ(metrics.max_ulp, 0);
  EXPECT_EQ(metrics.differing, 1);
}

TEST(Metrics, EqualBitsAreEqualEvenNan) {
  const metrics::TensorMetrics metrics =
      MeasureFloats({1, NAN, -0.0f, INFINITY}, {1, NAN, -0.0f, INFINITY});
  EXPECT_TRUE(metrics.bitwise_equal());
  EXPECT_EQ(metrics.first_index, -1);
  EXPECT_EQ(metrics.comparable(), 4);
  EXPECT_EQ(metrics.a.nan_count, 1);
  EXPECT_EQ(metrics.b.inf_count, 1);
  EXPECT_EQ(metrics.within_ten_thousandth, 1);
  EXPECT_EQ(metrics.agreeing_bits, 32);
}

TEST(Metrics, ReportPlaceValuesAndDistances) {
  const metrics::TensorMetrics metrics =
      MeasureFloats({1, 2, 4}, {1, std::nextafterf(2.0f, 3.0f), 5});
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
  const metrics::TensorMetrics metrics = MeasureFloats({1, 2, NAN, INFINITY}, {NAN, 2, NAN, 3e38f});
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
  const metrics::TensorMetrics metrics = MeasureFloats(a, b);
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
    const metrics::TensorMetrics metrics =
        metrics::Measure(DType::kFloat64, BytesOf(a).data(), DType::kFloat64, BytesOf(b).data(), 2);
    EXPECT_NEAR(metrics.nmse, 8e-7, 1e-9);
    EXPECT_NEAR(metrics.cosine, 1, 1e-6);
    EXPECT_NEAR(metrics.a.norm / scale, std::sqrt(5.0), 1e-9);
    EXPECT_NEAR(metrics.rmse / scale, 0.002 / std::sqrt(2.0), 1e-9);
  }
}

TEST(Metrics, IntegersThatDoublesCannotTellApartStillDiffer) {
  const std::vector<int64_t> a{(int64_t{1} << 60) + 1};
  const std::vector<int64_t> b{int64_t{1} << 60};
  const metrics::TensorMetrics metrics =
      metrics::Measure(DType::kInt64, BytesOf(a).data(), DType::kInt64, BytesOf(b).data(), 1);
  EXPECT_EQ(metrics.differing, 1);
  EXPECT_EQ(metrics.max_abs, 1);
  EXPECT_EQ(metrics.first_a, "1152921504606846977");
  EXPECT_EQ(metrics.max_ulp, -1);
}

TEST(Metrics, ComplexNumbersAreMeasuredAsTheirParts) {
  const std::vector<float> a{1, 2, 3, 4};
  const std::vector<float> b{1, 2, 3, 5};
  const metrics::TensorMetrics metrics = metrics::Measure(DType::kComplex64, BytesOf(a).data(),
                                                          DType::kComplex64, BytesOf(b).data(), 2);
  EXPECT_EQ(metrics.elements, 4);
  EXPECT_EQ(metrics.first_index, 3);
  EXPECT_EQ(metrics.max_rel, 0.25);
}

TEST(Metrics, AComplexTensorIsNotComparedWithARealOne) {
  const std::vector<float> a{1, 2};
  EXPECT_THROW(
      metrics::Measure(DType::kComplex64, BytesOf(a).data(), DType::kFloat32, BytesOf(a).data(), 1),
      Error);
}

TEST(Metrics, JsonSaysInfinityInWords) {
  const std::vector<double> a{1e-300, 0};
  const std::vector<double> b{1e300, 1};
  const auto json = nlohmann::json::parse(metrics::MetricsJson(
      metrics::Measure(DType::kFloat64, BytesOf(a).data(), DType::kFloat64, BytesOf(b).data(), 2)));
  EXPECT_EQ(json["max_rel"], "inf");
  EXPECT_EQ(json["differing"], 2);
  EXPECT_EQ(json["reference"]["max"], 1e-300);
}

}  // namespace
}  // namespace acltape::analyzer
