// The operator hook of the plug-in. A leaf comes by boxed (LeafFallback) or, when it is one of the
// hot operators, with its C++ arguments (hot_kernels.h); both record it through a LeafScope.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "recorder/torch/dispatch_keys.h"
#include "recorder/torch/thread_state.h"
#include "recorder/torch/values.h"

namespace acltape::torch_plugin {

inline c10::DispatchKeySet BelowKey(c10::DispatchKeySet keys, c10::DispatchKey key) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key);
}

// One leaf while it runs. In this order: Enter, encode the arguments into the state, Begin, run the
// kernel, Returned, encode the returns, End. Destroyed between Begin and End, the kernel threw: the
// leaf is recorded as failed. From Enter on, operators of this thread are part of the leaf and do
// not come by.
class LeafScope {
 public:
  LeafScope() = default;
  ~LeafScope();
  LeafScope(const LeafScope&) = delete;
  LeafScope& operator=(const LeafScope&) = delete;

  // nullptr: the thread is not recorded, or is in a leaf already; there is nothing to do but to run
  // the kernel. The first is for a hot operator, by its index.
  ThreadState* Enter(size_t hot);
  void Enter(ThreadState& state, const ThreadState::OpRow& row);
  void Begin();
  void Returned() { end_ = wire::Tick(); }
  void End();

 private:
  void Open(ThreadState& state);
  void Write(int32_t status);
  void Fail();

  ThreadState* state_ = nullptr;
  bool open_ = false;
  uint32_t op_index_ = 0;
  uint64_t call_id_ = 0;
  uint64_t parent_id_ = 0;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  c10::DispatchKeySet excluded_;      // before the leaf
  c10::optional<LeafValues> values_;  // when the payload policy wants to see tensors
};

void LeafFallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

// Makes operators of the calling thread pass through the hooks.
void EnterThread();

}  // namespace acltape::torch_plugin
