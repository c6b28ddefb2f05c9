// Resampling of images, against weights that are worked out pixel by pixel in double, and sampling
// of volumes at points, with their gradients.
#include <cmath>
#include <stdexcept>

#include "tests/opapi/grid/formula.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Tolerance kWeighted = {8, 1e-5, false, "the operator's weights are floats"};

// The weights of the pixels along one axis.
enum class Kernel { kNearest, kNearestExact, kLinear, kSmoothLinear, kSmoothCubic };

double LinearFilter(double x) { return std::fmax(0, 1 - std::fabs(x)); }

double CubicFilter(double x) {
  constexpr double kA = -0.5;
  x = std::fabs(x);
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * kA : 0;
}

// The weights of `from` pixels in each of `to` pixels, [to, from]. `scale` is how much greater the
// result is; 0 derives it from the sizes.
Tensor Weights(Kernel kernel, int64_t from, int64_t to, bool align, double scale) {
  const Tensor weights = at::zeros({to, from}, at::kDouble);
  auto* row = weights.data_ptr<double>();
  double step = scale > 0 ? 1 / scale : static_cast<double>(from) / static_cast<double>(to);
  if (align) step = to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
  const auto last = static_cast<double>(from - 1);
  for (int64_t i = 0; i < to; ++i, row += from) {
    const auto index = static_cast<double>(i);
    if (kernel == Kernel::kNearest || kernel == Kernel::kNearestExact) {
      const double place = kernel == Kernel::kNearest ? index * step : (index + 0.5) * step;
      row[std::lround(std::fmin(std::floor(place), last))] = 1;
    } else if (kernel == Kernel::kLinear) {
      const double place = align ? index * step : std::fmax(0, (index + 0.5) * step - 0.5);
      if (std::floor(place) > last) throw std::invalid_argument("a place outside of the image");
      const double left = std::floor(place);
      row[std::lround(left)] += 1 - (place - left);
      row[std::lround(std::fmin(left + 1, last))] += place - left;
    } else {
      const bool cubic = kernel == Kernel::kSmoothCubic;
      const double stretch = std::fmax(step, 1), reach = (cubic ? 2 : 1) * stretch;
      const double centre = (index + 0.5) * step;
      double total = 0;
      for (int64_t j = 0; j < from; ++j) {
        const double distance = static_cast<double>(j) + 0.5 - centre;
        if (std::fabs(distance) >= reach + 0.5) continue;
        row[j] = cubic ? CubicFilter(distance / stretch) : LinearFilter(distance / stretch);
        total += row[j];
      }
      for (int64_t j = 0; j < from; ++j) row[j] /= total;
    }
  }
  return weights;
}

struct Resampling {
  const char* op;
  Kernel kernel;
  int64_t spatial;
  bool backward;
  bool has_align;
};

constexpr Resampling kResamplings[] = {
    {"aclnnUpsampleBicubic2dAA", Kernel::kSmoothCubic, 2, false, true},
    {"aclnnUpsampleBicubic2dAAGrad", Kernel::kSmoothCubic, 2, true, true},
    {"aclnnUpsampleBilinear2dAA", Kernel::kSmoothLinear, 2, false, true},
    {"aclnnUpsampleBilinear2dAABackward", Kernel::kSmoothLinear, 2, true, true},
    {"aclnnUpsampleLinear1dBackward", Kernel::kLinear, 1, true, true},
    {"aclnnUpsampleTrilinear3dBackward", Kernel::kLinear, 3, true, true},
    {"aclnnUpsampleNearest3dBackward", Kernel::kNearest, 3, true, false},
    {"aclnnUpsampleNearestExact1d", Kernel::kNearestExact, 1, false, false},
    {"aclnnUpsampleNearestExact3d", Kernel::kNearestExact, 3, false, false},
    {"aclnnUpsampleNearestExact1dBackward", Kernel::kNearestExact, 1, true, false},
    {"aclnnUpsampleNearestExact2dBackward", Kernel::kNearestExact, 2, true, false},
    {"aclnnUpsampleNearestExact3dBackward", Kernel::kNearestExact, 3, true, false},
};

// Greater and smaller images, with strides of other orders; scales derived and given.
Inputs ResampledImages(const Resampling& form) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    const Ints small = {4, 5, 3}, others[] = {{8, 10, 6}, {3, 7, 5}, {9, 4, 1}};
    for (const Ints& other : others) {
      for (bool align : {false, true}) {
        if (align && !form.has_align) continue;
        for (double scale : {0.0, -1.0, 2.3, 1.5}) {
          // The last is too small for twice the pixels: refused by the linear forms.
          if (scale == 2.3 && (align || other != others[2])) continue;
          if (scale == 1.5 && (form.kernel != Kernel::kLinear || align || other != others[0]))
            continue;
          Ints of_image = {2, 3}, size(other.begin(), other.begin() + form.spatial);
          of_image.insert(of_image.end(), small.begin(), small.begin() + form.spatial);
          Ints given = of_image;
          if (form.backward) std::copy(size.begin(), size.end(), given.begin() + 2);
          std::swap(given[0], given[1]);
          Args args = {source.Random(given, dtype).transpose(0, 1), size};
          if (form.backward) args.push_back(of_image);
          if (form.has_align) args.push_back(align);
          for (int64_t i = 0; i < form.spatial; ++i) args.push_back(scale);
          inputs.push_back(args);
        }
      }
    }
    return inputs;
  };
}

Reference Resampled(const Resampling& form) {
  return [=](const In& in) {
    Tensor image = in[0].to(at::kDouble);
    int next = form.backward ? 3 : 2;
    const bool align = form.has_align && in.flag(next++);
    for (int64_t i = 0; i < form.spatial; ++i) {
      const int64_t to = in.ints(1)[i];
      const int64_t from = form.backward ? in.ints(2)[i + 2] : in[0].size(i + 2);
      const Tensor weights =
          Weights(form.kernel, from, to, align, in.real(next + static_cast<int>(i)));
      image = at::matmul(image.movedim(i + 2, -1), form.backward ? weights : weights.t())
                  .movedim(-1, i + 2);
    }
    return image.to(in[0].scalar_type());
  };
}

// --- Points of a volume: (input, grid, mode, padding, align).

// The place of a coordinate among the pixels of an axis, and its slope.
struct PixelPlace {
  double at, slope;
};

PixelPlace PlaceOf(double x, int64_t count, int64_t padding, bool align) {
  const auto size = static_cast<double>(count);
  PixelPlace place = align ? PixelPlace{(x + 1) / 2 * (size - 1), (size - 1) / 2}
                           : PixelPlace{((x + 1) * size - 1) / 2, size / 2};
  if (padding == 0) return place;
  if (padding == 2) {  // reflected at the borders, as often as needed
    const double low = align ? 0 : -0.5, high = align ? size - 1 : size - 0.5;
    while (high > low && (place.at < low || place.at > high)) {
      place = {2 * (place.at < low ? low : high) - place.at, -place.slope};
    }
  }
  if (place.at <= 0) return {0, 0};
  if (place.at >= size - 1) return {size - 1, 0};
  return place;
}

// Calls fn(index, weight, [slope of the weight by each axis]) for the pixels of a point.
template <typename Fn>
void ForEachCorner(const std::array<PixelPlace, 3>& places, const Tensor& volume, bool nearest,
                   Fn fn) {
  for (int corner = 0; corner < (nearest ? 1 : 8); ++corner) {
    std::array<int64_t, 3> index{};
    std::array<double, 3> weight{}, slope{};
    bool inside = true;
    for (int axis = 0; axis < 3; ++axis) {
      const double left = nearest ? std::nearbyint(places[axis].at) : std::floor(places[axis].at);
      const bool right = (corner >> axis & 1) != 0;
      const double part = places[axis].at - left;
      index[axis] = std::lround(left) + (right ? 1 : 0);
      weight[axis] = nearest ? 1 : right ? part : 1 - part;
      slope[axis] = nearest ? 0 : right ? places[axis].slope : -places[axis].slope;
      inside = inside && index[axis] >= 0 && index[axis] < volume.size(2 + axis);
    }
    if (!inside) continue;
    fn(index, weight[0] * weight[1] * weight[2],
       std::array<double, 3>{slope[0] * weight[1] * weight[2], weight[0] * slope[1] * weight[2],
                             weight[0] * weight[1] * slope[2]});
  }
}

// fn(batch, point, places): each point of the grid, the places in the order depth, height, width.
template <typename Fn>
void ForEachPoint(const In& in, int first, Fn fn) {
  const Tensor volume = in[first];
  const Tensor points = in[first + 1].to(at::kDouble).contiguous().flatten(1, 3);
  const int64_t padding = in.integer(first + 3);
  const bool align = in.flag(first + 4);
  const auto points_of = points.accessor<double, 3>();
  for (int64_t n = 0; n < points.size(0); ++n) {
    for (int64_t p = 0; p < points.size(1); ++p) {
      std::array<PixelPlace, 3> places{};
      for (int axis = 0; axis < 3; ++axis) {
        places[axis] = PlaceOf(points_of[n][p][2 - axis], volume.size(2 + axis), padding, align);
      }
      fn(n, p, places);
    }
  }
}

std::vector<Args> VolumesAndPoints(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (int64_t mode : {0, 1}) {
    for (int64_t padding : {0, 1, 2}) {
      for (bool align : {false, true}) {
        inputs.push_back({source.Random({2, 2, 3, 3, 4}, dtype).transpose(2, 3),
                          source.Random({2, 2, 3, 2, 3}, dtype, -1.6, 1.6), mode, padding, align});
      }
    }
  }
  return inputs;
}

Tensor SampledAtPoints(const In& in) {
  const bool nearest = in.integer(2) == 1;
  const Tensor volume = in[0].to(at::kDouble).contiguous();
  const Tensor out = at::zeros(
      {in[1].size(0), in[1].size(1) * in[1].size(2) * in[1].size(3), volume.size(1)}, at::kDouble);
  ForEachPoint(in, 0, [&](int64_t n, int64_t p, const std::array<PixelPlace, 3>& places) {
    ForEachCorner(places, volume, nearest, [&](const auto& corner, double weight, const auto&) {
      out[n][p] +=
          volume[n].select(1, corner[0]).select(1, corner[1]).select(1, corner[2]) * weight;
    });
  });
  return out.transpose(1, 2)
      .reshape({in[1].size(0), volume.size(1), in[1].size(1), in[1].size(2), in[1].size(3)})
      .to(in[0].scalar_type());
}

// (gradOutput, input, grid, mode, padding, align, mask)
std::tuple<Tensor, Tensor> SampledGradients(const In& in) {
  const bool nearest = in.integer(3) == 1;
  const Tensor dy = in[0].to(at::kDouble).flatten(2, 4), volume = in[1].to(at::kDouble);
  const Tensor of_volume = at::zeros(volume.sizes(), at::kDouble);
  const Tensor of_points = at::zeros(in[2].sizes(), at::kDouble);
  const Tensor flat = of_points.flatten(1, 3);
  ForEachPoint(in, 1, [&](int64_t n, int64_t p, const std::array<PixelPlace, 3>& places) {
    const Tensor gradient = dy[n].select(1, p);
    ForEachCorner(places, volume, nearest,
                  [&](const auto& corner, double weight, const auto& slope) {
                    const auto pixel = [&](const Tensor& of) {
                      return of[n].select(1, corner[0]).select(1, corner[1]).select(1, corner[2]);
                    };
                    pixel(of_volume).add_(gradient * weight);
                    const double product = (pixel(volume) * gradient).sum().item().toDouble();
                    for (int axis = 0; axis < 3; ++axis)
                      flat[n][p][2 - axis] += product * slope[axis];
                  });
  });
  const at::ScalarType dtype = in[1].scalar_type();
  return {of_volume.to(dtype), of_points.to(dtype)};
}

}  // namespace

Rows ResampleRows() {
  Rows rows;
  for (const Resampling& form : kResamplings) {
    Dtypes dtypes = kFloats;
    if (form.kernel == Kernel::kNearestExact && !form.backward && form.spatial < 3) {
      dtypes.push_back(at::kByte);
    }
    rows.push_back({form.op, ResampledImages(form), dtypes, Resampled(form), kWeighted});
  }
  rows.push_back({"aclnnGridSampler3D",
                  VolumesAndPoints,
                  {at::kFloat, at::kDouble},
                  SampledAtPoints,
                  kWeighted});
  rows.push_back({"aclnnGridSampler3DBackward",
                  [](Source& source, at::ScalarType dtype) {
                    std::vector<Args> inputs;
                    for (const Args& args : VolumesAndPoints(source, dtype)) {
                      Args with = {source.Random({2, 2, 2, 3, 2}, dtype)};
                      with.insert(with.end(), args.begin(), args.end());
                      with.push_back(Ints{1, 1});
                      inputs.push_back(with);
                    }
                    return inputs;
                  },
                  {at::kFloat, at::kDouble},
                  SampledGradients,
                  kWeighted});
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
