// A word that is printed as part of a command comes back from a shell as it was.
#include "storage/shell_word.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace acltape::storage {
namespace {

std::string Echoed(const std::string& word) {
  FILE* shell = popen(("printf %s " + ShellWord(word)).c_str(), "r");
  std::string text;
  for (int c; (c = std::fgetc(shell)) != EOF;) text += static_cast<char>(c);
  pclose(shell);
  return text;
}

TEST(ShellWord, PlainWordsStayAsTheyAre) {
  EXPECT_EQ(ShellWord("a-b.c/d"), "a-b.c/d");
  EXPECT_EQ(ShellWord("step:3/op:aten::mm,aten::add.Tensor"),
            "step:3/op:aten::mm,aten::add.Tensor");
}

TEST(ShellWord, OthersComeBackFromAShell) {
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("it's $x"), "'it'\\''s $x'");
  for (const char* word : {"", "two words", "it's", "''", "$HOME `id` \"x\"", "a\\b", "*.db", "#",
                           "~", "a\nb", "tab\there", "!;&|<>()", "\xc3\xa9"}) {
    EXPECT_EQ(Echoed(word), word) << ShellWord(word);
  }
}

}  // namespace
}  // namespace acltape::storage
