#include <gtest/gtest.h>

#include "analyzer/streams/budget.h"

namespace acltape::analyzer {
namespace {

TEST(PlanBudget, AStreamTakesANumberPerFullQueue) {
  EXPECT_EQ((streams::StreamLoad{0, 0, 0}.numbers()), 1);
  EXPECT_EQ((streams::StreamLoad{2016, 0, 0}.numbers()), 1);
  EXPECT_EQ((streams::StreamLoad{2017, 0, 0}.numbers()), 2);
  EXPECT_EQ((streams::StreamLoad{1000, 16, 250}.entries()), 2016);
  EXPECT_EQ((streams::StreamLoad{1000, 17, 250}.numbers()), 2);
}

TEST(PlanBudget, OneStreamHasNeitherForkNorJoin) {
  streams::StreamAssignment assignment;
  assignment.stream_of = {0, 0, 0};
  assignment.order = {0, 1, 2};
  const streams::GraphLoad load = streams::LoadOf(assignment, {});
  ASSERT_EQ(load.streams.size(), 1u);
  EXPECT_EQ(load.entries(), 3);
  EXPECT_EQ(load.events, 0);
}

TEST(PlanBudget, WaitsForksAndJoinsAreCounted) {
  // 0 -> 1 on the origin; 2 on a side stream waits for 0; 3 on another waits for the same record.
  streams::StreamAssignment assignment;
  assignment.streams = 4;  // stream 3 has no work: it is not forked
  assignment.stream_of = {0, 0, 1, 2};
  assignment.order = {0, 1, 2, 3};
  assignment.waits = {{0, 2, 0}, {0, 3, 0}};
  assignment.events = 1;
  const streams::GraphLoad load = streams::LoadOf(assignment, std::vector<int32_t>{1, 1, 2, 0});
  ASSERT_EQ(load.streams.size(), 3u);
  EXPECT_EQ(load.streams[0].tasks, 2);
  EXPECT_EQ(load.streams[0].records, 2);  // the shared one, the fork
  EXPECT_EQ(load.streams[0].waits, 2);    // two joins
  EXPECT_EQ(load.streams[1].tasks, 2);
  EXPECT_EQ(load.streams[2].tasks, 0);
  EXPECT_EQ(load.streams[2].waits, 2);
  EXPECT_EQ(load.streams[2].records, 1);
  EXPECT_EQ(load.events, 1 + 1 + 2);
}

TEST(PlanBudget, TheLongestNameOfASocCounts) {
  EXPECT_EQ(streams::FindSoc("Ascend910B1")->streams, 1984);
  EXPECT_EQ(streams::FindSoc("Ascend910B1")->usable_streams(), 1920);
  EXPECT_EQ(streams::FindSoc("Ascend910_9382")->name, "Ascend910_93");
  EXPECT_EQ(streams::FindSoc("Ascend910A")->streams, 2048);
  EXPECT_EQ(streams::FindSoc("Ascend310P3")->streams, 1024);
  EXPECT_EQ(streams::FindSoc("Ascend310B4")->streams, 512);
  EXPECT_EQ(streams::FindSoc("Granite1"), nullptr);
}

TEST(PlanBudget, GraphsPerLayerAndSizeOutrunTheStreams) {
  // The known case: 40 layers, each captured for 67 sizes, are 2680 graphs for 1920 streams.
  const std::vector<streams::GraphLoad> graphs(
      40 * 67, streams::GraphLoad{{streams::StreamLoad{30, 0, 0}}, 0});
  const streams::SocLimits& soc = *streams::FindSoc("Ascend910B1");
  const streams::GraphsFit fit = streams::GraphsThatFit(graphs, soc.usable_streams(), 1 << 20);
  EXPECT_EQ(fit.graphs, 1920);
  EXPECT_FALSE(fit.models_ran_out);
  EXPECT_EQ(
      streams::GraphsThatFit(std::span(graphs).first(1920), soc.usable_streams(), 1 << 20).graphs,
      1920);
}

TEST(PlanBudget, ModelsMayRunOutFirst) {
  const std::vector<streams::GraphLoad> graphs(
      10, streams::GraphLoad{{streams::StreamLoad{1, 0, 0}}, 0});
  const streams::GraphsFit fit = streams::GraphsThatFit(graphs, 100, 4);
  EXPECT_EQ(fit.graphs, 4);
  EXPECT_TRUE(fit.models_ran_out);
}

}  // namespace
}  // namespace acltape::analyzer
