// The text that tells the view of a tensor in blocks.
#include "storage/blocked_format.h"

#include <gtest/gtest.h>

namespace acltape::storage {
namespace {

TEST(BlockedFormatText, ComesBackAsItWas) {
  for (const BlockedView& view :
       {BlockedView{{33, 50}, {50, 1}}, BlockedView{{50, 33}, {1, 50}},
        BlockedView{{2, 3, 17, 8}, {408, 136, 8, 1}}, BlockedView{{1, 1}, {1, 1}}}) {
    const auto parsed = ParseBlockedFormat(BlockedFormat(view));
    ASSERT_TRUE(parsed.has_value()) << BlockedFormat(view);
    EXPECT_EQ(parsed->sizes, view.sizes);
    EXPECT_EQ(parsed->strides, view.strides);
  }
  EXPECT_EQ(BlockedFormat({{33, 50}, {50, 1}}), "FRACTAL_NZ of [33, 50]");
  EXPECT_EQ(BlockedFormat({{50, 33}, {1, 50}}), "FRACTAL_NZ of [50, 33] by [1, 50]");
}

TEST(BlockedFormatText, OtherTextsAreNone) {
  for (const char* text :
       {"", "FRACTAL_NZ", "FRACTAL_NZ of", "FRACTAL_NZ of []", "FRACTAL_NZ of [1",
        "FRACTAL_NZ of [1,2]", "FRACTAL_NZ of [1, 2] ", "FRACTAL_NZ of [1, 2] by [1]",
        "FRACTAL_NZ of [-1, 2]", "FRACTAL_NZ of [99999999999999999999, 2]", "ND of [1, 2]",
        "FRACTAL_NZ of [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]",
        "FRACTAL_NZ of [9223372036854775807, 9223372036854775807, 9223372036854775807]"}) {
    EXPECT_FALSE(ParseBlockedFormat(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace acltape::storage
