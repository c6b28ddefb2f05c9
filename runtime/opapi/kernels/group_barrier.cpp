// Ranks of a group that wait for each other.
#include <string>

#include "runtime/opapi/kernels/group_kernel.h"

namespace acltape::opapi {
namespace {

// (xRef, [timeOut?, elasticInfo?,] group, worldSize): xRef orders the call among others, and keeps
// its values. How long to wait is not looked at: a rank that never comes is found otherwise.
std::unique_ptr<Kernel> BindBarrier(const Call& call, int group_index, int elastic) {
  call.View(0);
  if (elastic >= 0) call.ExpectAbsent({elastic});
  Group group(call, group_index);
  if (call.Int(group_index + 1) != group.ranks()) {
    call.RejectArg(group_index + 1, "is " + std::to_string(call.Int(group_index + 1)) +
                                        ", and the group has " + std::to_string(group.ranks()) +
                                        " ranks");
  }
  const auto meet = [] {
    return SoftExchange{
        SOFT_BARRIER, HCCL_DATA_TYPE_INT8, 0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  };
  return MakeGroupKernel(std::move(group), meet, [] {});
}

}  // namespace

KernelRows GroupBarrierRows() {
  return {
      {"aclnnDistributeBarrier", [](const Call& call) { return BindBarrier(call, 1, -1); }},
      {"aclnnDistributeBarrierV2", [](const Call& call) { return BindBarrier(call, 3, 2); }},
  };
}

}  // namespace acltape::opapi
