#include "replayer/bisect/classification.h"

#include <algorithm>
#include <utility>

namespace acltape::replayer::bisect {
namespace {

constexpr std::pair<CauseClass, std::string_view> kClassNames[] = {
    {CauseClass::kNumeric, "numeric"},         {CauseClass::kOrdering, "ordering"},
    {CauseClass::kAddress, "address"},         {CauseClass::kStaleArgument, "stale argument"},
    {CauseClass::kAliasing, "aliasing"},       {CauseClass::kNoise, "noise"},
    {CauseClass::kInteraction, "interaction"}, {CauseClass::kFailure, "failure"},
    {CauseClass::kUnknown, "unknown"},
};

// The effect of one counter-experiment that a row requires.
enum class Asks { kAnything, kCured, kStays };
constexpr Asks kAny = Asks::kAnything;
constexpr Asks kCured = Asks::kCured;
constexpr Asks kStays = Asks::kStays;

// The first row whose effects all match decides. A new capture gives a graph the values and places
// of the executed step. So it also cures whatever the more specific remedies cure, and its row
// comes after theirs.
struct DecisionRow {
  // The effects are in the order of CounterExperiments: one stream, own memory, own workspace,
  // fresh inputs, step arguments, recapture.
  Asks effects[6];
  CauseClass cause;
  const char* detail;
  const char* reason;
};
constexpr DecisionRow kDecisions[] = {
    {{kAny, kAny, kAny, kAny, kCured, kAny},
     CauseClass::kStaleArgument,
     "host argument",
     "with the step's own host arguments in the graph the difference is gone"},
    {{kAny, kAny, kAny, kCured, kAny, kAny},
     CauseClass::kStaleArgument,
     "input",
     "with every input copied to its captured place before the execution the difference is gone"},
    {{kAny, kAny, kCured, kAny, kAny, kAny},
     CauseClass::kAliasing,
     "workspace",
     "with a workspace for every call alone the difference is gone"},
    {{kCured, kStays, kAny, kAny, kAny, kAny},
     CauseClass::kOrdering,
     "",
     "with all calls in program order on one stream the difference is gone"},
    {{kCured, kCured, kAny, kAny, kAny, kAny},
     CauseClass::kOrdering,
     "reused memory",
     "on one stream the difference is gone, and so it is when no memory is shared: calls of "
     "different streams use the same memory without an order"},
    {{kAny, kCured, kAny, kAny, kAny, kAny},
     CauseClass::kAliasing,
     "memory",
     "with memory of its own for every buffer the difference is gone, whatever the order"},
    {{kAny, kStays, kAny, kStays, kStays, kCured},
     CauseClass::kAddress,
     "",
     "captured again at the step that is executed the difference is gone, though neither its "
     "inputs nor its host arguments were stale"},
    {{kStays, kStays, kStays, kStays, kStays, kStays},
     CauseClass::kNumeric,
     "",
     "nothing that surrounds the calls matters: captured they give other bits"},
};

// The conclusions from the effect of a remedy.
struct Meaning {
  bool script::Remedies::*remedy;
  const char* if_cured;
  const char* if_not;
};
constexpr Meaning kMeanings[] = {
    {&script::Remedies::one_stream, "calls of different streams lack an order",
     "no order between streams is missing"},
    {&script::Remedies::own_memory, "memory is used again while its content is still needed",
     "no memory is used again too early"},
    {&script::Remedies::own_workspace, "a workspace lies on something that is still needed",
     "no workspace lies on a result"},
    {&script::Remedies::fresh_inputs, "an input keeps the value of an earlier step",
     "no input is stale"},
    {&script::Remedies::step_arguments, "a host argument keeps the value of the capture",
     "no host argument is baked in"},
    {&script::Remedies::recapture, "the graph holds a value or a place of the step of the capture",
     "nothing depends on the step of the capture"},
};

bool Holds(Asks asks, Effect effect) {
  return asks == Asks::kAnything || (asks == Asks::kCured && effect == Effect::kCured) ||
         (asks == Asks::kStays && effect == Effect::kStays);
}

}  // namespace

std::string_view CauseClassName(CauseClass cause) {
  for (const auto& [value, name] : kClassNames) {
    if (value == cause) return name;
  }
  return "unknown";
}

const std::vector<CounterExperiment>& CounterExperiments() {
  static const std::vector<CounterExperiment> experiments = [] {
    std::vector<CounterExperiment> made;
    for (const script::Remedy& remedy : script::AllRemedies()) {
      const auto* row = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                     [&](const Meaning& m) { return m.remedy == remedy.member; });
      made.push_back({&remedy, row->if_cured, row->if_not});
    }
    return made;
  }();
  return experiments;
}

Classification Decide(std::vector<CounterResult> results, bool varies) {
  Classification decided;
  decided.varies = varies;
  decided.results = std::move(results);
  for (const DecisionRow& row : kDecisions) {
    bool holds = true;
    for (size_t i = 0; i < decided.results.size(); ++i) {
      holds = holds && Holds(row.effects[i], decided.results[i].effect);
    }
    if (!holds) continue;
    if (row.cause == CauseClass::kNumeric && varies) break;
    decided.cause = row.cause;
    decided.detail = row.detail;
    decided.reason = row.reason;
    return decided;
  }
  const bool whole =
      std::all_of(decided.results.begin(), decided.results.end(), [](const CounterResult& result) {
        return result.effect == Effect::kCured || result.effect == Effect::kStays;
      });
  decided.reason = varies  ? "the results vary from run to run, and no remedy cures that"
                   : whole ? "no row of the decision table has these effects"
                           : "not every counter-experiment could be made";
  return decided;
}

Classification Classify(const script::ElementSet& altered, const Trials& trials,
                        const ExperimentWith& experiment_with, const TrialOptions& options,
                        Journal* journal) {
  std::vector<CounterResult> results;
  TrialOptions trial_options = options;
  if (trials.varies()) {
    trial_options.executions =
        static_cast<int>(std::max<int64_t>(options.executions, trials.executions_needed()));
  }
  bool in_time = true;
  for (const CounterExperiment& counter : CounterExperiments()) {
    CounterResult result;
    result.experiment = &counter;
    if (in_time) {
      script::Remedies remedies;
      remedies.*counter.remedy->member = true;
      const std::unique_ptr<script::Experiment> experiment = experiment_with(remedies);
      Trials counter_trials(*experiment, trial_options, journal, std::string(counter.remedy->name));
      try {
        const Trials::Answer answer = counter_trials.Ask(altered);
        result.effect = answer == Trials::Answer::kClean   ? Effect::kCured
                        : answer == Trials::Answer::kFails ? Effect::kStays
                                                           : Effect::kCannotJudge;
        result.outcome = counter_trials.Known(altered);
      } catch (const BudgetSpent&) {
        in_time = false;
      }
    }
    results.push_back(std::move(result));
  }
  return Decide(std::move(results), trials.varies());
}

}  // namespace acltape::replayer::bisect
