#include "analyzer/program/step_template.h"

#include <algorithm>
#include <set>

#include "analyzer/calls/value_text.h"

namespace acltape::analyzer {
namespace {

using storage::Argument;
using storage::Layout;
using storage::ValueKind;

// True for kernels. Results of other leaves come from the recording, so their scalars do not
// matter.
bool ScalarsMatter(const Leaf& leaf) { return leaf.kind == LeafKind::kKernel; }

// True for values that an update of a captured kernel can replace.
bool IsNumeric(ValueKind kind) {
  return kind == ValueKind::kInt || kind == ValueKind::kBool || kind == ValueKind::kReal ||
         kind == ValueKind::kIntList || kind == ValueKind::kBoolList ||
         kind == ValueKind::kRealList || kind == ValueKind::kScalar ||
         kind == ValueKind::kScalarList;
}

// True for numbers of one type. The text of an aclScalar names its type.
bool MayVary(const Argument& x, const Argument& y) {
  return x.kind == y.kind && IsNumeric(x.kind) && x.text == y.text;
}

// Finds the first difference of two corresponding leaves. With `varying`, numbers may differ, and
// the indices of such arguments are appended to it.
std::optional<StepDifference> CompareLeaves(const Program& program, const Leaf& a, const Leaf& b,
                                            std::vector<int>* varying) {
  StepDifference difference;
  difference.leaf_a = a.index;
  difference.leaf_b = b.index;
  const auto differ = [&](const std::string& argument, const std::string& aspect, std::string x,
                          std::string y) {
    difference.argument = argument;
    difference.aspect = aspect;
    difference.a = std::move(x);
    difference.b = std::move(y);
    return difference;
  };
  if (a.call.op_id != b.call.op_id || a.kind != b.kind) {
    return differ("", "operator", a.Name(), b.Name());
  }
  if (a.arguments.size() != b.arguments.size()) {
    return differ("", "number of arguments", std::to_string(a.arguments.size()),
                  std::to_string(b.arguments.size()));
  }
  for (size_t i = 0; i < a.arguments.size(); ++i) {
    const Argument& x = a.arguments[i];
    const Argument& y = b.arguments[i];
    if (!x.HoldsTensors() || !y.HoldsTensors()) {
      if (x.direction == storage::Direction::kOut || !ScalarsMatter(a)) continue;
      if (x.kind == y.kind && ValueText(x) == ValueText(y)) continue;
      if (varying == nullptr || !MayVary(x, y)) {
        return differ(x.name, "value", ValueText(x), ValueText(y));
      }
      varying->push_back(static_cast<int>(i));
      continue;
    }
    if (x.tensors.size() != y.tensors.size()) {
      return differ(x.name, "length", std::to_string(x.tensors.size()),
                    std::to_string(y.tensors.size()));
    }
    for (size_t t = 0; t < x.tensors.size(); ++t) {
      const std::string name =
          x.kind == ValueKind::kTensorList ? x.name + "[" + std::to_string(t) + "]" : x.name;
      if (x.tensors[t].defined() != y.tensors[t].defined()) {
        return differ(name, "presence", x.tensors[t].defined() ? "a tensor" : "none",
                      y.tensors[t].defined() ? "a tensor" : "none");
      }
      if (!x.tensors[t].defined() || x.tensors[t].layout_id == y.tensors[t].layout_id) continue;
      const Layout& p = program.LayoutOf(x.tensors[t]);
      const Layout& q = program.LayoutOf(y.tensors[t]);
      if (p.shape != q.shape) return differ(name, "shape", ListText(p.shape), ListText(q.shape));
      if (p.dtype != q.dtype) {
        return differ(name, "element type", std::string(DTypeName(p.dtype)),
                      std::string(DTypeName(q.dtype)));
      }
      if (p.strides != q.strides) {
        return differ(name, "strides", ListText(p.strides), ListText(q.strides));
      }
    }
  }
  return std::nullopt;
}

bool IsInternal(const Program& program, int64_t buffer_id, const StepRange& range) {
  const BufferUse& use = program.buffers.at(buffer_id);
  if (use.first_leaf < range.first) return false;
  // A window of the recording can begin with the first call that the trace has of older memory.
  const int64_t begin_ns = program.leaves[range.first].call.begin_ns;
  if (use.there_at_ns != 0 && use.there_at_ns <= begin_ns) return false;
  // Memory of an ACL program often lives as long as the program. Its first step is the first to
  // write it, but no other step finds it fresh.
  if (program.level == Level::kAcl && use.last_leaf >= range.end) return false;
  return !use.accesses.empty() && use.accesses.front().write;
}

// Makes the class that a step starts, with its internal buffers, and operands from the bytes that
// it touches.
StepTemplate StartClass(const Program& program, int64_t step) {
  const StepRange& range = program.work.steps[step];
  StepTemplate start;
  start.step_index = step;
  start.leaves = ActiveLeaves(program, range);
  std::set<int64_t> internal;
  std::map<int64_t, std::vector<Operand>> external;
  const auto note = [&](const TensorUse& use, bool write) {
    const int64_t buffer = use.tensor.buffer_id;
    if (IsInternal(program, buffer, range)) {
      if (internal.insert(buffer).second) start.internal.push_back(buffer);
      return;
    }
    Operand operand;
    operand.buffer_id = buffer;
    operand.first_byte = use.layout->FirstByte();
    operand.end_byte = use.layout->EndByte();
    operand.written = write;
    if (operand.bytes() > 0) external[buffer].push_back(operand);
  };
  for (const int64_t leaf : start.leaves) {
    for (const TensorUse& use : program.uses[leaf].reads) note(use, false);
    for (const TensorUse& use : program.uses[leaf].writes) note(use, true);
  }
  for (auto& [buffer, uses] : external) {
    std::sort(uses.begin(), uses.end(),
              [](const Operand& a, const Operand& b) { return a.first_byte < b.first_byte; });
    for (const Operand& use : uses) {
      Operand* last = start.operands.empty() ? nullptr : &start.operands.back();
      if (last != nullptr && last->buffer_id == buffer && use.first_byte < last->end_byte) {
        last->end_byte = std::max(last->end_byte, use.end_byte);
        last->written = last->written || use.written;
      } else {
        start.operands.push_back(use);
      }
    }
  }
  return start;
}

// Matches a step against a class, or finds the first difference.
class Matcher {
 public:
  Matcher(const Program& program, const StepTemplate& start, int64_t step,
          HostArguments host_arguments)
      : program_(program),
        start_(start),
        range_(program.work.steps[step]),
        may_vary_(host_arguments == HostArguments::kVary) {
    match_.step_index = step;
    match_.leaves = ActiveLeaves(program, range_);
    match_.operands.resize(start.operands.size());
    placed_.resize(start.operands.size());
  }

  std::optional<StepDifference> Match() {
    const size_t common = std::min(start_.leaves.size(), match_.leaves.size());
    for (size_t i = 0; i < common; ++i) {
      const Leaf& a = program_.leaves[start_.leaves[i]];
      const Leaf& b = program_.leaves[match_.leaves[i]];
      std::vector<int> arguments;
      if (auto difference = CompareLeaves(program_, a, b, may_vary_ ? &arguments : nullptr)) {
        return difference;
      }
      for (const int argument : arguments) varying_.push_back({i, argument});
      if (auto difference = MatchUses(a, b)) return difference;
    }
    if (start_.leaves.size() != match_.leaves.size()) {
      StepDifference difference;
      difference.aspect = "number of calls";
      if (common < start_.leaves.size()) difference.leaf_a = start_.leaves[common];
      if (common < match_.leaves.size()) difference.leaf_b = match_.leaves[common];
      difference.a = std::to_string(start_.leaves.size());
      difference.b = std::to_string(match_.leaves.size());
      return difference;
    }
    return CheckAliases();
  }

  StepMatch TakeMatch() { return std::move(match_); }
  const std::vector<VaryingArgument>& varying() const { return varying_; }

 private:
  std::optional<StepDifference> MatchUses(const Leaf& a, const Leaf& b) {
    const LeafUses& x = program_.uses[a.index];
    const LeafUses& y = program_.uses[b.index];
    if (x.reads.size() != y.reads.size() || x.writes.size() != y.writes.size()) {
      return Difference(a, b, "", "aliasing of arguments", "one way", "another");
    }
    for (size_t i = 0; i < x.reads.size(); ++i) {
      if (auto difference = MatchUse(a, b, x.reads[i], y.reads[i])) return difference;
    }
    for (size_t i = 0; i < x.writes.size(); ++i) {
      if (auto difference = MatchUse(a, b, x.writes[i], y.writes[i])) return difference;
    }
    return std::nullopt;
  }

  std::optional<StepDifference> MatchUse(const Leaf& a, const Leaf& b, const TensorUse& x,
                                         const TensorUse& y) {
    const std::string& name = a.arguments[x.argument].name;
    // Nothing is read or written: no elements, or elements of a type without bytes.
    if (x.layout->EndByte() <= x.layout->FirstByte()) return std::nullopt;
    const int64_t from = x.tensor.buffer_id;
    const int64_t to = y.tensor.buffer_id;
    const bool internal = IsInternal(program_, from, program_.work.steps[start_.step_index]);
    if (internal != IsInternal(program_, to, range_)) {
      return Difference(a, b, name, "origin", internal ? "the step itself" : "before the step",
                        internal ? "before the step" : "the step itself");
    }
    if (internal) {
      const auto [entry, created] = match_.internal.emplace(from, to);
      const auto [back, back_created] = reverse_.emplace(to, from);
      if (entry->second != to || back->second != from ||
          x.layout->byte_offset != y.layout->byte_offset) {
        return Difference(a, b, name, "place", Place(x), Place(y));
      }
      return std::nullopt;
    }
    const int operand = start_.FindOperand(from, x.layout->FirstByte());
    OperandPlace place;
    place.buffer_id = to;
    place.first_byte =
        start_.operands[operand].first_byte + y.layout->byte_offset - x.layout->byte_offset;
    if (!placed_[operand]) {
      placed_[operand] = true;
      match_.operands[operand] = place;
    } else if (match_.operands[operand].buffer_id != to ||
               match_.operands[operand].first_byte != place.first_byte) {
      return Difference(a, b, name, "place", Place(x), Place(y));
    }
    return std::nullopt;
  }

  // Operands that do not overlap in the template must not share bytes here if one of them is
  // written. The graph would work on two copies.
  std::optional<StepDifference> CheckAliases() const {
    for (size_t i = 0; i < start_.operands.size(); ++i) {
      for (size_t j = i + 1; j < start_.operands.size(); ++j) {
        if (!start_.operands[i].written && !start_.operands[j].written) continue;
        const OperandPlace& p = match_.operands[i];
        const OperandPlace& q = match_.operands[j];
        if (p.buffer_id != q.buffer_id ||
            p.first_byte + start_.operands[i].bytes() <= q.first_byte ||
            q.first_byte + start_.operands[j].bytes() <= p.first_byte) {
          continue;
        }
        StepDifference difference;
        difference.leaf_a = start_.leaves.empty() ? -1 : start_.leaves.front();
        difference.leaf_b = match_.leaves.empty() ? -1 : match_.leaves.front();
        difference.aspect = "aliasing of buffers";
        difference.a = "apart";
        difference.b = "shared by buffer " + std::to_string(p.buffer_id);
        return difference;
      }
    }
    return std::nullopt;
  }

  static std::string Place(const TensorUse& use) {
    return "buffer " + std::to_string(use.tensor.buffer_id) + " byte " +
           std::to_string(use.layout->byte_offset);
  }

  static StepDifference Difference(const Leaf& a, const Leaf& b, const std::string& argument,
                                   const std::string& aspect, const std::string& x,
                                   const std::string& y) {
    StepDifference difference;
    difference.leaf_a = a.index;
    difference.leaf_b = b.index;
    difference.argument = argument;
    difference.aspect = aspect;
    difference.a = x;
    difference.b = y;
    return difference;
  }

  const Program& program_;
  const StepTemplate& start_;
  const StepRange& range_;
  const bool may_vary_;
  StepMatch match_;
  std::vector<VaryingArgument> varying_;
  std::vector<bool> placed_;
  std::unordered_map<int64_t, int64_t> reverse_;
};

void AddVarying(const std::vector<VaryingArgument>& varying, StepTemplate& step_class) {
  std::set<VaryingArgument> all(step_class.varying.begin(), step_class.varying.end());
  all.insert(varying.begin(), varying.end());
  step_class.varying.assign(all.begin(), all.end());
}

void MarkMoving(StepTemplate& step_class) {
  for (size_t i = 0; i < step_class.operands.size(); ++i) {
    Operand& operand = step_class.operands[i];
    for (const StepMatch& match : step_class.matches) {
      const OperandPlace& place = match.operands[i];
      operand.moving = operand.moving || place.buffer_id != operand.buffer_id ||
                       place.first_byte != operand.first_byte;
    }
  }
}

}  // namespace

std::vector<int64_t> ActiveLeaves(const Program& program, const StepRange& range) {
  std::vector<int64_t> active;
  for (int64_t i = range.first; i < range.end; ++i) {
    const LeafKind kind = program.leaves[i].kind;
    if (kind != LeafKind::kView && kind != LeafKind::kAllocation) active.push_back(i);
  }
  return active;
}

int StepTemplate::FindOperand(int64_t buffer_id, int64_t first_byte) const {
  const auto after =
      std::upper_bound(operands.begin(), operands.end(), std::make_pair(buffer_id, first_byte),
                       [](const std::pair<int64_t, int64_t>& key, const Operand& operand) {
                         return key < std::make_pair(operand.buffer_id, operand.first_byte);
                       });
  if (after == operands.begin()) return -1;
  const auto found = std::prev(after);
  if (found->buffer_id != buffer_id || first_byte >= found->end_byte) return -1;
  return static_cast<int>(found - operands.begin());
}

const StepTemplate& StepClasses::Largest() const {
  return *std::max_element(classes.begin(), classes.end(),
                           [](const StepTemplate& a, const StepTemplate& b) {
                             return a.matches.size() < b.matches.size();
                           });
}

const StepTemplate* StepClasses::OfStep(int64_t step) const {
  for (const StepTemplate& step_class : classes) {
    for (const StepMatch& match : step_class.matches) {
      if (match.step_index == step) return &step_class;
    }
  }
  return nullptr;
}

StepClasses ClassifySteps(const Program& program, HostArguments host_arguments) {
  StepClasses result;
  std::map<int64_t, size_t> class_of_step;
  for (size_t s = 0; s < program.work.steps.size(); ++s) {
    const auto step = static_cast<int64_t>(s);
    bool joined = false;
    std::optional<StepDifference> from_previous;
    for (size_t c = result.classes.size(); c-- > 0 && !joined;) {  // the latest class first
      Matcher matcher(program, result.classes[c], step, host_arguments);
      const std::optional<StepDifference> difference = matcher.Match();
      if (!difference) {
        AddVarying(matcher.varying(), result.classes[c]);
        result.classes[c].matches.push_back(matcher.TakeMatch());
        class_of_step[step] = c;
        joined = true;
      } else if (s > 0 && class_of_step[step - 1] == c) {
        from_previous = difference;
      }
    }
    if (from_previous) result.differences[step] = *from_previous;
    if (joined) continue;
    StepTemplate start = StartClass(program, step);
    Matcher matcher(program, start, step, host_arguments);
    matcher.Match();
    start.matches.push_back(matcher.TakeMatch());
    class_of_step[step] = result.classes.size();
    result.classes.push_back(std::move(start));
  }
  for (StepTemplate& step_class : result.classes) MarkMoving(step_class);
  return result;
}

std::string DescribeDifference(const Program& program, const StepDifference& difference) {
  const auto step_of = [&](int64_t leaf) {
    const int64_t index = program.leaves[leaf].step_index;
    return index < 0 ? std::string("no step")
                     : "step " + std::to_string(program.work.steps[index].step);
  };
  if (difference.leaf_a < 0 || difference.leaf_b < 0) {
    const int64_t leaf = std::max(difference.leaf_a, difference.leaf_b);
    const std::string numbers = difference.a + " against " + difference.b + " calls";
    if (leaf < 0) return "the steps have " + numbers;
    return "the steps have " + numbers + "; " + step_of(leaf) + " goes on with " +
           program.Describe(leaf);
  }
  std::string text = program.Describe(difference.leaf_a) + ": ";
  if (difference.aspect == "operator") {
    return text + "in its place " + step_of(difference.leaf_b) + " has " +
           program.Describe(difference.leaf_b);
  }
  if (!difference.argument.empty()) text += "argument " + difference.argument + " has ";
  text += difference.aspect + " " + difference.a + " in " + step_of(difference.leaf_a) + " and " +
          difference.b + " in " + step_of(difference.leaf_b) + " (call " +
          std::to_string(program.leaves[difference.leaf_b].call.call_id) + ")";
  return text;
}

}  // namespace acltape::analyzer
