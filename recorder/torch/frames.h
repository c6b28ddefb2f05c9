// Enclosing calls: composite operators and backward nodes; see frames.cpp.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

// Ends the innermost frame of the thread.
void PopFrame(ThreadState& state);

// One composite operator while it runs.
class CompositeScope {
 public:
  CompositeScope(ThreadState& state, const c10::OperatorHandle& op) : state_(state) {
    state.frames.push_back({&op, nullptr, wire::Tick(), 0, 0});
    depth_ = state.frames.size();
  }
  ~CompositeScope() {
    while (state_.frames.size() >= depth_) PopFrame(state_);
  }
  CompositeScope(const CompositeScope&) = delete;
  CompositeScope& operator=(const CompositeScope&) = delete;

 private:
  ThreadState& state_;
  size_t depth_;
};

// Starts to follow composite operators, backward nodes and user ranges.
void RegisterFrames();

}  // namespace acltape::torch_plugin
