#include <gtest/gtest.h>

#include "analyzer/streams/chain_cover.h"
#include "analyzer/streams/list_schedule.h"
#include "analyzer/streams/race_checker.h"
#include "analyzer/streams/waits.h"
#include "tests/analyzer/random_dag.h"

namespace acltape::analyzer {
namespace {

using namespace test;

streams::Dag MakeDag(size_t nodes, std::vector<streams::DagEdge> edges) {
  streams::Dag dag;
  dag.nodes.resize(nodes);
  dag.edges = std::move(edges);
  return dag;
}

TEST(PartialOrder, LeavesOutEdgesThatOthersImply) {
  const streams::PartialOrder order(MakeDag(5, {{0, 2}, {0, 1}, {1, 2}, {0, 3}, {2, 3}, {1, 4}}));
  EXPECT_EQ(order.covers(), (std::vector<streams::DagEdge>{{0, 1}, {1, 2}, {1, 4}, {2, 3}}));
  EXPECT_TRUE(order.Before(0, 3));
  EXPECT_TRUE(order.Before(0, 4));
  EXPECT_FALSE(order.Before(3, 4));
  EXPECT_FALSE(order.Before(4, 3));
}

TEST(MaximumAntichain, IsWhatCanRunAtTheSameTime) {
  EXPECT_EQ(streams::MaximumAntichain(streams::PartialOrder(MakeDag(0, {}))),
            (std::vector<int32_t>{}));
  EXPECT_EQ(streams::MaximumAntichain(streams::PartialOrder(MakeDag(3, {}))),
            (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(streams::MaximumAntichain(streams::PartialOrder(MakeDag(3, {{0, 1}, {1, 2}}))).size(),
            1u);
  EXPECT_EQ(streams::MaximumAntichain(streams::PartialOrder(
                MakeDag(6, {{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 4}, {3, 4}, {4, 5}}))),
            (std::vector<int32_t>{1, 2, 3}));
}

TEST(CoverByChains, GivesADiamondTwoStreamsAndTwoWaits) {
  const streams::Dag dag = MakeDag(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}});
  const streams::StreamAssignment cover = streams::CoverByChains(dag, streams::PartialOrder(dag));
  EXPECT_EQ(cover.streams, 2);
  EXPECT_EQ(cover.waits.size(), 2u);
  EXPECT_EQ(streams::CountRecords(cover), 2);
  EXPECT_EQ(cover.events, 1);  // 3 waits after 2, which the first waiter is before
}

// Two chains cross at 4: the width is 2, but paths of the reduction alone leave three pieces.
TEST(CoverByChains, ReachesTheWidthOverPairsThatAreNoEdges) {
  const streams::Dag dag = MakeDag(5, {{0, 2}, {1, 2}, {2, 3}, {2, 4}});
  const streams::StreamAssignment cover = streams::CoverByChains(dag, streams::PartialOrder(dag));
  EXPECT_EQ(cover.streams, 2);
  EXPECT_EQ(cover.waits.size(), 2u);
}

TEST(CoverByChains, TakesNoNodesAndNodesWithoutEdges) {
  const streams::Dag none = MakeDag(0, {});
  EXPECT_EQ(streams::CoverByChains(none, streams::PartialOrder(none)).streams, 1);
  const streams::Dag loose = MakeDag(3, {});
  const streams::StreamAssignment cover =
      streams::CoverByChains(loose, streams::PartialOrder(loose));
  EXPECT_EQ(cover.stream_of, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_TRUE(cover.waits.empty());
  EXPECT_EQ(cover.events, 0);
}

TEST(PlaceWaits, WaitsOnceWhereTheStreamsOwnOrderGivesTheRest) {
  // 0 -> 2, 1 -> 2, 0 -> 3 with {0, 1} and {2, 3} on streams: after 1 is after 0.
  const streams::Dag dag = MakeDag(4, {{0, 2}, {1, 2}, {0, 3}});
  streams::StreamAssignment assignment;
  assignment.streams = 2;
  assignment.stream_of = {0, 0, 1, 1};
  assignment.order = {0, 1, 2, 3};
  streams::PlaceWaits(dag, assignment);
  EXPECT_EQ(assignment.waits, (std::vector<streams::StreamWait>{{1, 2, 0}}));
}

TEST(PlaceWaits, RecordsOnceForSeveralWaitersAndKeepsTheEventUntilTheLast) {
  // 0 feeds 1 and 2 on streams of their own; 3 and 5 follow on stream 0, 4 and 6 wait for them.
  const streams::Dag dag = MakeDag(7, {{0, 1}, {0, 2}, {1, 3}, {3, 4}, {2, 5}, {4, 5}, {5, 6}});
  streams::StreamAssignment assignment;
  assignment.streams = 3;
  assignment.stream_of = {0, 1, 2, 0, 1, 0, 1};
  assignment.order = {0, 1, 2, 3, 4, 5, 6};
  streams::PlaceWaits(dag, assignment);
  // 3 is not after 2, which may still wait for event 0, so 3 takes the event of 1; 5 is after 2.
  EXPECT_EQ(assignment.waits,
            (std::vector<streams::StreamWait>{
                {0, 1, 0}, {0, 2, 0}, {1, 3, 1}, {3, 4, 1}, {2, 5, 2}, {4, 5, 1}, {5, 6, 0}}));
  EXPECT_EQ(streams::CountRecords(assignment), 6);
  EXPECT_EQ(assignment.events, 3);
  EXPECT_TRUE(streams::CheckAssignment(assignment, AccessesOf(dag)).races().empty());
}

// Every way to put nodes on chains, by trying: the fewest chains and, with those, the fewest waits.
class EveryCover {
 public:
  EveryCover(const streams::Dag& dag, const streams::PartialOrder& order)
      : dag_(dag), order_(order) {
    assignment_.stream_of.resize(dag.nodes.size());
    for (size_t i = 0; i < dag.nodes.size(); ++i) {
      assignment_.order.push_back(static_cast<int32_t>(i));
    }
    Place(0);
  }
  size_t streams = SIZE_MAX;
  size_t waits = SIZE_MAX;

 private:
  void Place(size_t node) {
    if (ends_.size() > streams) return;
    if (node == dag_.nodes.size()) {
      assignment_.streams = static_cast<int32_t>(ends_.size());
      streams::PlaceWaits(dag_, assignment_);
      if (ends_.size() < streams) waits = SIZE_MAX;
      streams = ends_.size();
      waits = std::min(waits, assignment_.waits.size());
      return;
    }
    for (size_t chain = 0; chain < ends_.size(); ++chain) {
      const size_t end = ends_[chain];
      if (!order_.Before(end, node)) continue;
      ends_[chain] = node;
      assignment_.stream_of[node] = static_cast<int32_t>(chain);
      Place(node + 1);
      ends_[chain] = end;
    }
    assignment_.stream_of[node] = static_cast<int32_t>(ends_.size());
    ends_.push_back(node);
    Place(node + 1);
    ends_.pop_back();
  }

  const streams::Dag& dag_;
  const streams::PartialOrder& order_;
  streams::StreamAssignment assignment_;
  std::vector<size_t> ends_;
};

TEST(CoverByChains, HasTheFewestStreamsAndTheFewestWaitsOfAllCovers) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    const DagFamily family = kDagFamilies[seed % 4];
    SCOPED_TRACE(std::string(FamilyName(family)) + " seed " + std::to_string(seed));
    const RandomDag random(family, 4 + seed % 7, seed);
    const streams::PartialOrder order(random.dag());
    const streams::StreamAssignment cover = streams::CoverByChains(random.dag(), order);
    const EveryCover best(random.dag(), order);
    ASSERT_EQ(static_cast<size_t>(cover.streams), best.streams);
    ASSERT_EQ(cover.waits.size(), best.waits);
  }
}

// Streams at the width, with the waits of forks and joins never more waits than Nimble's streams
// need at the least, and without them neither where Nimble has as few streams. With more streams
// than the width Nimble may have fewer waits between nodes; that is counted.
TEST(CoverByChains, HoldsItsPromisesOnAThousandRandomDags) {
  const streams::StreamCosts costs = {.saturates = {}};
  int64_t waits = 0;
  int64_t merged_waits = 0;
  int merged_above = 0;  // more waits than Nimble's even so
  int64_t nimble_runtime_waits = 0;
  int nimble_above_width = 0;
  int nimble_fewer_waits = 0;  // with more streams
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    const DagFamily family = kDagFamilies[seed % 4];
    SCOPED_TRACE(std::string(FamilyName(family)) + " seed " + std::to_string(seed));
    const RandomDag random(family, 10 + (seed * 7919) % 391, seed);
    const streams::Dag& dag = random.dag();
    const streams::PartialOrder order(dag);
    const streams::StreamAssignment cover = streams::CoverByChains(dag, order);
    const streams::NimbleAssignment nimble = streams::AssignLikeNimble(dag, order);
    const std::vector<int32_t> antichain = streams::MaximumAntichain(order);
    for (const int32_t a : antichain) {
      for (const int32_t b : antichain) ASSERT_FALSE(order.Before(a, b));
    }
    ASSERT_EQ(static_cast<size_t>(cover.streams), antichain.size());
    ASSERT_GE(nimble.assignment.streams, cover.streams);
    const size_t own = cover.waits.size();
    const size_t theirs = nimble.assignment.waits.size();
    ASSERT_LE(own + 2 * static_cast<size_t>(cover.streams),
              theirs + 2 * static_cast<size_t>(nimble.assignment.streams));
    if (nimble.assignment.streams == cover.streams) {
      ASSERT_LE(own, theirs);
    } else {
      ++nimble_above_width;
      nimble_fewer_waits += own > theirs ? 1 : 0;
    }
    ASSERT_LE(nimble.assignment.waits.size(), static_cast<size_t>(nimble.runtime_waits));
    ASSERT_LE(own,
              static_cast<size_t>(nimble.runtime_waits));  // the waits that Nimble really issues
    ASSERT_TRUE(streams::CheckAssignment(cover, AccessesOf(dag)).races().empty());
    const streams::StreamAssignment merged = streams::MergeWaits(dag, cover, costs);
    ASSERT_EQ(merged.stream_of, cover.stream_of);
    merged_above += merged.waits.size() > theirs ? 1 : 0;
    ASSERT_LE(streams::Simulate(dag, merged, costs).makespan_ns,
              streams::Simulate(dag, cover, costs).makespan_ns);
    ASSERT_TRUE(streams::CheckAssignment(merged, AccessesOf(dag)).races().empty());
    merged_waits += static_cast<int64_t>(merged.waits.size());
    ASSERT_TRUE(streams::CheckAssignment(nimble.assignment, AccessesOf(dag)).races().empty());
    if (!cover.waits.empty()) {  // every wait is needed
      streams::StreamAssignment less = cover;
      less.waits.erase(less.waits.begin() + static_cast<int64_t>(seed % cover.waits.size()));
      ASSERT_FALSE(streams::CheckAssignment(less, AccessesOf(dag)).races().empty());
    }
    waits += static_cast<int64_t>(cover.waits.size());
    nimble_runtime_waits += nimble.runtime_waits;
  }
  EXPECT_LT(merged_above, 10);
  EXPECT_LT(merged_waits, waits);
  EXPECT_LT(waits * 2, nimble_runtime_waits);
  EXPECT_GT(nimble_above_width, 100);
  EXPECT_LT(nimble_fewer_waits, 50);
}

}  // namespace
}  // namespace acltape::analyzer
