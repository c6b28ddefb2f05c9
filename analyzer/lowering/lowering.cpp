#include "analyzer/lowering/lowering.h"

#include <algorithm>
#include <unordered_map>

#include "analyzer/lowering/acl_leaf.h"
#include "analyzer/lowering/bind.h"
#include "analyzer/lowering/compiled_rules.h"
#include "analyzer/lowering/recorded_calls.h"
#include "analyzer/lowering/rules.h"

namespace acltape::analyzer::lowering {
namespace {

using RuleMap = std::unordered_map<std::string_view, std::vector<const CompiledRule*>>;

const RuleMap& RulesByOperator() {
  static const RuleMap rules = [] {
    RuleMap map;
    for (const CompiledRule& rule : CompiledRules()) map[rule.aten].push_back(&rule);
    return map;
  }();
  return rules;
}

std::string PlainName(const Leaf& leaf) {
  constexpr std::string_view kNamespace = "aten::";
  std::string name = leaf.Name();
  return name.rfind(kNamespace, 0) == 0 ? name.substr(kNamespace.size()) : name;
}

// Names of one operator: an older one, and the one that has the rules.
constexpr std::pair<std::string_view, std::string_view> kOlderNames[] = {
    {"npu::npu_fusion_attention", "npu::npu_fusion_attention_v3"},
    {"npu::npu_fusion_attention_grad", "npu::npu_fusion_attention_grad_v3"},
};

// The rules of an operator. A form with an out= argument and without a rule of its own takes the
// rules of the form that returns its result. "out" names the result in both.
const std::vector<const CompiledRule*>& RulesOf(std::string_view name) {
  static const std::vector<const CompiledRule*> none;
  const RuleMap& all = RulesByOperator();
  for (const auto& [older, newer] : kOlderNames) {
    if (name == older) name = newer;
  }
  auto rules = all.find(name);
  constexpr std::string_view kOut = ".out";
  if (rules == all.end() && name.ends_with(kOut)) {
    rules = all.find(name.substr(0, name.size() - kOut.size()));
  }
  return rules == all.end() ? none : rules->second;
}

std::optional<Lowering> LowerByLevel(const Program& program, const Leaf& leaf, std::string* why) {
  if (program.level == Level::kAcl) return LowerAclLeaf(program, leaf, why);
  const std::string name = PlainName(leaf);
  const std::vector<const CompiledRule*>& rules = RulesOf(name);
  std::string reason = rules.empty()
                           ? "no lowering rule for " + leaf.Name()
                           : "no lowering rule of " + leaf.Name() + " fits these arguments";
  for (const CompiledRule* rule : rules) {
    Binder binder(program, leaf);
    try {
      if (!binder.Holds(rule->when)) continue;
      Lowering lowering;
      const bool each = Asks(rule->when, kEach);
      for (size_t element = 0; element < (each ? binder.ElementCount() : 1); ++element) {
        if (each) binder.TakeElement(element);
        for (const CallPattern& call : rule->calls) binder.Bind(call, &lowering);
      }
      for (const DivergenceRule& row : DivergenceRules()) {
        if (row.aten == name && !Asks(rule->when, kDevice) && binder.Holds(row.when)) {
          lowering.note = LoweringNote{std::string(row.rule), std::string(row.message)};
        }
      }
      return lowering;
    } catch (const CannotBind& cause) {
      reason = "the lowering rule of " + leaf.Name() + " does not fit: " + cause.what();
    }
  }
  std::string not_repeated;
  if (auto recorded = LowerAsRecorded(program, leaf, &not_repeated)) return recorded;
  if (!not_repeated.empty()) reason += ", and " + not_repeated;
  if (why != nullptr) *why = reason;
  return std::nullopt;
}

// Gives memory of its own to each operand that the leaf neither reads nor writes: a result that it
// was not asked for. A replay plans memory for the bytes that are used; those of the operand may
// lie beside them in the same buffer, as all tensors of an allocator's block do at the ACL level.
void PlaceUnused(const LeafUses& uses, Lowering& lowering) {
  const auto is_used = [&](const LoweredTensor& tensor) {
    const auto meets = [&](const TensorUse& use) {
      return use.tensor.buffer_id == tensor.memory.buffer() &&
             use.layout->FirstByte() < tensor.layout.EndByte() &&
             tensor.layout.FirstByte() < use.layout->EndByte();
    };
    return std::any_of(uses.reads.begin(), uses.reads.end(), meets) ||
           std::any_of(uses.writes.begin(), uses.writes.end(), meets);
  };
  for (Invocation& invocation : lowering.invocations) {
    for (LoweredValue& value : invocation.arguments) {
      for (LoweredTensor& tensor : value.tensors) {
        if (tensor.memory.kind() != OperandMemory::Kind::kBuffer ||
            tensor.layout.ElementCount() == 0 || is_used(tensor)) {
          continue;
        }
        const int64_t first = tensor.layout.FirstByte();
        tensor.memory = OperandMemory::Temporary(static_cast<int32_t>(lowering.temporaries.size()));
        lowering.temporaries.push_back(tensor.layout.EndByte() - first);
        tensor.layout.byte_offset -= first;
      }
    }
  }
}

}  // namespace

const std::vector<DivergenceRule>& DivergenceRules() {
  static const std::vector<DivergenceRule> rules = {
      {"gelu", "approximate=none", "LOWER-GELU",
       "the framework adapter maps gelu to aclnnGelu, which computes the tanh form; replayed with "
       "aclnnGeluV2 in the recorded erf form"},
      {"gelu_backward", "approximate=none", "LOWER-GELU",
       "the framework adapter maps gelu_backward to aclnnGeluBackward, the gradient of the tanh "
       "form; replayed with aclnnGeluBackwardV2 in the recorded erf form"},
      {"max_pool2d_with_indices", "", "LOWER-MAXPOOL",
       "the framework adapter maps max_pool2d to aclnnMaxPool2dWithMask, whose second result is a "
       "packed mask instead of indices; replayed with aclnnMaxPool2dWithIndices"},
      {"max_pool2d_with_indices_backward", "", "LOWER-MAXPOOL",
       "the framework adapter expects the packed mask of aclnnMaxPool2dWithMask here; replayed "
       "with aclnnMaxPool2dWithIndicesBackward on the recorded indices"},
  };
  return rules;
}

std::optional<Lowering> Lower(const Program& program, const Leaf& leaf, std::string* why) {
  std::optional<Lowering> lowering = LowerByLevel(program, leaf, why);
  if (lowering) PlaceUnused(program.uses[static_cast<size_t>(leaf.index)], *lowering);
  return lowering;
}

}  // namespace acltape::analyzer::lowering
