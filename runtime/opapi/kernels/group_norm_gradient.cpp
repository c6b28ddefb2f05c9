// The gradient of a group norm with a swish after it. The vendor's pages are aclnnGroupNormSwish
// and aclnnGroupNormSwishGrad.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The derivative of y sigmoid(scale y).
Tensor SwishSlope(const Tensor& y, double scale) {
  const Tensor part = at::sigmoid(y * scale);
  return part + y * part * (1 - part) * scale;
}

// (dy, mean, rstd, x, gamma, beta, numGroups, dataFormat, swishScale, dgammaIsRequire,
// dbetaIsRequire, dx, dgamma, dbeta)
std::unique_ptr<Kernel> BindGroupNormSwishGrad(const Call& call) {
  const Operand dy = call.In(0), mean = call.In(1), rstd = call.In(2), x = call.In(3);
  const Operand gamma = call.In(4), beta = call.In(5);
  ExpectDtypes(call, 0, dy.view(), {at::kFloat, at::kHalf, at::kBFloat16});
  for (int i : {1, 2, 3, 4, 5, 11}) ExpectDtypes(call, i, call.View(i), {dy.view().scalar_type()});
  if (dy.dim() < 2) call.RejectArg(0, "has less than 2 dims");
  const int64_t batch = dy.sizes()[0], channels = dy.sizes()[1], groups = call.Int(6);
  if (groups < 1 || channels % groups != 0) {
    call.RejectArg(6, "does not divide the " + std::to_string(channels) + " channels");
  }
  const std::string format = call.Text(7);
  if (!format.empty() && format != "NCHW") call.RejectArg(7, "must be \"NCHW\"");
  const double scale = call.Real(8);
  for (int i : {1, 2}) call.ExpectSizes(i, call.View(i), {batch, groups});
  call.ExpectSizes(3, x.view(), dy.sizes());
  for (int i : {4, 5}) call.ExpectSizes(i, call.View(i), {channels});
  const Tensor dx = call.Out(11);
  call.ExpectSizes(11, dx, dy.sizes());
  Tensor of_gamma, of_beta;
  for (int i : {12, 13}) {
    if (!call.Bool(i - 3)) continue;
    Tensor& gradient = i == 12 ? of_gamma : of_beta;
    gradient = call.Out(i);
    call.ExpectSizes(i, gradient, {channels});
    ExpectDtypes(call, i, gradient, {dy.view().scalar_type()});
  }
  int64_t area = 1;
  for (int64_t size : dy.sizes().slice(2)) area *= size;
  const int64_t each = channels / groups;
  return MakeKernel([=] {
    const std::vector<int64_t> grouped = {batch, groups, each, area},
                               of_channels = {groups, each, 1};
    const Tensor center = mean().reshape({batch, groups, 1, 1});
    const Tensor steepness = rstd().reshape({batch, groups, 1, 1});
    const Tensor factor = gamma().reshape(of_channels), offset = beta().reshape(of_channels);
    const Tensor z = (x().reshape(grouped) - center) * steepness;
    const Tensor slope = dy().reshape(grouped) * SwishSlope(z * factor + offset, scale);
    const std::vector<int64_t> others = {0, 3}, group = {2, 3};
    if (of_gamma.defined()) of_gamma.copy_((slope * z).sum(others).view({channels}));
    if (of_beta.defined()) of_beta.copy_(slope.sum(others).view({channels}));
    const Tensor inner = slope * factor;
    const Tensor along = z * (inner * z).mean(group, true);
    dx.copy_(((inner - inner.mean(group, true) - along) * steepness).view(dy.sizes()));
  });
}

}  // namespace

KernelRows GroupNormGradientRows() {
  return {{"aclnnGroupNormSwishGrad", BindGroupNormSwishGrad, Widen::kHalfAndBfloat16, {12, 13}}};
}

}  // namespace acltape::opapi
