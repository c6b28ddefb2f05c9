// The status of results that saturate (rule OVF-03), by operators: memory for it, its value and its
// reset.
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_zero.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

constexpr size_t kOverflowBytes = 64;  // aclrtGetOverflowStatus writes so many
const std::vector<int64_t> kStatusShape{8};

aclError CheckStatus(const NamedCall& call, aclDataType type) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 0, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the status"));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, kStatusShape));
  if (call.outputs.descs[0]->type == type) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: the status has the type %d, expected %d",
              call.name, static_cast<int>(call.outputs.descs[0]->type), static_cast<int>(type));
}

// () to eight zeros.
aclError AllocateStatus(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckStatus(call, ACL_FLOAT));
  OperatorArguments own;
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceZeroGetWorkspaceSize)>(
      call, "aclnnInplaceZero", own.Dense(call.outputs, 0, kStatusShape)));
  return ClearPadding(call);
}

// () to eight integers, of which the first is not 0 when a result has saturated.
aclError GetStatus(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckStatus(call, ACL_INT32));
  static const auto get = DeviceFunction("aclrtGetOverflowStatus", &aclrtGetOverflowStatus);
  NamedScratch scratch(call.stream);
  void* status = nullptr;
  ACLTAPE_RETURN_IF_FAILED(scratch.Take(kOverflowBytes, &status));
  ACLTAPE_RETURN_IF_FAILED(get(status, kOverflowBytes, call.stream));
  OperatorArguments own;
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(
      call, "aclnnInplaceCopy", own.Dense(call.outputs, 0, kStatusShape),
      own.Tensor(ACL_INT32, status, kStatusShape, kStatusShape, {1})));
  return ClearPadding(call);
}

aclError ClearStatus(const NamedCall& call) {
  static const auto reset = DeviceFunction("aclrtResetOverflowStatus", &aclrtResetOverflowStatus);
  return reset(call.stream);
}

constexpr NamedOperator kFloatStatus[] = {
    {"NPUAllocFloatStatus", AllocateStatus},
    {"NPUGetFloatStatusV2", GetStatus},
    {"NPUClearFloatStatusV2", ClearStatus},
};

}  // namespace

NamedTable FloatStatusByName() { return kFloatStatus; }

}  // namespace acltape::device
