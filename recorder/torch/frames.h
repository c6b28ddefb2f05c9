// Enclosing calls: composite operators and backward nodes; see frames.cpp.
#pragma once

#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

class Registrations;

// One composite operator while it runs. Nothing when the thread is not recorded or is in a leaf.
class CompositeScope {
 public:
  // `hot` is its index among the hot operators, or kNotHot.
  CompositeScope(const c10::OperatorHandle* op, size_t hot);
  ~CompositeScope();
  CompositeScope(const CompositeScope&) = delete;
  CompositeScope& operator=(const CompositeScope&) = delete;

 private:
  ThreadState* state_;
  size_t depth_ = 0;
};

// Starts to follow composite operators, backward nodes and user ranges.
void RegisterFrames(Registrations& registrations);

}  // namespace acltape::torch_plugin
