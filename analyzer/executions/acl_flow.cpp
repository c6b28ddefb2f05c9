#include "analyzer/executions/acl_flow.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "analyzer/executions/element_places.h"

namespace acltape::analyzer::executions {
namespace {

using Arguments = std::vector<storage::SignatureArgument>;
using Inputs = std::vector<FlowTensor>;

std::vector<char> AclElements(const Arguments& arguments, const Inputs& inputs,
                              const storage::Layout& result) {
  return FlowOf("aten::add", arguments, inputs, result);
}

std::vector<char> AclReduction(const Arguments& arguments, const Inputs& inputs,
                               const storage::Layout& result) {
  return FlowOf("aten::sum", arguments, inputs, result);
}

std::vector<char> AclAlongDim(const Arguments& arguments, const Inputs& inputs,
                              const storage::Layout& result) {
  return FlowOf("aten::softmax", arguments, inputs, result);
}

std::vector<char> AclProduct(const Arguments& arguments, const Inputs& inputs,
                             const storage::Layout& result) {
  return FlowOf("aten::mm", arguments, inputs, result);
}

const storage::SignatureArgument* Named(const Arguments& arguments, std::string_view name) {
  const auto found =
      std::find_if(arguments.begin(), arguments.end(),
                   [&](const storage::SignatureArgument& one) { return one.name == name; });
  return found == arguments.end() ? nullptr : &*found;
}

bool IsZero(const storage::SignatureArgument* number) {
  return number != nullptr && number->kind == storage::ValueKind::kScalar && number->integer == 0 &&
         number->real == 0;
}

// A term whose factor is zero is not read.
std::vector<char> AclAddedProduct(const Arguments& arguments, const Inputs& inputs,
                                  const storage::Layout& result) {
  if (inputs.size() != 3) return {};
  if (!IsZero(Named(arguments, "beta"))) return FlowOf("aten::addmm", arguments, inputs, result);
  return FlowOf("aten::mm", arguments, {inputs.begin() + 1, inputs.end()}, result);
}

// Normalisation of each row: the dimensions that the weight has, or that are listed.
std::vector<char> Rows(const Arguments& arguments, const Inputs& inputs,
                       const storage::Layout& result) {
  const Shape& shape = inputs[0].layout->shape;
  const storage::SignatureArgument* listed = Named(arguments, "normalizedShape");
  size_t normal = 0;
  if (listed != nullptr) {
    normal = listed->integers.size();
  } else if (inputs.size() > 1) {
    normal = inputs.back().layout->shape.size();
  }
  if (normal == 0 || normal > shape.size()) return {};
  const Shape rest(shape.end() - static_cast<std::ptrdiff_t>(normal), shape.end());
  const int64_t length = CountOf(rest);
  const int64_t rows = length == 0 ? 0 : CountOf(shape) / length;
  std::vector<char> of_row(static_cast<size_t>(rows), 0);
  Inputs weights;
  for (const FlowTensor& input : inputs) {
    if (input.layout->shape != shape) {
      weights.push_back(input);
      continue;
    }
    for (size_t i = 0; i < input.undefined.size(); ++i) {
      of_row[i / static_cast<size_t>(length)] |= input.undefined[i];
    }
  }
  if (CountOf(result.shape) == rows) return of_row;
  if (result.shape != shape) return {};
  std::vector<char> marked = AclElements(arguments, weights, result);
  marked.resize(static_cast<size_t>(rows * length), 0);
  for (size_t i = 0; i < marked.size(); ++i) marked[i] |= of_row[i / static_cast<size_t>(length)];
  return marked;
}

// The dimension that an argument names; the rank itself if there is none.
size_t DimOf(const Arguments& arguments, size_t rank) {
  const storage::SignatureArgument* dim = Named(arguments, "dim");
  if (dim == nullptr) return rank;
  const int64_t number =
      dim->integer < 0 ? dim->integer + static_cast<int64_t>(rank) : dim->integer;
  return number < 0 || number >= static_cast<int64_t>(rank) ? rank : static_cast<size_t>(number);
}

int64_t PlaceIn(const Shape& index, const Shape& shape) {
  int64_t place = 0;
  for (size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + index[d];
  return place;
}

std::vector<char> Concatenation(const Arguments& arguments, const Inputs& inputs,
                                const storage::Layout& result) {
  const Shape& shape = result.shape;
  const size_t dim = DimOf(arguments, shape.size());
  if (dim == shape.size()) return {};
  std::vector<char> marked(static_cast<size_t>(CountOf(shape)), 0);
  int64_t from = 0;
  for (const FlowTensor& input : inputs) {
    const Shape& part = input.layout->shape;
    Shape as_result = shape;
    if (part.size() != shape.size()) continue;  // an empty tensor of one dimension
    as_result[dim] = part[dim];
    if (as_result != part || from + part[dim] > shape[dim]) return {};
    if (!input.undefined.empty()) {
      EachIndex(part, [&](int64_t i, const Shape& index) {
        Shape there = index;
        there[dim] += from;
        marked[static_cast<size_t>(PlaceIn(there, shape))] =
            input.undefined[static_cast<size_t>(i)];
      });
    }
    from += part[dim];
  }
  return from == shape[dim] ? marked : std::vector<char>();
}

std::vector<char> Permutation(const Arguments& arguments, const Inputs& inputs,
                              const storage::Layout& result) {
  const storage::SignatureArgument* dims = Named(arguments, "dims");
  const Shape& from = inputs[0].layout->shape;
  const Shape& shape = result.shape;
  if (dims == nullptr || dims->integers.size() != from.size() || shape.size() != from.size()) {
    return {};
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t dim = dims->integers[d];
    if (dim < 0 || dim >= static_cast<int64_t>(from.size()) || from[dim] != shape[d]) return {};
  }
  std::vector<char> marked(static_cast<size_t>(CountOf(shape)), 0);
  Shape there = from;
  EachIndex(shape, [&](int64_t i, const Shape& index) {
    for (size_t d = 0; d < shape.size(); ++d) there[dims->integers[d]] = index[d];
    marked[static_cast<size_t>(i)] = inputs[0].undefined[static_cast<size_t>(PlaceIn(there, from))];
  });
  return marked;
}

std::vector<char> Slice(const Arguments& arguments, const Inputs& inputs,
                        const storage::Layout& result) {
  const Shape& from = inputs[0].layout->shape;
  const Shape& shape = result.shape;
  const size_t dim = DimOf(arguments, from.size());
  const storage::SignatureArgument* start = Named(arguments, "start");
  const storage::SignatureArgument* step = Named(arguments, "step");
  if (dim == from.size() || shape.size() != from.size() || start == nullptr || step == nullptr) {
    return {};
  }
  const int64_t first = start->integer < 0 ? start->integer + from[dim] : start->integer;
  Shape as_result = from;
  as_result[dim] = shape[dim];
  const bool fits = as_result == shape && first >= 0 && step->integer > 0 &&
                    first + (shape[dim] - 1) * step->integer < from[dim];
  if (!fits) return {};
  std::vector<char> marked(static_cast<size_t>(CountOf(shape)), 0);
  EachIndex(shape, [&](int64_t i, const Shape& index) {
    Shape there = index;
    there[dim] = first + index[dim] * step->integer;
    marked[static_cast<size_t>(i)] = inputs[0].undefined[static_cast<size_t>(PlaceIn(there, from))];
  });
  return marked;
}

struct AclRow {
  std::string_view name;  // without "aclnn" and, for an operator that works in place, "Inplace"
  std::vector<char> (*flow)(const Arguments&, const Inputs&, const storage::Layout&);
  bool first = false;  // it moves elements of its first input alone
};

constexpr AclRow kAclRows[] = {
    {"Abs", AclElements},
    {"Acos", AclElements},
    {"Add", AclElements},
    {"Addcdiv", AclElements},
    {"Addcmul", AclElements},
    {"Adds", AclElements},
    {"Asin", AclElements},
    {"Atan", AclElements},
    {"Cast", AclElements},
    {"Ceil", AclElements},
    {"Clamp", AclElements},
    {"ClampMax", AclElements},
    {"ClampMin", AclElements},
    {"Copy", AclElements},
    {"Cos", AclElements},
    {"Div", AclElements},
    {"Divs", AclElements},
    {"EqScalar", AclElements},
    {"EqTensor", AclElements},
    {"Erf", AclElements},
    {"Exp", AclElements},
    {"Expand", AclElements},
    {"Floor", AclElements},
    {"GeScalar", AclElements},
    {"GeTensor", AclElements},
    {"Gelu", AclElements},
    {"GeluV2", AclElements},
    {"GtScalar", AclElements},
    {"GtTensor", AclElements},
    {"IsFinite", AclElements},
    {"LeScalar", AclElements},
    {"LeTensor", AclElements},
    {"Log", AclElements},
    {"LtScalar", AclElements},
    {"LtTensor", AclElements},
    {"Maximum", AclElements},
    {"Minimum", AclElements},
    {"Mul", AclElements},
    {"Muls", AclElements},
    {"NeScalar", AclElements},
    {"NeTensor", AclElements},
    {"Neg", AclElements},
    {"PowTensorScalar", AclElements},
    {"PowTensorTensor", AclElements},
    {"Reciprocal", AclElements},
    {"Relu", AclElements},
    {"Round", AclElements},
    {"Rsqrt", AclElements},
    {"Rsub", AclElements},
    {"Rsubs", AclElements},
    {"Sigmoid", AclElements},
    {"Silu", AclElements},
    {"Sin", AclElements},
    {"Sqrt", AclElements},
    {"Sub", AclElements},
    {"Subs", AclElements},
    {"Swish", AclElements},
    {"Tanh", AclElements},

    {"Amax", AclReduction},
    {"Amin", AclReduction},
    {"ArgMax", AclReduction},
    {"ArgMin", AclReduction},
    {"LinalgVectorNorm", AclReduction},
    {"LogSumExp", AclReduction},
    {"Max", AclReduction},
    {"MaxDim", AclReduction},
    {"Mean", AclReduction},
    {"Min", AclReduction},
    {"MinDim", AclReduction},
    {"Norm", AclReduction},
    {"Prod", AclReduction},
    {"ProdDim", AclReduction},
    {"ReduceSum", AclReduction},
    {"Std", AclReduction},
    {"Var", AclReduction},

    {"Cumsum", AclAlongDim},
    {"LogSoftmax", AclAlongDim},
    {"Softmax", AclAlongDim},

    {"Addmm", AclAddedProduct},
    {"Baddbmm", AclAddedProduct},
    {"BatchMatMul", AclProduct},
    {"Dot", AclProduct},
    {"Matmul", AclProduct},
    {"Mm", AclProduct},
    {"Mv", AclProduct},

    {"AddRmsNorm", Rows},
    {"LayerNorm", Rows},
    {"RmsNorm", Rows},

    {"Cat", Concatenation},
    {"Permute", Permutation, true},
    {"Slice", Slice, true},
};

const AclRow* FindAclRow(std::string_view name) {
  constexpr std::string_view kOperator = "aclnn", kInPlace = "Inplace";
  if (!name.starts_with(kOperator)) return nullptr;
  name.remove_prefix(kOperator.size());
  if (name.starts_with(kInPlace)) name.remove_prefix(kInPlace.size());
  const auto row = std::find_if(std::begin(kAclRows), std::end(kAclRows),
                                [&](const AclRow& one) { return one.name == name; });
  return row == std::end(kAclRows) ? nullptr : row;
}

}  // namespace

bool IsAclFlowKnown(std::string_view name) { return FindAclRow(name) != nullptr; }

std::vector<char> FlowOfAcl(std::string_view name, const Arguments& arguments, const Inputs& inputs,
                            const storage::Layout& result) {
  const AclRow* row = FindAclRow(name);
  if (row == nullptr || inputs.empty()) return {};
  if (row->first && inputs[0].undefined.empty()) return {};
  return row->flow(arguments, inputs, result);
}

}  // namespace acltape::analyzer::executions
