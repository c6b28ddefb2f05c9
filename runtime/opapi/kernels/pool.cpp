// Pooling and resampling of images.
#include <ATen/CPUFunctions.h>

#include <limits>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/within.h"

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

int64_t PixelsOf(const Operand& image) {
  return image.sizes()[image.dim() - 2] * image.sizes()[image.dim() - 1];
}

// A gradient has the batch and the channels of the image.
void ExpectSamePlanes(const Call& call, int i, const Operand& gradient, const Operand& image) {
  const int64_t planes = image.dim() - 2;
  if (gradient.dim() != image.dim() ||
      gradient.sizes().slice(0, planes) != image.sizes().slice(0, planes)) {
    call.RejectArg(i, "has another batch or number of channels than self");
  }
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
      f::max_pool2d_with_indices_backward_out(
          result, gradient(), self(), window.kernel, window.stride, window.padding, window.dilation,
          window.ceil, Within(indices, PixelsOf(self), "indices"));
    });
  });
}

// --- Max pooling that says where its maxima lie by a packed mask: for each plane and each position
// in the window one row of bits, the lowest first, one bit per output: set where the maximum is
// there.

std::vector<int64_t> MaskSizes(const Window& window, const std::vector<int64_t>& out) {
  const int64_t outputs = out[out.size() - 2] * out[out.size() - 1];
  std::vector<int64_t> sizes(out.begin(), out.end() - 2);
  sizes.push_back(window.kernel[0] * window.kernel[1]);
  sizes.push_back(((outputs + 15) / 16 + 1) * 32);
  return sizes;
}

// Calls visit(plane, output, position, index) for every output: `position` counts the elements of
// the window, `index` the pixels of the input's plane. Positions outside of the image are left out.
template <typename Visit>
void VisitWindows(const Window& window, at::IntArrayRef image, at::IntArrayRef out, int64_t planes,
                  const Visit& visit) {
  const int64_t height = image[image.size() - 2], width = image.back();
  const int64_t rows = out[out.size() - 2], columns = out.back();
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t output = 0; output < rows * columns; ++output) {
      const int64_t top = output / columns * window.stride[0] - window.padding[0];
      const int64_t left = output % columns * window.stride[1] - window.padding[1];
      for (int64_t place = 0; place < window.kernel[0] * window.kernel[1]; ++place) {
        const int64_t y = top + place / window.kernel[1] * window.dilation[0];
        const int64_t x = left + place % window.kernel[1] * window.dilation[1];
        if (y < 0 || y >= height || x < 0 || x >= width) continue;
        visit(plane, output, place, y * width + x);
      }
    }
  }
}

int64_t Planes(at::IntArrayRef image) {
  int64_t planes = 1;
  for (size_t i = 0; i + 2 < image.size(); ++i) planes *= image[i];
  return planes;
}

Tensor PackMask(const Window& window, at::IntArrayRef image, const Tensor& indices,
                const std::vector<int64_t>& mask_sizes) {
  Tensor mask = at::zeros(mask_sizes, at::TensorOptions(at::kChar));
  const Tensor dense = indices.contiguous();
  const auto* chosen = dense.data_ptr<int64_t>();
  auto* bits = static_cast<uint8_t*>(mask.data_ptr());
  const int64_t row = mask_sizes.back(), positions = mask_sizes[mask_sizes.size() - 2];
  const int64_t outputs = indices.size(-1) * indices.size(-2);
  VisitWindows(window, image, indices.sizes(), Planes(image),
               [&](int64_t plane, int64_t output, int64_t place, int64_t index) {
                 if (chosen[plane * outputs + output] != index) return;
                 bits[(plane * positions + place) * row + output / 8] |= 1u << (output % 8);
               });
  return mask;
}

Tensor UnpackMask(const Window& window, at::IntArrayRef image, const Tensor& mask,
                  at::IntArrayRef out) {
  Tensor indices = at::zeros(out, at::TensorOptions(at::kLong));
  const Tensor dense = mask.contiguous();
  const auto* bits = static_cast<const uint8_t*>(dense.data_ptr());
  auto* chosen = indices.data_ptr<int64_t>();
  const int64_t row = mask.size(-1), positions = mask.size(-2);
  const int64_t outputs = indices.size(-1) * indices.size(-2);
  VisitWindows(window, image, out, Planes(image),
               [&](int64_t plane, int64_t output, int64_t place, int64_t index) {
                 const uint8_t byte = bits[(plane * positions + place) * row + output / 8];
                 if ((byte >> (output % 8) & 1) != 0) chosen[plane * outputs + output] = index;
               });
  return indices;
}

void ExpectMaskDtype(const Call& call, int i, const Tensor& mask) {
  if (mask.scalar_type() != at::kChar) call.RejectArg(i, "is not int8");
}

// (self, kernel, stride, padding, dilation, ceilMode, out, mask)
std::unique_ptr<Kernel> BindMaxPoolWithMask(const Call& call) {
  const Operand self = call.In(0);
  CheckImage(call, 0, self);
  const Window window = ReadMaxWindow(call, 1);
  const Tensor out = call.Out(6), mask = call.Out(7);
  const std::vector<int64_t> sizes = WindowSizes(window, self.sizes());
  const std::vector<int64_t> mask_sizes = MaskSizes(window, sizes);
  call.ExpectSizes(6, out, sizes);
  call.ExpectSizes(7, mask, mask_sizes);
  ExpectMaskDtype(call, 7, mask);
  return MakeKernel([=] {
    const auto result = f::max_pool2d_with_indices(self(), window.kernel, window.stride,
                                                   window.padding, window.dilation, window.ceil);
    mask.copy_(PackMask(window, self.sizes(), std::get<1>(result), mask_sizes));
    out.copy_(std::get<0>(result));
  });
}

// (gradOutput, self, mask, kernel, stride, padding, dilation, ceilMode, gradInput)
std::unique_ptr<Kernel> BindMaxPoolWithMaskBackward(const Call& call) {
  const Operand gradient = call.In(0), self = call.In(1);
  const Tensor mask = call.View(2);
  CheckImage(call, 1, self);
  const Window window = ReadMaxWindow(call, 3);
  const Tensor out = call.Out(8);
  const std::vector<int64_t> sizes = WindowSizes(window, self.sizes());
  call.ExpectSizes(0, gradient.view(), sizes);
  call.ExpectSizes(2, mask, MaskSizes(window, sizes));
  ExpectMaskDtype(call, 2, mask);
  call.ExpectSizes(8, out, self.sizes());
  return MakeKernel([=] {
    out.copy_(f::max_pool2d_with_indices_backward(gradient(), self(), window.kernel, window.stride,
                                                  window.padding, window.dilation, window.ceil,
                                                  UnpackMask(window, self.sizes(), mask, sizes)));
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
  ExpectSamePlanes(call, 0, gradient, self);
  const Tensor out = call.Out(2);
  call.ExpectSizes(2, out, self.sizes());
  return MakeKernel([=] { out.copy_(f::_adaptive_avg_pool2d_backward(gradient(), self())); });
}

// (gradOutput, self, indices, gradInput)
std::unique_ptr<Kernel> BindAdaptiveMaxPoolBackward(const Call& call) {
  const Operand gradient = call.In(0), self = call.In(1);
  const Tensor indices = call.View(2);
  CheckImage(call, 1, self);
  call.ExpectIndex(2, indices);
  ExpectSamePlanes(call, 0, gradient, self);
  call.ExpectSizes(2, indices, gradient.sizes());
  const Tensor out = call.Out(3);
  call.ExpectSizes(3, out, self.sizes());
  return MakeKernel([=] {
    out.copy_(f::adaptive_max_pool2d_backward(gradient(), self(),
                                              Within(indices, PixelsOf(self), "indices")));
  });
}

// (self, indices, outputSize, out): puts each element where its index points to in its plane
std::unique_ptr<Kernel> BindMaxUnpool(const Call& call) {
  const Operand self = call.In(0);
  const Tensor indices = call.View(1);
  CheckImage(call, 0, self);
  call.ExpectIndex(1, indices);
  call.ExpectSizes(1, indices, self.sizes());
  const std::vector<int64_t> size = call.Ints(2);
  if (size.size() != 2) call.RejectArg(2, "must have 2 entries");
  const Tensor out = call.Out(3);
  call.ExpectSizes(3, out, Resized(self, size));
  return MakeKernel([=] { out.copy_(f::max_unpool2d(self(), indices.to(at::kLong), size)); });
}

// (gradOutput, self, indices, outputSize, out): each element from where its index points to
std::unique_ptr<Kernel> BindMaxUnpoolBackward(const Call& call) {
  const Tensor gradient = call.View(0), indices = call.View(2);
  const Operand self = call.In(1);
  CheckImage(call, 1, self);
  call.ExpectIndex(2, indices);
  call.ExpectSizes(2, indices, self.sizes());
  const std::vector<int64_t> size = call.Ints(3);
  if (size.size() != 2) call.RejectArg(3, "must have 2 entries");
  call.ExpectSizes(0, gradient, Resized(self, size));
  if (gradient.scalar_type() != self.view().scalar_type()) {
    call.RejectArg(0, "has another dtype than self");
  }
  const Tensor out = call.Out(4);
  call.ExpectSizes(4, out, self.sizes());
  return MakeKernel([=] {
    const Tensor places = indices.to(at::kLong).flatten(-2);
    out.copy_(gradient.flatten(-2).gather(-1, places).view(out.sizes()));
  });
}

// The padding before and after one dim of an image.
struct Border {
  int64_t before, after;
};

// 0, 1, 2 (height, width) or 4 entries (top, left, bottom, right)
std::array<Border, 2> ReadBorders(const Call& call, int i) {
  const std::vector<int64_t> pads = call.Ints(i);
  for (int64_t pad : pads) {
    if (pad < 0) call.RejectArg(i, "must not be negative");
  }
  switch (pads.size()) {
    case 0:
      return {Border{0, 0}, Border{0, 0}};
    case 1:
      return {Border{pads[0], pads[0]}, Border{pads[0], pads[0]}};
    case 2:
      return {Border{pads[0], pads[0]}, Border{pads[1], pads[1]}};
    case 4:
      return {Border{pads[0], pads[2]}, Border{pads[1], pads[3]}};
    default:
      call.RejectArg(i, "must have 0, 1, 2 or 4 entries");
  }
}

// (self, kernelShape, strides, autoPad, pads, dilations, ceilMode, out). The border is made before
// the library pools, because it may differ between the sides, and is cut so that the windows end
// where it does.
std::unique_ptr<Kernel> BindMaxPoolWithBorders(const Call& call) {
  const Operand self = call.In(0);
  CheckImage(call, 0, self);
  if (!at::isFloatingType(self.view().scalar_type())) call.RejectArg(0, "has no floating dtype");
  const std::vector<int64_t> kernel = Pair(call, 1, {1, 1}), stride = Pair(call, 2, {1, 1});
  if (call.Ints(1).empty()) call.RejectArg(1, "must have 1 or 2 entries");
  if (call.Int(3) != 0) call.RejectArg(3, "must be 0");
  const std::array<Border, 2> borders = ReadBorders(call, 4);
  for (int64_t dilation : call.Ints(5)) {
    if (dilation != 1) call.RejectArg(5, "must be 1");
  }
  const bool ceil = call.Int(6) != 0;
  std::vector<int64_t> spatial;
  std::array<int64_t, 4> pads{};  // those of the last dim come first
  for (int i = 0; i < 2; ++i) {
    if (kernel[i] < 1) call.RejectArg(1, "must be positive");
    if (stride[i] < 1) call.RejectArg(2, "must be positive");
    const Border& border = borders[i];
    if (border.before + border.after > kernel[i]) {
      call.RejectArg(4, "adds up to more than the kernel");
    }
    const int64_t size = self.sizes()[self.dim() - 2 + i];
    const int64_t room = size + border.before + border.after - kernel[i];
    if (room < 0) call.RejectArg(1, "is larger than the padded image");
    int64_t count = (room + (ceil ? stride[i] - 1 : 0)) / stride[i] + 1;
    if (ceil && (count - 1) * stride[i] >= size + border.before) --count;
    spatial.push_back(count);
    pads[2 - 2 * i] = border.before;
    pads[3 - 2 * i] = (count - 1) * stride[i] + kernel[i] - size - border.before;
  }
  const Tensor out = call.Out(7);
  call.ExpectSizes(7, out, Resized(self, spatial));
  return MakeKernel([=] {
    constexpr double kLeast = -std::numeric_limits<double>::infinity();
    const Tensor padded = at::constant_pad_nd(self(), pads, kLeast);
    out.copy_(std::get<0>(f::max_pool2d_with_indices(padded, kernel, stride)));
  });
}

}  // namespace

KernelRows PoolRows() {
  constexpr Widen kHalf = Widen::kHalf;
  return {
      {"aclnnMaxPool2dWithIndices", BindMaxPool, kHalf},
      {"aclnnMaxPool2dWithIndicesBackward", BindMaxPoolBackward, kHalf},
      {"aclnnMaxPool2dWithMask", BindMaxPoolWithMask, kHalf},
      {"aclnnMaxPool2dWithMaskBackward", BindMaxPoolWithMaskBackward, kHalf},
      {"aclnnAvgPool2d", BindAvgPool, kHalf},
      {"aclnnAvgPool2dBackward", BindAvgPoolBackward, kHalf},
      {"aclnnAdaptiveAvgPool2d", BindAdaptiveAvgPool, kHalf},
      {"aclnnAdaptiveMaxPool2d", BindAdaptiveMaxPool, kHalf},
      {"aclnnAdaptiveAvgPool2dBackward", BindAdaptiveAvgPoolBackward, kHalf},
      {"aclnnAdaptiveMaxPool2dBackward", BindAdaptiveMaxPoolBackward, kHalf},
      {"aclnnMaxUnpool2d", BindMaxUnpool, Widen::kHalfAndBfloat16},
      {"aclnnMaxUnpool2dBackward", BindMaxUnpoolBackward},
      {"aclnnMaxPool", BindMaxPoolWithBorders, kHalf},
  };
}

}  // namespace acltape::opapi
