// Medians, and what they are for an even number of samples.
#include "base/median.h"

#include <gtest/gtest.h>

namespace acltape::base {
namespace {

TEST(Median, IsTheSampleInTheMiddle) {
  EXPECT_EQ(Median({5, 1, 3}), 3);
  std::vector<double> samples = {5, 1, 3};
  EXPECT_EQ(UpperMedian(samples), 3);
}

TEST(Median, OfAnEvenNumberIsTheMeanOfTheMiddleTwo) { EXPECT_EQ(Median({8, 1, 2, 4}), 3); }

TEST(Median, TheUpperOneIsASampleAlways) {
  std::vector<double> samples = {8, 1, 2, 4};
  EXPECT_EQ(UpperMedian(samples), 4);
}

TEST(Median, OfNoSamplesIsZero) { EXPECT_EQ(Median({}), 0); }

}  // namespace
}  // namespace acltape::base
