#include "replayer/bisect/step_bisection.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "meaning/options.h"
#include "replayer/bisect/cause_evidence.h"
#include "replayer/bisect/plan_bisection.h"
#include "replayer/script/mixed_step_json.h"

namespace acltape::replayer::bisect {
namespace {

// Returns the groups of which all calls may be altered.
Groups AlterableGroups(const script::MixedStep& step, const StepBisectionOptions& options) {
  Groups groups = GroupsOf(options.elements, step.session().program(), step.step_class(),
                           step.capturable(), step.plan());
  if (!options.may_alter) return groups;
  std::erase_if(groups.groups, [&](const CallGroup& group) {
    return !std::all_of(group.members.begin(), group.members.end(), [&](size_t member) {
      return options.may_alter(step.CallAt(step.capturable()[member]));
    });
  });
  if (groups.groups.empty()) {
    throw Error(ErrorKind::kUsage,
                "@calls picks none of the calls that can be captured; those of the bisected step "
                "lie between "_cli +
                    std::to_string(step.CallAt(0)) + " and " +
                    std::to_string(step.CallAt(step.places() - 1)) + ".");
  }
  return groups;
}

void Explain(const script::StepExperiment& experiment, const GroupedExperiment& grouped,
             FoundCause& found) {
  const script::MixedStep& step = experiment.step();
  const script::ElementSet members = grouped.Members(found.cause.elements);
  std::vector<size_t> places;
  for (const size_t member : members) places.push_back(step.capturable()[member]);
  const script::MixedStepOptions options = experiment.OptionsFor(members);
  if (!places.empty()) found.first_call = step.CallAt(places.front());
  found.experiment = script::MixedStepJson(options).dump();
  if (!found.classification) return;
  found.evidence = ExplainCause(step, options, step.Build(options), places, *found.classification);
}

void NameFlakyCalls(const script::StepExperiment& experiment, BisectionReport& report) {
  constexpr int kRounds = 50;
  for (const script::StepExperiment::FlakyCall& call : experiment.FindFlakyCalls(kRounds)) {
    report.flaky.push_back(
        fmt::format("{} gives other results from equal inputs in {} of {} executions",
                    experiment.step().session().program().Describe(call.leaf), call.different,
                    call.executions));
  }
}

}  // namespace

BisectionReport BisectStep(const script::MixedStep& step, const StepBisectionOptions& options,
                           Journal* journal) {
  if (AreLiberties(options.elements)) {
    BisectionReport report = BisectPlan(step, options, journal);
    if (script::StepExperiment::EagerVaries(report.search.reference)) {
      NameFlakyCalls(script::StepExperiment(step, options.experiment), report);
    }
    return report;
  }
  const Groups groups = AlterableGroups(step, options);
  const auto experiment = std::make_shared<script::StepExperiment>(step, options.experiment);
  GroupedExperiment grouped(experiment, groups.groups, groups.always);
  const ExperimentWith with = [&](const script::Remedies& remedies) {
    return std::make_unique<GroupedExperiment>(experiment->With(remedies), groups.groups,
                                               groups.always);
  };
  BisectionReport report = Bisect(grouped, options.bisection, journal, with);
  report.coverage = experiment->Coverage();
  for (FoundCause& found : report.found) Explain(*experiment, grouped, found);
  if (report.search.verdict == SearchResult::Verdict::kFlakyReference) {
    NameFlakyCalls(*experiment, report);
  }
  return report;
}

}  // namespace acltape::replayer::bisect
