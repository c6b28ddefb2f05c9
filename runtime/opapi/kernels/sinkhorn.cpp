// Costs of tokens and experts as a nearly doubly stochastic matrix, by Sinkhorn's iteration. The
// vendor's page is aclnnSinkhorn.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Scales the rows and the columns of exp(cost) in turns, until the columns' factors stay as they
// are but for `tolerance`.
Tensor BalancedCosts(const Tensor& cost, double tolerance) {
  constexpr int kMostSteps = 100000;
  constexpr double kEpsilon = 1e-8;
  const auto rows = static_cast<double>(cost.size(0)), columns = static_cast<double>(cost.size(1));
  const Tensor weights = at::exp(cost);
  Tensor of_columns = at::ones({cost.size(1)}, cost.options()), of_rows;
  for (int step = 0; step < kMostSteps; ++step) {
    of_rows = 1 / (((weights * of_columns).sum(1) + kEpsilon) * rows);
    const Tensor next = 1 / (((weights * of_rows.unsqueeze(1)).sum(0) + kEpsilon) * columns);
    const auto error = (next - of_columns).abs().mean().item<double>();
    of_columns = next;
    if (!(error > tolerance)) return weights * of_columns * of_rows.unsqueeze(1);
  }
  TORCH_CHECK(false, "the factors of cost change by more than the tolerance after ", kMostSteps,
              " steps; tol is out of range for them");
}

// (cost, tol?, p)
std::unique_ptr<Kernel> BindSinkhorn(const Call& call) {
  const Operand cost = call.In(0);
  ExpectDtypes(call, 0, cost.view(), {at::kFloat, at::kHalf, at::kBFloat16});
  call.ExpectRank(0, cost.view(), 2);
  const c10::optional<at::Scalar> given = call.OptionalNumber(1);
  const double tolerance = given ? given->toDouble() : 0.0001;
  if (!(tolerance > 0)) call.RejectArg(1, "is not positive");
  ExpectDtypes(call, 2, call.View(2), {cost.view().scalar_type()});
  return BindWhole(call, 2, cost.sizes(), [=] { return BalancedCosts(cost(), tolerance); });
}

}  // namespace

KernelRows SinkhornRows() { return {{"aclnnSinkhorn", BindSinkhorn, Widen::kHalfAndBfloat16}}; }

}  // namespace acltape::opapi
