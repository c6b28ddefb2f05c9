// Mixed steps as an experiment that can be bisected: is the step the same when these elements are
// altered, as it is when none of its calls is captured?
//
// Elements are the capturable places of the step, in the plan's order of issue, unless other
// alterations are asked for. The reference is what the step gives with nothing captured, in most of
// the executions when they differ; it is kept as digests, so that no contents stay in memory. An
// experiment builds one script, which captures once and executes the steps of `run_matches` several
// times; it is unstable when one of the steps does not always give the same.
//
// With a precision standard the reference is the first eager execution, its values are kept
// (output_judge.h), and what the standard lets pass is as the reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analyzer/metrics/standard.h"
#include "replayer/bisect/experiment.h"
#include "replayer/script/alterations.h"
#include "replayer/script/mixed_step.h"
#include "replayer/script/output_judge.h"

namespace acltape::replayer {

class StepExperiment final : public Experiment {
 public:
  struct Options {
    MixedStepOptions step;  // of the suspected way; each experiment sets `captured`
    int executions = 5;     // of `run_matches`, in each experiment
    std::shared_ptr<const analyzer::Standard> standard;  // null: bitwise
    std::string command;  // "acltape experiment t.db ...": all but what is altered
  };
  // The mixed step must outlive it. Null: calls are captured one by one.
  StepExperiment(const MixedStep& step, Options options,
                 std::shared_ptr<const Alterations> alterations = nullptr);

  size_t size() const override { return alterations_->size(); }
  std::string Describe(size_t element) const override { return alterations_->Describe(element); }
  // A call of the interface that fails is a bad outcome when it does with everything altered, too,
  // else one that cannot be judged. Throws CallFailed when it does with nothing captured. When the
  // eager step differs from itself, the evidence of the outcome without alterations says
  // "eager_varies".
  Outcome Try(const ElementSet& altered) override;
  std::string Command(const ElementSet& altered) const override;
  // Takes the reference from what the experiment without alterations gave.
  void Recall(const ElementSet& altered, const Outcome& outcome) override;

  // Whether this outcome without alterations is about the eager step, which differs from itself.
  static bool EagerVaries(const Outcome& outcome);

  // Calls that give different results from equal inputs, with nothing captured.
  struct FlakyCall {
    int64_t leaf = 0;  // in the step that was executed
    int different = 0;
    int executions = 0;  // in which no call before it was different
  };
  // In program order. Executes the step `rounds` times, all results of its calls watched.
  std::vector<FlakyCall> FindFlakyCalls(int rounds) const;

  // The same with these remedies, against the same reference.
  std::unique_ptr<StepExperiment> With(const Remedies& remedies) const;
  // The options of one experiment.
  MixedStepOptions OptionsFor(const ElementSet& altered) const;
  const MixedStep& step() const { return step_; }

 private:
  using Digests = JudgedRun::Digests;
  // By place in run_matches; empty until the reference was executed.
  using Reference = std::vector<Digests>;
  // The digest that an output of an observation should have.
  std::string& ReferenceOf(int observation, int number) const;
  JudgedRun Run(const Script& script, const JudgedRun::Reference& reference) const;
  // No differences are looked for before there is a reference.
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
  int failure_ = 0;  // code with which the step fails when everything is altered
};

}  // namespace acltape::replayer
