// PSROIPoolingV2 and its gradient by their names, beside a formula of doubles that goes from
// element to element.
#include <cmath>
#include <limits>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The elements of a map from `first` up to `last` along one axis, for a place of the grid.
struct Stretch {
  int64_t first, last;
};

Stretch StretchOf(double begin, double end, double scale, int64_t place, int64_t grid,
                  int64_t elements) {
  begin = std::nearbyint(begin) * scale;
  end = (std::nearbyint(end) + 1) * scale;
  const double length = std::max(end - begin, 0.1) / static_cast<double>(grid);
  const auto within = [&](double at) {
    return std::clamp<int64_t>(static_cast<int64_t>(at), 0, elements);
  };
  return {within(std::floor(begin + static_cast<double>(place) * length)),
          within(std::ceil(begin + static_cast<double>(place + 1) * length))};
}

// Calls `visit(region, depth, row, column, image, channel, y, x, count)` for each element that a
// place takes.
template <typename Visit>
void ForEachElement(const Tensor& rois, double scale, int64_t depth, int64_t grid, int64_t height,
                    int64_t width, Visit visit) {
  const int64_t each = rois.size(2);
  for (int64_t n = 0; n < rois.size(0) * each; ++n) {
    const auto number = [&](int64_t i) { return rois[n / each][i][n % each].item<double>(); };
    const auto image = static_cast<int64_t>(number(0));
    for (int64_t i = 0; i < depth * grid * grid; ++i) {
      const int64_t row = i / grid % grid, column = i % grid;
      const Stretch ys = StretchOf(number(2), number(4), scale, row, grid, height);
      const Stretch xs = StretchOf(number(1), number(3), scale, column, grid, width);
      const int64_t count = (ys.last - ys.first) * (xs.last - xs.first);
      for (int64_t y = ys.first; y < ys.last; ++y) {
        for (int64_t x = xs.first; x < xs.last; ++x) {
          visit(n, i / (grid * grid), row, column, image, i, y, x, static_cast<double>(count));
        }
      }
    }
  }
}

Tensor PooledByFormula(const Tensor& features, const Tensor& rois, double scale, int64_t depth,
                       int64_t grid) {
  const Tensor out = at::zeros({rois.size(0) * rois.size(2), depth, grid, grid}, at::kDouble);
  ForEachElement(rois, scale, depth, grid, features.size(2), features.size(3),
                 [&](int64_t n, int64_t d, int64_t row, int64_t column, int64_t image,
                     int64_t channel, int64_t y, int64_t x, double count) {
                   out[n][d][row][column] += features[image][channel][y][x] / count;
                 });
  return out;
}

Tensor GradientByFormula(const Tensor& gradient, const Tensor& rois, double scale, int64_t height,
                         int64_t width) {
  const int64_t depth = gradient.size(1), grid = gradient.size(2);
  const Tensor out = at::zeros({rois.size(0), depth * grid * grid, height, width}, at::kDouble);
  ForEachElement(rois, scale, depth, grid, height, width,
                 [&](int64_t n, int64_t d, int64_t row, int64_t column, int64_t image,
                     int64_t channel, int64_t y, int64_t x, double count) {
                   out[image][channel][y][x] += gradient[n][d][row][column] / count;
                 });
  return out;
}

// Regions of images in any order: within the map, over its borders, past them, and of one element.
Tensor Regions(int64_t images, int64_t each) {
  const Tensor image = at::randint(0, images, {images, 1, each});
  const Tensor first = at::randint(0, 30, {images, 2, each}) * 0.25;
  const Tensor size = at::randint(0, 80, {images, 2, each}) * 0.25;
  return at::cat({image.to(at::kFloat), first, first + size}, 1);
}

aclError RunPooling(const Tensor& features, const Tensor& rois, const Tensor& out, float scale) {
  NamedCall call("PSROIPoolingV2");
  call.In(features).In(rois).Out(out).Set("spatial_scale", scale);
  return call.Set("output_dim", out.size(1)).Set("group_size", out.size(2)).Run();
}

aclError RunPoolingGradient(const Tensor& gradient, const Tensor& rois, const Tensor& out,
                            float scale, const std::vector<int64_t>& map) {
  NamedCall call("PSROIPoolingGradV2D");
  call.In(gradient).In(rois).Out(out).Set("spatial_scale", scale).Set("input_size", map);
  return call.Set("output_dim", gradient.size(1)).Set("group_size", gradient.size(2)).Run();
}

TEST(PositionSensitiveByName, PlacesOfRegionsAreTheAveragesOfTheirChannels) {
  at::manual_seed(7);
  for (int64_t grid : {1, 2, 3}) {
    for (int64_t images : {1, 2}) {
      for (float scale : {0.5f, 1.0f, 0.0625f}) {
        const Tensor features = Random({images, 2 * grid * grid, 9, 7});
        const Tensor rois = Regions(images, 5);
        const Tensor wanted = PooledByFormula(features, rois, scale, 2, grid);
        const Tensor out = at::full(wanted.sizes(), 77.0f);
        ASSERT_EQ(RunPooling(features, rois, out, scale), ACL_SUCCESS) << TakeMessage();
        EXPECT_TRUE(at::allclose(out.to(at::kDouble), wanted, 1e-5, 1e-5)) << grid << out << wanted;
      }
    }
  }
  const Tensor features = Random({2, 8, 6, 5}, at::kHalf), rois = Regions(2, 3);
  const Tensor out = at::full({6, 2, 2, 2}, 77, at::kHalf);
  ASSERT_EQ(RunPooling(features, rois.to(at::kHalf), out, 0.5f), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(at::allclose(out.to(at::kDouble),
                           PooledByFormula(features.to(at::kDouble), rois, 0.5, 2, 2), 2e-3, 2e-3));
}

TEST(PositionSensitiveByName, GradientsGoToTheElementsThatAPlaceTook) {
  at::manual_seed(8);
  for (int64_t grid : {1, 3}) {
    for (int64_t images : {1, 2}) {
      const Tensor rois = Regions(images, 16);
      const Tensor gradient = Random({images * 16, 2, grid, grid});
      const Tensor wanted = GradientByFormula(gradient, rois, 0.5, 6, 7);
      const Tensor out = at::full(wanted.sizes(), 77.0f);
      ASSERT_EQ(RunPoolingGradient(gradient, rois, out, 0.5f, {6, 7}), ACL_SUCCESS)
          << TakeMessage();
      EXPECT_TRUE(at::allclose(out.to(at::kDouble), wanted, 1e-4, 1e-5)) << out << wanted;
    }
  }
}

TEST(PositionSensitiveByName, NumbersThatAreNotFiniteStayInTheirPlaces) {
  at::manual_seed(9);
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor features = Random({1, 4, 6, 6}), rois = Regions(1, 16);
  features[0][0][1][1] = infinity;
  features[0][1][4][2] = -infinity;
  features[0][2][3][3] = std::numeric_limits<float>::quiet_NaN();
  features[0][3][2][2] = infinity;
  features[0][3][2][3] = -infinity;
  const Tensor out = at::full({16, 1, 2, 2}, 77.0f);
  ASSERT_EQ(RunPooling(features, rois, out, 0.5f), ACL_SUCCESS) << TakeMessage();
  const Tensor wanted = PooledByFormula(features, rois, 0.5, 1, 2);
  EXPECT_TRUE(at::allclose(out.to(at::kDouble), wanted, 1e-5, 1e-5, true)) << out << wanted;
  EXPECT_TRUE(out.isfinite().any().item<bool>() && !out.isfinite().all().item<bool>());
  const Tensor gradient = Random({16, 1, 2, 2}), of_features = at::full({1, 4, 6, 6}, 77.0f);
  gradient[0][0][0][0] = -infinity;
  gradient[5][0][1][1] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_EQ(RunPoolingGradient(gradient, rois, of_features, 0.5f, {6, 6}), ACL_SUCCESS)
      << TakeMessage();
  EXPECT_TRUE(at::allclose(of_features.to(at::kDouble),
                           GradientByFormula(gradient, rois, 0.5, 6, 6), 1e-5, 1e-5, true));
}

TEST(PositionSensitiveByName, NoRegionsAndFormsThatAreRefused) {
  const Tensor features = at::zeros({1, 4, 5, 5}), rois = at::zeros({1, 5, 2});
  EXPECT_EQ(RunPooling(features, at::zeros({1, 5, 0}), at::zeros({0, 1, 2, 2}), 1), ACL_SUCCESS)
      << TakeMessage();
  const Tensor out = at::zeros({2, 1, 2, 2});
  const auto said = [](aclError code) {
    EXPECT_NE(code, ACL_SUCCESS);
    return TakeMessage();
  };
  TakeMessage();
  EXPECT_NE(said(RunPooling(features, at::zeros({2, 5}), out, 1)).find("rois [2, 5]"),
            std::string::npos);
  EXPECT_NE(said(RunPooling(features, at::zeros({2, 5, 1}), out, 1)).find("rois [2, 5, 1]"),
            std::string::npos);
  EXPECT_NE(said(RunPooling(features, rois, out, 0)).find("spatial_scale is 0"), std::string::npos);
  EXPECT_NE(said(RunPooling(at::zeros({1, 5, 5, 5}), rois, out, 1)).find("expected 4 channels"),
            std::string::npos);
  EXPECT_NE(said(RunPooling(at::zeros({1, 4, 0, 5}), rois, out, 1)).find("and elements"),
            std::string::npos);
  EXPECT_NE(said(RunPooling(features, rois, at::zeros({3, 1, 2, 2}), 1)).find("output 0 has"),
            std::string::npos);
  EXPECT_NE(said(RunPooling(features, rois.to(at::kHalf), out, 1)).find("the types 0, 1 and 0"),
            std::string::npos);
  NamedCall wide("PSROIPoolingV2");
  wide.In(features).In(rois).Out(out).Set("spatial_scale", 1.0f).Set("output_dim", int64_t{1});
  EXPECT_NE(said(wide.Set("group_size", int64_t{128}).Run()).find("group_size 128"),
            std::string::npos);
  const Tensor gradient = at::zeros({16, 1, 2, 2}), many = at::zeros({1, 5, 16});
  EXPECT_NE(
      said(RunPoolingGradient(gradient, many, features, 1, {5, 4})).find("input_size is [5, 4"),
      std::string::npos);
  EXPECT_NE(said(RunPoolingGradient(out, rois, features, 1, {5, 5})).find("a multiple of 16"),
            std::string::npos);
  EXPECT_NE(said(RunPoolingGradient(gradient.to(at::kHalf), many.to(at::kHalf),
                                    features.to(at::kHalf), 1, {5, 5}))
                .find("expected float32 for all three"),
            std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
