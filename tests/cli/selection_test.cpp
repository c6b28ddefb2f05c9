#include "cli/choices/selection.h"

#include <gtest/gtest.h>

#include <string>

namespace acltape::cli {
namespace {

// Call 150 of step 3 on stream 1.
constexpr SelectionSubject kProduct{150, 3, 1, "aten::mm", "aten::mm"};
constexpr SelectionSubject kSum{151, 3, 1, "aten::add", "aten::add.Tensor"};

bool Picks(const char* text, const SelectionSubject& subject) {
  return Selection::Parse(text).Contains(subject);
}

TEST(Selection, EmptyTextPicksEveryCall) {
  EXPECT_TRUE(Selection::Parse("").empty());
  EXPECT_TRUE(Picks("", kProduct));
}

TEST(Selection, RangesIncludeBothEnds) {
  EXPECT_TRUE(Picks("150", kProduct));
  EXPECT_TRUE(Picks("100-150", kProduct));
  EXPECT_TRUE(Picks("150-200", kProduct));
  EXPECT_TRUE(Picks("150-", kProduct));
  EXPECT_FALSE(Picks("100-149", kProduct));
  EXPECT_FALSE(Picks("151-", kProduct));
}

TEST(Selection, CommasJoinAlternatives) {
  EXPECT_TRUE(Picks("1,150,9", kProduct));
  EXPECT_TRUE(Picks("1-5,140-160", kProduct));
  EXPECT_FALSE(Picks("1-5,151-160", kProduct));
  EXPECT_TRUE(Picks("op:aten::addmm,aten::mm", kProduct));
}

TEST(Selection, SlashJoinsConditions) {
  EXPECT_TRUE(Picks("step:3/op:aten::mm/100-200/stream:1", kProduct));
  EXPECT_FALSE(Picks("step:4/op:aten::mm", kProduct));
  EXPECT_FALSE(Picks("step:3/op:aten::bmm", kProduct));
  EXPECT_FALSE(Picks("stream:0/op:aten::mm", kProduct));
}

// The process of the rank is chosen before calls are picked.
TEST(Selection, ARankHoldsForEachCallOfItsProcess) {
  EXPECT_TRUE(Picks("rank:2", kProduct));
  EXPECT_TRUE(Picks("rank:2/step:3/op:aten::mm", kProduct));
  EXPECT_TRUE(Picks("step:3/rank:2", kProduct));
  EXPECT_FALSE(Picks("rank:2/step:4", kProduct));
}

// A call of line 35 of a file in folders.
constexpr SelectionSubject kLinear{9, 3, 1, "aten::mm", "aten::mm", "/home/me/llm/2/model.py", 35};

TEST(Selection, AFileIsNamedAloneOrWithItsFolders) {
  for (const char* text :
       {"line:model.py", "line:model.py:35", "line:2/model.py:31-39", "line:llm/2/model.py:35",
        "line:/home/me/llm/2/model.py:31-39", "line:l*/2/model.py:1,35",
        "step:3/line:2/model.py:35", "line:llm/2/model.py:35/step:3", "line:model.py:35/9",
        "line:llm/2/model.py/9"}) {
    EXPECT_TRUE(Picks(text, kLinear)) << text;
  }
  for (const char* text : {"line:del.py", "line:lm/2/model.py", "line:2/model.py:1-34", "line:llm",
                           "line:llm/2/model.py:35/step:4", "line:model.py:35/8"}) {
    EXPECT_FALSE(Picks(text, kLinear)) << text;
  }
}

TEST(Selection, OpNamesMatchWithAndWithoutOverload) {
  EXPECT_TRUE(Picks("op:aten::add", kSum));
  EXPECT_TRUE(Picks("op:aten::add.Tensor", kSum));
  EXPECT_FALSE(Picks("op:aten::add.Scalar", kSum));
  EXPECT_FALSE(Picks("op:add", kSum));
}

TEST(Selection, StarStandsForAnyText) {
  EXPECT_TRUE(Picks("op:*add*", kSum));
  EXPECT_TRUE(Picks("op:aten::a*.Tensor", kSum));
  EXPECT_TRUE(Picks("op:*", kSum));
  EXPECT_FALSE(Picks("op:aten::a*.Scalar", kSum));
  EXPECT_FALSE(Picks("op:*mul*", kSum));
}

TEST(Selection, CallOutsideStepsAndStreamsIsPickedByNeither) {
  const SelectionSubject loose{7, -1, -1, "aten::mm", "aten::mm"};
  EXPECT_FALSE(Picks("step:0-", loose));
  EXPECT_FALSE(Picks("stream:0-", loose));
  EXPECT_TRUE(Picks("7", loose));
}

TEST(Selection, KnowsWhatItAsksFor) {
  EXPECT_TRUE(Selection::Parse("1-5/step:2").asks_step());
  EXPECT_FALSE(Selection::Parse("1-5").asks_step());
  EXPECT_TRUE(Selection::Parse("stream:0").asks_stream());
}

class BadSelection : public testing::TestWithParam<const char*> {};

TEST_P(BadSelection, IsAUsageErrorThatShowsTheGrammar) {
  try {
    Selection::Parse(GetParam());
    FAIL() << "'" << GetParam() << "' was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("step:3/op:aten::mm"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Grammar, BadSelection,
                         testing::Values("x", "1-x", "-5", "9-3", "step:", "step:x",
                                         "op:", "op:a,,b", "1//2", "/", "1,", "stream:-", "rank:",
                                         "rank:x", "rank:0-1", "rank:0,1", "99999999999999999999"));

}  // namespace
}  // namespace acltape::cli
