// The greatest or least elements along a dim with their positions, by the operator's name.
#include "aclnnop/aclnn_max_dim.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

// (x) to (indice, values), the reverse of the order in libopapi.so.
aclError RunExtreme(const NamedCall& call, const char* name) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 2));
  ACLTAPE_RETURN_IF_FAILED(
      CheckSameType(call, call.inputs.descs[0]->type, call.outputs.descs[1]->type));
  std::vector<int64_t> shape = call.inputs.Shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t given = IntegerOf(call, "dimension", 0);
  const bool keep = FlagOf(call, "keep_dims", false);
  const int64_t dim = given < 0 ? given + std::max<int64_t>(rank, 1) : given;
  if (dim < 0 || dim >= std::max<int64_t>(rank, 1)) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: there is no dim %lld in a tensor of %lld dims",
                call.name, static_cast<long long>(given), static_cast<long long>(rank));
  }
  if (rank > 0 && keep) shape[dim] = 1;
  if (rank > 0 && !keep) shape.erase(shape.begin() + dim);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 1, shape));
  if (ElementsOf(shape) == 0) return ACL_SUCCESS;
  OperatorArguments own;
  return RunOperator<decltype(&aclnnMaxDimGetWorkspaceSize)>(
      call, name, own.Whole(call.inputs, 0), dim, keep, own.Dense(call.outputs, 1, shape),
      own.Dense(call.outputs, 0, shape));
}

aclError FindGreatest(const NamedCall& call) { return RunExtreme(call, "aclnnMaxDim"); }
aclError FindLeast(const NamedCall& call) { return RunExtreme(call, "aclnnMinDim"); }

constexpr NamedOperator kExtremes[] = {
    {"ArgMaxWithValue", FindGreatest},
    {"ArgMinWithValue", FindLeast},
};

}  // namespace

NamedTable ExtremesByName() { return kExtremes; }

}  // namespace acltape::device
