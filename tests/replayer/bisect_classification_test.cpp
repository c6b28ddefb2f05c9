// The decision table: from what cures a difference to its class.
#include <gtest/gtest.h>

#include <array>

#include "replayer/bisect/bisection.h"
#include "replayer/bisect/classification.h"
#include "replayer/bisect/element_text.h"

namespace acltape::replayer {
namespace {

constexpr Effect kC = Effect::kCured;
constexpr Effect kS = Effect::kStays;
constexpr Effect kJ = Effect::kCannotJudge;

// One stream, own memory, own workspace, fresh inputs, step arguments, recapture.
struct Case {
  std::array<Effect, 6> effects;
  bool varies;
  CauseClass cause;
  const char* detail;
};

Classification DecideFor(const std::array<Effect, 6>& effects, bool varies) {
  std::vector<CounterResult> results;
  for (size_t i = 0; i < effects.size(); ++i) {
    results.push_back({&CounterExperiments()[i], effects[i], {}});
  }
  return Decide(std::move(results), varies);
}

TEST(BisectClassification, WhatCuresADifferenceSaysItsClass) {
  ASSERT_EQ(CounterExperiments().size(), 6U);
  const Case cases[] = {
      {{kS, kS, kS, kS, kS, kS}, false, CauseClass::kNumeric, ""},
      {{kC, kS, kS, kS, kS, kS}, true, CauseClass::kOrdering, ""},
      {{kC, kS, kS, kS, kS, kS}, false, CauseClass::kOrdering, ""},
      {{kC, kC, kS, kS, kS, kS}, true, CauseClass::kOrdering, "reused memory"},
      {{kS, kC, kS, kS, kS, kS}, false, CauseClass::kAliasing, "memory"},
      {{kS, kC, kC, kS, kS, kS}, false, CauseClass::kAliasing, "workspace"},
      {{kS, kS, kC, kS, kS, kS}, false, CauseClass::kAliasing, "workspace"},
      {{kS, kS, kS, kC, kS, kC}, false, CauseClass::kStaleArgument, "input"},
      {{kS, kS, kS, kS, kC, kC}, false, CauseClass::kStaleArgument, "host argument"},
      {{kS, kS, kS, kS, kS, kC}, false, CauseClass::kAddress, ""},
      // A difference that varies and that nothing cures does not prove a wrong kernel.
      {{kS, kS, kS, kS, kS, kS}, true, CauseClass::kUnknown, ""},
      // Neither does one for which a counter-experiment could not be judged.
      {{kS, kS, kJ, kS, kS, kS}, false, CauseClass::kUnknown, ""},
  };
  for (const Case& row : cases) {
    const Classification decided = DecideFor(row.effects, row.varies);
    std::string effects;
    for (const Effect effect : row.effects)
      effects += effect == kC ? 'C' : effect == kS ? 'S' : '?';
    EXPECT_EQ(CauseClassName(decided.cause), CauseClassName(row.cause)) << effects;
    EXPECT_EQ(decided.detail, row.detail) << effects;
    EXPECT_FALSE(decided.reason.empty()) << effects;
  }
}

// Fails when element 3 is altered, unless the remedy is applied that cures it.
class Curable : public Experiment {
 public:
  Curable(bool Remedies::*cure, const Remedies& applied, int* tries)
      : fails_(cure == nullptr || !(applied.*cure)), tries_(tries) {}
  size_t size() const override { return 10; }
  std::string Describe(size_t element) const override { return "call " + std::to_string(element); }
  std::string Command(const ElementSet& altered) const override {
    return "again " + ElementText(altered);
  }
  Outcome Try(const ElementSet& altered) override {
    ++*tries_;
    Outcome outcome;
    outcome.executions = 1;
    const bool fails = fails_ && std::binary_search(altered.begin(), altered.end(), size_t{3});
    outcome.verdict = fails ? Outcome::Verdict::kBad : Outcome::Verdict::kGood;
    outcome.bad_executions = fails ? 1 : 0;
    return outcome;
  }

 private:
  bool fails_;
  int* tries_;
};

TEST(BisectClassification, EveryRemedyIsTriedOnTheFoundCalls) {
  const std::pair<bool Remedies::*, CauseClass> cases[] = {
      {nullptr, CauseClass::kNumeric},
      {&Remedies::one_stream, CauseClass::kOrdering},
      {&Remedies::own_memory, CauseClass::kAliasing},
      {&Remedies::own_workspace, CauseClass::kAliasing},
      {&Remedies::fresh_inputs, CauseClass::kStaleArgument},
      {&Remedies::step_arguments, CauseClass::kStaleArgument},
      {&Remedies::recapture, CauseClass::kAddress},
  };
  for (const auto& [cure, cause] : cases) {
    int tries = 0;
    Curable program(cure, {}, &tries);
    const BisectionReport report =
        Bisect(program, {}, nullptr, [&, cure = cure](const Remedies& remedies) {
          return std::make_unique<Curable>(cure, remedies, &tries);
        });
    ASSERT_EQ(report.found.size(), 1U);
    const FoundCause& found = report.found[0];
    EXPECT_EQ(found.descriptions, std::vector<std::string>{"call 3"});
    EXPECT_EQ(found.command, "again 3");
    ASSERT_TRUE(found.classification);
    EXPECT_EQ(CauseClassName(found.classification->cause), CauseClassName(cause));
    EXPECT_EQ(report.counter_experiments, 6);
    EXPECT_EQ(tries, report.experiments + 6);
    EXPECT_LE(report.experiments, report.bound);
    EXPECT_EQ(report.ExitCode(), 1);
    EXPECT_EQ(report.Verdict(), "found: call 3 differs on its own");
  }
}

TEST(BisectClassification, JudgingBothEndsTakesTwoExperiments) {
  int tries = 0;
  Curable program(nullptr, {}, &tries);
  BisectionOptions options;
  options.only_judge = true;
  EXPECT_EQ(Bisect(program, options, nullptr, {}).ExitCode(), 1);
  EXPECT_EQ(tries, 2);
  Remedies cured;
  cured.one_stream = true;
  Curable good(&Remedies::one_stream, cured, &tries);
  EXPECT_EQ(Bisect(good, options, nullptr, {}).ExitCode(), 0);
}

// Both sides are one and the same, so that nothing is compared.
class NothingToAlter final : public Experiment {
 public:
  size_t size() const override { return 0; }
  std::string Describe(size_t /*element*/) const override { return ""; }
  std::string Command(const ElementSet& /*altered*/) const override { return "again"; }
  Outcome Try(const ElementSet& /*altered*/) override { return {.executions = 1}; }
};

TEST(BisectClassification, NothingToAlterCannotBeJudged) {
  NothingToAlter program;
  const BisectionReport report = Bisect(program, {}, nullptr, {});
  EXPECT_EQ(report.ExitCode(), 125);
  EXPECT_EQ(report.Verdict().rfind("nothing was compared: ", 0), 0U) << report.Verdict();
}

}  // namespace
}  // namespace acltape::replayer
