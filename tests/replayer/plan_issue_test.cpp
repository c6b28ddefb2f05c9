#include "replayer/engine/plan_issue.h"

#include <gtest/gtest.h>

#include <random>

#include "storage/error.h"

namespace acltape::replayer {
namespace {

using analyzer::plan::Plan;
using analyzer::plan::PlanRegion;

RegionLimits Anything() {
  return {[](size_t) { return std::string(); }, [](size_t) { return false; }};
}

// Calls 10, 11, ... at places 0, 1, ...
std::unordered_map<int64_t, size_t> Places(size_t count) {
  std::unordered_map<int64_t, size_t> places;
  for (size_t place = 0; place < count; ++place) places[10 + static_cast<int64_t>(place)] = place;
  return places;
}

// One captured region; streams in order of issue.
Plan PlanOf(std::vector<analyzer::plan::PlanPlacement> placements,
            std::vector<analyzer::plan::PlanWait> waits) {
  Plan plan;
  PlanRegion region;
  region.captured = true;
  region.first_call = 10;
  region.last_call = 9 + static_cast<int64_t>(placements.size());
  region.placements = std::move(placements);
  region.waits = std::move(waits);
  plan.regions.push_back(region);
  return plan;
}

analyzer::plan::PlanPlacement On(int64_t call, int32_t stream) {
  analyzer::plan::PlanPlacement placement;
  placement.call_id = call;
  placement.stream = stream;
  return placement;
}

TEST(PlanIssue, SeveralWaitsShareOneRecord) {
  const auto regions = IssueByPlan(
      PlanOf({On(10, 0), On(11, 1), On(12, 2)}, {{10, 11, 0}, {10, 12, 0}}), Places(3), Anything());
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].streams, 3);
  EXPECT_EQ(regions[0].events, 1);
  EXPECT_EQ(regions[0].leaves[0].record, std::vector<int>{0});
  EXPECT_EQ(regions[0].leaves[1].wait_for, std::vector<int>{0});
  EXPECT_EQ(regions[0].leaves[2].wait_for, std::vector<int>{0});
}

TEST(PlanIssue, ARegionIsCutWhereTheLimitsAskForIt) {
  RegionLimits limits = Anything();
  limits.barrier = [](size_t place) { return std::string(place == 2 ? "host read" : ""); };
  // Issued out of order; the wait from call 10 to call 14 crosses the barrier at call 12.
  const auto regions = IssueByPlan(PlanOf({On(10, 0), On(13, 1), On(11, 1), On(12, 0), On(14, 0)},
                                          {{10, 14, 0}, {10, 11, 0}, {13, 14, 1}}),
                                   Places(5), limits);
  ASSERT_EQ(regions.size(), 3u);
  EXPECT_TRUE(regions[0].captured);
  EXPECT_EQ(regions[0].leaves.size(), 2u);
  EXPECT_EQ(regions[0].leaves[0].record, std::vector<int>{0});
  EXPECT_EQ(regions[0].leaves[1].wait_for, std::vector<int>{0});
  EXPECT_FALSE(regions[1].captured);
  EXPECT_EQ(regions[1].reason, "host read");
  ASSERT_EQ(regions[2].leaves.size(), 2u);
  EXPECT_EQ(regions[2].leaves[0].place, 3u);
  EXPECT_EQ(regions[2].leaves[0].record, std::vector<int>{1});
  EXPECT_EQ(regions[2].leaves[1].wait_for, std::vector<int>{1});
}

TEST(PlanIssue, APlanThatLacksACallIsRefused) {
  EXPECT_THROW(IssueByPlan(PlanOf({On(10, 0)}, {}), Places(2), Anything()), Error);
  EXPECT_THROW(IssueByPlan(PlanOf({On(10, 0), On(10, 0)}, {}), Places(2), Anything()), Error);
  EXPECT_THROW(IssueByPlan(PlanOf({On(10, 0), On(99, 0)}, {}), Places(2), Anything()), Error);
  EXPECT_THROW(IssueByPlan(PlanOf({On(10, 0), On(11, 1)}, {{11, 10, 0}}), Places(2), Anything()),
               Error);
}

TEST(PlanIssue, OnOneStreamEveryLeafIsOrderedAfterTheOneBeforeIt) {
  const auto moments = MomentsOf(IssueOnOneStream(3, Anything()), 3);
  EXPECT_LT(moments[0].end, moments[1].begin);
  EXPECT_LT(moments[1].end, moments[2].begin);
}

TEST(PlanIssue, StreamsWithoutAWaitAreNotOrdered) {
  const auto moments = MomentsOf(
      IssueByPlan(PlanOf({On(10, 0), On(11, 1), On(12, 0)}, {}), Places(3), Anything()), 3);
  EXPECT_GE(moments[0].end, moments[1].begin);
  EXPECT_GE(moments[1].end, moments[2].begin);
  EXPECT_EQ(moments[1].begin, 0);
}

// Moments never claim an order that the graph does not have: against reachability by brute force.
TEST(PlanIssue, MomentsFollowReachabilityInRandomPlans) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const size_t count = 2 + random() % 12;
    const int streams = 1 + static_cast<int>(random() % 4);
    std::vector<analyzer::plan::PlanPlacement> placements;
    std::vector<analyzer::plan::PlanWait> waits;
    for (size_t i = 0; i < count; ++i) {
      placements.push_back(On(10 + static_cast<int64_t>(i), static_cast<int>(random() % streams)));
    }
    std::vector<std::vector<bool>> before(count, std::vector<bool>(count, false));
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = i + 1; j < count; ++j) {
        before[i][j] = placements[i].stream == placements[j].stream;
        if (random() % 6 != 0) continue;
        waits.push_back({10 + static_cast<int64_t>(i), 10 + static_cast<int64_t>(j),
                         static_cast<int32_t>(waits.size())});
        before[i][j] = true;
      }
    }
    for (size_t k = 0; k < count; ++k) {
      for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; j < count; ++j) {
          before[i][j] = before[i][j] || (before[i][k] && before[k][j]);
        }
      }
    }
    const auto moments =
        MomentsOf(IssueByPlan(PlanOf(placements, waits), Places(count), Anything()), count);
    for (size_t j = 0; j < count; ++j) {
      size_t prefix = 0;
      while (prefix < j && before[prefix][j]) ++prefix;
      EXPECT_EQ(moments[j].begin, static_cast<int64_t>(prefix)) << "round " << round;
      EXPECT_EQ(moments[j].end, static_cast<int64_t>(j)) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace acltape::replayer
