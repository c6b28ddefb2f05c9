// Texts that are handed to programs which take nothing but UTF-8.
#include "storage/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace acltape::storage {
namespace {

TEST(Utf8, ATextIsUtf8WhereverItsCharactersLie) {
  for (size_t before = 0; before < 20; ++before) {
    const std::string ascii(before, 'a');
    for (const char* sound : {"", "größer", "模型", "😀", "\xf4\x8f\xbf\xbf"}) {
      EXPECT_TRUE(IsUtf8(ascii + sound + ascii)) << before << sound;
      EXPECT_EQ(AsUtf8(ascii + sound + ascii), ascii + sound + ascii);
    }
    for (const char* wrong :
         {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"}) {
      EXPECT_FALSE(IsUtf8(ascii + wrong)) << before;
      EXPECT_FALSE(IsUtf8(ascii + wrong + ascii)) << before;
      EXPECT_TRUE(IsUtf8(AsUtf8(ascii + wrong + ascii))) << before;
    }
  }
}

TEST(Utf8, EachByteThatIsNoneIsReplaced) {
  EXPECT_EQ(AsUtf8("a\xff\xfe"
                   "b"),
            "a\xef\xbf\xbd\xef\xbf\xbd"
            "b");
}

}  // namespace
}  // namespace acltape::storage
