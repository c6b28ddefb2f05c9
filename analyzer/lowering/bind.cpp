#include "analyzer/lowering/bind.h"

#include <algorithm>
#include <cmath>

#include "analyzer/lowering/promotion.h"
#include "analyzer/lowering/values.h"
#include "storage/packing.h"

namespace acltape::analyzer::lowering {
namespace {

using storage::DType;
using storage::Layout;
using storage::ValueKind;

std::vector<int64_t> ContiguousStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

// dtype(tensor): its element type.
LoweredValue DtypeFunction(Binder&, Values& operands) {
  LoweredValue result;
  result.kind = ValueKind::kDtype;
  result.integer = static_cast<int64_t>(TensorOf(operands[0], "dtype").layout.dtype);
  return result;
}

// list(a, b ...): integers as a list. A list stays a list, and none gives the empty list.
LoweredValue ListFunction(Binder&, Values& operands) {
  std::vector<int64_t> list;
  for (const LoweredValue& operand : operands) {
    if (operand.kind == ValueKind::kNone) continue;
    if (operand.kind == ValueKind::kIntList) {
      list.insert(list.end(), operand.integers.begin(), operand.integers.end());
    } else {
      list.push_back(IntOf(operand, "list"));
    }
  }
  return IntList(std::move(list));
}

// alldims(tensor): [0, 1 .. rank).
LoweredValue AllDimsFunction(Binder&, Values& operands) {
  std::vector<int64_t> dims(TensorOf(operands[0], "alldims").layout.shape.size());
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int64_t>(d);
  return IntList(std::move(dims));
}

// size(tensor, dim).
LoweredValue SizeFunction(Binder&, Values& operands) {
  const Layout& layout = TensorOf(operands[0], "size").layout;
  const int64_t dim = Wrapped(IntOf(operands[1], "size"), layout.shape.size());
  if (dim < 0 || dim >= static_cast<int64_t>(layout.shape.size())) {
    throw CannotBind("size of a dimension that the tensor lacks");
  }
  return Int(layout.shape[dim]);
}

// shape(tensor).
LoweredValue ShapeFunction(Binder&, Values& operands) {
  return IntList(TensorOf(operands[0], "shape").layout.shape);
}

// pick(x, key, value, key, value ...): the value after the key that equals x.
LoweredValue PickFunction(Binder&, Values& operands) {
  const std::string text = TextOf(operands[0]);
  for (size_t i = 1; i + 1 < operands.size(); i += 2) {
    if (TextOf(operands[i]) == text) return operands[i + 1];
  }
  throw CannotBind("the value " + text + " has no counterpart");
}

// num(x, y): operand x of an arithmetic operation with y. PyTorch treats a Python number as a
// tensor without dimensions that does not take part in type promotion. The recorded type of the
// result shows this. If plain promotion would compute in another type, x is cast first.
LoweredValue NumFunction(Binder& binder, Values& operands) {
  const LoweredTensor x = TensorOf(operands[0], "num");
  const LoweredTensor y = TensorOf(operands[1], "num");
  const DType wanted = binder.Result().layout.dtype;
  if (!x.layout.shape.empty() || x.layout.dtype == wanted) return operands[0];
  const DType common = ResultType(x.layout, y.layout);
  const bool true_division = IsIntegral(common, true) && IsFloating(wanted);
  if (common == wanted || true_division) return operands[0];
  const LoweredTensor cast = binder.Temporary(wanted, {});
  Invocation invocation;
  invocation.op = "aclnnCast";
  LoweredValue dtype;
  dtype.kind = ValueKind::kDtype;
  dtype.integer = static_cast<int64_t>(wanted);
  invocation.arguments = {operands[0], dtype, Tensor(cast)};
  binder.Before(std::move(invocation));
  return Tensor(cast);
}

// flat(tensor): its elements in row-major order as one dimension, copied if necessary.
LoweredValue FlatFunction(Binder& binder, Values& operands) {
  LoweredTensor x = TensorOf(operands[0], "flat");
  if (!storage::IsRowMajor(x.layout)) {
    LoweredTensor copy = binder.Temporary(x.layout.dtype, x.layout.shape);
    binder.Before({"aclnnInplaceCopy", {Tensor(copy), Tensor(x)}});
    x = copy;
  }
  x.layout.shape = {x.layout.ElementCount()};
  x.layout.strides = {1};
  return Tensor(x);
}

// ones(tensor, n): n ones of the tensor's element type.
LoweredValue OnesFunction(Binder& binder, Values& operands) {
  const LoweredTensor ones =
      binder.Temporary(TensorOf(operands[0], "ones").layout.dtype, {IntOf(operands[1], "ones")});
  binder.Before({"aclnnInplaceOne", {Tensor(ones)}});
  return Tensor(ones);
}

// zeros(tensor, n): n zeros of the tensor's element type.
LoweredValue ZerosFunction(Binder& binder, Values& operands) {
  const LoweredTensor zeros =
      binder.Temporary(TensorOf(operands[0], "zeros").layout.dtype, {IntOf(operands[1], "zeros")});
  binder.Before({"aclnnInplaceZero", {Tensor(zeros)}});
  return Tensor(zeros);
}

// temp(tensor): uninitialised memory of its type and shape.
LoweredValue TempFunction(Binder& binder, Values& operands) {
  const Layout& layout = TensorOf(operands[0], "temp").layout;
  return Tensor(binder.Temporary(layout.dtype, layout.shape));
}

// scratch(tensor, 'name'): uninitialised memory of its type and shape. A rule that names it again
// gets the same memory.
LoweredValue ScratchFunction(Binder& binder, Values& operands) {
  const Layout& layout = TensorOf(operands[0], "scratch").layout;
  return Tensor(binder.Shared(operands[1].text, layout.dtype, layout.shape));
}

// indices(list): a tensor list in which a skipped dimension is an empty tensor.
LoweredValue IndicesFunction(Binder& binder, Values& operands) {
  if (operands[0].kind != ValueKind::kTensorList) throw CannotBind("indices needs a tensor list");
  LoweredValue list = operands[0];
  for (LoweredTensor& tensor : list.tensors) {
    if (!tensor.present) tensor = binder.Temporary(DType::kInt64, {0});
  }
  return list;
}

// tensors(a, b ...): a tensor list of those operands that are present.
LoweredValue TensorsFunction(Binder&, Values& operands) {
  LoweredValue list;
  list.kind = ValueKind::kTensorList;
  for (const LoweredValue& operand : operands) {
    if (operand.kind == ValueKind::kNone) continue;
    list.tensors.push_back(TensorOf(operand, "tensors"));
  }
  return list;
}

// wrap(dim, tensor): dim counted from the front.
LoweredValue WrapFunction(Binder&, Values& operands) {
  return Int(
      Wrapped(IntOf(operands[0], "wrap"), TensorOf(operands[1], "wrap").layout.shape.size()));
}

// select(tensor, dim, index): the view without that dimension.
LoweredValue SelectFunction(Binder&, Values& operands) {
  LoweredTensor x = TensorOf(operands[0], "select");
  const int64_t rank = static_cast<int64_t>(x.layout.shape.size());
  const int64_t dim = Wrapped(IntOf(operands[1], "select"), rank);
  if (dim < 0 || dim >= rank) throw CannotBind("select of a dimension that the tensor lacks");
  int64_t index = IntOf(operands[2], "select");
  if (index < 0) index += x.layout.shape[dim];
  x.layout.byte_offset += index * x.layout.strides[dim] * storage::DTypeBytes(x.layout.dtype);
  x.layout.shape.erase(x.layout.shape.begin() + dim);
  x.layout.strides.erase(x.layout.strides.begin() + dim);
  return Tensor(x);
}

// slice(tensor, dim, start, end, step): the view, with bounds clamped as in Python.
LoweredValue SliceFunction(Binder&, Values& operands) {
  LoweredTensor x = TensorOf(operands[0], "slice");
  const int64_t rank = static_cast<int64_t>(x.layout.shape.size());
  const int64_t dim = Wrapped(IntOf(operands[1], "slice"), rank);
  if (dim < 0 || dim >= rank) throw CannotBind("slice of a dimension that the tensor lacks");
  const int64_t size = x.layout.shape[dim];
  const auto bound = [size](int64_t value) {
    return std::clamp<int64_t>(value < 0 ? value + size : value, 0, size);
  };
  const int64_t start = bound(IntOf(operands[2], "slice"));
  const int64_t end = std::max(start, bound(IntOf(operands[3], "slice")));
  const int64_t step = IntOf(operands[4], "slice");
  if (step < 1) throw CannotBind("slice with a step below one");
  x.layout.byte_offset += start * x.layout.strides[dim] * storage::DTypeBytes(x.layout.dtype);
  x.layout.shape[dim] = (end - start + step - 1) / step;
  x.layout.strides[dim] *= step;
  return Tensor(x);
}

// split(tensor, dim, n): the view in which dim becomes two dimensions, the second one with n
// elements.
LoweredValue SplitFunction(Binder&, Values& operands) {
  LoweredTensor x = TensorOf(operands[0], "split");
  Layout& layout = x.layout;
  const int64_t rank = static_cast<int64_t>(layout.shape.size());
  const int64_t dim = Wrapped(IntOf(operands[1], "split"), rank);
  const int64_t inner = IntOf(operands[2], "split");
  if (dim < 0 || dim >= rank) throw CannotBind("split of a dimension that the tensor lacks");
  if (inner < 1 || layout.shape[dim] % inner != 0) throw CannotBind("split into unequal parts");
  layout.shape.insert(layout.shape.begin() + dim + 1, inner);
  layout.strides.insert(layout.strides.begin() + dim, layout.strides[dim] * inner);
  layout.shape[dim] /= inner;
  return Tensor(x);
}

// after(dim, tensor): the dimension after dim. Both are counted from the front.
LoweredValue AfterFunction(Binder&, Values& operands) {
  const size_t rank = TensorOf(operands[1], "after").layout.shape.size();
  return Int(Wrapped(IntOf(operands[0], "after"), rank) + 1);
}

// drop(x): 1 - 1 / x, the drop probability from the scale of native_dropout_backward.
LoweredValue DropFunction(Binder&, Values& operands) {
  LoweredValue result;
  result.kind = ValueKind::kReal;
  result.real = operands[0].real == 0 ? 1.0 : 1.0 - 1.0 / operands[0].real;
  return result;
}

constexpr BindFunction kFunctions[] = {
    {"dtype", 1, DtypeFunction},     {"list", 0, ListFunction},
    {"alldims", 1, AllDimsFunction}, {"size", 2, SizeFunction},
    {"shape", 1, ShapeFunction},     {"pick", 3, PickFunction},
    {"num", 2, NumFunction},         {"flat", 1, FlatFunction},
    {"ones", 2, OnesFunction},       {"zeros", 2, ZerosFunction},
    {"temp", 1, TempFunction},       {"scratch", 2, ScratchFunction},

    {"indices", 1, IndicesFunction}, {"tensors", 1, TensorsFunction},
    {"wrap", 2, WrapFunction},       {"after", 2, AfterFunction},

    {"drop", 1, DropFunction},       {"select", 3, SelectFunction},
    {"slice", 5, SliceFunction},     {"split", 3, SplitFunction},
};

// or(a, b): a unless it is none or an empty list, else b. It is not a row of the table, because b
// must not be evaluated (and add its calls) when a is there.
constexpr std::string_view kOr = "or";

const BindFunction* FindFunction(std::string_view name) {
  const auto find = [name](const auto& table) -> const BindFunction* {
    for (const BindFunction& function : table) {
      if (function.name == name) return &function;
    }
    return nullptr;
  };
  const BindFunction* found = find(kFunctions);
  if (found == nullptr) found = find(AttentionFunctions());
  if (found == nullptr) found = find(MatrixFunctions());
  if (found == nullptr) found = find(ViewFunctions());
  return found != nullptr ? found : find(ComposedFunctions());
}

}  // namespace

bool IsBindFunction(std::string_view name) { return name == kOr || FindFunction(name) != nullptr; }

LoweredTensor Binder::Temporary(DType dtype, std::vector<int64_t> shape) {
  LoweredTensor tensor;
  tensor.present = true;
  tensor.memory = OperandMemory::Temporary(static_cast<int32_t>(lowering_->temporaries.size()));
  tensor.layout.dtype = dtype;
  tensor.layout.strides = ContiguousStrides(shape);
  tensor.layout.shape = std::move(shape);
  lowering_->temporaries.push_back(
      std::max<int64_t>(tensor.layout.ElementCount() * storage::DTypeBytes(dtype), 1));
  return tensor;
}

LoweredTensor Binder::Shared(const std::string& name, DType dtype, std::vector<int64_t> shape) {
  const auto known = shared_.find(name);
  if (known != shared_.end()) return known->second;
  return shared_[name] = Temporary(dtype, std::move(shape));
}

void Binder::Before(Invocation invocation) {
  lowering_->invocations.push_back(std::move(invocation));
}

namespace {

bool IsEmptyList(const LoweredValue& value) {
  switch (value.kind) {
    case ValueKind::kTensorList:
      return value.tensors.empty();
    case ValueKind::kIntList:
      return value.integers.empty();
    case ValueKind::kRealList:
      return value.reals.empty();
    default:
      return false;
  }
}

// The element of a list; none for an empty list. A value that is not a list is the same for all.
LoweredValue ElementOf(const LoweredValue& list, size_t index, std::string_view name) {
  if (IsEmptyList(list)) return {};
  const auto pick = [&](const auto& elements) {
    if (index >= elements.size()) throw CannotBind(std::string(name) + " has too few elements");
    return elements[index];
  };
  LoweredValue element;
  switch (list.kind) {
    case ValueKind::kTensorList:
      element.kind = ValueKind::kTensor;
      element.tensors = {pick(list.tensors)};
      return element;
    case ValueKind::kIntList:
      element.kind = ValueKind::kInt;
      element.integer = pick(list.integers);
      return element;
    case ValueKind::kRealList:
      element.kind = ValueKind::kReal;
      element.real = pick(list.reals);
      return element;
    default:
      return list;
  }
}

}  // namespace

size_t Binder::ElementCount() const {
  const storage::Argument* self = leaf_.Find("self");
  return self == nullptr ? 0 : self->tensors.size();
}

LoweredValue Binder::Named(std::string_view name) const {
  const storage::Argument* argument = leaf_.Find(name);
  LoweredValue value;
  if (argument == nullptr) return value;
  value.kind = argument->kind;
  value.integer = argument->integer;
  value.real = argument->real;
  value.text = argument->text;
  value.integers = argument->integers;
  value.reals = argument->reals;
  for (const storage::TensorRef& tensor : argument->tensors) {
    LoweredTensor lowered;
    if (tensor.defined()) {
      lowered.present = true;
      lowered.memory = OperandMemory::Buffer(tensor.buffer_id);
      lowered.layout = program_.LayoutOf(tensor);
      // A tensor without storage (an empty result, for example) is still a tensor for the operator.
      if (tensor.buffer_id == 0 && lowered.layout.ElementCount() != 0) {
        throw CannotBind(std::string(name) + " has no storage");
      }
    }
    value.tensors.push_back(std::move(lowered));
  }
  if (element_) value = ElementOf(value, *element_, name);
  if (value.kind == ValueKind::kTensor && !value.tensors.empty() && !value.tensors[0].present) {
    value.kind = ValueKind::kNone;
    value.tensors.clear();
  }
  if (value.kind == ValueKind::kOther) throw CannotBind(std::string(name) + " is " + value.text);
  return value;
}

LoweredTensor Binder::Result() const {
  for (const TensorUse& use : program_.uses[leaf_.index].writes) {
    LoweredTensor tensor;
    tensor.present = true;
    tensor.memory = OperandMemory::Buffer(use.tensor.buffer_id);
    tensor.layout = *use.layout;
    return tensor;
  }
  throw CannotBind("the call writes no tensor");
}

LoweredValue Binder::Evaluate(const Expression& expression) {
  switch (expression.kind) {
    case Expression::Kind::kNone:
      return {};
    case Expression::Kind::kName:
      return Named(expression.name);
    case Expression::Kind::kInt:
      return Int(expression.integer);
    case Expression::Kind::kBool:
      return Bool(expression.integer != 0);
    case Expression::Kind::kReal: {
      LoweredValue value;
      value.kind = ValueKind::kReal;
      value.real = expression.real;
      return value;
    }
    case Expression::Kind::kText: {
      LoweredValue value;
      value.kind = ValueKind::kText;
      value.text = expression.name;
      return value;
    }
    case Expression::Kind::kFunction:
      break;
  }
  if (expression.name == kOr && expression.operands.size() == 2) {
    LoweredValue first = Evaluate(expression.operands[0]);
    const bool absent = first.kind == ValueKind::kNone ||
                        (first.kind == ValueKind::kIntList && first.integers.empty());
    return absent ? Evaluate(expression.operands[1]) : first;
  }
  const BindFunction* function = FindFunction(expression.name);
  if (function == nullptr) throw CannotBind("no function " + expression.name);
  Values operands;
  for (const Expression& operand : expression.operands) operands.push_back(Evaluate(operand));
  if (operands.size() < function->least_operands) {
    throw CannotBind(expression.name + " has too few operands");
  }
  return function->evaluate(*this, operands);
}

void Binder::Bind(const CallPattern& pattern, Lowering* lowering) {
  lowering_ = lowering;
  Invocation invocation;
  invocation.op = pattern.op;
  for (const Expression& argument : pattern.arguments) {
    invocation.arguments.push_back(Evaluate(argument));
  }
  lowering->invocations.push_back(std::move(invocation));
}

}  // namespace acltape::analyzer::lowering
