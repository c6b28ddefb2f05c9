// Two sides as an experiment that can be bisected. It asks if the eager step gives the same results
// with these calls executed on the bad side as with all calls on the good side.
//
// Elements are the calls of the step that execute anything, in program order. The results that
// outlive the step, that the host reads, and that nothing uses are compared (Watch::kStepOutputs).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "meaning/command_change.h"
#include "replayer/script/experiment.h"
#include "replayer/script/mixed_step.h"
#include "replayer/sides/sided_run.h"
#include "replayer/sides/step_rounds.h"

namespace acltape::replayer::sides {

// Returns the places of kernels that launch anything, in program order.
std::vector<size_t> ExecutedPlaces(const script::MixedStep& step);

// Returns a script that executes these steps of the class eagerly, once each.
Script EagerScript(const script::MixedStep& step, const std::vector<size_t>& run_matches,
                   script::Watch watch);

// The options that experiments on an eager step share.
struct EagerStepOptions {
  std::vector<size_t> places;          // the elements, in program order
  std::vector<size_t> run_matches{1};  // steps of the class to execute
  int executions = 3;                  // executions of these steps in each experiment
  meaning::GivenCommand command;       // a bisection that judges this step
};

// Returns the command that makes the experiment with these calls again. If all calls or none are
// altered, they are not named.
std::string CommandFor(const script::MixedStep& step, const EagerStepOptions& options,
                       const script::ElementSet& altered);

// Returns the outcome of a bad side that failed in a round. `rounds` are the earlier rounds.
script::Outcome OutcomeOfFailure(const Round& reference, const std::vector<Round>& rounds,
                                 const std::string& why);
// Returns the evidence that a failure of either side left; empty if neither failed.
std::string FailureIn(const script::Outcome& outcome);

class SidesExperiment final : public script::Experiment {
 public:
  // `sides` has the good side first. The mixed step and the sides must outlive the object.
  SidesExperiment(const script::MixedStep& step, std::array<CallSide*, 2> sides,
                  EagerStepOptions options);

  size_t size() const override { return options_.places.size(); }
  std::string Describe(size_t element) const override;
  // A failure of the bad side is a bad outcome. If the good side fails, the experiment cannot be
  // judged; with nothing altered, SideFailed is thrown.
  script::Outcome Try(const script::ElementSet& altered) override;
  void Recall(const script::ElementSet& altered, const script::Outcome& outcome) override;
  std::string Command(const script::ElementSet& altered) const override {
    return CommandFor(step_, options_, altered);
  }
  const SidedRun& run() const { return run_; }

 private:
  Round RunOnce(const script::ElementSet& altered, int round, FirstDifference* difference);

  const script::MixedStep& step_;
  const EagerStepOptions options_;
  SidedRun run_;
  Round reference_;  // empty until it was executed
};

}  // namespace acltape::replayer::sides
