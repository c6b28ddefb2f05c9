// Normalised rows that are quantised to int8, without an addition before: the vendor's pages
// aclnnRmsNormDynamicQuant and aclnnLayerNormQuant.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/row_norm.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int64_t kInt8Number = 2;

// Reads rows of half or bfloat16, and checks that what is given at `positions` has a row's width
// and their dtype.
Operand ReadQuantisedRows(const Call& call, const std::vector<int>& positions) {
  Operand x = call.In(0);
  ExpectDtypes(call, 0, x.view(), {at::kHalf, at::kBFloat16});
  if (x.dim() == 0 || x.sizes().back() == 0) call.RejectArg(0, "has no rows with elements");
  for (int i : positions) {
    if (call.IsAbsent(i)) continue;
    ExpectDtypes(call, i, call.View(i), {x.view().scalar_type()});
    call.ExpectSizes(i, call.View(i), {x.sizes().back()});
  }
  return x;
}

// (x, gamma, smoothScales?, beta?, epsilon, dstType, y, scale): a scale for each row, so that its
// greatest magnitude becomes 127
std::unique_ptr<Kernel> BindRmsNormDynamicQuant(const Call& call) {
  const Operand x = ReadQuantisedRows(call, {1, 2, 3}), gamma = call.In(1);
  const Operand smooth = call.OptionalIn(2), beta = call.OptionalIn(3);
  call.ExpectSizes(1, gamma.view(), {x.sizes().back()});
  const double epsilon = call.Real(4);
  if (!(epsilon > 0)) call.RejectArg(4, "must be positive");
  if (call.Int(5) != kInt8Number) {
    call.RejectArg(5, "is not int8, which the soft device quantises to");
  }
  const Tensor y = call.Out(6), scale = call.Out(7);
  ExpectInt8(call, 6, y);
  call.ExpectSizes(6, y, x.sizes());
  ExpectDtypes(call, 7, scale, {at::kFloat});
  call.ExpectSizes(7, scale, x.sizes().slice(0, x.dim() - 1));
  const int64_t last = x.dim() - 1;
  return MakeKernel([=] {
    const Tensor input = x();
    Tensor result = input * InverseRms(input, {last}, epsilon) * gamma();
    if (beta.defined()) result = result + beta();
    if (smooth.defined()) result = result * smooth();
    const ScaledRows rows = ScaleRows(result);
    y.copy_(rows.values);
    scale.copy_(rows.scale);
  });
}

// (x, gamma, beta, scale, zeroPoints?, quantMode, epsilon, res, scaleOut): the layer norm over the
// scale, plus the zero points. scaleOut means nothing then, and holds zeros.
std::unique_ptr<Kernel> BindLayerNormQuant(const Call& call) {
  const Operand x = ReadQuantisedRows(call, {1, 2}), gamma = call.In(1), beta = call.In(2);
  const Operand scale = call.In(3);
  const int64_t width = x.sizes().back();
  for (int i : {1, 2}) call.ExpectSizes(i, call.View(i), {width});
  ExpectDtypes(call, 3, scale.view(), {x.view().scalar_type()});
  Tensor zeros;
  if (!call.IsAbsent(4)) {
    zeros = call.View(4);
    ExpectInt8(call, 4, zeros);
  }
  for (int i : {3, 4}) {
    if (call.IsAbsent(i)) continue;
    const Tensor given = call.View(i);
    if (given.numel() != 1) call.ExpectSizes(i, given, {width});
  }
  // The page has no one reading of the dynamic mode.
  if (call.Int(5) != 0) call.RejectArg(5, "must be 0 (static), which the soft device takes");
  const double epsilon = call.Real(6);
  if (!(epsilon > 0)) call.RejectArg(6, "must be positive");
  const Tensor out = call.Out(7), scales = call.Out(8);
  ExpectInt8(call, 7, out);
  call.ExpectSizes(7, out, x.sizes());
  call.ExpectSizes(8, scales, x.sizes().slice(0, x.dim() - 1));
  return MakeKernel([=] {
    const Tensor input = x();
    const Tensor centred = input - input.mean(at::IntArrayRef({-1}), /*keepdim=*/true);
    const Tensor spread = centred.pow(2).mean(at::IntArrayRef({-1}), /*keepdim=*/true);
    Tensor result = centred * (spread + epsilon).rsqrt() * gamma() + beta();
    result = result / scale().reshape(-1);
    if (zeros.defined()) result = result + zeros.reshape(-1).to(at::kFloat);
    out.copy_(result.round().clamp(-128, 127));
    Tensor(scales).zero_();
  });
}

}  // namespace

KernelRows QuantizedNormRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnRmsNormDynamicQuant", BindRmsNormDynamicQuant, kBoth},
      {"aclnnLayerNormQuant", BindLayerNormQuant, kBoth},
  };
}

}  // namespace acltape::opapi
