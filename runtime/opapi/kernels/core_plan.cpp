#include "runtime/opapi/kernels/core_plan.h"

#include <ATen/ATen.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/expect_dtypes.h"

namespace acltape::opapi {
namespace {

// (lengths..., numbers, layouts, plan): the soft device has no cores to plan for, and its operators
// do not look at the plan, so it is empty.
Binder EmptyPlan(int lengths, int plan) {
  return [=](const Call& call) {
    for (int i = 0; i < lengths; ++i) call.OptionalIn(i);  // checked, but not read
    const at::Tensor numbers = call.Out(plan);
    ExpectDtypes(call, plan, numbers, {at::kInt});
    call.ExpectSizes(plan, numbers, {kPlanSize});
    return MakeKernel([=] { at::Tensor(numbers).zero_(); });
  };
}

}  // namespace

KernelRows CorePlanRows() {
  return {{"aclnnSparseAttnSharedkvMetadata", EmptyPlan(5, 22)},
          {"aclnnVllmQuantLightningIndexerMetadata", EmptyPlan(2, 17)}};
}

}  // namespace acltape::opapi
