// Kernels made of a function body over libtorch.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>

#include "runtime/opapi/engine/bound_kernel.h"

namespace acltape::opapi {

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
