// Elements at positions of several dims, elements that are written at positions, and numbers at
// equal distances, by the operator's name.
#include <algorithm>
#include <cmath>

#include "aclnnop/aclnn_arange.h"
#include "aclnnop/aclnn_index.h"
#include "aclnnop/aclnn_scatter.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

constexpr int kFirstIndex = 3;  // its place among the inputs of Index

// Reads for each dim of x whether an index takes its place, and the shape of the result. All
// indices have one shape, which stands where the first of them does, or first of all where a dim
// without one lies between them.
aclError ReadIndexedDims(const NamedCall& call, std::vector<int64_t>* masks) {
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "indexed_sizes", masks));
  const std::vector<int64_t>& x = call.inputs.Shape(0);
  const auto given = static_cast<int64_t>(call.inputs.count - kFirstIndex);
  const auto used = std::count_if(masks->begin(), masks->end(), [](int64_t m) { return m != 0; });
  bool fits = masks->size() <= x.size() && given == used && used > 0;
  for (int i = kFirstIndex; i < call.inputs.count; ++i) {
    const aclDataType type = call.inputs.descs[i]->type;
    fits = fits && (type == ACL_INT32 || type == ACL_INT64) &&
           call.inputs.Shape(i) == call.inputs.Shape(kFirstIndex);
  }
  if (!fits) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: indexed_sizes is %s, x has the shape %s, and there are %lld indices; "
                "expected an index of int32 or int64 for each dim that is marked, all of one shape",
                call.name, ShapeText(*masks).c_str(), ShapeText(x).c_str(),
                static_cast<long long>(given));
  }
  masks->resize(x.size(), 0);
  const auto first = std::find_if(masks->begin(), masks->end(), [](int64_t m) { return m != 0; });
  const bool together = std::all_of(first, first + used, [](int64_t mask) { return mask != 0; });
  std::vector<int64_t> shape;
  const auto add_index = [&] {
    const std::vector<int64_t>& index = call.inputs.Shape(kFirstIndex);
    shape.insert(shape.end(), index.begin(), index.end());
  };
  if (!together) add_index();
  for (size_t dim = 0; dim < x.size(); ++dim) {
    if (together && masks->begin() + static_cast<int64_t>(dim) == first) add_index();
    if ((*masks)[dim] == 0) shape.push_back(x[dim]);
  }
  return CheckShape(call, 0, shape);
}

// (x, indexed_sizes, indexed_strides, indices...)
aclError TakeIndexed(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, kFirstIndex + 1, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 0, "x"));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the output"));
  ACLTAPE_RETURN_IF_FAILED(
      CheckSameType(call, call.inputs.descs[0]->type, call.outputs.descs[0]->type));
  for (int i = kFirstIndex; i < call.inputs.count; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckInput(call, i, "an index"));
  }
  std::vector<int64_t> masks;
  ACLTAPE_RETURN_IF_FAILED(ReadIndexedDims(call, &masks));
  if (ElementsOf(call.outputs.Shape(0)) == 0) return ClearPadding(call);
  // A tensor without elements stands for a dim that has no index.
  OperatorArguments own;
  std::vector<aclTensor*> indices;
  int next = kFirstIndex;
  while (!masks.empty() && masks.back() == 0) masks.pop_back();
  for (int64_t mask : masks) {
    if (mask != 0) {
      indices.push_back(own.Whole(call.inputs, next));
      ++next;
    } else {
      indices.push_back(own.Tensor(call.inputs.descs[kFirstIndex]->type, nullptr, {0}, {0}, {1}));
    }
  }
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnIndexGetWorkspaceSize)>(
      call, "aclnnIndex", own.Whole(call.inputs, 0), own.List(indices),
      own.Whole(call.outputs, 0)));
  return ClearPadding(call);
}

// (x, index, updates): x with elements of the updates at the indices of one dim.
aclError WriteIndexed(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 3, 1));
  const std::vector<int64_t>& x = call.inputs.Shape(0);
  const std::vector<int64_t>& index = call.inputs.Shape(1);
  const std::vector<int64_t>& updates = call.inputs.Shape(2);
  for (int i : {0, 2}) {
    ACLTAPE_RETURN_IF_FAILED(
        CheckSameType(call, call.inputs.descs[i]->type, call.outputs.descs[0]->type));
  }
  const auto rank = static_cast<int64_t>(x.size());
  const int64_t given = IntegerOf(call, "axis", 0), axis = given < 0 ? given + rank : given;
  const std::string reduction = call.Text("reduction");
  bool fits = axis >= 0 && axis < rank && index.size() == x.size() && updates.size() == x.size() &&
              (reduction.empty() || reduction == "none");
  for (size_t dim = 0; fits && dim < x.size(); ++dim) {
    fits =
        index[dim] <= updates[dim] && (static_cast<int64_t>(dim) == axis || index[dim] <= x[dim]);
  }
  if (!fits) {
    return Fail(
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "aclop %s: axis is %lld, reduction '%s', and x, the index and the updates have the "
        "shapes %s, %s and %s; the soft device takes a dim of x, no reduction, and an index "
        "that is no greater than the updates and x in any other dim",
        call.name, static_cast<long long>(given), reduction.c_str(), ShapeText(x).c_str(),
        ShapeText(index).c_str(), ShapeText(updates).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, x));
  if (ElementsOf(x) == 0) return ClearPadding(call);
  OperatorArguments own;
  constexpr int64_t kReplace = 0;
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnScatterGetWorkspaceSize)>(
      call, "aclnnScatter", own.Dense(call.inputs, 0, x), axis, own.Dense(call.inputs, 1, index),
      own.Dense(call.inputs, 2, updates), kReplace, own.Dense(call.outputs, 0, x)));
  return ClearPadding(call);
}

// (start, limit, delta), which the host knows.
aclError CountOn(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 3, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the output"));
  OperatorArguments own;
  const aclScalar* scalars[3] = {};
  double numbers[3] = {};
  for (int i = 0; i < 3; ++i) {
    constexpr const char* kNames[] = {"start", "limit", "delta"};
    const aclDataType type = call.inputs.descs[i]->type;
    const char* bytes = nullptr;
    ACLTAPE_RETURN_IF_FAILED(ReadNumber(call, i, kNames[i], &numbers[i]));
    ACLTAPE_RETURN_IF_FAILED(ReadBytes(call, i, kNames[i], aclDataTypeSize(type), &bytes));
    scalars[i] = own.Scalar(type, bytes);
  }
  const double count = std::ceil((numbers[1] - numbers[0]) / numbers[2]);
  const std::vector<int64_t>& shape = call.outputs.Shape(0);
  if (!(count >= 0) || shape.size() != 1 || static_cast<double>(shape[0]) != count) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: %g, %g and %g are not the start, the limit and the delta of numbers of "
                "the shape %s",
                call.name, numbers[0], numbers[1], numbers[2], ShapeText(shape).c_str());
  }
  if (shape[0] == 0) return ClearPadding(call);
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnArangeGetWorkspaceSize)>(
      call, "aclnnArange", scalars[0], scalars[1], scalars[2], own.Dense(call.outputs, 0, shape)));
  return ClearPadding(call);
}

constexpr NamedOperator kIndexed[] = {
    {"Index", TakeIndexed},
    {"ScatterElements", WriteIndexed},
    {"Range", CountOn},
};

}  // namespace

NamedTable IndexedByName() { return kIndexed; }

}  // namespace acltape::device
