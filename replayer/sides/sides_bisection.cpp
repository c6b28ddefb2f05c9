#include "replayer/sides/sides_bisection.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "meaning/options.h"
#include "replayer/script/step_coverage.h"
#include "replayer/sides/equal_inputs.h"
#include "replayer/sides/recorded_experiment.h"

namespace acltape::replayer::sides {
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
  bisect::CauseClass cause;
  const char* reason;
  const char* of_recorded;  // the reason if the recording is the good side
};
// The first row that matches decides.
constexpr DecisionRow kDecisions[] = {
    {&Seen::fails, true, bisect::CauseClass::kFailure, "the bad side cannot execute it",
     "it cannot be executed"},
    {&Seen::varies, true, bisect::CauseClass::kNoise,
     "the results vary from execution to execution, with equal inputs",
     "the results vary from execution to execution, with recorded inputs"},
    {&Seen::numeric, true, bisect::CauseClass::kNumeric,
     "executed on both sides with the same inputs, the call gives other results",
     "executed with its recorded inputs, the call gives other results"},
    {&Seen::whole, false, bisect::CauseClass::kUnknown,
     "not every call could be executed on both sides with the same inputs",
     "not every call could be executed alone"},
    {&Seen::whole, true, bisect::CauseClass::kInteraction,
     "executed on both sides with the same inputs, each call gives the same results: what differs "
     "is left by one call to another, or lies outside of their results",
     "executed alone with its recorded inputs, each call gives its recorded results"},
};

std::vector<bisect::CallGroup> AlterableGroups(const script::MixedStep& step,
                                               const SidesBisectionOptions& options) {
  const std::vector<size_t>& places = options.experiment.places;
  std::vector<bisect::CallGroup> groups =
      bisect::GroupsOf(options.elements, step.session().program(), step.step_class(), places,
                       nullptr)
          .groups;
  if (options.may_alter) {
    std::erase_if(groups, [&](const bisect::CallGroup& group) {
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
void Classify(const script::ElementSet& members, bisect::BisectionReport& report,
              script::Experiment& alone, bool recorded, const bisect::TrialOptions& options,
              bisect::Journal* journal, bisect::FoundCause& found) {
  Seen seen;
  const std::string failure = FailureIn(found.cause.outcome);
  seen.fails = !failure.empty();
  if (seen.fails) found.evidence.push_back(failure);
  bisect::Trials trials(alone, options, journal, kEqualInputs);
  for (const size_t member : members) {
    if (seen.fails) break;
    try {
      const bisect::Trials::Answer answer = trials.Ask({member});
      seen.whole = seen.whole && answer != bisect::Trials::Answer::kCannotJudge;
      seen.numeric = seen.numeric || answer == bisect::Trials::Answer::kFails;
    } catch (const bisect::BudgetSpent&) {
      seen.whole = false;
      break;
    }
    const script::Outcome known = trials.Known({member});
    if (known.evidence.empty()) continue;
    const json evidence = json::parse(known.evidence);
    for (const char* key : {"sentence", "error"}) {
      if (evidence.contains(key)) found.evidence.push_back(evidence.at(key));
    }
  }
  report.counter_experiments += trials.experiments();
  seen.varies = report.search.varies || trials.varies();
  bisect::Classification classification;
  classification.varies = seen.varies;
  for (const DecisionRow& row : kDecisions) {
    if (seen.*row.holds != row.value) continue;
    classification.cause = row.cause;
    classification.reason = recorded ? row.of_recorded : row.reason;
    break;
  }
  found.classification = std::move(classification);
}

void KeepPlaces(const script::MixedStep& step, const SidesBisectionOptions& options,
                const script::ElementSet& members, bisect::FoundCause& found) {
  if (members.empty()) return;
  std::vector<size_t> places;
  for (const size_t member : members) places.push_back(options.experiment.places[member]);
  found.first_call = step.CallAt(places.front());
  found.experiment =
      json{{"altered", places}, {"run_matches", options.experiment.run_matches}}.dump();
}

void NameFlakyCalls(const script::MixedStep& step, EqualInputs& equal_inputs,
                    bisect::BisectionReport& report) {
  const Script& script = equal_inputs.script();
  int64_t named = -1;
  for (const script::UnsteadyOutput& flaky :
       script::FindUnsteadyOutputs(equal_inputs.GoodRounds(kRoundsOfFlaky))) {
    const int64_t leaf = script.outputs[script.observations.front().first + flaky.output].leaf;
    if (leaf == std::exchange(named, leaf)) continue;
    report.flaky.push_back(
        fmt::format("{} gives other results from equal inputs in {} of {} executions",
                    step.session().program().Describe(leaf), flaky.different, flaky.executions));
  }
}

}  // namespace

bisect::BisectionReport BisectSides(const script::MixedStep& step, std::array<CallSide*, 2> sides,
                                    const SidesBisectionOptions& given, bisect::Journal* journal) {
  SidesBisectionOptions options = given;
  options.experiment.places = ExecutedPlaces(step);
  const std::vector<bisect::CallGroup> groups = AlterableGroups(step, options);
  const auto experiment = std::make_shared<SidesExperiment>(step, sides, options.experiment);
  bisect::GroupedExperiment grouped(experiment, groups);
  bisect::BisectionReport report = bisect::Bisect(grouped, options.bisection, journal, {});
  report.coverage = script::CoverageOf(step, {}, experiment->run().script());
  std::unique_ptr<EqualInputs> equal_inputs;  // made at the first use
  const auto alone = [&]() -> EqualInputs& {
    if (equal_inputs == nullptr) {
      equal_inputs = std::make_unique<EqualInputs>(step, sides, options.experiment);
    }
    return *equal_inputs;
  };
  for (bisect::FoundCause& found : report.found) {
    const script::ElementSet members = grouped.Members(found.cause.elements);
    KeepPlaces(step, options, members, found);
    if (!found.cause.minimal) continue;
    Classify(members, report, alone(), /*recorded=*/false, options.bisection.trials, journal,
             found);
  }
  if (report.search.verdict == bisect::SearchResult::Verdict::kFlakyReference) {
    NameFlakyCalls(step, alone(), report);
  }
  return report;
}

bisect::BisectionReport BisectRecorded(const script::MixedStep& step, CallSide* bad,
                                       const SidesBisectionOptions& given,
                                       bisect::Journal* journal) {
  SidesBisectionOptions options = given;
  options.experiment.places =
      RecordedExperiment::JudgedPlaces(step, options.experiment.run_matches);
  const std::vector<bisect::CallGroup> groups = AlterableGroups(step, options);
  const auto alone = std::make_shared<RecordedExperiment>(step, bad, options.experiment);
  bisect::GroupedExperiment grouped(alone, groups);
  bisect::BisectionReport report = bisect::Bisect(grouped, options.bisection, journal, {});
  const auto executed = static_cast<int64_t>(ExecutedPlaces(step).size());
  const auto judged = static_cast<int64_t>(options.experiment.places.size());
  report.unjudged = static_cast<size_t>(executed - judged);
  // A search among calls that were picked answers for these, and those without results are none.
  if (!options.may_alter) report.coverage = alone->Coverage();
  for (bisect::FoundCause& found : report.found) {
    const script::ElementSet members = grouped.Members(found.cause.elements);
    KeepPlaces(step, options, members, found);
    if (!found.cause.minimal) continue;
    Classify(members, report, *alone, /*recorded=*/true, options.bisection.trials, journal, found);
  }
  return report;
}

}  // namespace acltape::replayer::sides
