// Finds out why a set of calls fails when it is captured. The program is executed again with one
// thing changed at a time. The changes that cure it tell the class of the cause. classification.cpp
// has tables with the changes and the conclusions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "replayer/bisect/trials.h"
#include "replayer/script/mixed_step.h"

namespace acltape::replayer::bisect {

enum class CauseClass {
  kNumeric,        // the captured calls give other bits in any surroundings
  kOrdering,       // a call runs before one that it depends on
  kAddress,        // a graph uses an old address, from its capture
  kStaleArgument,  // a graph keeps a value from its capture
  kAliasing,       // memory is reused while its content is still needed
  kNoise,          // the program differs from run to run
  kInteraction,    // no call differs on equal inputs, but together they do
  kFailure,        // a call fails
  kUnknown,        // no row of the decision table matches
};

// Returns "numeric", "ordering", "address", "stale argument", "aliasing", "noise", "interaction",
// "failure" or "unknown".
std::string_view CauseClassName(CauseClass cause);

// An experiment in which one thing is changed.
struct CounterExperiment {
  const script::Remedy* remedy;  // its name also marks the experiment in the journal
  const char* if_cured;          // the conclusion if the difference goes away, as a sentence
  const char* if_not;            // the conclusion if the difference stays
};
// Returns one experiment for each remedy, in the order of the remedies.
const std::vector<CounterExperiment>& CounterExperiments();

enum class Effect {
  kCured,
  kStays,
  kCannotJudge,
  kNotMade,  // the budget was spent
};

struct CounterResult {
  const CounterExperiment* experiment = nullptr;
  Effect effect = Effect::kNotMade;
  script::Outcome outcome;
};

struct Classification {
  CauseClass cause = CauseClass::kUnknown;
  std::string detail;  // "host argument", "input", "workspace", "memory", ...; may be empty
  std::string reason;  // a sentence: the evidence for this class
  bool varies = false;
  std::vector<CounterResult> results;  // every counter-experiment
};

// Makes the experiment with one remedy applied. It is called for each counter-experiment.
using ExperimentWith = std::function<std::unique_ptr<script::Experiment>(const script::Remedies&)>;

// Finds the class of a cause. `altered` must fail without a remedy, as `trials` has seen.
// Experiments are written to the journal, and taken from it if it holds them. Does not throw
// BudgetSpent; experiments that were not made are marked.
Classification Classify(const script::ElementSet& altered, const Trials& trials,
                        const ExperimentWith& experiment_with, const TrialOptions& options,
                        Journal* journal);

// Returns the class that these effects indicate. `results` is in the order of CounterExperiments.
Classification Decide(std::vector<CounterResult> results, bool varies);

}  // namespace acltape::replayer::bisect
