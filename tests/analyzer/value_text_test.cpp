// Arguments as text for people.
#include "analyzer/calls/value_text.h"

#include <gtest/gtest.h>

#include <bit>

namespace acltape::analyzer {
namespace {

storage::ArgumentValue ScalarList(const std::string& dtypes, const std::vector<int64_t>& bits) {
  storage::ArgumentValue value;
  value.kind = storage::ValueKind::kScalarList;
  value.text = dtypes;
  value.integers = bits;
  return value;
}
int64_t Bits(double value) { return std::bit_cast<int64_t>(value); }

TEST(ValueText, RealScalarsOfAListAreNumbersAndEqualOnesAreCounted) {
  EXPECT_EQ(ValueText(ScalarList("float64,float64,float64", {Bits(0.1), Bits(0.1), Bits(2)})),
            "float64 [0.1 (2 times), 2]");
}

TEST(ValueText, IntegersStayAndMixedScalarsHaveTheirTypes) {
  EXPECT_EQ(ValueText(ScalarList("int64,int64", {3, 4})), "int64 [3, 4]");
  EXPECT_EQ(ValueText(ScalarList("int64,float32", {3, Bits(0.5)})), "[int64 3, float32 0.5]");
}

TEST(ValueText, AnEmptyListIsEmpty) { EXPECT_EQ(ValueText(ScalarList("", {})), "[]"); }

}  // namespace
}  // namespace acltape::analyzer
