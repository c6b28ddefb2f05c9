// Kernels that record an operator without boxing its arguments. `Op` is one of the structures that
// libtorch generates for each operator (at::_ops::add_Tensor): schema, names and redispatch. `Hot`
// is its index in hot_ops.txt. What is the same for all operators is kept out of these templates,
// and so are libtorch's own for kernels: they would make a boxed kernel for each operator, which is
// most of the time to compile, where the one for all operators does.
#pragma once

#include <type_traits>
#include <utility>

#include "recorder/torch/arguments.h"
#include "recorder/torch/dispatch_keys.h"
#include "recorder/torch/frames.h"
#include "recorder/torch/hot_ops.h"
#include "recorder/torch/leaf.h"

namespace acltape::torch_plugin {

// The dispatcher keeps kernels with symbolic sizes apart from others. These are the types by which
// it tells them.
template <typename T>
constexpr bool kIsSymbolic =
    std::is_same_v<T, c10::SymInt> || std::is_same_v<T, c10::SymIntArrayRef> ||
    std::is_same_v<T, c10::OptionalArrayRef<c10::SymInt>> ||
    std::is_same_v<T, c10::optional<c10::SymInt>>;

template <typename Op, size_t Hot, typename Schema = typename Op::schema>
struct HotLeaf;

template <typename Op, size_t Hot, typename R, typename... A>
struct HotLeaf<Op, Hot, R(A...)> {
  static_assert(Hot < kMaxHotOps);

  // The dispatcher calls this. Its first argument is the kernel's object, and there is none.
  static R Call(void*, c10::DispatchKeySet keys, A... arguments) {
    const c10::DispatchKeySet below = BelowKey(keys, kLeafKey);
    ThreadState* state = EnterLeaf(Hot);
    if (__builtin_expect(state == nullptr, 0)) {
      return Op::redispatch(below, std::forward<A>(arguments)...);
    }
    LeafScope leaf(*state);
    leaf.Encode([&] { ((Encode(*state, arguments), ++state->position), ...); });
    leaf.Begin();
    if constexpr (std::is_void_v<R>) {
      Op::redispatch(below, std::forward<A>(arguments)...);
      leaf.Returned();
      leaf.End();
    } else {
      R result = Op::redispatch(below, std::forward<A>(arguments)...);
      leaf.Returned();
      leaf.Encode([&] { EncodeReturn<R>(*state, result); });
      leaf.End();
      return result;
    }
  }

  static void Register(torch::Library& library, const char* name) {
    if (!FindHotOp(Hot, Op::name, Op::overload_name)) return;
    RegisterTypedLeaf(library, name, Hot, reinterpret_cast<void*>(&Call),
                      (kIsSymbolic<std::decay_t<A>> || ...));
  }
};

template <typename Op, size_t Hot, typename Schema = typename Op::schema>
struct HotComposite;

template <typename Op, size_t Hot, typename R, typename... A>
struct HotComposite<Op, Hot, R(A...)> {
  static_assert(Hot < kMaxHotOps);

  static R Call(void*, c10::DispatchKeySet keys, A... arguments) {
    CompositeScope scope(nullptr, Hot);
    return Op::redispatch(BelowKey(keys, kCompositeKey), std::forward<A>(arguments)...);
  }

  static void Register(torch::Library& library, const char* name) {
    if (!FindHotOp(Hot, Op::name, Op::overload_name)) return;
    RegisterTypedComposite(library, name, reinterpret_cast<void*>(&Call),
                           (kIsSymbolic<std::decay_t<A>> || ...));
  }
};

}  // namespace acltape::torch_plugin
