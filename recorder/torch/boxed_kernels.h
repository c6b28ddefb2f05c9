// The kernels that serve any operator, with its arguments on a stack.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace acltape::torch_plugin {

// The kernel at kLeafKey; see leaf.cpp.
void LeafFallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);
// The kernel at kCompositeKey; see frames.cpp.
void CompositeKernel(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack);

}  // namespace acltape::torch_plugin
