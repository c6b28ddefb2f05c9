#include "meaning/options.h"

#include <gtest/gtest.h>

#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/frame/command.h"

namespace acltape::cli {
namespace {

// The options that a help lists: lines such as "  -o,--output FILE  The trace".
std::set<std::string> OptionsOfHelp(const std::string& help) {
  static const std::regex kOption(R"((?:^|\n) +(?:-\w,)?(--[a-z-]+))");
  std::set<std::string> options;
  for (std::sregex_iterator found(help.begin(), help.end(), kOption), end; found != end; ++found) {
    options.insert((*found)[1]);
  }
  return options;
}

std::set<std::string> OptionsOf(std::vector<std::string> words) {
  words.insert(words.begin(), "acltape");
  words.emplace_back("--help");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  testing::internal::CaptureStdout();
  EXPECT_EQ(Main(static_cast<int>(pointers.size()), pointers.data(), AllCommands()), kExitFine);
  return OptionsOfHelp(testing::internal::GetCapturedStdout());
}

TEST(Options, AreThoseThatCommandsDeclare) {
  std::set<std::string> declared = OptionsOf({});
  for (const auto& command : AllCommands()) declared.merge(OptionsOf({command->Name()}));
  std::set<std::string> rows;
  for (const meaning::Option& option : meaning::kOptions) rows.emplace(option.spelling);
  EXPECT_EQ(rows, declared);
  EXPECT_EQ(rows.size(), std::size(meaning::kOptions)) << "two rows have one spelling";
}

TEST(Options, AreSpelledInTexts) {
  EXPECT_STREQ("record with @payload inputs or @payload all"_cli,
               "record with --payload inputs or --payload all");
  EXPECT_STREQ("wrong_bits@812, a@, @"_cli, "wrong_bits@812, a@, @");
  EXPECT_STREQ("`@plan`@good-env."_cli, "`--plan`--good-env.");
  EXPECT_STREQ(""_cli, "");
}

}  // namespace
}  // namespace acltape::cli
