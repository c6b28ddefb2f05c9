// The plain values: element types, layouts, JSON arrays.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "storage/json_text.h"
#include "storage/trace.h"

namespace acltape::storage {
namespace {

TEST(ElementTypes, NamesAndCodesGoBothWays) {
  for (int code = 0; code <= 15; ++code) {
    const auto dtype = static_cast<DType>(code);
    EXPECT_EQ(DTypeFromName(DTypeName(dtype)), dtype) << "code " << code;
    EXPECT_GT(DTypeBytes(dtype), 0) << "code " << code;
  }
  EXPECT_EQ(DTypeName(DType::kBfloat16), "bfloat16");
  EXPECT_EQ(DTypeFromName("float99"), DType::kUndefined);
  EXPECT_EQ(DTypeBytes(DType::kUndefined), 0);
}

TEST(Layouts, DenseInAnyOrderOfDimensions) {
  const auto dense = [](std::vector<int64_t> shape, std::vector<int64_t> strides) {
    return Layout{0, DType::kFloat32, 0, std::move(shape), std::move(strides), 0}.IsDense();
  };
  EXPECT_TRUE(dense({2, 3}, {3, 1}));
  EXPECT_TRUE(dense({2, 3}, {1, 2}));         // transposed
  EXPECT_TRUE(dense({2, 1, 3}, {3, 99, 1}));  // the stride of a size 1 does not matter
  EXPECT_TRUE(dense({}, {}));
  EXPECT_TRUE(dense({0, 3}, {3, 1}));
  EXPECT_FALSE(dense({2, 3}, {6, 1}));  // gaps
  EXPECT_FALSE(dense({2, 3}, {0, 1}));  // overlaps
  EXPECT_FALSE(dense({4}, {2}));
}

TEST(Layouts, BytesThatAViewTouches) {
  const Layout view{0, DType::kInt64, 16, {2, 3}, {10, 2}, 0};
  EXPECT_EQ(view.FirstByte(), 16);
  EXPECT_EQ(view.EndByte(), 16 + (10 + 4 + 1) * 8);
  EXPECT_EQ((Layout{0, DType::kInt64, 16, {2, 0}, {10, 2}, 0}.EndByte()), 16);
  EXPECT_EQ((Layout{0, DType::kFloat16, 4, {}, {}, 0}.EndByte()), 6);
}

TEST(JsonText, IntegersComeBack) {
  const std::vector<int64_t> values = {0, -1, INT64_MAX, INT64_MIN, 12345};
  EXPECT_EQ(ParseIntegers(IntegersText(values)), values);
  EXPECT_EQ(IntegersText({}), "[]");
  EXPECT_EQ(ParseIntegers("[[1,2],[-1,0]]"), std::vector<int64_t>({1, 2, -1, 0}));
}

TEST(JsonText, RealsComeBackBitForBit) {
  std::mt19937_64 random(5);
  std::vector<double> values = {0.0,
                                -0.0,
                                1,
                                0.1,
                                1e300,
                                5e-324,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity()};
  for (int i = 0; i < 1000; ++i) {
    double value;
    const uint64_t bits = random();
    memcpy(&value, &bits, 8);
    if (std::isfinite(value)) values.push_back(value);
  }
  const auto back = ParseReals(RealsText(values));
  ASSERT_EQ(back.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(memcmp(&back[i], &values[i], 8), 0) << values[i];
  }
  EXPECT_TRUE(std::isnan(ParseReals(RealsText({std::nan("")})).at(0)));
}

TEST(JsonText, QuotedTextIsJson) {
  std::string text;
  AppendQuoted(text, std::string_view("a\"b\\c\n\0", 7));
  EXPECT_EQ(text, R"("a\"b\\c\u000a\u0000")");
}

}  // namespace
}  // namespace acltape::storage
