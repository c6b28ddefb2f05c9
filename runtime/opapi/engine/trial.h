// Trials of kernels: what the library refuses for its dtypes or shapes is refused by the first
// phase. The library says so only when it runs, and a task that fails stops its stream for good.
#pragma once

#include "runtime/opapi/engine/kernel_table.h"

namespace acltape::opapi {

// Note [Trials of kernels]
//
// The first phase of a call of a new kind binds the kernel a second time, to memory of its own that
// holds zeros, and runs it. An error that speaks of dtypes or shapes refuses the call; any other is
// left to the task, because it may be about the values, and so are errors about sizes where the
// inputs hold integers or truth values, such as a mask. Calls are of one kind when their tensors
// have the same dtypes and ranks and the other arguments are alike. A few shapes of each kind are
// tried, and then the kind is known to be good: a program that goes on does not pay for trials.
//
// Not tried are kernels that wait for other ranks, calls whose tensors need much memory, any where
// the device runs no kernels, and those of replays, which ran before (ACLTAPE_TRIALS=0).
//
// Throws RejectedCall when the trial shows that the kernel cannot run. `args` are what `kernel`, of
// the row, was bound to.
void TryKernel(const Call& call, const KernelRow& row, const acl::ArgValue* args, int merged_out,
               const Kernel& kernel);

}  // namespace acltape::opapi
