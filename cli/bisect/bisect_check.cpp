#include "cli/bisect/bisect_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "analyzer/steps/steps.h"
#include "cli/choices/selection.h"
#include "cli/frame/trace_part_options.h"
#include "meaning/options.h"
#include "replayer/bisect/process_experiment.h"
#include "storage/error.h"

namespace acltape::cli {
namespace {

using replayer::bisect::CallGroup;

// A check may take minutes.
constexpr int64_t kRunsOfFlakyCheck = 10;

// The step whose calls are bisected, and which of them.
struct Subject {
  analyzer::StepTemplate step_class;
  replayer::script::ElementSet capturable;  // places in it
};

analyzer::StepTemplate StepClassOf(const analyzer::Program& program,
                                   const analyzer::plan::Plan* plan) {
  analyzer::StepTemplate chosen;
  if (program.work.steps.empty()) {
    for (const analyzer::Leaf& leaf : program.leaves) {
      if (leaf.kind == analyzer::LeafKind::kKernel) chosen.leaves.push_back(leaf.index);
    }
    return chosen;
  }
  const analyzer::StepClasses classes =
      analyzer::ClassifySteps(program, analyzer::HostArguments::kVary);
  chosen = classes.Largest();
  for (const analyzer::StepTemplate& candidate : classes.classes) {
    for (const analyzer::StepMatch& match : candidate.matches) {
      if (plan != nullptr && program.work.steps[match.step_index].step == plan->step)
        chosen = candidate;
    }
  }
  return chosen;
}

void KeepSelected(const storage::Reader& reader, const analyzer::Program& program,
                  const std::string& calls, Subject& subject) {
  const auto picked = PickedBy(reader, calls);
  if (!picked || subject.capturable.empty()) return;
  const auto call_at = [&](size_t place) {
    return program.leaves[subject.step_class.leaves[place]].call.call_id;
  };
  std::erase_if(subject.capturable, [&](size_t place) { return !picked(call_at(place)); });
  if (!subject.capturable.empty()) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("@calls {} picks none of the calls that can be altered; those of the "
                          "bisected step are {} to {}."_cli,
                          calls, call_at(0), call_at(subject.step_class.leaves.size() - 1)));
}

// How many calls of the step the check is asked about, of those that are no views.
analyzer::Coverage AskedAbout(const Subject& subject, const replayer::bisect::Groups& groups) {
  std::set<size_t> members;
  for (const CallGroup& group : groups.groups) {
    members.insert(group.members.begin(), group.members.end());
  }
  return {static_cast<int64_t>(subject.step_class.leaves.size()),
          static_cast<int64_t>(members.size())};
}

}  // namespace

replayer::bisect::BisectionReport BisectByCheck(const storage::Reader& reader,
                                                const analyzer::plan::Plan* plan,
                                                const CheckOptions& options,
                                                const BisectWith& bisect_with) {
  analyzer::Program program = analyzer::LoadProgram(reader);
  Subject subject;
  subject.step_class = StepClassOf(program, plan);
  subject.capturable = replayer::bisect::CapturablePlaces(program, subject.step_class);
  KeepSelected(reader, program, options.calls, subject);

  replayer::bisect::ProcessExperimentOptions process;
  process.command = options.command;
  process.quiet = !options.verbose;
  process.environment = EnvironmentOf(options.part);
  if (options.time_limit > 0) {
    process.time_limit = std::chrono::milliseconds(static_cast<int64_t>(options.time_limit * 1e3));
  }
  const replayer::bisect::Groups groups = replayer::bisect::GroupsOf(
      options.elements, program, subject.step_class, subject.capturable, plan);
  for (const CallGroup& group : groups.groups) {
    process.descriptions.push_back(group.description);
    std::vector<int64_t>& calls = process.calls.emplace_back();
    for (const size_t member : group.members) {
      const int64_t leaf = subject.step_class.leaves[subject.capturable[member]];
      calls.push_back(program.leaves[leaf].call.call_id);
    }
  }
  replayer::bisect::ProcessExperiment experiment(std::move(process));
  nlohmann::json identity = options.identity;
  identity["check"] = options.command;
  return bisect_with(identity, [&](replayer::bisect::Journal* journal,
                                   const replayer::bisect::BisectionOptions& given) {
    replayer::bisect::BisectionOptions bisection = given;
    bisection.search.executions_of_flaky = kRunsOfFlakyCheck;
    replayer::bisect::BisectionReport report =
        replayer::bisect::Bisect(experiment, bisection, journal, {});
    report.nothing_differs =
        "with everything altered the check is good; what it compares is its own";
    report.asked = AskedAbout(subject, groups);
    return report;
  });
}

}  // namespace acltape::cli
