// Attention to sampling points of feature maps at several scales ("levels"), as deformable
// detection transformers have it. A point between four pixels counts each by its nearness; pixels
// outside of their map count nothing. The rules are those of the vendor's pages
// aclnnMultiScaleDeformableAttnFunction and aclnnMultiScaleDeformableAttentionGrad.
#include <ATen/ATen.h>

#include <array>

#include "runtime/opapi/kernels/pixel_corners.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// value [batch, keys, heads, width], spatialShape [levels, 2] of heights and widths,
// levelStartIndex [levels], location [batch, queries, heads, levels, points, 2] of parts of a map's
// width and height, attnWeight [batch, queries, heads, levels, points].
struct SampledMaps {
  Operand value, location, weight;
  Tensor shapes, starts;
  int64_t batch = 0, keys = 0, heads = 0, width = 0, queries = 0, levels = 0, points = 0;
};

SampledMaps ReadSampledMaps(const Call& call) {
  SampledMaps maps{call.In(0), call.In(3), call.In(4), call.View(1), call.View(2)};
  call.ExpectRank(0, maps.value.view(), 4);
  call.ExpectRank(4, maps.weight.view(), 5);
  const at::IntArrayRef value = maps.value.sizes(), weight = maps.weight.sizes();
  maps.batch = value[0];
  maps.keys = value[1];
  maps.heads = value[2];
  maps.width = value[3];
  maps.queries = weight[1];
  maps.levels = weight[3];
  maps.points = weight[4];
  for (int i : {3, 4}) ExpectDtypes(call, i, call.View(i), {maps.value.view().scalar_type()});
  call.ExpectSizes(4, maps.weight.view(),
                   {maps.batch, maps.queries, maps.heads, maps.levels, maps.points});
  call.ExpectSizes(3, maps.location.view(),
                   {maps.batch, maps.queries, maps.heads, maps.levels, maps.points, 2});
  call.ExpectSizes(1, maps.shapes, {maps.levels, 2});
  call.ExpectSizes(2, maps.starts, {maps.levels});
  for (int i : {1, 2}) ExpectDtypes(call, i, call.View(i), {at::kInt, at::kLong});
  return maps;
}

// The tensors of a call in float32, each row of `width` elements in a piece.
struct SampledMemory {
  Tensor value, location, weight, shapes, starts;

  explicit SampledMemory(const SampledMaps& maps)
      : value(maps.value().to(at::kFloat).contiguous()),
        location(maps.location().to(at::kFloat).contiguous()),
        weight(maps.weight().to(at::kFloat).contiguous()),
        shapes(maps.shapes.to(at::kLong).contiguous()),
        starts(maps.starts.to(at::kLong).contiguous()) {}
};

struct SampledPoint {
  int64_t query_row;  // among the rows of [batch, queries, heads]
  int64_t index;      // among the elements of [batch, queries, heads, levels, points]
  float map_width, map_height;
  PixelCorners around;
  std::array<int64_t, 4> rows{};  // the pixels around it, among the rows of `value`
};

// Calls fn(point) for each sampling point.
template <typename Fn>
void ForEachSampledPoint(const SampledMaps& maps, const SampledMemory& memory, Fn fn) {
  const auto* location = memory.location.data_ptr<float>();
  const auto* shapes = memory.shapes.data_ptr<int64_t>();
  const auto* starts = memory.starts.data_ptr<int64_t>();
  int64_t index = 0;
  for (int64_t row = 0; row < maps.batch * maps.queries * maps.heads; ++row) {
    const int64_t batch = row / (maps.queries * maps.heads), head = row % maps.heads;
    for (int64_t level = 0; level < maps.levels; ++level) {
      const int64_t height = shapes[2 * level], width = shapes[2 * level + 1];
      for (int64_t point = 0; point < maps.points; ++point, ++index) {
        SampledPoint sampled{row, index, static_cast<float>(width), static_cast<float>(height)};
        const float x = location[2 * index] * sampled.map_width - 0.5F;
        const float y = location[2 * index + 1] * sampled.map_height - 0.5F;
        sampled.around = CornersAround(x, y, width, height);
        for (int corner = 0; corner < sampled.around.count; ++corner) {
          const int64_t key = starts[level] + sampled.around.corners[corner].pixel;
          TORCH_CHECK(key >= 0 && key < maps.keys, "level ", level, " has the pixel ", key,
                      ", which is out of range for ", maps.keys);
          sampled.rows[corner] = (batch * maps.keys + key) * maps.heads + head;
        }
        fn(sampled);
      }
    }
  }
}

// (value, spatialShape, levelStartIndex, location, attnWeight, output)
std::unique_ptr<Kernel> BindDeformableAttention(const Call& call) {
  const SampledMaps maps = ReadSampledMaps(call);
  ExpectDtypes(call, 0, maps.value.view(), {at::kFloat, at::kHalf, at::kBFloat16});
  return BindWhole(call, 5, {maps.batch, maps.queries, maps.heads * maps.width}, [=] {
    const SampledMemory memory(maps);
    const Tensor result = at::zeros({maps.batch, maps.queries, maps.heads * maps.width},
                                    at::TensorOptions(at::kFloat));
    const auto* value = memory.value.data_ptr<float>();
    const auto* weight = memory.weight.data_ptr<float>();
    auto* out = result.data_ptr<float>();
    ForEachSampledPoint(maps, memory, [&](const SampledPoint& point) {
      for (int corner = 0; corner < point.around.count; ++corner) {
        const float part = weight[point.index] * point.around.corners[corner].part;
        const float* pixel = value + point.rows[corner] * maps.width;
        float* sum = out + point.query_row * maps.width;
        for (int64_t c = 0; c < maps.width; ++c) sum[c] += part * pixel[c];
      }
    });
    return result;
  });
}

// (value, spatialShape, levelStartIndex, location, attnWeight, gradOutput, gradValue, gradLocation,
// gradAttnWeight)
std::unique_ptr<Kernel> BindDeformableAttentionGrad(const Call& call) {
  const SampledMaps maps = ReadSampledMaps(call);
  const Operand gradient = call.In(5);
  for (int i : {0, 5}) ExpectDtypes(call, i, call.View(i), {at::kFloat});
  call.ExpectSizes(5, gradient.view(), {maps.batch, maps.queries, maps.heads * maps.width});
  const Tensor of_value = call.Out(6), of_location = call.Out(7), of_weight = call.Out(8);
  call.ExpectSizes(6, of_value, maps.value.sizes());
  call.ExpectSizes(7, of_location, maps.location.sizes());
  call.ExpectSizes(8, of_weight, maps.weight.sizes());
  return MakeKernel([=] {
    const SampledMemory memory(maps);
    const Tensor given = gradient().contiguous();
    const Tensor values = at::zeros(maps.value.sizes(), given.options());
    const Tensor locations = at::zeros(maps.location.sizes(), given.options());
    const Tensor weights = at::zeros(maps.weight.sizes(), given.options());
    const auto* value = memory.value.data_ptr<float>();
    const auto* weight = memory.weight.data_ptr<float>();
    ForEachSampledPoint(maps, memory, [&](const SampledPoint& point) {
      const float* of_out = given.data_ptr<float>() + point.query_row * maps.width;
      float sampled = 0, by_x = 0, by_y = 0;
      for (int corner = 0; corner < point.around.count; ++corner) {
        const PixelCorner& pixel = point.around.corners[corner];
        const int64_t row = point.rows[corner] * maps.width;
        float* of_pixel = values.data_ptr<float>() + row;
        float product = 0;
        for (int64_t c = 0; c < maps.width; ++c) {
          product += of_out[c] * value[row + c];
          of_pixel[c] += weight[point.index] * pixel.part * of_out[c];
        }
        sampled += pixel.part * product;
        by_x += pixel.by_x * product;
        by_y += pixel.by_y * product;
      }
      weights.data_ptr<float>()[point.index] = sampled;
      auto* place = locations.data_ptr<float>() + 2 * point.index;
      place[0] = weight[point.index] * by_x * point.map_width;
      place[1] = weight[point.index] * by_y * point.map_height;
    });
    of_value.copy_(values);
    of_location.copy_(locations);
    of_weight.copy_(weights);
  });
}

}  // namespace

KernelRows DeformableAttentionRows() {
  return {
      {"aclnnMultiScaleDeformableAttnFunction", BindDeformableAttention},
      {"aclnnMultiScaleDeformableAttentionGrad", BindDeformableAttentionGrad},
  };
}

}  // namespace acltape::opapi
