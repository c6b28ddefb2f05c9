// Text of a trace on a terminal.
#include "storage/visible_text.h"

#include <gtest/gtest.h>

#include <string_view>

namespace acltape::storage {
namespace {

using std::string_view_literals::operator""sv;

TEST(VisibleText, TextStaysAsItIs) {
  EXPECT_EQ(VisibleText("aten::mm"), "aten::mm");
  EXPECT_EQ(VisibleText("größer 模型 😀"), "größer 模型 😀");
  EXPECT_EQ(VisibleText(""), "");
}

TEST(VisibleText, ControlCharactersAreSpelled) {
  EXPECT_EQ(VisibleText("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(VisibleText("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(VisibleText("\0\x7f"sv), "\\x00\\x7f");
  EXPECT_EQ(VisibleText("\xc2\x9b"), "\\xc2\\x9b");           // CSI of C1
  EXPECT_EQ(VisibleText("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right to left
}

TEST(VisibleText, BytesThatAreNoUtf8AreSpelled) {
  EXPECT_EQ(VisibleText("a\xff"), "a\\xff");
  EXPECT_EQ(VisibleText("\xc3"), "\\xc3");
  EXPECT_EQ(VisibleText("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(VisibleText("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
}

}  // namespace
}  // namespace acltape::storage
