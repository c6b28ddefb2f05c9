// The conditions of rules (grammar in rules.h).
#include <charconv>

#include "analyzer/lowering/values.h"

namespace acltape::analyzer::lowering {

using storage::ValueKind;

namespace {

// The shortest text that gives the number again: "1" for 1.0.
std::string TextOfReal(double real) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), real).ptr};
}

// The element type of a tensor, or of the first tensor of a list.
std::string TypeOf(const LoweredValue& value) {
  return value.tensors.empty() ? "none" : std::string(DTypeName(value.tensors[0].layout.dtype));
}

bool IsOnDevice(const Program& program, const Leaf& leaf) {
  for (const storage::Argument& argument : leaf.arguments) {
    for (const storage::TensorRef& tensor : argument.tensors) {
      if (tensor.buffer_id == 0) continue;
      if (program.trace->GetBuffer(tensor.buffer_id).device != 0) return true;
    }
  }
  return false;
}

}  // namespace

std::string TextOf(const LoweredValue& value) {
  switch (value.kind) {
    case ValueKind::kText:
      return value.text;
    case ValueKind::kInt:
      return std::to_string(value.integer);
    case ValueKind::kReal:
      return TextOfReal(value.real);
    case ValueKind::kBool:
      return value.integer != 0 ? "true" : "false";
    case ValueKind::kNone:
      return "none";
    default:
      return "?";
  }
}

bool Asks(std::string_view when, std::string_view condition) {
  while (!when.empty()) {
    const size_t comma = when.find(',');
    if (when.substr(0, comma) == condition) return true;
    when = comma == std::string_view::npos ? "" : when.substr(comma + 1);
  }
  return false;
}

bool Binder::Holds(std::string_view when) const {
  while (!when.empty()) {
    const size_t comma = when.find(',');
    if (!HoldsOne(when.substr(0, comma))) return false;
    when = comma == std::string_view::npos ? "" : when.substr(comma + 1);
  }
  return true;
}

bool Binder::HoldsOne(std::string_view condition) const {
  if (condition == kEach) return ElementCount() != 0;
  if (condition == kDevice) return IsOnDevice(program_, leaf_);
  if (condition[0] == '+') return Named(condition.substr(1)).kind != ValueKind::kNone;
  if (condition[0] == '-') return Named(condition.substr(1)).kind == ValueKind::kNone;
  const size_t equals = condition.find('=');
  if (equals == std::string_view::npos) throw CannotBind("unknown condition");
  constexpr std::string_view kDtype = "dtype ";
  if (condition.substr(0, kDtype.size()) == kDtype) {
    const LoweredValue a = Named(condition.substr(kDtype.size(), equals - kDtype.size()));
    const LoweredValue b = Named(condition.substr(equals + 1));
    return a.kind == ValueKind::kTensor && b.kind == ValueKind::kTensor &&
           a.tensors[0].layout.dtype == b.tensors[0].layout.dtype;
  }
  constexpr std::string_view kRank = "rank ";
  if (condition.substr(0, kRank.size()) == kRank) {
    const LoweredValue x = Named(condition.substr(kRank.size(), equals - kRank.size()));
    return x.kind == ValueKind::kTensor &&
           std::to_string(x.tensors[0].layout.shape.size()) == condition.substr(equals + 1);
  }
  const bool negated = equals > 0 && condition[equals - 1] == '!';
  std::string_view name = condition.substr(0, equals - (negated ? 1 : 0));
  constexpr std::string_view kType = "type ";
  const bool of_type = name.substr(0, kType.size()) == kType;
  if (of_type) name.remove_prefix(kType.size());
  const LoweredValue value = Named(name);
  return ((of_type ? TypeOf(value) : TextOf(value)) == condition.substr(equals + 1)) != negated;
}

}  // namespace acltape::analyzer::lowering
