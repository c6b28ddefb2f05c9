#include "recorder/torch/op_info.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <mutex>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "meaning/torch_operators.h"
#include "recorder/torch/torch_version.h"

namespace acltape::torch_plugin {

namespace {

using meaning::Effect;

// Finds the arguments that are written although the schema does not say so.
void CorrectWrites(const c10::FunctionSchema& schema, OpInfo* info) {
  for (const meaning::ConditionalUse& row : meaning::kConditionalUses) {
    if (!row.write || row.name != schema.name()) continue;
    const auto written = schema.argumentIndexWithName(std::string(row.argument));
    const auto condition = schema.argumentIndexWithName(std::string(row.when.argument));
    if (written && condition && row.when.test == meaning::Condition::Test::kTrue) {
      info->arguments[*written].written_if = *condition;
    }
  }
}

c10::TypePtr WithoutOptional(c10::TypePtr type) {
  if (auto optional = type->cast<c10::OptionalType>()) return optional->getElementType();
  return type;
}

NumberMeaning MeaningOf(const c10::Argument& argument) {
  switch (WithoutOptional(DeclaredType(argument))->kind()) {
    case c10::TypeKind::ScalarTypeType:
      return NumberMeaning::kDtype;
    case c10::TypeKind::LayoutType:
      return NumberMeaning::kLayout;
    case c10::TypeKind::MemoryFormatType:
      return NumberMeaning::kMemoryFormat;
    default:
      return NumberMeaning::kPlain;
  }
}

bool IsTensor(const c10::Argument& argument) {
  return WithoutOptional(argument.type())->kind() == c10::TypeKind::TensorType;
}

bool Writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// True if the kernel for the adapter's device was registered by a Python program. The dispatcher's
// table has a line for each key: "PrivateUse1: registered at FILE:LINE [kernel]".
bool IsPythonOnDevice(const c10::OperatorHandle& op) {
  // Building the table takes long. PyTorch's own operators are many, and have no such kernel unless
  // it was registered for the device itself.
  const std::string& name = op.operator_name().name;
  if (name.rfind("aten::", 0) == 0 && !op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) {
    return false;
  }
  // A launch of a Triton kernel on the soft device calls no operator: it is recorded itself.
  if (name == "acltape::triton_kernel") return false;
  std::istringstream table(op.dumpComputedTable());
  const std::string key = std::string(c10::toString(c10::DispatchKey::PrivateUse1)) + ": ";
  for (std::string line; std::getline(table, line);) {
    if (line.rfind(key, 0) == 0) return line.find(".py:") != std::string::npos;
  }
  return false;
}

OpInfo* Build(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  auto* info = new OpInfo;
  info->name = schema.name();
  info->overload = schema.overload_name();
  std::ostringstream text;
  text << schema;
  info->schema = text.str();
  const meaning::TorchOperator facts = meaning::TorchOperatorOf(info->name, info->overload);
  for (const c10::Argument& argument : schema.arguments()) {
    ArgumentInfo row;
    row.meaning = MeaningOf(argument);
    row.written =
        Writes(argument) && (facts.writes_only.empty() || argument.name() == facts.writes_only);
    row.overwritten = row.written && (facts.overwrites || argument.kwarg_only());
    info->writes |= row.written;
    info->tensor_slots += IsTensor(argument) ? 1 : 0;
    if (argument.name() == "non_blocking") {
      info->non_blocking = static_cast<int>(info->arguments.size());
    }
    info->arguments.push_back(row);
  }
  CorrectWrites(schema, info);
  bool shares = false;
  for (const c10::Argument& result : schema.returns()) {
    info->return_meanings.push_back(MeaningOf(result));
    info->return_kept.push_back(!Writes(result));
    info->tensor_slots += IsTensor(result) ? 1 : 0;
    shares |= result.alias_info() != nullptr && !result.alias_info()->isWrite();
  }
  // If an effect has a condition, the operators that the leaf calls decide (recorder/acl).
  const Effect effect = facts.effect_if.always() ? facts.effect : Effect::kByArguments;
  info->allocation = effect == Effect::kAllocation || effect == Effect::kRebinds;
  // The tag leaves some of libtorch 1.13 out.
  info->random = effect == Effect::kRandom || op.hasTag(at::Tag::nondeterministic_seeded);
  info->marked = meaning::IsKnownNamespace(info->name) || shares;
  info->exchange =
      effect == Effect::kExchange || (!info->marked && !info->writes && schema.returns().empty());
  // Entering and leaving a user's range is an operator too, in torch 2.x one with a kernel of its
  // own; it computes nothing, and what it brings about comes to the callbacks of frames.cpp.
  info->composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
                    op.operator_name().name.rfind("profiler::", 0) == 0;
  info->python_on_device = IsPythonOnDevice(op);
  // A composite, such as contiguous, copies where it cannot give a view.
  info->view = ((shares && !info->writes) || facts.unmarked_view) && !info->composite;
  return info;
}

}  // namespace

const OpInfo* DescribeOp(const c10::OperatorHandle& op) {
  static auto* mutex = new std::mutex;
  static auto* known = new std::unordered_map<const c10::FunctionSchema*, const OpInfo*>;
  std::lock_guard<std::mutex> lock(*mutex);
  const OpInfo*& info = (*known)[&op.schema()];
  if (info == nullptr) info = Build(op);
  return info;
}

}  // namespace acltape::torch_plugin
