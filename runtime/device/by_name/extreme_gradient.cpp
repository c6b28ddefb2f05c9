// The gradient of extremes along a dim: elements at given positions become others (ArgMaxGrad).
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_scatter.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

aclError CheckUpdates(const NamedCall& call, int64_t* dim) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 3, 1));
  const aclDataType type = call.inputs.descs[0]->type;
  if ((type != ACL_FLOAT && type != ACL_FLOAT16 && type != ACL_INT32 && type != ACL_INT8) ||
      call.inputs.descs[1]->type != ACL_INT32) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: var has the type %d and indices %d; expected float32, float16, int32 or "
                "int8, and int32",
                call.name, static_cast<int>(type), static_cast<int>(call.inputs.descs[1]->type));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.inputs.descs[2]->type));
  ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.outputs.descs[0]->type));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, call.inputs.Shape(0)));
  std::vector<int64_t> shape = call.inputs.Shape(0);
  const int64_t rank = std::max<int64_t>(static_cast<int64_t>(shape.size()), 1);
  const int64_t given = IntegerOf(call, "dimension", 0);
  *dim = given < 0 ? given + rank : given;
  if (*dim < 0 || *dim >= rank) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: there is no dim %lld in a tensor of %zu dims",
                call.name, static_cast<long long>(given), shape.size());
  }
  if (!shape.empty()) shape.erase(shape.begin() + *dim);
  const std::vector<int64_t>&indices = call.inputs.Shape(1), &updates = call.inputs.Shape(2);
  const bool in_blocks =
      call.inputs.InBlocks(0) || call.inputs.InBlocks(1) || call.inputs.InBlocks(2);
  const bool none = ElementsOf(indices) == 0 && ElementsOf(updates) == 0;
  if (!in_blocks && (none || (indices == shape && updates == shape))) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: indices have the shape %s and updates %s, or a tensor lies in FRACTAL_NZ; "
              "expected %s for both, the shape of var without the dim %lld, in plain order",
              call.name, ShapeText(indices).c_str(), ShapeText(updates).c_str(),
              ShapeText(shape).c_str(), static_cast<long long>(*dim));
}

// (var, indices, updates) to var with `updates` at the positions `indices` of the dim. Without
// indices it is var. An index outside of the dim fails on the stream.
aclError ReplaceAtIndices(const NamedCall& call) {
  int64_t dim = 0;
  ACLTAPE_RETURN_IF_FAILED(CheckUpdates(call, &dim));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  OperatorArguments own;
  aclTensor* out = own.Dense(call.outputs, 0, shape);
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(
      call, "aclnnInplaceCopy", out, own.Dense(call.inputs, 0, shape)));
  if (ElementsOf(call.inputs.Shape(1)) > 0) {
    std::vector<int64_t> one_each = shape;
    if (!shape.empty()) one_each[dim] = 1;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceScatterGetWorkspaceSize)>(
        call, "aclnnInplaceScatter", out, dim, own.Dense(call.inputs, 1, one_each),
        own.Dense(call.inputs, 2, one_each), int64_t{0}));
  }
  return ClearPadding(call);
}

constexpr NamedOperator kExtremeGradients[] = {
    {"ArgMaxGrad", ReplaceAtIndices},
};

}  // namespace

NamedTable ExtremeGradientsByName() { return kExtremeGradients; }

}  // namespace acltape::device
