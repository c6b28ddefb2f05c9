// The greatest, least or sorted elements of a dim with their positions, and sums from the start of
// a dim on, by the operator's name.
#include <algorithm>
#include <type_traits>

#include "aclnnop/aclnn_argmax.h"
#include "aclnnop/aclnn_argmin.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_cumsum.h"
#include "aclnnop/aclnn_sort.h"
#include "aclnnop/aclnn_topk.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

// Positions as the library gives them, in int64. By name they are int32.
struct Positions {
  explicit Positions(const NamedCall& call) : scratch(call.stream) {}

  aclError Take(const std::vector<int64_t>& shape) {
    void* memory = nullptr;
    ACLTAPE_RETURN_IF_FAILED(scratch.Take(ElementsOf(shape) * sizeof(int64_t), &memory));
    wide = own.Tensor(ACL_INT64, memory, shape, shape, RowMajorStrides(shape));
    return ACL_SUCCESS;
  }
  aclError Give(const NamedCall& call, int output) {
    return RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(
        call, "aclnnInplaceCopy", own.Whole(call.outputs, output), wide);
  }

  NamedScratch scratch;
  OperatorArguments own;
  aclTensor* wide = nullptr;
};

aclError CheckPositions(const NamedCall& call, int output) {
  const aclDataType type = call.outputs.descs[output]->type;
  if (type == ACL_INT32 || type == ACL_INT64) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: positions have the type %d, expected int32",
              call.name, static_cast<int>(type));
}

aclError CheckSearchedDim(const NamedCall& call, int64_t* dim) {
  const auto rank = static_cast<int64_t>(std::max<size_t>(call.inputs.Shape(0).size(), 1));
  const int64_t given = *dim;
  if (given < 0) *dim += rank;
  if (*dim >= 0 && *dim < rank) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: there is no dim %lld in a tensor of shape %s",
              call.name, static_cast<long long>(given), ShapeText(call.inputs.Shape(0)).c_str());
}

aclError CheckSorted(const NamedCall& call, const std::vector<int64_t>& shape) {
  ACLTAPE_RETURN_IF_FAILED(
      CheckSameType(call, call.inputs.descs[0]->type, call.outputs.descs[0]->type));
  ACLTAPE_RETURN_IF_FAILED(CheckPositions(call, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  return CheckShape(call, 1, shape);
}

// (x, k) to (values, indices)
aclError FindFirstOfSorted(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 2));
  std::vector<int64_t> k, shape = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "k", &k));
  int64_t dim = IntegerOf(call, "dim", -1);
  ACLTAPE_RETURN_IF_FAILED(CheckSearchedDim(call, &dim));
  if (k.size() != 1 || shape.empty() || k[0] < 0 || k[0] > shape[dim]) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: k is %s; expected a number of elements of dim "
                "%lld of the shape %s",
                call.name, ShapeText(k).c_str(), static_cast<long long>(dim),
                ShapeText(shape).c_str());
  }
  shape[dim] = k[0];
  ACLTAPE_RETURN_IF_FAILED(CheckSorted(call, shape));
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  Positions positions(call);
  ACLTAPE_RETURN_IF_FAILED(positions.Take(shape));
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnTopkGetWorkspaceSize)>(
      call, "aclnnTopk", positions.own.Whole(call.inputs, 0), k[0], dim,
      FlagOf(call, "largest", true), FlagOf(call, "sorted", true),
      positions.own.Dense(call.outputs, 0, shape), positions.wide));
  ACLTAPE_RETURN_IF_FAILED(positions.Give(call, 1));
  return ClearPadding(call);
}

// (x) to (values, indices). Equal elements keep their order.
aclError SortElements(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 2));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  int64_t dim = IntegerOf(call, "axis", -1);
  ACLTAPE_RETURN_IF_FAILED(CheckSearchedDim(call, &dim));
  ACLTAPE_RETURN_IF_FAILED(CheckSorted(call, shape));
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  Positions positions(call);
  ACLTAPE_RETURN_IF_FAILED(positions.Take(shape));
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnSortGetWorkspaceSize)>(
      call, "aclnnSort", positions.own.Dense(call.inputs, 0, shape), true, dim,
      FlagOf(call, "descending", false), positions.own.Dense(call.outputs, 0, shape),
      positions.wide));
  ACLTAPE_RETURN_IF_FAILED(positions.Give(call, 1));
  return ClearPadding(call);
}

// (x, dimension) to the position of the greatest or least element.
aclError FindPosition(const NamedCall& call, const char* in_library) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckPositions(call, 0));
  std::vector<int64_t> dim, shape = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "dimension", &dim));
  if (dim.size() != 1) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: dimension has %zu numbers, expected 1",
                call.name, dim.size());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckSearchedDim(call, dim.data()));
  const bool keep = FlagOf(call, "keep_dims", false);
  if (!shape.empty() && shape[dim[0]] == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: dim %lld has no elements", call.name,
                static_cast<long long>(dim[0]));
  }
  if (!shape.empty() && keep) shape[dim[0]] = 1;
  if (!shape.empty() && !keep) shape.erase(shape.begin() + dim[0]);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  Positions positions(call);
  ACLTAPE_RETURN_IF_FAILED(positions.Take(shape));
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnArgMaxGetWorkspaceSize)>(
      call, in_library, positions.own.Whole(call.inputs, 0), dim[0], keep, positions.wide));
  ACLTAPE_RETURN_IF_FAILED(positions.Give(call, 0));
  return ClearPadding(call);
}
static_assert(
    std::is_same_v<decltype(&aclnnArgMaxGetWorkspaceSize), decltype(&aclnnArgMinGetWorkspaceSize)>);

aclError FindGreatestPosition(const NamedCall& call) { return FindPosition(call, "aclnnArgMax"); }
aclError FindLeastPosition(const NamedCall& call) { return FindPosition(call, "aclnnArgMin"); }

// (x, axis)
aclError SumFromTheStart(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  ACLTAPE_RETURN_IF_FAILED(
      CheckSameType(call, call.inputs.descs[0]->type, call.outputs.descs[0]->type));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  std::vector<int64_t> axis;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "axis", &axis));
  if (axis.size() != 1) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: axis has %zu numbers, expected 1", call.name,
                axis.size());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckSearchedDim(call, axis.data()));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnCumsumV2GetWorkspaceSize)>(
        call, "aclnnCumsumV2", own.Dense(call.inputs, 0, shape), axis[0],
        FlagOf(call, "exclusive", false), FlagOf(call, "reverse", false),
        own.Dense(call.outputs, 0, shape)));
  }
  return ClearPadding(call);
}

constexpr NamedOperator kSearches[] = {
    {"TopKV2", FindFirstOfSorted}, {"Sort", SortElements},      {"ArgMaxV2", FindGreatestPosition},
    {"ArgMin", FindLeastPosition}, {"Cumsum", SumFromTheStart},
};

}  // namespace

NamedTable SearchesByName() { return kSearches; }

}  // namespace acltape::device
