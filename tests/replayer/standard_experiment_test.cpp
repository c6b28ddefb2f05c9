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
using Verdict = script::Outcome::Verdict;

std::shared_ptr<const analyzer::metrics::Standard> Ascend() {
  return std::make_shared<const analyzer::metrics::Standard>(
      analyzer::metrics::Standard::Load("ascend"));
}

// Everything captured with a fault of this kind at the last call that may have one, so that what is
// wrong is what the step gives.
script::MixedStepOptions Planted(const script::MixedStep& step, script::FaultKind kind) {
  script::MixedStepOptions options;
  options.faults = {script::PossibleFaults(step, kind).back()};
  options.run_matches = {1, 2};
  return options;
}

script::Outcome TryAll(const script::MixedStep& step, script::FaultKind kind,
                       std::shared_ptr<const analyzer::metrics::Standard> standard) {
  script::StepExperiment::Options options;
  options.step = Planted(step, kind);
  options.executions = 3;
  options.standard = std::move(standard);
  script::StepExperiment experiment(step, options);
  script::ElementSet all;
  for (size_t i = 0; i < experiment.size(); ++i) all.push_back(i);
  EXPECT_EQ(experiment.Try({}).verdict, Verdict::kGood);
  return experiment.Try(all);
}

TEST(StandardExperiment, ASmallErrorIsFoundBitwiseAndLetPassByAStandard) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    const script::Outcome bitwise = TryAll(step, script::FaultKind::kLowBits, nullptr);
    EXPECT_EQ(bitwise.verdict, Verdict::kBad);
    EXPECT_EQ(bitwise.bad_executions, 3);
    EXPECT_EQ(json::parse(bitwise.evidence).count("standard"), 0U);
    const script::Outcome judged = TryAll(step, script::FaultKind::kLowBits, Ascend());
    EXPECT_EQ(judged.verdict, Verdict::kGood) << judged.evidence;
    EXPECT_EQ(judged.executions, 3);
    EXPECT_EQ(judged.bad_executions, 0);
    EXPECT_TRUE(judged.evidence.empty());
  });
}

TEST(StandardExperiment, ALargeErrorIsFoundByBothAndTheBrokenRuleIsNamed) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    EXPECT_EQ(TryAll(step, script::FaultKind::kWrongBits, nullptr).verdict, Verdict::kBad);
    const script::Outcome judged = TryAll(step, script::FaultKind::kWrongBits, Ascend());
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
  run.With([&](const script::MixedStep& step) {
    script::StepExperiment::Options options;
    options.step = Planted(step, script::FaultKind::kLowBits);
    options.executions = 1;
    script::StepExperiment bitwise(step, options);
    const script::Outcome reference = bitwise.Try({});
    ASSERT_FALSE(reference.evidence.empty());
    options.standard = Ascend();
    script::StepExperiment resumed(step, options);
    resumed.Recall({}, reference);
    script::ElementSet all;
    for (size_t i = 0; i < resumed.size(); ++i) all.push_back(i);
    const script::Outcome outcome = resumed.Try(all);
    EXPECT_EQ(outcome.verdict, Verdict::kGood) << outcome.evidence;
  });
}

TEST(StandardExperiment, CounterExperimentsAreJudgedByTheSameStandard) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    for (const script::FaultKind kind :
         {script::FaultKind::kLowBits, script::FaultKind::kWrongBits}) {
      script::StepExperiment::Options options;
      options.step = Planted(step, kind);
      options.executions = 1;
      options.standard = Ascend();
      const script::StepExperiment experiment(step, options);
      script::Remedies remedies;
      remedies.own_memory = true;
      const auto cured = experiment.With(remedies);
      script::ElementSet all;
      for (size_t i = 0; i < cured->size(); ++i) all.push_back(i);
      EXPECT_EQ(cured->Try(all).verdict,
                kind == script::FaultKind::kLowBits ? Verdict::kGood : Verdict::kBad);
    }
  });
}

TEST(StandardExperiment, ComparedStepsCountWhatIsWithin) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun run(recorded);
  run.With([&](const script::MixedStep& step) {
    const script::MixedStepOptions small = Planted(step, script::FaultKind::kLowBits);
    EXPECT_EQ(script::CompareSteps(step, small, 2).verdict,
              script::StepComparison::Verdict::kDifferent);
    const script::StepComparison judged = script::CompareSteps(step, small, 2, nullptr, Ascend());
    EXPECT_EQ(judged.verdict, script::StepComparison::Verdict::kEqual);
    EXPECT_EQ(judged.within, 4);  // one output in each execution of both steps
    EXPECT_FALSE(judged.first);
    const script::MixedStepOptions large = Planted(step, script::FaultKind::kWrongBits);
    const script::StepComparison refused = script::CompareSteps(step, large, 2, nullptr, Ascend());
    EXPECT_EQ(refused.verdict, script::StepComparison::Verdict::kDifferent);
    EXPECT_EQ(refused.different, 4);
    ASSERT_TRUE(refused.first);
    EXPECT_NE(refused.first->reason.find(" > "), std::string::npos) << refused.first->reason;
  });
}

}  // namespace
}  // namespace acltape::replayer
