// Contents of one layout in the place of another's: memory order and element types.
#include "replayer/against/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "replayer/device/scalar_value.h"

namespace acltape::replayer {
namespace {

using storage::DType;
using storage::Layout;

Layout Dense(DType dtype, std::vector<int64_t> shape) {
  Layout layout;
  layout.dtype = dtype;
  layout.strides.assign(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) layout.strides[d - 1] = layout.strides[d] * shape[d];
  layout.shape = std::move(shape);
  return layout;
}

template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
}

template <typename T>
std::vector<T> ValuesOf(const Bytes& bytes) {
  std::vector<T> values(bytes->size() / sizeof(T));
  std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

uint16_t Half(float value) {
  const Bytes half = against::Convert(Dense(DType::kFloat32, {1}), BytesOf<float>({value}),
                                      Dense(DType::kFloat16, {1}));
  return ValuesOf<uint16_t>(half)[0];
}

TEST(Convert, EveryHalfAndBfloatComesBackFromFloat) {
  for (const auto& [dtype, number] :
       {std::pair{DType::kFloat16, &HalfToFloat}, std::pair{DType::kBfloat16, &BfloatToFloat}}) {
    std::vector<uint16_t> bits;
    std::vector<float> values;
    for (int i = 0; i <= 0xffff; ++i) {
      const float value = number(static_cast<uint16_t>(i));
      if (std::isnan(value)) continue;
      bits.push_back(static_cast<uint16_t>(i));
      values.push_back(value);
    }
    const auto count = static_cast<int64_t>(bits.size());
    const Bytes back =
        against::Convert(Dense(DType::kFloat32, {count}), BytesOf(values), Dense(dtype, {count}));
    EXPECT_EQ(ValuesOf<uint16_t>(back), bits) << storage::DTypeName(dtype);
  }
}

TEST(Convert, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(Half(1 + std::ldexp(1.0f, -11)), 0x3c00);      // between 1 and the next: down to even
  EXPECT_EQ(Half(1 + 3 * std::ldexp(1.0f, -11)), 0x3c02);  // up to even
  EXPECT_EQ(Half(1 + std::ldexp(1.001f, -11)), 0x3c01);    // just above the middle
  EXPECT_EQ(Half(65519.0f), 0x7bff);                       // the largest
  EXPECT_EQ(Half(65520.0f), 0x7c00);                       // rounds up to infinity
  EXPECT_EQ(Half(-1e30f), 0xfc00);
  EXPECT_EQ(Half(std::ldexp(1.0f, -25)), 0x0000);  // half of the least, to even
  EXPECT_EQ(Half(std::ldexp(1.5f, -25)), 0x0001);
  EXPECT_EQ(Half(-0.0f), 0x8000);
  EXPECT_TRUE(std::isnan(HalfToFloat(Half(NAN))));
}

TEST(Convert, IntegersAreCutAndKeptInRange) {
  const Layout from = Dense(DType::kFloat64, {5});
  const Bytes values = BytesOf<double>({1.9, -1.9, 300, -300, NAN});
  EXPECT_EQ(ValuesOf<int8_t>(against::Convert(from, values, Dense(DType::kInt8, {5}))),
            (std::vector<int8_t>{1, -1, 127, -128, 0}));
  EXPECT_EQ(ValuesOf<uint8_t>(against::Convert(from, values, Dense(DType::kBool, {5}))),
            (std::vector<uint8_t>{1, 1, 1, 1, 1}));
}

TEST(Convert, MemoryOrderFollowsTheLayout) {
  const Layout rows = Dense(DType::kFloat32, {2, 3});
  Layout columns = rows;
  columns.strides = {1, 2};
  const Bytes content = BytesOf<float>({0, 1, 2, 3, 4, 5});
  EXPECT_EQ(ValuesOf<float>(against::Convert(rows, content, columns)),
            (std::vector<float>{0, 3, 1, 4, 2, 5}));
  // Every other column of a wider matrix: not dense, so row-major.
  Layout sparse = rows;
  sparse.strides = {6, 2};
  EXPECT_EQ(ValuesOf<float>(against::Convert(rows, content, sparse)), ValuesOf<float>(content));
  EXPECT_EQ(
      ValuesOf<float>(against::Convert(columns, against::Convert(rows, content, columns), sparse)),
      ValuesOf<float>(content));
}

TEST(Convert, SaysWhyNot) {
  EXPECT_EQ(
      against::WhyNotConvertible(Dense(DType::kFloat32, {2, 3}), Dense(DType::kFloat32, {3, 2})),
      "shapes differ: [2, 3] and [3, 2]");
  EXPECT_EQ(against::WhyNotConvertible(Dense(DType::kComplex64, {2}), Dense(DType::kFloat32, {2})),
            "elements of type complex64 have no counterpart of type float32");
  EXPECT_EQ(
      against::WhyNotConvertible(Dense(DType::kComplex64, {2}), Dense(DType::kComplex64, {2})), "");
  EXPECT_EQ(against::WhyNotConvertible(Dense(DType::kFloat32, {}), Dense(DType::kFloat16, {})), "");
}

}  // namespace
}  // namespace acltape::replayer
