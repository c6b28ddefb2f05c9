// Regions of feature maps, pooled to a grid of averages in which each place has channels of its own
// (PSROIPoolingV2), and the gradient for the features (PSROIPoolingGradV2D).
//
// A place of the grid takes whole elements of the map: those of some rows and some columns. Which
// ones is a matrix of zeros and ones for each row of places, with a row for each region and a
// column for each element of all maps. Its product with the features gives the sums of the
// regions, and the product of its transpose with gradients gives those of the features.
#include <cmath>

#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

constexpr int64_t kRegionNumbers = 5;  // image, x1, y1, x2, y2

struct PooledSizes {
  int64_t images, depth, grid, height, width, regions;  // depth: channels of the result
  double scale;

  int64_t pixels() const { return height * width; }
  int64_t channels() const { return depth * grid * grid; }
};

// Reads the attributes and the regions; `features` is the shape of the feature maps.
aclError ReadPooledSizes(const NamedCall& call, const std::vector<int64_t>& features,
                         PooledSizes* sizes) {
  const std::vector<int64_t>& rois = call.inputs.Shape(1);
  if (features.size() != 4 || rois.size() != 3 || rois[1] != kRegionNumbers ||
      rois[0] != features[0]) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: the features have the shape %s and rois %s; expected [n, c, h, w] and "
                "[n, 5, r]",
                call.name, ShapeText(features).c_str(), ShapeText(rois).c_str());
  }
  *sizes = {features[0],
            IntegerOf(call, "output_dim", 0),
            IntegerOf(call, "group_size", 0),
            features[2],
            features[3],
            rois[0] * rois[2],
            RealOf(call, "spatial_scale", 0)};
  if (sizes->grid < 1 || sizes->grid > 127 || sizes->depth < 1 || !std::isfinite(sizes->scale) ||
      sizes->scale <= 0) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: spatial_scale is %g, output_dim %lld and group_size %lld; expected "
                "positive numbers, and a group_size of 127 at most",
                call.name, sizes->scale, static_cast<long long>(sizes->depth),
                static_cast<long long>(sizes->grid));
  }
  if (features[1] != sizes->channels() || sizes->pixels() == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: the features have the shape %s; expected %lld channels (output_dim * "
                "group_size * group_size), and elements",
                call.name, ShapeText(features).c_str(), static_cast<long long>(sizes->channels()));
  }
  return ACL_SUCCESS;
}

aclError CheckPooledTypes(const NamedCall& call, bool halves) {
  const aclDataType type = call.inputs.descs[0]->type;
  const bool blocks = call.inputs.InBlocks(0) || call.inputs.InBlocks(1);
  if ((type == ACL_FLOAT || (halves && type == ACL_FLOAT16)) && !blocks &&
      call.inputs.descs[1]->type == type && call.outputs.descs[0]->type == type) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "aclop %s: x, rois and y have the types %d, %d and %d; expected %s for all three",
              call.name, static_cast<int>(type), static_cast<int>(call.inputs.descs[1]->type),
              static_cast<int>(call.outputs.descs[0]->type),
              halves ? "float32 or float16" : "float32");
}

// Elements of a map along one axis that belong to the places of the grid.
struct PooledSpan {
  Value from, to;  // the first element, and the one after the last
};

class PooledRegions {
 public:
  PooledRegions(NamedArithmetic& in, const PooledSizes& sizes)
      : in_(in),
        sizes_(sizes),
        image_(Column(0)),
        x_(Begin(1)),
        y_(Begin(2)),
        width_(OfPlace(3, x_)),
        height_(OfPlace(4, y_)) {}

  // The places of a row of the grid: 1 for each element of a place, else 0. [grid, regions, images
  // * pixels].
  Value Members(int64_t row) {
    const int64_t n = sizes_.regions;
    const Value numbers = in_.Counting({1, 1, sizes_.images, 1, 1});
    const Value images = Equal(As(image_, {1, n, 1, 1, 1}), numbers);
    const Value rows =
        Inside(Rows(row), {1, n, 1, 1, 1}, in_.Counting({1, 1, 1, sizes_.height, 1}));
    const Value columns =
        Inside(Columns(), {sizes_.grid, n, 1, 1, 1}, in_.Counting({1, 1, 1, 1, sizes_.width}));
    return As(in_.Multiply(in_.Multiply(images, rows), columns),
              {sizes_.grid, n, sizes_.images * sizes_.pixels()});
  }
  // The numbers of their elements, 1 at least. [grid, regions, 1].
  Value Counts(int64_t row) {
    const PooledSpan rows = Rows(row), columns = Columns();
    const auto length = [&](const PooledSpan& of) {
      return in_.AtLeast(in_.Subtract(of.to, of.from), 0);
    };
    return in_.AtLeast(in_.Multiply(length(columns), length(rows)), 1);
  }

 private:
  Value As(const Value& value, const std::vector<int64_t>& shape) { return in_.As(value, shape); }
  // A number of all regions. [regions].
  Value Column(int64_t number) {
    const int64_t each = sizes_.images == 0 ? 0 : sizes_.regions / sizes_.images;
    return in_.Round(
        As(in_.Copied(1, {sizes_.images, each}, {kRegionNumbers * each, 1}, number * each),
           {sizes_.regions}));
  }
  Value Begin(int64_t number) { return in_.Times(Column(number), sizes_.scale); }
  // The length of a place of the grid; a region has a length of 0.1 at least.
  Value OfPlace(int64_t last, const Value& begin) {
    const Value end = in_.Times(in_.Plus(Column(last), 1), sizes_.scale);
    return in_.Over(in_.AtLeast(in_.Subtract(end, begin), 0.1), static_cast<double>(sizes_.grid));
  }
  PooledSpan Span(const Value& begin, const Value& from, const Value& to, int64_t elements) {
    const auto border = static_cast<double>(elements);
    const auto within = [&](const Value& a) { return in_.AtMost(in_.AtLeast(a, 0), border); };
    return {within(in_.Floor(in_.Add(from, begin))), within(in_.Ceil(in_.Add(to, begin)))};
  }
  // [1, regions, 1]
  PooledSpan Rows(int64_t row) {
    const Value begin = As(y_, {1, sizes_.regions, 1}), length = As(height_, begin.shape);
    return Span(begin, in_.Times(length, static_cast<double>(row)),
                in_.Times(length, static_cast<double>(row + 1)), sizes_.height);
  }
  // [grid, regions, 1]
  PooledSpan Columns() {
    const Value begin = As(x_, {1, sizes_.regions, 1}), length = As(width_, begin.shape);
    const Value number = in_.Counting({sizes_.grid, 1, 1});
    return Span(begin, in_.Multiply(number, length), in_.Multiply(in_.Plus(number, 1), length),
                sizes_.width);
  }
  Value Not(const Value& truth) { return in_.Plus(in_.Times(truth, -1), 1); }
  Value Equal(const Value& a, const Value& b) {
    return Not(in_.Positive(in_.Abs(in_.Subtract(a, b))));
  }
  // 1 for each of `numbers` in the span.
  Value Inside(const PooledSpan& span, const std::vector<int64_t>& shape, const Value& numbers) {
    const Value from = As(span.from, shape), to = As(span.to, shape);
    return in_.Multiply(in_.Positive(in_.Subtract(to, numbers)),
                        Not(in_.Positive(in_.Subtract(from, numbers))));
  }

  NamedArithmetic& in_;
  const PooledSizes& sizes_;
  Value image_, x_, y_, width_, height_;
};

// members * values, in which an element that is infinite or no number counts where it belongs to:
// 0 times such an element is none.
Value ProductOfMembers(NamedArithmetic& in, const Value& members, const Value& values) {
  const Value finite = in.Finite(values, 0, 0, 0);
  const auto count = [&](float nan, float infinity, float minus_infinity) {
    return in.Product(members,
                      in.Subtract(in.Finite(values, nan, infinity, minus_infinity), finite));
  };
  // 0 for none, else infinity.
  const auto infinite = [&](const Value& of) {
    return in.Divide(of, in.Plus(in.Times(in.Positive(of), -1), 1));
  };
  const Value nan = infinite(count(1, 0, 0));
  const Value sum = in.Add(in.Product(members, finite), in.Subtract(nan, nan));
  return in.Subtract(in.Add(sum, infinite(count(0, 1, 0))), infinite(count(0, 0, 1)));
}

aclError PoolRegions(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  PooledSizes sizes{};
  ACLTAPE_RETURN_IF_FAILED(ReadPooledSizes(call, call.inputs.Shape(0), &sizes));
  ACLTAPE_RETURN_IF_FAILED(CheckPooledTypes(call, true));
  const int64_t grid = sizes.grid, places = grid * grid, pixels = sizes.pixels();
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, {sizes.regions, sizes.depth, grid, grid}));
  if (sizes.regions == 0) return ClearPadding(call);
  NamedArithmetic in(call);
  PooledRegions regions(in, sizes);
  for (int64_t row = 0; row < grid; ++row) {
    // The channels of this row of places, with those of a place in the last dim.
    const Value features = in.As(
        in.Copied(0, {grid, sizes.images, pixels, sizes.depth},
                  {pixels, sizes.channels() * pixels, 1, places * pixels}, row * grid * pixels),
        {grid, sizes.images * pixels, sizes.depth});
    const Value sums = ProductOfMembers(in, regions.Members(row), features);
    in.Write(in.Divide(sums, regions.Counts(row)), 0, {1, sizes.depth * places, places},
             row * grid);
  }
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

// The product takes the regions of an image in groups.
constexpr int64_t kRegionGroup = 16;

aclError PoolRegionsGradient(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  PooledSizes sizes{};
  const std::vector<int64_t> map = IntegersOf(call, "input_size");
  const std::vector<int64_t>& features = call.outputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(ReadPooledSizes(call, features, &sizes));
  ACLTAPE_RETURN_IF_FAILED(CheckPooledTypes(call, false));
  const int64_t grid = sizes.grid, places = grid * grid, pixels = sizes.pixels();
  const std::vector<int64_t> pooled{sizes.regions, sizes.depth, grid, grid};
  if (map != std::vector<int64_t>{sizes.height, sizes.width} || call.inputs.Shape(0) != pooled) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: input_size is %s and x has the shape %s; expected the height and the "
                "width of y, which has the shape %s, and x of shape %s",
                call.name, ShapeText(map).c_str(), ShapeText(call.inputs.Shape(0)).c_str(),
                ShapeText(features).c_str(), ShapeText(pooled).c_str());
  }
  const int64_t each = call.inputs.Shape(1)[2];
  if (each < 1 || each % kRegionGroup != 0) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: rois have the shape %s; the product takes a multiple of 16 for each "
                "image",
                call.name, ShapeText(call.inputs.Shape(1)).c_str());
  }
  if (sizes.images == 0) return ClearPadding(call);
  NamedArithmetic in(call);
  PooledRegions regions(in, sizes);
  const int64_t elements = sizes.images * pixels;
  for (int64_t row = 0; row < grid; ++row) {
    const Value gradient = in.Read(0, {grid, sizes.regions, sizes.depth},
                                   {1, sizes.depth * places, places}, row * grid);
    const Value members = in.Part(regions.Members(row), {grid, elements, sizes.regions},
                                  {sizes.regions * elements, 1, elements});
    const Value sums = ProductOfMembers(in, members, in.Divide(gradient, regions.Counts(row)));
    in.Write(in.As(sums, {grid, sizes.images, pixels, sizes.depth}), 0,
             {pixels, sizes.channels() * pixels, 1, places * pixels}, row * grid * pixels);
  }
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

constexpr NamedOperator kPositionSensitive[] = {
    {"PSROIPoolingV2", PoolRegions},
    {"PSROIPoolingGradV2D", PoolRegionsGradient},
};

}  // namespace

NamedTable PositionSensitiveByName() { return kPositionSensitive; }

}  // namespace acltape::device
