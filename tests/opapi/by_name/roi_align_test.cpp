// ROIAlign by its name, beside a formula of doubles that goes from sample to sample.
#include <cmath>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The element of a map at a place between its elements; 0 beyond one element outside of it.
double Sampled(const Tensor& map, double y, double x) {
  const int64_t height = map.size(0), width = map.size(1);
  if (y < -1 || y > height || x < -1 || x > width) return 0;
  y = std::clamp(y, 0.0, height - 1.0);
  x = std::clamp(x, 0.0, width - 1.0);
  const auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
  double sum = 0;
  for (int64_t row : {top, top + 1}) {
    for (int64_t column : {left, left + 1}) {
      if (row >= height || column >= width) continue;
      sum += map[row][column].item<double>() * (1 - std::abs(y - row)) * (1 - std::abs(x - column));
    }
  }
  return sum;
}

Tensor Aligned(const Tensor& features, const Tensor& rois, double scale, int64_t pooled_height,
               int64_t pooled_width, int64_t samples, int mode) {
  const Tensor out = at::zeros({rois.size(0), features.size(1), pooled_height, pooled_width});
  for (int64_t n = 0; n < rois.size(0); ++n) {
    const auto number = [&](int i) { return rois[n][i].item<double>(); };
    const double shift = mode >= 2 ? -0.5 : 0, more = mode == 1 ? 1 : 0;
    const double x0 = number(1) * scale + shift, y0 = number(2) * scale + shift;
    double width = (number(3) + more) * scale + shift - x0;
    double height = (number(4) + more) * scale + shift - y0;
    if (mode != 2) {
      width = std::max(width, 1.0);
      height = std::max(height, 1.0);
    }
    for (int64_t c = 0; c < features.size(1); ++c) {
      const Tensor map = features[static_cast<int64_t>(number(0))][c];
      for (int64_t row = 0; row < pooled_height; ++row) {
        for (int64_t column = 0; column < pooled_width; ++column) {
          double sum = 0;
          for (int64_t i = 0; i < samples * samples; ++i) {
            const double down = row + (i / samples + 0.5) / samples;
            const double across = column + (i % samples + 0.5) / samples;
            sum += Sampled(map, y0 + down * height / pooled_height,
                           x0 + across * width / pooled_width);
          }
          out[n][c][row][column] = sum / (samples * samples);
        }
      }
    }
  }
  return out;
}

aclError RunRoiAlign(const Tensor& features, const Tensor& rois, const Tensor& out, float scale,
                     int64_t samples, int64_t mode) {
  NamedCall call("ROIAlign");
  call.In(features).In(rois).Out(out).Set("spatial_scale", scale);
  call.Set("pooled_height", out.size(2)).Set("pooled_width", out.size(3));
  return call.Set("sample_num", samples).Set("roi_end_mode", mode).Run();
}

TEST(RegionsByName, RegionsArePooledInEachMode) {
  at::manual_seed(6);
  const Tensor features = Random({2, 3, 7, 5});
  // Within the map, over its borders, outside of it, and without a size.
  const Tensor rois = at::tensor({0.0f, 1.0f,  2.0f, 9.0f,  8.0f, 1.0f, -8.0f, -3.0f, 14.0f, 40.0f,
                                  1.0f, 50.0f, 1.0f, 60.0f, 9.0f, 0.0f, 4.0f,  4.0f,  4.0f,  4.0f})
                          .view({4, 5});
  for (int mode = 0; mode < 4; ++mode) {
    for (int64_t samples : {1, 2, 3}) {
      const Tensor wanted = Aligned(features, rois, 0.5, 2, 3, samples, mode);
      const Tensor out = at::full(wanted.sizes(), 77.0f);
      ASSERT_EQ(RunRoiAlign(features, rois, out, 0.5f, samples, mode), ACL_SUCCESS)
          << TakeMessage();
      EXPECT_TRUE(at::allclose(out, wanted, 1e-4, 1e-5)) << mode << out << wanted;
    }
  }
  const Tensor half = at::full({4, 3, 2, 3}, 77, at::kHalf);
  ASSERT_EQ(RunRoiAlign(features.to(at::kHalf), rois.to(at::kHalf), half, 0.5f, 2, 0), ACL_SUCCESS)
      << TakeMessage();
  EXPECT_TRUE(
      at::allclose(half.to(at::kFloat), Aligned(features, rois, 0.5, 2, 3, 2, 0), 1e-2, 1e-2));
}

// The gradient of the map, by one difference for each of its elements: the pooling is linear.
Tensor AlignedGradient(const Tensor& gradient, at::IntArrayRef map, const Tensor& rois,
                       double scale, int64_t samples, int mode) {
  const Tensor out = at::zeros(map, at::kDouble);
  for (int64_t i = 0; i < out.numel(); ++i) {
    const Tensor one = at::zeros(map, at::kDouble);
    one.view({-1})[i] = 1;
    const Tensor pooled =
        Aligned(one, rois, scale, gradient.size(2), gradient.size(3), samples, mode);
    out.view({-1})[i] = (pooled.to(at::kDouble) * gradient.to(at::kDouble)).sum();
  }
  return out;
}

// Without a mode the attribute is left out.
aclError RunRoiAlignGradient(const Tensor& gradient, const Tensor& rois, const Tensor& out,
                             float scale, int64_t samples, int64_t mode) {
  NamedCall call("ROIAlignGrad");
  call.In(gradient).In(rois).Out(out).Set("spatial_scale", scale);
  call.Set("xdiff_shape", out.sizes().vec()).Set("sample_num", samples);
  call.Set("pooled_height", gradient.size(2)).Set("pooled_width", gradient.size(3));
  if (mode >= 0) call.Set("roi_end_mode", mode);
  return call.Run();
}

TEST(RegionsByName, TheGradientGoesToThePixelsAroundEachSample) {
  at::manual_seed(7);
  const std::vector<int64_t> map{2, 2, 5, 4};
  // Two regions overlap; one lies over the borders, one outside, and one has no size.
  const Tensor rois =
      at::tensor({0.0f,  1.0f, 1.0f, 6.0f,  8.0f, 0.0f,  2.0f, 0.0f, 7.0f, 5.0f, 1.0f, -3.0f, 4.0f,
                  30.0f, 9.0f, 1.0f, 50.0f, 1.0f, 60.0f, 9.0f, 1.0f, 3.0f, 3.0f, 3.0f, 3.0f})
          .view({5, 5});
  const Tensor gradient = Random({5, 2, 3, 2});
  for (int mode = -1; mode < 4; ++mode) {
    const int64_t samples = mode < 2 ? 2 : 3;
    const Tensor wanted = AlignedGradient(gradient, map, rois, 0.5, samples, mode < 0 ? 1 : mode);
    const Tensor out = at::full(map, 77.0f);
    ASSERT_EQ(RunRoiAlignGradient(gradient, rois, out, 0.5f, samples, mode), ACL_SUCCESS)
        << TakeMessage();
    EXPECT_TRUE(at::allclose(out.to(at::kDouble), wanted, 1e-4, 1e-5)) << mode << out << wanted;
  }
  const Tensor half = at::full(map, 77, at::kHalf);
  ASSERT_EQ(RunRoiAlignGradient(gradient.to(at::kHalf), rois.to(at::kHalf), half, 0.5f, 2, 0),
            ACL_SUCCESS)
      << TakeMessage();
  EXPECT_TRUE(at::allclose(half.to(at::kDouble), AlignedGradient(gradient, map, rois, 0.5, 2, 0),
                           1e-2, 1e-2));
}

TEST(RegionsByName, AGradientOfNothingAndFormsThatAreRefused) {
  const Tensor out = at::full({1, 2, 4, 4}, 77.0f), rois = at::zeros({1, 5});
  ASSERT_EQ(RunRoiAlignGradient(at::empty({0, 2, 3, 3}), at::empty({0, 5}), out, 1, 2, 0),
            ACL_SUCCESS)
      << TakeMessage();
  EXPECT_TRUE(SameBits(out, at::zeros({1, 2, 4, 4})));
  EXPECT_EQ(RunRoiAlignGradient(Random({1, 0, 3, 3}), rois, at::empty({1, 0, 4, 4}), 1, 2, 0),
            ACL_SUCCESS)
      << TakeMessage();
  TakeMessage();
  EXPECT_NE(RunRoiAlignGradient(Random({1, 3, 3, 3}), rois, out, 1, 2, 0), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("ydiff has the shape [1, 3, 3, 3], expected [1, 2, 3, 3]"),
            std::string::npos);
  EXPECT_NE(RunRoiAlignGradient(Random({1, 2, 3, 3}), rois, out, 1, 2, 4), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("roi_end_mode 4"), std::string::npos);
  NamedCall wrong("ROIAlignGrad");
  wrong.In(Random({1, 2, 3, 3})).In(rois).Out(out).Set("xdiff_shape", std::vector<int64_t>{1, 2});
  EXPECT_NE(wrong.Run(), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("output 0 has the shape [1, 2, 4, 4], expected [1, 2]"),
            std::string::npos);
}

TEST(RegionsByName, TheExampleOfTheDocumentation) {
  const Tensor features = at::arange(1, 37, at::kFloat).view({1, 1, 6, 6});
  const Tensor out = at::full({1, 1, 3, 3}, 77.0f);
  const Tensor rois = at::tensor({0.0f, -2.0f, -2.0f, 22.0f, 22.0f}).view({1, 5});
  ASSERT_EQ(RunRoiAlign(features, rois, out, 0.25f, 2, 0), ACL_SUCCESS) << TakeMessage();
  const Tensor wanted = at::tensor({4.5f, 6.5f, 8.5f, 16.5f, 18.5f, 20.5f, 28.5f, 30.5f, 32.5f});
  EXPECT_TRUE(at::allclose(out.view({-1}), wanted, 1e-5, 1e-5)) << out;
}

TEST(RegionsByName, NoRegionsAndFormsThatAreRefused) {
  const Tensor features = Random({1, 2, 4, 4});
  EXPECT_EQ(RunRoiAlign(features, at::empty({0, 5}), at::empty({0, 2, 3, 3}), 1, 2, 0), ACL_SUCCESS)
      << TakeMessage();
  const Tensor rois = at::zeros({1, 5}), out = at::zeros({1, 2, 3, 3});
  TakeMessage();
  EXPECT_NE(RunRoiAlign(features, rois, out, 1, 0, 0), ACL_SUCCESS);  // samples by the size
  EXPECT_NE(TakeMessage().find("sample_num 0"), std::string::npos);
  EXPECT_NE(RunRoiAlign(features, rois, out, 1, 2, 4), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("roi_end_mode 4"), std::string::npos);
  EXPECT_NE(RunRoiAlign(features, at::zeros({1, 4}), out, 1, 2, 0), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("rois [1, 4]"), std::string::npos);
  EXPECT_NE(RunRoiAlign(features, rois, at::zeros({2, 2, 3, 3}), 1, 2, 0), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("output 0 has the shape"), std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
