// The two dispatch keys that the plug-in takes. Both are "out-of-core" keys: libtorch defines them
// for extensions (torchdistx) and puts no kernel of its own there.
#pragma once

#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>

namespace acltape::torch_plugin {

// Below autograd, above the backends: every leaf passes (leaf.cpp).
constexpr c10::DispatchKey kLeafKey = c10::DispatchKey::Fake;
// Above autograd: composite operators pass; all others fall through at no cost (frames.cpp).
constexpr c10::DispatchKey kCompositeKey = c10::DispatchKey::DeferredInit;

constexpr c10::DispatchKeySet kOurKeys({kLeafKey, kCompositeKey});

}  // namespace acltape::torch_plugin
