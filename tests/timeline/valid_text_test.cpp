#include "timeline/valid_text.h"

#include <gtest/gtest.h>

namespace acltape::timeline {
namespace {

TEST(ValidText, ValidTextStaysAsItIs) {
  for (const char* text : {"", "aten::add", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                           "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF", "\x01\n\""}) {
    EXPECT_EQ(ValidUtf8(text), text);
  }
}

TEST(ValidText, EachByteOutsideOfACharacterIsReplaced) {
  const std::string mark = "\xEF\xBF\xBD";
  const std::pair<const char*, int> kRows[] = {
      {"\xFF", 1},              // no lead byte
      {"\x80", 1},              // a continuation alone
      {"\xC0\xAF", 2},          // longer than needed
      {"\xE0\x80\x80", 3},      // longer than needed
      {"\xED\xA0\x80", 3},      // half of a surrogate pair
      {"\xF4\x90\x80\x80", 4},  // above the last character
      {"\xE2\x82", 2},          // cut off
  };
  for (const auto& [text, marks] : kRows) {
    std::string expected;
    for (int i = 0; i < marks; ++i) expected += mark;
    EXPECT_EQ(ValidUtf8(text), expected);
    EXPECT_EQ(ValidUtf8("a" + std::string(text) + "b"), "a" + expected + "b");
  }
}

TEST(ValidText, JsonEscapesQuotesAndControlCharacters) {
  std::string json;
  AppendJson(json, "a\"\\\n\x01\xFF");
  EXPECT_EQ(json, "\"a\\\"\\\\\\u000a\\u0001\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace acltape::timeline
