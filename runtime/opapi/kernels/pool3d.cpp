// Pooling of volumes: as of images (pool.cpp), with three spatial dims. Half and bfloat16 are
// computed in float32 and rounded once.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/kernels/whole.h"
#include "runtime/opapi/kernels/within.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

void CheckVolume(const Call& call, int i, const Operand& volume) {
  if (volume.dim() != 4 && volume.dim() != 5) call.RejectArg(i, "must have 4 or 5 dims");
  if (!at::isFloatingType(volume.view().scalar_type())) call.RejectArg(i, "has no floating dtype");
}

int64_t VoxelsOf(const Operand& volume) {
  int64_t count = 1;
  for (int64_t size : volume.sizes().slice(volume.dim() - 3)) count *= size;
  return count;
}

// One value stands for all three dims; none for `otherwise`.
std::vector<int64_t> Triple(const Call& call, int i, const std::vector<int64_t>& otherwise) {
  std::vector<int64_t> values = call.Ints(i);
  if (values.empty()) return otherwise;
  if (values.size() == 1) values.resize(3, values[0]);
  if (values.size() != 3) call.RejectArg(i, "must have 1 or 3 entries");
  return values;
}

// The volume's sizes with other spatial ones.
std::vector<int64_t> ResizedVolume(const Operand& volume, const std::vector<int64_t>& spatial) {
  std::vector<int64_t> sizes = volume.sizes().vec();
  std::copy(spatial.begin(), spatial.end(), sizes.end() - 3);
  return sizes;
}

struct VolumeWindow {
  std::vector<int64_t> kernel, stride, padding, dilation;
  bool ceil;
};

// (kernel, stride, padding, [dilation,] ceilMode) starting at `first`
VolumeWindow ReadVolumeWindow(const Call& call, int first, bool dilated) {
  VolumeWindow window;
  window.kernel = Triple(call, first, {});
  if (window.kernel.empty()) call.RejectArg(first, "must have 1 or 3 entries");
  window.stride = Triple(call, first + 1, window.kernel);
  window.padding = Triple(call, first + 2, {0, 0, 0});
  window.dilation = dilated ? Triple(call, first + 3, {1, 1, 1}) : std::vector<int64_t>{1, 1, 1};
  window.ceil = call.Bool(first + (dilated ? 4 : 3));
  for (int i = 0; i < 3; ++i) {
    if (window.kernel[i] < 1) call.RejectArg(first, "must be positive");
    if (window.stride[i] < 1) call.RejectArg(first + 1, "must be positive");
    if (window.dilation[i] < 1) call.RejectArg(first + 3, "must be positive");
    if (window.padding[i] < 0 || 2 * window.padding[i] > window.kernel[i]) {
      call.RejectArg(first + 2, "must be between 0 and half the kernel");
    }
  }
  return window;
}

// The sizes of the pooled volume; a last window must start inside the padded input.
std::vector<int64_t> PooledVolume(const Call& call, int kernel_index, const VolumeWindow& window,
                                  const Operand& volume) {
  std::vector<int64_t> spatial;
  for (int i = 0; i < 3; ++i) {
    const int64_t size = volume.sizes()[volume.dim() - 3 + i];
    const int64_t reach = window.dilation[i] * (window.kernel[i] - 1) + 1;
    const int64_t room = size + 2 * window.padding[i] - reach;
    if (room < 0) call.RejectArg(kernel_index, "is larger than the padded volume");
    int64_t count = (room + (window.ceil ? window.stride[i] - 1 : 0)) / window.stride[i] + 1;
    if (window.ceil && (count - 1) * window.stride[i] >= size + window.padding[i]) --count;
    spatial.push_back(count);
  }
  return ResizedVolume(volume, spatial);
}

// (self, kernel, stride, padding, dilation, ceilMode, out, indices)
std::unique_ptr<Kernel> BindMaxPool3d(const Call& call) {
  const Operand self = call.In(0);
  CheckVolume(call, 0, self);
  const VolumeWindow window = ReadVolumeWindow(call, 1, /*dilated=*/true);
  const Tensor out = call.Out(6), indices = call.Out(7);
  const std::vector<int64_t> sizes = PooledVolume(call, 1, window, self);
  call.ExpectSizes(6, out, sizes);
  call.ExpectSizes(7, indices, sizes);
  call.ExpectIndex(7, indices);
  return MakeKernel([=] {
    const auto result = f::max_pool3d_with_indices(self(), window.kernel, window.stride,
                                                   window.padding, window.dilation, window.ceil);
    out.copy_(std::get<0>(result));
    indices.copy_(std::get<1>(result));
  });
}

// (gradOutput, self, indices, kernel, stride, padding, dilation, ceilMode, gradInput)
std::unique_ptr<Kernel> BindMaxPool3dBackward(const Call& call) {
  const Operand gradient = call.In(0), self = call.In(1);
  const Tensor indices = call.View(2);
  CheckVolume(call, 1, self);
  call.ExpectIndex(2, indices);
  const VolumeWindow window = ReadVolumeWindow(call, 3, /*dilated=*/true);
  call.ExpectSizes(0, gradient.view(), PooledVolume(call, 3, window, self));
  call.ExpectSizes(2, indices, gradient.sizes());
  return BindWhole(call, 8, self.sizes(), [=] {
    return f::max_pool3d_with_indices_backward(gradient(), self(), window.kernel, window.stride,
                                               window.padding, window.dilation, window.ceil,
                                               Within(indices, VoxelsOf(self), "indices"));
  });
}

// 0 stands for the number of elements of the window.
c10::optional<int64_t> ReadDivisor(const Call& call, int i) {
  return call.Int(i) == 0 ? c10::optional<int64_t>() : c10::optional<int64_t>(call.Int(i));
}

// (self, kernel, stride, padding, ceilMode, countIncludePad, divisorOverride, out)
std::unique_ptr<Kernel> BindAvgPool3d(const Call& call) {
  const Operand self = call.In(0);
  CheckVolume(call, 0, self);
  const VolumeWindow window = ReadVolumeWindow(call, 1, /*dilated=*/false);
  const bool count_padding = call.Bool(5);
  const c10::optional<int64_t> divisor = ReadDivisor(call, 6);
  return BindWhole(call, 7, PooledVolume(call, 1, window, self), [=] {
    return f::avg_pool3d(self(), window.kernel, window.stride, window.padding, window.ceil,
                         count_padding, divisor);
  });
}

// (gradOutput, self, kernel, stride, padding, ceilMode, countIncludePad, divisorOverride, out)
std::unique_ptr<Kernel> BindAvgPool3dBackward(const Call& call) {
  const Operand gradient = call.In(0), self = call.In(1);
  CheckVolume(call, 1, self);
  const VolumeWindow window = ReadVolumeWindow(call, 2, /*dilated=*/false);
  const bool count_padding = call.Bool(6);
  const c10::optional<int64_t> divisor = ReadDivisor(call, 7);
  call.ExpectSizes(0, gradient.view(), PooledVolume(call, 2, window, self));
  return BindWhole(call, 8, self.sizes(), [=] {
    return f::avg_pool3d_backward(gradient(), self(), window.kernel, window.stride, window.padding,
                                  window.ceil, count_padding, divisor);
  });
}

std::vector<int64_t> ReadOutputSize(const Call& call, int i) {
  const std::vector<int64_t> size = Triple(call, i, {});
  if (size.empty()) call.RejectArg(i, "must have 1 or 3 entries");
  for (int64_t entry : size) {
    if (entry < 1) call.RejectArg(i, "must be positive");
  }
  return size;
}

void ExpectSameVolumes(const Call& call, int i, const Operand& gradient, const Operand& self) {
  const int64_t planes = self.dim() - 3;
  if (gradient.dim() != self.dim() ||
      gradient.sizes().slice(0, planes) != self.sizes().slice(0, planes)) {
    call.RejectArg(i, "has another batch or number of channels than self");
  }
}

// (self, outputSize, out)
std::unique_ptr<Kernel> BindAdaptiveAvgPool3d(const Call& call) {
  const Operand self = call.In(0);
  CheckVolume(call, 0, self);
  const std::vector<int64_t> size = ReadOutputSize(call, 1);
  const Tensor out = call.Out(2);
  call.ExpectSizes(2, out, ResizedVolume(self, size));
  return MakeKernel([=] { out.copy_(at::_adaptive_avg_pool3d(self(), size)); });
}

// (gradOutput, self, out)
std::unique_ptr<Kernel> BindAdaptiveAvgPool3dBackward(const Call& call) {
  const Operand gradient = call.In(0), self = call.In(1);
  CheckVolume(call, 1, self);
  ExpectSameVolumes(call, 0, gradient, self);
  const Tensor out = call.Out(2);
  call.ExpectSizes(2, out, self.sizes());
  return MakeKernel([=] { out.copy_(at::_adaptive_avg_pool3d_backward(gradient(), self())); });
}

// (self, outputSize, out, indices)
std::unique_ptr<Kernel> BindAdaptiveMaxPool3d(const Call& call) {
  const Operand self = call.In(0);
  CheckVolume(call, 0, self);
  const std::vector<int64_t> size = ReadOutputSize(call, 1);
  const Tensor out = call.Out(2), indices = call.Out(3);
  call.ExpectSizes(2, out, ResizedVolume(self, size));
  call.ExpectSizes(3, indices, ResizedVolume(self, size));
  call.ExpectIndex(3, indices);
  return MakeKernel([=] {
    const auto result = f::adaptive_max_pool3d(self(), size);
    out.copy_(std::get<0>(result));
    indices.copy_(std::get<1>(result));
  });
}

// (gradOutput, self, indices, gradInput)
std::unique_ptr<Kernel> BindAdaptiveMaxPool3dBackward(const Call& call) {
  const Operand gradient = call.In(0), self = call.In(1);
  const Tensor indices = call.View(2);
  CheckVolume(call, 1, self);
  ExpectSameVolumes(call, 0, gradient, self);
  call.ExpectIndex(2, indices);
  call.ExpectSizes(2, indices, gradient.sizes());
  return BindWhole(call, 3, self.sizes(), [=] {
    return f::adaptive_max_pool3d_backward(gradient(), self(),
                                           Within(indices, VoxelsOf(self), "indices"));
  });
}

// (self, indices, outputSize, stride, padding, out): puts each element where its index points to in
// its volume. Stride and padding are those of the pooling, which the indices have gone through.
std::unique_ptr<Kernel> BindMaxUnpool3d(const Call& call) {
  const Operand self = call.In(0);
  CheckVolume(call, 0, self);
  const Tensor indices = call.View(1);
  call.ExpectIndex(1, indices);
  call.ExpectSizes(1, indices, self.sizes());
  const std::vector<int64_t> size = ReadOutputSize(call, 2);
  const std::vector<int64_t> stride = Triple(call, 3, {1, 1, 1});
  const std::vector<int64_t> padding = Triple(call, 4, {0, 0, 0});
  for (int64_t step : stride) {
    if (step < 1) call.RejectArg(3, "must be positive");
  }
  return BindWhole(call, 5, ResizedVolume(self, size), [=] {
    return f::max_unpool3d(self(), indices.to(at::kLong), size, stride, padding);
  });
}

// (gradOutput, self, indices, outputSize, stride, padding, out): each element from where its index
// points to
std::unique_ptr<Kernel> BindMaxUnpool3dBackward(const Call& call) {
  const Tensor gradient = call.View(0), indices = call.View(2);
  const Operand self = call.In(1);
  CheckVolume(call, 1, self);
  call.ExpectIndex(2, indices);
  call.ExpectSizes(2, indices, self.sizes());
  call.ExpectSizes(0, gradient, ResizedVolume(self, ReadOutputSize(call, 3)));
  if (gradient.scalar_type() != self.view().scalar_type()) {
    call.RejectArg(0, "has another dtype than self");
  }
  for (int64_t step : Triple(call, 4, {1, 1, 1})) {
    if (step < 1) call.RejectArg(4, "must be positive");
  }
  const std::vector<int64_t> sizes = self.sizes().vec();
  return BindWhole(call, 6, sizes, [=] {
    const Tensor places = indices.to(at::kLong).flatten(-3);
    return gradient.flatten(-3).gather(-1, places).view(sizes);
  });
}

}  // namespace

KernelRows Pool3dRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnMaxPool3dWithArgmax", BindMaxPool3d, kBoth},
      {"aclnnMaxPool3dWithArgmaxBackward", BindMaxPool3dBackward, kBoth},
      {"aclnnMaxUnpool3d", BindMaxUnpool3d, kBoth},
      {"aclnnMaxUnpool3dBackward", BindMaxUnpool3dBackward},
      {"aclnnAvgPool3d", BindAvgPool3d, kBoth},
      {"aclnnAvgPool3dBackward", BindAvgPool3dBackward, kBoth},
      {"aclnnAdaptiveAvgPool3d", BindAdaptiveAvgPool3d, kBoth},
      {"aclnnAdaptiveAvgPool3dBackward", BindAdaptiveAvgPool3dBackward, kBoth},
      {"aclnnAdaptiveMaxPool3d", BindAdaptiveMaxPool3d, kBoth},
      {"aclnnAdaptiveMaxPool3dBackward", BindAdaptiveMaxPool3dBackward, kBoth},
  };
}

}  // namespace acltape::opapi
