// Two sides as an experiment that can be bisected: is the step, executed eagerly, the same when
// these calls are executed on the bad side, as it is when all are on the good one?
//
// Elements are the calls of the step that execute anything, in program order. What is compared is
// what outlives the step, what the host reads and what nothing uses (Watch::kStepOutputs).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "replayer/bisect/experiment.h"
#include "replayer/script/mixed_step.h"
#include "replayer/sides/sided_run.h"
#include "replayer/sides/step_rounds.h"

namespace acltape::replayer {

// Places of kernels that launch anything, in program order.
std::vector<size_t> ExecutedPlaces(const MixedStep& step);

// These steps of the class, executed eagerly once each.
Script EagerScript(const MixedStep& step, const std::vector<size_t>& run_matches, Watch watch);

// What experiments on an eager step have in common.
struct EagerStepOptions {
  std::vector<size_t> places;          // that may be altered, in program order
  std::vector<size_t> run_matches{1};  // steps of the class that are executed
  int executions = 3;                  // of these, in each experiment
  std::string command;                 // "acltape bisect t.db ...": all but which calls are altered
};

// The command with the altered calls; none of them named when it is about all that execute.
std::string CommandFor(const MixedStep& step, const EagerStepOptions& options,
                       const ElementSet& altered);

// The outcome of a bad side that failed in a round, after others that gave the reference's results
// or not.
Outcome OutcomeOfFailure(const Round& reference, const std::vector<Round>& rounds,
                         const std::string& why);
// What a failure of either side left as evidence; empty when there was none.
std::string FailureIn(const Outcome& outcome);

class SidesExperiment final : public Experiment {
 public:
  // The mixed step and the sides, the good one first, must outlive it.
  SidesExperiment(const MixedStep& step, std::array<CallSide*, 2> sides, EagerStepOptions options);

  size_t size() const override { return options_.places.size(); }
  std::string Describe(size_t element) const override;
  // When the bad side fails, that is a bad outcome. When the good one does, the experiment cannot
  // be judged; with nothing altered SideFailed is thrown.
  Outcome Try(const ElementSet& altered) override;
  void Recall(const ElementSet& altered, const Outcome& outcome) override;
  std::string Command(const ElementSet& altered) const override {
    return CommandFor(step_, options_, altered);
  }
  const SidedRun& run() const { return run_; }

 private:
  Round RunOnce(const ElementSet& altered, int round, FirstDifference* difference);

  const MixedStep& step_;
  const EagerStepOptions options_;
  SidedRun run_;
  Round reference_;  // empty until it was executed
};

}  // namespace acltape::replayer
