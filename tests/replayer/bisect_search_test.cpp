// The search, on programs that are functions of the altered set. No device is involved.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "base/hash.h"
#include "replayer/bisect/confidence.h"
#include "replayer/bisect/delta_debugging.h"
#include "replayer/bisect/element_text.h"
#include "replayer/bisect/search.h"

namespace acltape::replayer {
namespace {

using Verdict = script::Outcome::Verdict;
using Ending = bisect::SearchResult::Verdict;

bool Holds(const script::ElementSet& set, const script::ElementSet& part) {
  return std::includes(set.begin(), set.end(), part.begin(), part.end());
}

// Fails as `verdict_of` says; counts and remembers what it is asked.
class Function : public script::Experiment {
 public:
  Function(size_t size, std::function<script::Outcome(const script::ElementSet&)> outcome_of)
      : size_(size), outcome_of_(std::move(outcome_of)) {}

  size_t size() const override { return size_; }
  std::string Describe(size_t element) const override { return "call " + std::to_string(element); }
  script::Outcome Try(const script::ElementSet& altered) override {
    EXPECT_TRUE(std::is_sorted(altered.begin(), altered.end()));
    ++tries;
    ++asked[altered];
    return outcome_of_(altered);
  }
  std::string Command(const script::ElementSet& altered) const override {
    return "try " + bisect::ElementText(altered);
  }

  int64_t tries = 0;
  std::map<script::ElementSet, int> asked;

 private:
  size_t size_;
  std::function<script::Outcome(const script::ElementSet&)> outcome_of_;
};

script::Outcome Says(bool fails) {
  script::Outcome outcome;
  outcome.verdict = fails ? Verdict::kBad : Verdict::kGood;
  outcome.executions = 1;
  outcome.bad_executions = fails ? 1 : 0;
  return outcome;
}

// Fails when all elements of one of the causes are altered.
Function FailsFor(size_t size, std::vector<script::ElementSet> causes) {
  return {size, [causes](const script::ElementSet& set) {
            return Says(
                std::any_of(causes.begin(), causes.end(),
                            [&](const script::ElementSet& cause) { return Holds(set, cause); }));
          }};
}

// `executions` runs in which a set that holds `cause` fails at `rate`.
Function FailsNowAndThen(size_t size, script::ElementSet cause, double rate, int executions,
                         int seed) {
  return {size, [=, random = std::mt19937(seed)](const script::ElementSet& set) mutable {
            script::Outcome outcome;
            outcome.executions = executions;
            std::bernoulli_distribution fails(Holds(set, cause) ? rate : 0);
            for (int i = 0; i < executions; ++i) outcome.bad_executions += fails(random) ? 1 : 0;
            outcome.verdict = outcome.bad_executions == 0            ? Verdict::kGood
                              : outcome.bad_executions == executions ? Verdict::kBad
                                                                     : Verdict::kUnstable;
            return outcome;
          }};
}

script::ElementSet RandomSet(std::mt19937& random, size_t size, size_t count) {
  std::set<size_t> set;
  while (set.size() < count) set.insert(random() % size);
  return {set.begin(), set.end()};
}

bisect::SearchResult Find(Function& program, const bisect::SearchOptions& options = {},
                          const bisect::TrialOptions& trial_options = {}) {
  bisect::Trials trials(program, trial_options, nullptr);
  return bisect::FindCauses(trials, program.size(), options);
}

TEST(BisectSearch, FindsASingleCauseAnywhereWithinTheBound) {
  for (size_t size = 1; size <= 130; ++size) {
    for (size_t index = 0; index < size; ++index) {
      Function program = FailsFor(size, {{index}});
      const bisect::SearchResult result = Find(program);
      ASSERT_EQ(result.verdict, Ending::kFound);
      ASSERT_EQ(result.causes.at(0).elements, script::ElementSet{index}) << size;
      ASSERT_TRUE(result.causes[0].minimal);
      ASSERT_EQ(result.causes[0].first_guess, index);
      ASSERT_LE(program.tries, bisect::CeilLog2(size) + 3) << "element " << index << " of " << size;
      ASSERT_EQ(result.suspects_first, size == 1 ? 0 : index);
      for (const auto& [set, times] : program.asked)
        ASSERT_EQ(times, 1) << bisect::ElementText(set);
    }
  }
}

TEST(BisectSearch, TheBoundIsThatOfBinarySearch) {
  EXPECT_EQ(bisect::CeilLog2(0), 0);
  EXPECT_EQ(bisect::CeilLog2(1), 0);
  EXPECT_EQ(bisect::CeilLog2(2), 1);
  EXPECT_EQ(bisect::CeilLog2(3), 2);
  EXPECT_EQ(bisect::CeilLog2(64), 6);
  EXPECT_EQ(bisect::CeilLog2(65), 7);
  EXPECT_EQ(bisect::BoundForOne(1000), 13);
  EXPECT_EQ(bisect::BoundFor(1000, 1), bisect::BoundForOne(1000));
}

TEST(BisectSearch, FindsSetsThatFailOnlyTogether) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const size_t size = 2 + random() % 300;
    const size_t count = 2 + random() % std::min<size_t>(size - 1, 3);
    const script::ElementSet cause = RandomSet(random, size, count);
    Function program = FailsFor(size, {cause});
    const bisect::SearchResult result = Find(program);
    ASSERT_EQ(result.causes.at(0).elements, cause);
    ASSERT_TRUE(result.causes[0].minimal);
    ASSERT_TRUE(result.causes[0].monotonic);
    ASSERT_EQ(result.causes[0].first_guess, cause.back());
    ASSERT_LE(result.causes[0].to_first_guess, bisect::BoundForOne(size));
    ASSERT_LE(program.tries, bisect::BoundFor(size, count))
        << bisect::ElementText(cause) << " of " << size;
  }
}

TEST(BisectSearch, OneOfSeveralIndependentCausesIsFoundWholeAndMinimal) {
  std::mt19937 random(2);
  for (int round = 0; round < 1000; ++round) {
    const size_t size = 8 + random() % 200;
    std::vector<script::ElementSet> causes;
    for (size_t i = 0, count = 1 + random() % 3; i < count; ++i) {
      causes.push_back(RandomSet(random, size, 1 + random() % 3));
    }
    Function program = FailsFor(size, causes);
    const bisect::SearchResult result = Find(program);
    const script::ElementSet& found = result.causes.at(0).elements;
    ASSERT_TRUE(std::any_of(causes.begin(), causes.end(), [&](const script::ElementSet& cause) {
      return found == cause;
    })) << bisect::ElementText(found);
  }
}

TEST(BisectSearch, FindsAllIndependentCausesWhenAsked) {
  Function program = FailsFor(100, {{3}, {40, 70}, {99}});
  bisect::SearchOptions options;
  options.causes = 5;
  const bisect::SearchResult result = Find(program, options);
  std::vector<script::ElementSet> found;
  for (const bisect::Cause& cause : result.causes) found.push_back(cause.elements);
  EXPECT_EQ(found, (std::vector<script::ElementSet>{{3}, {40, 70}, {99}}));
}

// A seeded hash of a set decides whether the set fails, so that nothing is monotonic.
TEST(BisectSearch, WhatIsFoundInARandomFunctionFailsAndIsMinimal) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    const size_t size = 2 + seed % 60;
    const auto fails = [=](const script::ElementSet& set) {
      if (set.empty()) return false;
      if (set.size() == size) return true;
      uint64_t hash = seed + 1;
      for (const size_t element : set) hash = base::SpreadBits(hash ^ (element + 1));
      return (hash >> 40) % 4 == 0;
    };
    Function program(size, [&](const script::ElementSet& set) { return Says(fails(set)); });
    const bisect::SearchResult result = Find(program);
    const script::ElementSet& found = result.causes.at(0).elements;
    ASSERT_TRUE(fails(found)) << seed;
    ASSERT_TRUE(result.causes[0].minimal);
    for (const size_t element : found)
      ASSERT_FALSE(fails(bisect::Without(found, {element}))) << seed;
    const auto n = static_cast<int64_t>(size);
    ASSERT_LE(program.tries, n * n + 3 * n + 2);
  }
}

TEST(BisectSearch, ASecondAlterationThatHidesTheFirstIsSurvived) {
  // 50 fails unless 20 is altered and 80 is not.
  Function program(100, [](const script::ElementSet& set) {
    return Says(Holds(set, {50}) && (!Holds(set, {20}) || Holds(set, {80})));
  });
  const bisect::SearchResult result = Find(program);
  EXPECT_EQ(result.causes.at(0).elements, script::ElementSet{50});
  EXPECT_FALSE(result.causes[0].monotonic);
}

TEST(BisectSearch, SetsThatCannotBeJudgedArePassedBy) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const size_t size = 20 + random() % 100;
    const script::ElementSet cause = RandomSet(random, size, 1 + random() % 2);
    // A program that runs only when both calls of a pair are altered, or none.
    const size_t pair = random() % (size - 1);
    Function program(size, [&](const script::ElementSet& set) {
      script::Outcome outcome = Says(Holds(set, cause));
      const bool whole = Holds(set, {pair}) == Holds(set, {pair + 1});
      if (!whole) outcome.verdict = Verdict::kCannotJudge;
      return outcome;
    });
    const bisect::SearchResult result = Find(program);
    ASSERT_EQ(result.verdict, Ending::kFound);
    const script::ElementSet& found = result.causes.at(0).elements;
    ASSERT_TRUE(Holds(found, cause)) << bisect::ElementText(found);
    ASSERT_LE(found.size(), cause.size() + 2);
  }
}

TEST(BisectSearch, AGoodProgramHasNoCause) {
  Function program = FailsFor(100, {});
  const bisect::SearchResult result = Find(program);
  EXPECT_EQ(result.verdict, Ending::kNothing);
  EXPECT_TRUE(result.causes.empty());
  EXPECT_EQ(program.tries, 2);
}

TEST(BisectSearch, AProgramWithoutElementsHasNoCause) {
  Function program = FailsFor(0, {});
  EXPECT_EQ(Find(program).verdict, Ending::kNothing);
}

TEST(BisectSearch, AReferenceThatAlwaysFailsIsNotSearched) {
  Function program(100, [](const script::ElementSet&) { return Says(true); });
  EXPECT_EQ(Find(program).verdict, Ending::kReferenceDiffers);
}

TEST(BisectSearch, EndsThatCannotBeJudgedEndTheSearch) {
  for (const bool reference : {true, false}) {
    Function program(100, [&](const script::ElementSet& set) {
      script::Outcome outcome = Says(!set.empty());
      if (set.empty() == reference) outcome.verdict = Verdict::kCannotJudge;
      return outcome;
    });
    EXPECT_EQ(Find(program).verdict, Ending::kCannotJudge);
  }
}

// A program that fails with nothing altered has a flaky reference, which is never called a cause,
// whatever the rate.
TEST(BisectSearch, AFlakyReferenceIsNamedWithItsRate) {
  for (const double rate : {0.1, 0.3, 0.5, 0.9}) {
    int flaky = 0;
    int nothing = 0;
    for (int seed = 0; seed < 200; ++seed) {
      Function program = FailsNowAndThen(64, {}, rate, 5, seed);
      const bisect::SearchResult result = Find(program);
      ASSERT_NE(result.verdict, Ending::kFound) << rate << " seed " << seed;
      if (result.verdict == Ending::kNothing) ++nothing;
      if (result.verdict != Ending::kFlakyReference) continue;
      ++flaky;
      const double measured = static_cast<double>(result.reference.bad_executions) /
                              static_cast<double>(result.reference.executions);
      ASSERT_NEAR(measured, rate, 0.35) << seed;
    }
    // Five executions at each end may miss a rare failure.
    EXPECT_NEAR(nothing, 200 * std::pow(1 - rate, 10), 20) << rate;
    EXPECT_GE(flaky, 200 - nothing - 1) << rate;
  }
}

TEST(BisectSearch, CausesThatFailNowAndThenAreFoundWithinTheErrorBound) {
  for (const double rate : {0.15, 0.5, 0.85}) {
    int wrong = 0;
    int missed = 0;
    for (int seed = 0; seed < 200; ++seed) {
      std::mt19937 random(seed);
      const script::ElementSet cause = RandomSet(random, 64, 1 + seed % 2);
      Function program = FailsNowAndThen(64, cause, rate, 5, seed);
      bisect::TrialOptions options;
      options.error_bound = 1e-2;
      const bisect::SearchResult result = Find(program, {}, options);
      if (result.verdict == Ending::kNothing) {
        ++missed;  // the altered program did not fail in its five executions
        continue;
      }
      ASSERT_EQ(result.verdict, Ending::kFound);
      EXPECT_LE(result.error, 1e-2);
      if (result.causes.at(0).elements != cause) ++wrong;
    }
    EXPECT_NEAR(missed, 200 * std::pow(1 - rate, 5), 25) << rate;
    EXPECT_LE(wrong, rate > 0.8 ? 6 : 4) << rate;
  }
}

TEST(BisectSearch, WithoutTimeTheSuspectsAreNarrowedAsFarAsItWent) {
  Function program = FailsFor(1024, {{700}});
  bisect::TrialOptions options;
  options.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
  Function slow(1024, [&](const script::ElementSet& set) {
    if (program.tries == 5) throw bisect::BudgetSpent();
    return program.Try(set);
  });
  const bisect::SearchResult result = Find(slow);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.verdict, Ending::kFound);
  EXPECT_FALSE(result.causes.at(0).minimal);
  EXPECT_LE(result.suspects_first, 700);
  EXPECT_GT(result.suspects_end, 700);
  EXPECT_EQ(result.suspects_end - result.suspects_first, 1024 / 8);
  EXPECT_TRUE(Holds(result.causes[0].elements, {700}));
}

TEST(BisectSearch, ABudgetOfNothingFindsNothing) {
  Function program = FailsFor(8, {{5}});
  bisect::TrialOptions options;
  options.deadline = std::chrono::steady_clock::now();
  const bisect::SearchResult result = Find(program, {}, options);
  EXPECT_EQ(result.verdict, Ending::kOutOfTime);
  EXPECT_EQ(program.tries, 0);
}

TEST(DeltaDebugging, KeepsItsBoundAndIsMinimal) {
  std::mt19937 random(4);
  for (int round = 0; round < 1000; ++round) {
    const size_t size = 1 + random() % 200;
    const size_t count = 1 + random() % std::min<size_t>(size, 8);
    const script::ElementSet cause = RandomSet(random, size, count);
    int64_t questions = 0;
    const script::ElementSet found =
        bisect::MinimizeByDeltaDebugging(bisect::AllElements(size), [&](const auto& set) {
          ++questions;
          return Holds(set, cause);
        });
    ASSERT_EQ(found, cause);
    const auto n = static_cast<int64_t>(size);
    ASSERT_LE(questions, n * n + 3 * n);
    if (count == 1) {
      ASSERT_LE(questions, 2 * bisect::CeilLog2(size)) << size;
    } else if (count == 2) {
      ASSERT_LE(questions, 14 * bisect::CeilLog2(size) + 20) << size;
    }
  }
}

// Only the whole set fails: every part and every complement is asked in vain.
TEST(DeltaDebugging, TheWorstCaseIsQuadratic) {
  for (const size_t size : {2, 7, 64, 100}) {
    int64_t questions = 0;
    const script::ElementSet found =
        bisect::MinimizeByDeltaDebugging(bisect::AllElements(size), [&](const auto& set) {
          ++questions;
          return set.size() == size;
        });
    EXPECT_EQ(found.size(), size);
    const auto n = static_cast<int64_t>(size);
    EXPECT_LE(questions, n * n + 3 * n);
  }
}

TEST(DeltaDebugging, AsAMethodItFindsWhatPrefixesFind) {
  Function program = FailsFor(100, {{17, 58}});
  bisect::SearchOptions options;
  options.method = bisect::SearchMethod::kDeltaDebugging;
  const bisect::SearchResult result = Find(program, options);
  EXPECT_EQ(result.causes.at(0).elements, (script::ElementSet{17, 58}));
  EXPECT_TRUE(result.causes[0].minimal);
}

TEST(Confidence, LeastRateIsTheExactBound) {
  EXPECT_EQ(bisect::LeastRate(0, 10, 0.05), 0);
  EXPECT_NEAR(bisect::LeastRate(10, 10, 0.05), std::pow(0.05, 0.1), 1e-12);
  EXPECT_NEAR(bisect::LeastRate(1, 10, 0.05), 0.005116, 1e-6);  // 1 - 0.95^(1/10)
  EXPECT_NEAR(bisect::LeastRate(5, 10, 0.05), 0.22244, 1e-5);   // Clopper and Pearson's charts
  EXPECT_NEAR(bisect::LeastRate(10, 200, 0.05), 0.027338, 1e-4);
}

TEST(Confidence, ExecutionsToTrustKeepTheError) {
  EXPECT_EQ(bisect::ExecutionsToTrust(0.5, 1e-3), 10);
  EXPECT_EQ(bisect::ExecutionsToTrust(1, 1e-3), 1);
  EXPECT_EQ(bisect::ExecutionsToTrust(0, 1e-3), INT64_MAX);
  for (const double rate : {0.01, 0.2, 0.7}) {
    const auto n = static_cast<double>(bisect::ExecutionsToTrust(rate, 1e-4));
    EXPECT_LE(std::pow(1 - rate, n), 1e-4);
    EXPECT_GT(std::pow(1 - rate, n - 1), 1e-4);
  }
}

TEST(Elements, TextAndSetAreTheSame) {
  for (const char* text : {"", "0", "0-41", "0-1,3,7-9,100"}) {
    EXPECT_EQ(bisect::ElementText(bisect::ParseElements(text)), text);
  }
  for (const char* text : {"-", "3-", "5-2", "1,1", "2,1", "a", "1,", ",1", "1 2"}) {
    EXPECT_ANY_THROW(bisect::ParseElements(text)) << text;
  }
}

}  // namespace
}  // namespace acltape::replayer
