// The two dispatch keys that the plug-in takes. Both are "out-of-core" keys: libtorch defines them
// for extensions (torchdistx) and puts no kernel of its own there. A libtorch that does is refused
// (plugin.cpp).
#pragma once

#include <c10/core/DispatchKey.h>
#include <c10/core/DispatchKeySet.h>

#include <type_traits>

namespace acltape::torch_plugin {

// Below autograd, above the backends: every leaf passes (leaf.cpp).
constexpr c10::DispatchKey kLeafKey = c10::DispatchKey::Fake;

// The key above autograd. DeferredInit may be removed from libtorch, which is short of keys; the
// one for tests lies above autograd too.
template <typename Key, typename = void>
struct KeyAboveAutograd {
  static constexpr Key kKey = Key::TESTING_ONLY_GenericMode;
};
template <typename Key>
struct KeyAboveAutograd<Key, std::void_t<decltype(Key::DeferredInit)>> {
  static constexpr Key kKey = Key::DeferredInit;
};

// Above autograd: composite operators pass; all others fall through at no cost (frames.cpp).
constexpr c10::DispatchKey kCompositeKey = KeyAboveAutograd<c10::DispatchKey>::kKey;

constexpr c10::DispatchKeySet kOurKeys({kLeafKey, kCompositeKey});

}  // namespace acltape::torch_plugin
