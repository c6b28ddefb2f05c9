// The operator hook of the plug-in; see leaf.cpp.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace acltape::torch_plugin {

void LeafFallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack);

// Makes operators of the calling thread pass through the fallback.
void EnterThread();

}  // namespace acltape::torch_plugin
