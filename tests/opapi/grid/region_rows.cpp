// Points between the pixels of feature maps: pooled regions, and attention to sampling points. The
// references read a map at one place at a time, in double precision.
#include <cmath>

#include "tests/opapi/grid/quantized.h"
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Tolerance kBetween = {32, 2e-5, false, "places and parts in float32, against float64"};

// A place on a map of [height, width], with the four pixels around it.
struct Spot {
  int64_t y[2], x[2];
  double by_y[2], by_x[2];  // the parts of both lines and columns
};

// torchvision's rule: places up to one pixel outside of the map count as its border.
bool PooledSpot(double y, double x, int64_t height, int64_t width, Spot* spot) {
  if (y < -1 || x < -1 || y > static_cast<double>(height) || x > static_cast<double>(width)) {
    return false;
  }
  y = std::min(std::max(y, 0.0), static_cast<double>(height - 1));
  x = std::min(std::max(x, 0.0), static_cast<double>(width - 1));
  spot->y[0] = static_cast<int64_t>(y);
  spot->x[0] = static_cast<int64_t>(x);
  spot->y[1] = std::min(spot->y[0] + 1, height - 1);
  spot->x[1] = std::min(spot->x[0] + 1, width - 1);
  spot->by_y[1] = y - static_cast<double>(spot->y[0]);
  spot->by_x[1] = x - static_cast<double>(spot->x[0]);
  for (double* parts : {spot->by_y, spot->by_x}) parts[0] = 1 - parts[1];
  return true;
}

struct Pooled {
  int64_t height, width;
  double scale;
  int64_t points;
  bool aligned;
};

// Calls fn(bin row, bin column, spot, share) for each point of the region.
template <typename Fn>
void EachSpot(const Pooled& pooled, const Tensor& box, int64_t height, int64_t width, Fn fn) {
  const auto edge = [&](int i) {
    return box[i].item<double>() * pooled.scale - (pooled.aligned ? 0.5 : 0);
  };
  double wide = edge(2) - edge(0), high = edge(3) - edge(1);
  if (!pooled.aligned) {
    wide = std::max(wide, 1.0);
    high = std::max(high, 1.0);
  }
  const double bin_high = high / static_cast<double>(pooled.height);
  const double bin_wide = wide / static_cast<double>(pooled.width);
  const double rows = pooled.points > 0 ? static_cast<double>(pooled.points) : std::ceil(bin_high);
  const double columns =
      pooled.points > 0 ? static_cast<double>(pooled.points) : std::ceil(bin_wide);
  for (int64_t r = 0; r < pooled.height; ++r) {
    for (int64_t c = 0; c < pooled.width; ++c) {
      for (double i = 0; i < rows; ++i) {
        for (double j = 0; j < columns; ++j) {
          Spot spot;
          const double y = edge(1) + (static_cast<double>(r) + (i + 0.5) / rows) * bin_high;
          const double x = edge(0) + (static_cast<double>(c) + (j + 0.5) / columns) * bin_wide;
          if (PooledSpot(y, x, height, width, &spot)) fn(r, c, spot, 1 / (rows * columns));
        }
      }
    }
  }
}

// Boxes of [regions, 4] and the batch of each.
Tensor PooledByHand(const Pooled& pooled, const Tensor& self, const Tensor& boxes,
                    const Tensor& batches) {
  const Tensor maps = Wide(self);
  const Tensor result =
      at::zeros({boxes.size(0), maps.size(1), pooled.height, pooled.width}, at::kDouble);
  for (int64_t n = 0; n < boxes.size(0); ++n) {
    const Tensor map = maps[batches[n].item().toLong()], out = result[n];
    EachSpot(pooled, Wide(boxes[n]), map.size(1), map.size(2),
             [&](int64_t r, int64_t c, const Spot& spot, double share) {
               for (int corner = 0; corner < 4; ++corner) {
                 const int i = corner / 2, j = corner % 2;
                 out.select(1, r).select(1, c).add_(map.select(1, spot.y[i]).select(1, spot.x[j]),
                                                    share * spot.by_y[i] * spot.by_x[j]);
               }
             });
  }
  return result.to(self.scalar_type());
}

Tensor BoxesOf(at::ScalarType dtype) {
  return at::tensor({1.0, 0.5, 2.0, 6.5,  7.0, 0.0, -1.5, -2.0, 3.0,  2.5,
                     1.0, 3.0, 3.0, 3.25, 3.5, 0.0, 1.0,  1.0,  30.0, 4.0},
                    at::kFloat)
      .view({4, 5})
      .to(dtype);
}

Rows Regions() {
  const Dtypes dtypes = {at::kFloat, at::kHalf};
  return {
      {"aclnnRoiAlign",
       [](Source& source, at::ScalarType dtype) {
         const Tensor boxes = BoxesOf(dtype), rois = boxes.slice(1, 1);
         const Tensor batches = boxes.select(1, 0).to(at::kInt);
         std::vector<Args> inputs;
         for (int points : {0, 2}) {
           inputs.push_back(
               {source.Random({2, 3, 7, 9}, dtype), rois, batches, "avg", 2, 3, points, 1.0});
           inputs.push_back({source.Random({2, 9, 7, 3}, dtype).transpose(1, 3), rois, batches,
                             "avg", 3, 1, points, 0.5});
         }
         inputs.push_back({source.Random({2, 3, 7, 9}, dtype), rois.slice(0, 0, 0),
                           batches.slice(0, 0, 0), "avg", 2, 2, 0, 1.0});
         return inputs;
       },
       dtypes,
       [](const In& in) {
         return PooledByHand({in.integer(4), in.integer(5), in.real(7), in.integer(6), false},
                             in[0], in[1], in[2]);
       },
       kBetween},
      {"aclnnRoiAlignV2",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (bool aligned : {false, true}) {
           for (int64_t points : {0, 2}) {
             inputs.push_back({source.Random({2, 3, 7, 9}, dtype), BoxesOf(dtype), int64_t{2},
                               int64_t{3}, 1.0, points, aligned});
             inputs.push_back({source.Random({2, 9, 7, 3}, dtype).transpose(1, 3), BoxesOf(dtype),
                               int64_t{3}, int64_t{1}, 0.5, points, aligned});
           }
         }
         return inputs;
       },
       dtypes,
       [](const In& in) {
         return PooledByHand({in.integer(2), in.integer(3), in.real(4), in.integer(5), in.flag(6)},
                             in[0], in[1].slice(1, 1), in[1].select(1, 0));
       },
       kBetween},
      {"aclnnRoiAlignV2Backward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (bool aligned : {false, true}) {
           for (int64_t points : {0, 2}) {
             inputs.push_back({source.Random({4, 3, 2, 3}, dtype), BoxesOf(dtype), Ints{2, 3, 7, 9},
                               int64_t{2}, int64_t{3}, 1.0, points, aligned});
             inputs.push_back({source.Random({4, 1, 3, 2}, dtype).transpose(1, 3), BoxesOf(dtype),
                               Ints{2, 2, 5, 4}, int64_t{3}, int64_t{1}, 0.5, points, aligned});
           }
         }
         return inputs;
       },
       dtypes,
       [](const In& in) {
         const Pooled pooled = {in.integer(3), in.integer(4), in.real(5), in.integer(6),
                                in.flag(7)};
         const Tensor gradient = Wide(in[0]), result = at::zeros(in.ints(2), at::kDouble);
         for (int64_t n = 0; n < in[1].size(0); ++n) {
           const Tensor map = result[in[1][n][0].item().toLong()];
           EachSpot(pooled, Wide(in[1][n].slice(0, 1)), map.size(1), map.size(2),
                    [&](int64_t r, int64_t c, const Spot& spot, double share) {
                      for (int corner = 0; corner < 4; ++corner) {
                        const int i = corner / 2, j = corner % 2;
                        map.select(1, spot.y[i])
                            .select(1, spot.x[j])
                            .add_(gradient[n].select(1, r).select(1, c),
                                  share * spot.by_y[i] * spot.by_x[j]);
                      }
                    });
         }
         return result.to(in[0].scalar_type());
       },
       kBetween},
  };
}

// --- Attention to sampling points.

// The pixel of a level at a place, or zeros outside of its map.
Tensor PixelAt(const Tensor& rows, const Tensor& shape, int64_t start, int64_t y, int64_t x) {
  const int64_t height = shape[0].item().toLong(), width = shape[1].item().toLong();
  const bool inside = y >= 0 && x >= 0 && y < height && x < width;
  return inside ? rows[start + y * width + x] : at::zeros_like(rows[0]);
}

// (value, spatialShape, levelStartIndex, location, attnWeight): gives the value and its derivatives
// by both coordinates at a sampling point.
struct Sampled {
  Tensor value, by_x, by_y;
};

Sampled SampledAt(const Tensor& rows, const Tensor& shape, int64_t start, double u, double v) {
  const auto height = shape[0].item<double>(), width = shape[1].item<double>();
  const double x = u * width - 0.5, y = v * height - 0.5;
  const double left = std::floor(x), top = std::floor(y), dx = x - left, dy = y - top;
  const auto pixel = [&](int line, int column) {
    return PixelAt(rows, shape, start, static_cast<int64_t>(top) + line,
                   static_cast<int64_t>(left) + column);
  };
  const Tensor a = pixel(0, 0), b = pixel(0, 1), c = pixel(1, 0), d = pixel(1, 1);
  return {(1 - dy) * ((1 - dx) * a + dx * b) + dy * ((1 - dx) * c + dx * d),
          width * ((1 - dy) * (b - a) + dy * (d - c)),
          height * ((1 - dx) * (c - a) + dx * (d - b))};
}

// Calls fn(batch, query, head, level, point) for each sampling point.
template <typename Fn>
void EachSample(const Tensor& weights, Fn fn) {
  for (int64_t i = 0; i < weights.numel(); ++i) {
    int64_t rest = i, place[5];
    for (int d = 4; d >= 0; --d) {
      place[d] = rest % weights.size(d);
      rest /= weights.size(d);
    }
    fn(place[0], place[1], place[2], place[3], place[4]);
  }
}

Tensor AttendedByHand(const In& in) {
  const Tensor value = Wide(in[0]), location = Wide(in[3]), weight = Wide(in[4]);
  const int64_t heads = value.size(2), width = value.size(3);
  const Tensor result = at::zeros({value.size(0), weight.size(1), heads, width}, at::kDouble);
  EachSample(weight, [&](int64_t b, int64_t q, int64_t h, int64_t l, int64_t p) {
    const Tensor place = location[b][q][h][l][p];
    const Sampled sampled = SampledAt(value[b].select(1, h), in[1][l], in[2][l].item().toLong(),
                                      place[0].item<double>(), place[1].item<double>());
    result[b][q][h] += weight[b][q][h][l][p] * sampled.value;
  });
  return result.flatten(2).to(in[0].scalar_type());
}

std::tuple<Tensor, Tensor, Tensor> AttendedBackByHand(const In& in) {
  const Tensor value = Wide(in[0]), location = Wide(in[3]), weight = Wide(in[4]);
  const Tensor gradient =
      Wide(in[5]).view({value.size(0), weight.size(1), value.size(2), value.size(3)});
  const Tensor of_value = at::zeros_like(value), of_location = at::zeros_like(location);
  const Tensor of_weight = at::zeros_like(weight);
  EachSample(weight, [&](int64_t b, int64_t q, int64_t h, int64_t l, int64_t p) {
    const Tensor place = location[b][q][h][l][p], given = gradient[b][q][h];
    const double u = place[0].item<double>(), v = place[1].item<double>();
    const int64_t start = in[2][l].item().toLong();
    const Tensor rows = value[b].select(1, h);
    const Sampled sampled = SampledAt(rows, in[1][l], start, u, v);
    const Tensor part = weight[b][q][h][l][p];
    of_weight[b][q][h][l][p] = (given * sampled.value).sum();
    of_location[b][q][h][l][p][0] = part * (given * sampled.by_x).sum();
    of_location[b][q][h][l][p][1] = part * (given * sampled.by_y).sum();
    // How the sampled value changes with each pixel: the sample of a map that is 1 there alone.
    const int64_t pixels = in[1][l].prod().item().toLong();
    for (int64_t k = start; k < start + pixels; ++k) {
      const Tensor one = at::zeros({rows.size(0), 1}, at::kDouble);
      one[k] = 1;
      const Tensor share = SampledAt(one, in[1][l], start, u, v).value;
      of_value[b][k][h] += part * share * given;
    }
  });
  return {of_value.to(at::kFloat), of_location.to(at::kFloat), of_weight.to(at::kFloat)};
}

// Maps of 3 by 4 and of 2 by 2, one after the other; some places lie outside.
Inputs SampledMaps(bool has_gradient) {
  return [has_gradient](Source& source, at::ScalarType dtype) {
    const Tensor shapes = at::tensor({3, 4, 2, 2}, at::kInt).view({2, 2});
    const Tensor starts = at::tensor({0, 12}, at::kInt);
    std::vector<Args> inputs;
    for (bool strided : {false, true}) {
      const Tensor value = strided ? source.Random({2, 2, 16, 5}, dtype).transpose(1, 2)
                                   : source.Random({2, 16, 2, 5}, dtype);
      inputs.push_back({value, shapes, starts, source.Random({2, 3, 2, 2, 2, 2}, dtype, -0.2, 1.2),
                        source.Random({2, 3, 2, 2, 2}, dtype)});
      if (has_gradient) inputs.back().push_back(source.Random({2, 3, 10}, dtype));
    }
    return inputs;
  };
}

// --- Convolutions at places that are moved.

// Like aclnnDeformableConv2d's arguments from `kernelSize` on.
struct MovedLayer {
  Ints kernel, stride, padding, dilation;
  int64_t groups, parts;
};

MovedLayer MovedLayerOf(const In& in, int first) {
  return {in.ints(first),     in.ints(first + 1),    in.ints(first + 2),
          in.ints(first + 3), in.integer(first + 4), in.integer(first + 5)};
}

// How near each element of an axis is to each place: 1 at the place, 0 from the next element on.
Tensor NearnessOf(const Tensor& places, int64_t elements) {
  const Tensor each = at::arange(elements, at::kDouble);
  return (1 - (places.unsqueeze(-1) - each).abs()).clamp_min(0);
}

// Where the elements of the kernel lie without moves along an axis: [places, 1] + [kernel, 1, 1, 1]
// for the height.
Tensor PlainPlaces(int64_t places, int64_t stride, int64_t margin) {
  return at::arange(places, at::kDouble) * stride - margin;
}

// The samples of x, by a sum over all elements of its maps. Can be differentiated.
Tensor SamplesByNearness(const MovedLayer& layer, const Tensor& x, const Tensor& offset) {
  const int64_t n = x.size(0), rows = offset.size(2), columns = offset.size(3);
  const int64_t height = layer.kernel[0], width = layer.kernel[1];
  const Tensor moves = offset.reshape({n, 3, layer.parts, height, width, rows, columns});
  const Tensor y = moves.select(1, 1) +
                   PlainPlaces(rows, layer.stride[2], layer.padding[0]).view({rows, 1}) +
                   (at::arange(height, at::kDouble) * layer.dilation[2]).view({height, 1, 1, 1});
  const Tensor across = moves.select(1, 0) +
                        PlainPlaces(columns, layer.stride[3], layer.padding[2]) +
                        (at::arange(width, at::kDouble) * layer.dilation[3]).view({width, 1, 1});
  const Tensor maps = x.reshape({n, layer.parts, x.size(1) / layer.parts, x.size(2), x.size(3)});
  // n images, g parts, c channels, i and j in the kernel, p and q places, r and s in the map.
  const Tensor by_row = at::einsum("ngijpqr,ngcrs->ngcijpqs", {NearnessOf(y, x.size(2)), maps});
  const Tensor sum =
      at::einsum("ngcijpqs,ngijpqs->ngcpiqj", {by_row, NearnessOf(across, x.size(3))});
  const Tensor weights = moves.select(1, 2).permute({0, 1, 4, 2, 5, 3}).unsqueeze(2);
  return (sum * weights).reshape({n, x.size(1), rows * height, columns * width});
}

// The convolution of samples. Can be differentiated.
Tensor SumOfSamples(const MovedLayer& layer, const Tensor& samples, const Tensor& weight) {
  const int64_t n = samples.size(0), height = layer.kernel[0], width = layer.kernel[1];
  const int64_t rows = samples.size(2) / height, columns = samples.size(3) / width;
  const Tensor taps =
      samples.reshape({n, layer.groups, weight.size(1), rows, height, columns, width});
  const Tensor filters =
      weight.reshape({layer.groups, weight.size(0) / layer.groups, weight.size(1), height, width});
  return at::einsum("ngcpiqj,gocij->ngopq", {taps, filters})
      .reshape({n, weight.size(0), rows, columns});
}

// (x, weight, offset, bias?, layer, modulated): the convolution and the samples
std::tuple<Tensor, Tensor> MovedByNearness(const In& in) {
  const MovedLayer layer = MovedLayerOf(in, 4);
  const Tensor samples = SamplesByNearness(layer, Wide(in[0]), Wide(in[2]));
  Tensor sum = SumOfSamples(layer, samples, Wide(in[1]));
  if (in.maybe(3)) sum = sum + Wide(in[3]).view({-1, 1, 1});
  const at::ScalarType dtype = in[0].scalar_type();
  // One image asks for the convolution alone.
  return {sum.to(dtype), in[0].size(0) == 1 ? Tensor() : samples.to(dtype)};
}

// (input, gradOutput, offsetOut, weight, offset, layer, modulated)
std::tuple<Tensor, Tensor, Tensor, Tensor> MovedBackByNearness(const In& in) {
  const at::AutoGradMode enabled(true);
  const MovedLayer layer = MovedLayerOf(in, 5);
  const auto leaf = [&](int i) { return Wide(in[i]).detach().clone().requires_grad_(); };
  const Tensor samples = leaf(2), weight = leaf(3), x = leaf(0), offset = leaf(4);
  const Tensor gradient = Wide(in[1]);
  SumOfSamples(layer, samples, weight).backward(gradient);
  SamplesByNearness(layer, x, offset).backward(samples.grad());
  const at::ScalarType dtype = in[0].scalar_type();
  return {x.grad().to(dtype), weight.grad().to(dtype), offset.grad().to(dtype),
          gradient.sum({0, 2, 3}).to(dtype)};
}

// Moves, none of which is a whole number: there the formula has no derivative.
Tensor MovesOf(Source& source, Ints sizes, at::ScalarType dtype) {
  const Tensor moves =
      source.Random(sizes, at::kFloat, -2, 2).floor() + source.Random(sizes, at::kFloat, 0.2, 0.8);
  const int64_t third = sizes[1] / 3;
  moves.slice(1, 2 * third).copy_(source.Random({sizes[0], third, sizes[2], sizes[3]}, at::kFloat));
  return moves.to(dtype);
}

struct MovedCall {
  MovedLayer layer;
  Ints x, result;
};

// Several parts and groups with strides, dilations and unequal margins; a kernel of one element;
// one element in all; groups of one channel.
const std::vector<MovedCall> kMovedCalls = {
    {{{3, 2}, {1, 1, 2, 1}, {1, 2, 0, 1}, {1, 1, 1, 2}, 2, 2}, {2, 4, 5, 6}, {2, 6, 3, 5}},
    {{{1, 1}, {1, 1, 1, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}, 1, 3}, {2, 3, 4, 3}, {2, 2, 4, 3}},
    {{{1, 1}, {1, 1, 1, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}},
    {{{2, 2}, {1, 1, 1, 3}, {1, 1, 2, 0}, {1, 1, 2, 1}, 3, 1}, {1, 3, 3, 4}, {1, 3, 3, 2}},
};

Inputs MovedCalls(bool backward) {
  return [backward](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const auto& [layer, sizes, result] : kMovedCalls) {
      const int64_t height = layer.kernel[0], width = layer.kernel[1], n = sizes[0];
      const bool strided = height == 1;
      const Tensor x = strided
                           ? source.Random({n, sizes[1], sizes[3], sizes[2]}, dtype).transpose(2, 3)
                           : source.Random(sizes, dtype);
      const Tensor weight =
          source.Random({result[1], sizes[1] / layer.groups, height, width}, dtype);
      const Tensor offset =
          MovesOf(source, {n, 3 * layer.parts * height * width, result[2], result[3]}, dtype);
      const Arg bias = strided && n > 1 ? Arg(Null{}) : Arg(source.Random({result[1]}, dtype));
      Args args = {x, weight, offset, bias};
      if (backward) {
        args = {x, source.Random(result, dtype),
                source.Random({n, sizes[1], result[2] * height, result[3] * width}, dtype), weight,
                offset};
      }
      for (const Ints& numbers : {layer.kernel, layer.stride, layer.padding, layer.dilation}) {
        args.push_back(numbers);
      }
      args.insert(args.end(), {layer.groups, layer.parts, true});
      inputs.push_back(args);
    }
    return inputs;
  };
}

Rows Samples() {
  const Dtypes dtypes = {at::kFloat, at::kHalf, at::kBFloat16};
  const Tolerance near = {4, 2e-5, false, "the formula is of doubles"};
  return {
      {"aclnnMultiScaleDeformableAttnFunction",
       SampledMaps(false),
       {at::kFloat, at::kHalf, at::kBFloat16},
       AttendedByHand,
       kBetween},
      {"aclnnMultiScaleDeformableAttentionGrad",
       SampledMaps(true),
       {at::kFloat},
       AttendedBackByHand,
       kBetween},
      {"aclnnDeformableConv2d", MovedCalls(false), dtypes, MovedByNearness, near, -1, 1},
      {"aclnnDeformableConv2dBackward", MovedCalls(true), dtypes, MovedBackByNearness, near, -1, 1},
  };
}

}  // namespace

Rows RegionRows() {
  Rows rows = Regions();
  for (const Row& row : Samples()) rows.push_back(row);
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
