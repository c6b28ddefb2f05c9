// Regions of feature maps, pooled to one size: each bin is the mean of points between the pixels.
// The vendor's pages say whose rules they follow: aclnnRoiAlign those of ONNX opset 10, and
// aclnnRoiAlignV2 and aclnnRoiAlignV2Backward those of torchvision.
#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The most points of a bin along one side.
constexpr int64_t kMostPoints = 4096;
constexpr int64_t kMostAskedPoints = 64;

struct RegionPooling {
  int64_t height, width;  // bins of each region
  double scale;           // pixels of the map for one unit of a region's coordinates
  int64_t points;         // along each side of a bin; 0: as many as it has pixels
  bool aligned;           // pixels have their values in their middles
};

RegionPooling ReadPooling(const Call& call, int height, int width, int scale, int points,
                          bool aligned) {
  for (int i : {height, width}) {
    if (call.Int(i) < 1) call.RejectArg(i, "is less than 1");
  }
  if (!(call.Real(scale) > 0)) call.RejectArg(scale, "must be positive");
  if (call.Int(points) > kMostAskedPoints) {
    call.RejectArg(points, "is more than " + std::to_string(kMostAskedPoints) +
                               ", which the soft device takes");
  }
  return {call.Int(height), call.Int(width), call.Real(scale),
          std::max<int64_t>(call.Int(points), 0), aligned};
}

// A pixel and its part in the mean of a bin.
struct PooledPixel {
  int64_t offset;  // in a map of [height, width]
  float part;
};

// The pixels around a point, by their nearness; none for a point outside of the map.
std::array<PooledPixel, 4> PixelsAround(float y, float x, int64_t height, int64_t width,
                                        float share) {
  std::array<PooledPixel, 4> pixels{};
  const bool inside =
      y >= -1 && x >= -1 && y <= static_cast<float>(height) && x <= static_cast<float>(width);
  if (!inside || height == 0 || width == 0) return pixels;
  const auto split = [](float place, int64_t size) {
    const float bounded = std::min(std::max(place, 0.0F), static_cast<float>(size - 1));
    const auto low = static_cast<int64_t>(bounded);
    return std::make_tuple(low, std::min(low + 1, size - 1), bounded - static_cast<float>(low));
  };
  const auto [top, bottom, below] = split(y, height);
  const auto [left, right, beside] = split(x, width);
  pixels[0] = {top * width + left, share * (1 - below) * (1 - beside)};
  pixels[1] = {top * width + right, share * (1 - below) * beside};
  pixels[2] = {bottom * width + left, share * below * (1 - beside)};
  pixels[3] = {bottom * width + right, share * below * beside};
  return pixels;
}

// Calls fn(bin, pixel) for each pixel that is part of a bin of the region; `box` is its left, top,
// right and bottom.
template <typename Fn>
void ForEachPooledPixel(const RegionPooling& pooling, const float* box, int64_t map_height,
                        int64_t map_width, Fn fn) {
  const auto scale = static_cast<float>(pooling.scale);
  const float shift = pooling.aligned ? 0.5F : 0.0F;
  const float left = box[0] * scale - shift, top = box[1] * scale - shift;
  float width = box[2] * scale - shift - left, height = box[3] * scale - shift - top;
  if (!pooling.aligned) {
    width = std::max(width, 1.0F);
    height = std::max(height, 1.0F);
  }
  const float bin_width = width / static_cast<float>(pooling.width);
  const float bin_height = height / static_cast<float>(pooling.height);
  const auto points_of = [&](float bin) {
    if (pooling.points > 0) return pooling.points;
    TORCH_CHECK(bin <= static_cast<float>(kMostPoints), "a bin has the size ", bin,
                ", which is out of range for ", kMostPoints);
    return static_cast<int64_t>(std::ceil(std::max(bin, 0.0F)));
  };
  const int64_t rows = points_of(bin_height), columns = points_of(bin_width);
  const float share = 1 / static_cast<float>(std::max<int64_t>(rows * columns, 1));
  for (int64_t bin = 0; bin < pooling.height * pooling.width; ++bin) {
    const float bin_top = top + static_cast<float>(bin / pooling.width) * bin_height;
    const float bin_left = left + static_cast<float>(bin % pooling.width) * bin_width;
    for (int64_t point = 0; point < rows * columns; ++point) {
      const float in_y = static_cast<float>(point / columns) + 0.5F;
      const float in_x = static_cast<float>(point % columns) + 0.5F;
      const float y = bin_top + in_y * bin_height / static_cast<float>(rows);
      const float x = bin_left + in_x * bin_width / static_cast<float>(columns);
      for (const PooledPixel& pixel : PixelsAround(y, x, map_height, map_width, share)) {
        if (pixel.part != 0) fn(bin, pixel);
      }
    }
  }
}

// The regions of a call: boxes [regions, 4], and the batch of each.
struct RegionBoxes {
  Tensor boxes, batches;

  // The batch that region `r` is part of. A number out of range fails the task.
  int64_t BatchOf(int64_t r, int64_t count) const {
    const auto batch = static_cast<double>(batches.data_ptr<float>()[r]);
    TORCH_CHECK(batch >= 0 && batch < static_cast<double>(count), "region ", r, " has the batch ",
                batch, ", which is out of range for ", count);
    return static_cast<int64_t>(batch);
  }
};

RegionBoxes DenseBoxes(const Tensor& boxes, const Tensor& batches) {
  return {boxes.to(at::kFloat).contiguous(), batches.to(at::kFloat).contiguous()};
}

// [regions, channels, bins]
Tensor PoolRegions(const RegionPooling& pooling, const Tensor& self, const RegionBoxes& regions) {
  const Tensor maps = self.to(at::kFloat).contiguous();
  const int64_t channels = maps.size(1), area = maps.size(2) * maps.size(3);
  const int64_t count = regions.boxes.size(0), bins = pooling.height * pooling.width;
  const Tensor result = at::zeros({count, channels, bins}, maps.options());
  for (int64_t r = 0; r < count; ++r) {
    const int64_t batch = regions.BatchOf(r, maps.size(0));
    const auto* from = maps.data_ptr<float>() + batch * channels * area;
    auto* to = result.data_ptr<float>() + r * channels * bins;
    ForEachPooledPixel(pooling, regions.boxes.data_ptr<float>() + 4 * r, maps.size(2), maps.size(3),
                       [&](int64_t bin, const PooledPixel& pixel) {
                         for (int64_t c = 0; c < channels; ++c) {
                           to[c * bins + bin] += pixel.part * from[c * area + pixel.offset];
                         }
                       });
  }
  return result.view({count, channels, pooling.height, pooling.width});
}

void ExpectMaps(const Call& call, int i, const Tensor& maps) {
  call.ExpectRank(i, maps, 4);
  ExpectDtypes(call, i, maps, {at::kFloat, at::kHalf});
}

// (self, rois, batchIndices, mode, outputHeight, outputWidth, samplingRatio, spatialScale, out)
std::unique_ptr<Kernel> BindRoiAlign(const Call& call) {
  const Tensor self = call.View(0), rois = call.View(1), batches = call.View(2);
  ExpectMaps(call, 0, self);
  call.ExpectRank(1, rois, 2);
  call.ExpectSizes(1, rois, {rois.size(0), 4});
  for (int i : {1, 8}) ExpectDtypes(call, i, call.View(i), {self.scalar_type()});
  ExpectDtypes(call, 2, batches, {at::kInt});
  call.ExpectSizes(2, batches, {rois.size(0)});
  const std::string mode = call.Text(3);
  // It is not documented which of a bin's points the greatest is taken of.
  if (mode != "avg") call.RejectArg(3, "must be \"avg\", which the soft device takes");
  if (call.Int(6) < 0) call.RejectArg(6, "is negative");
  const RegionPooling pooling = ReadPooling(call, 4, 5, 7, 6, false);
  return BindWhole(call, 8, {rois.size(0), self.size(1), pooling.height, pooling.width},
                   [=] { return PoolRegions(pooling, self, DenseBoxes(rois, batches)); });
}

// A box of torchvision's operator: its batch, left, top, right and bottom.
RegionBoxes SplitBoxes(const Tensor& boxes) {
  return DenseBoxes(boxes.narrow(1, 1, 4), boxes.select(1, 0));
}

void ExpectBoxes(const Call& call, int i, const Tensor& boxes, at::ScalarType dtype) {
  call.ExpectRank(i, boxes, 2);
  call.ExpectSizes(i, boxes, {boxes.size(0), 5});
  ExpectDtypes(call, i, boxes, {dtype});
}

// (self, boxes, pooledHeight, pooledWidth, spatialScale, samplingRatio, aligned, out)
std::unique_ptr<Kernel> BindRoiAlignV2(const Call& call) {
  const Tensor self = call.View(0), boxes = call.View(1);
  ExpectMaps(call, 0, self);
  ExpectBoxes(call, 1, boxes, self.scalar_type());
  ExpectDtypes(call, 7, call.View(7), {self.scalar_type()});
  const RegionPooling pooling = ReadPooling(call, 2, 3, 4, 5, call.Bool(6));
  return BindWhole(call, 7, {boxes.size(0), self.size(1), pooling.height, pooling.width},
                   [=] { return PoolRegions(pooling, self, SplitBoxes(boxes)); });
}

// (gradOutput, boxes, inputShape, pooledHeight, pooledWidth, spatialScale, samplingRatio, aligned,
// gradInput)
std::unique_ptr<Kernel> BindRoiAlignV2Backward(const Call& call) {
  const Tensor gradient = call.View(0), boxes = call.View(1), out = call.Out(8);
  ExpectMaps(call, 0, gradient);
  ExpectBoxes(call, 1, boxes, gradient.scalar_type());
  ExpectMaps(call, 8, out);
  ExpectDtypes(call, 8, out, {gradient.scalar_type()});
  if (call.Ints(2) != out.sizes().vec()) call.RejectArg(2, "is not the shape of gradInput");
  const RegionPooling pooling = ReadPooling(call, 3, 4, 5, 6, call.Bool(7));
  call.ExpectSizes(0, gradient, {boxes.size(0), out.size(1), pooling.height, pooling.width});
  return MakeKernel([=] {
    const RegionBoxes regions = SplitBoxes(boxes);
    const Tensor given = gradient.to(at::kFloat).contiguous();
    const Tensor result = at::zeros(out.sizes(), given.options());
    const int64_t channels = out.size(1), area = out.size(2) * out.size(3);
    const int64_t bins = pooling.height * pooling.width;
    for (int64_t r = 0; r < boxes.size(0); ++r) {
      const int64_t batch = regions.BatchOf(r, out.size(0));
      auto* to = result.data_ptr<float>() + batch * channels * area;
      const auto* from = given.data_ptr<float>() + r * channels * bins;
      ForEachPooledPixel(pooling, regions.boxes.data_ptr<float>() + 4 * r, out.size(2), out.size(3),
                         [&](int64_t bin, const PooledPixel& pixel) {
                           for (int64_t c = 0; c < channels; ++c) {
                             to[c * area + pixel.offset] += pixel.part * from[c * bins + bin];
                           }
                         });
    }
    out.copy_(result);
  });
}

}  // namespace

KernelRows RegionRows() {
  return {
      {"aclnnRoiAlign", BindRoiAlign},
      {"aclnnRoiAlignV2", BindRoiAlignV2},
      {"aclnnRoiAlignV2Backward", BindRoiAlignV2Backward},
  };
}

}  // namespace acltape::opapi
