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

}  // namespace

KernelRows DistanceRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnCdist", BindCdist, kBoth},
      {"aclnnCdistBackward", BindCdistBackward, kBoth},
      {"aclnnPdist", BindPdist, kBoth},
  };
}

}  // namespace acltape::opapi
