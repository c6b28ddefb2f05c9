// Kernels with their arguments bound: what the first phase of a call makes and a stream's worker
// runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>

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

// Frees a Kernel that SoftLaunchKernel owned.
void DropKernel(void* bound);

// Prepares the worker thread at its first kernel, and for good, since workers run nothing else: no
// autograd, and the number of compute threads.
class WorkerThread {
 public:
  static void Enter() {
    static thread_local WorkerThread state;
    state.Touch();
  }

 private:
  WorkerThread();
  void Touch() {}  // constructs the thread's state at the first call

  c10::InferenceMode inference_;
};

// Turns the exception in flight into an error text of this thread and a task error code.
aclError ReportKernelException() noexcept;

template <typename Body>
class BodyKernel final : public Kernel {
 public:
  explicit BodyKernel(Body body) : Kernel(&Run), body_(std::move(body)) {}

 private:
  static aclError Run(void* bound) {
    try {
      WorkerThread::Enter();
      static_cast<BodyKernel*>(static_cast<Kernel*>(bound))->body_();
      return ACL_SUCCESS;
    } catch (...) {
      return ReportKernelException();
    }
  }

  Body body_;
};

// A kernel that calls `body()`. The body may run many times, also from several threads at once.
template <typename Body>
std::unique_ptr<Kernel> MakeKernel(Body body) {
  return std::make_unique<BodyKernel<Body>>(std::move(body));
}

// A kernel that calls `body(workspace)` with device memory of `bytes`, aligned to 64 bytes.
template <typename Body>
class WorkspaceKernel final : public Kernel {
 public:
  WorkspaceKernel(uint64_t bytes, Body body) : Kernel(&Run), body_(std::move(body)) {
    workspace_size_ = bytes + kAlignment;
  }

  void Attach(void* workspace) override {
    const auto address = reinterpret_cast<uintptr_t>(workspace);
    workspace_ = reinterpret_cast<char*>((address + kAlignment - 1) / kAlignment * kAlignment);
  }

 private:
  static constexpr uintptr_t kAlignment = 64;

  static aclError Run(void* bound) {
    try {
      WorkerThread::Enter();
      auto* kernel = static_cast<WorkspaceKernel*>(static_cast<Kernel*>(bound));
      kernel->body_(kernel->workspace_);
      return ACL_SUCCESS;
    } catch (...) {
      return ReportKernelException();
    }
  }

  Body body_;
  char* workspace_ = nullptr;
};

template <typename Body>
std::unique_ptr<Kernel> MakeWorkspaceKernel(uint64_t bytes, Body body) {
  return std::make_unique<WorkspaceKernel<Body>>(bytes, std::move(body));
}

}  // namespace acltape::opapi
