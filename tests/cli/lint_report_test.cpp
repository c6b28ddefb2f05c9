// Findings with one cause are told as one.
#include "cli/plan/lint_report.h"

#include <gtest/gtest.h>

#include <deque>

#include "analyzer/lint/rule.h"

namespace acltape::cli {
namespace {

using analyzer::lint::Finding;

const analyzer::lint::LintRule* RuleNamed(std::string_view id) {
  for (const analyzer::lint::LintRule& rule : analyzer::lint::LintRules()) {
    if (rule.id == id) return &rule;
  }
  return nullptr;
}

class FoldCausesTest : public ::testing::Test {
 protected:
  LocatedFinding& Add(const char* rule, const char* cause, const char* subject, const char* place) {
    Finding& finding = findings_.emplace_back();
    finding.rule = RuleNamed(rule);
    finding.cause = cause;
    finding.subject = subject;
    LocatedFinding one;
    one.finding = &finding;
    one.message = std::string(subject) + " cannot be captured";
    one.verdict = "predicted";
    one.place = place;
    located_.push_back(std::move(one));
    return located_.back();
  }
  std::vector<LocatedFinding> Folded() const {
    return FoldCauses({located_.begin(), located_.end()});
  }

  std::deque<Finding> findings_;
  std::deque<LocatedFinding> located_;
};

TEST_F(FoldCausesTest, FindingsWithOneCauseBecomeOneWithTheCountsOfAll) {
  Add("LINT-15", "sync", "item()", "train.py:3").count = 4;
  Add("LINT-15", "sync", "item()", "train.py:9").count = 2;
  Add("LINT-15", "other", "cpu()", "train.py:5");
  const std::vector<LocatedFinding> folded = Folded();
  ASSERT_EQ(folded.size(), 2u);
  EXPECT_EQ(folded[0].findings, 2);
  EXPECT_EQ(folded[0].count, 6);
  EXPECT_EQ(folded[0].message,
            "item() cannot be captured; 1 more with this cause: item() at train.py:9");
  EXPECT_EQ(folded[1].message, "cpu() cannot be captured");
}

TEST_F(FoldCausesTest, TheLowestRuleLeadsUnlessADeviceReproducedAnother) {
  Add("LINT-22", "sync", "a()", "");
  Add("LINT-15", "sync", "b()", "");
  EXPECT_EQ(Folded()[0].finding->subject, "b()");
  Add("LINT-38", "sync", "c()", "").verdict = "reproduced";
  EXPECT_EQ(Folded()[0].finding->subject, "c()");
  EXPECT_EQ(Folded()[0].verdict, "predicted, reproduced");
}

TEST_F(FoldCausesTest, AKnownFindingStaysApartFromANewOneWithItsCause) {
  Add("LINT-15", "sync", "a()", "").known = true;
  Add("LINT-15", "sync", "b()", "");
  const std::vector<LocatedFinding> folded = Folded();
  ASSERT_EQ(folded.size(), 2u);
  EXPECT_TRUE(folded[0].known);
  EXPECT_FALSE(folded[1].known);
}

TEST_F(FoldCausesTest, FourOthersAreNamedOnceAndTheRestCounted) {
  for (const char* subject : {"a()", "b()", "b()", "c()", "d()", "e()", "f()", "g()"}) {
    Add("LINT-15", "sync", subject, "");
  }
  EXPECT_EQ(Folded()[0].message,
            "a() cannot be captured; 7 more with this cause: b(), c(), d(), e() and 2 others");
}

}  // namespace
}  // namespace acltape::cli
