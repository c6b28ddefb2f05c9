#include "replayer/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace acltape::replayer {
namespace {

using storage::DType;

Difference CompareFloats(const std::vector<float>& expected, const std::vector<float>& actual) {
  return Compare(DType::kFloat32, reinterpret_cast<const uint8_t*>(expected.data()),
                 reinterpret_cast<const uint8_t*>(actual.data()),
                 static_cast<int64_t>(expected.size()));
}

TEST(Difference, EqualBitsDoNotDifferNotEvenNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Difference difference = CompareFloats({1, nan, -0.0f}, {1, nan, -0.0f});
  EXPECT_EQ(difference.differing, 0);
  EXPECT_EQ(difference.nan_expected, 1);
  EXPECT_EQ(difference.nan_actual, 1);
}

TEST(Difference, ReportsPlaceValuesAndDistances) {
  const Difference difference = CompareFloats({1, 2, 4}, {1, std::nextafterf(2.0f, 3.0f), 5});
  EXPECT_EQ(difference.elements, 3);
  EXPECT_EQ(difference.differing, 2);
  EXPECT_EQ(difference.first_index, 1);
  EXPECT_EQ(difference.expected, "2");
  EXPECT_EQ(difference.max_abs, 1);
  EXPECT_EQ(difference.max_rel, 0.25);
  EXPECT_EQ(difference.max_ulp, 1 << 21);  // 4 to 5 are a quarter of the 2^23 steps to 8
}

TEST(Difference, UlpDistanceCrossesZero) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(CompareFloats({-tiny}, {tiny}).max_ulp, 2);
  EXPECT_EQ(CompareFloats({-0.0f}, {0.0f}).differing, 1);  // other bits, no distance
  EXPECT_EQ(CompareFloats({-0.0f}, {0.0f}).max_abs, 0);
}

TEST(Difference, ANanAgainstANumberHasNoUlpDistance) {
  const Difference difference = CompareFloats({1}, {NAN});
  EXPECT_EQ(difference.max_ulp, -1);
  EXPECT_EQ(difference.nan_actual, 1);
}

TEST(Difference, HalvesAreComparedOnTheirOwnScale) {
  const uint16_t one = 0x3c00;
  const uint16_t next = 0x3c01;
  const Difference difference = Compare(DType::kFloat16, reinterpret_cast<const uint8_t*>(&one),
                                        reinterpret_cast<const uint8_t*>(&next), 1);
  EXPECT_EQ(difference.max_ulp, 1);
  EXPECT_FLOAT_EQ(static_cast<float>(difference.max_abs), 1.0f / 1024);
}

TEST(Difference, HalfAndBfloatConvertExactly) {
  EXPECT_EQ(HalfToFloat(0x3555), 0.333251953125f);
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(HalfToFloat(0xfc00), -INFINITY);
  EXPECT_EQ(BfloatToFloat(0xc049), -3.140625f);
}

TEST(Difference, StridedElementsPackInRowMajorOrderAndBack) {
  storage::Layout layout;  // the transpose of the first two columns of a 2 x 3 matrix
  layout.dtype = DType::kFloat32;
  layout.shape = {2, 2};
  layout.strides = {1, 3};
  const float matrix[] = {0, 1, 2, 3, 4, 5};
  float packed[4];
  PackRowMajor(layout, reinterpret_cast<const uint8_t*>(matrix),
               reinterpret_cast<uint8_t*>(packed));
  EXPECT_EQ(std::vector<float>(packed, packed + 4), (std::vector<float>{0, 3, 1, 4}));
  float back[6] = {9, 9, 9, 9, 9, 9};
  UnpackRowMajor(layout, reinterpret_cast<const uint8_t*>(packed),
                 reinterpret_cast<uint8_t*>(back));
  EXPECT_EQ(std::vector<float>(back, back + 6), (std::vector<float>{0, 1, 9, 3, 4, 9}));
}

}  // namespace
}  // namespace acltape::replayer
