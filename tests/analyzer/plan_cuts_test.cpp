#include <gtest/gtest.h>

#include <random>

#include "analyzer/plan/cuts.h"
#include "analyzer/streams/budget.h"

namespace acltape::analyzer {
namespace {

// Twelve calls that save 10 each; launching a graph costs 15.
plan::CutProblem Plain(size_t calls = 12) {
  plan::CutProblem problem;
  problem.calls.resize(calls);
  for (plan::CutCall& call : problem.calls) call.host_ns = 10;
  problem.launch_ns = 15;
  return problem;
}

// "CCCeCC": captured and eager calls, regions apart by '|'.
std::string Picture(const plan::Cuts& cuts) {
  std::string text;
  for (const plan::CutRegion& region : cuts.regions) {
    if (!text.empty()) text += '|';
    text += std::string(region.end - region.first, region.captured ? 'C' : 'e');
  }
  return text;
}

TEST(Cuts, WithoutBarriersTheStepIsOneRegion) {
  const plan::Cuts cuts = plan::CutBest(Plain());
  EXPECT_EQ(Picture(cuts), "CCCCCCCCCCCC");
  EXPECT_DOUBLE_EQ(cuts.saving_ns, 12 * 10 - 15);
  EXPECT_EQ(cuts.regions[0].reason, "the step ends");
}

TEST(Cuts, AHardBarrierCutsAndTellsWhatItsRemovalGains) {
  plan::CutProblem problem = Plain();
  problem.calls[4].barrier = "host read";
  const plan::Cuts cuts = plan::CutBest(problem);
  EXPECT_EQ(Picture(cuts), "CCCC|e|CCCCCCC");
  EXPECT_EQ(cuts.regions[0].reason, "ends before a barrier: host read");
  EXPECT_EQ(cuts.regions[1].reason, "host read");
  EXPECT_DOUBLE_EQ(cuts.regions[1].gain_ns, 10 + 15);  // its own host time and one launch
}

TEST(Cuts, AnUpdateIsTakenInsideAndLeftOutAtTheEnd) {
  plan::CutProblem problem = Plain(6);
  problem.calls[2].update_ns = 20;  // costs 10 more than it saves, a cut would cost 15
  EXPECT_EQ(Picture(plan::CutBest(problem)), "CCCCCC");
  problem.calls[2].update_ns = 40;
  EXPECT_EQ(Picture(plan::CutBest(problem)), "CC|e|CCC");
  problem.calls[2].update_ns = 0;
  problem.calls[5].update_ns = 20;
  const plan::Cuts cuts = plan::CutBest(problem);
  EXPECT_EQ(Picture(cuts), "CCCCC|e");
  EXPECT_DOUBLE_EQ(cuts.regions[1].gain_ns, 10);
}

TEST(Cuts, AnInputIsCopiedOncePerRegion) {
  plan::CutProblem problem = Plain(6);
  problem.input_ns = {12};
  for (const size_t reader : {0u, 2u, 5u}) problem.calls[reader].inputs = {0};
  EXPECT_DOUBLE_EQ(plan::CutBest(problem).saving_ns, 6 * 10 - 15 - 12);
  EXPECT_EQ(Picture(plan::CutBest(problem)), "CCCCCC");
}

TEST(Cuts, ShortRunsAndRunsThatDoNotPayStayEagerWithTheReason) {
  plan::CutProblem problem = Plain(5);
  problem.calls[1].barrier = "host read";
  problem.minimum_region = 2;
  const plan::Cuts cuts = plan::CutBest(problem);
  EXPECT_EQ(Picture(cuts), "e|e|CCC");
  EXPECT_EQ(cuts.regions[0].reason, "too short: 1 of at least 2 calls");
  problem.launch_ns = 31;
  const plan::Cuts none = plan::CutBest(problem);
  EXPECT_EQ(none.captures(), 0);
  EXPECT_EQ(none.regions.back().reason, "launching and capturing a graph costs more than it saves");
}

TEST(Cuts, GraphsOfTheProgramAreCapturedAlreadyAndSaveNothing) {
  plan::CutProblem problem = Plain(9);
  for (size_t place = 3; place < 5; ++place) problem.calls[place].execution = 0;
  problem.calls[5].execution = 1;  // another graph, right after the first one
  const plan::Cuts cuts = plan::CutBest(problem);
  EXPECT_EQ(Picture(cuts), "CCC|CC|C|CCC");
  EXPECT_DOUBLE_EQ(cuts.saving_ns, 2 * (3 * 10 - 15));
  EXPECT_EQ(cuts.regions[0].reason, "ends before a graph of the program's own");
  for (const size_t own : {1u, 2u}) {
    EXPECT_TRUE(cuts.regions[own].already);
    EXPECT_EQ(cuts.regions[own].saving_ns, 0);
    EXPECT_EQ(cuts.regions[own].reason, "captured already, by the program");
  }
  EXPECT_FALSE(cuts.regions[3].already);
  EXPECT_EQ(Picture(plan::CutAround(problem, std::vector<bool>(9, false), "")), "CCC|CC|C|CCC");
}

TEST(Cuts, NoRegionReachesAcrossValuesFromOutside) {
  plan::CutProblem problem = Plain(6);
  problem.calls[3].begins_region = true;
  const plan::Cuts cuts = plan::CutBest(problem);
  EXPECT_EQ(Picture(cuts), "CCC|CCC");
  EXPECT_EQ(cuts.regions[0].reason, "ends before random values that come from outside");
}

TEST(Cuts, ExpectedReplaysDecideWhetherCapturePays) {
  plan::CutProblem problem = Plain(6);
  problem.capture_ns = 450;
  problem.expected_replays = 5;
  EXPECT_EQ(plan::CutBest(problem).captures(), 0);
  problem.expected_replays = 20;
  EXPECT_EQ(plan::CutBest(problem).captures(), 1);
}

TEST(Cuts, LimitsKeepTheRegionsThatSaveMost) {
  plan::CutProblem problem = Plain(12);
  problem.calls[3].barrier = problem.calls[6].barrier = "host read";  // runs of 3, 2 and 5
  EXPECT_EQ(Picture(plan::CutBest(problem)), "CCC|e|CC|e|CCCCC");
  problem.most_captures = 2;
  EXPECT_EQ(Picture(plan::CutBest(problem)), "CCC|e|ee|e|CCCCC");
  EXPECT_EQ(plan::CutBest(problem).regions[2].reason, "no graph or stream is left in the budget");
  problem.most_stream_numbers = 3;
  problem.streams = 2;  // each region takes two
  EXPECT_EQ(Picture(plan::CutBest(problem)), "eee|e|ee|e|CCCCC");
}

TEST(Cuts, PoliciesTakeEveryRunWhetherOrNotItPays) {
  plan::CutProblem problem = Plain(6);
  problem.calls[1].update_ns = 100;
  problem.calls[5].barrier = "host read";
  EXPECT_EQ(Picture(plan::CutAround(problem, std::vector<bool>(6, false), "")), "CCCCC|e");
  const plan::Cuts attention =
      plan::CutAround(problem, {false, false, true, true, false, false}, "attention");
  EXPECT_EQ(Picture(attention), "CC|ee|C|e");
  EXPECT_EQ(attention.regions[1].reason, "attention");
  EXPECT_DOUBLE_EQ(attention.saving_ns, (20 - 100 - 15) + (10 - 15));
}

// The best saving over all ways to choose captured regions.
double BruteForce(const plan::CutProblem& problem, size_t first, int64_t captures,
                  int64_t numbers) {
  const size_t count = problem.calls.size();
  if (first == count) return 0;
  double best = BruteForce(problem, first + 1, captures, numbers);
  if (captures == 0) return best;
  int64_t entries = 0;
  for (size_t end = first + 1; end <= count; ++end) {
    const plan::CutCall& last = problem.calls[end - 1];
    if (!last.barrier.empty() || (end - 1 > first && last.begins_region)) break;
    entries += last.entries;
    const int64_t taken =
        problem.streams - 1 + (entries + streams::kQueueEntries - 1) / streams::kQueueEntries;
    if (end - first < problem.minimum_region || taken > numbers) continue;
    best = std::max(best, plan::SavingOf(problem, first, end) +
                              BruteForce(problem, end, captures - 1, numbers - taken));
  }
  return best;
}

TEST(Cuts, AreAsGoodAsBruteForceOnRandomSteps) {
  int limited = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    plan::CutProblem problem;
    problem.calls.resize(static_cast<size_t>(1 + below(11)));
    for (int i = below(4); i > 0; --i) problem.input_ns.push_back(below(40));
    for (plan::CutCall& call : problem.calls) {
      call.host_ns = below(30);
      if (below(4) == 0) call.update_ns = below(60);
      if (below(7) == 0) call.barrier = "barrier";
      if (below(9) == 0) call.begins_region = true;
      call.entries = below(3) == 0 ? 1500 : 1;
      for (size_t input = 0; input < problem.input_ns.size(); ++input) {
        if (below(4) == 0) call.inputs.push_back(static_cast<int32_t>(input));
      }
    }
    problem.launch_ns = below(50);
    problem.capture_ns = below(100);
    for (plan::CutCall& call : problem.calls) call.capture_ns = below(20);
    problem.expected_replays = 1 + below(20);
    problem.minimum_region = static_cast<size_t>(1 + below(4));
    problem.streams = 1 + below(3);
    if (below(2) == 0) problem.most_captures = below(4);
    if (below(2) == 0) problem.most_stream_numbers = below(9);
    const plan::Cuts cuts = plan::CutBest(problem);
    const double best = BruteForce(problem, 0, std::min<int64_t>(problem.most_captures, 100),
                                   problem.most_stream_numbers);
    ASSERT_NEAR(cuts.saving_ns, best, 1e-6) << "seed " << seed;
    size_t next = 0;
    double saving = 0;
    for (const plan::CutRegion& region : cuts.regions) {
      ASSERT_EQ(region.first, next) << "seed " << seed;
      next = region.end;
      ASSERT_FALSE(region.reason.empty()) << "seed " << seed;
      saving += region.captured ? plan::SavingOf(problem, region.first, region.end) : 0;
      ASSERT_GE(region.gain_ns, -1e-6) << "seed " << seed;
    }
    ASSERT_EQ(next, problem.calls.size());
    ASSERT_NEAR(saving, cuts.saving_ns, 1e-6);
    plan::CutProblem unlimited = problem;
    unlimited.most_captures = unlimited.most_stream_numbers = INT64_MAX;
    limited += plan::CutBest(unlimited).saving_ns > cuts.saving_ns + 1e-6 ? 1 : 0;
  }
  EXPECT_GT(limited, 100);  // the limits bind often enough to be tested
}

}  // namespace
}  // namespace acltape::analyzer
