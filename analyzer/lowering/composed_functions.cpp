// Intermediate results of operators that the device computes in several calls.
#include <limits>

#include "analyzer/lowering/values.h"

namespace acltape::analyzer::lowering {
namespace {

using storage::DType;
using storage::Layout;
using storage::ValueKind;

// pairsequal(x, values): for each element of x, true where it equals each of `values` (last dim).
LoweredValue PairsEqualFunction(Binder& binder, Values& operands) {
  LoweredTensor x = TensorOf(operands[0], "pairsequal");
  const LoweredTensor& values = TensorOf(operands[1], "pairsequal");
  if (values.layout.shape.size() != 1) throw CannotBind("pairsequal needs values in one dimension");
  std::vector<int64_t> shape = x.layout.shape;
  shape.push_back(values.layout.shape[0]);
  const LoweredTensor equal = binder.Temporary(DType::kBool, std::move(shape));
  x.layout.shape.push_back(1);
  x.layout.strides.push_back(1);
  binder.Before({"aclnnEqTensor", {Tensor(x), operands[1], Tensor(equal)}});
  return Tensor(equal);
}

// rank(x): the number of its dimensions.
LoweredValue RankFunction(Binder&, Values& operands) {
  return Int(static_cast<int64_t>(TensorOf(operands[0], "rank").layout.shape.size()));
}

// leftout(x, dim): true where all elements along dim are minus infinity. dim stays, with one
// element.
LoweredValue LeftOutFunction(Binder& binder, Values& operands) {
  const LoweredTensor& x = TensorOf(operands[0], "leftout");
  std::vector<int64_t> shape = x.layout.shape;
  const int64_t dim = Wrapped(IntOf(operands[1], "leftout"), shape.size());
  const LoweredTensor lowest = binder.Temporary(DType::kBool, shape);
  if (!shape.empty()) shape[dim] = 1;
  const LoweredTensor all = binder.Temporary(DType::kBool, std::move(shape));
  LoweredValue infinity;
  infinity.kind = ValueKind::kReal;
  infinity.real = -std::numeric_limits<double>::infinity();
  binder.Before({"aclnnEqScalar", {operands[0], infinity, Tensor(lowest)}});
  binder.Before({"aclnnAll", {Tensor(lowest), IntList({dim}), Bool(true), Tensor(all)}});
  return Tensor(all);
}

// int64(x): the tensor's values as int64.
LoweredValue Int64Function(Binder& binder, Values& operands) {
  const LoweredTensor& x = TensorOf(operands[0], "int64");
  if (x.layout.dtype == DType::kInt64) return operands[0];
  const LoweredTensor cast = binder.Temporary(DType::kInt64, x.layout.shape);
  LoweredValue dtype;
  dtype.kind = ValueKind::kDtype;
  dtype.integer = static_cast<int64_t>(DType::kInt64);
  binder.Before({"aclnnCast", {operands[0], dtype, Tensor(cast)}});
  return Tensor(cast);
}

// selected(out, x, mask): memory for the most elements that a selection from x by mask can have. A
// rule that asks again gets the same memory.
LoweredValue SelectedFunction(Binder& binder, Values& operands) {
  const DType dtype = TensorOf(operands[0], "selected").layout.dtype;
  const std::vector<int64_t>& x = TensorOf(operands[1], "selected").layout.shape;
  const std::vector<int64_t>& mask = TensorOf(operands[2], "selected").layout.shape;
  int64_t most = 1;
  for (size_t d = 1; d <= std::max(x.size(), mask.size()); ++d) {
    const int64_t of_x = d <= x.size() ? x[x.size() - d] : 1;
    const int64_t of_mask = d <= mask.size() ? mask[mask.size() - d] : 1;
    most *= of_x == 1 ? of_mask : of_x;
  }
  return Tensor(binder.Shared("selected", dtype, {most}));
}

// found(x): memory for the positions of as many elements as x has, int64 of (elements, dimensions).
LoweredValue FoundFunction(Binder& binder, Values& operands) {
  const Layout& x = TensorOf(operands[0], "found").layout;
  return Tensor(binder.Shared("found", DType::kInt64,
                              {x.ElementCount(), static_cast<int64_t>(x.shape.size())}));
}

// distinct(x): memory for as many values as x has elements. A rule that asks again gets the same.
LoweredValue DistinctFunction(Binder& binder, Values& operands) {
  const Layout& x = TensorOf(operands[0], "distinct").layout;
  return Tensor(binder.Shared("distinct", x.dtype, {x.ElementCount()}));
}

// counts(x): memory for as many counts, int64.
LoweredValue CountsFunction(Binder& binder, Values& operands) {
  const Layout& x = TensorOf(operands[0], "counts").layout;
  return Tensor(binder.Shared("counts", DType::kInt64, {x.ElementCount()}));
}

// positions(x): memory for a position for each element of x, int64.
LoweredValue PositionsFunction(Binder& binder, Values& operands) {
  const Layout& x = TensorOf(operands[0], "positions").layout;
  return Tensor(binder.Shared("positions", DType::kInt64, x.shape));
}

// nonzero(x): true where an element of x is not zero.
LoweredValue NonzeroFunction(Binder& binder, Values& operands) {
  const Layout& x = TensorOf(operands[0], "nonzero").layout;
  const LoweredTensor found = binder.Temporary(DType::kBool, x.shape);
  binder.Before({"aclnnNeScalar", {operands[0], Int(0), Tensor(found)}});
  return Tensor(found);
}

// greatest(x): the greatest finite number of a tensor's element type, which must fit a float32.
LoweredValue GreatestFunction(Binder&, Values& operands) {
  LoweredValue result;
  result.kind = ValueKind::kReal;
  switch (const DType dtype = TensorOf(operands[0], "greatest").layout.dtype; dtype) {
    case DType::kFloat16:
      result.real = 65504;
      break;
    case DType::kBfloat16:
      result.real = 0x1.FEp127;
      break;
    case DType::kFloat32:
      result.real = std::numeric_limits<float>::max();
      break;
    default:
      throw CannotBind("the greatest " + std::string(DTypeName(dtype)) + " does not fit");
  }
  return result;
}

// least(x): its negative.
LoweredValue LeastFunction(Binder& binder, Values& operands) {
  LoweredValue result = GreatestFunction(binder, operands);
  result.real = -result.real;
  return result;
}

}  // namespace

const std::vector<BindFunction>& ComposedFunctions() {
  static const std::vector<BindFunction> functions = {
      {"pairsequal", 2, PairsEqualFunction}, {"rank", 1, RankFunction},
      {"leftout", 2, LeftOutFunction},       {"int64", 1, Int64Function},
      {"selected", 3, SelectedFunction},     {"found", 1, FoundFunction},
      {"distinct", 1, DistinctFunction},     {"counts", 1, CountsFunction},
      {"positions", 1, PositionsFunction},   {"nonzero", 1, NonzeroFunction},
      {"greatest", 1, GreatestFunction},     {"least", 1, LeastFunction},
  };
  return functions;
}

}  // namespace acltape::analyzer::lowering
