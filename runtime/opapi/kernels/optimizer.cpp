// Fused optimizer steps and loss scaling.
#include <ATen/ATen.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/expect_dtypes.h"

// The version that got this operator has all fused steps for the CPU.
#if __has_include(<ATen/ops/_fused_adagrad.h>)
#define ACLTAPE_LIBRARY_STEPS 1
#endif

namespace acltape::opapi {
namespace {

using at::Tensor;

void ExpectOne(const Call& call, int i, const Tensor& tensor) {
  if (tensor.numel() != 1) call.RejectArg(i, "must have one element");
}

// The numbers of one step of Adam with decoupled decay.
struct AdamWNumbers {
  double lr, beta1, beta2, decay, eps;
  bool amsgrad, maximize;
};

// One parameter with its state and its gradient. `max_v` counts with amsgrad only.
struct AdamWTensors {
  Tensor var, m, v, max_v, gradient;
};

// Step number `t`, the first one is 1. Computed in float32 at least and rounded once.
void StepAdamW(const AdamWTensors& tensors, const AdamWNumbers& numbers, double t) {
  const auto& [var, m, v, max_v, gradient] = tensors;
  const at::ScalarType wide = var.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  Tensor g = gradient.to(wide);
  if (numbers.maximize) g = g.neg();
  const Tensor mean = m.to(wide) * numbers.beta1 + g * (1 - numbers.beta1);
  const Tensor square = v.to(wide) * numbers.beta2 + g * g * (1 - numbers.beta2);
  m.copy_(mean);
  v.copy_(square);
  Tensor second = square;
  if (numbers.amsgrad) {
    second = at::maximum(max_v.to(wide), square);
    max_v.copy_(second);
  }
  const double correction1 = 1 - std::pow(numbers.beta1, t);
  const double correction2 = 1 - std::pow(numbers.beta2, t);
  const Tensor denominator = second.sqrt() / std::sqrt(correction2) + numbers.eps;
  var.copy_(var.to(wide) * (1 - numbers.lr * numbers.decay) -
            (mean / denominator) * (numbers.lr / correction1));
}

// (varRef, mRef, vRef, maxGradNorm?, grad, step, lr, beta1, beta2, weightDecay, eps, amsgrad,
// maximize). The step tensor counts the steps done before this one; decay is decoupled.
std::unique_ptr<Kernel> BindAdamW(const Call& call) {
  const Tensor var = call.Out(0), m = call.Out(1), v = call.Out(2), max_v = call.OptionalOut(3);
  const Operand gradient = call.In(4);
  const Tensor step = call.View(5);
  ExpectOne(call, 5, step);
  for (int i : {1, 2, 4}) call.ExpectSizes(i, call.View(i), var.sizes());
  const AdamWNumbers numbers = {call.Real(6),  call.Real(7),  call.Real(8), call.Real(9),
                                call.Real(10), call.Bool(11), call.Bool(12)};
  if (numbers.amsgrad && !max_v.defined()) call.RejectCall("amsgrad needs maxGradNorm");
  return MakeKernel([=] {
    StepAdamW({var, m, v, max_v, gradient()}, numbers, step.item().toDouble() + 1);
  });
}

// (grad, varRef, mRef, vRef, sRef, step, lr, emaDecay, beta1, beta2, eps, mode, biasCorrection,
// weightDecay): a step of Adam, and the moving average s of the parameter. The decay is part of the
// gradient in mode 0 and of the update in mode 1.
std::unique_ptr<Kernel> BindEmaAdam(const Call& call) {
  const Tensor gradient = call.View(0);
  const Tensor var = call.Out(1), m = call.Out(2), v = call.Out(3), s = call.Out(4);
  const Tensor step = call.View(5);
  ExpectFloats(call, 0, gradient);
  for (int i : {1, 2, 3, 4}) {
    call.ExpectSizes(i, call.View(i), gradient.sizes());
    ExpectDtypes(call, i, call.View(i), {gradient.scalar_type()});
  }
  ExpectDtypes(call, 5, step, {at::kLong});
  ExpectOne(call, 5, step);
  const double lr = call.Real(6), ema = call.Real(7), beta1 = call.Real(8), beta2 = call.Real(9);
  const double eps = call.Real(10), decay = call.Real(13);
  const int64_t mode = call.Int(11);
  if (mode != 0 && mode != 1) call.RejectArg(11, "must be 0 or 1");
  const bool corrected = call.Bool(12);
  return MakeKernel([=] {
    const auto wide = [](const Tensor& tensor) {
      return tensor.to(tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    };
    const auto t = step.item().toDouble();
    const Tensor before = wide(var);
    const Tensor g = mode == 0 ? wide(gradient) + decay * before : wide(gradient);
    const Tensor mean = beta1 * wide(m) + (1 - beta1) * g;
    const Tensor square = beta2 * wide(v) + (1 - beta2) * g * g;
    const Tensor first = corrected ? mean / (1 - std::pow(beta1, t)) : mean;
    const Tensor second = corrected ? square / (1 - std::pow(beta2, t)) : square;
    Tensor update = first / (second.sqrt() + eps);
    if (mode == 1) update = update + decay * before;
    const Tensor next = before - lr * update;
    s.copy_(ema * wide(s) + (1 - ema) * next);
    var.copy_(next);
    m.copy_(mean);
    v.copy_(square);
  });
}

bool IsSet(const Tensor& flag) { return flag.defined() && flag.item().toDouble() != 0; }

// The lists of a fused Adam step, of equal lengths; `max_v` is empty without amsgrad.
struct AdamWLists {
  std::vector<Tensor> params, grads, m, v, max_v, steps;
};

#ifdef ACLTAPE_LIBRARY_STEPS

// True when the tensors at each index of the lists have one layout without gaps, and all have one
// dtype. The library's fused steps go through memory without a look at strides.
bool AreAlike(std::initializer_list<const std::vector<Tensor>*> lists) {
  const std::vector<Tensor>& first = **lists.begin();
  for (const std::vector<Tensor>* list : lists) {
    if (list->size() > first.size()) return false;
    for (size_t k = 0; k < list->size(); ++k) {
      const Tensor& tensor = (*list)[k];
      if (!tensor.is_non_overlapping_and_dense() || tensor.strides() != first[k].strides() ||
          tensor.scalar_type() != first[0].scalar_type()) {
        return false;
      }
    }
  }
  return true;
}

// Steps as a program on the CPU does, bit for bit; false where the library cannot.
bool LibraryStepAdamW(const AdamWLists& lists, const AdamWNumbers& numbers) {
  if (!AreAlike({&lists.params, &lists.grads, &lists.m, &lists.v, &lists.max_v})) return false;
  for (const Tensor& step : lists.steps) {
    if (step.scalar_type() != at::kFloat) return false;
  }
  at::_fused_adamw_(lists.params, lists.grads, lists.m, lists.v, lists.max_v, lists.steps,
                    numbers.lr, numbers.beta1, numbers.beta2, numbers.decay, numbers.eps,
                    numbers.amsgrad, numbers.maximize);
  return true;
}

#else

bool LibraryStepAdamW(const AdamWLists&, const AdamWNumbers&) { return false; }

#endif

// (params, grads, expAvgs, expAvgSqs, maxExpAvgSqs?, stateSteps, gradScale?, foundInf?, lr, beta1,
// beta2, weightDecay, eps, amsgrad, maximize). Each step tensor counts the step being done, too.
std::unique_ptr<Kernel> BindFusedAdamW(const Call& call) {
  AdamWLists lists;
  lists.params = call.Outs(0);
  lists.grads = call.Views(1);
  lists.m = call.Outs(2);
  lists.v = call.Outs(3);
  if (!call.IsAbsent(4)) lists.max_v = call.Outs(4);
  lists.steps = call.Views(5);
  const Tensor scale = call.IsAbsent(6) ? Tensor() : call.View(6);
  if (scale.defined()) ExpectOne(call, 6, scale);
  const Tensor found_inf = call.IsAbsent(7) ? Tensor() : call.View(7);
  if (found_inf.defined()) ExpectOne(call, 7, found_inf);
  const AdamWNumbers numbers = {call.Real(8),  call.Real(9),  call.Real(10), call.Real(11),
                                call.Real(12), call.Bool(13), call.Bool(14)};
  const size_t count = lists.params.size();
  const std::pair<int, const std::vector<Tensor>*> beside[] = {
      {1, &lists.grads}, {2, &lists.m}, {3, &lists.v}, {4, &lists.max_v}, {5, &lists.steps}};
  for (const auto& [i, list] : beside) {
    if (i == 4 && !numbers.amsgrad) continue;
    if (list->size() != count) call.RejectArg(i, "differs in length from params");
    for (size_t k = 0; k < count; ++k) {
      if (i == 5) {
        ExpectOne(call, i, (*list)[k]);
      } else {
        call.ExpectSizes(i, (*list)[k], lists.params[k].sizes());
      }
    }
  }
  return MakeKernel([=] {
    if (lists.params.empty() || IsSet(found_inf)) return;
    AdamWLists used = lists;
    if (scale.defined()) {
      // The caller's gradients stay as they are: they are inputs.
      for (Tensor& gradient : used.grads) gradient = gradient / scale.reshape({});
    }
    if (LibraryStepAdamW(used, numbers)) return;
    for (size_t k = 0; k < used.params.size(); ++k) {
      StepAdamW({used.params[k], used.m[k], used.v[k], numbers.amsgrad ? used.max_v[k] : Tensor(),
                 used.grads[k]},
                numbers, used.steps[k].item().toDouble());
    }
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
#ifdef ACLTAPE_LIBRARY_STEPS
    // Computes the same bits as a program on the CPU.
    if (!params.empty() && AreAlike({&params, &grads, &buffers})) {
      const c10::optional<Tensor> given =
          scale.defined() ? c10::optional<Tensor>(scale) : c10::nullopt;
      at::_fused_sgd_(params, grads, buffers, decay, momentum, lr, dampening, nesterov, maximize,
                      first, given);
      return;
    }
#endif
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
      {"aclnnApplyFusedEmaAdam", BindEmaAdam},
      {"aclnnFusedAdamw", BindFusedAdamW},
      {"aclnnFusedSgd", BindSgd},
      {"aclnnForeachNonFiniteCheckAndUnscale", BindUnscale},
      {"aclnnAmpUpdateScale", BindUpdateScale},
  };
}

}  // namespace acltape::opapi
