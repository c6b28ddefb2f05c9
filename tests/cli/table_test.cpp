#include "cli/table.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "cli/similar.h"

namespace acltape::cli {
namespace {

Table Sample() {
  Table table({"op", "calls", "ms"});
  table.Add({"aten::mm", int64_t{12}, 1.5});
  table.Add({"say \"hi\", twice", int64_t{1234}, Cell()});
  return table;
}

TEST(Table, AlignsTextLeftAndNumbersRight) {
  EXPECT_EQ(Sample().ToText(Format::kTable),
            "op               calls   ms\n"
            "---------------  -----  ---\n"
            "aten::mm            12  1.5\n"
            "say \"hi\", twice   1234\n");
}

TEST(Table, AlignsByCharactersNotBytes) {
  Table table({"name", "n"});
  table.Add({"\u00fc\u00fc", int64_t{1}});
  table.Add({"uu", int64_t{2}});
  EXPECT_EQ(table.ToText(Format::kTable),
            "name  n\n"
            "----  -\n"
            "\u00fc\u00fc    1\n"
            "uu    2\n");
}

TEST(Table, FitsAScreenByWrappingTheWidestText) {
  Table table({"call_id", "note", "empty"});
  table.Add({int64_t{7}, "one two three four five six seven", Cell()});
  table.Add({int64_t{12}, "short", ""});
  const Screen screen{.terminal = true, .width = 30};
  EXPECT_EQ(table.ToText(Format::kTable, screen),
            "call_id  note\n"
            "-------  ---------------------\n"
            "      7  one two three four\n"
            "         five six seven\n"
            "     12  short\n");
  EXPECT_EQ(table.ToText(Format::kCsv, screen), table.ToText(Format::kCsv));
}

TEST(Table, PaintsByColumnAndByQuantity) {
  Table table({"quantity", "value"});
  table.Add({"verdict", "different: 1 of 2"});
  table.Add({"different", "verdict"});
  const std::string text = table.ToText(Format::kTable, {.colour = true});
  EXPECT_NE(text.find("\x1b[31mdifferent: 1 of 2\x1b[0m"), std::string::npos) << text;
  EXPECT_NE(text.find("different  verdict\n"), std::string::npos) << text;
}

TEST(Screen, WrapsAtSpacesThenAtSeparatorsThenAnywhere) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(WrapText("", 5), Lines{""});
  EXPECT_EQ(WrapText("aa bb cc", 5), (Lines{"aa bb", "cc"}));
  EXPECT_EQ(WrapText("path/to/a/file", 9), (Lines{"path/to/", "a/file"}));
  EXPECT_EQ(WrapText("abcdefgh", 3), (Lines{"abc", "def", "gh"}));
  EXPECT_EQ(WrapText("\u91cd\u91cd\u91cd", 5), (Lines{"\u91cd\u91cd", "\u91cd"}));
  EXPECT_EQ(WrapText("\u91cd\u91cd", 1), (Lines{"\u91cd", "\u91cd"}));
  EXPECT_EQ(WrapText("a\xff\xfe"
                     "b",
                     2),
            (Lines{"a\xff",
                   "\xfe"
                   "b"}));
}

TEST(Screen, CountsColumnsOfCharacters) {
  EXPECT_EQ(TextWidth("abc"), 3u);
  EXPECT_EQ(TextWidth("\u00fc\u91cd"), 3u);
  EXPECT_EQ(TextWidth("e\u0301"), 1u);  // a letter with an accent put over it
  EXPECT_EQ(TextWidth("\xff"), 1u);
}

TEST(Similar, ASwapIsOneMistakeAndDashesAndCaseAreNone) {
  EXPECT_EQ(EditDistance("recrod", "record"), 1u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(MostSimilar("--Keep_Matches", {"--keep-matches", "--keep"}), "--keep-matches");
  EXPECT_EQ(MostSimilar("--rep", {"--repetitions", "--plan"}), "--repetitions");
  EXPECT_EQ(MostSimilar("xyz", {"record", "replay"}), "");
}

TEST(Table, CsvQuotesWhatNeedsIt) {
  EXPECT_EQ(Sample().ToText(Format::kCsv),
            "op,calls,ms\n"
            "aten::mm,12,1.5\n"
            "\"say \"\"hi\"\", twice\",1234,\n");
}

TEST(Table, JsonKeepsTypesAndColumnOrder) {
  const auto json = nlohmann::ordered_json::parse(Sample().ToText(Format::kJson));
  EXPECT_EQ(json.dump(), R"([{"op":"aten::mm","calls":12,"ms":1.5},)"
                         R"({"op":"say \"hi\", twice","calls":1234,"ms":null}])");
}

TEST(Table, JsonNamesNumbersThatItCannotHold) {
  Table table({"x"});
  table.Add({std::numeric_limits<double>::quiet_NaN()});
  table.Add({-std::numeric_limits<double>::infinity()});
  const auto json = nlohmann::json::parse(table.ToText(Format::kJson));
  EXPECT_EQ(json[0]["x"], "nan");
  EXPECT_EQ(json[1]["x"], "-inf");
}

TEST(Table, JsonReplacesBytesThatAreNotUtf8) {
  Table table({"x"});
  table.Add({"a\xff"});
  EXPECT_NO_THROW(nlohmann::json::parse(table.ToText(Format::kJson)));
}

TEST(Table, CsvKeepsEveryDigitOfAReal) {
  Table table({"x"});
  table.Add({0.1 + 0.2});
  EXPECT_EQ(table.ToText(Format::kCsv), "x\n0.30000000000000004\n");
}

TEST(Table, JsonKeysAreInSnakeCase) {
  EXPECT_EQ(JsonKey("first call_id"), "first_call_id");
  EXPECT_EQ(JsonKey("error, %"), "error");
  EXPECT_EQ(JsonKey("predicted, us"), "predicted_us");
  EXPECT_EQ(JsonKey("A here"), "a_here");
  Table table({"Total ns"});
  table.Add({int64_t{1}});
  EXPECT_EQ(nlohmann::json::parse(table.ToText(Format::kJson))[0].count("total_ns"), 1u);
  table.KeepNames();
  EXPECT_EQ(nlohmann::json::parse(table.ToText(Format::kJson))[0].count("Total ns"), 1u);
}

TEST(Report, JsonIsAnObjectOfTables) {
  Report report;
  report.Add("ops", Sample());
  report.Add("empty", Table({"a"}));
  const auto json = nlohmann::json::parse(report.ToText(Format::kJson));
  EXPECT_EQ(json["ops"].size(), 2u);
  EXPECT_TRUE(json["empty"].is_array());
  EXPECT_EQ(json["format_version"], kJsonVersion);
}

TEST(Report, TableLeavesOutEmptyTables) {
  Report report;
  report.Add("empty", Table({"a"}));
  report.Add("ops", Sample());
  const std::string text = report.ToText(Format::kTable);
  EXPECT_EQ(text.find("empty"), std::string::npos);
  EXPECT_EQ(text.substr(0, 4), "ops\n");
}

TEST(HumanNumbers, AreShortAndCarryTheirUnit) {
  EXPECT_EQ(HumanBytes(312), "312 B");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(int64_t{3} << 30), "3.0 GiB");
  EXPECT_EQ(HumanNs(310), "310 ns");
  EXPECT_EQ(HumanNs(1250000), "1.25 ms");
  EXPECT_EQ(HumanNs(35400), "35.4 us");
}

}  // namespace
}  // namespace acltape::cli
