#include "replayer/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace acltape::replayer {
namespace {

TEST(Statistics, MedianOfAnEvenNumberLiesBetweenTheMiddleTwo) {
  const Estimate estimate = MedianOf({4, 1, 3, 2}, 0.95);
  EXPECT_EQ(estimate.median, 2.5);
  EXPECT_EQ(estimate.samples, 4);
}

TEST(Statistics, TooFewSamplesGiveTheirWholeRange) {
  const Estimate estimate = MedianOf({5, 1, 3, 2, 4}, 0.95);  // 1 - 2/32 < 0.95
  EXPECT_EQ(estimate.low, 1);
  EXPECT_EQ(estimate.high, 5);
}

TEST(Statistics, RanksAreThoseOfTheBinomialTable) {
  std::vector<double> samples;
  for (int i = 1; i <= 20; ++i) samples.push_back(i);
  const Estimate estimate = MedianOf(samples, 0.95);  // table: ranks 6 and 15
  EXPECT_EQ(estimate.low, 6);
  EXPECT_EQ(estimate.high, 15);
}

TEST(Statistics, AQuotientIsThatOfTheMediansAndItsIntervalHoldsAllOfTheirs) {
  const Estimate eager{300, 280, 330, 20};
  const Estimate captured{5, 4, 6, 30};
  const Estimate quotient = QuotientOf(eager, captured);
  EXPECT_DOUBLE_EQ(quotient.median, 60);
  EXPECT_DOUBLE_EQ(quotient.low, 280.0 / 6);
  EXPECT_DOUBLE_EQ(quotient.high, 330.0 / 4);
  EXPECT_EQ(quotient.samples, 20);
  EXPECT_EQ(QuotientOf(eager, Estimate()).samples, 0);
}

TEST(Statistics, IntervalsCoverTheTrueMedianAsOftenAsTheyClaim) {
  std::mt19937 random(3);
  std::exponential_distribution<double> exponential(1.0);
  const double median = std::log(2.0);
  int covered = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> samples(25);
    std::generate(samples.begin(), samples.end(), [&] { return exponential(random); });
    const Estimate estimate = MedianOf(samples, 0.95);
    if (estimate.low <= median && median <= estimate.high) ++covered;
  }
  EXPECT_GE(covered, kRounds * 94 / 100);
}

TEST(Statistics, TheRangeOfFewSamplesHoldsTheMedianLessOftenThanAskedFor) {
  EXPECT_EQ(LeastSamples(0.95), 6);  // 2 / 2^5 is 6 %, 2 / 2^6 is 3 %
  EXPECT_EQ(LeastSamples(0.5), 2);
}

TEST(Statistics, NoSamplesGiveNothing) { EXPECT_EQ(MedianOf({}, 0.95).samples, 0); }

}  // namespace
}  // namespace acltape::replayer
