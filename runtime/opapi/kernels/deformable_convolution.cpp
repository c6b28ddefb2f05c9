// Convolutions whose elements read a feature map at places that are moved, and their gradients. The
// rules are those of the vendor's pages aclnnDeformableConv2d and aclnnDeformableConv2dBackward.
//
// The samples are a tensor with an element for each element of the kernel at each place of the
// convolution, so a plain convolution whose strides are the kernel's sizes does the rest. All is
// computed in float32 and rounded once, as on a device.
#include <ATen/ATen.h>

#include <limits>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/optional.h"
#include "runtime/opapi/kernels/pixel_corners.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Limits of the pages.
constexpr int64_t kMostTaps = 2048;       // elements of the kernel
constexpr int64_t kMostProducts = 65535;  // as many in one element of the result
constexpr int64_t kMostPixels = std::numeric_limits<int32_t>::max();

// Numbers along both axes.
struct HeightAndWidth {
  int64_t height, width;
};

struct DeformableLayer {
  int64_t images = 0, channels = 0, out_channels = 0;
  int64_t groups = 0;  // those of the convolution
  int64_t parts = 0;   // parts of the channels, each with moves of its own (deformableGroups)
  HeightAndWidth map{}, out{}, kernel{}, strides{}, dilations{}, margin{};  // at the top, the left

  int64_t taps() const { return kernel.height * kernel.width; }
  std::vector<int64_t> samples() const {
    return {images, channels, out.height * kernel.height, out.width * kernel.width};
  }
  std::vector<int64_t> result() const { return {images, out_channels, out.height, out.width}; }
  // The sizes of the offsets: moves along x, those along y, and weights.
  std::vector<int64_t> moves() const { return {images, 3 * parts * taps(), out.height, out.width}; }
};

// The positions of a call's arguments. The numbers begin with kernelSize.
struct Positions {
  int x, weight, offset, numbers;
};

// `count` numbers from `lowest` on, none of which makes a sum overflow.
std::vector<int64_t> ReadBounded(const Call& call, int i, size_t count, int64_t lowest) {
  std::vector<int64_t> numbers = call.Ints(i);
  if (numbers.size() != count) {
    call.RejectArg(
        i, "has " + std::to_string(numbers.size()) + " entries, expected " + std::to_string(count));
  }
  for (int64_t number : numbers) {
    if (number < lowest || number > std::numeric_limits<int32_t>::max()) {
      call.RejectArg(i, "holds " + std::to_string(number) + ", expected at least " +
                            std::to_string(lowest) + " and at most 2147483647");
    }
  }
  return numbers;
}

// Numbers for n, c, h and w, of which the first two are 1.
HeightAndWidth ReadSteps(const Call& call, int i) {
  const std::vector<int64_t> steps = ReadBounded(call, i, 4, 1);
  if (steps[0] != 1 || steps[1] != 1) {
    call.RejectArg(i, "is " + SizesText(steps) + ", expected 1 for images and channels");
  }
  return {steps[2], steps[3]};
}

// A divisor of the channels.
int64_t ReadGroups(const Call& call, int i, int64_t channels) {
  const int64_t groups = call.Int(i);
  if (groups < 1 || channels % groups != 0) {
    call.RejectArg(i, "is " + std::to_string(groups) + ", which does not divide " +
                          std::to_string(channels) + " channels");
  }
  return groups;
}

// The places of the kernel along an axis.
int64_t PlacesAlong(int64_t elements, int64_t margins, int64_t kernel, int64_t dilation,
                    int64_t stride) {
  const int64_t room = elements + margins - (kernel - 1) * dilation - 1;
  return room < 0 ? 0 : room / stride + 1;
}

// A padding of the page's order: top, bottom, left, right. The pages do not speak of negative ones,
// and the vendor's checks of the gradients refuse them, so both operators do here.
DeformableLayer ReadLayer(const Call& call, const Positions& of) {
  for (int i : {of.x, of.weight}) {
    const Tensor view = call.View(i);
    call.ExpectRank(i, view, 4);
    ExpectDtypes(call, i, view, {at::kFloat, at::kHalf, at::kBFloat16});
    if (view.numel() == 0) call.RejectArg(i, "has no elements");
  }
  DeformableLayer layer;
  const Tensor x = call.View(of.x), weight = call.View(of.weight);
  const std::vector<int64_t> kernel = ReadBounded(call, of.numbers, 2, 1);
  const std::vector<int64_t> padding = ReadBounded(call, of.numbers + 2, 4, 0);
  layer.kernel = {kernel[0], kernel[1]};
  layer.strides = ReadSteps(call, of.numbers + 1);
  layer.dilations = ReadSteps(call, of.numbers + 3);
  layer.margin = {padding[0], padding[2]};
  layer.images = x.size(0);
  layer.channels = x.size(1);
  layer.out_channels = weight.size(0);
  layer.map = {x.size(2), x.size(3)};
  layer.groups = ReadGroups(call, of.numbers + 4, layer.channels);
  ReadGroups(call, of.numbers + 4, layer.out_channels);
  layer.parts = ReadGroups(call, of.numbers + 5, layer.channels);
  if (!call.Bool(of.numbers + 6)) call.RejectArg(of.numbers + 6, "is false, expected true");
  if (layer.taps() > kMostTaps || layer.taps() * layer.channels / layer.groups > kMostProducts) {
    call.RejectArg(of.numbers, "is " + SizesText(kernel) + ", expected " +
                                   std::to_string(kMostTaps) + " elements at most, and " +
                                   std::to_string(kMostProducts) +
                                   " at most in all channels of a group");
  }
  if (layer.map.height * layer.map.width > kMostPixels) {
    call.RejectArg(of.x, "has more than 2147483647 elements in a map");
  }
  layer.out = {PlacesAlong(layer.map.height, padding[0] + padding[1], kernel[0],
                           layer.dilations.height, layer.strides.height),
               PlacesAlong(layer.map.width, padding[2] + padding[3], kernel[1],
                           layer.dilations.width, layer.strides.width)};
  if (layer.out.height < 1 || layer.out.width < 1) {
    call.RejectArg(of.numbers, "is " + SizesText(kernel) + ", larger than the padded map");
  }
  call.ExpectSizes(of.weight, weight,
                   {layer.out_channels, layer.channels / layer.groups, kernel[0], kernel[1]});
  call.ExpectSizes(of.offset, call.View(of.offset), layer.moves());
  return layer;
}

// Rejects the call unless the tensor has the dtype of `x` and these sizes.
void ExpectLike(const Call& call, int i, const Tensor& tensor, const Tensor& x,
                const std::vector<int64_t>& sizes) {
  ExpectDtypes(call, i, tensor, {x.scalar_type()});
  call.ExpectSizes(i, tensor, sizes);
}

// One element of the samples.
struct Sample {
  int64_t image, first_channel;
  int64_t place;         // in each channel of the samples
  int64_t x, y, weight;  // the indices of its moves and of its weight among the offsets
  PixelCorners around;
};

// Calls fn(sample) for each sample of each part of the channels.
template <typename Fn>
void ForEachSample(const DeformableLayer& layer, const float* offsets, Fn fn) {
  const int64_t taps = layer.taps(), places = layer.out.height * layer.out.width;
  const int64_t kind = layer.parts * taps * places;  // the offsets of one kind
  for (int64_t i = 0; i < layer.images * kind; ++i) {
    const int64_t place = i % places, tap = i / places % taps;
    const int64_t image = i / kind, part = i / (places * taps) % layer.parts;
    const HeightAndWidth at_place{place / layer.out.width, place % layer.out.width};
    const HeightAndWidth of_tap{tap / layer.kernel.width, tap % layer.kernel.width};
    Sample sample{image, part * (layer.channels / layer.parts)};
    sample.place = (at_place.height * layer.kernel.height + of_tap.height) * layer.out.width *
                       layer.kernel.width +
                   at_place.width * layer.kernel.width + of_tap.width;
    sample.x = i + 2 * image * kind;
    sample.y = sample.x + kind;
    sample.weight = sample.y + kind;
    const int64_t line = at_place.height * layer.strides.height - layer.margin.height +
                         of_tap.height * layer.dilations.height;
    const int64_t column = at_place.width * layer.strides.width - layer.margin.width +
                           of_tap.width * layer.dilations.width;
    sample.around = CornersAround(static_cast<float>(column) + offsets[sample.x],
                                  static_cast<float>(line) + offsets[sample.y], layer.map.width,
                                  layer.map.height);
    fn(sample);
  }
}

// The first elements of the channels of a sample, in the map and in the samples.
struct ChannelWalk {
  int64_t pixels, samples, count;

  explicit ChannelWalk(const DeformableLayer& layer)
      : pixels(layer.map.height * layer.map.width),
        samples(layer.taps() * layer.out.height * layer.out.width),
        count(layer.channels / layer.parts),
        channels_(layer.channels) {}

  // Calls fn(map, place): the first element of a channel's map, and the sample's index.
  template <typename Fn>
  void Each(const Sample& sample, Fn fn) const {
    const int64_t first = sample.image * channels_ + sample.first_channel;
    for (int64_t c = first; c < first + count; ++c) fn(c * pixels, c * samples + sample.place);
  }

 private:
  int64_t channels_;
};

Tensor SamplesOf(const DeformableLayer& layer, const Tensor& x, const Tensor& offset) {
  const Tensor maps = x.contiguous(), moves = offset.contiguous();
  const Tensor samples = at::zeros(layer.samples(), at::TensorOptions(at::kFloat));
  const ChannelWalk channels(layer);
  const auto *pixels = maps.data_ptr<float>(), *offsets = moves.data_ptr<float>();
  auto* out = samples.data_ptr<float>();
  ForEachSample(layer, offsets, [&](const Sample& sample) {
    channels.Each(sample, [&](int64_t map, int64_t place) {
      float sum = 0;
      for (const PixelCorner& corner : sample.around)
        sum += corner.part * pixels[map + corner.pixel];
      out[place] = offsets[sample.weight] * sum;
    });
  });
  return samples;
}

// (x, weight, offset, biasOptional, kernelSize, stride, padding, dilation, groups,
// deformableGroups, modulated, out, deformOutOptional)
std::unique_ptr<Kernel> BindDeformableConvolution(const Call& call) {
  const DeformableLayer layer = ReadLayer(call, {0, 1, 2, 4});
  const Operand x = call.In(0), weight = call.In(1), offset = call.In(2);
  const Operand bias = call.OptionalIn(3);
  const Tensor out = call.Out(11), samples_out = call.OptionalOut(12);
  ExpectLike(call, 1, weight.view(), x.view(), weight.sizes().vec());
  ExpectLike(call, 2, offset.view(), x.view(), layer.moves());
  if (bias.defined()) ExpectLike(call, 3, bias.view(), x.view(), {layer.out_channels});
  ExpectLike(call, 11, out, x.view(), layer.result());
  if (samples_out.defined()) ExpectLike(call, 12, samples_out, x.view(), layer.samples());
  return MakeKernel([=] {
    const Tensor samples = SamplesOf(layer, x(), offset());
    out.copy_(at::convolution(samples, weight(), Maybe(bias),
                              {layer.kernel.height, layer.kernel.width}, {0, 0}, {1, 1},
                              /*transposed=*/false, {0, 0}, layer.groups));
    if (samples_out.defined()) samples_out.copy_(samples);
  });
}

// The gradients of x and of the offsets, from those of the samples.
std::pair<Tensor, Tensor> GradientsOfSamples(const DeformableLayer& layer, const Tensor& x,
                                             const Tensor& offset, const Tensor& gradient) {
  const Tensor maps = x.contiguous(), moves = offset.contiguous(), given = gradient.contiguous();
  const Tensor of_x = at::zeros_like(maps), of_offset = at::zeros_like(moves);
  const ChannelWalk channels(layer);
  const auto *pixels = maps.data_ptr<float>(), *offsets = moves.data_ptr<float>();
  const auto* of_samples = given.data_ptr<float>();
  auto *of_pixels = of_x.data_ptr<float>(), *of_moves = of_offset.data_ptr<float>();
  ForEachSample(layer, offsets, [&](const Sample& sample) {
    const float weight = offsets[sample.weight];
    float sampled = 0, by_x = 0, by_y = 0;
    channels.Each(sample, [&](int64_t map, int64_t place) {
      for (const PixelCorner& corner : sample.around) {
        const float product = of_samples[place] * pixels[map + corner.pixel];
        of_pixels[map + corner.pixel] += of_samples[place] * weight * corner.part;
        sampled += corner.part * product;
        by_x += corner.by_x * product;
        by_y += corner.by_y * product;
      }
    });
    of_moves[sample.x] = weight * by_x;
    of_moves[sample.y] = weight * by_y;
    of_moves[sample.weight] = sampled;
  });
  return {of_x, of_offset};
}

// (input, gradOutput, offsetOut, weight, offset, kernelSize, stride, padding, dilation, groups,
// deformableGroups, modulated, gradInput, gradWeight, gradOffset, gradBias). The gradient of the
// weight comes from the samples that the call gives. The page offers the operator on the Ascend 950
// alone; the soft device takes its calls whatever device it is said to be.
std::unique_ptr<Kernel> BindDeformableConvolutionBackward(const Call& call) {
  const DeformableLayer layer = ReadLayer(call, {0, 3, 4, 5});
  const Operand x = call.In(0), gradient = call.In(1), samples = call.In(2), weight = call.In(3);
  const Operand offset = call.In(4);
  ExpectLike(call, 1, gradient.view(), x.view(), layer.result());
  ExpectLike(call, 2, samples.view(), x.view(), layer.samples());
  ExpectLike(call, 3, weight.view(), x.view(), weight.sizes().vec());
  ExpectLike(call, 4, offset.view(), x.view(), layer.moves());
  const std::vector<int64_t> bias_sizes{layer.out_channels};
  const std::array<Tensor, 4> outs{call.Out(12), call.Out(13), call.Out(14), call.Out(15)};
  const std::vector<int64_t> sizes[4] = {x.sizes().vec(), weight.sizes().vec(), layer.moves(),
                                         bias_sizes};
  for (int i = 0; i < 4; ++i) ExpectLike(call, 12 + i, outs[i], x.view(), sizes[i]);
  return MakeKernel([=] {
    const auto [of_samples, of_weight, of_bias] = at::convolution_backward(
        gradient(), samples(), weight(), at::OptionalIntArrayRef(bias_sizes),
        {layer.kernel.height, layer.kernel.width}, {0, 0}, {1, 1}, /*transposed=*/false, {0, 0},
        layer.groups, {true, true, true});
    const auto [of_x, of_offset] = GradientsOfSamples(layer, x(), offset(), of_samples);
    const std::array<Tensor, 4> results{of_x, of_weight, of_offset, of_bias};
    for (size_t i = 0; i < results.size(); ++i) outs[i].copy_(results[i]);
  });
}

}  // namespace

KernelRows DeformableConvolutionRows() {
  return {
      {"aclnnDeformableConv2d", BindDeformableConvolution, Widen::kHalfAndBfloat16},
      {"aclnnDeformableConv2dBackward", BindDeformableConvolutionBackward, Widen::kHalfAndBfloat16},
  };
}

}  // namespace acltape::opapi
