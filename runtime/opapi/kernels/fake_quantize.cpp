// Quantisation and the way back in one, as training that prepares for quantised inference has it:
// the numbers stay real, in steps of a scale, and a mask says which ones lay in range. The rules
// are those of the vendor's pages aclnnFakeQuantPerTensorAffineCachemask and
// aclnnFakeQuantPerChannelAffineCachemask.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct FakeSteps {
  Operand self, scale;
  Tensor zeros;
  double least, most;
  Tensor out, mask;

  // `scale` and `zeros` meet the numbers by broadcasting.
  void Write(const Tensor& step, const Tensor& zero) const {
    const Tensor whole = (self() / step).round() + zero;
    mask.copy_(whole.ge(least).logical_and(whole.le(most)));
    out.copy_((whole.clamp(least, most) - zero) * step);
  }
};

// (self, scale, zeroPoint, ., quantMin, quantMax, out, mask), with `count` scales and zero points.
FakeSteps ReadFakeSteps(const Call& call, int64_t count) {
  const FakeSteps steps{call.In(0),          call.In(1),  call.View(2), double(call.Int(4)),
                        double(call.Int(5)), call.Out(6), call.Out(7)};
  for (int i : {0, 1}) ExpectDtypes(call, i, call.View(i), {at::kFloat, at::kHalf});
  ExpectDtypes(call, 2, steps.zeros, {at::kInt});
  for (int i : {1, 2}) call.ExpectSizes(i, call.View(i), {count});
  if (call.Int(4) > call.Int(5)) call.RejectArg(4, "is greater than quantMax");
  for (int i : {6, 7}) call.ExpectSizes(i, call.View(i), steps.self.sizes());
  ExpectDtypes(call, 6, steps.out, {at::kFloat, at::kHalf});
  ExpectDtypes(call, 7, steps.mask, {at::kBool});
  return steps;
}

// (self, scale, zeroPoint, fakeQuantEnabled, quantMin, quantMax, out, mask): below 1 the switch
// leaves the numbers as they are.
std::unique_ptr<Kernel> BindFakeQuantPerTensor(const Call& call) {
  const FakeSteps steps = ReadFakeSteps(call, 1);
  const bool enabled = call.Real(3) >= 1;
  return MakeKernel([=] {
    if (enabled) {
      steps.Write(steps.scale().reshape({}), steps.zeros.reshape({}).to(at::kFloat));
      return;
    }
    steps.out.copy_(steps.self());
    Tensor(steps.mask).fill_(true);
  });
}

// (self, scale, zeroPoint, axis, quantMin, quantMax, out, mask)
std::unique_ptr<Kernel> BindFakeQuantPerChannel(const Call& call) {
  const at::IntArrayRef sizes = call.View(0).sizes();
  if (sizes.empty()) call.RejectArg(0, "has no dims");
  const int64_t axis = call.Dim(3, static_cast<int64_t>(sizes.size()));
  std::vector<int64_t> spread(sizes.size(), 1);
  spread[axis] = sizes[axis];
  const FakeSteps steps = ReadFakeSteps(call, sizes[axis]);
  return MakeKernel([=] {
    steps.Write(steps.scale().reshape(spread), steps.zeros.reshape(spread).to(at::kFloat));
  });
}

}  // namespace

KernelRows FakeQuantizeRows() {
  return {
      {"aclnnFakeQuantPerTensorAffineCachemask", BindFakeQuantPerTensor, Widen::kHalf},
      {"aclnnFakeQuantPerChannelAffineCachemask", BindFakeQuantPerChannel, Widen::kHalf},
  };
}

}  // namespace acltape::opapi
