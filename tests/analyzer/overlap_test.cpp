// How much of a rank's communication lies under its other work.
#include "analyzer/ranks/overlap.h"

#include <gtest/gtest.h>

#include <vector>

namespace acltape::analyzer::ranks {
namespace {

using Spans = std::vector<Span>;

TEST(Overlap, SpansThatTouchOrLieInEachOtherAreOne) {
  EXPECT_EQ(UnionOf({{5, 9}, {0, 2}, {1, 3}, {3, 4}, {6, 7}}), (Spans{{0, 4}, {5, 9}}));
  EXPECT_EQ(UnionOf({}), Spans());
}

TEST(Overlap, TimeOnSeveralStreamsCountsOnce) {
  EXPECT_EQ(TimeOf(UnionOf({{0, 10}, {2, 5}, {8, 12}})), 12);
  EXPECT_EQ(TimeOf({}), 0);
}

TEST(Overlap, CommonTimeIsWhatLiesInBoth) {
  EXPECT_EQ(CommonTime({{0, 4}, {6, 10}}, {{2, 7}, {9, 20}}), 2 + 1 + 1);
  EXPECT_EQ(CommonTime({{0, 4}}, {{4, 8}}), 0);
  EXPECT_EQ(CommonTime({{0, 4}}, {}), 0);
  EXPECT_EQ(CommonTime({{0, 100}}, {{1, 2}, {3, 5}, {99, 200}}), 1 + 2 + 1);
}

}  // namespace
}  // namespace acltape::analyzer::ranks
