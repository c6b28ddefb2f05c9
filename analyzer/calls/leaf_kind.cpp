#include "analyzer/calls/leaf_kind.h"

#include <algorithm>
#include <unordered_set>

#include "analyzer/calls/acl_uses.h"
#include "meaning/dialects.h"
#include "meaning/torch_operators.h"

namespace acltape::analyzer {
namespace {

using meaning::Effect;

using storage::Argument;
using storage::Direction;
using storage::TensorRef;
using storage::ValueKind;

// True if the call uses the tensor in this way. Returns `usually` if no row applies.
bool Uses(const storage::Op& op, const std::vector<Argument>& arguments, const Argument& argument,
          bool write, bool usually) {
  const meaning::ConditionalUse* row = meaning::FindConditionalUse(op.name, argument.name, write);
  return row == nullptr ? usually : Holds(row->when, arguments);
}

// Operators that take sizes and types from "self" and never look at what it holds. Else a tensor on
// a device that is made like one on the host would pass for a copy of it.
constexpr std::string_view kMadeLikeSelf[] = {"aten::zeros_like", "aten::ones_like",
                                              "aten::full_like",  "aten::new_zeros",
                                              "aten::new_ones",   "aten::new_full"};

bool IsMadeLikeSelf(const storage::Op& op, const Argument& argument) {
  return argument.name == "self" && std::find(std::begin(kMadeLikeSelf), std::end(kMadeLikeSelf),
                                              op.name) != std::end(kMadeLikeSelf);
}

// True for the argument "out" of an overload of this name. Adapters have such operators whose
// schemas do not say that they write it: npu_fused_infer_attention_score.out.
bool IsUndeclaredOut(const storage::Op& op, const Argument& argument) {
  return argument.direction == Direction::kIn && argument.name == "out" &&
         op.overload.starts_with("out") && argument.HoldsTensors();
}

bool Writes(const storage::Op& op, const std::vector<Argument>& arguments,
            const Argument& argument) {
  const std::string_view only = meaning::TorchOperatorOf(op.name, op.overload).writes_only;
  if (!only.empty() && argument.direction != Direction::kOut) return argument.name == only;
  return Uses(op, arguments, argument, true,
              argument.direction != Direction::kIn || IsUndeclaredOut(op, argument));
}

// True if the schema lists the argument among those that are written, "Tensor(a!) out". This
// separates an out= argument from a return.
bool IsOutArgument(const storage::Op& op, const Argument& argument) {
  const std::string_view schema = op.schema;
  const std::string_view arguments = schema.substr(0, schema.find("->"));
  for (const char* written : {"!) ", "!)[] "}) {
    size_t position = arguments.find(written + argument.name);
    for (; position != std::string_view::npos;
         position = arguments.find(written + argument.name, position + 1)) {
      const size_t end = position + std::string_view(written).size() + argument.name.size();
      if (end < arguments.size() && (arguments[end] == ',' || arguments[end] == ')')) return true;
    }
  }
  return false;
}

// True if a return of the schema is an alias of an argument, "-> Tensor(a)".
bool SaysThatItShares(const storage::Op& op) {
  const size_t arrow = op.schema.find("->");
  return arrow != std::string::npos && op.schema.find("Tensor(", arrow) != std::string::npos;
}

// The argument with tensors that an opaque kernel overwrites without reading them
// (recorder/torch/opaque.cpp).
constexpr std::string_view kOpaqueResults = "writes";

// Lists every tensor with memory as read and as written.
std::vector<ArgumentUse> AllUses(const std::vector<Argument>& arguments) {
  std::vector<ArgumentUse> uses;
  for (size_t a = 0; a < arguments.size(); ++a) {
    if (!arguments[a].HoldsTensors()) continue;
    for (size_t i = 0; i < arguments[a].tensors.size(); ++i) {
      if (arguments[a].tensors[i].buffer_id == 0) continue;
      ArgumentUse use;
      use.argument = static_cast<int>(a);
      use.element = static_cast<int>(i);
      if (arguments[a].direction != Direction::kOut) uses.push_back(use);
      use.write = true;
      uses.push_back(use);
    }
  }
  return uses;
}

}  // namespace

bool IsLeafDialect(std::string_view dialect) {
  return dialect == "aten" || dialect == kOpaqueDialect;
}

std::string_view LeafKindName(LeafKind kind) {
  constexpr std::string_view kNames[] = {"view",      "allocation", "source",
                                         "host read", "kernel",     "exchange"};
  return kNames[static_cast<size_t>(kind)];
}

LeafKind KindOfLeaf(const storage::Op& op, int32_t status, const std::vector<Argument>& arguments) {
  if (status != 0) return LeafKind::kView;  // it threw, so it has no effect to repeat
  if (op.dialect == kOpaqueDialect) return LeafKind::kSource;
  const meaning::TorchOperator facts = meaning::TorchOperatorOf(op.name, op.overload);
  switch (Holds(facts.effect_if, arguments) ? facts.effect : Effect::kByArguments) {
    case Effect::kView:
    case Effect::kRebinds:
      return LeafKind::kView;
    case Effect::kAllocation:
      return LeafKind::kAllocation;
    case Effect::kRandom:
      return LeafKind::kSource;
    case Effect::kExchange:
      return LeafKind::kExchange;
    case Effect::kByArguments:
      break;
  }
  std::unordered_set<int64_t> inputs;
  bool writes = false;
  bool fresh = false;       // a result in its own storage or in an out= argument
  bool shares = false;      // a result in storage of an argument
  bool results = false;     // there is a tensor result
  bool host_value = false;  // there is a result that is not a tensor
  for (const Argument& argument : arguments) {
    if (argument.direction != Direction::kOut && Writes(op, arguments, argument)) writes = true;
    if (argument.direction != Direction::kOut) {
      if (argument.HoldsTensors()) {
        for (const TensorRef& tensor : argument.tensors) inputs.insert(tensor.buffer_id);
      }
      continue;
    }
    if (!argument.HoldsTensors()) {
      host_value = host_value || argument.kind != ValueKind::kNone;
      continue;
    }
    for (const TensorRef& tensor : argument.tensors) {
      if (!tensor.defined()) continue;
      results = true;
      if (tensor.buffer_id == 0) continue;
      const bool own = !inputs.count(tensor.buffer_id) || IsOutArgument(op, argument);
      fresh = fresh || own;
      shares = shares || !own;
    }
  }
  // The effects of an operator of an extension are not known. A view must declare itself in its
  // schema. An operator that returns nothing must have an effect that nobody sees.
  if (!meaning::IsKnownNamespace(op.name) && op.dialect == "aten") {
    const bool nothing = !results && !host_value && !writes;
    if (nothing || (shares && !SaysThatItShares(op))) return LeafKind::kExchange;
  }
  if (writes || fresh) return LeafKind::kKernel;
  if (host_value && !results && !inputs.empty()) return LeafKind::kHostRead;
  return LeafKind::kView;
}

std::vector<ArgumentUse> UsesOfLeaf(const storage::Op& op, LeafKind kind,
                                    const std::vector<Argument>& arguments) {
  if (meaning::IsAclDialect(op.dialect)) {
    return UsesOfAclLeaf(op.name, kind, arguments);
  }
  std::vector<ArgumentUse> uses;
  if (kind == LeafKind::kView || kind == LeafKind::kAllocation) return uses;
  if (kind == LeafKind::kExchange) return AllUses(arguments);
  std::unordered_set<int64_t> inputs;
  for (const Argument& argument : arguments) {
    if (!argument.HoldsTensors()) continue;
    const bool written = Writes(op, arguments, argument);
    // A source overwrites its arguments. Its recorded results replace the whole tensor.
    const bool opaque = op.dialect == kOpaqueDialect && argument.name != kOpaqueResults;
    const bool usually = argument.direction != Direction::kOut &&
                         (kind != LeafKind::kSource || opaque) && !IsUndeclaredOut(op, argument) &&
                         !IsMadeLikeSelf(op, argument);
    const bool read = Uses(op, arguments, argument, false, usually);
    for (size_t i = 0; i < argument.tensors.size(); ++i) {
      const TensorRef& tensor = argument.tensors[i];
      if (tensor.buffer_id == 0) continue;
      ArgumentUse use;
      use.argument = static_cast<int>(&argument - arguments.data());
      use.element = static_cast<int>(i);
      if (read) uses.push_back(use);
      // A result in storage of an argument is a view of it and not something written.
      const bool view = argument.direction == Direction::kOut && inputs.count(tensor.buffer_id) &&
                        !IsOutArgument(op, argument);
      use.write = true;
      if (written && !view) uses.push_back(use);
      if (argument.direction == Direction::kIn) inputs.insert(tensor.buffer_id);
    }
  }
  return uses;
}

}  // namespace acltape::analyzer
