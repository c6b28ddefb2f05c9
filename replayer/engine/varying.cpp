#include "replayer/engine/varying.h"

#include <algorithm>
#include <map>

#include "analyzer/calls/value_text.h"

namespace acltape::replayer {
namespace {

using analyzer::Leaf;
using analyzer::StepTemplate;
using analyzer::lowering::Lowering;
using Treatment = VaryingLeaf::Treatment;

std::vector<std::string> OperatorsOf(const Lowering& lowering) {
  std::vector<std::string> names;
  for (const analyzer::lowering::Invocation& invocation : lowering.invocations) {
    names.push_back(invocation.op);
  }
  return names;
}

// Returns the reason why an update cannot give the captured calls of a leaf the values of another
// step; empty if it can.
std::string RefusalOf(Execution& execution, const StepTemplate& step_class,
                      const VaryingLeaf& leaf) {
  const auto& lowerings = execution.lowered().lowerings;
  const auto leaf_of = [&](size_t match) { return step_class.matches[match].leaves[leaf.place]; };
  const std::vector<std::string> first = OperatorsOf(lowerings[leaf_of(leaf.match_of[0])]);
  for (const size_t match : leaf.match_of) {
    if (OperatorsOf(lowerings[leaf_of(match)]) != first) return "its values need other operators";
  }
  return execution.ProbeUpdate(leaf_of(leaf.match_of[0]));
}

// True if the plan asks for an update of one of the arguments.
bool IsPlanned(const analyzer::plan::Plan& plan, const Leaf& leaf,
               const std::vector<int>& arguments) {
  return std::any_of(plan.updates.begin(), plan.updates.end(), [&](const auto& update) {
    return update.call_id == leaf.call.call_id &&
           std::any_of(arguments.begin(), arguments.end(), [&](int argument) {
             return leaf.arguments[argument].name == update.argument;
           });
  });
}

void CollectValues(const analyzer::Program& program, const StepTemplate& step_class,
                   VaryingLeaf& leaf) {
  std::map<std::vector<std::string>, int> numbers;
  for (size_t m = 0; m < step_class.matches.size(); ++m) {
    const Leaf& own = program.leaves[step_class.matches[m].leaves[leaf.place]];
    std::vector<std::string> values;
    for (const int argument : leaf.arguments) {
      values.push_back(analyzer::ValueText(own.arguments[argument]));
    }
    const auto [entry, created] =
        numbers.emplace(std::move(values), static_cast<int>(leaf.match_of.size()));
    if (created) leaf.match_of.push_back(m);
    leaf.value_of.push_back(entry->second);
  }
}

}  // namespace

std::vector<VaryingLeaf> FindVaryingLeaves(Execution& execution, const StepTemplate& step_class,
                                           const analyzer::plan::Plan* plan, bool updates) {
  const analyzer::Program& program = execution.program();
  std::vector<VaryingLeaf> varying;
  for (const analyzer::VaryingArgument& argument : step_class.varying) {
    if (execution.lowered().IsSubstituted(step_class.leaves[argument.place])) continue;
    if (varying.empty() || varying.back().place != argument.place) {
      varying.emplace_back();
      varying.back().place = argument.place;
    }
    varying.back().arguments.push_back(argument.argument);
  }
  // Find the step that the plan names; its calls belong to that step.
  size_t planned = 0;
  for (size_t m = 0; plan != nullptr && m < step_class.matches.size(); ++m) {
    if (program.work.steps[step_class.matches[m].step_index].step == plan->step) planned = m;
  }
  for (VaryingLeaf& leaf : varying) {
    CollectValues(program, step_class, leaf);
    const Leaf& own = program.leaves[step_class.matches[planned].leaves[leaf.place]];
    if (!updates || (plan != nullptr && !IsPlanned(*plan, own, leaf.arguments))) {
      leaf.treatment = Treatment::kBake;
      continue;
    }
    leaf.reason = RefusalOf(execution, step_class, leaf);
    leaf.treatment = leaf.reason.empty() ? Treatment::kUpdate : Treatment::kEager;
  }
  return varying;
}

std::string DescribeVariation(const analyzer::Program& program, const StepTemplate& step_class,
                              const VaryingLeaf& leaf, size_t match_a, size_t match_b) {
  const Leaf& a = program.leaves[step_class.matches[match_a].leaves[leaf.place]];
  const Leaf& b = program.leaves[step_class.matches[match_b].leaves[leaf.place]];
  const auto step_of = [&](const Leaf& own) {
    return " in step " + std::to_string(program.work.steps[own.step_index].step);
  };
  std::string text = program.Describe(a.index) + ":";
  for (const int argument : leaf.arguments) {
    const std::string x = analyzer::ValueText(a.arguments[argument]);
    const std::string y = analyzer::ValueText(b.arguments[argument]);
    if (x == y) continue;
    if (text.back() != ':') text += ",";
    text += " argument " + a.arguments[argument].name + " is " + x + step_of(a) + " and " + y +
            step_of(b);
  }
  return text + " (call " + std::to_string(b.call.call_id) + ")";
}

}  // namespace acltape::replayer
