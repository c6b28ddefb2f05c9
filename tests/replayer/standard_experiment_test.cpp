// Experiments judged by a precision standard: what it lets pass is no difference.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "replayer/script/compare_steps.h"
#include "replayer/script/fault_sites.h"
#include "replayer/script/step_experiment.h"
#include "tests/replayer/mixed_step_fixture.h"

namespace acltape::replayer {
namespace {

using nlohmann::json;
using test::MixedStepRun;
using test::Recorded;
using Verdict = Outcome::Verdict;

std::shared_ptr<const analyzer::Standard> Ascend() {
  return std::make_shared<const analyzer::Standard>(analyzer::Standard::Load("ascend"));
}

// Everything captured with a fault of this kind at the last call that may have one, so that what is
// wrong is what the step gives.
MixedStepOptions Planted(const MixedStep& step, FaultKind kind) {
  MixedStepOptions options;
  options.faults = {PossibleFaults(step, kind).back()};
  options.run_matches = {1, 2};
  return options;
}

Outcome TryAll(const MixedStep& step, FaultKind kind,
               std::shared_ptr<const analyzer::Standard> standard) {
  StepExperiment::Options options;
  options.step = Planted(step, kind);
  options.executions = 3;
  options.standard = std::move(standard);
  StepExperiment experiment(step, options);
  ElementSet all;
  for (size_t i = 0; i < experiment.size(); ++i) all.push_back(i);
  EXPECT_EQ(experiment.Try({}).verdict, Verdict::kGood);
  return experiment.Try(all);
}

TEST(StandardExperiment, ASmallErrorIsFoundBitwiseAndLetPassByAStandard) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun run(recorded);
  run.With([&](const MixedStep& step) {
    const Outcome bitwise = TryAll(step, FaultKind::kLowBits, nullptr);
    EXPECT_EQ(bitwise.verdict, Verdict::kBad);
    EXPECT_EQ(bitwise.bad_executions, 3);
    EXPECT_EQ(json::parse(bitwise.evidence).count("standard"), 0U);
    const Outcome judged = TryAll(step, FaultKind::kLowBits, Ascend());
    EXPECT_EQ(judged.verdict, Verdict::kGood) << judged.evidence;
    EXPECT_EQ(judged.executions, 3);
    EXPECT_EQ(judged.bad_executions, 0);
    EXPECT_TRUE(judged.evidence.empty());
  });
}

TEST(StandardExperiment, ALargeErrorIsFoundByBothAndTheBrokenRuleIsNamed) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun run(recorded);
  run.With([&](const MixedStep& step) {
    EXPECT_EQ(TryAll(step, FaultKind::kWrongBits, nullptr).verdict, Verdict::kBad);
    const Outcome judged = TryAll(step, FaultKind::kWrongBits, Ascend());
    EXPECT_EQ(judged.verdict, Verdict::kBad);
    EXPECT_EQ(judged.bad_executions, 3);
    EXPECT_FALSE(judged.fingerprint.empty());
    const json evidence = json::parse(judged.evidence);
    EXPECT_EQ(evidence.at("standard"), "ascend");
    const std::string reason = evidence.at("reason");
    EXPECT_NE(reason.find(" > "), std::string::npos) << reason;
    EXPECT_NE(reason.find("float32"), std::string::npos) << reason;
    EXPECT_EQ(evidence.at("differing"), 1);
    EXPECT_GT(evidence.at("max_abs"), 1.0);
  });
}

TEST(StandardExperiment, AnEarlierProcessesReferenceIsExecutedAgainForItsValues) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun run(recorded);
  run.With([&](const MixedStep& step) {
    StepExperiment::Options options;
    options.step = Planted(step, FaultKind::kLowBits);
    options.executions = 1;
    StepExperiment bitwise(step, options);
    const Outcome reference = bitwise.Try({});
    ASSERT_FALSE(reference.evidence.empty());
    options.standard = Ascend();
    StepExperiment resumed(step, options);
    resumed.Recall({}, reference);
    ElementSet all;
    for (size_t i = 0; i < resumed.size(); ++i) all.push_back(i);
    const Outcome outcome = resumed.Try(all);
    EXPECT_EQ(outcome.verdict, Verdict::kGood) << outcome.evidence;
  });
}

TEST(StandardExperiment, CounterExperimentsAreJudgedByTheSameStandard) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun run(recorded);
  run.With([&](const MixedStep& step) {
    for (const FaultKind kind : {FaultKind::kLowBits, FaultKind::kWrongBits}) {
      StepExperiment::Options options;
      options.step = Planted(step, kind);
      options.executions = 1;
      options.standard = Ascend();
      const StepExperiment experiment(step, options);
      Remedies remedies;
      remedies.own_memory = true;
      const auto cured = experiment.With(remedies);
      ElementSet all;
      for (size_t i = 0; i < cured->size(); ++i) all.push_back(i);
      EXPECT_EQ(cured->Try(all).verdict,
                kind == FaultKind::kLowBits ? Verdict::kGood : Verdict::kBad);
    }
  });
}

TEST(StandardExperiment, ComparedStepsCountWhatIsWithin) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun run(recorded);
  run.With([&](const MixedStep& step) {
    const MixedStepOptions small = Planted(step, FaultKind::kLowBits);
    EXPECT_EQ(CompareSteps(step, small, 2).verdict, StepComparison::Verdict::kDifferent);
    const StepComparison judged = CompareSteps(step, small, 2, nullptr, Ascend());
    EXPECT_EQ(judged.verdict, StepComparison::Verdict::kEqual);
    EXPECT_EQ(judged.within, 4);  // one output in each execution of both steps
    EXPECT_FALSE(judged.first);
    const MixedStepOptions large = Planted(step, FaultKind::kWrongBits);
    const StepComparison refused = CompareSteps(step, large, 2, nullptr, Ascend());
    EXPECT_EQ(refused.verdict, StepComparison::Verdict::kDifferent);
    EXPECT_EQ(refused.different, 4);
    ASSERT_TRUE(refused.first);
    EXPECT_NE(refused.first->reason.find(" > "), std::string::npos) << refused.first->reason;
  });
}

}  // namespace
}  // namespace acltape::replayer
