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

// One leaf while it runs. In this order: construct, encode the arguments into the state, Begin, run
// the kernel, Returned, encode the returns, End. Destroyed between Begin and End, the kernel threw:
// the leaf is recorded as failed. While it lives, operators of this thread are part of the leaf and
// do not come by.
class LeafScope {
 public:
  LeafScope(ThreadState& state, const ThreadState::OpRow& row);
  ~LeafScope();
  LeafScope(const LeafScope&) = delete;
  LeafScope& operator=(const LeafScope&) = delete;

  const OpInfo& info() const { return *row_.info; }
  void Begin();
  void Returned();
  void End();

 private:
  void Write(int32_t status);

  ThreadState& state_;
  const ThreadState::OpRow row_;
  bool open_ = false;
  uint64_t call_id_ = 0;
  uint64_t parent_id_ = 0;
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  size_t argument_slots_ = 0;
  LeafValues values_;
  c10::impl::ExcludeDispatchKeyGuard guard_{c10::DispatchKeySet({kLeafKey, kCompositeKey})};
};

void LeafFallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

// Makes operators of the calling thread pass through the hooks.
void EnterThread();

}  // namespace acltape::torch_plugin
