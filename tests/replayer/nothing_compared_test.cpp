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

// Only the first call of a chain is executed. The call behind it reads its result, and nothing else
// does, so that the result does not outlive the step.
MixedStepOptions OnlyTheFirstCall(const MixedStep& step) {
  MixedStepOptions options;
  options.executed.assign(step.places(), false);
  options.executed.front() = true;
  options.run_matches = {1};
  return options;
}

TEST(NothingCompared, AComparisonOfStepsHasAVerdictOfItsOwn) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun(recorded).With([](const MixedStep& step) {
    MixedStepOptions options = OnlyTheFirstCall(step);
    const StepComparison blind = CompareSteps(step, options, 2);
    EXPECT_EQ(blind.verdict, StepComparison::Verdict::kNothing) << VerdictName(blind.verdict);
    EXPECT_EQ(blind.outputs, 0);
    options.watch = Watch::kEveryResult;
    EXPECT_EQ(CompareSteps(step, options, 2).verdict, StepComparison::Verdict::kEqual);
  });
}

TEST(NothingCompared, ABisectionCannotJudgeAndSaysWhy) {
  const Recorded recorded = test::Chain(3, 4);
  MixedStepRun(recorded).With([](const MixedStep& step) {
    StepExperiment::Options options;
    options.step = OnlyTheFirstCall(step);
    StepExperiment experiment(step, options);
    EXPECT_EQ(experiment.Try({}).verdict, Outcome::Verdict::kCannotJudge);
    const BisectionReport report = Bisect(experiment, {}, nullptr, {});
    EXPECT_EQ(report.ExitCode(), 125);
    EXPECT_NE(report.Verdict().find("nothing was compared: "), std::string::npos)
        << report.Verdict();
  });
}

TEST(NothingCompared, AWitnessIsNotCalledEqual) {
  const Recorded recorded = test::Chain(3, 4);
  WitnessedTrial witnessed;
  MixedStepRun(recorded).With(
      [&](const MixedStep& step) { witnessed.trial.step = OnlyTheFirstCall(step); });
  const storage::Reader reader(recorded.path());
  const WitnessRun run = RunWitness(reader, witnessed, nullptr, "", 1, int64_t{1} << 20);
  EXPECT_EQ(run.verdict, "not compared");
  EXPECT_EQ(run.outcome.compared, 0);
}

}  // namespace
}  // namespace acltape::replayer
