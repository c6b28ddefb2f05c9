// The decision table: from what cures a difference to its class.
#include <gtest/gtest.h>

#include <array>

#include "replayer/bisect/bisection.h"
#include "replayer/bisect/classification.h"
#include "replayer/bisect/element_text.h"

namespace acltape::replayer {
namespace {

constexpr bisect::Effect kC = bisect::Effect::kCured;
constexpr bisect::Effect kS = bisect::Effect::kStays;
constexpr bisect::Effect kJ = bisect::Effect::kCannotJudge;

// One stream, own memory, own workspace, fresh inputs, step arguments, recapture.
struct Case {
  std::array<bisect::Effect, 6> effects;
  bool varies;
  bisect::CauseClass cause;
  const char* detail;
};

bisect::Classification DecideFor(const std::array<bisect::Effect, 6>& effects, bool varies) {
  std::vector<bisect::CounterResult> results;
  for (size_t i = 0; i < effects.size(); ++i) {
    results.push_back({&bisect::CounterExperiments()[i], effects[i], {}});
  }
  return bisect::Decide(std::move(results), varies);
}

TEST(BisectClassification, WhatCuresADifferenceSaysItsClass) {
  ASSERT_EQ(bisect::CounterExperiments().size(), 6U);
  const Case cases[] = {
      {{kS, kS, kS, kS, kS, kS}, false, bisect::CauseClass::kNumeric, ""},
      {{kC, kS, kS, kS, kS, kS}, true, bisect::CauseClass::kOrdering, ""},
      {{kC, kS, kS, kS, kS, kS}, false, bisect::CauseClass::kOrdering, ""},
      {{kC, kC, kS, kS, kS, kS}, true, bisect::CauseClass::kOrdering, "reused memory"},
      {{kS, kC, kS, kS, kS, kS}, false, bisect::CauseClass::kAliasing, "memory"},
      {{kS, kC, kC, kS, kS, kS}, false, bisect::CauseClass::kAliasing, "workspace"},
      {{kS, kS, kC, kS, kS, kS}, false, bisect::CauseClass::kAliasing, "workspace"},
      {{kS, kS, kS, kC, kS, kC}, false, bisect::CauseClass::kStaleArgument, "input"},
      {{kS, kS, kS, kS, kC, kC}, false, bisect::CauseClass::kStaleArgument, "host argument"},
      {{kS, kS, kS, kS, kS, kC}, false, bisect::CauseClass::kAddress, ""},
      // A difference that varies and that nothing cures does not prove a wrong kernel.
      {{kS, kS, kS, kS, kS, kS}, true, bisect::CauseClass::kUnknown, ""},
      // Neither does one for which a counter-experiment could not be judged.
      {{kS, kS, kJ, kS, kS, kS}, false, bisect::CauseClass::kUnknown, ""},
  };
  for (const Case& row : cases) {
    const bisect::Classification decided = DecideFor(row.effects, row.varies);
    std::string effects;
    for (const bisect::Effect effect : row.effects)
      effects += effect == kC ? 'C' : effect == kS ? 'S' : '?';
    EXPECT_EQ(bisect::CauseClassName(decided.cause), bisect::CauseClassName(row.cause)) << effects;
    EXPECT_EQ(decided.detail, row.detail) << effects;
    EXPECT_FALSE(decided.reason.empty()) << effects;
  }
}

// Fails when element 3 is altered, unless the remedy is applied that cures it.
class Curable : public script::Experiment {
 public:
  Curable(bool script::Remedies::*cure, const script::Remedies& applied, int* tries)
      : fails_(cure == nullptr || !(applied.*cure)), tries_(tries) {}
  size_t size() const override { return 10; }
  std::string Describe(size_t element) const override { return "call " + std::to_string(element); }
  std::string Command(const script::ElementSet& altered) const override {
    return "again " + bisect::ElementText(altered);
  }
  script::Outcome Try(const script::ElementSet& altered) override {
    ++*tries_;
    script::Outcome outcome;
    outcome.executions = 1;
    const bool fails = fails_ && std::binary_search(altered.begin(), altered.end(), size_t{3});
    outcome.verdict = fails ? script::Outcome::Verdict::kBad : script::Outcome::Verdict::kGood;
    outcome.bad_executions = fails ? 1 : 0;
    return outcome;
  }

 private:
  bool fails_;
  int* tries_;
};

TEST(BisectClassification, EveryRemedyIsTriedOnTheFoundCalls) {
  const std::pair<bool script::Remedies::*, bisect::CauseClass> cases[] = {
      {nullptr, bisect::CauseClass::kNumeric},
      {&script::Remedies::one_stream, bisect::CauseClass::kOrdering},
      {&script::Remedies::own_memory, bisect::CauseClass::kAliasing},
      {&script::Remedies::own_workspace, bisect::CauseClass::kAliasing},
      {&script::Remedies::fresh_inputs, bisect::CauseClass::kStaleArgument},
      {&script::Remedies::step_arguments, bisect::CauseClass::kStaleArgument},
      {&script::Remedies::recapture, bisect::CauseClass::kAddress},
  };
  for (const auto& [cure, cause] : cases) {
    int tries = 0;
    Curable program(cure, {}, &tries);
    const bisect::BisectionReport report =
        bisect::Bisect(program, {}, nullptr, [&, cure = cure](const script::Remedies& remedies) {
          return std::make_unique<Curable>(cure, remedies, &tries);
        });
    ASSERT_EQ(report.found.size(), 1U);
    const bisect::FoundCause& found = report.found[0];
    EXPECT_EQ(found.descriptions, std::vector<std::string>{"call 3"});
    EXPECT_EQ(found.command, "again 3");
    ASSERT_TRUE(found.classification);
    EXPECT_EQ(bisect::CauseClassName(found.classification->cause), bisect::CauseClassName(cause));
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
  bisect::BisectionOptions options;
  options.only_judge = true;
  EXPECT_EQ(bisect::Bisect(program, options, nullptr, {}).ExitCode(), 1);
  EXPECT_EQ(tries, 2);
  script::Remedies cured;
  cured.one_stream = true;
  Curable good(&script::Remedies::one_stream, cured, &tries);
  EXPECT_EQ(bisect::Bisect(good, options, nullptr, {}).ExitCode(), 0);
}

// Both sides are one and the same, so that nothing is compared.
class NothingToAlter final : public script::Experiment {
 public:
  size_t size() const override { return 0; }
  std::string Describe(size_t /*element*/) const override { return ""; }
  std::string Command(const script::ElementSet& /*altered*/) const override { return "again"; }
  script::Outcome Try(const script::ElementSet& /*altered*/) override { return {.executions = 1}; }
};

TEST(BisectClassification, NothingToAlterCannotBeJudged) {
  NothingToAlter program;
  const bisect::BisectionReport report = bisect::Bisect(program, {}, nullptr, {});
  EXPECT_EQ(report.ExitCode(), 125);
  EXPECT_EQ(report.Verdict().rfind("nothing was compared: ", 0), 0U) << report.Verdict();
}

}  // namespace
}  // namespace acltape::replayer
