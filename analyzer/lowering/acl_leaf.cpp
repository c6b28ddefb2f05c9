#include "analyzer/lowering/acl_leaf.h"

#include "analyzer/acl/acl_program.h"
#include "analyzer/calls/acl_calls.h"
#include "analyzer/program/acl_leaves.h"
#include "generated/meaning/interface_numbers.h"

namespace acltape::analyzer::lowering {
namespace {

using K = AclCallKind;
using storage::Argument;
using storage::ValueKind;

LoweredTensor TensorOf(const storage::Reader& trace, const storage::TensorRef& tensor) {
  LoweredTensor lowered;
  lowered.present = tensor.defined();
  lowered.memory = OperandMemory::Buffer(tensor.buffer_id);
  if (lowered.present) lowered.layout = trace.GetLayout(tensor.layout_id);
  return lowered;
}

LoweredValue ValueOf(const storage::Reader& trace, const Argument& argument) {
  LoweredValue value;
  value.kind = argument.kind;
  value.integer = argument.integer;
  value.real = argument.real;
  value.text = argument.text;
  value.integers = argument.integers;
  value.reals = argument.reals;
  for (const storage::TensorRef& tensor : argument.tensors) {
    value.tensors.push_back(TensorOf(trace, tensor));
  }
  if (value.kind == ValueKind::kTensor && (value.tensors.empty() || !value.tensors[0].present)) {
    value.kind = ValueKind::kNone;
    value.tensors.clear();
  }
  return value;
}

LoweredTensor TensorOf(const Program& program, const storage::TensorRef& tensor) {
  LoweredTensor lowered;
  lowered.present = true;
  lowered.memory = OperandMemory::Buffer(tensor.buffer_id);
  lowered.layout = program.LayoutOf(tensor);
  return lowered;
}

LoweredValue TensorValue(LoweredTensor tensor) {
  LoweredValue value;
  value.kind = ValueKind::kTensor;
  value.tensors.push_back(std::move(tensor));
  return value;
}

// Treats the bytes of a range as elements of another type.
LoweredTensor As(LoweredTensor range, storage::DType dtype) {
  const int64_t bytes = range.layout.EndByte() - range.layout.FirstByte();
  range.layout.dtype = dtype;
  range.layout.shape = {bytes / storage::DTypeBytes(dtype)};
  range.layout.strides = {1};
  return range;
}

const Argument* At(const Leaf& leaf, int position) {
  for (const Argument& argument : leaf.arguments) {
    if (argument.position == position) return &argument;
  }
  return nullptr;
}

// Returns null where the argument is not known memory.
const storage::TensorRef* RangeAt(const Leaf& leaf, int position) {
  const Argument* argument = At(leaf, position);
  const bool known =
      argument != nullptr && !argument->tensors.empty() && argument->tensors[0].buffer_id != 0;
  return known ? &argument->tensors[0] : nullptr;
}

Invocation Fill(LoweredTensor range, int64_t number) {
  LoweredValue value;
  value.kind = ValueKind::kInt;
  value.integer = number;
  return {"aclnnInplaceFillScalar", {TensorValue(std::move(range)), value}};
}

// The operators that reduce memory into memory as aclrtReduceAsync does, by its kind.
// The types of a reduction, as the interface numbers them.
struct ReducedType {
  int64_t number;
  storage::DType dtype;
};
constexpr ReducedType kReducedTypes[] = {{meaning::kAclFloat, storage::DType::kFloat32},
                                         {meaning::kAclFloat16, storage::DType::kFloat16},
                                         {meaning::kAclInt8, storage::DType::kInt8},
                                         {meaning::kAclInt32, storage::DType::kInt32},
                                         {meaning::kAclInt16, storage::DType::kInt16},
                                         {meaning::kAclBf16, storage::DType::kBfloat16}};

std::optional<Invocation> Reduction(LoweredTensor to, LoweredTensor from, int64_t kind,
                                    int64_t type) {
  for (const ReducedType& row : kReducedTypes) {
    if (row.number != type) continue;
    const LoweredValue into = TensorValue(As(std::move(to), row.dtype));
    const LoweredValue source = TensorValue(As(std::move(from), row.dtype));
    LoweredValue one;
    one.kind = ValueKind::kInt;
    one.integer = 1;
    if (kind == meaning::kAclRtMemcpySdmaAutomaticSum)
      return Invocation{"aclnnInplaceAdd", {into, source, one}};
    if (kind == meaning::kAclRtMemcpySdmaAutomaticMax)
      return Invocation{"aclnnMaximum", {into, source, into}};
    if (kind == meaning::kAclRtMemcpySdmaAutomaticMin)
      return Invocation{"aclnnMinimum", {into, source, into}};
  }
  return std::nullopt;
}

// The element that a fill or a value write repeats over its range.
struct FillPattern {
  storage::DType dtype = storage::DType::kUint8;
  int64_t number = 0;
};

FillPattern FillPatternOf(const Leaf& leaf) {
  const auto number = [&](int position) {
    const Argument* argument = At(leaf, position);
    return argument == nullptr ? 0 : argument->integer;
  };
  switch (FindAclFunction(leaf.op->name).kind) {
    case K::kValueWrite:
      return {storage::DType::kInt64, number(1)};
    case K::kFill32:
    case K::kFill32Async:
      return {storage::DType::kInt32, static_cast<int32_t>(number(2))};
    default:
      return {storage::DType::kUint8, number(2) & 0xff};
  }
}

}  // namespace

std::shared_ptr<const std::vector<uint8_t>> FilledBytes(const Leaf& leaf,
                                                        const storage::Layout& range) {
  const FillPattern pattern = FillPatternOf(leaf);
  auto bytes = std::make_shared<std::vector<uint8_t>>(
      static_cast<size_t>(range.EndByte() - range.FirstByte()));
  const auto width = static_cast<size_t>(storage::DTypeBytes(pattern.dtype));
  for (size_t index = 0; index < bytes->size(); ++index) {
    (*bytes)[index] = static_cast<uint8_t>(pattern.number >> (8 * (index % width)));
  }
  return bytes;
}

Invocation InvocationOf(const storage::Reader& trace, const storage::Op& op,
                        const std::vector<Argument>& arguments) {
  Invocation invocation;
  invocation.op = op.name;
  for (const Argument& argument : arguments) {
    if (!IsIncidental(argument)) invocation.arguments.push_back(ValueOf(trace, argument));
  }
  return invocation;
}

std::optional<Lowering> LowerAclLeaf(const Program& program, const Leaf& leaf, std::string* why) {
  const K kind = FindAclFunction(leaf.op->name).kind;
  Lowering lowering;
  if (kind == K::kOperator) {
    lowering.invocations.push_back(InvocationOf(*program.trace, *leaf.op, leaf.arguments));
    return lowering;
  }
  const storage::TensorRef* to = RangeAt(leaf, 0);
  if (to == nullptr) {
    if (why != nullptr) *why = leaf.Name() + " writes memory that no recorded call allocated";
    return std::nullopt;
  }
  LoweredTensor range = TensorOf(program, *to);
  if (kind == K::kReduce) {
    const storage::TensorRef* from = RangeAt(leaf, 1);
    std::optional<Invocation> reduction;
    if (from != nullptr) {
      reduction = Reduction(std::move(range), TensorOf(program, *from), At(leaf, 3)->integer,
                            At(leaf, 4)->integer);
    }
    if (!reduction) {
      if (why != nullptr) *why = leaf.Name() + " has no operator that reduces as it does";
      return std::nullopt;
    }
    lowering.invocations.push_back(std::move(*reduction));
    return lowering;
  }
  if (!IsCopy(kind)) {
    const FillPattern pattern = FillPatternOf(leaf);
    lowering.invocations.push_back(Fill(As(std::move(range), pattern.dtype), pattern.number));
    return lowering;
  }
  const storage::TensorRef* from = RangeAt(leaf, 2);
  if (from == nullptr) {
    if (why != nullptr) *why = leaf.Name() + " reads memory that no recorded call allocated";
    return std::nullopt;
  }
  LoweredTensor source = TensorOf(program, *from);
  if (IsPlaneCopy(kind)) {
    range.layout = RowsOf(leaf, *At(leaf, 0), std::move(range.layout));
    source.layout = RowsOf(leaf, *At(leaf, 2), std::move(source.layout));
  }
  lowering.invocations.push_back(
      {"aclnnInplaceCopy", {TensorValue(std::move(range)), TensorValue(std::move(source))}});
  return lowering;
}

}  // namespace acltape::analyzer::lowering
