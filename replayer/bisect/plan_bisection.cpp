#include "replayer/bisect/plan_bisection.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "meaning/options.h"
#include "replayer/bisect/element_text.h"
#include "replayer/bisect/plan_elements.h"
#include "replayer/bisect/plan_evidence.h"
#include "replayer/script/mixed_step_json.h"

namespace acltape::replayer::bisect {
namespace {

// The properties in which the two kinds of elements differ.
struct Liberty {
  std::shared_ptr<const script::Alterations> alterations;
  std::vector<CallGroup> groups;
  // The calls of a group, as places in the step.
  std::function<std::vector<size_t>(const CallGroup&)> places;
  const SideStreamCalls* streams = nullptr;  // streams of `alterations`
  const char* differs_with = "";
  const char* without = "";      // how the step runs with nothing altered, as text
  const char* not_causing = "";  // the part that cannot be the cause if that differs already
};

Liberty SideStreams(const script::MixedStep& step) {
  auto alterations = std::make_shared<const SideStreamCalls>(step);
  if (alterations->size() == 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} puts every captured call on the main stream of its region, so "
                            "that there are no streams to bisect; bisect @what calls, or name a "
                            "plan with side streams (acltape plan @spread)."_cli,
                            step.plan() == nullptr ? "the step without @plan"_cli : "the plan"));
  }
  Liberty liberty;
  liberty.alterations = alterations;
  liberty.groups = alterations->streams();
  liberty.places = [alterations](const CallGroup& group) {
    std::vector<size_t> places;
    for (const size_t member : group.members) places.push_back(alterations->PlaceOf(member));
    return places;
  };
  liberty.streams = alterations.get();
  liberty.differs_with = "the step is right on the main streams alone and differs with";
  liberty.without = "captured with every call on the main stream of its region";
  liberty.not_causing = "concurrency";
  return liberty;
}

Liberty Reuses(const script::MixedStep& step, const script::MixedStepOptions& options) {
  auto alterations = std::make_shared<const ReusedMemory>(step, options);
  if (alterations->size() == 0) {
    throw Error(ErrorKind::kUsage,
                "no buffer of the captured step lies where another one lies, and no two of its "
                "calls share a workspace, so that there is no reuse to bisect; bisect @what "
                "calls."_cli);
  }
  Liberty liberty;
  liberty.alterations = alterations;
  for (size_t i = 0; i < alterations->size(); ++i) {
    liberty.groups.push_back({alterations->Describe(i), {i}});
  }
  liberty.places = [alterations](const CallGroup& group) {
    return std::vector<size_t>{alterations->reuses().at(group.members.front()).place};
  };
  liberty.differs_with = "the step is right when no memory is used again and differs with";
  liberty.without = "captured with memory of its own for every buffer and workspace";
  liberty.not_causing = "reused memory";
  return liberty;
}

void KeepAlterable(const script::MixedStep& step, const StepBisectionOptions& options,
                   Liberty& liberty) {
  if (!options.may_alter) return;
  std::erase_if(liberty.groups, [&](const CallGroup& group) {
    const std::vector<size_t> places = liberty.places(group);
    return !std::all_of(places.begin(), places.end(),
                        [&](size_t place) { return options.may_alter(step.CallAt(place)); });
  });
  if (!liberty.groups.empty()) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("@calls holds all calls of none of the {} of the plan."_cli,
                          ElementsName(options.elements)));
}

// Finds the calls that must stay on a side stream for the step to fail. They are the smallest run
// of calls that cannot be shortened at its start or end.
class Narrowing {
 public:
  Narrowing(Trials& trials, script::ElementSet rest) : trials_(trials), rest_(std::move(rest)) {}

  // Returns the run. `members` must fail together with the rest.
  script::ElementSet Run(const script::ElementSet& members) {
    size_t begin = 0;
    size_t end = members.size();
    for (size_t low = 0; end - low > 1;) {
      const size_t middle = low + (end - low) / 2;
      (Fails(members, 0, middle) ? end : low) = middle;
    }
    for (size_t high = end; high - begin > 1;) {
      const size_t middle = begin + (high - begin) / 2;
      (Fails(members, middle, end) ? begin : high) = middle;
    }
    return Part(members, begin, end);
  }

 private:
  static script::ElementSet Part(const script::ElementSet& members, size_t begin, size_t end) {
    return {members.begin() + static_cast<std::ptrdiff_t>(begin),
            members.begin() + static_cast<std::ptrdiff_t>(end)};
  }
  bool Fails(const script::ElementSet& members, size_t begin, size_t end) {
    return trials_.Ask(UnionOf(rest_, Part(members, begin, end))) == Trials::Answer::kFails;
  }

  Trials& trials_;
  const script::ElementSet rest_;
};

// Returns the calls that must be on the side streams of a cause. If time runs out, the set is
// larger than needed.
script::ElementSet NarrowStreams(const script::MixedStep& step, script::StepExperiment& experiment,
                                 const Liberty& liberty, const StepBisectionOptions& options,
                                 Journal* journal, BisectionReport& report, FoundCause& found) {
  script::ElementSet kept;
  for (const size_t group : found.cause.elements) {
    kept = UnionOf(kept, liberty.groups[group].members);
  }
  const size_t before = kept.size();
  TrialOptions trial_options = options.bisection.trials;
  trial_options.executions =
      static_cast<int>(std::max<int64_t>(trial_options.executions, report.search.executions));
  Trials trials(experiment, trial_options, journal, "calls of streams");
  try {
    for (const size_t group : found.cause.elements) {
      const script::ElementSet members = liberty.groups[group].members;
      const script::ElementSet rest = Without(kept, members);
      kept = UnionOf(rest, Narrowing(trials, rest).Run(members));
    }
  } catch (const BudgetSpent&) {  // NOLINT(bugprone-empty-catch)
    // The set that was reached by then fails as well.
  }
  report.narrowing_experiments += trials.experiments();
  if (kept.size() == before) return kept;
  std::string calls;
  for (const size_t member : kept) {
    calls +=
        (calls.empty() ? "" : ",") + std::to_string(step.CallAt(liberty.streams->PlaceOf(member)));
  }
  found.narrowed = fmt::format("{} of the {} calls are enough, the others on the main stream: {}",
                               kept.size(), before, calls);
  found.narrowed_command = experiment.Command(kept);
  return kept;
}

std::string BadReference(const SearchResult& search, const Liberty& liberty,
                         const std::string& command) {
  const script::Outcome& reference = search.reference;
  return fmt::format(
      "{} the step already differs from its eager execution, in {} of {} executions, so that {} "
      "is not the cause; go on with: {}",
      liberty.without, reference.bad_executions, reference.executions, liberty.not_causing,
      command);
}

}  // namespace

BisectionReport BisectPlan(const script::MixedStep& step, const StepBisectionOptions& options,
                           Journal* journal) {
  if (options.experiment.step.disable_tasks) {
    throw Error(ErrorKind::kUsage,
                fmt::format("@in-graph leaves calls out of a graph; @what {} leaves none out."_cli,
                            ElementsName(options.elements)));
  }
  Liberty liberty = options.elements == Elements::kStreams ? SideStreams(step)
                                                           : Reuses(step, options.experiment.step);
  KeepAlterable(step, options, liberty);
  const auto experiment =
      std::make_shared<script::StepExperiment>(step, options.experiment, liberty.alterations);
  GroupedExperiment grouped(experiment, liberty.groups);
  const ExperimentWith with = [&](const script::Remedies& remedies) {
    return std::make_unique<GroupedExperiment>(experiment->With(remedies), liberty.groups);
  };
  BisectionReport report = Bisect(grouped, options.bisection, journal, with);
  report.coverage = experiment->Coverage();
  report.differs_with = liberty.differs_with;
  using Verdict = SearchResult::Verdict;
  const bool bad_reference = report.search.verdict == Verdict::kReferenceDiffers ||
                             report.search.verdict == Verdict::kFlakyReference;
  if (bad_reference && !script::StepExperiment::EagerVaries(report.search.reference)) {
    report.bad_reference =
        BadReference(report.search, liberty, options.bisect_command.With({{"what", "calls"}}));
  }
  for (FoundCause& found : report.found) {
    script::ElementSet members = grouped.Members(found.cause.elements);
    if (liberty.streams != nullptr && found.cause.minimal) {
      members = NarrowStreams(step, *experiment, liberty, options, journal, report, found);
    }
    const script::MixedStepOptions shown = experiment->OptionsFor(members);
    found.first_call =
        step.CallAt(liberty.places(liberty.groups[found.cause.elements.front()]).front());
    found.experiment = script::MixedStepJson(shown).dump();
    if (!found.classification) continue;
    found.evidence = ExplainLiberties(step, step.Build(shown), *found.classification);
  }
  return report;
}

}  // namespace acltape::replayer::bisect
