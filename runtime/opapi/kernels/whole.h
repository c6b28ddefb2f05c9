// Binders of operators whose result is computed as a whole and then copied to the output: those
// that the library has no out form of.
#pragma once

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/expect_dtypes.h"

namespace acltape::opapi {

// Binds `compute()`, which gives the result of the given sizes when the task runs.
template <typename Fn>
std::unique_ptr<Kernel> BindWhole(const Call& call, int out_index, at::IntArrayRef sizes,
                                  Fn compute) {
  const at::Tensor out = call.Out(out_index);
  call.ExpectSizes(out_index, out, sizes);
  return MakeKernel([out, compute = std::move(compute)] { out.copy_(compute()); });
}

}  // namespace acltape::opapi
