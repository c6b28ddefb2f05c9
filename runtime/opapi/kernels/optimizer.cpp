// Fused optimizer steps and loss scaling.
#include <ATen/ATen.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

void ExpectOne(const Call& call, int i, const Tensor& tensor) {
  if (tensor.numel() != 1) call.RejectArg(i, "must have one element");
}

// (varRef, mRef, vRef, maxGradNorm?, grad, step, lr, beta1, beta2, weightDecay, eps, amsgrad,
// maximize). The step tensor counts the steps done before this one; decay is decoupled.
std::unique_ptr<Kernel> BindAdamW(const Call& call) {
  const Tensor var = call.Out(0), m = call.Out(1), v = call.Out(2), max_v = call.OptionalOut(3);
  const Operand gradient = call.In(4);
  const Tensor step = call.View(5);
  ExpectOne(call, 5, step);
  for (int i : {1, 2, 4}) call.ExpectSizes(i, call.View(i), var.sizes());
  const double lr = call.Real(6), beta1 = call.Real(7), beta2 = call.Real(8);
  const double decay = call.Real(9), eps = call.Real(10);
  const bool amsgrad = call.Bool(11), maximize = call.Bool(12);
  if (amsgrad && !max_v.defined()) call.RejectCall("amsgrad needs maxGradNorm");
  return MakeKernel([=] {
    const at::ScalarType wide = var.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const double t = step.item().toDouble() + 1;
    Tensor g = gradient().to(wide);
    if (maximize) g = g.neg();
    const Tensor mean = m.to(wide) * beta1 + g * (1 - beta1);
    const Tensor square = v.to(wide) * beta2 + g * g * (1 - beta2);
    m.copy_(mean);
    v.copy_(square);
    Tensor second = square;
    if (amsgrad) {
      second = at::maximum(max_v.to(wide), square);
      max_v.copy_(second);
    }
    const double correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
    const Tensor denominator = second.sqrt() / std::sqrt(correction2) + eps;
    var.copy_(var.to(wide) * (1 - lr * decay) - (mean / denominator) * (lr / correction1));
  });
}

// (params, grads, momentumBuffers?, gradScale?, weightDecay, momentum, lr, dampening, nesterov,
// maximize, isFirstStep)
std::unique_ptr<Kernel> BindSgd(const Call& call) {
  const std::vector<Tensor> params = call.Outs(0), grads = call.Views(1), buffers = call.Outs(2);
  const Tensor scale = call.IsNull(3) ? Tensor() : call.View(3);
  if (scale.defined()) ExpectOne(call, 3, scale);
  const double decay = call.Real(4), momentum = call.Real(5), lr = call.Real(6);
  const double dampening = call.Real(7);
  const bool nesterov = call.Bool(8), maximize = call.Bool(9), first = call.Bool(10);
  if (grads.size() != params.size()) call.RejectArg(1, "differs in length from params");
  if (momentum != 0 && buffers.size() != params.size()) {
    call.RejectArg(2, "differs in length from params");
  }
  for (size_t k = 0; k < params.size(); ++k) call.ExpectSizes(1, grads[k], params[k].sizes());
  return MakeKernel([=] {
    for (size_t k = 0; k < params.size(); ++k) {
      Tensor g = grads[k];
      if (scale.defined()) {
        g = g / scale.reshape({});
        grads[k].copy_(g);
      }
      if (maximize) g = g.neg();
      if (decay != 0) g = g.add(params[k], decay);
      if (momentum != 0) {
        buffers[k].copy_(first ? g : buffers[k].mul(momentum).add(g, 1 - dampening));
        g = nesterov ? g.add(buffers[k], momentum) : buffers[k];
      }
      params[k].copy_(params[k].add(g, -lr));
    }
  });
}

// (scaledGrads, foundInf, invScale): foundInf is set, never cleared; gradients are scaled in any
// case.
std::unique_ptr<Kernel> BindUnscale(const Call& call) {
  const std::vector<Tensor> grads = call.Outs(0);
  const Tensor found = call.Out(1), inverse = call.View(2);
  ExpectOne(call, 1, found);
  ExpectOne(call, 2, inverse);
  return MakeKernel([=] {
    for (const Tensor& grad : grads) {
      if (!at::isfinite(grad).all().item<bool>()) found.fill_(1);
      grad.copy_(grad.to(at::kFloat) * inverse.reshape({}));
    }
  });
}

// (scale, growthTracker, foundInf, growthFactor, backoffFactor, growthInterval, newScale,
// newTracker)
std::unique_ptr<Kernel> BindUpdateScale(const Call& call) {
  const Tensor scale = call.View(0), tracker = call.View(1), found = call.View(2);
  const double growth = call.Real(3), backoff = call.Real(4);
  const int64_t interval = call.Int(5);
  const Tensor new_scale = call.Out(6), new_tracker = call.Out(7);
  for (int i : {0, 1, 2, 6, 7}) ExpectOne(call, i, call.View(i));
  return MakeKernel([=] {
    const auto old_scale = scale.item().to<float>();
    const bool overflow = found.item().toDouble() != 0;
    const int64_t successes = overflow ? 0 : tracker.item().toLong() + 1;
    float next = old_scale;
    if (overflow) {
      next = static_cast<float>(old_scale * backoff);
    } else if (successes == interval) {
      const auto grown = static_cast<float>(old_scale * growth);
      if (std::isfinite(grown)) next = grown;
    }
    new_scale.fill_(next);
    new_tracker.fill_(successes == interval ? 0 : successes);
  });
}

}  // namespace

KernelRows OptimizerRows() {
  return {
      {"aclnnApplyAdamWV2", BindAdamW},
      {"aclnnFusedSgd", BindSgd},
      {"aclnnForeachNonFiniteCheckAndUnscale", BindUnscale},
      {"aclnnAmpUpdateScale", BindUpdateScale},
  };
}

}  // namespace acltape::opapi
