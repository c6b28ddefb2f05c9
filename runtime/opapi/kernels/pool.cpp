// Pooling and resampling of images.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

std::vector<int64_t> Pair(const Call& call, int i, const std::vector<int64_t>& otherwise) {
  std::vector<int64_t> values = call.Ints(i);
  if (values.empty()) return otherwise;
  if (values.size() == 1) values.push_back(values[0]);
  if (values.size() != 2) call.RejectArg(i, "must have 1 or 2 entries");
  return values;
}

struct Window {
  std::vector<int64_t> kernel, stride, padding, dilation;
  bool ceil;
};

void CheckImage(const Call& call, int i, const Operand& image) {
  if (image.dim() != 3 && image.dim() != 4) call.RejectArg(i, "must have 3 or 4 dims");
}

void CheckWindow(const Call& call, const Window& window, int first) {
  for (int i = 0; i < 2; ++i) {
    if (window.kernel[i] < 1 || window.stride[i] < 1 || window.dilation[i] < 1) {
      call.RejectArg(first, "or its strides or dilations are not positive");
    }
    if (window.padding[i] < 0 || 2 * window.padding[i] > window.kernel[i]) {
      call.RejectArg(first + 2, "must be between 0 and half the kernel");
    }
  }
}

// The number of windows along each spatial dim; a last window must start inside the padded input.
std::vector<int64_t> WindowSizes(const Window& window, at::IntArrayRef input) {
  std::vector<int64_t> sizes = input.vec();
  for (int i = 0; i < 2; ++i) {
    int64_t& size = sizes[sizes.size() - 2 + i];
    const int64_t reach = window.dilation[i] * (window.kernel[i] - 1) + 1;
    const int64_t room = size + 2 * window.padding[i] - reach;
    int64_t count = (room + (window.ceil ? window.stride[i] - 1 : 0)) / window.stride[i] + 1;
    if (window.ceil && (count - 1) * window.stride[i] >= size + window.padding[i]) --count;
    size = count;
  }
  return sizes;
}

// (kernel, stride, padding, dilation, ceilMode) starting at `first`
Window ReadMaxWindow(const Call& call, int first) {
  Window window;
  window.kernel = Pair(call, first, {1, 1});
  window.stride = Pair(call, first + 1, window.kernel);
  window.padding = Pair(call, first + 2, {0, 0});
  window.dilation = Pair(call, first + 3, {1, 1});
  window.ceil = call.Bool(first + 4);
  CheckWindow(call, window, first);
  return window;
}

// (self, kernel, stride, padding, dilation, ceilMode, out, indices)
std::unique_ptr<Kernel> BindMaxPool(const Call& call) {
  const Operand self = call.In(0);
  CheckImage(call, 0, self);
  const Window window = ReadMaxWindow(call, 1);
  const Tensor out = call.Out(6), indices = call.Out(7);
  const std::vector<int64_t> sizes = WindowSizes(window, self.sizes());
  call.ExpectSizes(6, out, sizes);
  call.ExpectSizes(7, indices, sizes);
  const std::array<Target, 2> targets{Target(out, self.dtype(), Access::kFree, {&self.view()}),
                                      Target(indices, at::kLong, Access::kFree, {&self.view()})};
  return MakeKernel([=] {
    WriteAll(targets, [&](std::array<Tensor, 2>& results) {
      f::max_pool2d_with_indices_out(results[0], results[1], self(), window.kernel, window.stride,
                                     window.padding, window.dilation, window.ceil);
    });
  });
}

// (gradOutput, self, indices, kernel, stride, padding, dilation, ceilMode, gradInput)
std::unique_ptr<Kernel> BindMaxPoolBackward(const Call& call) {
  const Operand gradient = call.In(0), self = call.In(1);
  const Tensor indices = call.View(2);
  CheckImage(call, 1, self);
  call.ExpectIndex(2, indices);
  const Window window = ReadMaxWindow(call, 3);
  const Tensor out = call.Out(8);
  call.ExpectSizes(0, gradient.view(), WindowSizes(window, self.sizes()));
  call.ExpectSizes(2, indices, gradient.sizes());
  call.ExpectSizes(8, out, self.sizes());
  Target target(out, gradient.dtype(), Access::kFree, {&gradient.view(), &self.view(), &indices});
  return MakeKernel([=] {
    target.Write([&](Tensor& result) {
      f::max_pool2d_with_indices_backward_out(result, gradient(), self(), window.kernel,
                                              window.stride, window.padding, window.dilation,
                                              window.ceil, indices.to(at::kLong));
    });
  });
}

struct AverageWindow : Window {
  bool count_padding;
  c10::optional<int64_t> divisor;
};

// (kernel, strides, paddings, ceilMode, countIncludePad, divisorOverride) starting at `first`
AverageWindow ReadAverageWindow(const Call& call, int first) {
  AverageWindow window;
  window.kernel = Pair(call, first, {1, 1});
  window.stride = Pair(call, first + 1, window.kernel);
  window.padding = Pair(call, first + 2, {0, 0});
  window.dilation = {1, 1};
  window.ceil = call.Bool(first + 3);
  window.count_padding = call.Bool(first + 4);
  if (call.Int(first + 5) != 0) window.divisor = call.Int(first + 5);
  CheckWindow(call, window, first);
  return window;
}

// (self, kernel, strides, paddings, ceilMode, countIncludePad, divisorOverride, cubeMathType, out)
std::unique_ptr<Kernel> BindAvgPool(const Call& call) {
  const Operand self = call.In(0);
  CheckImage(call, 0, self);
  const AverageWindow window = ReadAverageWindow(call, 1);
  const Tensor out = call.Out(8);
  call.ExpectSizes(8, out, WindowSizes(window, self.sizes()));
  Target target(out, self.dtype(), Access::kFree, {&self.view()});
  return MakeKernel([=] {
    target.Write([&](Tensor& result) {
      f::avg_pool2d_out(result, self(), window.kernel, window.stride, window.padding, window.ceil,
                        window.count_padding, window.divisor);
    });
  });
}

// (gradOutput, self, kernel, stride, padding, ceilMode, countIncludePad, divisorOverride,
// cubeMathType, gradInput)
std::unique_ptr<Kernel> BindAvgPoolBackward(const Call& call) {
  const Operand gradient = call.In(0), self = call.In(1);
  CheckImage(call, 1, self);
  const AverageWindow window = ReadAverageWindow(call, 2);
  const Tensor out = call.Out(9);
  call.ExpectSizes(0, gradient.view(), WindowSizes(window, self.sizes()));
  call.ExpectSizes(9, out, self.sizes());
  Target target(out, gradient.dtype(), Access::kFree, {&gradient.view(), &self.view()});
  return MakeKernel([=] {
    target.Write([&](Tensor& result) {
      f::avg_pool2d_backward_out(result, gradient(), self(), window.kernel, window.stride,
                                 window.padding, window.ceil, window.count_padding, window.divisor);
    });
  });
}

// The image's sizes with other spatial ones.
std::vector<int64_t> Resized(const Operand& image, const std::vector<int64_t>& spatial) {
  std::vector<int64_t> sizes = image.sizes().vec();
  sizes[sizes.size() - 2] = spatial[0];
  sizes[sizes.size() - 1] = spatial[1];
  return sizes;
}

// (self, outputSize, out)
std::unique_ptr<Kernel> BindAdaptiveAvgPool(const Call& call) {
  const Operand self = call.In(0);
  CheckImage(call, 0, self);
  const std::vector<int64_t> size = Pair(call, 1, {1, 1});
  const Tensor out = call.Out(2);
  call.ExpectSizes(2, out, Resized(self, size));
  return MakeKernel([=] { out.copy_(f::_adaptive_avg_pool2d(self(), size)); });
}

// (self, outputSize, out, indices)
std::unique_ptr<Kernel> BindAdaptiveMaxPool(const Call& call) {
  const Operand self = call.In(0);
  CheckImage(call, 0, self);
  const std::vector<int64_t> size = Pair(call, 1, {1, 1});
  const Tensor out = call.Out(2), indices = call.Out(3);
  call.ExpectSizes(2, out, Resized(self, size));
  call.ExpectSizes(3, indices, Resized(self, size));
  const std::array<Target, 2> targets{Target(out, self.dtype(), Access::kFree, {&self.view()}),
                                      Target(indices, at::kLong, Access::kFree, {&self.view()})};
  return MakeKernel([=] {
    WriteAll(targets, [&](std::array<Tensor, 2>& results) {
      f::adaptive_max_pool2d_out(results[0], results[1], self(), size);
    });
  });
}

// (gradOutput, self, out)
std::unique_ptr<Kernel> BindAdaptiveAvgPoolBackward(const Call& call) {
  const Operand gradient = call.In(0), self = call.In(1);
  CheckImage(call, 1, self);
  const Tensor out = call.Out(2);
  call.ExpectSizes(2, out, self.sizes());
  return MakeKernel([=] { out.copy_(f::_adaptive_avg_pool2d_backward(gradient(), self())); });
}

// (self, outputSize, out)
std::unique_ptr<Kernel> BindNearest(const Call& call) {
  const Operand self = call.In(0);
  call.ExpectRank(0, self.view(), 4);
  const std::vector<int64_t> size = Pair(call, 1, {1, 1});
  const Tensor out = call.Out(2);
  call.ExpectSizes(2, out, Resized(self, size));
  Target target(out, self.dtype(), Access::kFree, {&self.view()});
  return MakeKernel([=] {
    target.Write([&](Tensor& result) { f::upsample_nearest2d_out(result, self(), size); });
  });
}

// (self, outputSize, alignCorners, scalesH, scalesW, out); a scale of 0 is derived from the sizes.
std::unique_ptr<Kernel> BindBilinear(const Call& call) {
  const Operand self = call.In(0);
  call.ExpectRank(0, self.view(), 4);
  const std::vector<int64_t> size = Pair(call, 1, {1, 1});
  const bool align = call.Bool(2);
  const auto scale = [&](int i) {
    return call.Real(i) == 0 ? c10::optional<double>() : c10::optional<double>(call.Real(i));
  };
  const c10::optional<double> height = scale(3), width = scale(4);
  const Tensor out = call.Out(5);
  call.ExpectSizes(5, out, Resized(self, size));
  Target target(out, self.dtype(), Access::kFree, {&self.view()});
  return MakeKernel([=] {
    target.Write([&](Tensor& result) {
      f::upsample_bilinear2d_out(result, self(), size, align, height, width);
    });
  });
}

}  // namespace

KernelRows PoolRows() {
  constexpr Widen kHalf = Widen::kHalf;
  return {
      {"aclnnMaxPool2dWithIndices", BindMaxPool, kHalf},
      {"aclnnMaxPool2dWithIndicesBackward", BindMaxPoolBackward, kHalf},
      {"aclnnAvgPool2d", BindAvgPool, kHalf},
      {"aclnnAvgPool2dBackward", BindAvgPoolBackward, kHalf},
      {"aclnnAdaptiveAvgPool2d", BindAdaptiveAvgPool, kHalf},
      {"aclnnAdaptiveMaxPool2d", BindAdaptiveMaxPool, kHalf},
      {"aclnnAdaptiveAvgPool2dBackward", BindAdaptiveAvgPoolBackward, kHalf},
      {"aclnnUpsampleNearest2d", BindNearest, kHalf},
      {"aclnnUpsampleBilinear2d", BindBilinear, kHalf},
  };
}

}  // namespace acltape::opapi
