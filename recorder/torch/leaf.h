// The operator hook of the plug-in. A leaf comes by boxed (boxed_kernels.h) or, when it is one of
// the hot operators, with its C++ arguments (hot_kernels.h); both record it through a LeafScope.
#pragma once

#include "recorder/torch/dispatch_keys.h"
#include "recorder/torch/guard.h"
#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

inline c10::DispatchKeySet BelowKey(c10::DispatchKeySet keys, c10::DispatchKey key) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key);
}

// True when a leaf that begins now is recorded.
bool RecordsLeaves(ThreadState& state);
// Begins to record a leaf; from here on operators of this thread are part of it and do not come by.
// nullptr: the thread is not recorded now, or is in a leaf already; there is nothing to do but to
// run the kernel. The first is for a hot operator, by its index.
ThreadState* EnterLeaf(size_t hot);
void EnterLeaf(ThreadState& state, const ThreadState::OpRow& row);
// The arguments or the returns of a leaf could not be encoded: it is recorded without them.
void LoseArguments(ThreadState& state);
// The arguments are encoded; the kernel comes next.
void BeginLeaf(ThreadState& state);
// The returns are encoded: writes the record.
void EndLeaf(ThreadState& state);
// Something threw. When it was the kernel, the leaf is recorded as failed.
void AbandonLeaf(ThreadState& state);

// An entered leaf until its end. It holds nothing else: what is known of the leaf is in the
// thread's state, whose lines are in the cache.
class LeafScope {
 public:
  explicit LeafScope(ThreadState& state) : state_(&state) {}
  ~LeafScope() {
    if (state_ != nullptr) AbandonLeaf(*state_);
  }
  LeafScope(const LeafScope&) = delete;
  LeafScope& operator=(const LeafScope&) = delete;

  // Encodes arguments or returns.
  template <typename Part>
  __attribute__((always_inline)) void Encode(const Part& part) {
    if (!Guarded(wire::LeftOut::kArguments, part)) LoseArguments(*state_);
  }
  void Begin() { BeginLeaf(*state_); }
  void Returned() { state_->call().end_tick = agent::Tick(); }
  void End() {
    EndLeaf(*state_);
    state_ = nullptr;
  }

 private:
  ThreadState* state_;
};

// The operator's row; null without memory.
const ThreadState::OpRow* FindRow(ThreadState& state, const c10::OperatorHandle& op);
// Records an operator as a leaf, with what its kernels below `key` do.
void RecordLeaf(ThreadState& state, const ThreadState::OpRow& row, const c10::OperatorHandle& op,
                c10::DispatchKeySet keys, c10::DispatchKey key, torch::jit::Stack* stack);
// Makes operators of the calling thread pass through the hooks.
void EnterThread();

}  // namespace acltape::torch_plugin
