// Operators that make one tensor of the members of a list, element by element.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Says whether the members of the list may have several shapes.
enum class ListShapes : uint8_t { kOne, kBroadcast };

// (tensors, out): fn(a, b) of the first two members, then of the result and each further member.
template <typename Fn>
Binder FoldOf(Fn fn, ListShapes shapes, std::initializer_list<at::ScalarType> dtypes) {
  return [=, dtypes = std::vector<at::ScalarType>(dtypes)](const Call& call) {
    const std::vector<Operand> tensors = call.Ins(0);
    if (tensors.empty()) call.RejectArg(0, "is empty");
    const at::ScalarType dtype = tensors[0].view().scalar_type();
    if (std::count(dtypes.begin(), dtypes.end(), dtype) == 0) {
      call.RejectArg(0, std::string("holds tensors of dtype ") + at::toString(dtype) +
                            ", which the operator lacks");
    }
    std::vector<int64_t> sizes = tensors[0].sizes().vec();
    for (const Operand& tensor : tensors) {
      if (tensor.view().scalar_type() != dtype) {
        call.RejectArg(0, "holds tensors of different dtypes");
      }
      if (shapes == ListShapes::kBroadcast) {
        sizes = call.Broadcast({sizes, tensor.sizes()});
      } else if (tensor.sizes() != tensors[0].sizes()) {
        call.RejectArg(0, "holds tensors of different shapes");
      }
    }
    const Tensor out = call.Out(1);
    if (out.scalar_type() != dtype) call.RejectArg(1, "has another dtype than the tensors");
    return BindWhole(call, 1, sizes, [=] {
      Tensor result = tensors[0]().clone();
      for (size_t i = 1; i < tensors.size(); ++i) result = fn(result, tensors[i]());
      return result;
    });
  };
}

Tensor SumOfTwo(const Tensor& a, const Tensor& b) { return at::add(a, b); }

}  // namespace

KernelRows TensorListRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  constexpr ListShapes kOne = ListShapes::kOne, kBroadcast = ListShapes::kBroadcast;
  const auto extreme_of = [](auto fn) {
    return FoldOf(fn, kBroadcast,
                  {at::kFloat, at::kHalf, at::kBFloat16, at::kChar, at::kInt, at::kLong});
  };
  return {
      {"aclnnAddN",
       FoldOf(SumOfTwo, kOne, {at::kFloat, at::kHalf, at::kBFloat16, at::kInt, at::kLong}), kBoth},
      {"aclnnSum",
       FoldOf(SumOfTwo, kBroadcast, {at::kFloat, at::kHalf, at::kChar, at::kInt, at::kByte}),
       kBoth},
      {"aclnnMaxN", extreme_of([](const Tensor& a, const Tensor& b) { return at::maximum(a, b); })},
      {"aclnnMinN", extreme_of([](const Tensor& a, const Tensor& b) { return at::minimum(a, b); })},
  };
}

}  // namespace acltape::opapi
