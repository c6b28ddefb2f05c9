// Kernels that record an operator without boxing its arguments. `Op` is one of the structures that
// libtorch generates for each operator (at::_ops::add_Tensor): schema, names and redispatch.
#pragma once

#include <torch/library.h>

#include <type_traits>
#include <utility>

#include "recorder/torch/arguments.h"
#include "recorder/torch/frames.h"
#include "recorder/torch/hot_ops.h"
#include "recorder/torch/leaf.h"

namespace acltape::torch_plugin {

// A number of its own for each operator that asks, from 0 up.
inline size_t NextHotIndex() {
  static size_t next = 0;
  return next++;
}

// The operator's handle; set when a kernel for it is registered, never freed.
template <typename Op>
struct HotHandle {
  inline static const c10::OperatorHandle* handle = nullptr;
  inline static size_t index = 0;  // in ThreadState::hot_rows

  static bool Find() {
    const auto found = c10::Dispatcher::singleton().findSchema({Op::name, Op::overload_name});
    if (found && handle == nullptr) {
      handle = new c10::OperatorHandle(*found);
      index = NextHotIndex();
    }
    return handle != nullptr;
  }
};

template <typename Op, typename Schema = typename Op::schema>
struct HotLeaf;

template <typename Op, typename R, typename... A>
struct HotLeaf<Op, R(A...)> {
  static R Call(c10::DispatchKeySet keys, A... arguments) {
    const c10::DispatchKeySet below = BelowKey(keys, kLeafKey);
    ThreadState* state = CurrentThread();
    if (__builtin_expect(state == nullptr || state->in_leaf, 0)) {
      return Op::redispatch(below, std::forward<A>(arguments)...);
    }
    LeafScope leaf(*state, state->HotRow(*HotHandle<Op>::handle, HotHandle<Op>::index));
    state->position = 0;
    ((Encode(*state, arguments), ++state->position), ...);
    leaf.Begin();
    if constexpr (std::is_void_v<R>) {
      Op::redispatch(below, std::forward<A>(arguments)...);
      leaf.Returned();
      leaf.End();
    } else {
      R result = Op::redispatch(below, std::forward<A>(arguments)...);
      leaf.Returned();
      EncodeReturn(*state, leaf.info(), result);
      leaf.End();
      return result;
    }
  }

  static void Register(torch::Library& library, const char* name) {
    if (!HotHandle<Op>::Find()) return;
    // A composite is never a leaf, whatever the table says; its leaves come by in turn.
    if (DescribeOp(*HotHandle<Op>::handle)->composite) return;
    library.impl(name, TORCH_FN(Call));
  }
};

template <typename Op, typename Schema = typename Op::schema>
struct HotComposite;

template <typename Op, typename R, typename... A>
struct HotComposite<Op, R(A...)> {
  static R Call(c10::DispatchKeySet keys, A... arguments) {
    const c10::DispatchKeySet below = BelowKey(keys, kCompositeKey);
    ThreadState* state = CurrentThread();
    if (state == nullptr || state->in_leaf) {
      return Op::redispatch(below, std::forward<A>(arguments)...);
    }
    CompositeScope scope(*state, *HotHandle<Op>::handle);
    return Op::redispatch(below, std::forward<A>(arguments)...);
  }

  static void Register(torch::Library& library, const char* name) {
    if (HotHandle<Op>::Find()) library.impl(name, TORCH_FN(Call));
  }
};

}  // namespace acltape::torch_plugin
