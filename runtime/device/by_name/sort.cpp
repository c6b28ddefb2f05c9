// The elements of rows in order, without their positions (SortV2).
#include "aclnnop/aclnn_sort.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

// (x) to its elements in order along the last dim: the operator takes no other one.
aclError SortRows(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  const aclDataType type = call.inputs.descs[0]->type;
  const int64_t axis = IntegerOf(call, "axis", -1);
  const bool last = axis == -1 || axis == std::max<int64_t>(rank, 1) - 1;
  if (!last ||
      (type != ACL_FLOAT && type != ACL_FLOAT16 && type != ACL_BF16 && type != ACL_DOUBLE)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: x has the type %d and %lld dims, and axis is %lld; expected float32, "
                "float16, bfloat16 or double, and the last dim",
                call.name, static_cast<int>(type), static_cast<long long>(rank),
                static_cast<long long>(axis));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.outputs.descs[0]->type));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  NamedScratch scratch(call.stream);
  OperatorArguments own;
  void* positions = nullptr;
  ACLTAPE_RETURN_IF_FAILED(scratch.Take(ElementsOf(shape) * sizeof(int64_t), &positions));
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnSortGetWorkspaceSize)>(
      call, "aclnnSort", own.Dense(call.inputs, 0, shape), false, int64_t{-1},
      FlagOf(call, "descending", false), own.Dense(call.outputs, 0, shape),
      own.Tensor(ACL_INT64, positions, shape, shape, RowMajorStrides(shape))));
  return ClearPadding(call);
}

constexpr NamedOperator kSorts[] = {
    {"SortV2", SortRows},
};

}  // namespace

NamedTable SortsByName() { return kSorts; }

}  // namespace acltape::device
