// Convolutions of one to three spatial dims.
#include <ATen/ATen.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/optional.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct Geometry {
  std::vector<int64_t> stride, padding, dilation, output_padding;
  std::vector<int64_t> extra_pad;  // constant_pad_nd form; only for unequal sides
  bool transposed;
  int64_t groups;
};

// One value stands for all spatial dims.
std::vector<int64_t> PerDim(const Call& call, int i, int64_t spatial) {
  std::vector<int64_t> values = call.Ints(i);
  if (values.size() == 1) values.resize(spatial, values[0]);
  if (static_cast<int64_t>(values.size()) != spatial) {
    call.RejectArg(i, "has " + std::to_string(values.size()) + " entries, expected " +
                          std::to_string(spatial));
  }
  return values;
}

// Two entries per spatial dim (before, after) pad the sides differently.
void ReadPadding(const Call& call, int i, int64_t spatial, Geometry& geometry) {
  const std::vector<int64_t> values = call.Ints(i);
  if (static_cast<int64_t>(values.size()) != 2 * spatial || spatial == 1) {
    geometry.padding = PerDim(call, i, spatial);
    return;
  }
  std::vector<int64_t> extra;
  for (int64_t dim = spatial - 1; dim >= 0; --dim) {
    const int64_t before = values[2 * dim], after = values[2 * dim + 1];
    const int64_t common = std::min(before, after);
    extra.insert(extra.end(), {before - common, after - common});
    geometry.padding.insert(geometry.padding.begin(), common);
  }
  if (std::any_of(extra.begin(), extra.end(), [](int64_t pad) { return pad != 0; })) {
    geometry.extra_pad = extra;
  }
}

// (..., stride, padding, dilation, transposed, outputPadding, groups) starting at `first`.
Geometry ReadGeometry(const Call& call, int first, const Operand& input, const Operand& weight,
                      int input_index) {
  const int64_t spatial = weight.dim() - 2;
  if (spatial < 1 || spatial > 3 || input.dim() != weight.dim()) {
    call.RejectArg(input_index, "has shape " + SizesText(input.sizes()) +
                                    ", which does not fit weight " + SizesText(weight.sizes()));
  }
  Geometry geometry;
  geometry.stride = PerDim(call, first, spatial);
  ReadPadding(call, first + 1, spatial, geometry);
  geometry.dilation = PerDim(call, first + 2, spatial);
  geometry.transposed = call.Bool(first + 3);
  geometry.output_padding =
      geometry.transposed ? PerDim(call, first + 4, spatial) : std::vector<int64_t>(spatial, 0);
  geometry.groups = call.Int(first + 5);
  if (geometry.groups < 1) call.RejectArg(first + 5, "must be positive");
  const int64_t channels =
      weight.sizes()[geometry.transposed ? 0 : 1] * (geometry.transposed ? 1 : geometry.groups);
  if (input.sizes()[1] != channels) {
    call.RejectArg(input_index, "has " + std::to_string(input.sizes()[1]) + " channels, expected " +
                                    std::to_string(channels));
  }
  for (int64_t i = 0; i < spatial; ++i) {
    if (geometry.stride[i] < 1) call.RejectArg(first, "must be positive");
    if (geometry.dilation[i] < 1) call.RejectArg(first + 2, "must be positive");
  }
  return geometry;
}

std::vector<int64_t> OutputSizes(const Geometry& geometry, at::IntArrayRef input,
                                 at::IntArrayRef weight) {
  std::vector<int64_t> sizes{input[0],
                             geometry.transposed ? weight[1] * geometry.groups : weight[0]};
  const size_t spatial = geometry.stride.size();
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t reach = geometry.dilation[i] * (weight[i + 2] - 1);
    int64_t padding = 2 * geometry.padding[i];
    if (!geometry.extra_pad.empty()) {
      const size_t pair = 2 * (spatial - 1 - i);
      padding += geometry.extra_pad[pair] + geometry.extra_pad[pair + 1];
    }
    sizes.push_back(geometry.transposed
                        ? (input[i + 2] - 1) * geometry.stride[i] - padding + reach +
                              geometry.output_padding[i] + 1
                        : (input[i + 2] + padding - reach - 1) / geometry.stride[i] + 1);
  }
  return sizes;
}

// True when libtorch has transposed convolutions of bfloat16 on this processor. Only oneDNN has
// them, and only where the processor has the vector extensions for them.
bool TransposesBfloat16() {
  static const bool transposes = [] {
    try {
      const Tensor x = at::ones({1, 1, 2, 2}, at::kBFloat16);
      at::convolution(x, x, {}, {1, 1}, {0, 0}, {1, 1}, /*transposed=*/true, {0, 0}, 1);
      return true;
    } catch (const c10::Error&) {
      return false;
    }
  }();
  return transposes;
}

// An operand of a convolution: computed in float32 where libtorch lacks the dtype.
Operand Convolved(const Operand& operand, const Geometry& geometry) {
  if (!operand.defined() || !geometry.transposed || TransposesBfloat16()) return operand;
  return Operand(operand.view(), Widen::kHalfAndBfloat16);
}

// (input, weight, bias?, stride, padding, dilation, transposed, outputPadding, groups, output,
// cubeMathType)
std::unique_ptr<Kernel> BindConvolution(const Call& call) {
  const Operand input = call.In(0), weight = call.In(1), bias = call.OptionalIn(2);
  const Geometry geometry = ReadGeometry(call, 3, input, weight, 0);
  const Tensor out = call.Out(9);
  if (input.view().scalar_type() != weight.view().scalar_type()) {
    call.RejectArg(1, "has another dtype than input");
  }
  const std::vector<int64_t> sizes = OutputSizes(geometry, input.sizes(), weight.sizes());
  call.ExpectSizes(9, out, sizes);
  if (bias.defined()) call.ExpectSizes(2, bias.view(), {sizes[1]});
  if (geometry.transposed && !geometry.extra_pad.empty()) {
    call.RejectArg(4, "pads the sides differently, which a transposed convolution does not allow");
  }
  return MakeKernel([=, input = Convolved(input, geometry), weight = Convolved(weight, geometry),
                     bias = Convolved(bias, geometry)] {
    Tensor x = input();
    if (!geometry.extra_pad.empty()) x = at::constant_pad_nd(x, geometry.extra_pad, 0);
    out.copy_(at::convolution(x, weight(), Maybe(bias), geometry.stride, geometry.padding,
                              geometry.dilation, geometry.transposed, geometry.output_padding,
                              geometry.groups));
  });
}

// (gradOutput, input, weight, biasSizes?, stride, padding, dilation, transposed, outputPadding,
// groups, mask, cubeMathType, gradInput?, gradWeight?, gradBias?)
std::unique_ptr<Kernel> BindConvolutionBackward(const Call& call) {
  const Operand gradient = call.In(0), input = call.In(1), weight = call.In(2);
  const Geometry geometry = ReadGeometry(call, 4, input, weight, 1);
  const std::array<Tensor, 3> outs{call.OptionalOut(12), call.OptionalOut(13),
                                   call.OptionalOut(14)};
  const std::vector<bool> wanted = call.Bools(10);
  if (wanted.size() != 3) call.RejectArg(10, "must have 3 entries");
  const std::array<bool, 3> mask{wanted[0], wanted[1], wanted[2]};
  const std::vector<int64_t> sizes = OutputSizes(geometry, input.sizes(), weight.sizes());
  call.ExpectSizes(0, gradient.view(), sizes);
  if (!geometry.extra_pad.empty()) call.RejectArg(5, "pads the sides differently");
  const at::IntArrayRef expected[3] = {input.sizes(), weight.sizes(), {&sizes[1], 1}};
  for (int i = 0; i < 3; ++i) {
    if (!mask[i]) continue;
    if (!outs[i].defined()) {
      throw RejectedCall{kParamNull, std::string(call.op().name) + ": " +
                                         std::string(call.Arg(12 + i).name) +
                                         " is asked for but NULL."};
    }
    call.ExpectSizes(12 + i, outs[i], expected[i]);
  }
  const bool has_bias = mask[2];
  const std::vector<int64_t> bias_sizes{sizes[1]};
  return MakeKernel([=, gradient = Convolved(gradient, geometry),
                     input = Convolved(input, geometry), weight = Convolved(weight, geometry)] {
    const auto results = at::convolution_backward(
        gradient(), input(), weight(),
        has_bias ? at::OptionalIntArrayRef(bias_sizes) : at::OptionalIntArrayRef(), geometry.stride,
        geometry.padding, geometry.dilation, geometry.transposed, geometry.output_padding,
        geometry.groups, mask);
    if (mask[0]) outs[0].copy_(std::get<0>(results));
    if (mask[1]) outs[1].copy_(std::get<1>(results));
    if (mask[2]) outs[2].copy_(std::get<2>(results));
  });
}

// (self, weight, kernelSize, bias?, stride, padding, dilation, out, cubeMathType): each channel
// with filters of its own
std::unique_ptr<Kernel> BindDepthwise(const Call& call) {
  const Operand input = call.In(0), weight = call.In(1), bias = call.OptionalIn(3);
  if (input.dim() != 4 || weight.dim() != 4) call.RejectArg(0, "and weight must have 4 dims");
  if (input.view().scalar_type() != weight.view().scalar_type()) {
    call.RejectArg(1, "has another dtype than self");
  }
  Geometry geometry;
  geometry.stride = PerDim(call, 4, 2);
  geometry.padding = PerDim(call, 5, 2);
  geometry.dilation = PerDim(call, 6, 2);
  geometry.output_padding = {0, 0};
  geometry.transposed = false;
  geometry.groups = input.sizes()[1];
  for (int i = 0; i < 2; ++i) {
    if (geometry.stride[i] < 1) call.RejectArg(4, "must be positive");
    if (geometry.dilation[i] < 1) call.RejectArg(6, "must be positive");
  }
  if (weight.sizes()[1] != 1 || geometry.groups < 1 || weight.sizes()[0] % geometry.groups != 0) {
    call.RejectArg(1, "has shape " + SizesText(weight.sizes()) + ", expected [multiple of " +
                          std::to_string(geometry.groups) + ", 1, ...]");
  }
  if (PerDim(call, 2, 2) != weight.sizes().slice(2).vec()) {
    call.RejectArg(2, "is not the size of the weight's filters");
  }
  const Tensor out = call.Out(7);
  const std::vector<int64_t> sizes = OutputSizes(geometry, input.sizes(), weight.sizes());
  call.ExpectSizes(7, out, sizes);
  if (bias.defined()) call.ExpectSizes(3, bias.view(), {sizes[1]});
  return MakeKernel([=] {
    out.copy_(at::convolution(input(), weight(), Maybe(bias), geometry.stride, geometry.padding,
                              geometry.dilation, false, geometry.output_padding, geometry.groups));
  });
}

// The arguments of a convolution over time, the first dim, of a sequence of batches.
struct OverTime {
  Operand input, weight, bias;
  int64_t pad = 0;
  std::vector<int64_t> sizes;  // those of the output

  Tensor added() const {
    return bias.defined() ? bias() : at::zeros({sizes[2]}, weight.view().options());
  }
};

// Reads input, weight and bias from argument `first` on, and the padding.
OverTime ReadOverTime(const Call& call, int first) {
  OverTime read{call.In(first), call.In(first + 1), call.OptionalIn(first + 2),
                call.Int(first + 3)};
  const int input = first, weight = first + 1;
  for (int i : {input, weight}) {
    call.ExpectRank(i, call.View(i), 3);
    if (!at::isFloatingType(call.View(i).scalar_type())) {
      call.RejectArg(i, "has no floating dtype");
    }
  }
  const std::string of(call.Arg(input).name);
  if (read.weight.view().scalar_type() != read.input.view().scalar_type()) {
    call.RejectArg(weight, "has another dtype than " + of);
  }
  if (read.input.sizes()[2] != read.weight.sizes()[1]) {
    call.RejectArg(weight, "has other channels than " + of);
  }
  const int64_t channels = read.weight.sizes()[2];
  const int64_t steps = read.input.sizes()[0] + 2 * read.pad - read.weight.sizes()[0] + 1;
  if (read.pad < 0) call.RejectArg(first + 3, "is negative");
  if (steps < 1) call.RejectArg(weight, "is longer than the padded sequence");
  if (read.bias.defined()) call.ExpectSizes(first + 2, read.bias.view(), {channels});
  read.sizes = {steps, read.input.sizes()[1], channels};
  return read;
}

// (self, weight, bias?, pad, output, cubeMathType)
std::unique_ptr<Kernel> BindConvTbc(const Call& call) {
  const OverTime of = ReadOverTime(call, 0);
  const Tensor out = call.Out(4);
  call.ExpectSizes(4, out, of.sizes);
  return MakeKernel([=] {
    out.copy_(at::conv_tbc(of.input().contiguous(), of.weight().contiguous(), of.added(), of.pad));
  });
}

// (self, input, weight, bias?, pad, cubeMathType, gradInput, gradWeight, gradBias): the gradients
// of a convolution over time, whose output has the gradient `self`
std::unique_ptr<Kernel> BindConvTbcBackward(const Call& call) {
  const Operand gradient = call.In(0);
  const OverTime of = ReadOverTime(call, 1);
  call.ExpectSizes(0, gradient.view(), of.sizes);
  if (gradient.view().scalar_type() != of.input.view().scalar_type()) {
    call.RejectArg(0, "has another dtype than input");
  }
  const std::array<Tensor, 3> outs{call.Out(6), call.Out(7), call.Out(8)};
  const at::IntArrayRef sizes[3] = {of.input.sizes(), of.weight.sizes(), {&of.sizes[2], 1}};
  for (int i = 0; i < 3; ++i) call.ExpectSizes(6 + i, outs[i], sizes[i]);
  return MakeKernel([=] {
    const auto [input, weight, bias] =
        at::conv_tbc_backward(gradient().contiguous(), of.input().contiguous(),
                              of.weight().contiguous(), of.added(), of.pad);
    outs[0].copy_(input);
    outs[1].copy_(weight);
    outs[2].copy_(bias);
  });
}

}  // namespace

KernelRows ConvolutionRows() {
  return {
      {"aclnnConvolution", BindConvolution, Widen::kHalf},
      {"aclnnConvolutionBackward", BindConvolutionBackward, Widen::kHalf},
      {"aclnnConvTbc", BindConvTbc, Widen::kHalfAndBfloat16},
      {"aclnnConvTbcBackward", BindConvTbcBackward, Widen::kHalfAndBfloat16},
      {"aclnnConvDepthwise2d", BindDepthwise, Widen::kHalf, {3}},
  };
}

}  // namespace acltape::opapi
