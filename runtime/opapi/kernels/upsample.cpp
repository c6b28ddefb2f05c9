// Upsampling of images, their gradients, and sampling at grids. A scale that is not above 0 is
// derived from the sizes.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::IntArrayRef;
using at::Tensor;
using Scale = c10::optional<double>;
using Scales = std::array<Scale, 3>;

// Describes the order of an operator's arguments: self, outputSize, [inputSize], [alignCorners],
// [scales], out.
struct UpsampleForm {
  int spatial;
  bool backward;
  bool aligned;
  int scales;  // 0 or as many as spatial dims
  bool linear = false;
  bool bytes = false;  // images of uint8 are taken, too
};

// Linear interpolation reads the pixel of its place. The output's size is documented as the input's
// times the scale, rounded down; a smaller scale puts the last place outside of the image.
void ExpectScaleOfSizes(const Call& call, int i, double scale, int64_t from, int64_t to) {
  const double last = (static_cast<double>(to) - 0.5) / scale - 0.5;
  if (scale > 0 && last < static_cast<double>(from)) return;
  call.RejectArg(i, "leads to pixels past the last of " + std::to_string(from));
}

// fn(self, size, align, scales), and fn(gradient, size, input size, align, scales) of gradients
using UpsampleFn = Tensor (*)(const Tensor&, IntArrayRef, IntArrayRef, bool, const Scales&);

Binder Upsample(UpsampleForm form, UpsampleFn fn) {
  return [=](const Call& call) {
    const Operand self = call.In(0);
    const bool bytes = form.bytes && self.view().scalar_type() == at::kByte;
    if (!bytes) ExpectFloats(call, 0, self.view());
    call.ExpectRank(0, self.view(), form.spatial + 2);
    const std::vector<int64_t> size = call.Ints(1);
    if (static_cast<int>(size.size()) != form.spatial) {
      call.RejectArg(1, "needs " + std::to_string(form.spatial) + " entries");
    }
    for (int64_t entry : size) {
      if (entry < 1) call.RejectArg(1, "must be above 0");
    }
    std::vector<int64_t> upsampled = self.sizes().slice(0, 2).vec();
    upsampled.insert(upsampled.end(), size.begin(), size.end());
    int next = 2;
    std::vector<int64_t> sizes = upsampled;
    if (form.backward) {
      sizes = call.Ints(next);
      if (static_cast<int>(sizes.size()) != form.spatial + 2) {
        call.RejectArg(next, "needs " + std::to_string(form.spatial + 2) + " entries");
      }
      call.ExpectSizes(0, self.view(), upsampled);
      if (sizes[0] != upsampled[0] || sizes[1] != upsampled[1]) {
        call.RejectArg(next, "has another batch or number of channels than the gradient");
      }
      ++next;
    }
    for (int64_t i = 2; i < static_cast<int64_t>(sizes.size()); ++i) {
      if (sizes[i] < 1 || (!form.backward && self.sizes()[i] < 1)) {
        call.RejectArg(0, "has an image without pixels");
      }
    }
    const bool align = form.aligned && call.Bool(next);
    if (form.aligned) ++next;
    Scales scales;
    for (int i = 0; i < form.scales; ++i) {
      if (call.Real(next + i) <= 0) continue;
      scales[i] = call.Real(next + i);
      const int64_t from = form.backward ? sizes[i + 2] : self.sizes()[i + 2];
      if (form.linear && !align) ExpectScaleOfSizes(call, next + i, *scales[i], from, size[i]);
    }
    return BindWhole(call, next + form.scales, sizes,
                     [=] { return fn(self(), size, sizes, align, scales); });
  };
}

Tensor Nearest1d(const Tensor& x, IntArrayRef size, IntArrayRef, bool, const Scales& s) {
  return at::upsample_nearest1d(x, size, s[0]);
}
Tensor Nearest2d(const Tensor& x, IntArrayRef size, IntArrayRef, bool, const Scales& s) {
  return at::upsample_nearest2d(x, size, s[0], s[1]);
}
Tensor Nearest3d(const Tensor& x, IntArrayRef size, IntArrayRef, bool, const Scales& s) {
  return at::upsample_nearest3d(x, size, s[0], s[1], s[2]);
}
Tensor Exact1d(const Tensor& x, IntArrayRef size, IntArrayRef, bool, const Scales& s) {
  return at::_upsample_nearest_exact1d(x, size, s[0]);
}
Tensor Exact2d(const Tensor& x, IntArrayRef size, IntArrayRef, bool, const Scales& s) {
  return at::_upsample_nearest_exact2d(x, size, s[0], s[1]);
}
Tensor Exact3d(const Tensor& x, IntArrayRef size, IntArrayRef, bool, const Scales& s) {
  return at::_upsample_nearest_exact3d(x, size, s[0], s[1], s[2]);
}
Tensor Linear1d(const Tensor& x, IntArrayRef size, IntArrayRef, bool align, const Scales& s) {
  return at::upsample_linear1d(x, size, align, s[0]);
}
Tensor Bilinear2d(const Tensor& x, IntArrayRef size, IntArrayRef, bool align, const Scales& s) {
  return at::upsample_bilinear2d(x, size, align, s[0], s[1]);
}
Tensor BilinearAA2d(const Tensor& x, IntArrayRef size, IntArrayRef, bool align, const Scales& s) {
  return at::_upsample_bilinear2d_aa(x, size, align, s[0], s[1]);
}
Tensor Bicubic2d(const Tensor& x, IntArrayRef size, IntArrayRef, bool align, const Scales& s) {
  return at::upsample_bicubic2d(x, size, align, s[0], s[1]);
}
Tensor BicubicAA2d(const Tensor& x, IntArrayRef size, IntArrayRef, bool align, const Scales& s) {
  return at::_upsample_bicubic2d_aa(x, size, align, s[0], s[1]);
}
Tensor Trilinear3d(const Tensor& x, IntArrayRef size, IntArrayRef, bool align, const Scales& s) {
  return at::upsample_trilinear3d(x, size, align, s[0], s[1], s[2]);
}

Tensor Nearest1dGrad(const Tensor& g, IntArrayRef out, IntArrayRef in, bool, const Scales& s) {
  return at::upsample_nearest1d_backward(g, out, in, s[0]);
}
Tensor Nearest2dGrad(const Tensor& g, IntArrayRef out, IntArrayRef in, bool, const Scales& s) {
  return at::upsample_nearest2d_backward(g, out, in, s[0], s[1]);
}
Tensor Nearest3dGrad(const Tensor& g, IntArrayRef out, IntArrayRef in, bool, const Scales& s) {
  return at::upsample_nearest3d_backward(g, out, in, s[0], s[1], s[2]);
}
Tensor Exact1dGrad(const Tensor& g, IntArrayRef out, IntArrayRef in, bool, const Scales& s) {
  return at::_upsample_nearest_exact1d_backward(g, out, in, s[0]);
}
Tensor Exact2dGrad(const Tensor& g, IntArrayRef out, IntArrayRef in, bool, const Scales& s) {
  return at::_upsample_nearest_exact2d_backward(g, out, in, s[0], s[1]);
}
Tensor Exact3dGrad(const Tensor& g, IntArrayRef out, IntArrayRef in, bool, const Scales& s) {
  return at::_upsample_nearest_exact3d_backward(g, out, in, s[0], s[1], s[2]);
}
Tensor Linear1dGrad(const Tensor& g, IntArrayRef out, IntArrayRef in, bool align, const Scales& s) {
  return at::upsample_linear1d_backward(g, out, in, align, s[0]);
}
Tensor Bilinear2dGrad(const Tensor& g, IntArrayRef out, IntArrayRef in, bool align,
                      const Scales& s) {
  return at::upsample_bilinear2d_backward(g, out, in, align, s[0], s[1]);
}
Tensor BilinearAA2dGrad(const Tensor& g, IntArrayRef out, IntArrayRef in, bool align,
                        const Scales& s) {
  return at::_upsample_bilinear2d_aa_backward(g, out, in, align, s[0], s[1]);
}
Tensor Bicubic2dGrad(const Tensor& g, IntArrayRef out, IntArrayRef in, bool align,
                     const Scales& s) {
  return at::upsample_bicubic2d_backward(g, out, in, align, s[0], s[1]);
}
Tensor BicubicAA2dGrad(const Tensor& g, IntArrayRef out, IntArrayRef in, bool align,
                       const Scales& s) {
  return at::_upsample_bicubic2d_aa_backward(g, out, in, align, s[0], s[1]);
}
Tensor Trilinear3dGrad(const Tensor& g, IntArrayRef out, IntArrayRef in, bool align,
                       const Scales& s) {
  return at::upsample_trilinear3d_backward(g, out, in, align, s[0], s[1], s[2]);
}

// The sizes of what is sampled from `input` at `grid`.
std::vector<int64_t> SampledSizes(const Call& call, int input_index, const Operand& input,
                                  const Operand& grid, int64_t spatial) {
  ExpectFloats(call, input_index, input.view());
  call.ExpectRank(input_index, input.view(), spatial + 2);
  call.ExpectRank(input_index + 1, grid.view(), spatial + 2);
  if (grid.sizes()[0] != input.sizes()[0] || grid.sizes().back() != spatial) {
    call.RejectArg(input_index + 1, "has another batch than the input, or not " +
                                        std::to_string(spatial) + " coordinates a point");
  }
  if (grid.view().scalar_type() != input.view().scalar_type()) {
    call.RejectArg(input_index + 1, "has another dtype than the input");
  }
  for (int64_t size : input.sizes().slice(2)) {
    if (size == 0) call.RejectArg(input_index, "has an image without pixels");
  }
  std::vector<int64_t> sizes = input.sizes().slice(0, 2).vec();
  for (int64_t i = 1; i <= spatial; ++i) sizes.push_back(grid.sizes()[i]);
  return sizes;
}

int64_t SampleMode(const Call& call, int i, int64_t last) {
  const int64_t mode = call.Int(i);
  if (mode < 0 || mode > last) call.RejectArg(i, "must be between 0 and " + std::to_string(last));
  return mode;
}

// (input, grid, interpolationMode, paddingMode, alignCorners, out)
Binder GridSample(int64_t spatial) {
  return [=](const Call& call) {
    const Operand input = call.In(0), grid = call.In(1);
    const std::vector<int64_t> sizes = SampledSizes(call, 0, input, grid, spatial);
    const int64_t mode = SampleMode(call, 2, spatial == 2 ? 2 : 1);
    const int64_t padding = SampleMode(call, 3, 2);
    const bool align = call.Bool(4);
    return BindWhole(call, 5, sizes, [=] {
      return spatial == 2 ? at::grid_sampler_2d(input(), grid(), mode, padding, align)
                          : at::grid_sampler_3d(input(), grid(), mode, padding, align);
    });
  };
}

// (gradOutput, input, grid, interpolationMode, paddingMode, alignCorners, mask, inputGrad,
// gridGrad)
Binder GridSampleBackward(int64_t spatial) {
  return [=](const Call& call) {
    const Operand gradient = call.In(0), input = call.In(1), grid = call.In(2);
    call.ExpectSizes(0, gradient.view(), SampledSizes(call, 1, input, grid, spatial));
    const int64_t mode = SampleMode(call, 3, spatial == 2 ? 2 : 1);
    const int64_t padding = SampleMode(call, 4, 2);
    const bool align = call.Bool(5);
    const std::vector<bool> asked = call.Bools(6);
    if (asked.size() != 2) call.RejectArg(6, "must have 2 entries");
    const std::array<bool, 2> mask{asked[0], asked[1]};
    const Tensor of_input = call.Out(7), of_grid = call.Out(8);
    if (mask[0]) call.ExpectSizes(7, of_input, input.sizes());
    if (mask[1]) call.ExpectSizes(8, of_grid, grid.sizes());
    return MakeKernel([=] {
      const auto results = spatial == 2
                               ? at::grid_sampler_2d_backward(gradient(), input(), grid(), mode,
                                                              padding, align, {true, true})
                               : at::grid_sampler_3d_backward(gradient(), input(), grid(), mode,
                                                              padding, align, {true, true});
      if (mask[0]) of_input.copy_(std::get<0>(results));
      if (mask[1]) of_grid.copy_(std::get<1>(results));
    });
  };
}

// (theta, size, alignCorners, out): size is that of the image, [N, C, H, W] or [N, C, D, H, W].
std::unique_ptr<Kernel> BindAffineGrid(const Call& call) {
  const Operand theta = call.In(0);
  const std::vector<int64_t> size = call.Ints(1);
  const bool align = call.Bool(2);
  const Tensor out = call.Out(3);
  if (size.size() != 4 && size.size() != 5) call.RejectArg(1, "must have 4 or 5 entries");
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  call.ExpectSizes(0, theta.view(), {size[0], dims, dims + 1});
  std::vector<int64_t> sizes(size.begin() + 2, size.end());
  sizes.insert(sizes.begin(), size[0]);
  sizes.push_back(dims);
  call.ExpectSizes(3, out, sizes);
  return MakeKernel([=] { out.copy_(at::affine_grid_generator(theta(), size, align)); });
}

}  // namespace

KernelRows UpsampleRows() {
  constexpr Widen kHalf = Widen::kHalfAndBfloat16;
  constexpr bool kForward = false, kBackward = true, kPlain = false, kAlign = true, kLinear = true;
  constexpr bool kBytes = true;
  return {
      {"aclnnUpsampleNearest1d", Upsample({1, kForward, kPlain, 0}, Nearest1d), kHalf},
      {"aclnnUpsampleNearest1dV2", Upsample({1, kForward, kPlain, 1}, Nearest1d), kHalf},
      {"aclnnUpsampleNearest2d", Upsample({2, kForward, kPlain, 0}, Nearest2d), kHalf},
      {"aclnnUpsampleNearest2dV2", Upsample({2, kForward, kPlain, 2}, Nearest2d), kHalf},
      {"aclnnUpsampleNearest3d", Upsample({3, kForward, kPlain, 3}, Nearest3d), kHalf},
      {"aclnnUpsampleNearestExact1d", Upsample({1, kForward, kPlain, 1, !kLinear, kBytes}, Exact1d),
       kHalf},
      {"aclnnUpsampleNearestExact2d", Upsample({2, kForward, kPlain, 2, !kLinear, kBytes}, Exact2d),
       kHalf},
      {"aclnnUpsampleNearestExact3d", Upsample({3, kForward, kPlain, 3}, Exact3d), kHalf},
      {"aclnnUpsampleLinear1d", Upsample({1, kForward, kAlign, 1, kLinear}, Linear1d), kHalf},
      {"aclnnUpsampleBilinear2d", Upsample({2, kForward, kAlign, 2, kLinear}, Bilinear2d), kHalf},
      {"aclnnUpsampleBilinear2dAA", Upsample({2, kForward, kAlign, 2}, BilinearAA2d), kHalf},
      {"aclnnUpsampleBicubic2d", Upsample({2, kForward, kAlign, 2}, Bicubic2d), kHalf},
      {"aclnnUpsampleBicubic2dAA", Upsample({2, kForward, kAlign, 2}, BicubicAA2d), kHalf},
      {"aclnnUpsampleTrilinear3d", Upsample({3, kForward, kAlign, 3, kLinear}, Trilinear3d), kHalf},
      {"aclnnUpsampleNearest1dBackward", Upsample({1, kBackward, kPlain, 1}, Nearest1dGrad), kHalf},
      {"aclnnUpsampleNearest2dBackward", Upsample({2, kBackward, kPlain, 2}, Nearest2dGrad), kHalf},
      {"aclnnUpsampleNearest3dBackward", Upsample({3, kBackward, kPlain, 3}, Nearest3dGrad), kHalf},
      {"aclnnUpsampleNearestExact1dBackward", Upsample({1, kBackward, kPlain, 1}, Exact1dGrad),
       kHalf},
      {"aclnnUpsampleNearestExact2dBackward", Upsample({2, kBackward, kPlain, 2}, Exact2dGrad),
       kHalf},
      {"aclnnUpsampleNearestExact3dBackward", Upsample({3, kBackward, kPlain, 3}, Exact3dGrad),
       kHalf},
      {"aclnnUpsampleLinear1dBackward", Upsample({1, kBackward, kAlign, 1, kLinear}, Linear1dGrad),
       kHalf},
      {"aclnnUpsampleBilinear2dBackward",
       Upsample({2, kBackward, kAlign, 2, kLinear}, Bilinear2dGrad), kHalf},
      {"aclnnUpsampleBilinear2dBackwardV2",
       Upsample({2, kBackward, kAlign, 2, kLinear}, Bilinear2dGrad), kHalf},
      {"aclnnUpsampleBilinear2dAABackward", Upsample({2, kBackward, kAlign, 2}, BilinearAA2dGrad),
       kHalf},
      {"aclnnUpsampleBicubic2dBackward", Upsample({2, kBackward, kAlign, 2}, Bicubic2dGrad), kHalf},
      {"aclnnUpsampleBicubic2dAAGrad", Upsample({2, kBackward, kAlign, 2}, BicubicAA2dGrad), kHalf},
      {"aclnnUpsampleTrilinear3dBackward",
       Upsample({3, kBackward, kAlign, 3, kLinear}, Trilinear3dGrad), kHalf},
      {"aclnnAffineGrid", BindAffineGrid, kHalf},
      {"aclnnGridSampler2D", GridSample(2), kHalf},
      {"aclnnGridSampler3D", GridSample(3), kHalf},
      {"aclnnGridSampler2DBackward", GridSampleBackward(2), kHalf},
      {"aclnnGridSampler3DBackward", GridSampleBackward(3), kHalf},
  };
}

}  // namespace acltape::opapi
