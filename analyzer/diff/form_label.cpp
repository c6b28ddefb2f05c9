#include "analyzer/diff/form_label.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string_view>

#include "analyzer/calls/acl_uses.h"
#include "analyzer/calls/value_text.h"
#include "meaning/acl_operators.h"
#include "meaning/torch_operators.h"
#include "storage/scalar_list.h"

namespace acltape::analyzer::diff {
namespace {

using storage::ArgumentValue;
using storage::Direction;
using storage::ValueKind;

// True if the operator passes one tensor on and changes at most rounding and memory order.
bool PassesOn(const storage::Op& op) {
  return meaning::TorchOperatorOf(op.name, op.overload).passes_on ||
         meaning::AclOperatorOf(op.name).passes_on;
}

bool IsNumber(const ArgumentValue& argument) {
  switch (argument.kind) {
    case ValueKind::kInt:
    case ValueKind::kReal:
      return true;
    case ValueKind::kScalar:
      return argument.reals.empty();
    default:
      return false;
  }
}

double NumberOf(const ArgumentValue& argument) {
  if (argument.kind == ValueKind::kReal) return argument.real;
  if (argument.kind == ValueKind::kScalar && storage::IsRealDtype(argument.text)) {
    return argument.real;
  }
  return static_cast<double>(argument.integer);
}

// True if the argument is an address that the recorder could not find in any block, such as
// pageable memory of the host. It says where the bytes lie, never which bytes they are.
bool IsAddress(const AclFunction& function, const ArgumentValue& argument) {
  if (argument.HoldsTensors() || !IsDeviceWork(function.kind)) return false;
  const bool copies = IsCopy(function.kind) || function.kind == AclCallKind::kReduce;
  return argument.position == function.object || (copies && argument.position == kCopyFrom);
}

// True of the number of a communicator in its trace, which differs between recordings of one
// program.
bool IsCommunicator(const AclFunction& function, const ArgumentValue& argument) {
  return function.kind == AclCallKind::kCollective && argument.name == "comm";
}

// The host arguments that define what the call computes, as text by name. Element types, devices,
// memory formats, handles, addresses and results are left out.
std::map<std::string, std::string> HostArguments(const WorkForm& form) {
  std::map<std::string, std::string> values;
  for (const ArgumentValue& argument : *form.arguments) {
    if (argument.HoldsTensors() || argument.direction == Direction::kOut) continue;
    if (IsIncidental(argument) || argument.name == "stream") continue;
    if (form.function != nullptr && IsAddress(*form.function, argument)) continue;
    if (form.function != nullptr && IsCommunicator(*form.function, argument)) continue;
    switch (argument.kind) {
      case ValueKind::kNone:
      case ValueKind::kDtype:
      case ValueKind::kDevice:
      case ValueKind::kMemoryFormat:
      case ValueKind::kLayout:
        continue;
      default:
        break;
    }
    values[argument.name] =
        IsNumber(argument) ? fmt::format("{}", NumberOf(argument)) : ValueText(argument);
  }
  return values;
}

// The strides of the dimensions that have more than one element.
std::vector<int64_t> RealStrides(const storage::Layout& layout) {
  std::vector<int64_t> strides;
  for (size_t d = 0; d < layout.shape.size() && d < layout.strides.size(); ++d) {
    if (layout.shape[d] != 1) strides.push_back(layout.strides[d]);
  }
  return strides;
}

uint64_t HashList(uint64_t hash, const std::vector<int64_t>& values) {
  hash = MixHash(hash, values.size());
  for (const int64_t value : values) hash = MixHash(hash, static_cast<uint64_t>(value));
  return hash;
}

uint64_t HashText(const std::string& text) { return std::hash<std::string>()(text); }

bool Overlaps(const FormAccess& a, const FormAccess& b) {
  return a.slot == b.slot && a.argument == b.argument && a.element == b.element;
}

}  // namespace

std::string BaseOperator(const storage::Op& op) {
  std::string base = op.name;
  constexpr std::string_view kInplace = "aclnnInplace";
  if (base.starts_with(kInplace)) return "aclnn" + base.substr(kInplace.size());
  const bool dunder = base.ends_with("__");
  if (base.size() > 1 && base.back() == '_' && !dunder) base.pop_back();
  return base;
}

FormLabel LabelForm(const Work& work, const WorkForm& form) {
  FormLabel label;
  label.base = BaseOperator(*form.op);
  label.op = HashText(label.base);
  for (const FormAccess& access : form.accesses) {
    if (IsIncidental((*form.arguments)[access.argument])) continue;
    (access.write ? label.writes : label.reads).push_back(access);
  }
  label.loose = label.op;
  uint64_t strides = 0;
  for (const auto* list : {&label.reads, &label.writes}) {
    label.loose = MixHash(label.loose, list->size());
    for (const FormAccess& access : *list) {
      label.loose = HashList(label.loose, access.layout->shape);
      if (!access.write) strides = HashList(strides, RealStrides(*access.layout));
    }
  }
  label.exact = MixHash(label.loose, strides);
  for (const auto& [name, value] : HostArguments(form)) {
    label.exact = MixHash(label.exact, MixHash(HashText(name), HashText(value)));
  }
  const bool listed = PassesOn(*form.op);
  const bool acl_copy =
      work.dialect != Dialect::kAten && form.function != nullptr &&
      (form.function->kind == AclCallKind::kCopy || form.function->kind == AclCallKind::kCopyAsync);
  label.copies =
      (listed || acl_copy) && label.reads.size() == 1 && label.writes.size() == 1 &&
      !Overlaps(label.reads[0], label.writes[0]) &&
      (acl_copy || label.reads[0].layout->ElementCount() == label.writes[0].layout->ElementCount());
  return label;
}

FormDifference CompareForms(const Flow& a, int32_t a_form, const Flow& b, int32_t b_form) {
  FormDifference difference;
  const WorkForm& left = a.work->forms[a_form];
  const WorkForm& right = b.work->forms[b_form];
  const FormLabel& left_label = a.labels[a_form];
  const FormLabel& right_label = b.labels[b_form];
  if (left_label.op != right_label.op) {
    difference.structural.push_back(
        fmt::format("op {} -> {}", left.op->FullName(), right.op->FullName()));
    return difference;
  }
  if (left.op->FullName() != right.op->FullName()) {
    difference.notes.push_back(fmt::format("{} -> {}", left.op->FullName(), right.op->FullName()));
  }
  const auto left_values = HostArguments(left);
  const auto right_values = HostArguments(right);
  for (const auto& [name, value] : left_values) {
    const auto other = right_values.find(name);
    if (other == right_values.end()) {
      difference.structural.push_back(fmt::format("{} {} -> none", name, value));
    } else if (other->second != value) {
      difference.structural.push_back(fmt::format("{} {} -> {}", name, value, other->second));
    }
  }
  for (const auto& [name, value] : right_values) {
    if (!left_values.count(name)) {
      difference.structural.push_back(fmt::format("{} none -> {}", name, value));
    }
  }
  const auto compare = [&](const std::vector<FormAccess>& x, const std::vector<FormAccess>& y,
                           const char* what) {
    if (x.size() != y.size()) {
      difference.structural.push_back(fmt::format("{} {} -> {}", what, x.size(), y.size()));
      return;
    }
    for (size_t i = 0; i < x.size(); ++i) {
      const storage::Layout& p = *x[i].layout;
      const storage::Layout& q = *y[i].layout;
      const std::string& name = (*left.arguments)[x[i].argument].name;
      if (p.shape != q.shape) {
        difference.structural.push_back(
            fmt::format("shape of {} {} -> {}", name, ListText(p.shape), ListText(q.shape)));
      } else if (RealStrides(p) != RealStrides(q)) {
        difference.notes.push_back(
            fmt::format("strides of {} {} -> {}", name, ListText(p.strides), ListText(q.strides)));
      }
      if (p.dtype != q.dtype) {
        difference.notes.push_back(fmt::format("{} {} -> {}", name, storage::DTypeName(p.dtype),
                                               storage::DTypeName(q.dtype)));
      }
    }
  };
  compare(left_label.reads, right_label.reads, "tensors read");
  compare(left_label.writes, right_label.writes, "tensors written");
  return difference;
}

}  // namespace acltape::analyzer::diff
