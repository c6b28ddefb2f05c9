// Features of [batch, length, width] that each batch scales and shifts, as diffusion transformers
// do: x * (1 + scale) + shift. The vendor's pages are aclnnModulate and aclnnModulateBackward.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Reads the features at position `i`.
Operand ReadFeatures(const Call& call, int i) {
  Operand features = call.In(i);
  ExpectDtypes(call, i, features.view(), {at::kFloat, at::kHalf, at::kBFloat16});
  call.ExpectRank(i, features.view(), 3);
  return features;
}

// Reads what a batch has for each feature, of the features' dtype and [batch, width], or
// [batch, 1, width] where `may_have_length`; not defined() when absent.
Operand ReadOfBatch(const Call& call, int i, const Operand& features, bool may_have_length) {
  const Operand given = call.OptionalIn(i);
  if (!given.defined()) return given;
  ExpectDtypes(call, i, given.view(), {features.view().scalar_type()});
  const int64_t batch = features.sizes()[0], width = features.sizes()[2];
  const bool has_length = may_have_length && given.dim() == 3;
  call.ExpectSizes(
      i, given.view(),
      has_length ? std::vector<int64_t>{batch, 1, width} : std::vector<int64_t>{batch, width});
  return given;
}

// [batch, 1, width]
Tensor AlongLength(const Tensor& of_batch) {
  return of_batch.dim() == 3 ? of_batch : of_batch.unsqueeze(1);
}

// (self, scale?, shift?, out)
std::unique_ptr<Kernel> BindModulate(const Call& call) {
  const Operand self = ReadFeatures(call, 0);
  const Operand scale = ReadOfBatch(call, 1, self, true), shift = ReadOfBatch(call, 2, self, true);
  return BindWhole(call, 3, self.sizes(), [=] {
    Tensor result = self();
    if (scale.defined()) result = result * (AlongLength(scale()) + 1);
    if (shift.defined()) result = result + AlongLength(shift());
    return result;
  });
}

// (gradOutput, input, scale?, shift?, gradInput, gradScale?, gradShift?): a scale or a shift that
// the forward call had not has no gradient.
std::unique_ptr<Kernel> BindModulateBackward(const Call& call) {
  const Operand gradient = ReadFeatures(call, 0), input = ReadFeatures(call, 1);
  call.ExpectSizes(1, input.view(), gradient.sizes());
  ExpectDtypes(call, 1, input.view(), {gradient.view().scalar_type()});
  const Operand scale = ReadOfBatch(call, 2, input, false);
  const Operand shift = ReadOfBatch(call, 3, input, false);
  const Tensor out = call.Out(4);
  call.ExpectSizes(4, out, input.sizes());
  const auto out_of = [&](int i, const Operand& forward) {
    if (!forward.defined()) return Tensor();
    Tensor result = call.Out(i);
    call.ExpectSizes(i, result, forward.sizes());
    return result;
  };
  const Tensor of_scale = out_of(5, scale), of_shift = out_of(6, shift);
  return MakeKernel([=] {
    const Tensor given = gradient();
    if (of_scale.defined()) of_scale.copy_((given * input()).sum(1));
    if (of_shift.defined()) of_shift.copy_(given.sum(1));
    out.copy_(scale.defined() ? given * (AlongLength(scale()) + 1) : given);
  });
}

}  // namespace

KernelRows ModulateRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnModulate", BindModulate, kBoth},
      {"aclnnModulateBackward", BindModulateBackward, kBoth, {5, 6}},
  };
}

}  // namespace acltape::opapi
