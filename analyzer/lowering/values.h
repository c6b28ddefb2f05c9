// Makes operands of lowered calls, and reads the operands of a function in a rule.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/lowering/bind.h"

namespace acltape::analyzer::lowering {

using Values = std::vector<LoweredValue>;

inline LoweredValue Int(int64_t value) {
  LoweredValue result;
  result.kind = storage::ValueKind::kInt;
  result.integer = value;
  return result;
}

inline LoweredValue Bool(bool value) {
  LoweredValue result = Int(value);
  result.kind = storage::ValueKind::kBool;
  return result;
}

inline LoweredValue IntList(std::vector<int64_t> values) {
  LoweredValue result;
  result.kind = storage::ValueKind::kIntList;
  result.integers = std::move(values);
  return result;
}

inline LoweredValue Tensor(LoweredTensor tensor) {
  LoweredValue result;
  result.kind = tensor.present ? storage::ValueKind::kTensor : storage::ValueKind::kNone;
  if (tensor.present) result.tensors.push_back(std::move(tensor));
  return result;
}

inline const LoweredTensor& TensorOf(const LoweredValue& value, const char* function) {
  if (value.kind != storage::ValueKind::kTensor) {
    throw CannotBind(std::string(function) + " needs a tensor");
  }
  return value.tensors[0];
}

inline int64_t IntOf(const LoweredValue& value, const char* function) {
  if (value.kind != storage::ValueKind::kInt && value.kind != storage::ValueKind::kBool) {
    throw CannotBind(std::string(function) + " needs an integer");
  }
  return value.integer;
}

inline int64_t Wrapped(int64_t dim, size_t rank) {
  return dim < 0 ? dim + static_cast<int64_t>(std::max<size_t>(rank, 1)) : dim;
}

// The value as conditions and keys of rules write it: "none", "true", "1", "0.5"; "?" for a tensor.
std::string TextOf(const LoweredValue& value);

// One function of the rules' language.
struct BindFunction {
  std::string_view name;
  size_t least_operands;
  LoweredValue (*evaluate)(Binder&, Values&);
};

// The tables, one per file.
const std::vector<BindFunction>& AttentionFunctions();
const std::vector<BindFunction>& ComposedFunctions();
const std::vector<BindFunction>& MatrixFunctions();
const std::vector<BindFunction>& ViewFunctions();

}  // namespace acltape::analyzer::lowering
