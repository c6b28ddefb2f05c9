// Triton kernels that the soft device ran on the host (ACLTAPE_TRITON_ON_HOST). A recording has
// such a launch as an enclosing call. Inside of it are views of the tensors that it was given, and
// leaves that bring the results to the device by copies. No leaf reads the tensors, because the
// soft device's memory is the host's. To a question about the program's dataflow the launch is one
// operator, which reads them.
#pragma once

#include "analyzer/calls/work.h"

namespace acltape::analyzer::executions {

// Puts one entry in the place of the leaves inside of each launch. It has the call id of the last
// leaf, reads all tensors of the launch, writes what the leaves write, and has the operator that
// such a launch has while a stream captures. Other work is given back as it is.
Work WithKernelsOnHost(Work work);

// True for the operator of an entry that launches a Triton kernel, on the device or on the host.
bool IsLaunchOfKernel(const storage::Op& op);

}  // namespace acltape::analyzer::executions
