// A kernel with its arguments bound: what the first phase of a call makes and a stream's worker
// runs. Free of libtorch: libopapi.so launches kernels that a kernel library (kernel_library.h) has
// bound.
#pragma once

#include <cstdint>

#include "runtime/kernel_launch.h"
#include "runtime/opapi/base/objects.h"

namespace acltape::opapi {

// Running one does no validation: all of that happened when it was bound. It holds its tensors as
// views of device memory that belongs to the caller, and copies of everything else (rule CAP-25).
class Kernel : public BoundTask {
 public:
  // The kernel's entry for SoftLaunchKernel, whose `bound` is this Kernel*.
  SoftKernelRun run() const { return run_; }

  // Bytes of workspace that the launch must bring; 0 for most kernels.
  uint64_t workspace_size() const { return workspace_size_; }

  // Called once, before the first run, when workspace_size() is not 0.
  virtual void Attach(void* /*workspace*/) {}

 protected:
  explicit Kernel(SoftKernelRun run) : run_(run) {}

  uint64_t workspace_size_ = 0;

 private:
  SoftKernelRun run_;
};

}  // namespace acltape::opapi
