// The adapter's autograd kernels mostly dispatch again, to a kernel of the device that passes the
// leaf key (matmul, softmax). Some compute the result where they are. No property of the dispatcher
// tells the two apart, so this is a list, found with torch_npu 2.13: the test npu.DeviceCalls fails
// when a device operator of the tried programs belongs to no leaf.
#include "recorder/torch/adapter_composites.h"

#include <string_view>

namespace acltape::torch_plugin {

namespace {

constexpr std::string_view kComputed[][2] = {
    {"aten::affine_grid_generator_backward", ""},
    {"aten::fill_diagonal_", ""},
    {"aten::max", "out"},
    {"aten::min", "out"},
    {"aten::nanmean", "out"},
    {"aten::one_hot", ""},
    {"aten::slogdet", ""},
};

}  // namespace

bool IsComputedAboveLeaves(const c10::OperatorHandle& op, c10::DispatchKeySet keys) {
  if (!keys.has(c10::DispatchKey::PrivateUse1) ||
      !op.hasKernelForDispatchKey(c10::DispatchKey::AutogradPrivateUse1)) {
    return false;
  }
  const c10::OperatorName& name = op.operator_name();
  for (const auto& [base, overload] : kComputed) {
    if (name.name == base && name.overload_name == overload) return true;
  }
  return false;
}

}  // namespace acltape::torch_plugin
