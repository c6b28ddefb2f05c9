#include "replayer/sides/sides_bisection.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "meaning/options.h"
#include "replayer/sides/equal_inputs.h"
#include "replayer/sides/recorded_experiment.h"

namespace acltape::replayer {
namespace {

using nlohmann::json;

constexpr char kEqualInputs[] = "equal inputs";  // the name in the journal
constexpr int kRoundsOfFlaky = 50;

// The facts about the calls of a cause. A table below draws the conclusions.
struct Seen {
  bool fails = false;    // the cause is a failure of the bad side
  bool varies = false;   // results of equal executions differ
  bool numeric = false;  // some call differs from equal inputs
  bool whole = true;     // every call could be tested
};
struct DecisionRow {
  bool Seen::*holds;
  bool value;
  CauseClass cause;
  const char* reason;
  const char* of_recorded;  // the reason if the recording is the good side
};
// The first row that matches decides.
constexpr DecisionRow kDecisions[] = {
    {&Seen::fails, true, CauseClass::kFailure, "the bad side cannot execute it",
     "it cannot be executed"},
    {&Seen::varies, true, CauseClass::kNoise,
     "the results vary from execution to execution, with equal inputs",
     "the results vary from execution to execution, with recorded inputs"},
    {&Seen::numeric, true, CauseClass::kNumeric,
     "executed on both sides with the same inputs, the call gives other results",
     "executed with its recorded inputs, the call gives other results"},
    {&Seen::whole, false, CauseClass::kUnknown,
     "not every call could be executed on both sides with the same inputs",
     "not every call could be executed alone"},
    {&Seen::whole, true, CauseClass::kInteraction,
     "executed on both sides with the same inputs, each call gives the same results: what differs "
     "is left by one call to another, or lies outside of their results",
     "executed alone with its recorded inputs, each call gives its recorded results"},
};

std::vector<CallGroup> AlterableGroups(const MixedStep& step,
                                       const SidesBisectionOptions& options) {
  const std::vector<size_t>& places = options.experiment.places;
  std::vector<CallGroup> groups =
      GroupsOf(options.elements, step.session().program(), step.step_class(), places, nullptr)
          .groups;
  if (options.may_alter) {
    std::erase_if(groups, [&](const CallGroup& group) {
      return !std::all_of(group.members.begin(), group.members.end(), [&](size_t member) {
        return options.may_alter(step.CallAt(places[member]));
      });
    });
  }
  if (!groups.empty()) return groups;
  throw Error(ErrorKind::kUsage,
              fmt::format("@calls picks none of the calls that can be executed; those of the "
                          "bisected step lie between {} and {}."_cli,
                          step.CallAt(0), step.CallAt(step.places() - 1)));
}

// Tests each call of a cause and classifies the cause. `alone` is an experiment that is good if the
// call gives the same results from equal inputs.
void Classify(const ElementSet& members, BisectionReport& report, Experiment& alone, bool recorded,
              const TrialOptions& options, Journal* journal, FoundCause& found) {
  Seen seen;
  const std::string failure = FailureIn(found.cause.outcome);
  seen.fails = !failure.empty();
  if (seen.fails) found.evidence.push_back(failure);
  Trials trials(alone, options, journal, kEqualInputs);
  for (const size_t member : members) {
    if (seen.fails) break;
    try {
      const Trials::Answer answer = trials.Ask({member});
      seen.whole = seen.whole && answer != Trials::Answer::kCannotJudge;
      seen.numeric = seen.numeric || answer == Trials::Answer::kFails;
    } catch (const BudgetSpent&) {
      seen.whole = false;
      break;
    }
    const Outcome known = trials.Known({member});
    if (known.evidence.empty()) continue;
    const json evidence = json::parse(known.evidence);
    for (const char* key : {"sentence", "error"}) {
      if (evidence.contains(key)) found.evidence.push_back(evidence.at(key));
    }
  }
  report.counter_experiments += trials.experiments();
  seen.varies = report.search.varies || trials.varies();
  Classification classification;
  classification.varies = seen.varies;
  for (const DecisionRow& row : kDecisions) {
    if (seen.*row.holds != row.value) continue;
    classification.cause = row.cause;
    classification.reason = recorded ? row.of_recorded : row.reason;
    break;
  }
  found.classification = std::move(classification);
}

void KeepPlaces(const MixedStep& step, const SidesBisectionOptions& options,
                const ElementSet& members, FoundCause& found) {
  if (members.empty()) return;
  std::vector<size_t> places;
  for (const size_t member : members) places.push_back(options.experiment.places[member]);
  found.first_call = step.CallAt(places.front());
  found.experiment =
      json{{"altered", places}, {"run_matches", options.experiment.run_matches}}.dump();
}

void NameFlakyCalls(const MixedStep& step, EqualInputs& equal_inputs, BisectionReport& report) {
  const Script& script = equal_inputs.script();
  int64_t named = -1;
  for (const UnsteadyOutput& flaky : FindUnsteadyOutputs(equal_inputs.GoodRounds(kRoundsOfFlaky))) {
    const int64_t leaf = script.outputs[script.observations.front().first + flaky.output].leaf;
    if (leaf == std::exchange(named, leaf)) continue;
    report.flaky.push_back(
        fmt::format("{} gives other results from equal inputs in {} of {} executions",
                    step.session().program().Describe(leaf), flaky.different, flaky.executions));
  }
}

}  // namespace

BisectionReport BisectSides(const MixedStep& step, std::array<CallSide*, 2> sides,
                            const SidesBisectionOptions& given, Journal* journal) {
  SidesBisectionOptions options = given;
  options.experiment.places = ExecutedPlaces(step);
  const std::vector<CallGroup> groups = AlterableGroups(step, options);
  GroupedExperiment grouped(std::make_shared<SidesExperiment>(step, sides, options.experiment),
                            groups);
  BisectionReport report = Bisect(grouped, options.bisection, journal, {});
  std::unique_ptr<EqualInputs> equal_inputs;  // made at the first use
  const auto alone = [&]() -> EqualInputs& {
    if (equal_inputs == nullptr) {
      equal_inputs = std::make_unique<EqualInputs>(step, sides, options.experiment);
    }
    return *equal_inputs;
  };
  for (FoundCause& found : report.found) {
    const ElementSet members = grouped.Members(found.cause.elements);
    KeepPlaces(step, options, members, found);
    if (!found.cause.minimal) continue;
    Classify(members, report, alone(), /*recorded=*/false, options.bisection.trials, journal,
             found);
  }
  if (report.search.verdict == SearchResult::Verdict::kFlakyReference) {
    NameFlakyCalls(step, alone(), report);
  }
  return report;
}

BisectionReport BisectRecorded(const MixedStep& step, CallSide* bad,
                               const SidesBisectionOptions& given, Journal* journal) {
  SidesBisectionOptions options = given;
  options.experiment.places = ExecutedPlaces(step);
  const std::vector<CallGroup> groups = AlterableGroups(step, options);
  const auto alone = std::make_shared<RecordedExperiment>(step, bad, options.experiment);
  GroupedExperiment grouped(alone, groups);
  BisectionReport report = Bisect(grouped, options.bisection, journal, {});
  for (FoundCause& found : report.found) {
    const ElementSet members = grouped.Members(found.cause.elements);
    KeepPlaces(step, options, members, found);
    if (!found.cause.minimal) continue;
    Classify(members, report, *alone, /*recorded=*/true, options.bisection.trials, journal, found);
  }
  return report;
}

}  // namespace acltape::replayer
