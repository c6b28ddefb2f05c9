// Regions of feature maps, pooled to one size by bilinear samples (ROIAlign), and the gradient.
//
// Samples lie on a grid within each region. The four elements around a sample are rows of the
// feature map with its channels last, at indices that are computed on the device from the regions.
// The gradient of the map is added to these rows.
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

struct RoiAlignSizes {
  int64_t images, channels, height, width, regions, pooled_height, pooled_width, samples;
};

// How a region is placed over the elements of the feature map, by the attribute roi_end_mode.
struct RoiMode {
  double start;   // is added to all coordinates, in elements
  double end;     // is added to the last coordinates, in pixels of the image
  bool at_least;  // a region is one element wide and high at least
};
constexpr RoiMode kRoiModes[] = {{0, 0, true}, {0, 1, true}, {-0.5, 0, false}, {-0.5, 0, true}};

// Samples along one axis: the elements on both sides of each, and the weights of these. A weight is
// 0 where the sample lies outside of the feature map.
struct RoiSamples {
  Value low, high, low_weight, high_weight;
};

// `map` is the shape of the feature map; the tensors before the regions and after them are floats.
aclError ReadRoiSizes(const NamedCall& call, const std::vector<int64_t>& map,
                      RoiAlignSizes* sizes) {
  const std::vector<int64_t>& regions = call.inputs.Shape(1);
  const auto floats = [&](const NamedTensors& tensors, int i) {
    const aclDataType type = tensors.descs[i]->type;
    return (type == ACL_FLOAT || type == ACL_FLOAT16) && !tensors.InBlocks(i);
  };
  if (map.size() != 4 || regions.size() != 2 || regions[1] != 5 || !floats(call.inputs, 0) ||
      !floats(call.inputs, 1) || !floats(call.outputs, 0)) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: features have the shape %s and rois %s; the soft device takes the "
                "shapes [n, c, h, w] and [k, 5], in float32 or float16",
                call.name, ShapeText(map).c_str(), ShapeText(regions).c_str());
  }
  *sizes = {map[0],
            map[1],
            map[2],
            map[3],
            regions[0],
            IntegerOf(call, "pooled_height", 0),
            IntegerOf(call, "pooled_width", 0),
            IntegerOf(call, "sample_num", 2)};
  const int64_t mode = IntegerOf(call, "roi_end_mode", 1);
  const std::string pooling = call.Text("pool_mode");
  constexpr int64_t kMost = int64_t{1} << 24;  // float32 has all integers up to it
  const auto small = [](int64_t number) { return number >= 1 && number <= 1024; };
  if (!small(sizes->pooled_height) || !small(sizes->pooled_width) || !small(sizes->samples) ||
      mode < 0 || mode >= static_cast<int64_t>(std::size(kRoiModes)) ||
      (!pooling.empty() && pooling != "avg") || sizes->images > kMost || sizes->height > kMost ||
      sizes->width > kMost ||
      sizes->height * sizes->width > kMost / std::max<int64_t>(sizes->images, 1)) {
    return Fail(
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "aclop %s: pooled_height is %lld, pooled_width %lld, sample_num %lld and "
        "roi_end_mode %lld; the soft device takes sizes and samples of 1 to 1024, the modes "
        "0 to 3, averages, and maps of %lld elements in all",
        call.name, static_cast<long long>(sizes->pooled_height),
        static_cast<long long>(sizes->pooled_width), static_cast<long long>(sizes->samples),
        static_cast<long long>(mode), static_cast<long long>(kMost));
  }
  return ACL_SUCCESS;
}

std::vector<int64_t> PooledShape(const RoiAlignSizes& sizes) {
  return {sizes.regions, sizes.channels, sizes.pooled_height, sizes.pooled_width};
}

// 1 where low <= a <= high, else 0.
Value Within(NamedArithmetic& in, const Value& a, double low, double high) {
  const auto not_negative = [&](const Value& of) {
    return in.Plus(in.Times(in.Positive(in.Times(of, -1)), -1), 1);
  };
  return in.Multiply(not_negative(in.Plus(a, -low)), not_negative(in.Plus(in.Times(a, -1), high)));
}

// `first` and `last` are the ends of the regions, of the shape [regions, 1, 1]; `steps` are the
// numbers 0, 1, 2, ... of the samples along the axis.
RoiSamples SamplesAlong(NamedArithmetic& in, const RoiMode& mode, const Value& first,
                        const Value& last, const Value& steps, int64_t samples, int64_t pooled,
                        int64_t elements) {
  Value length = in.Subtract(last, first);
  if (mode.at_least) length = in.AtLeast(length, 1);
  const Value of_bin = in.Over(length, static_cast<double>(pooled));
  const Value places = in.Over(in.Plus(steps, 0.5), static_cast<double>(samples));
  const Value place = in.Add(first, in.Multiply(of_bin, places));
  const auto border = static_cast<double>(elements - 1);
  const Value inside = in.AtMost(in.AtLeast(place, 0), border);
  const Value low = in.Floor(inside);
  const Value beyond = in.Subtract(inside, low);
  const Value counts = Within(in, place, -1, static_cast<double>(elements));
  return {low, in.AtMost(in.Plus(low, 1), border),
          in.Multiply(counts, in.Plus(in.Times(beyond, -1), 1)), in.Multiply(counts, beyond)};
}

// The pixels around all samples, as rows of a table of the pixels of all images.
class RoiPixels {
 public:
  // One pixel for each sample, and its weight in it: [samples] and [samples, 1].
  struct Corner {
    Value index, weight;
  };

  RoiPixels(const NamedCall& call, NamedArithmetic& in, const RoiAlignSizes& sizes)
      : in_(in), sizes_(sizes) {
    const RoiMode& mode = kRoiModes[IntegerOf(call, "roi_end_mode", 1)];
    const double scale = RealOf(call, "spatial_scale", 1);
    const int64_t down = sizes.pooled_height * sizes.samples;
    const int64_t across = sizes.pooled_width * sizes.samples;
    const auto column = [&](int64_t i) { return in.Read(1, {sizes.regions, 1, 1}, {5, 1, 1}, i); };
    const auto start = [&](int64_t i) { return in.Plus(in.Times(column(i), scale), mode.start); };
    const auto end = [&](int64_t i) {
      return in.Plus(in.Times(in.Plus(column(i), mode.end), scale), mode.start);
    };
    rows_ = SamplesAlong(in, mode, start(2), end(4), in.Counting({1, down, 1}), sizes.samples,
                         sizes.pooled_height, sizes.height);
    columns_ = SamplesAlong(in, mode, start(1), end(3), in.Counting({1, 1, across}), sizes.samples,
                            sizes.pooled_width, sizes.width);
    const Value image = column(0);
    const auto last_image = static_cast<double>(sizes.images - 1);
    known_ = Within(in, image, 0, last_image);
    first_pixel_ = in.Times(in.AtMost(in.AtLeast(image, 0), last_image),
                            static_cast<double>(sizes.height * sizes.width));
    count_ = sizes.regions * down * across;
  }

  int64_t count() const { return count_; }

  // The pixel with the higher row or column of the two around a sample, or the lower ones.
  Corner Around(bool high_row, bool high_column) {
    const Value& row = high_row ? rows_.high : rows_.low;
    const Value& column = high_column ? columns_.high : columns_.low;
    const Value pixel = in_.Add(in_.Times(row, static_cast<double>(sizes_.width)), column);
    const Value weight = in_.Multiply(high_row ? rows_.high_weight : rows_.low_weight,
                                      high_column ? columns_.high_weight : columns_.low_weight);
    return {in_.Indices(in_.As(in_.Add(first_pixel_, pixel), {count_})),
            in_.As(in_.Multiply(weight, known_), {count_, 1})};
  }

 private:
  NamedArithmetic& in_;
  const RoiAlignSizes& sizes_;
  RoiSamples rows_, columns_;
  Value known_, first_pixel_;
  int64_t count_ = 0;
};

aclError AlignRegions(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  RoiAlignSizes sizes{};
  ACLTAPE_RETURN_IF_FAILED(ReadRoiSizes(call, call.inputs.Shape(0), &sizes));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, PooledShape(sizes)));
  if (ElementsOf(call.outputs.Shape(0)) == 0) return ClearPadding(call);
  if (ElementsOf(call.inputs.Shape(0)) == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: the features have no elements", call.name);
  }
  const int64_t pixels = sizes.height * sizes.width;
  NamedArithmetic in(call);
  RoiPixels around(call, in, sizes);
  const Value table = in.As(
      in.Copied(0, {sizes.images, pixels, sizes.channels}, {sizes.channels * pixels, 1, pixels}),
      {sizes.images * pixels, sizes.channels});
  const auto corner = [&](bool high_row, bool high_column) {
    const RoiPixels::Corner from = around.Around(high_row, high_column);
    return in.Multiply(in.Rows(table, from.index), from.weight);
  };
  const auto both = [&](bool high_row) {
    return in.Add(corner(high_row, false), corner(high_row, true));
  };
  const Value sums = in.Sum(
      in.As(in.Add(both(false), both(true)), {sizes.regions, sizes.pooled_height, sizes.samples,
                                              sizes.pooled_width, sizes.samples, sizes.channels}),
      {2, 4});
  const int64_t bins = sizes.pooled_height * sizes.pooled_width;
  in.Write(in.Over(sums, static_cast<double>(sizes.samples * sizes.samples)), 0,
           {sizes.channels * bins, sizes.pooled_width, 1, bins});
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

// (ydiff, rois) to the gradient of the feature map, whose shape is an attribute, too.
aclError AlignRegionsGradient(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  RoiAlignSizes sizes{};
  const std::vector<int64_t> map = IntegersOf(call, "xdiff_shape");
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, map));
  ACLTAPE_RETURN_IF_FAILED(ReadRoiSizes(call, map, &sizes));
  const std::vector<int64_t> pooled = PooledShape(sizes);
  if (call.inputs.Shape(0) != pooled) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: ydiff has the shape %s, expected %s", call.name,
                ShapeText(call.inputs.Shape(0)).c_str(), ShapeText(pooled).c_str());
  }
  if (ElementsOf(map) == 0) return ClearPadding(call);
  const int64_t pixels = sizes.height * sizes.width;
  const int64_t bins = sizes.pooled_height * sizes.pooled_width;
  NamedArithmetic in(call);
  Value table = in.Filled({sizes.images * pixels, sizes.channels}, 0);
  if (sizes.regions > 0) {
    RoiPixels around(call, in, sizes);
    const Value of_sample = in.Over(
        in.Read(0, {sizes.regions, sizes.pooled_height, 1, sizes.pooled_width, 1, sizes.channels},
                {sizes.channels * bins, sizes.pooled_width, 1, 1, 1, bins}),
        static_cast<double>(sizes.samples * sizes.samples));
    for (int i = 0; i < 4; ++i) {
      const RoiPixels::Corner to = around.Around(i / 2 == 1, i % 2 == 1);
      const Value weight = in.As(to.weight, {sizes.regions, sizes.pooled_height, sizes.samples,
                                             sizes.pooled_width, sizes.samples, 1});
      table = in.AddToRows(table, to.index,
                           in.As(in.Multiply(of_sample, weight), {around.count(), sizes.channels}));
    }
  }
  in.Write(in.As(table, {sizes.images, pixels, sizes.channels}), 0,
           {sizes.channels * pixels, 1, pixels});
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

constexpr NamedOperator kRegions[] = {
    {"ROIAlign", AlignRegions},
    {"ROIAlignGrad", AlignRegionsGradient},
};

}  // namespace

NamedTable RegionsByName() { return kRegions; }

}  // namespace acltape::device
