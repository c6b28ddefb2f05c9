#include "recorder/torch/hot_ops.h"

#include <cstdlib>

#include "recorder/torch/boxed_kernels.h"
#include "recorder/torch/dispatch_keys.h"
#include "recorder/torch/registrations.h"
#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

namespace {

const c10::OperatorHandle* g_handles[kMaxHotOps];

// libtorch makes a kernel from one function, boxed or not. These members are private; an explicit
// instantiation may name them all the same.
c10::KernelFunction& KernelOf(torch::CppFunction& function);
template <auto member>
struct KernelMember {
  friend c10::KernelFunction& KernelOf(torch::CppFunction& function) { return function.*member; }
};
template struct KernelMember<&torch::CppFunction::func_>;

void*& PlainOf(c10::KernelFunction& kernel);
template <auto member>
struct PlainMember {
  friend void*& PlainOf(c10::KernelFunction& kernel) { return kernel.*member; }
};
template struct PlainMember<&c10::KernelFunction::unboxed_kernel_func_>;

void*& SymbolicOf(c10::KernelFunction& kernel);
template <auto member>
struct SymbolicMember {
  friend void*& SymbolicOf(c10::KernelFunction& kernel) { return kernel.*member; }
};
template struct SymbolicMember<&c10::KernelFunction::sym_unboxed_kernel_func_>;

torch::CppFunction WithTyped(torch::CppFunction boxed, void* kernel, bool symbolic) {
  c10::KernelFunction& both = KernelOf(boxed);
  (symbolic ? SymbolicOf(both) : PlainOf(both)) = kernel;
  return boxed;
}

}  // namespace

const HotOps& ChosenHotOps() {
  static const auto* chosen = new HotOps(std::getenv("ACLTAPE_BOXED") ? HotOps{} : ListHotOps());
  return *chosen;
}

const c10::OperatorHandle* HotHandle(size_t hot) { return g_handles[hot]; }

bool FindHotOp(size_t hot, const char* name, const char* overload) {
  if (g_handles[hot] != nullptr) return true;
  const auto found = c10::Dispatcher::singleton().findSchema({name, overload});
  if (found) g_handles[hot] = new c10::OperatorHandle(*found);
  return found.has_value();
}

void RegisterTypedLeaf(torch::Library& library, const char* name, size_t hot, void* kernel,
                       bool symbolic) {
  // A composite is never a leaf, whatever the table says; its leaves come by in turn.
  if (DescribeOp(*HotHandle(hot))->composite) return;
  library.impl(name, WithTyped(torch::CppFunction::makeFromBoxedFunction<&LeafFallback>(), kernel,
                               symbolic));
}

void RegisterTypedComposite(torch::Library& library, const char* name, void* kernel,
                            bool symbolic) {
  library.impl(name, WithTyped(torch::CppFunction::makeFromBoxedFunction<&CompositeKernel>(),
                               kernel, symbolic));
}

void RegisterHotLeaves(Registrations& registrations) {
  torch::Library& library = registrations.Add("aten", kLeafKey);
  for (const auto& [name, add] : ChosenHotOps().leaves) add(library, name.c_str());
}

}  // namespace acltape::torch_plugin
