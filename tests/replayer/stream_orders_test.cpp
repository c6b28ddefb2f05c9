// Steps are executed so often that every order of the streams comes and shows.
#include "replayer/script/stream_orders.h"

#include <gtest/gtest.h>

namespace acltape::replayer {
namespace {

using Steps = std::vector<size_t>;

TEST(StreamOrders, WithoutOrdersTheStepsAreExecutedAsAskedFor) {
  EXPECT_EQ(script::RunsOfOrders({1}, 0, 1), (Steps{1}));
  EXPECT_EQ(script::RunsOfOrders({1, 5}, 0, 1), (Steps{1, 5}));
}

TEST(StreamOrders, TheStepsAreRepeatedUntilTheFirstOrderComesAgain) {
  EXPECT_EQ(script::RunsOfOrders({1, 5}, 0, 2), (Steps{1, 5}));
  EXPECT_EQ(script::RunsOfOrders({1, 5}, 0, 3), (Steps{1, 5, 1, 5, 1, 5}));
  EXPECT_EQ(script::RunsOfOrders({1, 5, 2}, 0, 2), (Steps{1, 5, 2, 1, 5, 2}));
}

TEST(StreamOrders, RepeatedStepsAreNotRepeatedAgain) {
  const Steps once = script::RunsOfOrders({1, 5}, 0, 3);
  EXPECT_EQ(script::RunsOfOrders(once, 0, 3), once);
}

TEST(StreamOrders, ASingleStepTakesTurnsWithTheOther) {
  EXPECT_EQ(script::RunsOfOrders({1}, 0, 2), (Steps{1, 0}));
  EXPECT_EQ(script::RunsOfOrders({1}, 0, 3), (Steps{1, 0, 1, 0, 1, 0}));
}

TEST(StreamOrders, ThereAreAsManyAsTheWidestGraphHasStreamsAndPlantedOnesBesides) {
  EXPECT_EQ(script::StreamsOf(nullptr, {}), 1);
  analyzer::plan::Plan plan;
  plan.regions.resize(2);
  plan.regions[0].placements = {{.call_id = 1, .stream = 0}, {.call_id = 2, .stream = 1}};
  plan.regions[1].placements = {{.call_id = 3, .stream = 2}};
  EXPECT_EQ(script::StreamsOf(&plan, {}), 3);
  EXPECT_EQ(script::StreamsOf(
                &plan, {{script::FaultKind::kMissingWait, 2}, {script::FaultKind::kWrongBits, 3}}),
            4);
}

}  // namespace
}  // namespace acltape::replayer
