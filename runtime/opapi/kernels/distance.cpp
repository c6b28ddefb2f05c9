// Distances between the rows of matrices. Half and bfloat16 are computed in float32 and rounded
// once.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

double ReadNorm(const Call& call, int i) {
  const double p = call.Real(i);
  if (!(p >= 0)) call.RejectArg(i, "must not be negative");
  return p;
}

// Two batches of rows of the same width.
void ExpectRowPairs(const Call& call, int i, const Operand& x1, const Operand& x2) {
  ExpectFloats(call, i, x1.view());
  if (x1.dim() < 2 || x2.dim() < 2)
    call.RejectArg(x1.dim() < 2 ? i : i + 1, "has less than 2 dims");
  if (x1.view().scalar_type() != x2.view().scalar_type()) {
    call.RejectArg(i + 1, "has another dtype than x1");
  }
  if (x1.sizes().back() != x2.sizes().back()) {
    call.RejectArg(i + 1, "has shape " + SizesText(x2.sizes()) +
                              ", whose rows are not as wide as those of x1");
  }
}

std::vector<int64_t> BatchOf(const Operand& x) {
  return x.sizes().slice(0, static_cast<size_t>(x.dim()) - 2).vec();
}

int64_t RowsOf(const Operand& x) { return x.sizes()[x.dim() - 2]; }

// (x1, x2, p, computeMode, out): each row of x1 with each of x2, of batches that broadcast
std::unique_ptr<Kernel> BindCdist(const Call& call) {
  const Operand x1 = call.In(0), x2 = call.In(1);
  ExpectRowPairs(call, 0, x1, x2);
  const double p = ReadNorm(call, 2);
  const int64_t mode = call.Int(3);
  if (mode < 0 || mode > 2) {
    call.RejectArg(3, "must be 0 (products of matrices for many rows), 1 (always) or 2 (never)");
  }
  std::vector<int64_t> sizes = call.Broadcast({BatchOf(x1), BatchOf(x2)});
  sizes.insert(sizes.end(), {RowsOf(x1), RowsOf(x2)});
  return BindWhole(call, 4, sizes, [=] { return at::cdist(x1(), x2(), p, mode); });
}

// (grad, x1, x2, cdist, p, out): the gradient of x1
std::unique_ptr<Kernel> BindCdistBackward(const Call& call) {
  const Operand gradient = call.In(0), x1 = call.In(1), x2 = call.In(2), distances = call.In(3);
  ExpectRowPairs(call, 1, x1, x2);
  const std::vector<int64_t> batch = BatchOf(x1);
  if (BatchOf(x2) != batch) call.RejectArg(2, "has another batch than x1");
  std::vector<int64_t> sizes = batch;
  sizes.insert(sizes.end(), {RowsOf(x1), RowsOf(x2)});
  call.ExpectSizes(0, gradient.view(), sizes);
  call.ExpectSizes(3, distances.view(), sizes);
  for (int i : {0, 3}) {
    if (call.View(i).scalar_type() != x1.view().scalar_type()) {
      call.RejectArg(i, "has another dtype than x1");
    }
  }
  const double p = ReadNorm(call, 4);
  return BindWhole(call, 5, x1.sizes(), [=] {
    return at::_cdist_backward(gradient().contiguous(), x1().contiguous(), x2().contiguous(), p,
                               distances().contiguous());
  });
}

// (self, p, out): compares each row with each later one.
std::unique_ptr<Kernel> BindPdist(const Call& call) {
  const Operand self = call.In(0);
  ExpectFloats(call, 0, self.view());
  call.ExpectRank(0, self.view(), 2);
  const double p = ReadNorm(call, 1);
  const int64_t rows = self.sizes()[0];
  return BindWhole(call, 2, {rows * (rows - 1) / 2},
                   [=] { return at::pdist(self().contiguous(), p); });
}

// The gradient that each point of a set gets from its distance to the nearest point of the other
// set, whose own gradient is the opposite: 2 * gradient * (point - nearest).
Tensor NearestGradient(const Tensor& points, const Tensor& others, const Tensor& nearest,
                       const Tensor& gradient) {
  return 2 * gradient.unsqueeze(-1) * (points - others.gather(1, nearest));
}

// (xyz1, xyz2, idx1, idx2, gradDist1, gradDist2, gradXyz1, gradXyz2): the gradients of the squared
// distances of two sets of points, each to the nearest one of the other set
std::unique_ptr<Kernel> BindChamferDistanceBackward(const Call& call) {
  const Operand first = call.In(0), second = call.In(1);
  const Operand of_first = call.In(4), of_second = call.In(5);
  const Tensor to_second = call.View(2), to_first = call.View(3);
  for (int i : {0, 1}) {
    ExpectDtypes(call, i, call.View(i), {at::kFloat, at::kHalf});
    call.ExpectRank(i, call.View(i), 3);
  }
  const int64_t batch = first.sizes()[0], n = first.sizes()[1], m = second.sizes()[1];
  call.ExpectSizes(0, first.view(), {batch, n, 2});
  call.ExpectSizes(1, second.view(), {batch, m, 2});
  for (int i : {2, 3}) ExpectDtypes(call, i, call.View(i), {at::kInt});
  for (int i : {1, 4, 5, 6, 7}) ExpectDtypes(call, i, call.View(i), {first.view().scalar_type()});
  for (int i : {2, 4}) call.ExpectSizes(i, call.View(i), {batch, n});
  for (int i : {3, 5}) call.ExpectSizes(i, call.View(i), {batch, m});
  const Tensor out1 = call.Out(6), out2 = call.Out(7);
  call.ExpectSizes(6, out1, first.sizes());
  call.ExpectSizes(7, out2, second.sizes());
  return MakeKernel([=] {
    const auto index = [](const Tensor& places) {
      return places.to(at::kLong).unsqueeze(-1).expand({places.size(0), places.size(1), 2});
    };
    const Tensor a = first(), b = second(), a_to_b = index(to_second), b_to_a = index(to_first);
    const Tensor of_a = NearestGradient(a, b, a_to_b, of_first());
    const Tensor of_b = NearestGradient(b, a, b_to_a, of_second());
    out1.copy_(of_a.scatter_add(1, b_to_a, -of_b));
    out2.copy_(of_b.scatter_add(1, a_to_b, -of_a));
  });
}

}  // namespace

KernelRows DistanceRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnChamferDistanceBackward", BindChamferDistanceBackward, Widen::kHalf},
      {"aclnnCdist", BindCdist, kBoth},
      {"aclnnCdistBackward", BindCdistBackward, kBoth},
      {"aclnnPdist", BindPdist, kBoth},
  };
}

}  // namespace acltape::opapi
