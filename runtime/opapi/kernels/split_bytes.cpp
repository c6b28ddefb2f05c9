#include "runtime/opapi/kernels/split_bytes.h"

#include <string>

#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/quantized_factors.h"

namespace acltape::opapi {

// Note [Bytes in two halves]
// A device multiplies integers of 4 bits only with their like. So it splits each byte of x1 into
// 16 * high + low + 8, where both halves lie between -8 and 7, and multiplies the halves. It leaves
// the 8 to the caller, whose yOffset brings 8 times the sum of x2 * x2Scale over the inner dim. The
// page's formula, ((x1 @ (x2 * x2Scale)) + yOffset) * x1Scale, does not show that 8. With the
// documented yOffset the result is x1 @ (x2 * x2Scale) * x1Scale; with any other it is what a
// device gives.

namespace {

using at::Tensor;

constexpr int kX1Scale = 2, kX2Scale = 3, kX2Offset = 6, kYOffset = 7, kBiasIn = 8;
constexpr int kTransposeX1 = 9, kTransposeX2 = 10, kGroupSize = 11, kProductOut = 12;
constexpr int64_t kSplitGroup = 256, kInnerBound = 29576;

struct SplitFactors {
  Tensor x1;
  IntegerMatrix x2;
  bool transposed;
  int64_t rows, inner, columns;

  // x2 in doubles, as [inner, columns].
  Tensor Second() const {
    const Tensor wide = x2.Read().to(at::kDouble);
    return transposed ? wide.t() : wide;
  }
};

SplitFactors ReadSplitFactors(const Call& call) {
  const Tensor x1 = call.View(0);
  const IntegerMatrix x2 = ReadIntegers(call, 1);
  const bool transposed = call.Bool(kTransposeX2);
  call.ExpectRank(0, x1, 2);
  call.ExpectRank(1, x2.view, 2);
  if (call.Bool(kTransposeX1)) call.RejectArg(kTransposeX1, "must be false for int8 with int4");
  const std::vector<int64_t> sizes = x2.sizes();
  const int64_t inner = x1.size(1);
  if (sizes[transposed ? 1 : 0] != inner) {
    call.RejectCall("shapes " + SizesText(x1.sizes()) + " and " + SizesText(sizes) +
                    " do not multiply");
  }
  if (inner % 2 != 0) call.RejectArg(0, "has an inner dim of an odd size");
  return {x1, x2, transposed, x1.size(0), inner, sizes[transposed ? 0 : 1]};
}

// The inner dim may come in groups of 256, each with scales of its own.
int64_t GroupOf(const Call& call, const SplitFactors& factors) {
  const int64_t group = call.Int(kGroupSize);
  const bool nz = call.op().name == "aclnnQuantMatmulWeightNz";
  if (nz && group != 0) call.RejectArg(kGroupSize, "must be 0");
  if (group != 0 && group != kSplitGroup) call.RejectArg(kGroupSize, "must be 0 or 256");
  if (group != 0 && factors.transposed) {
    call.RejectArg(kTransposeX2, "must be false for groups of 256");
  }
  if (group != 0 && factors.inner % kSplitGroup != 0) {
    call.RejectArg(0, "has an inner dim that is no multiple of 256");
  }
  if ((nz || group != 0) && factors.inner >= kInnerBound) {
    call.RejectArg(0, "has an inner dim that is not less than " + std::to_string(kInnerBound));
  }
  return group;
}

}  // namespace

bool MultipliesBytesWithFourBits(const Call& call) {
  return !call.IsNull(0) && !call.IsNull(1) && call.Described(0).dtype == ACL_INT8 &&
         call.Described(1).dtype == ACL_INT32;
}

std::unique_ptr<Kernel> BindSplitBytes(const Call& call) {
  const SplitFactors factors = ReadSplitFactors(call);
  const int64_t rows = factors.rows, inner = factors.inner, columns = factors.columns;
  const int64_t group = GroupOf(call, factors);
  for (const int i : {kX2Offset, kBiasIn}) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given, but x1 is int8 and x2 int4");
  }
  for (const int i : {kX1Scale, kYOffset}) {
    if (call.IsAbsent(i)) call.RejectArg(i, "is absent, but x1 is int8 and x2 int4");
    ExpectDtypes(call, i, call.View(i), {at::kFloat});
  }
  if (call.Described(kX2Scale).dtype != ACL_UINT64) call.RejectArg(kX2Scale, "is not uint64");
  const Tensor x1_scale = call.View(kX1Scale), scale = call.Bits(kX2Scale);
  const Tensor offset = call.View(kYOffset), out = call.Out(kProductOut);
  if (group == 0) {
    call.ExpectSizes(kX1Scale, x1_scale, {rows});
    ExpectPerColumn(call, kX2Scale, scale, columns);
  } else {
    call.ExpectSizes(kX1Scale, x1_scale, {rows, 1});
    call.ExpectSizes(kX2Scale, scale, {inner / group, columns});
  }
  call.ExpectSizes(kYOffset, offset, {columns});
  ExpectDtypes(call, kProductOut, out, {at::kHalf, at::kBFloat16});
  call.ExpectSizes(kProductOut, out, {rows, columns});
  return MakeKernel([=] {
    constexpr int kLeftOut = 8;  // Note [Bytes in two halves]
    const Tensor second = factors.Second() * Spread(ScaleOf(scale).to(at::kDouble), inner, group);
    const Tensor sum = at::matmul(factors.x1.to(at::kDouble) - kLeftOut, second) + offset;
    out.copy_(sum * x1_scale.to(at::kDouble).reshape({-1, 1}));
  });
}

}  // namespace acltape::opapi
