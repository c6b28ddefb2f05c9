#include "replayer/bisect/elements.h"

#include <algorithm>
#include <set>
#include <utility>

#include "analyzer/program/regions.h"
#include "meaning/options.h"
#include "replayer/bisect/element_text.h"

namespace acltape::replayer::bisect {
namespace {

using analyzer::Program;
using analyzer::StepTemplate;

constexpr std::pair<Elements, std::string_view> kElementsNames[] = {
    {Elements::kCalls, "calls"},     {Elements::kRegions, "regions"},
    {Elements::kUpdates, "updates"}, {Elements::kStreams, "streams"},
    {Elements::kBuffers, "buffers"},
};

int64_t CallAt(const Program& program, const StepTemplate& step_class, size_t place) {
  return program.leaves[step_class.leaves[place]].call.call_id;
}

CallGroup RunOf(const Program& program, const StepTemplate& step_class,
                const script::ElementSet& capturable, size_t number, script::ElementSet members) {
  const auto call = [&](size_t member) {
    return std::to_string(CallAt(program, step_class, capturable[member]));
  };
  CallGroup group;
  group.description = "region " + std::to_string(number) + ", calls " + call(members.front()) +
                      " to " + call(members.back());
  group.members = std::move(members);
  return group;
}

}  // namespace

std::vector<CallGroup> GroupsOfCalls(const Program& program, const StepTemplate& step_class,
                                     const script::ElementSet& capturable) {
  std::vector<CallGroup> groups;
  for (size_t i = 0; i < capturable.size(); ++i) {
    groups.push_back({program.Describe(step_class.leaves[capturable[i]]), {i}});
  }
  return groups;
}

std::vector<CallGroup> GroupsOfRegions(const Program& program, const StepTemplate& step_class,
                                       const script::ElementSet& capturable,
                                       const analyzer::plan::Plan* plan) {
  std::vector<CallGroup> groups;
  const auto add = [&](size_t number, script::ElementSet members) {
    groups.push_back(RunOf(program, step_class, capturable, number, std::move(members)));
  };
  if (plan == nullptr) {
    script::ElementSet run;
    for (size_t i = 0; i < capturable.size(); ++i) {
      if (!run.empty() && capturable[i] != capturable[i - 1] + 1) {
        add(groups.size() + 1, std::exchange(run, {}));
      }
      run.push_back(i);
    }
    if (!run.empty()) add(groups.size() + 1, run);
    return groups;
  }
  for (const analyzer::plan::PlanRegion& region : plan->regions) {
    script::ElementSet members;
    for (size_t i = 0; i < capturable.size(); ++i) {
      const int64_t call = CallAt(program, step_class, capturable[i]);
      if (call >= region.first_call && call <= region.last_call) members.push_back(i);
    }
    if (region.captured && !members.empty()) {
      add(static_cast<size_t>(region.region), std::move(members));
    }
  }
  return groups;
}

std::vector<CallGroup> GroupsOfUpdates(const Program& program, const StepTemplate& step_class,
                                       const script::ElementSet& capturable,
                                       const analyzer::plan::Plan* plan) {
  std::set<size_t> varying;
  for (const analyzer::VaryingArgument& argument : step_class.varying)
    varying.insert(argument.place);
  std::vector<CallGroup> groups;
  for (size_t i = 0; i < capturable.size(); ++i) {
    const int64_t call = CallAt(program, step_class, capturable[i]);
    const bool named =
        plan == nullptr || std::any_of(plan->updates.begin(), plan->updates.end(),
                                       [&](const analyzer::plan::PlanUpdate& update) {
                                         return update.call_id == call;
                                       });
    if (!named || varying.count(capturable[i]) == 0) continue;
    groups.push_back({program.Describe(step_class.leaves[capturable[i]]), {i}});
  }
  return groups;
}

std::string_view ElementsName(Elements elements) {
  for (const auto& [value, name] : kElementsNames) {
    if (value == elements) return name;
  }
  return "";
}

bool AreLiberties(Elements elements) {
  return elements == Elements::kStreams || elements == Elements::kBuffers;
}

Groups GroupsOf(Elements elements, const Program& program, const StepTemplate& step_class,
                const script::ElementSet& capturable, const analyzer::plan::Plan* plan) {
  if (AreLiberties(elements)) {
    throw Error(ErrorKind::kUsage, "@what "_cli + std::string(ElementsName(elements)) +
                                       " is about what a plan does inside a graph, which no "
                                       "list of calls can tell; leave out @check, or bisect "
                                       "@what calls."_cli);
  }
  Groups result;
  if (elements == Elements::kCalls) {
    result.groups = GroupsOfCalls(program, step_class, capturable);
  } else if (elements == Elements::kRegions) {
    result.groups = GroupsOfRegions(program, step_class, capturable, plan);
  } else {
    result.groups = GroupsOfUpdates(program, step_class, capturable, plan);
    result.always = AllElements(capturable.size());
    for (const CallGroup& group : result.groups) {
      result.always = Without(result.always, group.members);
    }
  }
  return result;
}

script::ElementSet CapturablePlaces(const Program& program, const StepTemplate& step_class) {
  script::ElementSet places;
  analyzer::Barriers barriers(program.work);
  for (size_t place = 0; place < step_class.leaves.size(); ++place) {
    const auto leaf = static_cast<size_t>(step_class.leaves[place]);
    if (barriers.ReasonOf(leaf).empty()) places.push_back(place);
  }
  return places;
}

GroupedExperiment::GroupedExperiment(std::shared_ptr<script::Experiment> base,
                                     std::vector<CallGroup> groups, script::ElementSet always)
    : base_(std::move(base)), groups_(std::move(groups)), always_(std::move(always)) {}

script::ElementSet GroupedExperiment::Members(const script::ElementSet& altered) const {
  std::set<size_t> members(always_.begin(), always_.end());
  for (const size_t group : altered) {
    members.insert(groups_.at(group).members.begin(), groups_[group].members.end());
  }
  return {members.begin(), members.end()};
}

}  // namespace acltape::replayer::bisect
