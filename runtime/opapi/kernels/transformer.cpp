// Fused operators of transformers. Half and bfloat16 are computed in float32 and rounded once.
#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include "runtime/opapi/kernels/row_norm.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// (x, gamma, epsilon, y, rstd)
std::unique_ptr<Kernel> BindRmsNorm(const Call& call) {
  const Operand x = call.In(0), gamma = call.In(1);
  const double epsilon = call.Real(2);
  const Tensor y = call.Out(3), rstd = call.OptionalOut(4);
  const std::vector<int64_t> dims = NormalizedDims(call, 1, x, gamma);
  call.ExpectSizes(3, y, x.sizes());
  ExpectRows(call, 4, rstd, x, gamma);
  return MakeKernel([=] {
    const Tensor input = x(), inverse = InverseRms(input, dims, epsilon);
    y.copy_(input * inverse * gamma());
    CopyResult(rstd, inverse);
  });
}

// (x1, x2, gamma, [beta?,] epsilon, y, rstd?, x?)
std::unique_ptr<Kernel> BindAddedRmsNorm(const Call& call, bool biased) {
  const int after = biased ? 4 : 3;  // the position of epsilon
  const Operand x1 = call.In(0), x2 = call.In(1), gamma = call.In(2);
  const bool has_beta = biased && !call.IsAbsent(3);
  const Operand beta = call.In(has_beta ? 3 : 2);
  const double epsilon = call.Real(after);
  const Tensor y = call.Out(after + 1), rstd = call.OptionalOut(after + 2),
               sum = call.OptionalOut(after + 3);
  call.ExpectSizes(1, x2.view(), x1.sizes());
  const std::vector<int64_t> dims = NormalizedDims(call, 2, x1, gamma);
  if (has_beta) call.ExpectSizes(3, beta.view(), gamma.sizes());
  call.ExpectSizes(after + 1, y, x1.sizes());
  ExpectRows(call, after + 2, rstd, x1, gamma);
  if (sum.defined()) call.ExpectSizes(after + 3, sum, x1.sizes());
  return MakeKernel([=] {
    const Tensor input = x1() + x2(), inverse = InverseRms(input, dims, epsilon);
    Tensor result = input * inverse * gamma();
    if (has_beta) result = result + beta();
    CopyResult(sum, input);
    CopyResult(rstd, inverse);
    y.copy_(result);
  });
}

std::unique_ptr<Kernel> BindAddRmsNorm(const Call& call) { return BindAddedRmsNorm(call, false); }

std::unique_ptr<Kernel> BindAddRmsNormBias(const Call& call) {
  return BindAddedRmsNorm(call, true);
}

// (dy, x, rstd, gamma, dx, dgamma)
std::unique_ptr<Kernel> BindRmsNormGrad(const Call& call) {
  const Operand dy = call.In(0), x = call.In(1), rstd = call.In(2), gamma = call.In(3);
  const Tensor dx = call.Out(4), dgamma = call.Out(5);
  const std::vector<int64_t> dims = NormalizedDims(call, 3, x, gamma);
  call.ExpectSizes(0, dy.view(), x.sizes());
  ExpectRows(call, 2, rstd.view(), x, gamma);
  call.ExpectSizes(4, dx, x.sizes());
  call.ExpectSizes(5, dgamma, gamma.sizes());
  std::vector<int64_t> row_sizes = x.sizes().vec();
  std::vector<int64_t> leading;
  for (int64_t dim : dims) row_sizes[dim] = 1;
  for (int64_t i = 0; i < dims[0]; ++i) leading.push_back(i);
  return MakeKernel([=] {
    const Tensor gradient = dy(), input = x(), inverse = rstd().reshape(row_sizes);
    const Tensor normalized = input * inverse, scaled = gradient * gamma();
    const Tensor mean = (scaled * normalized).mean(dims, /*keepdim=*/true);
    const Tensor per_row = gradient * normalized;
    dx.copy_((scaled - normalized * mean) * inverse);
    dgamma.copy_(leading.empty() ? per_row : per_row.sum(leading));
  });
}

// (x, dim, out): silu(first half) * second half
std::unique_ptr<Kernel> BindSwiGlu(const Call& call) {
  const Operand x = call.In(0);
  const int64_t dim = call.Dim(1, x.dim());
  std::vector<int64_t> sizes = x.sizes().vec();
  if (sizes.empty() || sizes[dim] % 2 != 0) call.RejectArg(0, "cannot be split in halves");
  const int64_t half = sizes[dim] /= 2;
  const Tensor out = call.Out(2);
  call.ExpectSizes(2, out, sizes);
  return MakeKernel([=] {
    const Tensor input = x();
    out.copy_(at::silu(input.narrow(dim, 0, half)) * input.narrow(dim, half, half));
  });
}

// (yGrad, x, dim, out)
std::unique_ptr<Kernel> BindSwiGluGrad(const Call& call) {
  const Operand gradient = call.In(0), x = call.In(1);
  const int64_t dim = call.Dim(2, x.dim());
  std::vector<int64_t> sizes = x.sizes().vec();
  if (sizes.empty() || sizes[dim] % 2 != 0) call.RejectArg(1, "cannot be split in halves");
  const int64_t half = sizes[dim] /= 2;
  const Tensor out = call.Out(3);
  call.ExpectSizes(0, gradient.view(), sizes);
  call.ExpectSizes(3, out, x.sizes());
  return MakeKernel([=] {
    const Tensor input = x(), g = gradient();
    const Tensor a = input.narrow(dim, 0, half), b = input.narrow(dim, half, half);
    out.copy_(at::cat({at::silu_backward(g * b, a), g * at::silu(a)}, dim));
  });
}

// The elements of x that are multiplied with the cosine (`straight`) and with the sine (`turned`).
// Modes: 0 halves, 1 interleaved pairs, 2 halves of each half, 3 pairs that become halves.
struct Rotated {
  Tensor straight, turned;
};

Tensor TurnHalves(const Tensor& x) {
  const Tensor first = x.narrow(-1, 0, x.size(-1) / 2);
  const Tensor second = x.narrow(-1, x.size(-1) / 2, x.size(-1) / 2);
  return at::cat({-second, first}, -1);
}

Rotated Rotate(const Tensor& x, int64_t mode) {
  const int64_t width = x.size(-1);
  if (mode == 0) return {x, TurnHalves(x)};
  if (mode == 2) return {x, TurnHalves(x.unflatten(-1, {2, width / 2})).flatten(-2)};
  const Tensor even = x.slice(-1, 0, width, 2), odd = x.slice(-1, 1, width, 2);
  if (mode == 1) return {x, at::stack({-odd, even}, -1).flatten(-2)};
  return {at::cat({even, odd}, -1), at::cat({-odd, even}, -1)};
}

// The gradient of Rotate's result, given those of its two parts.
Tensor RotateBack(const Tensor& of_straight, const Tensor& of_turned, int64_t mode) {
  const int64_t width = of_turned.size(-1);
  const auto back_from_halves = [](const Tensor& g) {
    const Tensor first = g.narrow(-1, 0, g.size(-1) / 2);
    const Tensor second = g.narrow(-1, g.size(-1) / 2, g.size(-1) / 2);
    return at::cat({second, -first}, -1);
  };
  if (mode == 0) return of_straight + back_from_halves(of_turned);
  if (mode == 2) {
    return of_straight + back_from_halves(of_turned.unflatten(-1, {2, width / 2})).flatten(-2);
  }
  if (mode == 1) {
    const Tensor even = of_turned.slice(-1, 0, width, 2), odd = of_turned.slice(-1, 1, width, 2);
    return of_straight + at::stack({odd, -even}, -1).flatten(-2);
  }
  const Tensor halves = of_straight + back_from_halves(of_turned);
  return at::stack({halves.narrow(-1, 0, width / 2), halves.narrow(-1, width / 2, width / 2)}, -1)
      .flatten(-2);
}

int64_t RotaryMode(const Call& call, int i, const Operand& x) {
  const int64_t mode = call.Int(i);
  if (mode < 0 || mode > 3) {
    call.RejectArg(
        i, "must be 0 (halves), 1 (interleaved pairs), 2 (quarters) or 3 (pairs to halves)");
  }
  const int64_t parts = mode == 2 ? 4 : 2;
  if (x.dim() == 0 || x.sizes().back() % parts != 0) {
    call.RejectArg(0, "has a last dim that is no multiple of " + std::to_string(parts));
  }
  return mode;
}

void ExpectAngles(const Call& call, std::initializer_list<int> positions, const Operand& x) {
  for (int i : positions) {
    if (call.Broadcast({call.View(i).sizes(), x.sizes()}) != x.sizes().vec()) {
      call.RejectArg(i, "has shape " + SizesText(call.View(i).sizes()) +
                            ", which does not broadcast to " + SizesText(x.sizes()));
    }
  }
}

// (x, cos, sin, mode, out) or (x, cos, sin, mode, rotate?, out): the part that meets the cosine
// times it, plus the part that meets the sine times that
std::unique_ptr<Kernel> BindRotary(const Call& call, int out_index) {
  const Operand x = call.In(0), cosine = call.In(1), sine = call.In(2);
  const int64_t mode = RotaryMode(call, 3, x);
  if (out_index == 5 && !call.IsAbsent(4)) {
    call.RejectArg(4, "is given; the soft device rotates as the mode says");
  }
  ExpectAngles(call, {1, 2}, x);
  return BindWhole(call, out_index, x.sizes(), [=] {
    const Rotated parts = Rotate(x(), mode);
    return parts.straight * cosine() + parts.turned * sine();
  });
}

// (x, cos, sin, out): pairs that become halves
std::unique_ptr<Kernel> BindInterleaveRope(const Call& call) {
  const Operand x = call.In(0), cosine = call.In(1), sine = call.In(2);
  if (x.dim() == 0 || x.sizes().back() % 2 != 0) call.RejectArg(0, "has no even last dim");
  ExpectAngles(call, {1, 2}, x);
  return BindWhole(call, 3, x.sizes(), [=] {
    const Rotated parts = Rotate(x(), 3);
    return parts.straight * cosine() + parts.turned * sine();
  });
}

// (dy, cos, sin, x?, mode, dx, dcos, dsin): without x the angles' gradients stay unwritten.
std::unique_ptr<Kernel> BindRotaryGrad(const Call& call) {
  const Operand dy = call.In(0), cosine = call.In(1), sine = call.In(2), x = call.OptionalIn(3);
  const int64_t mode = RotaryMode(call, 4, dy);
  ExpectAngles(call, {1, 2}, dy);
  const Tensor dx = call.Out(5);
  call.ExpectSizes(5, dx, dy.sizes());
  Tensor of_cosine, of_sine;
  if (x.defined()) {
    call.ExpectSizes(3, x.view(), dy.sizes());
    of_cosine = call.Out(6);
    of_sine = call.Out(7);
    call.ExpectSizes(6, of_cosine, cosine.sizes());
    call.ExpectSizes(7, of_sine, sine.sizes());
  }
  return MakeKernel([=] {
    const Tensor gradient = dy();
    dx.copy_(RotateBack(gradient * cosine(), gradient * sine(), mode));
    if (!x.defined()) return;
    const Rotated parts = Rotate(x(), mode);
    of_cosine.copy_(at::sum_to(gradient * parts.straight, of_cosine.sizes()));
    of_sine.copy_(at::sum_to(gradient * parts.turned, of_sine.sizes()));
  });
}

// (queryRef, keyRef, cos, sin, layout) and (..., rotaryMode): both rotated in place
std::unique_ptr<Kernel> BindApplyRotary(const Call& call, bool named_mode) {
  const Tensor query = call.Out(0), key = call.Out(1);
  const Operand cosine = call.In(2), sine = call.In(3);
  int64_t mode = 0;
  if (named_mode) {
    const std::string name = call.Text(5);
    if (name != "half" && name != "interleave" && name != "quarter") {
      call.RejectArg(5, "must be \"half\", \"interleave\" or \"quarter\"");
    }
    mode = name == "half" ? 0 : name == "interleave" ? 1 : 2;
  }
  for (int i : {0, 1}) {
    const Operand x = call.In(i);
    if (x.dim() == 0 || x.sizes().back() % (mode == 2 ? 4 : 2) != 0) {
      call.RejectArg(i, "has a last dim that cannot be rotated");
    }
    ExpectAngles(call, {2, 3}, x);
  }
  const Operand q = call.In(0), k = call.In(1);
  return MakeKernel([=] {
    const Tensor c = cosine(), s = sine();
    const Rotated of_query = Rotate(q(), mode), of_key = Rotate(k(), mode);
    query.copy_(of_query.straight * c + of_query.turned * s);
    key.copy_(of_key.straight * c + of_key.turned * s);
  });
}

// (x, gx, beta, gamma, alpha, epsilon, mean, rstd, y): the layer norm of alpha * x + gx
std::unique_ptr<Kernel> BindDeepNorm(const Call& call) {
  const Operand x = call.In(0), gx = call.In(1), beta = call.In(2), gamma = call.In(3);
  const double alpha = call.Real(4), epsilon = call.Real(5);
  call.ExpectSizes(1, gx.view(), x.sizes());
  NormalizedDims(call, 3, x, gamma);
  call.ExpectSizes(2, beta.view(), gamma.sizes());
  const Tensor mean = call.Out(6), rstd = call.Out(7), y = call.Out(8);
  ExpectRows(call, 6, mean, x, gamma);
  ExpectRows(call, 7, rstd, x, gamma);
  call.ExpectSizes(8, y, x.sizes());
  return MakeKernel([=] {
    const auto result =
        at::native_layer_norm(x() * alpha + gx(), gamma.sizes(), gamma(), beta(), epsilon);
    y.copy_(std::get<0>(result));
    CopyResult(mean, std::get<1>(result));
    CopyResult(rstd, std::get<2>(result));
  });
}

// (dy, x, gx, gamma, mean, rstd, alpha, dx, dgx, dbeta, dgamma)
std::unique_ptr<Kernel> BindDeepNormGrad(const Call& call) {
  const Operand dy = call.In(0), x = call.In(1), gx = call.In(2), gamma = call.In(3);
  const Operand mean = call.In(4), rstd = call.In(5);
  const double alpha = call.Real(6);
  for (int i : {0, 2}) call.ExpectSizes(i, call.View(i), x.sizes());
  NormalizedDims(call, 3, x, gamma);
  ExpectRows(call, 4, mean.view(), x, gamma);
  ExpectRows(call, 5, rstd.view(), x, gamma);
  const Tensor dx = call.Out(7), dgx = call.Out(8), dbeta = call.Out(9), dgamma = call.Out(10);
  for (int i : {7, 8}) call.ExpectSizes(i, call.View(i), x.sizes());
  for (int i : {9, 10}) call.ExpectSizes(i, call.View(i), gamma.sizes());
  return MakeKernel([=] {
    const auto result =
        at::native_layer_norm_backward(dy(), x() * alpha + gx(), gamma.sizes(), mean(), rstd(),
                                       gamma(), at::zeros_like(gamma()), {true, true, true});
    dx.copy_(std::get<0>(result) * alpha);
    dgx.copy_(std::get<0>(result));
    dgamma.copy_(std::get<1>(result));
    dbeta.copy_(std::get<2>(result));
  });
}

// The mask of a scaled masked softmax: given, or all above the diagonal.
Tensor SoftmaxMask(const Tensor& mask, const Tensor& x, bool triangle) {
  if (!triangle) return mask.to(at::kBool);
  return at::ones({x.size(-2), x.size(-1)}, at::TensorOptions(at::kBool)).triu(1);
}

void ExpectSoftmaxMask(const Call& call, int i, const Operand& x, bool triangle) {
  if (x.dim() < 2) call.RejectArg(0, "has less than 2 dims");
  const Tensor mask = call.View(i);
  if (!triangle && call.Broadcast({mask.sizes(), x.sizes()}) != x.sizes().vec()) {
    call.RejectArg(i, "has shape " + SizesText(mask.sizes()) + ", which does not broadcast to " +
                          SizesText(x.sizes()));
  }
}

// (x, mask, scale, fixedTriuMask, y)
std::unique_ptr<Kernel> BindScaledMaskedSoftmax(const Call& call) {
  constexpr double kLeftOut = -10000;  // added by the operator in place of a left out score
  const Operand x = call.In(0);
  ExpectFloats(call, 0, x.view());
  const double scale = call.Real(2);
  const bool triangle = call.Bool(3);
  ExpectSoftmaxMask(call, 1, x, triangle);
  const Tensor mask = call.View(1);
  return BindWhole(call, 4, x.sizes(), [=] {
    const Tensor input = x();
    const Tensor scores = (input * scale).masked_fill(SoftmaxMask(mask, input, triangle), kLeftOut);
    return at::softmax(scores, -1);
  });
}

// (gradOutput, y, mask, scale, fixTriuMask, out)
std::unique_ptr<Kernel> BindScaledMaskedSoftmaxGrad(const Call& call) {
  const Operand gradient = call.In(0), y = call.In(1);
  ExpectFloats(call, 1, y.view());
  call.ExpectSizes(0, gradient.view(), y.sizes());
  const double scale = call.Real(3);
  const bool triangle = call.Bool(4);
  ExpectSoftmaxMask(call, 2, y, triangle);
  const Tensor mask = call.View(2);
  return BindWhole(call, 5, y.sizes(), [=] {
    const Tensor weights = y(), product = gradient() * weights;
    const Tensor of_scores = product - weights * product.sum(-1, /*keepdim=*/true);
    return of_scores.masked_fill(SoftmaxMask(mask, weights, triangle), 0) * scale;
  });
}

}  // namespace

KernelRows TransformerRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnRmsNorm", BindRmsNorm, kBoth, {4}},
      {"aclnnAddRmsNorm", BindAddRmsNorm, kBoth},
      {"aclnnAddRmsNormBias", BindAddRmsNormBias, kBoth},
      {"aclnnRmsNormGrad", BindRmsNormGrad, kBoth},
      {"aclnnSwiGlu", BindSwiGlu, kBoth},
      {"aclnnSwiGluGrad", BindSwiGluGrad, kBoth},
      {"aclnnRotaryPositionEmbedding", [](const Call& call) { return BindRotary(call, 4); }, kBoth},
      {"aclnnRotaryPositionEmbeddingV2",
       [](const Call& call) { return BindRotary(call, 5); },
       kBoth,
       {4}},
      {"aclnnInterleaveRope", BindInterleaveRope, kBoth},
      {"aclnnRotaryPositionEmbeddingGrad", BindRotaryGrad, kBoth, {6, 7}},
      {"aclnnApplyRotaryPosEmb", [](const Call& call) { return BindApplyRotary(call, false); },
       kBoth},
      {"aclnnApplyRotaryPosEmbV2", [](const Call& call) { return BindApplyRotary(call, true); },
       kBoth},
      {"aclnnDeepNorm", BindDeepNorm, kBoth},
      {"aclnnDeepNormGrad", BindDeepNormGrad, kBoth},
      {"aclnnScaledMaskedSoftmax", BindScaledMaskedSoftmax, kBoth},
      {"aclnnScaledMaskedSoftmaxBackward", BindScaledMaskedSoftmaxGrad, kBoth},
  };
}

}  // namespace acltape::opapi
