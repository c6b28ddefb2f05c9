// Activations and softmax, forward and backward.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/kernels/elementwise.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

auto Relu(const Call& call) {
  if (call.View(0).scalar_type() == at::kBool) call.RejectArg(0, "is a bool tensor");
  return [](Tensor& out, const Tensor& self) { f::clamp_min_out(out, self, 0); };
}

// The operators spell the approximation in three ways: by name, by number, by string.
void GeluTanh(Tensor& out, const Tensor& self) { f::gelu_out(out, self, "tanh"); }

auto GeluNumbered(const Call& call) {
  const int64_t approximate = call.Int(1);
  if (approximate != 0 && approximate != 1) call.RejectArg(1, "must be 0 (erf) or 1 (tanh)");
  return IntoDense([approximate](Tensor& out, const Tensor& self) {
    f::gelu_out(out, self, approximate == 1 ? "tanh" : "none");
  });
}

void GeluBackwardTanh(Tensor& out, const Tensor& gradient, const Tensor& self) {
  f::gelu_backward_out(out, gradient, self, "tanh");
}

auto GeluBackwardNamed(const Call& call) {
  const std::string approximate = call.Text(2);
  if (approximate != "none" && approximate != "tanh") {
    call.RejectArg(2, "must be \"none\" or \"tanh\"");
  }
  // The erf form runs in a library that libtorch calls, which knows dense tensors only.
  return IntoDense([approximate](Tensor& out, const Tensor& gradient, const Tensor& self) {
    f::gelu_backward_out(out, gradient, self, approximate);
  });
}

auto Hardshrink(const Call& call) {
  return [bound = call.Number(1)](Tensor& out, const Tensor& self) {
    f::hardshrink_out(out, self, bound);
  };
}

auto HardshrinkBackward(const Call& call) {
  return [bound = call.Number(2)](Tensor& out, const Tensor& gradient, const Tensor& self) {
    f::hardshrink_backward_out(out, gradient, self, bound);
  };
}

at::Scalar ShrinkBound(const Call& call, int i) {
  const at::Scalar bound = call.Number(i);
  if (bound.toDouble() < 0) call.RejectArg(i, "is negative");
  return bound;
}

auto Softshrink(const Call& call) {
  return [bound = ShrinkBound(call, 1)](Tensor& out, const Tensor& self) {
    f::softshrink_out(out, self, bound);
  };
}

auto SoftshrinkBackward(const Call& call) {
  return [bound = ShrinkBound(call, 2)](Tensor& out, const Tensor& gradient, const Tensor& self) {
    f::softshrink_backward_out(out, gradient, self, bound);
  };
}

// x sigmoid(1.702 x)
void FastGelu(Tensor& out, const Tensor& self) {
  const Tensor result = self * at::sigmoid(self * 1.702);
  out.resize_(result.sizes()).copy_(result);
}

void FastGeluBackward(Tensor& out, const Tensor& gradient, const Tensor& self) {
  const Tensor s = at::sigmoid(self * 1.702);
  const Tensor result = gradient * (s + self * 1.702 * s * (1 - s));
  out.resize_(result.sizes()).copy_(result);
}

// NULL stands for 1.
double SwishBeta(const Call& call, int i) {
  const c10::optional<at::Scalar> beta = call.OptionalNumber(i);
  return beta ? beta->toDouble() : 1.0;
}

// x sigmoid(beta x)
auto Swish(const Call& call) {
  return [beta = SwishBeta(call, 1)](Tensor& out, const Tensor& self) {
    const Tensor result = self * at::sigmoid(self * beta);
    out.resize_(result.sizes()).copy_(result);
  };
}

auto SwishBackward(const Call& call) {
  call.ExpectSizes(0, call.View(0), call.View(1).sizes());
  return [beta = SwishBeta(call, 2)](Tensor& out, const Tensor& gradient, const Tensor& self) {
    const Tensor s = at::sigmoid(self * beta);
    const Tensor result = gradient * (s + self * beta * s * (1 - s));
    out.resize_(result.sizes()).copy_(result);
  };
}

void SquaredRelu(Tensor& out, const Tensor& self) {
  const Tensor positive = at::relu(self);
  const Tensor result = positive * positive;
  out.resize_(result.sizes()).copy_(result);
}

auto Heaviside(const Call& call) {
  if (call.View(0).scalar_type() != call.View(1).scalar_type()) {
    call.RejectArg(1, "has another dtype than input");
  }
  return [](Tensor& out, const Tensor& input, const Tensor& values) {
    f::heaviside_out(out, input, values);
  };
}

// (self, lambd, bias): numbers beyond lambd come nearer to 0 by the bias, others become 0.
auto Shrink(const Call& call) {
  const double bound = ShrinkBound(call, 1).toDouble(), bias = call.Number(2).toDouble();
  return [=](Tensor& out, const Tensor& self) {
    const Tensor zero = at::zeros({}, self.options());
    const Tensor below = at::where(self < -bound, self + bias, zero);
    const Tensor result = at::where(self > bound, self - bias, below);
    out.resize_(result.sizes()).copy_(result);
  };
}

auto LeakyRelu(const Call& call) {
  return [slope = call.Number(1)](Tensor& out, const Tensor& self) {
    f::leaky_relu_out(out, self, slope);
  };
}

auto LeakyReluBackward(const Call& call) {
  return [slope = call.Number(2), is_result = call.Bool(3)](Tensor& out, const Tensor& gradient,
                                                            const Tensor& self) {
    f::leaky_relu_backward_out(out, gradient, self, slope, is_result);
  };
}

auto Elu(const Call& call) {
  return [alpha = call.Number(1), scale = call.Number(2), input_scale = call.Number(3)](
             Tensor& out, const Tensor& self) { f::elu_out(out, self, alpha, scale, input_scale); };
}

// elu with alpha and scale of their own; the input scale keeps x -> x*alpha below zero smooth.
void Selu(Tensor& out, const Tensor& self) {
  f::elu_out(out, self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1);
}

// (gradOutput, result): the gradient of selu from what selu gave
auto SeluBackward(const Call& call) {
  call.ExpectSizes(0, call.View(0), call.View(1).sizes());
  return [](Tensor& out, const Tensor& gradient, const Tensor& result) {
    f::elu_backward_out(out, gradient, 1.6732632423543772848170429916717,
                        1.0507009873554804934193349852946, 1, /*is_result=*/true, result);
  };
}

auto Celu(const Call& call) {
  const at::Scalar alpha = call.Number(1);
  if (alpha.to<double>() == 0) call.RejectArg(1, "must not be 0");
  return [alpha](Tensor& out, const Tensor& self) {
    f::elu_out(out, self, alpha, 1, 1.0 / alpha.to<double>());
  };
}

auto Hardtanh(const Call& call) {
  return [low = call.Number(1), high = call.Number(2)](Tensor& out, const Tensor& self) {
    f::hardtanh_out(out, self, low, high);
  };
}

auto HardtanhBackward(const Call& call) {
  return [low = call.Number(2), high = call.Number(3)](Tensor& out, const Tensor& gradient,
                                                       const Tensor& self) {
    f::hardtanh_backward_out(out, gradient, self, low, high);
  };
}

auto Softplus(const Call& call) {
  return [beta = call.Number(1), threshold = call.Number(2)](Tensor& out, const Tensor& self) {
    f::softplus_out(out, self, beta, threshold);
  };
}

auto SoftplusBackward(const Call& call) {
  return [beta = call.Number(2), threshold = call.Number(3)](Tensor& out, const Tensor& gradient,
                                                             const Tensor& self) {
    f::softplus_backward_out(out, gradient, self, beta, threshold);
  };
}

auto Threshold(const Call& call) {
  return [threshold = call.Number(1), value = call.Number(2)](Tensor& out, const Tensor& self) {
    f::threshold_out(out, self, threshold, value);
  };
}

auto ThresholdBackward(const Call& call) {
  return [threshold = call.Number(2)](Tensor& out, const Tensor& gradient, const Tensor& self) {
    f::threshold_backward_out(out, gradient, self, threshold);
  };
}

void LogSigmoid(Tensor& out, const Tensor& self) {
  Tensor buffer = at::empty({0}, self.options());
  f::log_sigmoid_forward_out(out, buffer, self);
}

std::unique_ptr<Kernel> BindEluBackward(const Call& call) {
  const at::Scalar alpha = call.Number(1), scale = call.Number(2), input_scale = call.Number(3);
  const bool is_result = call.Bool(4);
  return BindBinary(call, 6, call.Out(6), call.In(0), call.In(5), Promote::kUsual,
                    [=](Tensor& out, const Tensor& gradient, const Tensor& self) {
                      f::elu_backward_out(out, gradient, alpha, scale, input_scale, is_result,
                                          self);
                    });
}

// (self, out, buffer): the buffer is what the gradient needs.
std::unique_ptr<Kernel> BindLogSigmoidForward(const Call& call) {
  const Operand self = call.In(0);
  const Tensor out = call.Out(1), buffer = call.Out(2);
  call.ExpectSizes(1, out, self.sizes());
  return MakeKernel([=] {
    const auto result = f::log_sigmoid_forward(self());
    out.copy_(std::get<0>(result));
    // The library leaves it empty where it does not need one.
    if (buffer.sizes() == std::get<1>(result).sizes()) buffer.copy_(std::get<1>(result));
  });
}

// (gradOutput, self, buffer, gradInput): the vendor documents that the buffer is not read. What the
// library would keep in it is made again.
std::unique_ptr<Kernel> BindLogSigmoidBackward(const Call& call) {
  const Operand gradient = call.In(0), self = call.In(1);
  call.View(2);  // is a tensor all the same
  const Tensor out = call.Out(3);
  call.ExpectSizes(0, gradient.view(), self.sizes());
  call.ExpectSizes(3, out, self.sizes());
  return MakeKernel([=] {
    const Tensor input = self();
    const Tensor buffer = std::get<1>(f::log_sigmoid_forward(input));
    out.copy_(f::log_sigmoid_backward(gradient(), input, buffer));
  });
}

// A negative eps stands for none.
c10::optional<double> LogitEps(const Call& call, int i) {
  const double eps = call.Real(i);
  return eps < 0 ? c10::optional<double>() : c10::optional<double>(eps);
}

auto Logit(const Call& call) {
  return
      [eps = LogitEps(call, 1)](Tensor& out, const Tensor& self) { f::logit_out(out, self, eps); };
}

// (x, dy, eps, out)
auto LogitGrad(const Call& call) {
  return [eps = LogitEps(call, 2)](Tensor& out, const Tensor& self, const Tensor& gradient) {
    f::logit_backward_out(out, gradient, self, eps);
  };
}

// (gradOut, self, dim, out)
std::unique_ptr<Kernel> BindGluBackward(const Call& call) {
  const Operand gradient = call.In(0), self = call.In(1);
  const int64_t dim = call.Dim(2, self.dim());
  const Tensor out = call.Out(3);
  if (self.dim() == 0 || self.sizes()[dim] % 2 != 0) call.RejectArg(1, "has no even dim there");
  std::vector<int64_t> half = self.sizes().vec();
  half[dim] /= 2;
  call.ExpectSizes(0, gradient.view(), half);
  call.ExpectSizes(3, out, self.sizes());
  return MakeKernel([=] { out.copy_(f::glu_backward(gradient(), self(), dim)); });
}

// Prelu's weight has one element or one for each channel (dim 1) of self.
void CheckPreluWeight(const Call& call, int i, const Operand& self, const Operand& weight) {
  const int64_t channels = self.dim() > 1 ? self.sizes()[1] : 1;
  if (weight.view().numel() != 1 && weight.view().numel() != channels) {
    call.RejectArg(i, "must have one element or one per channel");
  }
}

// (self, weight, out)
std::unique_ptr<Kernel> BindPrelu(const Call& call) {
  const Operand self = call.In(0), weight = call.In(1);
  const Tensor out = call.Out(2);
  call.ExpectSizes(2, out, self.sizes());
  CheckPreluWeight(call, 1, self, weight);
  return MakeKernel([=] { out.copy_(at::prelu(self(), weight().reshape(-1))); });
}

// (gradOutput, self, weight, gradInput, gradWeight). The library's own form has other names and
// results in 1.13 and in 2.x.
std::unique_ptr<Kernel> BindPreluBackward(const Call& call) {
  const Operand gradient = call.In(0), self = call.In(1), weight = call.In(2);
  const Tensor out = call.Out(3), weight_out = call.Out(4);
  call.ExpectSizes(0, gradient.view(), self.sizes());
  call.ExpectSizes(3, out, self.sizes());
  CheckPreluWeight(call, 2, self, weight);
  if (weight_out.numel() != weight.view().numel()) {
    call.RejectArg(4, "must have as many elements as weight");
  }
  std::vector<int64_t> over(self.dim(), 1);  // the weight's shape beside self
  if (self.dim() > 1) over[1] = weight.view().numel();
  return MakeKernel([=] {
    const Tensor x = self(), given = gradient(), slope = weight().reshape(over);
    out.copy_(at::where(x > 0, given, slope * given));
    const Tensor each = at::where(x > 0, at::zeros_like(given), x * given);
    weight_out.copy_(each.sum_to_size(over).reshape(weight_out.sizes()));
  });
}

void HardswishBackward(Tensor& out, const Tensor& gradient, const Tensor& self) {
  const Tensor result = f::hardswish_backward(gradient, self);
  out.resize_(result.sizes()).copy_(result);
}

void MishBackward(Tensor& out, const Tensor& gradient, const Tensor& self) {
  const Tensor result = f::mish_backward(gradient, self);
  out.resize_(result.sizes()).copy_(result);
}

std::unique_ptr<Kernel> BindGlu(const Call& call) {
  const Operand self = call.In(0);
  const int64_t dim = call.Dim(1, self.dim());
  std::vector<int64_t> sizes = self.sizes().vec();
  if (sizes.empty() || sizes[dim] % 2 != 0) call.RejectArg(0, "cannot be split in halves");
  sizes[dim] /= 2;
  const Tensor out = call.Out(2);
  call.ExpectSizes(2, out, sizes);
  Target target(out, self.dtype(), Access::kFree, {&self.view()});
  return MakeKernel(
      [=] { target.Write([&](Tensor& result) { f::glu_out(result, self(), dim); }); });
}

// (self, dim, out)
template <typename Fn>
Binder AlongDim(Fn fn) {
  return [=](const Call& call) {
    const Operand self = call.In(0);
    if (!at::isFloatingType(self.dtype())) call.RejectArg(0, "has no floating dtype");
    const int64_t dim = call.Dim(1, self.dim());
    const Tensor out = call.Out(2);
    call.ExpectSizes(2, out, self.sizes());
    Target target(out, self.dtype(), Access::kFree, {&self.view()});
    return MakeKernel([=] {
      target.Write([&](Tensor& result) {
        Tensor scratch;
        IntoDense(fn)(result, self.Read(scratch), dim, false);
      });
    });
  };
}

// (x, attenMask?, relativePosBias, scale, innerPrecisionMode, out): softmax(scale * x + mask +
// bias) of windows, of which the mask has one for each place in the image and the bias one for each
// head
std::unique_ptr<Kernel> BindWindowSoftmax(const Call& call) {
  const Operand x = call.In(0), mask = call.OptionalIn(1), bias = call.In(2);
  if (!at::isFloatingType(x.dtype())) call.RejectArg(0, "has no floating dtype");
  if (x.dim() != 4 && x.dim() != 5) call.RejectArg(0, "must have 4 or 5 dims");
  const at::IntArrayRef sizes = x.sizes();
  const int64_t heads = sizes[x.dim() - 3], rows = sizes[x.dim() - 2], columns = sizes.back();
  for (int i : {1, 2}) {
    if (call.IsNull(i)) continue;
    if (call.View(i).scalar_type() != x.view().scalar_type()) {
      call.RejectArg(i, "has another dtype than x");
    }
  }
  // Each of both is [places, rows, columns] with dims of size 1 among or before these.
  const auto expect = [&](int i, int64_t places, std::vector<std::vector<int64_t>> forms) {
    const Tensor given = call.View(i);
    for (std::vector<int64_t>& form : forms) {
      std::replace(form.begin(), form.end(), int64_t{-1}, places);
      form.insert(form.end(), {rows, columns});
      if (given.sizes() == at::IntArrayRef(form)) return;
    }
    call.RejectArg(i, "has shape " + SizesText(given.sizes()) + ", which does not fit to x");
  };
  int64_t places = x.dim() == 5 ? sizes[1] : 1;
  if (mask.defined()) {
    const int64_t elements = rows * columns;
    if (x.dim() == 4 && elements > 0) places = mask.view().numel() / elements;
    if (x.dim() == 4 && (places < 1 || sizes[0] % places != 0)) {
      call.RejectArg(1, "does not divide the windows of x");
    }
    expect(1, places, {{-1}, {-1, 1}, {1, -1, 1}});
  }
  expect(2, heads, {{-1}, {1, -1}, {1, 1, -1}});
  const Tensor out = call.Out(5);
  call.ExpectSizes(5, out, sizes);
  const double scale = call.Real(3);
  const int64_t windows = x.dim() == 5 ? sizes[0] : sizes[0] / places;
  return MakeKernel([=] {
    Tensor scores = x().reshape({windows, places, heads, rows, columns}) * scale;
    if (mask.defined()) scores = scores + mask().reshape({places, 1, rows, columns});
    scores = scores + bias().reshape({heads, rows, columns});
    out.copy_(at::softmax(scores, -1).reshape(out.sizes()));
  });
}

// (gradOutput, output, dim, out)
template <typename Fn>
Binder BackwardAlongDim(Fn fn) {
  return [=](const Call& call) {
    const Operand gradient = call.In(0), output = call.In(1);
    if (gradient.dtype() != output.dtype()) {
      call.RejectArg(0, "has another dtype than " + std::string(call.Arg(1).name));
    }
    const int64_t dim = call.Dim(2, output.dim());
    const Tensor out = call.Out(3);
    call.ExpectSizes(0, gradient.view(), output.sizes());
    call.ExpectSizes(3, out, output.sizes());
    Target target(out, output.dtype(), Access::kFree, {&gradient.view(), &output.view()});
    return MakeKernel([=] {
      target.Write([&](Tensor& result) {
        IntoDense(fn)(result, gradient(), output(), dim, output.dtype());
      });
    });
  };
}

}  // namespace

KernelRows ActivationRows() {
  constexpr Widen kHalf = Widen::kHalf, kBoth = Widen::kHalfAndBfloat16;
  constexpr Promote kFloats = Promote::kFloatsOnly;
  return {
      {"aclnnRelu", kAlsoInPlace, UnaryWith(Relu, 1), kHalf},
      {"aclnnHardshrink", UnaryWith(Hardshrink, 2, kFloats), kHalf},
      {"aclnnHardshrinkBackward", BinaryWith(HardshrinkBackward, 3, kFloats), kHalf},
      {"aclnnSoftshrink", UnaryWith(Softshrink, 2, kFloats), kHalf},
      {"aclnnSoftshrinkBackward", BinaryWith(SoftshrinkBackward, 3, kFloats), kHalf},
      {"aclnnFastGelu", Unary(FastGelu, kFloats), kBoth},
      {"aclnnFastGeluV2", Unary(FastGelu, kFloats), kBoth},
      {"aclnnFastGeluBackward", Binary(FastGeluBackward, kFloats), kBoth},
      {"aclnnHardswishBackwardV2", Binary(HardswishBackward, kFloats), kHalf},
      {"aclnnGelu", Unary(GeluTanh, kFloats), kHalf},
      {"aclnnGeluV2", UnaryWith(GeluNumbered, 2, kFloats), kHalf},
      {"aclnnGeluBackward", Binary(GeluBackwardTanh, kFloats), kHalf},
      {"aclnnGeluBackwardV2", BinaryWith(GeluBackwardNamed, 3, kFloats), kHalf},
      {"aclnnSilu", Unary(f::silu_out, kFloats), kHalf},
      {"aclnnSiluBackward", Binary(f::silu_backward_out, kFloats), kHalf},
      {"aclnnSwish", UnaryWith(Swish, 2, kFloats), kBoth},
      {"aclnnSwishBackward", BinaryWith(SwishBackward, 3, kFloats), kBoth},
      {"aclnnSquaredRelu", Unary(SquaredRelu, kFloats), kBoth},
      {"aclnnHeaviside", BinaryWith(Heaviside, 2, kFloats)},
      {"aclnnShrink", UnaryWith(Shrink, 3, kFloats), kBoth},
      {"aclnnSeluBackward", BinaryWith(SeluBackward, 2, kFloats), kBoth},
      {"aclnnSigmoidBackward", Binary(f::sigmoid_backward_out, kFloats)},
      {"aclnnTanhBackward", Binary(f::tanh_backward_out, kFloats), kHalf},
      {"aclnnThreshold", kAlsoInPlace, UnaryWith(Threshold, 3), kHalf},
      {"aclnnThresholdBackward", BinaryWith(ThresholdBackward, 3), kHalf},
      {"aclnnLeakyRelu", kAlsoInPlace, UnaryWith(LeakyRelu, 2, kFloats), kHalf},
      {"aclnnLeakyReluBackward", BinaryWith(LeakyReluBackward, 4, kFloats), kHalf},
      {"aclnnElu", kAlsoInPlace, UnaryWith(Elu, 4, kFloats), kHalf},
      {"aclnnEluBackward", BindEluBackward, kHalf},
      {"aclnnSelu", kAlsoInPlace, Unary(Selu, kFloats), kHalf},
      {"aclnnCelu", kAlsoInPlace, UnaryWith(Celu, 2, kFloats), kHalf},
      {"aclnnHardsigmoid", kAlsoInPlace, Unary(f::hardsigmoid_out, kFloats), kHalf},
      {"aclnnHardsigmoidBackward", Binary(f::hardsigmoid_backward_out, kFloats), kHalf},
      {"aclnnHardswish", kAlsoInPlace, Unary(f::hardswish_out, kFloats), kHalf},
      {"aclnnHardswishBackward", Binary(HardswishBackward, kFloats), kHalf},
      {"aclnnHardtanh", kAlsoInPlace, UnaryWith(Hardtanh, 3), kHalf},
      {"aclnnHardtanhBackward", BinaryWith(HardtanhBackward, 4), kBoth},
      {"aclnnMishBackward", Binary(MishBackward, kFloats), kBoth},
      {"aclnnMish", kAlsoInPlace, Unary(f::mish_out, kFloats), kBoth},
      {"aclnnSoftplus", UnaryWith(Softplus, 3, kFloats), kHalf},
      {"aclnnSoftplusBackward", BinaryWith(SoftplusBackward, 4, kFloats), kHalf},
      {"aclnnLogSigmoid", Unary(LogSigmoid, kFloats), kHalf},
      {"aclnnGlu", BindGlu, kHalf},
      {"aclnnGluBackward", BindGluBackward, kHalf},
      {"aclnnLogSigmoidForward", BindLogSigmoidForward, kHalf},
      {"aclnnLogSigmoidBackward", BindLogSigmoidBackward, kHalf},
      {"aclnnPrelu", BindPrelu, kHalf},
      {"aclnnPreluBackward", BindPreluBackward, kBoth},
      {"aclnnLogit", UnaryWith(Logit, 2, Promote::kFloat), kHalf},
      {"aclnnLogitGrad", BinaryWith(LogitGrad, 3, kFloats), kHalf},
      {"aclnnSoftmax", AlongDim(f::_softmax_out), kHalf},
      {"aclnnMaskedSoftmaxWithRelPosBias", BindWindowSoftmax, kBoth},
      {"aclnnLogSoftmax", AlongDim(f::_log_softmax_out), kHalf},
      {"aclnnSoftmaxBackward", BackwardAlongDim(f::_softmax_backward_data_out), kHalf},
      {"aclnnLogSoftmaxBackward", BackwardAlongDim(f::_log_softmax_backward_data_out), kHalf},
  };
}

}  // namespace acltape::opapi
