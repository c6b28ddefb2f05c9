// Losses and their gradients. Reductions: 0 none, 1 mean, 2 sum.
#include <ATen/CPUFunctions.h>

#include <limits>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/cross_entropy.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/optional.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

int64_t Reduction(const Call& call, int i) {
  const int64_t reduction = call.Int(i);
  if (reduction < 0 || reduction > 2) call.RejectArg(i, "must be 0 (none), 1 (mean) or 2 (sum)");
  return reduction;
}

// The dims of a class score tensor without its classes.
std::vector<int64_t> TargetSizes(const Call& call, const Operand& self, int64_t rank) {
  std::vector<int64_t> sizes = self.sizes().vec();
  if (self.dim() == rank) {
    sizes.erase(sizes.begin() + 1);
  } else if (rank == 2 && self.dim() == 1) {
    sizes.clear();
  } else {
    call.RejectArg(
        0, "has shape " + SizesText(self.sizes()) + ", expected " + std::to_string(rank) + " dims");
  }
  return sizes;
}

void CheckClasses(const Call& call, int self_index, const Operand& self, const Tensor& target,
                  int weight_index, const Operand& weight, int64_t rank) {
  const int target_index = self_index + 1;
  call.ExpectIndex(target_index, target);
  call.ExpectSizes(target_index, target, TargetSizes(call, self, rank));
  if (weight.defined()) {
    call.ExpectSizes(weight_index, weight.view(), {self.sizes()[self.dim() == 1 ? 0 : 1]});
  }
}

// (self, target, weight, reduction, ignoreIndex, out, totalWeight)
template <typename Fn>
Binder Nll(Fn fn, int64_t rank) {
  return [=](const Call& call) {
    const Operand self = call.In(0), weight = call.OptionalIn(2);
    const Tensor target = call.View(1);
    CheckClasses(call, 0, self, target, 2, weight, rank);
    const int64_t reduction = Reduction(call, 3), ignore = call.Int(4);
    const Tensor out = call.Out(5), total = call.Out(6);
    call.ExpectSizes(5, out, reduction == 0 ? target.sizes() : at::IntArrayRef());
    if (total.numel() != 1) call.RejectArg(6, "must have one element");
    return MakeKernel([=] {
      const auto result = fn(self(), target.to(at::kLong), Maybe(weight), reduction, ignore);
      out.copy_(std::get<0>(result));
      // Without a reduction the library does not compute the total.
      if (std::get<1>(result).numel() == 1) CopyResult(total, std::get<1>(result));
    });
  };
}

// (gradOutput, self, target, weight, reduction, ignoreIndex, totalWeight, out)
template <typename Fn>
Binder NllBackward(Fn fn, int64_t rank) {
  return [=](const Call& call) {
    const Operand gradient = call.In(0), self = call.In(1), weight = call.OptionalIn(3);
    const Operand total = call.In(6);
    const Tensor target = call.View(2);
    CheckClasses(call, 1, self, target, 3, weight, rank);
    const int64_t reduction = Reduction(call, 4), ignore = call.Int(5);
    if (total.view().numel() != 1) call.RejectArg(6, "must have one element");
    const Tensor out = call.Out(7);
    call.ExpectSizes(7, out, self.sizes());
    if (reduction == 0) {
      call.ExpectSizes(0, gradient.view(), target.sizes());
    } else if (gradient.view().numel() != 1) {
      call.RejectArg(0, "must have one element");
    }
    const auto scalar = [](const Operand& operand, bool reshape) {
      const Tensor value = operand();
      return reshape ? value.reshape({}) : value;
    };
    return MakeKernel([=] {
      out.copy_(fn(scalar(gradient, reduction != 0), self(), target.to(at::kLong), Maybe(weight),
                   reduction, ignore, scalar(total, true)));
    });
  };
}

std::vector<int64_t> LossSizes(int64_t reduction, const std::vector<int64_t>& elements) {
  return reduction == 0 ? elements : std::vector<int64_t>();
}

// fn(out, self, target) of two tensors that broadcast, (self, target, ..., reduction, ..., out)
template <typename Fn>
std::unique_ptr<Kernel> BindLoss(const Call& call, int reduction_index, int out_index, Fn fn) {
  const Operand self = call.In(0), target = call.In(1);
  const int64_t reduction = Reduction(call, reduction_index);
  const Tensor out = call.Out(out_index);
  call.ExpectSizes(out_index, out,
                   LossSizes(reduction, call.Broadcast({self.sizes(), target.sizes()})));
  return MakeKernel([=] { out.copy_(fn(self(), target(), reduction)); });
}

std::unique_ptr<Kernel> BindMseLoss(const Call& call) {
  return BindLoss(call, 2, 3, [](const Tensor& self, const Tensor& target, int64_t reduction) {
    return at::mse_loss(self, target, reduction);
  });
}

std::unique_ptr<Kernel> BindL1Loss(const Call& call) {
  return BindLoss(call, 2, 3, [](const Tensor& self, const Tensor& target, int64_t reduction) {
    return at::l1_loss(self, target, reduction);
  });
}

// (self, target, reduction, beta, result)
std::unique_ptr<Kernel> BindSmoothL1Loss(const Call& call) {
  const double beta = call.Real(3);
  return BindLoss(call, 2, 4, [beta](const Tensor& self, const Tensor& target, int64_t reduction) {
    return at::smooth_l1_loss(self, target, reduction, beta);
  });
}

// (self, target, weight?, reduction, out)
std::unique_ptr<Kernel> BindBinaryCrossEntropy(const Call& call) {
  const Operand weight = call.OptionalIn(2);
  return BindLoss(call, 3, 4, [=](const Tensor& self, const Tensor& target, int64_t reduction) {
    return at::binary_cross_entropy(self, target, Maybe(weight), reduction);
  });
}

// (self, target, weight?, posWeight?, reduction, out)
std::unique_ptr<Kernel> BindBceWithLogits(const Call& call) {
  const Operand weight = call.OptionalIn(2), positive = call.OptionalIn(3);
  return BindLoss(call, 4, 5, [=](const Tensor& self, const Tensor& target, int64_t reduction) {
    return at::binary_cross_entropy_with_logits(self, target, Maybe(weight), Maybe(positive),
                                                reduction);
  });
}

// (self, target, reduction, logTarget, out)
std::unique_ptr<Kernel> BindKlDiv(const Call& call) {
  const bool log_target = call.Bool(3);
  return BindLoss(call, 2, 4, [=](const Tensor& self, const Tensor& target, int64_t reduction) {
    const Tensor loss = at::kl_div(self, target, reduction, log_target);
    if (log_target) return loss;
    // By the vendor's formula, target * (log(target) - self), a target of 0 gives NaN.
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const Tensor zero = target.eq(0);
    if (reduction == at::Reduction::None) return loss.masked_fill(zero, kNan);
    return zero.any().item<bool>() ? at::full_like(loss, kNan) : loss;
  });
}

// (gradOutput, self, target, reduction, ..., out)
template <typename Fn>
std::unique_ptr<Kernel> BindLossBackward(const Call& call, int reduction_index, int out_index,
                                         Fn fn) {
  const Operand gradient = call.In(0), self = call.In(1), target = call.In(2);
  const int64_t reduction = Reduction(call, reduction_index);
  const std::vector<int64_t> sizes = call.Broadcast({self.sizes(), target.sizes()});
  if (call.Broadcast({gradient.sizes(), sizes}) != sizes) {
    call.RejectArg(0, "does not broadcast to the loss");
  }
  const Tensor out = call.Out(out_index);
  call.ExpectSizes(out_index, out, sizes);
  return MakeKernel([=] { out.copy_(fn(gradient(), self(), target(), reduction)); });
}

std::unique_ptr<Kernel> BindMseLossBackward(const Call& call) {
  return BindLossBackward(
      call, 3, 4,
      [](const Tensor& gradient, const Tensor& self, const Tensor& target, int64_t reduction) {
        return at::mse_loss_backward(gradient, self, target, reduction);
      });
}

// (gradOut, self, target, reduction, beta, gradInput)
std::unique_ptr<Kernel> BindSmoothL1LossBackward(const Call& call) {
  ExpectFloats(call, 1, call.View(1));  // the library divides integers by 0
  const double beta = call.Real(4);
  return BindLossBackward(
      call, 3, 5,
      [beta](const Tensor& gradient, const Tensor& self, const Tensor& target, int64_t reduction) {
        return at::smooth_l1_loss_backward(gradient, self, target, reduction, beta);
      });
}

// (gradOutput, self, target, weight?, reduction, out)
std::unique_ptr<Kernel> BindBinaryCrossEntropyBackward(const Call& call) {
  const Operand weight = call.OptionalIn(3);
  return BindLossBackward(
      call, 4, 5,
      [=](const Tensor& gradient, const Tensor& self, const Tensor& target, int64_t reduction) {
        return at::binary_cross_entropy_backward(gradient, self, target, Maybe(weight), reduction);
      });
}

// The number by which the mean of a loss divides its gradient.
double Divisor(int64_t reduction, const Tensor& losses) {
  return reduction == 1 ? static_cast<double>(losses.numel()) : 1.0;
}

std::unique_ptr<Kernel> BindL1LossBackward(const Call& call) {
  return BindLossBackward(
      call, 3, 4,
      [](const Tensor& gradient, const Tensor& self, const Tensor& target, int64_t reduction) {
        const Tensor sign = (self - target).sign();
        return sign * gradient / Divisor(reduction, sign);
      });
}

// (gradOutput, self, target, weight?, posWeight?, reduction, out)
std::unique_ptr<Kernel> BindBceWithLogitsBackward(const Call& call) {
  const Operand weight = call.OptionalIn(3), positive = call.OptionalIn(4);
  return BindLossBackward(
      call, 5, 6,
      [=](const Tensor& gradient, const Tensor& self, const Tensor& target, int64_t reduction) {
        const Tensor chance = at::sigmoid(self);
        Tensor result = chance - target;
        if (positive.defined()) {
          const Tensor hit = target * positive();
          result = (hit + 1 - target) * chance - hit;
        }
        result = result * gradient;
        if (weight.defined()) result = result * weight();
        return result / Divisor(reduction, result);
      });
}

// (gradOutput, self, target, reduction, logTarget, out)
std::unique_ptr<Kernel> BindKlDivBackward(const Call& call) {
  const bool log_target = call.Bool(4);
  return BindLossBackward(
      call, 3, 5,
      [=](const Tensor& gradient, const Tensor& self, const Tensor& target, int64_t reduction) {
        const Tensor weight = log_target ? target.exp() : target.clamp_min(0);
        const Tensor result = (weight * gradient).neg().expand_as(self + target);
        return result / Divisor(reduction, result);
      });
}

// (gradOutput, self, target, reduction, logTarget, gradTarget)
std::unique_ptr<Kernel> BindKlDivTargetBackward(const Call& call) {
  for (int i : {0, 1, 2}) ExpectFloats(call, i, call.View(i));
  const bool log_target = call.Bool(4);
  return BindLossBackward(
      call, 3, 5,
      [=](const Tensor& gradient, const Tensor& self, const Tensor& target, int64_t reduction) {
        const Tensor result =
            log_target ? gradient * ((target + 1 - self) * target.exp())
                       : (gradient * (target.log() + 1 - self)).masked_fill(target == 0, 0);
        return result / Divisor(reduction, result);
      });
}

// (self, target, reduction, out, isTarget): each row of target lists classes up to the first -1.
std::unique_ptr<Kernel> BindMultilabelMarginLoss(const Call& call) {
  const Operand self = call.In(0);
  const Tensor target = call.View(1), out = call.Out(3), is_target = call.Out(4);
  if (self.dim() != 1 && self.dim() != 2) call.RejectArg(0, "must have 1 or 2 dims");
  call.ExpectIndex(1, target);
  call.ExpectSizes(1, target, self.sizes());
  const int64_t reduction = Reduction(call, 2);
  const bool each = reduction == at::Reduction::None && self.dim() == 2;
  call.ExpectSizes(3, out, each ? self.sizes().slice(0, 1) : at::IntArrayRef());
  call.ExpectSizes(4, is_target, self.sizes());
  return MakeKernel([=] {
    const auto result = at::multilabel_margin_loss_forward(self(), target.to(at::kLong), reduction);
    out.copy_(std::get<0>(result));
    is_target.copy_(std::get<1>(result));
  });
}

std::unique_ptr<Kernel> BindSoftMarginLoss(const Call& call) {
  return BindLoss(call, 2, 3, [](const Tensor& self, const Tensor& target, int64_t reduction) {
    return at::soft_margin_loss(self, target, reduction);
  });
}

std::unique_ptr<Kernel> BindSoftMarginLossBackward(const Call& call) {
  return BindLossBackward(
      call, 3, 4,
      [](const Tensor& gradient, const Tensor& self, const Tensor& target, int64_t reduction) {
        return at::soft_margin_loss_backward(gradient, self, target, reduction);
      });
}

// (features, labels, loss, backprop): the cross entropy of each row with its label distribution
std::unique_ptr<Kernel> BindSoftmaxCrossEntropy(const Call& call) {
  const Operand features = call.In(0), labels = call.In(1);
  call.ExpectRank(0, features.view(), 2);
  if (!at::isFloatingType(features.view().scalar_type())) {
    call.RejectArg(0, "has no floating dtype");
  }
  call.ExpectSizes(1, labels.view(), features.sizes());
  const Tensor loss = call.Out(2), gradient = call.Out(3);
  call.ExpectSizes(2, loss, {features.sizes()[0]});
  call.ExpectSizes(3, gradient, features.sizes());
  return MakeKernel([=] {
    const Tensor target = labels(), logarithms = at::log_softmax(features(), 1);
    loss.copy_(-(target * logarithms).sum(1));
    gradient.copy_(logarithms.exp() - target);
  });
}

// (logitsMax, sumExpLogits, predictedLogits, labelSmoothing, input?, weight?,
// vocabParallelLogits?, loss, softmax?): the last step of a cross entropy over a vocabulary that
// ranks share. Greatest logits, sums and the targets' logits come from all ranks; the softmax is
// that of the rank's own logits. The vendor's page is aclnnFusedCrossEntropyLossWithMaxSum.
std::unique_ptr<Kernel> BindSharedVocabularyLoss(const Call& call) {
  const Operand most = call.In(0), sums = call.In(1), predicted = call.In(2);
  const Operand logits = call.OptionalIn(6);
  for (int i : {0, 1, 2, 6}) {
    if (!call.IsAbsent(i)) {
      ExpectDtypes(call, i, call.View(i), {at::kFloat, at::kHalf, at::kBFloat16});
    }
  }
  call.ExpectRank(0, most.view(), 1);
  for (int i : {1, 2}) call.ExpectSizes(i, call.View(i), most.sizes());
  if (call.Real(3) != 0) call.RejectArg(3, "is not 0; the soft device does not smooth here");
  const Tensor loss = call.Out(7), softmax = call.OptionalOut(8);
  call.ExpectSizes(7, loss, most.sizes());
  ExpectFloats(call, 7, loss);
  if (softmax.defined()) {
    if (!logits.defined()) call.RejectArg(6, "is absent, but a softmax is asked for");
    call.ExpectRank(6, logits.view(), 2);
    call.ExpectSizes(6, logits.view(), {most.sizes()[0], logits.sizes()[1]});
    call.ExpectSizes(8, softmax, logits.sizes());
    ExpectFloats(call, 8, softmax);
  }
  return MakeKernel([=] {
    loss.copy_(sums().log() - predicted());
    if (!softmax.defined()) return;
    const Tensor parts = (logits() - most().unsqueeze(1)).exp();
    softmax.copy_(parts / sums().unsqueeze(1));
  });
}

}  // namespace

KernelRows LossRows() {
  constexpr Widen kHalf = Widen::kHalf, kBoth = Widen::kHalfAndBfloat16;
  const auto nll = [](const auto&... args) { return f::nll_loss_forward(args...); };
  const auto nll2d = [](const auto&... args) { return f::nll_loss2d_forward(args...); };
  const auto nll_backward = [](const auto&... args) { return f::nll_loss_backward(args...); };
  const auto nll2d_backward = [](const auto&... args) { return f::nll_loss2d_backward(args...); };
  return {
      {"aclnnNLLLoss", Nll(nll, 2), kHalf, {2}},
      {"aclnnNLLLoss2d", Nll(nll2d, 4), kHalf, {2}},
      {"aclnnNLLLossBackward", NllBackward(nll_backward, 2), kHalf, {3}},
      {"aclnnNLLLoss2dBackward", NllBackward(nll2d_backward, 4), kHalf, {3}},
      {"aclnnCrossEntropyLoss", BindCrossEntropyLoss, kBoth, {3, 10, 11}},
      {"aclnnCrossEntropyLossGrad", BindCrossEntropyLossGrad, kBoth, {6}},
      {"aclnnSoftmaxCrossEntropyWithLogits", BindSoftmaxCrossEntropy, kBoth},
      {"aclnnMseLoss", BindMseLoss, Widen::kBfloat16},
      {"aclnnMseLossBackward", BindMseLossBackward, kBoth},
      {"aclnnL1Loss", BindL1Loss},
      {"aclnnSmoothL1Loss", BindSmoothL1Loss},
      {"aclnnSmoothL1LossBackward", BindSmoothL1LossBackward, kHalf},
      {"aclnnBinaryCrossEntropy", BindBinaryCrossEntropy, kBoth},
      {"aclnnBinaryCrossEntropyBackward", BindBinaryCrossEntropyBackward, kBoth},
      {"aclnnFusedCrossEntropyLossWithMaxSum", BindSharedVocabularyLoss, kBoth},
      {"aclnnBinaryCrossEntropyWithLogits", BindBceWithLogits, kHalf},
      {"aclnnBinaryCrossEntropyWithLogitsBackward", BindBceWithLogitsBackward, kBoth},
      {"aclnnL1LossBackward", BindL1LossBackward, kBoth},
      {"aclnnKlDiv", BindKlDiv, kHalf},
      {"aclnnKlDivBackward", BindKlDivBackward, kBoth},
      {"aclnnKlDivTargetBackward", BindKlDivTargetBackward, kBoth},
      {"aclnnMultilabelMarginLoss", BindMultilabelMarginLoss, kBoth},
      {"aclnnSoftMarginLoss", BindSoftMarginLoss, kBoth},
      {"aclnnSoftMarginLossBackward", BindSoftMarginLossBackward, kBoth},
  };
}

}  // namespace acltape::opapi
