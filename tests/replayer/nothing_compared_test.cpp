// Experiments in which no result is looked at have no verdict: they are neither equal nor
// different.
#include <gtest/gtest.h>

#include "replayer/bisect/bisection.h"
#include "replayer/prove/witness.h"
#include "replayer/script/compare_steps.h"
#include "replayer/script/step_experiment.h"
#include "tests/replayer/mixed_step_fixture.h"

namespace acltape::replayer {
namespace {

using test::MixedStepRun;
using test::Recorded;

// Only the first call of a chain is executed. The next call reads its result, and nothing else
// does, so that the result does not outlive the step.
script::MixedStepOptions OnlyTheFirstCall(const script::MixedStep& step) {
  script::MixedStepOptions options;
  options.executed.assign(step.places(), false);
  options.executed.front() = true;
  options.run_matches = {1};
  return options;
}

TEST(NothingCompared, AComparisonOfStepsHasAVerdictOfItsOwn) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun(recorded).With([](const script::MixedStep& step) {
    script::MixedStepOptions options = OnlyTheFirstCall(step);
    const script::StepComparison blind = script::CompareSteps(step, options, 2);
    EXPECT_EQ(blind.verdict, script::StepComparison::Verdict::kNothing)
        << script::VerdictName(blind.verdict);
    EXPECT_EQ(blind.outputs, 0);
    options.watch = script::Watch::kEveryResult;
    EXPECT_EQ(script::CompareSteps(step, options, 2).verdict,
              script::StepComparison::Verdict::kEqual);
  });
}

TEST(NothingCompared, ABisectionCannotJudgeAndSaysWhy) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun(recorded).With([](const script::MixedStep& step) {
    script::StepExperiment::Options options;
    options.step = OnlyTheFirstCall(step);
    script::StepExperiment experiment(step, options);
    EXPECT_EQ(experiment.Try({}).verdict, script::Outcome::Verdict::kCannotJudge);
    const bisect::BisectionReport report = bisect::Bisect(experiment, {}, nullptr, {});
    EXPECT_EQ(report.ExitCode(), 125);
    EXPECT_NE(report.Verdict().find("nothing was compared: "), std::string::npos)
        << report.Verdict();
  });
}

TEST(NothingCompared, AWitnessIsNotCalledEqual) {
  const Recorded recorded = test::Chain(3, 4);
  prove::WitnessedTrial witnessed;
  MixedStepRun(recorded).With(
      [&](const script::MixedStep& step) { witnessed.trial.step = OnlyTheFirstCall(step); });
  const storage::Reader reader(recorded.path());
  const prove::WitnessRun run =
      prove::RunWitness(reader, witnessed, nullptr, "", 1, int64_t{1} << 20);
  EXPECT_EQ(run.verdict, "not compared");
  EXPECT_EQ(run.outcome.compared, 0);
}

}  // namespace
}  // namespace acltape::replayer
