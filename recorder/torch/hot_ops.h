// The operators of hot_ops.txt, which are recorded from their C++ arguments (hot_kernels.h). All
// others come boxed, which costs a few tenths of a microsecond more for each call.
#pragma once

#include <string>
#include <unordered_map>

namespace c10 {
class OperatorHandle;
}
namespace torch {
class Library;
}

namespace acltape::torch_plugin {

class Registrations;

// Makes `library` call the typed kernel for the operator of this name ("add.Tensor").
using RegisterKernel = void (*)(torch::Library& library, const char* name);

struct HotOps {
  std::unordered_map<std::string, RegisterKernel> leaves;
  std::unordered_map<std::string, RegisterKernel> composites;
};

// All of them, by name with overload and without namespace; all are in "aten". Generated.
HotOps ListHotOps();
// The operators that are recorded unboxed: all of the list, or none when the variable ACLTAPE_BOXED
// is set. Setting it shows whether an oddity in a trace comes from these kernels.
const HotOps& ChosenHotOps();

// The handle of the hot operator of this index. It is found when a kernel for it is registered and
// lives for ever; nullptr when this libtorch does not have the operator.
const c10::OperatorHandle* HotHandle(size_t hot);
bool FindHotOp(size_t hot, const char* name, const char* overload);

// Register a kernel of hot_kernels.h: a function R(void*, DispatchKeySet, arguments...), which is
// `symbolic` when sizes among its arguments are. Boxed calls of the operator take the general way.
void RegisterTypedLeaf(torch::Library& library, const char* name, size_t hot, void* kernel,
                       bool symbolic);
void RegisterTypedComposite(torch::Library& library, const char* name, void* kernel, bool symbolic);

// Registers the leaves. Composites are registered by RegisterFrames.
void RegisterHotLeaves(Registrations& registrations);

}  // namespace acltape::torch_plugin
