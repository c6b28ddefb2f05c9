#include "runtime/opapi/kernels/cross_entropy.h"

#include <ATen/ATen.h>

#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/optional.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int64_t kEachLoss = 0, kMeanLoss = 1, kSumOfLosses = 2;

int64_t NamedReduction(const Call& call, int i) {
  const std::string name = call.Text(i);
  if (name == "none") return kEachLoss;
  if (name == "mean" || name.empty()) return kMeanLoss;
  if (name == "sum") return kSumOfLosses;
  call.RejectArg(i, "must be \"none\", \"mean\" or \"sum\"");
}

double ReadSmoothing(const Call& call, int i) {
  const double smoothing = call.Real(i);
  if (!(smoothing >= 0 && smoothing <= 1)) call.RejectArg(i, "must be between 0 and 1");
  return smoothing;
}

// Scores of [rows, classes] with one class for each row.
void ExpectScoresAndClasses(const Call& call, int scores, int classes, int weight) {
  const Tensor view = call.View(scores);
  ExpectFloats(call, scores, view);
  call.ExpectRank(scores, view, 2);
  call.ExpectIndex(classes, call.View(classes));
  call.ExpectSizes(classes, call.View(classes), {view.size(0)});
  if (!call.IsAbsent(weight)) call.ExpectSizes(weight, call.View(weight), {view.size(1)});
}

}  // namespace

// (input, target, weight?, reduction, ignoreIndex, labelSmoothing, lseSquareScaleForZloss,
// returnZloss, loss, logProb, zloss, lseForZloss). Without the z loss, which the operator is
// documented not to support yet, its two outputs stay unwritten.
std::unique_ptr<Kernel> BindCrossEntropyLoss(const Call& call) {
  const Operand input = call.In(0), weight = call.OptionalIn(2);
  const Tensor target = call.View(1);
  ExpectScoresAndClasses(call, 0, 1, 2);
  const int64_t reduction = NamedReduction(call, 3), ignore = call.Int(4);
  const double smoothing = ReadSmoothing(call, 5);
  if (call.Real(6) != 0) call.RejectArg(6, "is not 0; the soft device has no z loss");
  if (call.Bool(7)) call.RejectArg(7, "is set; the soft device has no z loss");
  const Tensor loss = call.Out(8), chances = call.Out(9);
  call.ExpectSizes(9, chances, input.sizes());
  if (reduction == kEachLoss) {
    call.ExpectSizes(8, loss, target.sizes());
  } else if (loss.numel() != 1) {
    call.RejectArg(8, "must have one element");
  }
  return MakeKernel([=] {
    const Tensor scores = input();
    chances.copy_(at::log_softmax(scores, 1));
    const Tensor result = at::cross_entropy_loss(scores, target.to(at::kLong), Maybe(weight),
                                                 reduction, ignore, smoothing);
    CopyResult(loss, result);
  });
}

// (gradLoss, logProb, target, weight?, gradZloss?, lseForZloss?, reduction, ignoreIndex,
// labelSmoothing, lseSquareScaleForZloss, out)
std::unique_ptr<Kernel> BindCrossEntropyLossGrad(const Call& call) {
  const Operand gradient = call.In(0), chances = call.In(1), weight = call.OptionalIn(3);
  const Tensor target = call.View(2);
  ExpectScoresAndClasses(call, 1, 2, 3);
  for (int i : {4, 5}) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given; the soft device has no z loss");
  }
  const int64_t reduction = NamedReduction(call, 6), ignore = call.Int(7);
  const double smoothing = ReadSmoothing(call, 8);
  if (call.Real(9) != 0) call.RejectArg(9, "is not 0; the soft device has no z loss");
  if (reduction == kEachLoss) {
    call.ExpectSizes(0, gradient.view(), target.sizes());
  } else if (gradient.view().numel() != 1) {
    call.RejectArg(0, "must have one element");
  }
  const Tensor out = call.Out(10);
  call.ExpectSizes(10, out, chances.sizes());
  return MakeKernel([=] {
    const Tensor logarithms = chances(), classes = target.to(at::kLong);
    const int64_t count = logarithms.size(1);
    const Tensor counts = classes.ne(ignore).unsqueeze(1);
    const Tensor each_class = weight.defined() ? weight() : at::ones({count}, logarithms.options());
    const Tensor chosen = classes.masked_fill(classes.eq(ignore), 0);
    const Tensor of_target = each_class.index_select(0, chosen).unsqueeze(1) * counts;
    Tensor share = gradient().reshape({-1, 1}) * counts;
    if (reduction == kMeanLoss) share = share / of_target.sum();
    // The gradient of the logarithms: the class of each row, and all classes by the smoothing.
    Tensor of_logarithms =
        each_class.unsqueeze(0) * share * (-smoothing / static_cast<double>(count));
    of_logarithms =
        of_logarithms.scatter_add(1, chosen.unsqueeze(1), of_target * share * (smoothing - 1));
    out.copy_(of_logarithms - logarithms.exp() * of_logarithms.sum(1, /*keepdim=*/true));
  });
}

}  // namespace acltape::opapi
