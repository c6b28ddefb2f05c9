// Operators that are composites elsewhere, and that an adapter computes in its autograd kernel
// itself.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace acltape::torch_plugin {

// True when the adapter's kernel for this call launches device operators above the leaf key. They
// would belong to no leaf, so the call is recorded as one where composites pass.
bool IsComputedAboveLeaves(const c10::OperatorHandle& op, c10::DispatchKeySet keys);

}  // namespace acltape::torch_plugin
