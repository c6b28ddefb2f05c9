// Normalisations, convolutions and pools in what the grid (grid/layer_rows.cpp, matrix_rows.cpp)
// does not try: absent outputs, statistics that are updated, gradients, arguments that are refused.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

const Tensor kNone;

// ---- softmax and norms

TEST(Softmax, OfHalvesMayHaveAnOutputOfFloats) {
  const Tensor half = Random({3, 9}, at::kHalf);
  Check("aclnnSoftmax", {half, 1}, {at::softmax(half.to(at::kFloat), 1)});
}

TEST(LayerNorm, TakesAbsentWeightsAndStatistics) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    const Tensor x = Random({4, 6, 32}, dtype), w = Random({32}, dtype), b = Random({32}, dtype);
    const auto wide = [](const Tensor& t) { return t.to(at::kFloat); };
    const auto [y, mean, rstd] = at::native_layer_norm(wide(x), {32}, wide(w), wide(b), 1e-5);
    const Dims shape = {32};
    Check("aclnnLayerNorm", {x, shape, w, b, 1e-5}, {y.to(dtype), mean, rstd});
    Check("aclnnLayerNorm", {x, shape, w, b, 1e-5}, {y.to(dtype), kNone, kNone});
    Check("aclnnFastLayerNorm", {x, shape, w, b, 1e-5}, {y.to(dtype), mean, rstd});
    const Tensor strided = x.transpose(0, 1);
    Check("aclnnLayerNorm", {strided, shape, w, b, 1e-5},
          {y.to(dtype).transpose(0, 1).contiguous(), kNone, kNone});
    const auto plain = at::native_layer_norm(wide(x), {6, 32}, {}, {}, 1e-5);
    Check("aclnnLayerNorm", {x, Dims{6, 32}, Null{}, Null{}, 1e-5},
          {std::get<0>(plain).to(dtype), kNone, kNone});
  }
  const Tensor x = Random({2, 8});
  EXPECT_EQ(RunOperator("aclnnLayerNorm",
                        {x, Dims{7}, Null{}, Null{}, 1e-5, Unwritten(x), Null{}, Null{}}),
            161002);
}

TEST(LayerNormBackward, GivesTheGradientsOfTheMask) {
  const Tensor x = Random({4, 6, 32}), g = Random({4, 6, 32}), w = Random({32}), b = Random({32});
  const auto [y, mean, rstd] = at::native_layer_norm(x, {32}, w, b, 1e-5);
  const auto [dx, dw, db] =
      at::native_layer_norm_backward(g, x, {32}, mean, rstd, w, b, {true, true, true});
  Check("aclnnLayerNormBackward", {g, x, Dims{32}, mean, rstd, w, b, Dims{1, 1, 1}}, {dx, dw, db});
  Check("aclnnLayerNormBackward", {g, x, Dims{32}, mean, rstd, w, b, Dims{1, 0, 0}},
        {dx, kNone, kNone});
  EXPECT_EQ(RunOperator("aclnnLayerNormBackward", {g, x, Dims{32}, mean, rstd, w, b, Dims{1, 1, 1},
                                                   Unwritten(dx), Null{}, Unwritten(db)}),
            161001);
}

TEST(BatchNorm, InfersAndTrainsWithRunningStatistics) {
  const Tensor x = Random({4, 6, 5, 5}), w = Random({6}), b = Random({6});
  const Tensor mean = Random({6}), var = Random({6}, at::kFloat, 0.5, 2);
  const auto infer = at::native_batch_norm(x, w, b, mean, var, false, 0.1, 1e-5);
  Check("aclnnBatchNorm", {x, w, b, mean, var, false, 0.1, 1e-5},
        {std::get<0>(infer), kNone, kNone});
  const Tensor running_mean = mean.clone(), running_var = var.clone();
  const auto train = at::native_batch_norm(x, w, b, running_mean, running_var, true, 0.1, 1e-5);
  const Tensor m = mean.clone(), v = var.clone();
  Check("aclnnBatchNorm", {x, w, b, m, v, true, 0.1, 1e-5},
        {std::get<0>(train), std::get<1>(train), std::get<2>(train)});
  EXPECT_TRUE(SameBits(m, running_mean));
  EXPECT_TRUE(SameBits(v, running_var));
  const Tensor g = Random({4, 6, 5, 5});
  const auto [dx, dw, db] =
      at::native_batch_norm_backward(g, x, w, running_mean, running_var, std::get<1>(train),
                                     std::get<2>(train), true, 1e-5, {true, true, true});
  Check("aclnnBatchNormBackward",
        {g, x, w, running_mean, running_var, std::get<1>(train), std::get<2>(train), true, 1e-5,
         Dims{1, 1, 1}},
        {dx, dw, db});
}

TEST(BatchNorm, UpdatesHalfRunningStatistics) {
  const Tensor x = Random({4, 3, 5}, at::kHalf), m = at::zeros({3}, at::kHalf),
               v = at::ones({3}, at::kHalf);
  const Tensor wm = m.to(at::kFloat), wv = v.to(at::kFloat);
  const auto train = at::native_batch_norm(x.to(at::kFloat), {}, {}, wm, wv, true, 0.1, 1e-5);
  Check("aclnnBatchNorm", {x, Null{}, Null{}, m, v, true, 0.1, 1e-5},
        {std::get<0>(train).to(at::kHalf), std::get<1>(train), std::get<2>(train)});
  EXPECT_TRUE(SameBits(m, wm.to(at::kHalf)));
  EXPECT_TRUE(SameBits(v, wv.to(at::kHalf)));
}

TEST(GroupNorm, HasTheGradientsOfTheLibrary) {
  const Tensor x = Random({2, 6, 5, 5}), g = Random({2, 6, 5, 5}), w = Random({6}), b = Random({6});
  const auto [y, mean, rstd] = at::native_group_norm(x, w, b, 2, 6, 25, 3, 1e-5);
  const auto [dx, dw, db] =
      at::native_group_norm_backward(g, x, mean, rstd, w, 2, 6, 25, 3, {true, true, true});
  Check("aclnnGroupNormBackward", {g, x, mean, rstd, w, 2, 6, 25, 3, Dims{1, 1, 1}}, {dx, dw, db});
}

// ---- convolutions and pools

TEST(Convolution, PadsSidesDifferentlyAndRejectsWrongShapes) {
  const Tensor x = Random({1, 2, 8, 8}), w = Random({3, 2, 3, 3});
  const Dims one = {1, 1}, zero = {0, 0};
  const Tensor padded = at::constant_pad_nd(x, {1, 2, 0, 1}, 0);
  const Tensor expected = at::convolution(padded, w, {}, one, zero, one, false, zero, 1);
  Check("aclnnConvolution", {x, w, Null{}, one, Dims{0, 1, 1, 2}, one, false, zero, 1}, {expected},
        {0});
  EXPECT_EQ(RunOperator("aclnnConvolution", {x, Random({3, 4, 3, 3}), Null{}, one, zero, one, false,
                                             zero, 1, at::empty({1, 3, 6, 6}), 0}),
            161002);
  EXPECT_EQ(LastMessage(), "aclnnConvolution: input has 2 channels, expected 4.");
}

TEST(Pools, AveragesHaveTheGradientsOfTheLibrary) {
  for (const Tensor& x : {Random({2, 3, 13, 15}), Random({3, 13, 15})}) {
    for (bool ceil : {false, true}) {
      const Dims k = {3, 3}, s = {2, 2}, p = {1, 1};
      const Tensor g = Random(at::avg_pool2d(x, k, s, p, ceil, false).sizes());
      Check("aclnnAvgPool2dBackward", {g, x, k, s, p, ceil, false, 0, 0},
            {at::avg_pool2d_backward(g, x, k, s, p, ceil, false, c10::nullopt)});
    }
  }
}

}  // namespace
}  // namespace acltape::opapi
