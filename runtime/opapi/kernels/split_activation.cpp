// Activations that multiply an activation of one half of a tensor by the other half, and their
// gradients.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The cut of a tensor in two along a dim.
struct HalvesOf {
  int64_t dim, half;
  std::vector<int64_t> sizes;  // those of one half

  Tensor Left(const Tensor& tensor) const { return tensor.narrow(dim, 0, half); }
  Tensor Right(const Tensor& tensor) const { return tensor.narrow(dim, half, half); }
};

// Reads the halves of argument `i` along `dim`.
HalvesOf CutInHalves(const Call& call, int i, const Operand& operand, int64_t dim) {
  ExpectFloats(call, i, operand.view());
  std::vector<int64_t> sizes = operand.sizes().vec();
  if (sizes.empty() || sizes[dim] % 2 != 0) call.RejectArg(i, "cannot be split in halves");
  const int64_t half = sizes[dim] /= 2;
  return {dim, half, sizes};
}

const char* GeluNameOf(const Call& call, int i) {
  const int64_t approximate = call.Int(i);
  if (approximate != 0 && approximate != 1) call.RejectArg(i, "must be 0 (erf) or 1 (tanh)");
  return approximate == 1 ? "tanh" : "none";
}

// (self, dim, approximate, out, outGelu), with activateLeft in front of the outputs if `chosen`:
// one half times the gelu of the other, which is the right one unless the caller chooses.
Binder GeGluOf(bool chosen) {
  return [chosen](const Call& call) {
    const Operand self = call.In(0);
    const HalvesOf halves = CutInHalves(call, 0, self, call.Dim(1, self.dim()));
    const char* approximate = GeluNameOf(call, 2);
    const bool left = chosen && call.Bool(3);
    const int first = chosen ? 4 : 3;
    const Tensor out = call.Out(first), activated = call.Out(first + 1);
    for (int i : {first, first + 1}) call.ExpectSizes(i, call.View(i), halves.sizes);
    return MakeKernel([=] {
      const Tensor input = self();
      const Tensor a = halves.Left(input), b = halves.Right(input);
      const Tensor gelu = at::gelu(left ? a : b, approximate);
      const Tensor product = gelu * (left ? b : a);
      activated.copy_(gelu);
      out.copy_(product);
    });
  };
}

// (gradOutput, self, gelu, dim, approximate, gradInput), with activateLeft in front of the output
// if `chosen`. What the forward call gave as outGelu is not computed again.
Binder GeGluGradientOf(bool chosen) {
  return [chosen](const Call& call) {
    const Operand gradient = call.In(0), self = call.In(1), gelu = call.In(2);
    const HalvesOf halves = CutInHalves(call, 1, self, call.Dim(3, self.dim()));
    for (int i : {0, 2}) {
      call.ExpectSizes(i, call.View(i), halves.sizes);
      ExpectDtypes(call, i, call.View(i), {self.view().scalar_type()});
    }
    const char* approximate = GeluNameOf(call, 4);
    const bool left = chosen && call.Bool(5);
    return BindWhole(call, chosen ? 6 : 5, self.sizes(), [=] {
      const Tensor input = self(), given = gradient();
      const Tensor a = halves.Left(input), b = halves.Right(input);
      const Tensor of_other = given * gelu();
      const Tensor of_activated = at::gelu_backward((given * (left ? b : a)).contiguous(),
                                                    (left ? a : b).contiguous(), approximate);
      return left ? at::cat({of_activated, of_other}, halves.dim)
                  : at::cat({of_other, of_activated}, halves.dim);
    });
  };
}

// (input, approximate, out): the gelu of the left half times the right one. NULL stands for "none".
std::unique_ptr<Kernel> BindGeluMul(const Call& call) {
  const Operand input = call.In(0);
  const HalvesOf halves = CutInHalves(call, 0, input, std::max<int64_t>(input.dim(), 1) - 1);
  const std::string approximate = call.IsNull(1) ? "none" : call.Text(1);
  if (approximate != "none" && approximate != "tanh") {
    call.RejectArg(1, "must be \"none\" or \"tanh\"");
  }
  return BindWhole(call, 2, halves.sizes, [=] {
    const Tensor x = input();
    return at::gelu(halves.Left(x), approximate) * halves.Right(x);
  });
}

// (input, threshold, out): the left half, with 0 below the threshold, times the right one
std::unique_ptr<Kernel> BindFatreluMul(const Call& call) {
  const Operand input = call.In(0), threshold = call.In(1);
  const HalvesOf halves = CutInHalves(call, 0, input, std::max<int64_t>(input.dim(), 1) - 1);
  ExpectDtypes(call, 1, threshold.view(), {input.view().scalar_type()});
  if (threshold.view().numel() != 1) call.RejectArg(1, "must have one element");
  return BindWhole(call, 2, halves.sizes, [=] {
    const Tensor x = input(), left = halves.Left(x);
    const Tensor kept = at::where(left < threshold().reshape({}), at::zeros_like(left), left);
    return kept * halves.Right(x);
  });
}

// (x, groupIndex, dim, alpha, limit, bias, interleaved, out): a sigmoid(alpha a) (b + bias), where
// a is cut off above the limit and b on both sides. Interleaved halves take turns along the dims
// from dim on, which count as one.
std::unique_ptr<Kernel> BindClippedSwiglu(const Call& call) {
  const Operand x = call.In(0);
  // It is not documented what the rows after the groups hold.
  call.ExpectAbsent({1});
  const int64_t dim = call.Dim(2, x.dim());
  const double alpha = call.Real(3), limit = call.Real(4), bias = call.Real(5);
  const bool interleaved = call.Bool(6);
  const HalvesOf halves = CutInHalves(call, 0, x, dim);
  return BindWhole(call, 7, halves.sizes, [=] {
    const Tensor flat = x().flatten(dim);
    const int64_t half = flat.size(dim) / 2;
    const Tensor left =
        interleaved ? flat.slice(dim, 0, c10::nullopt, 2) : flat.narrow(dim, 0, half);
    const Tensor right =
        interleaved ? flat.slice(dim, 1, c10::nullopt, 2) : flat.narrow(dim, half, half);
    const Tensor a = left.clamp_max(limit), b = right.clamp(-limit, limit);
    return (a * at::sigmoid(a * alpha) * (b + bias)).view(halves.sizes);
  });
}

// (gradY, x, groupIndex, dim, alpha, limit, bias, interleaved, gradX): numbers beyond the limits
// have no gradient. The vendor's page is aclnnClippedSwigluGrad.
std::unique_ptr<Kernel> BindClippedSwigluGrad(const Call& call) {
  const Operand gradient = call.In(0), x = call.In(1);
  // As in the forward call.
  call.ExpectAbsent({2});
  const int64_t dim = call.Dim(3, x.dim());
  const double alpha = call.Real(4), limit = call.Real(5), bias = call.Real(6);
  const bool interleaved = call.Bool(7);
  if (!(limit > 0)) call.RejectArg(5, "must be positive");
  const HalvesOf halves = CutInHalves(call, 1, x, dim);
  ExpectDtypes(call, 0, gradient.view(), {x.view().scalar_type()});
  call.ExpectSizes(0, gradient.view(), halves.sizes);
  return BindWhole(call, 8, x.sizes(), [=] {
    const Tensor flat = x().flatten(dim), given = gradient().flatten(dim);
    const int64_t half = flat.size(dim) / 2;
    const Tensor result = at::empty_like(flat, at::MemoryFormat::Contiguous);
    const auto part = [&](const Tensor& tensor, bool first) {
      return interleaved ? tensor.slice(dim, first ? 0 : 1, c10::nullopt, 2)
                         : tensor.narrow(dim, first ? 0 : half, half);
    };
    const Tensor left = part(flat, true), right = part(flat, false);
    const Tensor a = left.clamp_max(limit), b = right.clamp(-limit, limit);
    const Tensor gate = at::sigmoid(a * alpha);
    const Tensor of_left = given * (b + bias) * gate * (a * alpha * (1 - gate) + 1);
    part(result, true).copy_(of_left.masked_fill(left.gt(limit), 0));
    part(result, false).copy_((given * a * gate).masked_fill(right.abs().gt(limit), 0));
    return result.view(x.sizes());
  });
}

// The numbers of an activation by hyperbolic tangents: beta tanh(gate / beta) sigmoid(gate) times
// the other half, which linearBeta bounds in the same way where it is positive. The vendor's pages
// are aclnnSituGlu and aclnnSituGluGrad.
struct SituNumbers {
  double beta, linear_beta;
  bool gate_left;
};

// (x, dim, beta, linearBeta, activateLeft, out)
std::unique_ptr<Kernel> BindSituGlu(const Call& call) {
  const Operand x = call.In(0);
  const HalvesOf halves = CutInHalves(call, 0, x, call.Dim(1, x.dim()));
  const SituNumbers numbers = {call.Real(2), call.Real(3), call.Bool(4)};
  if (numbers.beta == 0) call.RejectArg(2, "must not be 0");
  return BindWhole(call, 5, halves.sizes, [=] {
    const Tensor input = x();
    const Tensor gate = numbers.gate_left ? halves.Left(input) : halves.Right(input);
    Tensor other = numbers.gate_left ? halves.Right(input) : halves.Left(input);
    if (numbers.linear_beta > 0) {
      other = at::tanh(other / numbers.linear_beta) * numbers.linear_beta;
    }
    return at::tanh(gate / numbers.beta) * numbers.beta * at::sigmoid(gate) * other;
  });
}

// (gradY, x, dim, beta, linearBeta, activateLeft, out)
std::unique_ptr<Kernel> BindSituGluGrad(const Call& call) {
  const Operand gradient = call.In(0), x = call.In(1);
  const HalvesOf halves = CutInHalves(call, 1, x, call.Dim(2, x.dim()));
  const SituNumbers numbers = {call.Real(3), call.Real(4), call.Bool(5)};
  if (numbers.beta == 0) call.RejectArg(3, "must not be 0");
  ExpectDtypes(call, 0, gradient.view(), {x.view().scalar_type()});
  call.ExpectSizes(0, gradient.view(), halves.sizes);
  return BindWhole(call, 6, x.sizes(), [=] {
    const Tensor input = x(), given = gradient();
    const Tensor gate = numbers.gate_left ? halves.Left(input) : halves.Right(input);
    const Tensor other = numbers.gate_left ? halves.Right(input) : halves.Left(input);
    const Tensor t = at::tanh(gate / numbers.beta), s = at::sigmoid(gate);
    Tensor bounded = other, of_other = given * t * s * numbers.beta;
    if (numbers.linear_beta > 0) {
      const Tensor bend = at::tanh(other / numbers.linear_beta);
      bounded = bend * numbers.linear_beta;
      of_other = of_other * (1 - bend * bend);
    }
    const Tensor of_gate = given * bounded * s * (1 - t * t + t * (1 - s) * numbers.beta);
    return numbers.gate_left ? at::cat({of_gate, of_other}, halves.dim)
                             : at::cat({of_other, of_gate}, halves.dim);
  });
}

}  // namespace

KernelRows SplitActivationRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnGeGlu", GeGluOf(false), kBoth},
      {"aclnnGeGluV3", GeGluOf(true), kBoth},
      {"aclnnGeGluBackward", GeGluGradientOf(false), kBoth},
      {"aclnnGeGluV3Backward", GeGluGradientOf(true), kBoth},
      {"aclnnGeluMul", BindGeluMul, kBoth, {1}},
      {"aclnnFatreluMul", BindFatreluMul, kBoth},
      {"aclnnClippedSwiglu", BindClippedSwiglu, kBoth},
      {"aclnnClippedSwigluGrad", BindClippedSwigluGrad, kBoth},
      {"aclnnSituGlu", BindSituGlu, kBoth},
      {"aclnnSituGluGrad", BindSituGluGrad, kBoth},
  };
}

}  // namespace acltape::opapi
