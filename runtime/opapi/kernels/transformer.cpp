// Fused operators of transformers. Half and bfloat16 are computed in float32 and rounded once.
#include <ATen/ATen.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The dims that gamma covers, counted from the end.
std::vector<int64_t> NormalizedDims(const Call& call, int gamma_index, const Operand& x,
                                    const Operand& gamma) {
  const int64_t leading = x.dim() - gamma.dim();
  if (gamma.dim() == 0 || leading < 0 || x.sizes().slice(leading) != gamma.sizes()) {
    call.RejectArg(gamma_index, "has shape " + SizesText(gamma.sizes()) +
                                    ", which does not end the shape " + SizesText(x.sizes()));
  }
  std::vector<int64_t> dims;
  for (int64_t i = leading; i < x.dim(); ++i) dims.push_back(i);
  return dims;
}

void ExpectRows(const Call& call, int i, const Tensor& rstd, const Operand& x,
                const Operand& gamma) {
  const int64_t width = gamma.view().numel();
  if (rstd.defined() && width > 0 && rstd.numel() != x.view().numel() / width) {
    call.RejectArg(i, "has shape " + SizesText(rstd.sizes()) + ", expected one element a row");
  }
}

Tensor InverseRms(const Tensor& x, const std::vector<int64_t>& dims, double epsilon) {
  return x.pow(2).mean(dims, /*keepdim=*/true).add(epsilon).rsqrt();
}

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

// (x1, x2, gamma, epsilon, y, rstd?, x?)
std::unique_ptr<Kernel> BindAddRmsNorm(const Call& call) {
  const Operand x1 = call.In(0), x2 = call.In(1), gamma = call.In(2);
  const double epsilon = call.Real(3);
  const Tensor y = call.Out(4), rstd = call.OptionalOut(5), sum = call.OptionalOut(6);
  call.ExpectSizes(1, x2.view(), x1.sizes());
  const std::vector<int64_t> dims = NormalizedDims(call, 2, x1, gamma);
  call.ExpectSizes(4, y, x1.sizes());
  ExpectRows(call, 5, rstd, x1, gamma);
  if (sum.defined()) call.ExpectSizes(6, sum, x1.sizes());
  return MakeKernel([=] {
    const Tensor input = x1() + x2(), inverse = InverseRms(input, dims, epsilon);
    const Tensor result = input * inverse * gamma();
    CopyResult(sum, input);
    CopyResult(rstd, inverse);
    y.copy_(result);
  });
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

// (x, cos, sin, mode, out): x*cos + rotated(x)*sin, rotating halves (mode 0) or interleaved pairs
// (1).
std::unique_ptr<Kernel> BindRotary(const Call& call) {
  const Operand x = call.In(0), cosine = call.In(1), sine = call.In(2);
  const int64_t mode = call.Int(3);
  if (mode != 0 && mode != 1) call.RejectArg(3, "must be 0 (halves) or 1 (interleaved pairs)");
  if (x.dim() == 0 || x.sizes().back() % 2 != 0) call.RejectArg(0, "has no even last dim");
  for (int i : {1, 2}) {
    if (call.Broadcast({call.View(i).sizes(), x.sizes()}) != x.sizes().vec()) {
      call.RejectArg(i, "has shape " + SizesText(call.View(i).sizes()) +
                            ", which does not broadcast to " + SizesText(x.sizes()));
    }
  }
  const Tensor out = call.Out(4);
  call.ExpectSizes(4, out, x.sizes());
  const int64_t width = x.sizes().back();
  return MakeKernel([=] {
    const Tensor input = x();
    Tensor rotated;
    if (mode == 0) {
      rotated =
          at::cat({-input.narrow(-1, width / 2, width / 2), input.narrow(-1, 0, width / 2)}, -1);
    } else {
      const Tensor even = input.slice(-1, 0, width, 2), odd = input.slice(-1, 1, width, 2);
      rotated = at::stack({-odd, even}, -1).flatten(-2);
    }
    out.copy_(input * cosine() + rotated * sine());
  });
}

}  // namespace

KernelRows TransformerRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnRmsNorm", BindRmsNorm, kBoth, {4}},
      {"aclnnAddRmsNorm", BindAddRmsNorm, kBoth},
      {"aclnnRmsNormGrad", BindRmsNormGrad, kBoth},
      {"aclnnSwiGlu", BindSwiGlu, kBoth},
      {"aclnnSwiGluGrad", BindSwiGluGrad, kBoth},
      {"aclnnRotaryPositionEmbedding", BindRotary, kBoth},
  };
}

}  // namespace acltape::opapi
