// "Nothing found" is said only of what was compared.
#include <gtest/gtest.h>

#include "replayer/bisect/bisection.h"

namespace acltape::replayer::bisect {
namespace {

BisectionReport Nothing(size_t elements, analyzer::Coverage coverage) {
  BisectionReport report;
  report.search.verdict = SearchResult::Verdict::kNothing;
  report.elements = elements;
  report.coverage = coverage;
  return report;
}

TEST(BisectionReport, NothingIsFoundWhereNineteenInTwentyLeavesWereTold) {
  const BisectionReport report = Nothing(8, {20, 19});
  EXPECT_EQ(report.ExitCode(), 0);
  EXPECT_EQ(report.Verdict(), "nothing found: with everything altered the results are the same");
}

TEST(BisectionReport, BelowThatItIsNotKnown) {
  const BisectionReport report = Nothing(8, {20, 18});
  EXPECT_EQ(report.ExitCode(), 125);
  EXPECT_EQ(report.Verdict(),
            "not known: with everything altered the results are the same, and what was compared "
            "tells of 18 of 20 leaves that computed");
}

TEST(BisectionReport, ADiffThatComparedTooLittleFindsNothingEither) {
  BisectionReport report = Nothing(0, {20, 2});
  report.equal_beforehand = "the diff names no pair of calls that differs";
  EXPECT_EQ(report.ExitCode(), 125);
  EXPECT_EQ(report.Verdict(),
            "not known: the diff names no pair of calls that differs, and what was compared tells "
            "of 2 of 20 leaves that computed");
  report.coverage = {20, 20};
  EXPECT_EQ(report.ExitCode(), 0);
  EXPECT_EQ(report.Verdict(), "nothing found: the diff names no pair of calls that differs");
}

TEST(BisectionReport, WithNothingToAlterNothingWasCompared) {
  EXPECT_EQ(Nothing(0, {}).ExitCode(), 125);
  EXPECT_NE(Nothing(0, {}).Verdict().find("nothing was compared"), std::string::npos);
}

}  // namespace
}  // namespace acltape::replayer::bisect
