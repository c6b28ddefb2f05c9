#include <gtest/gtest.h>

#include <random>
#include <set>

#include "analyzer/streams/list_schedule.h"
#include "analyzer/streams/plan_streams.h"
#include "analyzer/streams/race_checker.h"
#include "analyzer/streams/waits.h"
#include "tests/analyzer/random_dag.h"

namespace acltape::analyzer {
namespace {

using namespace test;

constexpr streams::StreamCosts kCosts = {.record_ns = 1, .wait_ns = 2};

struct Node {
  double duration_ns;
  streams::Resource resource;
};

streams::Dag MakeDag(const std::vector<Node>& nodes, std::vector<streams::DagEdge> edges) {
  streams::Dag dag;
  for (const Node& node : nodes) dag.nodes.push_back({node.duration_ns, node.resource});
  dag.edges = std::move(edges);
  return dag;
}

streams::StreamAssignment OnStreams(const streams::Dag& dag, std::vector<int32_t> stream_of) {
  streams::StreamAssignment assignment;
  assignment.streams = *std::max_element(stream_of.begin(), stream_of.end()) + 1;
  assignment.stream_of = std::move(stream_of);
  for (size_t i = 0; i < dag.nodes.size(); ++i) {
    assignment.order.push_back(static_cast<int32_t>(i));
  }
  streams::PlaceWaits(dag, assignment);
  return assignment;
}

// 0 feeds 1 and 2, both feed 3.
streams::Dag Diamond(streams::Resource left, streams::Resource right) {
  return MakeDag({{10, streams::Resource::kVector},
                  {100, left},
                  {80, right},
                  {10, streams::Resource::kVector}},
                 {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
}

TEST(Simulate, AddsUpDurationsOnOneStream) {
  const streams::Dag dag = Diamond(streams::Resource::kCube, streams::Resource::kVector);
  const streams::Schedule schedule = streams::Simulate(dag, OnStreams(dag, {0, 0, 0, 0}), kCosts);
  EXPECT_EQ(schedule.start_ns, (std::vector<double>{0, 10, 110, 190}));
  EXPECT_EQ(schedule.makespan_ns, 200);
}

TEST(Simulate, CountsForkRecordsWaitsAndJoin) {
  const streams::Dag dag = Diamond(streams::Resource::kCube, streams::Resource::kVector);
  const streams::Schedule schedule = streams::Simulate(dag, OnStreams(dag, {0, 0, 1, 0}), kCosts);
  // Fork record 1; 0 ends at 11; its record until 12; 1 from there; 2 waits until 14 and ends at
  // 94, its record at 95; 3 awaits 1 (112), then waits for 2 until 114.
  EXPECT_EQ(schedule.start_ns, (std::vector<double>{1, 12, 14, 114}));
  EXPECT_EQ(schedule.awaited, (std::vector<int32_t>{-1, 0, 0, 1}));
  // The join: side stream free at 95, recorded at 96; the origin at 124 waits until 126.
  EXPECT_EQ(schedule.makespan_ns, 126);
  EXPECT_EQ(schedule.last, 3);
}

TEST(Simulate, RunsNodesOfASaturatedResourceOneAfterTheOther) {
  const streams::Dag dag = Diamond(streams::Resource::kVector, streams::Resource::kVector);
  const streams::StreamAssignment assignment = OnStreams(dag, {0, 0, 1, 0});
  const streams::Schedule schedule = streams::Simulate(dag, assignment, kCosts);
  EXPECT_EQ(schedule.start_ns[2], schedule.end_ns[1]);
  EXPECT_EQ(schedule.awaited[2], 1);
  streams::StreamCosts parallel = kCosts;
  parallel.saturates = {};
  EXPECT_EQ(streams::Simulate(dag, assignment, parallel).makespan_ns, 126);
}

TEST(Simulate, RunsAllNodesOneAfterTheOtherWhereStreamsDoNotOverlap) {
  const streams::Dag dag = Diamond(streams::Resource::kCube, streams::Resource::kVector);
  streams::StreamCosts serial = kCosts;
  serial.overlaps = false;
  const streams::Schedule schedule = streams::Simulate(dag, OnStreams(dag, {0, 0, 1, 0}), serial);
  EXPECT_EQ(schedule.start_ns[2], schedule.end_ns[1]);
  EXPECT_EQ(streams::BoundMakespan(dag, 2, serial).Greatest(), 200);
}

TEST(Simulate, KeepsStreamsEdgesAndSaturatedResourcesInOrder) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomDag random(kDagFamilies[seed % 4], 5 + seed % 60, seed);
    const streams::Dag& dag = random.dag();
    std::vector<int32_t> stream_of;
    std::mt19937 draw(seed);
    for (size_t i = 0; i < dag.nodes.size(); ++i)
      stream_of.push_back(static_cast<int32_t>(draw() % 3));
    const streams::StreamAssignment assignment = OnStreams(dag, stream_of);
    const streams::Schedule schedule = streams::Simulate(dag, assignment, kCosts);
    for (const streams::DagEdge& edge : dag.edges) {
      ASSERT_GE(schedule.start_ns[edge.to], schedule.end_ns[edge.from]);
    }
    for (size_t a = 0; a < dag.nodes.size(); ++a) {
      ASSERT_NEAR(schedule.end_ns[a] - schedule.start_ns[a], dag.nodes[a].duration_ns, 1e-6);
      for (size_t b = a + 1; b < dag.nodes.size(); ++b) {
        if (stream_of[a] == stream_of[b]) {
          ASSERT_LE(schedule.end_ns[a], schedule.start_ns[b]);
        }
        if (dag.nodes[a].resource != dag.nodes[b].resource) continue;
        ASSERT_TRUE(schedule.end_ns[a] <= schedule.start_ns[b] ||
                    schedule.end_ns[b] <= schedule.start_ns[a]);
      }
    }
    ASSERT_GE(schedule.makespan_ns, streams::BoundMakespan(dag, 3, kCosts).Greatest());
  }
}

TEST(MergeWaits, WaitsOnceForSeveralThatHaveEndedAnyway) {
  // 0 and 1 run on stream 1, short; 3 and 4 on stream 0 need them, after the long 2.
  const streams::Dag dag = MakeDag({{10, streams::Resource::kCopy},
                                    {10, streams::Resource::kCopy},
                                    {500, streams::Resource::kCube},
                                    {10, streams::Resource::kVector},
                                    {10, streams::Resource::kVector}},
                                   {{0, 3}, {1, 4}, {2, 3}, {3, 4}});
  const streams::StreamAssignment apart = OnStreams(dag, {1, 1, 0, 0, 0});
  EXPECT_EQ(apart.waits, (std::vector<streams::StreamWait>{{0, 3, 0}, {1, 4, 1}}));
  const streams::StreamAssignment merged = streams::MergeWaits(dag, apart, kCosts);
  EXPECT_EQ(merged.waits, (std::vector<streams::StreamWait>{{1, 3, 0}}));
}

TEST(MergeWaits, KeepsAWaitThatWouldHoldUpAnother) {
  // 1 takes longer than 2, so 3 must not wait for it.
  const streams::Dag dag = MakeDag({{10, streams::Resource::kCopy},
                                    {900, streams::Resource::kCopy},
                                    {500, streams::Resource::kCube},
                                    {10, streams::Resource::kVector},
                                    {10, streams::Resource::kVector}},
                                   {{0, 3}, {1, 4}, {2, 3}, {3, 4}});
  EXPECT_EQ(streams::MergeWaits(dag, OnStreams(dag, {1, 1, 0, 0, 0}), kCosts).waits.size(), 2u);
}

streams::StreamCertificate Certify(const streams::Dag& dag, const streams::StreamOptions& options,
                                   streams::StreamAssignment* assignment = nullptr) {
  streams::StreamCertificate certificate;
  const streams::StreamAssignment planned = streams::PlanStreams(dag, options, &certificate);
  if (assignment != nullptr) *assignment = planned;
  return certificate;
}

TEST(PlanStreams, OverlapsWhatUsesDifferentResources) {
  streams::StreamAssignment assignment;
  const streams::StreamCertificate certificate =
      Certify(Diamond(streams::Resource::kCube, streams::Resource::kVector), {.costs = kCosts},
              &assignment);
  EXPECT_EQ(certificate.width, 2);
  EXPECT_EQ(certificate.streams, 2);
  EXPECT_EQ(certificate.one_stream_ns, 200);
  EXPECT_EQ(certificate.bound.Greatest(), 120);  // the critical path
  EXPECT_EQ(certificate.makespan_ns, 126);
  EXPECT_NEAR(certificate.gap, 0.05, 1e-9);
  EXPECT_EQ(certificate.waits, 2);
  EXPECT_EQ(certificate.records, 2);
  EXPECT_EQ(certificate.races, 0);
  EXPECT_EQ(certificate.reason, "");
  // Origin: 3 tasks, record after 0, wait before 3, record of the fork, join. Side: fork, wait,
  // task, record after 2, record of the join.
  EXPECT_EQ(certificate.load.streams[0].entries(), 3 + 1 + 4 + 1 + 4);
  EXPECT_EQ(certificate.load.streams[1].entries(), 4 + 4 + 1 + 1 + 1);
}

TEST(PlanStreams, SaysWhyOneStreamIsBest) {
  const streams::Dag chain =
      MakeDag({{10, streams::Resource::kCube}, {10, streams::Resource::kVector}}, {{0, 1}});
  const streams::Dag diamond = Diamond(streams::Resource::kCube, streams::Resource::kVector);
  const streams::Dag vectors = Diamond(streams::Resource::kVector, streams::Resource::kVector);
  const streams::Dag lopsided = MakeDag({{9000, streams::Resource::kCube},
                                         {9000, streams::Resource::kVector},
                                         {20, streams::Resource::kCopy}},
                                        {{0, 1}});
  const streams::StreamOptions defaults = {.costs = kCosts};
  streams::StreamOptions asked = defaults;
  asked.streams = 1;
  streams::StreamOptions dear = defaults;
  dear.costs.wait_ns = 500;
  const auto reason = [](const streams::Dag& dag, const streams::StreamOptions& options) {
    const streams::StreamCertificate certificate = Certify(dag, options);
    EXPECT_EQ(certificate.streams, 1);
    EXPECT_EQ(certificate.waits, 0);
    EXPECT_EQ(certificate.makespan_ns, certificate.one_stream_ns);
    return certificate.reason;
  };
  streams::StreamOptions serial = defaults;
  serial.costs.overlaps = false;
  EXPECT_EQ(reason(diamond, serial),
            "One stream, because the device runs the streams of a graph one after the other.");
  EXPECT_EQ(reason(streams::Dag{}, defaults), "One stream, because there is nothing to run.");
  EXPECT_EQ(reason(diamond, asked), "One stream, as asked for.");
  EXPECT_EQ(reason(chain, defaults), "One stream, because each node needs the one before it.");
  EXPECT_EQ(reason(vectors, defaults),
            "One stream, because vector work is 100 % of the time and is no faster on several.");
  EXPECT_EQ(reason(lopsided, defaults),
            "One stream, because the critical path takes 18.0 us of the 18.0 us.");
  EXPECT_EQ(
      reason(diamond, dear),
      "One stream, because the best on 2 would take 1.3 us longer than its 0.2 us: 3 waits, forks "
      "and joins cost 1.5 us.");
}

TEST(PlanStreams, UsesSeveralStreamsAgainstAllReasonWhenTold) {
  const streams::StreamCertificate certificate = Certify(
      Diamond(streams::Resource::kVector, streams::Resource::kVector), {.several_if_slower = true});
  EXPECT_EQ(certificate.streams, 2);
  EXPECT_GT(certificate.makespan_ns, certificate.one_stream_ns);
  EXPECT_EQ(certificate.races, 0);
}

TEST(PlanStreams, TakesNodesWithoutDurationsAsEqual) {
  streams::Dag dag = Diamond(streams::Resource::kCube, streams::Resource::kVector);
  for (streams::DagNode& node : dag.nodes) node.duration_ns = 0;
  EXPECT_EQ(Certify(dag, {.costs = kCosts}).one_stream_ns, 4000);
}

// 0 and 1 are uploaded before the region, and so is 5, which nothing reads.
TEST(PlanStreams, PutsNodesWithoutTasksOnTheStreamOfTheirFirstReader) {
  streams::Dag dag = MakeDag({{0, streams::Resource::kVector},
                              {0, streams::Resource::kVector},
                              {100, streams::Resource::kCube},
                              {80, streams::Resource::kVector},
                              {10, streams::Resource::kVector},
                              {0, streams::Resource::kVector}},
                             {{0, 2}, {1, 3}, {2, 4}, {3, 4}, {3, 5}});
  for (const size_t node : {0, 1, 5}) dag.nodes[node].tasks = 0;
  streams::StreamAssignment assignment;
  const streams::StreamCertificate certificate = Certify(dag, {.costs = kCosts}, &assignment);
  EXPECT_EQ(certificate.streams, 2);
  EXPECT_EQ(certificate.nodes, 6);
  EXPECT_NE(assignment.stream_of[2], assignment.stream_of[3]);
  EXPECT_EQ(assignment.stream_of[0], assignment.stream_of[2]);
  EXPECT_EQ(assignment.stream_of[1], assignment.stream_of[3]);
  EXPECT_EQ(assignment.stream_of[5], assignment.stream_of[3]);
  EXPECT_EQ(certificate.waits, 1);
}

// Two independent nodes without tasks beside a chain are no second stream, even when one is wanted.
TEST(PlanStreams, NeedsTasksForASecondStream) {
  streams::Dag dag = MakeDag({{0, streams::Resource::kVector},
                              {10, streams::Resource::kVector},
                              {0, streams::Resource::kVector},
                              {10, streams::Resource::kVector}},
                             {{0, 1}, {1, 3}, {2, 3}});
  dag.nodes[0].tasks = dag.nodes[2].tasks = 0;
  const streams::StreamCertificate certificate = Certify(dag, {.several_if_slower = true});
  EXPECT_EQ(certificate.streams, 1);
  EXPECT_EQ(certificate.reason, "One stream, because each node needs the one before it.");
}

TEST(PlanStreams, PlansWhatHasTasksAsIfTheRestWereNotThereAndOrdersAll) {
  int with_both = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomDag random(kDagFamilies[seed % 4], 3 + seed % 40, seed);
    streams::Dag dag = random.dag();
    std::mt19937 draw(seed);
    for (streams::DagNode& node : dag.nodes) {
      if (draw() % 3 != 0) continue;
      node.tasks = 0;
      node.duration_ns = 0;
    }
    streams::StreamAssignment assignment;
    const streams::StreamCertificate certificate = Certify(dag, {.costs = kCosts}, &assignment);
    ASSERT_EQ(certificate.races, 0);
    std::vector<size_t> issued(dag.nodes.size());
    for (size_t i = 0; i < assignment.order.size(); ++i) issued[assignment.order[i]] = i;
    for (const streams::DagEdge& edge : dag.edges) ASSERT_LT(issued[edge.from], issued[edge.to]);
    std::vector<int32_t> order = assignment.order;
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], static_cast<int32_t>(i));
    std::set<int32_t> working;  // streams
    for (size_t node = 0; node < dag.nodes.size(); ++node) {
      if (dag.nodes[node].tasks > 0) working.insert(assignment.stream_of[node]);
    }
    if (working.empty()) continue;
    ASSERT_EQ(static_cast<int32_t>(working.size()), certificate.streams);
    with_both += certificate.streams > 1 ? 1 : 0;
  }
  EXPECT_GT(with_both, 40);
}

TEST(PlanStreams, KeepsItsPromisesOnRandomDags) {
  double gap = 0;
  int several = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const DagFamily family = kDagFamilies[seed % 4];
    const RandomDag random(family, 2 + (seed * 7919) % 99, seed);
    const streams::Dag& dag = random.dag();
    double before_ns = streams::TotalWork(dag);
    for (const int32_t streams : {1, 2, 4, 0}) {
      SCOPED_TRACE(std::string(FamilyName(family)) + " seed " + std::to_string(seed) + " streams " +
                   std::to_string(streams));
      streams::StreamAssignment assignment;
      const streams::StreamCertificate certificate =
          Certify(dag, {.streams = streams}, &assignment);
      ASSERT_EQ(certificate.races, 0);
      ASSERT_TRUE(streams::CheckAssignment(assignment, AccessesOf(dag)).races().empty());
      ASSERT_LE(certificate.streams, streams == 0 ? certificate.width : streams);
      ASSERT_EQ(certificate.streams == 1, !certificate.reason.empty());
      ASSERT_EQ(certificate.streams,
                *std::max_element(assignment.stream_of.begin(), assignment.stream_of.end()) + 1);
      ASSERT_EQ(assignment.stream_of[assignment.order[0]], 0);
      ASSERT_LE(certificate.makespan_ns, certificate.one_stream_ns);
      ASSERT_GE(certificate.makespan_ns, certificate.bound.Greatest() * (1 - 1e-9));
      // More streams are not worse, but for the noise.
      ASSERT_LE(certificate.makespan_ns, before_ns * 1.011);
      before_ns = std::min(before_ns, certificate.makespan_ns);
      std::vector<int32_t> order = assignment.order;
      std::sort(order.begin(), order.end());
      for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], static_cast<int32_t>(i));
      if (streams != 4) continue;
      gap += certificate.gap;
      several += certificate.streams > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(several, 75);
  EXPECT_LT(gap / 100, 0.15);
}

// The least makespan of all assignments and all orders.
class EverySchedule {
 public:
  EverySchedule(const streams::Dag& dag, int32_t streams)
      : dag_(dag), parents_(dag.nodes.size(), 0) {
    assignment_.streams = streams;
    assignment_.stream_of.resize(dag.nodes.size());
    for (const streams::DagEdge& edge : dag.edges) ++parents_[edge.to];
    placed_.assign(dag.nodes.size(), false);
    Place();
  }
  double least_ns = 1e300;

 private:
  void Place() {
    if (assignment_.order.size() == dag_.nodes.size()) {
      streams::PlaceWaits(dag_, assignment_);
      least_ns = std::min(least_ns, streams::Simulate(dag_, assignment_, {}).makespan_ns);
      return;
    }
    for (size_t node = 0; node < dag_.nodes.size(); ++node) {
      if (placed_[node] || parents_[node] > 0) continue;
      placed_[node] = true;
      assignment_.order.push_back(static_cast<int32_t>(node));
      for (const streams::DagEdge& edge : dag_.edges)
        parents_[edge.to] -= edge.from == static_cast<int32_t>(node);
      for (int32_t stream = 0; stream < assignment_.streams; ++stream) {
        if (assignment_.order.size() == 1 && stream > 0) break;
        assignment_.stream_of[node] = stream;
        Place();
      }
      for (const streams::DagEdge& edge : dag_.edges)
        parents_[edge.to] += edge.from == static_cast<int32_t>(node);
      assignment_.order.pop_back();
      placed_[node] = false;
    }
  }

  const streams::Dag& dag_;
  streams::StreamAssignment assignment_;
  std::vector<int32_t> parents_;
  std::vector<char> placed_;
};

TEST(PlanStreams, ComesCloseToTheBestOfAllSchedulesOfSmallDags) {
  double worst = 0;
  double sum = 0;
  int count = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const RandomDag random(kDagFamilies[seed % 4], 6, seed);
    const double best_ns =
        std::min(EverySchedule(random.dag(), 2).least_ns, streams::TotalWork(random.dag()));
    const double planned_ns = Certify(random.dag(), {.streams = 2}).makespan_ns;
    ASSERT_GE(planned_ns, best_ns * (1 - 1e-9)) << "seed " << seed;
    worst = std::max(worst, planned_ns / best_ns - 1);
    sum += planned_ns / best_ns - 1;
    ++count;
  }
  EXPECT_LT(sum / count, 0.02);
  EXPECT_LT(worst, 0.25);
}

TEST(PlanStreams, FallsBackToListSchedulesForLargeRegions) {
  const RandomDag random(DagFamily::kLayered, streams::kMostClosureNodes + 1, 1);
  const streams::StreamCertificate certificate = Certify(random.dag(), {.streams = 3});
  EXPECT_EQ(certificate.width, -1);
  EXPECT_EQ(certificate.covers, -1);
  EXPECT_GT(certificate.streams, 1);
  EXPECT_EQ(certificate.races, 0);
  EXPECT_LT(certificate.makespan_ns, certificate.one_stream_ns);
}

}  // namespace
}  // namespace acltape::analyzer
