// The operators of hot_ops.txt, which are recorded from their C++ arguments (hot_kernels.h). All
// others come boxed, which costs a few tenths of a microsecond more for each call.
#pragma once

#include <torch/library.h>

#include <string>
#include <unordered_map>

namespace acltape::torch_plugin {

// Makes `library` call the typed kernel for the operator of this name ("add.Tensor").
using RegisterKernel = void (*)(torch::Library& library, const char* name);

struct HotOps {
  std::unordered_map<std::string, RegisterKernel> leaves;
  std::unordered_map<std::string, RegisterKernel> composites;
};

// All of them, by name with overload and without namespace; all are in "aten". Generated.
HotOps ListHotOps();
// Those that are recorded so: all, or none when the variable ACLTAPE_BOXED is set, which tells
// whether an oddity in a trace is theirs.
const HotOps& ChosenHotOps();

// The handle of the hot operator of this index. It is found when a kernel for it is registered and
// lives for ever; nullptr when this libtorch does not have the operator.
const c10::OperatorHandle* HotHandle(size_t hot);
bool FindHotOp(size_t hot, const char* name, const char* overload);

// Registers the leaves. Composites are registered by RegisterFrames.
void RegisterHotLeaves();

}  // namespace acltape::torch_plugin
