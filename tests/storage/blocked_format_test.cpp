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

TEST(FourBitBlocksFormatText, ComesBackAsItWas) {
  for (const BlockedView& view : {BlockedView{{33, 50}, {50, 1}}, BlockedView{{64, 96}, {1, 64}}}) {
    const std::string text = FourBitBlocksFormat(view);
    const auto parsed = ParseFourBitBlocksFormat(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(parsed->sizes, view.sizes);
    EXPECT_EQ(parsed->strides, view.strides);
    EXPECT_FALSE(ParseBlockedFormat(text).has_value());
    EXPECT_FALSE(ParseFourBitFormat(text).has_value());
  }
  EXPECT_EQ(FourBitBlocksFormat({{64, 96}, {1, 64}}), "INT4 in FRACTAL_NZ of [64, 96] by [1, 64]");
  EXPECT_FALSE(ParseFourBitBlocksFormat("FRACTAL_NZ of [2, 2]").has_value());
}

TEST(FourBitFormatText, ComesBackAsItWas) {
  for (const FourBitView& view :
       {FourBitView{{6, 16}, {16, 1}, 0}, FourBitView{{64, 96}, {1, 64}, 0},
        FourBitView{{3}, {1}, 1}, FourBitView{{2, 3}, {7, 2}, 1}}) {
    const auto parsed = ParseFourBitFormat(FourBitFormat(view));
    ASSERT_TRUE(parsed.has_value()) << FourBitFormat(view);
    EXPECT_EQ(parsed->sizes, view.sizes);
    EXPECT_EQ(parsed->strides, view.strides);
    EXPECT_EQ(parsed->offset, view.offset);
    EXPECT_FALSE(ParseBlockedFormat(FourBitFormat(view)).has_value());
  }
  EXPECT_EQ(FourBitFormat({{64, 96}, {1, 64}, 1}), "INT4 of [64, 96] by [1, 64] from 1");
  for (const char* text : {"", "INT4", "INT4 of [2] from 2", "INT4 of [2] by [1, 1]",
                           "INT4 of [2] from 1 ", "FRACTAL_NZ of [2] from 1"}) {
    EXPECT_FALSE(ParseFourBitFormat(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace acltape::storage
