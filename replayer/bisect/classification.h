// Why does a set of calls fail when it is captured? Asked of the program itself: it is executed
// again with one thing changed at a time, and which of the changes cure it says what class of cause
// it is. The changes and what follows from them are tables (classification.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "replayer/bisect/trials.h"
#include "replayer/script/mixed_step.h"

namespace acltape::replayer {

enum class CauseClass {
  kNumeric,        // the calls give other bits, whatever their surroundings
  kOrdering,       // a call runs before one that it depends on
  kAddress,        // a graph uses the place that something had at the capture
  kStaleArgument,  // a graph keeps a value of the capture that is not the step's
  kAliasing,       // memory is used again while its content is still needed
  kNoise,          // the program differs from itself
  kInteraction,    // none of the calls gives other results from equal inputs, together they do
  kFailure,        // a call fails
  kUnknown,        // none of the rows of the decision table holds
};

// "numeric", "ordering", "address", "stale argument", "aliasing", "noise",
// "interaction", "failure", "unknown".
std::string_view CauseClassName(CauseClass cause);

// One thing that is changed.
struct CounterExperiment {
  const Remedy* remedy;  // its name is in the journal, too
  const char* if_cured;  // what a cure shows, as a sentence
  const char* if_not;    // what it rules out when the difference stays
};
// One for each remedy, in their order.
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
  Outcome outcome;
};

struct Classification {
  CauseClass cause = CauseClass::kUnknown;
  std::string detail;  // "host argument", "input", "workspace", "memory", ...; may be empty
  std::string reason;  // a sentence: what decided
  bool varies = false;
  std::vector<CounterResult> results;  // every counter-experiment
};

// Makes the experiment with one remedy applied; asked for each counter-experiment.
using ExperimentWith = std::function<std::unique_ptr<Experiment>(const Remedies&)>;

// `altered` fails without a remedy, as `trials` has seen. Experiments go to the journal and are
// taken from it. Does not throw BudgetSpent: what could not be made is marked.
Classification Classify(const ElementSet& altered, const Trials& trials,
                        const ExperimentWith& experiment_with, const TrialOptions& options,
                        Journal* journal);

// The class that these effects speak for, in the order of CounterExperiments.
Classification Decide(std::vector<CounterResult> results, bool varies);

}  // namespace acltape::replayer
