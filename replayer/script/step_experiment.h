// Mixed steps as an experiment that can be bisected. It asks if the step with these elements
// altered gives the same results as the step with no call captured.
//
// Elements are the capturable places of the step, in the plan's order of issue, unless other
// alterations are given. The reference is the result with nothing captured; if executions differ,
// it is the most frequent one. Only its digests are kept. An experiment builds one script, which
// captures once and executes the steps of `run_matches` several times. The outcome is unstable if a
// step does not always give the same result.
//
// With a precision standard, the reference is the first eager execution, and its values are kept
// (output_judge.h). Results that the standard accepts count as equal to the reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analyzer/calls/coverage.h"
#include "analyzer/metrics/standard.h"
#include "meaning/command_change.h"
#include "replayer/script/alterations.h"
#include "replayer/script/experiment.h"
#include "replayer/script/mixed_step.h"
#include "replayer/script/output_judge.h"

namespace acltape::replayer::script {

class StepExperiment final : public Experiment {
 public:
  struct Options {
    MixedStepOptions step;  // the suspected step; each experiment sets `captured`
    int executions = 5;     // executions of `run_matches` in each experiment
    std::shared_ptr<const analyzer::metrics::Standard> standard;  // null: bitwise
    meaning::GivenCommand command;  // an `acltape experiment` of this step
  };
  // The mixed step must outlive the object. If `alterations` is null, calls are captured one by
  // one.
  StepExperiment(const MixedStep& step, Options options,
                 std::shared_ptr<const Alterations> alterations = nullptr);

  size_t size() const override { return alterations_->size(); }
  std::string Describe(size_t element) const override { return alterations_->Describe(element); }
  // If a call of the interface fails, the outcome is bad if the same failure occurs with everything
  // altered, else it cannot be judged. Throws CallFailed if a call fails with nothing captured. If
  // the eager step varies, the evidence of the outcome without alterations says "eager_varies".
  Outcome Try(const ElementSet& altered) override;
  std::string Command(const ElementSet& altered) const override;
  // Takes the reference from an outcome of the experiment without alterations.
  void Recall(const ElementSet& altered, const Outcome& outcome) override;

  // True if this outcome, without alterations, says that the eager step itself varies.
  static bool EagerVaries(const Outcome& outcome);

  // A call that gives different results from equal inputs, with nothing captured.
  struct FlakyCall {
    int64_t leaf = 0;  // in the step that was executed
    int different = 0;
    int executions = 0;  // executions in which no earlier call differed
  };
  // Returns such calls in program order. Executes the step `rounds` times and watches all results
  // of its calls.
  std::vector<FlakyCall> FindFlakyCalls(int rounds) const;

  // Returns the same experiment with these remedies, against the same reference.
  std::unique_ptr<StepExperiment> With(const Remedies& remedies) const;
  // Returns the options of one experiment.
  MixedStepOptions OptionsFor(const ElementSet& altered) const;
  const MixedStep& step() const { return step_; }
  // Returns how much of the steps its outputs tell of.
  analyzer::Coverage Coverage() const;

 private:
  using Digests = JudgedRun::Digests;
  // Digests by index in run_matches; empty until the reference was executed.
  using Reference = std::vector<Digests>;
  // Returns the digest that an output of an observation should have.
  std::string& ReferenceOf(int observation, int number) const;
  JudgedRun Run(const Script& script, const JudgedRun::Reference& reference) const;
  // Runs the script. Without a reference, it only collects digests.
  JudgedRun RunAgainstReference(const Script& script) const;
  Outcome Judge(const Script& script, const JudgedRun& run) const;
  std::string Evidence(const Script& script, const JudgedRun::First& first) const;
  Outcome OutcomeOfFailure(const ElementSet& altered, const CallFailed& failure);
  MixedStepOptions EagerOptions() const;
  void EnsureReference();
  Outcome WithReference(Outcome outcome) const;

  const MixedStep& step_;
  const Options options_;
  const std::shared_ptr<const Alterations> alterations_;
  std::shared_ptr<Reference> reference_;
  std::shared_ptr<OutputJudge> judge_;
  int failure_ = 0;  // error code with everything altered; 0: none
};

}  // namespace acltape::replayer::script
