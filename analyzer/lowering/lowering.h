// Rewrites one aten leaf as aclnn calls, by rules in tables (rules.h).
//
// A lowering keeps the recorded meaning: it uses the operator with the recorded definition, on the
// recorded layouts. torch_npu may choose an operator that computes something else. The lowering
// then takes the faithful operator, and a LoweringNote says what a user would get on the device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/lowering/operand_memory.h"
#include "analyzer/program/program.h"

namespace acltape::analyzer::lowering {

// A tensor operand: a layout over memory. A lowering names buffers of the program and temporaries.
struct LoweredTensor {
  bool present = false;  // false: an absent tensor, passed as null
  OperandMemory memory;
  storage::Layout layout;
};

// One argument of an aclnn call, in the table's order. The caller converts it to the C type that
// the operator declares. Members are as in storage::Argument. Rules give numbers for scalars. Calls
// recorded from the ACL interface have scalars with their element type (kScalar, kScalarList).
struct LoweredValue {
  storage::ValueKind kind = storage::ValueKind::kNone;
  std::vector<LoweredTensor> tensors;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<int64_t> integers;
  std::vector<double> reals;
};

struct Invocation {
  std::string op;  // "aclnnAdd"
  std::vector<LoweredValue> arguments;
};

// Says that the device's operator differs in meaning from the recorded one.
struct LoweringNote {
  std::string rule;  // "LOWER-GELU"
  std::string message;
};

struct Lowering {
  std::vector<Invocation> invocations;
  std::vector<int64_t> temporaries;  // bytes of each
  std::optional<LoweringNote> note;
};

// Lowers a leaf. The result is empty when no rule matches or a rule cannot express these arguments;
// `why` then says so. Precondition: leaf.kind is kKernel.
std::optional<Lowering> Lower(const Program& program, const Leaf& leaf, std::string* why);

}  // namespace acltape::analyzer::lowering
