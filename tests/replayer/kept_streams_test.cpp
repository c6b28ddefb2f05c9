// Calls moved from side streams to the main one lose their concurrency and no order.
#include "replayer/script/kept_streams.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace acltape::replayer {
namespace {

// Returns for each leaf the leaves that it runs after, all by their index in the order of issue.
std::vector<std::set<size_t>> OrderOf(const IssuedRegion& region) {
  std::vector<std::set<size_t>> earlier(region.leaves.size());
  std::map<int, std::set<size_t>> of_stream;
  std::map<int, std::set<size_t>> of_event;
  for (size_t i = 0; i < region.leaves.size(); ++i) {
    const IssuedLeaf& leaf = region.leaves[i];
    std::set<size_t>& before = of_stream[leaf.stream];
    for (const int event : leaf.wait_for)
      before.insert(of_event[event].begin(), of_event[event].end());
    earlier[i] = before;
    before.insert(i);
    for (const int event : leaf.record) of_event[event] = before;
  }
  return earlier;
}

IssuedRegion RandomRegion(std::mt19937& random) {
  IssuedRegion region;
  region.captured = true;
  region.end = 1 + random() % 14;
  region.streams = 1;
  for (size_t place = 0; place < region.end; ++place) {
    IssuedLeaf leaf;
    leaf.place = place;
    leaf.stream = static_cast<int>(random() % 4);
    region.streams = std::max(region.streams, leaf.stream + 1);
    // An event may be recorded again: then who waits later waits for the later record.
    for (int event = 0; event < region.events; ++event) {
      if (random() % 4 == 0) leaf.wait_for.push_back(event);
    }
    if (random() % 3 == 0) leaf.record.push_back(region.events++);
    if (region.events > 1 && random() % 8 == 0) leaf.record.push_back(0);
    region.leaves.push_back(leaf);
  }
  std::shuffle(region.leaves.begin(), region.leaves.end(), random);
  return region;
}

TEST(KeptStreams, WhatStaysIsAsPlannedAndWhatMovesRunsOneAfterTheOther) {
  std::mt19937 random(3);
  int moved_calls = 0;
  for (int round = 0; round < 2000; ++round) {
    const IssuedRegion region = RandomRegion(random);
    std::vector<bool> stays(region.end);
    for (size_t place = 0; place < region.end; ++place) stays[place] = random() % 2 == 0;
    const IssuedRegion moved = script::MovedToMainStream(
        region, [&](size_t place) { return static_cast<bool>(stays[place]); });
    const auto planned = OrderOf(region);
    const auto order = OrderOf(moved);
    ASSERT_EQ(moved.leaves.size(), region.leaves.size());
    for (size_t i = 0; i < region.leaves.size(); ++i) {
      ASSERT_EQ(moved.leaves[i].place, region.leaves[i].place) << "the order of issue changed";
      ASSERT_EQ(moved.leaves[i].stream,
                stays[region.leaves[i].place] ? region.leaves[i].stream : 0);
      ASSERT_LT(moved.leaves[i].stream, moved.streams);
      for (const size_t before : planned[i]) {
        ASSERT_EQ(order[i].count(before), 1u) << "round " << round << ": " << i << " lost its wait";
      }
      for (size_t before = 0; before < i; ++before) {
        if (moved.leaves[i].stream != 0 || moved.leaves[before].stream != 0) continue;
        ASSERT_EQ(order[i].count(before), 1u);
        moved_calls += stays[region.leaves[i].place] ? 0 : 1;
      }
    }
  }
  EXPECT_GT(moved_calls, 1000);
}

TEST(KeptStreams, WithAllCallsKeptTheOrderIsThatOfThePlanAndNoOther) {
  std::mt19937 random(4);
  for (int round = 0; round < 500; ++round) {
    const IssuedRegion region = RandomRegion(random);
    EXPECT_EQ(OrderOf(script::MovedToMainStream(region, [](size_t) { return true; })),
              OrderOf(region));
  }
}

TEST(KeptStreams, WithNoCallKeptThereIsOneStreamAndNoEvent) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    const IssuedRegion moved =
        script::MovedToMainStream(RandomRegion(random), [](size_t) { return false; });
    EXPECT_EQ(moved.streams, 1);
    EXPECT_EQ(moved.events, 0);
    for (const IssuedLeaf& leaf : moved.leaves) {
      EXPECT_TRUE(leaf.wait_for.empty() && leaf.record.empty());
    }
  }
}

// 0 and 1 on the side stream, 2 on the main one waits for 1.
TEST(KeptStreams, WhereCallsOfOneStreamPartTheLaterOneWaits) {
  IssuedRegion region;
  region.end = 3;
  region.streams = 2;
  region.events = 1;
  region.leaves = {{0, 1, {}, {}}, {1, 1, {}, {0}}, {2, 0, {0}, {}}};
  const IssuedRegion first_moved =
      script::MovedToMainStream(region, [](size_t place) { return place != 0; });
  EXPECT_EQ(first_moved.leaves[0].record, std::vector<int>{0});
  EXPECT_EQ(first_moved.leaves[1].wait_for, std::vector<int>{0});
  EXPECT_EQ(first_moved.leaves[1].record, std::vector<int>{1});
  EXPECT_EQ(first_moved.leaves[2].wait_for, std::vector<int>{1});
  const IssuedRegion second_moved =
      script::MovedToMainStream(region, [](size_t place) { return place != 1; });
  EXPECT_EQ(second_moved.leaves[1].wait_for, std::vector<int>{0});
  EXPECT_TRUE(second_moved.leaves[2].wait_for.empty()) << "both are on the main stream now";
}

}  // namespace
}  // namespace acltape::replayer
