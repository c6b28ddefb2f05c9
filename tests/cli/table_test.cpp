#include "cli/terminal/table.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/plan/lint_report.h"
#include "cli/tables/ledger_words.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/similar.h"

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

TEST(Table, WrapsNamesOfColumnsBeforeShortText) {
  Table table({"call_id", "calls per step", "op"});
  table.Add({int64_t{7}, int64_t{12}, "aten::native_layer_norm"});
  EXPECT_EQ(table.ToText(Format::kTable, {.terminal = true, .width = 39}),
            "         calls\n"
            "           per\n"
            "call_id   step  op\n"
            "-------  -----  -----------------------\n"
            "      7     12  aten::native_layer_norm\n");
}

TEST(Table, PutsSentencesWithoutRoomBelowTheirRow) {
  Table table({"rule", "op", "message", "count", "verdict"});
  table.Add({"LINT-1", "aten::mm", "one two three four five six seven eight nine", int64_t{3},
             "predicted"});
  table.Add({"LINT-2", "aten::relu", "short", int64_t{1}, Cell()});
  EXPECT_EQ(table.ToText(Format::kTable, {.terminal = true, .width = 44}),
            "rule    op          count  verdict\n"
            "------  ----------  -----  ---------\n"
            "LINT-1  aten::mm        3  predicted\n"
            "    message:\n"
            "      one two three four five six seven\n"
            "      eight nine\n"
            "LINT-2  aten::relu      1\n"
            "    message: short\n");
}

TEST(Table, PutsTheLastOfManyNumbersBelowTheirRow) {
  Table table({"family", "first", "second", "third", "fourth"});
  table.Add({int64_t{0}, int64_t{1000000}, int64_t{2000000}, int64_t{3000000}, int64_t{4}});
  EXPECT_EQ(table.ToText(Format::kTable, {.terminal = true, .width = 28}),
            "family    first   second\n"
            "------  -------  -------\n"
            "     0  1000000  2000000\n"
            "    third: 3000000\n"
            "    fourth: 4\n");
}

TEST(Table, NoLineIsWiderThanTheScreen) {
  Table table({"call_id", "operator", "where", "very_long_name_of_a_column", "note", "ns"});
  table.Add({int64_t{7}, std::string(50, 'x'), "\u91cd\u91cd train.py:17 (forward)", 1.5,
             "one two three four five six seven eight nine ten eleven twelve", int64_t{1} << 40});
  for (size_t width = 32; width < 200; ++width) {
    const std::string text = table.ToText(Format::kTable, {.terminal = true, .width = width});
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(TextWidth(line), width) << text;
    }
  }
}

TEST(Table, GivesSizesAndTimesAUnitForPeopleOnly) {
  EXPECT_EQ(BytesCell(16896, Format::kTable), Cell("16.5 KiB"));
  EXPECT_EQ(BytesCell(16896, Format::kCsv), Cell(int64_t{16896}));
  EXPECT_EQ(NsCell(1250000, Format::kTable), Cell("1.25 ms"));
  EXPECT_EQ(NsCell(1250000, Format::kJson), Cell(int64_t{1250000}));
}

TEST(LedgerWords, CountsOfMicrosecondsAreTimes) {
  storage::LedgerEntry entry;
  entry.count = 1250000;
  entry.cause = "microseconds that threads waited";
  EXPECT_EQ(WordsOf(entry).count, "1.25 s");
  EXPECT_EQ(WordsOf(entry).cause, "time that threads waited");
  entry.cause = "a thread gave up records";
  EXPECT_EQ(WordsOf(entry).count, "1250000");
  EXPECT_EQ(WordsOf(entry).cause, "a thread gave up records");
}

TEST(LintMessage, LeavesOutThePlaceThatTheRowNames) {
  const std::string message = "aten::rand at p.py:9 (f) draws (call 37 aten::rand)";
  EXPECT_EQ(MessageBeside(message, "p.py:9 (f)"), "aten::rand draws (call 37 aten::rand)");
  EXPECT_EQ(MessageBeside("aten::mm in the backward of p.py:9 (f) reads", "backward of p.py:9 (f)"),
            "aten::mm reads");
  EXPECT_EQ(MessageBeside(message, "q.py:9 (f)"), message);
  EXPECT_EQ(MessageBeside(message, ""), message);
  EXPECT_EQ(MessageBeside("no place", "p.py:9 (f)"), "no place");
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
