// Sums over segments of a sequence, and the gradients of a bias that groups of rows share.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// (self, out): element (i, j) of a matrix is exp of the sum of the elements j + 1 to i, and 0 above
// the diagonal.
std::unique_ptr<Kernel> BindExpSegsum(const Call& call) {
  const Operand self = call.In(0);
  ExpectFloats(call, 0, self.view());
  if (self.dim() != 3 && self.dim() != 4) call.RejectArg(0, "must have 3 or 4 dims");
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.push_back(sizes.back());
  return BindWhole(call, 1, sizes, [=] {
    const Tensor sums = self().unsqueeze(-1).expand(sizes).tril(-1).cumsum(-2);
    return sums.exp().tril();
  });
}

// (gradOutput, gradSelf, gradInput): gradSelf is what the forward call gave.
std::unique_ptr<Kernel> BindExpSegsumBackward(const Call& call) {
  const Operand gradient = call.In(0), result = call.In(1);
  ExpectFloats(call, 0, gradient.view());
  if (gradient.dim() != 4 && gradient.dim() != 5) call.RejectArg(0, "must have 4 or 5 dims");
  std::vector<int64_t> sizes = gradient.sizes().vec();
  if (sizes[sizes.size() - 2] != sizes.back()) call.RejectArg(0, "holds no square matrices");
  call.ExpectSizes(1, result.view(), sizes);
  ExpectDtypes(call, 1, result.view(), {gradient.view().scalar_type()});
  sizes.pop_back();
  return BindWhole(call, 2, sizes, [=] {
    const Tensor of_sums = (gradient() * result()).tril(-1);
    return of_sums.flip(-2).cumsum(-2).flip(-2).tril(-1).sum(-1);
  });
}

// (gradY, groupIdx?, out): the sum over the rows of each group, which ends where groupIdx says.
// Without groupIdx each matrix of gradY is a group.
std::unique_ptr<Kernel> BindGroupedBiasAddGrad(const Call& call) {
  const Operand gradient = call.In(0);
  ExpectFloats(call, 0, gradient.view());
  ExpectDtypes(call, 2, call.View(2), {gradient.view().scalar_type()});
  if (call.IsNull(1)) {
    call.ExpectRank(0, gradient.view(), 3);
    return BindWhole(call, 2, {gradient.sizes()[0], gradient.sizes()[2]},
                     [=] { return gradient().sum(1); });
  }
  const Tensor ends = call.View(1);
  call.ExpectRank(0, gradient.view(), 2);
  call.ExpectRank(1, ends, 1);
  call.ExpectIndex(1, ends);
  if (ends.numel() > 2048) call.RejectArg(1, "has more than 2048 groups");
  const int64_t groups = ends.numel(), rows = gradient.sizes()[0];
  return BindWhole(call, 2, {groups, gradient.sizes()[1]}, [=] {
    const Tensor given = gradient(), bounds = ends.to(at::kLong).contiguous();
    const auto* end = bounds.data_ptr<int64_t>();
    const Tensor sums = at::zeros({groups, given.size(1)}, given.options());
    for (int64_t i = 0, begin = 0; i < groups; begin = end[i++]) {
      TORCH_CHECK(begin <= end[i] && end[i] <= rows, "aclnnGroupedBiasAddGrad: groupIdxOptional ",
                  "must rise from 0 to ", rows);
      sums[i].copy_(given.narrow(0, begin, end[i] - begin).sum(0));
    }
    return sums;
  });
}

}  // namespace

KernelRows SegmentSumRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnExpSegsum", BindExpSegsum, kBoth},
      {"aclnnExpSegsumBackward", BindExpSegsumBackward, kBoth},
      {"aclnnGroupedBiasAddGrad", BindGroupedBiasAddGrad, kBoth},
  };
}

}  // namespace acltape::opapi
