// Kernels that record an operator without boxing its arguments. `Op` is one of the structures that
// libtorch generates for each operator (at::_ops::add_Tensor): schema, names and redispatch. `Hot`
// is its index in hot_ops.txt. What is the same for all operators is kept out of these templates;
// they are inlined into the wrappers that libtorch makes of them, so that a call is one function.
#pragma once

#include <torch/library.h>

#include <type_traits>
#include <utility>

#include "recorder/torch/arguments.h"
#include "recorder/torch/frames.h"
#include "recorder/torch/hot_ops.h"
#include "recorder/torch/leaf.h"

namespace acltape::torch_plugin {

template <typename Op, size_t Hot, typename Schema = typename Op::schema>
struct HotLeaf;

template <typename Op, size_t Hot, typename R, typename... A>
struct HotLeaf<Op, Hot, R(A...)> {
  static_assert(Hot < kMaxHotOps);

  __attribute__((always_inline)) static inline R Call(c10::DispatchKeySet keys, A... arguments) {
    const c10::DispatchKeySet below = BelowKey(keys, kLeafKey);
    ThreadState* state = EnterLeaf(Hot);
    if (__builtin_expect(state == nullptr, 0)) {
      return Op::redispatch(below, std::forward<A>(arguments)...);
    }
    LeafScope leaf(*state);
    ((Encode(*state, arguments), ++state->position), ...);
    leaf.Begin();
    if constexpr (std::is_void_v<R>) {
      Op::redispatch(below, std::forward<A>(arguments)...);
      leaf.Returned();
      leaf.End();
    } else {
      R result = Op::redispatch(below, std::forward<A>(arguments)...);
      leaf.Returned();
      EncodeReturn<R>(*state, result);
      leaf.End();
      return result;
    }
  }

  static void Register(torch::Library& library, const char* name) {
    if (!FindHotOp(Hot, Op::name, Op::overload_name)) return;
    // A composite is never a leaf, whatever the table says; its leaves come by in turn.
    if (DescribeOp(*HotHandle(Hot))->composite) return;
    library.impl(name, TORCH_FN(Call));
  }
};

template <typename Op, size_t Hot, typename Schema = typename Op::schema>
struct HotComposite;

template <typename Op, size_t Hot, typename R, typename... A>
struct HotComposite<Op, Hot, R(A...)> {
  static_assert(Hot < kMaxHotOps);

  __attribute__((always_inline)) static inline R Call(c10::DispatchKeySet keys, A... arguments) {
    CompositeScope scope(nullptr, Hot);
    return Op::redispatch(BelowKey(keys, kCompositeKey), std::forward<A>(arguments)...);
  }

  static void Register(torch::Library& library, const char* name) {
    if (FindHotOp(Hot, Op::name, Op::overload_name)) library.impl(name, TORCH_FN(Call));
  }
};

}  // namespace acltape::torch_plugin
