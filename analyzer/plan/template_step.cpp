#include "analyzer/plan/template_step.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "analyzer/calls/value_text.h"
#include "base/hash.h"

namespace acltape::analyzer::plan {
namespace {

// Two forms with equal texts can be served by one captured call. Values and addresses are left
// aside.
std::string ShapeText(const Work& work, const WorkForm& form) {
  std::string text = std::to_string(form.op->op_id);
  for (const storage::SignatureArgument& argument : *form.arguments) {
    text += '|';
    if (argument.tensors.empty()) {
      // A value may come as another type (2 for 2.0). A launch treats both alike.
      text += argument.kind == storage::ValueKind::kNone ? "-" : "v";
    }
    for (const storage::SlotRef& tensor : argument.tensors) {
      if (!tensor.defined()) {
        text += "0;";
        continue;
      }
      const storage::Layout& layout = work.trace->GetLayout(tensor.layout_id);
      text += std::string(storage::DTypeName(layout.dtype)) + ListText(layout.shape) +
              ListText(layout.strides) + ";";
    }
  }
  return text;
}

// Names equal things with equal small numbers.
class Interner {
 public:
  int32_t Of(const std::string& text) {
    return ids_.emplace(text, static_cast<int32_t>(ids_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace

std::vector<ShapeClass> FindShapeClasses(const Work& work,
                                         const std::vector<graph::StepFamily>& families) {
  Interner texts;
  std::vector<int32_t> shape_of(work.forms.size(), -1);
  std::vector<ShapeClass> classes;
  for (size_t f = 0; f < families.size(); ++f) {
    const graph::StepFamily& family = families[f];
    std::map<std::vector<int32_t>, size_t> class_of;
    std::vector<int32_t> shapes(family.places);
    for (size_t s = 0; s < family.steps.size(); ++s) {
      for (size_t place = 0; place < family.places; ++place) {
        const int32_t form = work.calls[family.Call(s, place)].form;
        if (shape_of[form] < 0) shape_of[form] = texts.Of(ShapeText(work, work.forms[form]));
        shapes[place] = shape_of[form];
      }
      const auto [entry, created] = class_of.try_emplace(shapes, classes.size());
      if (created) {
        ShapeClass& start = classes.emplace_back();
        start.family = f;
        start.members.places = family.places;
      }
      graph::StepFamily& members = classes[entry->second].members;
      members.steps.push_back(family.steps[s]);
      const auto first = family.calls.begin() + static_cast<std::ptrdiff_t>(s * family.places);
      members.calls.insert(members.calls.end(), first,
                           first + static_cast<std::ptrdiff_t>(family.places));
    }
  }
  std::sort(classes.begin(), classes.end(), [](const ShapeClass& a, const ShapeClass& b) {
    return a.members.steps.front() < b.members.steps.front();
  });
  return classes;
}

const ShapeClass& LargestClass(const std::vector<ShapeClass>& classes) {
  return *std::max_element(classes.begin(), classes.end(),
                           [](const ShapeClass& a, const ShapeClass& b) {
                             return std::pair(a.members.steps.size(), a.members.calls.size()) <
                                    std::pair(b.members.steps.size(), b.members.calls.size());
                           });
}

Program ProgramOf(const Work& work, const std::vector<size_t>& calls) {
  Program program;
  program.trace = work.trace;
  if (work.dialect == Dialect::kAclLeaves) program.level = Level::kAcl;
  for (const size_t index : calls) {
    const WorkForm& form = work.form(index);
    Leaf leaf;
    leaf.index = static_cast<int64_t>(program.leaves.size());
    leaf.op = form.op;
    leaf.kind = form.kind;
    leaf.call.call_id = work.calls[index].call_id;
    leaf.call.op_id = form.op->op_id;
    leaf.call.signature_id = form.signature_id;
    leaf.call.status = work.calls[index].status;
    leaf.call.buffers.assign(work.buffers(index).begin(), work.buffers(index).end());
    leaf.arguments = work.trace->Arguments(leaf.call);
    program.uses.push_back(UsesOf(program, leaf));
    program.leaves.push_back(std::move(leaf));
  }
  return program;
}

std::vector<GuardOutcome> SimulateGuards(const Work& work, const std::vector<ShapeClass>& classes) {
  // The properties of a step by which a guard tells it from others.
  struct StepProperties {
    size_t family = SIZE_MAX;
    size_t shape = SIZE_MAX;
    uint64_t values = 0;
    uint64_t places = 0;
  };
  std::vector<StepProperties> properties(work.steps.size());
  for (size_t c = 0; c < classes.size(); ++c) {
    const graph::StepFamily& members = classes[c].members;
    const graph::Variation variation = graph::FindVariation(work, members);
    std::unordered_map<const storage::ArgumentValue*, uint64_t> text_of;
    for (size_t s = 0; s < members.steps.size(); ++s) {
      StepProperties& step = properties[members.steps[s]];
      step.family = classes[c].family;
      step.shape = c;
      for (const graph::ArgumentVariation& row : variation.arguments) {
        const storage::ArgumentValue& argument =
            (*work.form(members.Call(s, row.place)).arguments)[row.argument];
        const auto [entry, created] = text_of.try_emplace(&argument, 0);
        if (created) entry->second = std::hash<std::string>()(ValueText(argument));
        step.values = base::HashWith(step.values, entry->second);
      }
      for (const graph::StepInput& input : variation.inputs) {
        if (!input.moves) continue;
        bool found = false;
        work.VisitAccesses(members.Call(s, input.place), [&](const ByteAccess& access) {
          if (found || access.form->argument != input.argument ||
              access.form->element != input.element) {
            return;
          }
          found = true;
          step.places =
              base::HashWith(base::HashWith(step.places, static_cast<uint64_t>(access.buffer)),
                             static_cast<uint64_t>(access.first));
        });
      }
    }
  }
  struct Policy {
    const char* name;
    bool values;
    bool places;
  };
  constexpr Policy kPolicies[] = {{"input copies and argument updates", false, false},
                                  {"input copies, arguments baked", true, false},
                                  {"argument updates, inputs in place", false, true},
                                  {"neither", true, true}};
  std::vector<GuardOutcome> outcomes;
  for (const Policy& policy : kPolicies) {
    GuardOutcome& outcome = outcomes.emplace_back();
    outcome.policy = policy.name;
    std::set<std::tuple<size_t, uint64_t, uint64_t>> graphs;
    const StepProperties* before = nullptr;
    for (const StepProperties& step : properties) {
      if (step.shape == SIZE_MAX) continue;
      const bool created =
          graphs
              .emplace(step.shape, policy.values ? step.values : 0, policy.places ? step.places : 0)
              .second;
      if (!created) {
        ++outcome.hits;
      } else {
        ++outcome.captures;
        if (before != nullptr) {
          ++(step.family != before->family                    ? outcome.by_operators
             : step.shape != before->shape                    ? outcome.by_shape
             : policy.values && step.values != before->values ? outcome.by_value
                                                              : outcome.by_address);
        }
      }
      before = &step;
    }
  }
  return outcomes;
}

}  // namespace acltape::analyzer::plan
