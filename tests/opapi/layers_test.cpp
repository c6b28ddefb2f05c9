// Products, normalisations, convolutions and pools against the library's own, bit by bit.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

const Tensor kNone;

// ---- products

TEST(Mm, TakesDenseTransposedAndStridedOperands) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const Tensor a = Random({17, 33}, dtype), b = Random({33, 21}, dtype);
    const Tensor at_view = Random({33, 17}, dtype).t(), bt = Random({21, 33}, dtype).t();
    const Tensor sliced = Random({34, 66}, dtype).slice(0, 0, 34, 2).slice(1, 0, 66, 2);
    for (const Tensor& left : {a, at_view, sliced}) {
      for (const Tensor& right : {b, bt})
        Check("aclnnMm", {left, right}, {at::mm(left, right)}, {0});
    }
  }
  const Tensor row = Random({1, 21}).expand({33, 21}), a = Random({4, 33});
  Check("aclnnMm", {a, row}, {at::mm(a, row)}, {0});
  const Tensor empty = Random({0, 33}), inner = Random({4, 0}), none = Random({0, 5});
  Check("aclnnMm", {empty, Random({33, 2})}, {at::empty({0, 2})}, {0});
  Check("aclnnMm", {inner, none}, {at::zeros({4, 5})}, {0});
}

TEST(Mm, WritesIntoStridedAndAliasedOutputs) {
  const Tensor a = Random({8, 8}), b = Random({8, 8});
  const Tensor expected = at::mm(a, b);
  const Tensor out = at::zeros({8, 16}).slice(1, 0, 16, 2);
  EXPECT_TRUE(Gives("aclnnMm", {a, b, out, 0}, {{2, expected}}));
  EXPECT_TRUE(Gives("aclnnMm", {a, b, a, 0}, {{2, expected}}));
  const Tensor half = at::empty({8, 8}, at::kHalf), x = Random({8, 8});
  EXPECT_TRUE(Gives("aclnnMm", {x, b, half, 0}, {{2, at::mm(x, b).to(at::kHalf)}}));
}

TEST(Products, EqualTheLibrary) {
  const Tensor a = Random({3, 7, 9}), b = Random({3, 9, 5}), one = Random({1, 9, 5});
  Check("aclnnBatchMatMul", {a, b}, {at::bmm(a, b)}, {0});
  Check("aclnnBatchMatMul", {a, b.transpose(1, 2).contiguous().transpose(1, 2)}, {at::bmm(a, b)},
        {0});
  Check("aclnnBatchMatMul", {a, one}, {at::bmm(a, one.expand({3, 9, 5}))}, {0});
}

TEST(Matmul, TakesAllRanks) {
  const std::vector<std::pair<Dims, Dims>> shapes = {{{9}, {9}},
                                                     {{9}, {9, 4}},
                                                     {{5, 9}, {9}},
                                                     {{5, 9}, {9, 4}},
                                                     {{3, 5, 9}, {9, 4}},
                                                     {{3, 5, 9}, {3, 9, 4}},
                                                     {{2, 1, 5, 9}, {3, 9, 4}},
                                                     {{9}, {3, 9, 4}}};
  for (const auto& [x, y] : shapes) {
    const Tensor a = Random(x), b = Random(y);
    Check("aclnnMatmul", {a, b}, {at::matmul(a, b)}, {0});
  }
  const Tensor h = Random({2, 5, 9}, at::kHalf), g = Random({2, 9, 4}, at::kHalf);
  Check("aclnnMatmul", {h, g}, {at::matmul(h.to(at::kFloat), g.to(at::kFloat)).to(at::kHalf)}, {0});
  EXPECT_EQ(RunOperator("aclnnMatmul", {Random({2, 3}), Random({4, 5}), at::empty({2, 5}), 0}),
            161002);
}

TEST(Addmm, ScalesAndBroadcastsSelf) {
  const Tensor a = Random({6, 9}), b = Random({9, 4}), full = Random({6, 4}), row = Random({4});
  for (const Tensor& self : {full, row}) {
    Check("aclnnAddmm", {self, a, b, 0.5, 2.0}, {at::addmm(self, a, b, 0.5, 2.0)}, {0});
  }
  const Tensor nan = at::full({4}, NAN);
  Check("aclnnAddmm", {nan, a, b, 0, 1}, {at::addmm(nan, a, b, 0, 1)}, {0});
  const Tensor weight = Random({4, 9});
  Check("aclnnAddmm", {row, a, weight.t(), 1, 1}, {at::addmm(row, a, weight.t())}, {0});
  const Tensor expected = at::addmm(full, a, b, 0.5, 2.0);
  CheckInplace("aclnnInplaceAddmm", {full, a, b, 0.5, 2.0, 0}, expected);
  const Tensor h = Random({4}, at::kHalf), ha = a.to(at::kHalf), hb = b.to(at::kHalf);
  Check("aclnnAddmm", {h, ha, hb, 1, 1},
        {at::addmm(h.to(at::kFloat), ha.to(at::kFloat), hb.to(at::kFloat)).to(at::kHalf)}, {0});
}

TEST(Baddbmm, AndItsRelativesEqualTheLibrary) {
  const Tensor self = Random({3, 6, 4}), a = Random({3, 6, 9}), b = Random({3, 9, 4});
  Check("aclnnBaddbmm", {self, a, b, 0.5, 2.0}, {at::baddbmm(self, a, b, 0.5, 2.0)}, {0});
  Check("aclnnAddbmm", {self[0], a, b, 0.5, 2.0}, {at::addbmm(self[0], a, b, 0.5, 2.0)}, {0});
  const Tensor vector = Random({9}), sum = Random({6});
  Check("aclnnMv", {a[0], vector}, {at::mv(a[0], vector)}, {0});
  Check("aclnnAddmv", {sum, a[0], vector, 2.0, 0.5}, {at::addmv(sum, a[0], vector, 0.5, 2.0)}, {0});
  Check("aclnnDot", {vector, vector}, {at::dot(vector, vector)});
  CheckInplace("aclnnInplaceAddbmm", {self[0].clone(), a, b, 0.5, 2.0, 0},
               at::addbmm(self[0], a, b, 0.5, 2.0));
  CheckInplace("aclnnInplaceBaddbmm", {self, a, b, 0.5, 2.0, 0}, at::baddbmm(self, a, b, 0.5, 2.0));
}

// ---- softmax and norms

TEST(Softmax, EqualsTheLibraryAlongAnyDim) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (const auto& [name, x] : Views(dtype, -20, 20)) {
      const Tensor wide = dtype == at::kHalf ? x.to(at::kFloat) : x;
      const Tensor y = at::softmax(wide, -1).to(dtype), log = at::log_softmax(wide, 0).to(dtype);
      Check("aclnnSoftmax", {x, -1}, {y});
      Check("aclnnLogSoftmax", {x, 0}, {log});
      const Tensor g = at::ones_like(x), wg = g.to(wide.scalar_type());
      Check("aclnnSoftmaxBackward", {g, y, -1},
            {at::_softmax_backward_data(wg, y.to(wide.scalar_type()), -1, wide.scalar_type())
                 .to(dtype)});
      Check("aclnnLogSoftmaxBackward", {g, log, 0},
            {at::_log_softmax_backward_data(wg, log.to(wide.scalar_type()), 0, wide.scalar_type())
                 .to(dtype)});
    }
  }
  const Tensor masked = at::full({2, 5}, -INFINITY);
  Check("aclnnSoftmax", {masked, 1}, {at::softmax(masked, 1)});
  const Tensor half = Random({3, 9}, at::kHalf);
  Check("aclnnSoftmax", {half, 1}, {at::softmax(half.to(at::kFloat), 1)});
  const Tensor x = Random({3, 9}), expected = at::softmax(x, 1);
  EXPECT_TRUE(Gives("aclnnSoftmax", {x, 1, x}, {{2, expected}})) << "out is the input";
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

TEST(GroupNorm, EqualsTheLibraryBothWays) {
  const Tensor x = Random({2, 6, 5, 5}), g = Random({2, 6, 5, 5}), w = Random({6}), b = Random({6});
  const auto [y, mean, rstd] = at::native_group_norm(x, w, b, 2, 6, 25, 3, 1e-5);
  Check("aclnnGroupNorm", {x, w, b, 2, 6, 25, 3, 1e-5}, {y, mean, rstd});
  const auto [dx, dw, db] =
      at::native_group_norm_backward(g, x, mean, rstd, w, 2, 6, 25, 3, {true, true, true});
  Check("aclnnGroupNormBackward", {g, x, mean, rstd, w, 2, 6, 25, 3, Dims{1, 1, 1}}, {dx, dw, db});
}

// ---- convolutions and pools

TEST(Convolution, EqualsTheLibraryInAllForms) {
  struct Form {
    Dims input, weight, stride, padding, dilation;
    bool transposed;
    int64_t groups;
  };
  const Form forms[] = {
      {{2, 3, 17, 19}, {8, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, false, 1},
      {{2, 3, 32, 32}, {8, 3, 7, 7}, {2, 2}, {3, 3}, {1, 1}, false, 1},
      {{1, 8, 9, 9}, {8, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, false, 8},
      {{2, 4, 12, 12}, {6, 4, 3, 3}, {1, 1}, {2, 2}, {2, 2}, false, 1},
      {{2, 4, 6, 6}, {4, 5, 3, 3}, {2, 2}, {1, 1}, {1, 1}, true, 1},
      {{2, 4, 21}, {6, 4, 3}, {1}, {1}, {1}, false, 1},
      {{1, 2, 6, 7, 8}, {3, 2, 2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, false, 1},
  };
  for (const Form& form : forms) {
    const Tensor x = Random(form.input), w = Random(form.weight);
    const Dims none(form.stride.size(), 0);
    const int64_t channels = form.transposed ? form.weight[1] : form.weight[0];
    const Tensor b = Random({channels});
    const Tensor y = at::convolution(x, w, b, form.stride, form.padding, form.dilation,
                                     form.transposed, none, form.groups);
    Check("aclnnConvolution",
          {x, w, b, form.stride, form.padding, form.dilation, form.transposed, none, form.groups},
          {y}, {0});
    const Tensor plain = at::convolution(x, w, {}, form.stride, form.padding, form.dilation,
                                         form.transposed, none, form.groups);
    Check("aclnnConvolution",
          {x, w, Null{}, form.stride, form.padding, form.dilation, form.transposed, none,
           form.groups},
          {plain}, {0});
    const Tensor g = Random(y.sizes());
    const auto [dx, dw, db] =
        at::convolution_backward(g, x, w, Dims{channels}, form.stride, form.padding, form.dilation,
                                 form.transposed, none, form.groups, {true, true, true});
    Check("aclnnConvolutionBackward",
          {g, x, w, Dims{channels}, form.stride, form.padding, form.dilation, form.transposed, none,
           form.groups, Dims{1, 1, 1}, 0},
          {dx, dw, db});
  }
}

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

TEST(Pools, EqualTheLibrary) {
  for (const Tensor& x : {Random({2, 3, 13, 15}), Random({3, 13, 15})}) {
    for (bool ceil : {false, true}) {
      const Dims k = {3, 3}, s = {2, 2}, p = {1, 1}, d = {1, 1};
      const auto [y, indices] = at::max_pool2d_with_indices(x, k, s, p, d, ceil);
      Check("aclnnMaxPool2dWithIndices", {x, k, s, p, d, ceil}, {y, indices});
      Check("aclnnMaxPool2dWithIndices", {x, k, s, p, d, ceil}, {y, indices.to(at::kInt)});
      const Tensor g = Random(y.sizes());
      Check("aclnnMaxPool2dWithIndicesBackward", {g, x, indices.to(at::kInt), k, s, p, d, ceil},
            {at::max_pool2d_with_indices_backward(g, x, k, s, p, d, ceil, indices)});
      const Tensor mean = at::avg_pool2d(x, k, s, p, ceil, false);
      Check("aclnnAvgPool2d", {x, k, s, p, ceil, false, 0, 0}, {mean});
      Check("aclnnAvgPool2d", {x, k, s, p, ceil, true, 5, 0},
            {at::avg_pool2d(x, k, s, p, ceil, true, 5)});
      Check("aclnnAvgPool2dBackward", {g, x, k, s, p, ceil, false, 0, 0},
            {at::avg_pool2d_backward(g, x, k, s, p, ceil, false, c10::nullopt)});
    }
    const Tensor y = at::_adaptive_avg_pool2d(x, {4, 5});
    Check("aclnnAdaptiveAvgPool2d", {x, Dims{4, 5}}, {y});
    const Tensor g = Random(y.sizes());
    Check("aclnnAdaptiveAvgPool2dBackward", {g, x}, {at::_adaptive_avg_pool2d_backward(g, x)});
  }
  const Tensor h = Random({1, 2, 8, 8}, at::kHalf);
  const auto [y, i] = at::max_pool2d_with_indices(h.to(at::kFloat), {2, 2});
  Check("aclnnMaxPool2dWithIndices", {h, Dims{2, 2}, Dims{}, Dims{0, 0}, Dims{1, 1}, false},
        {y.to(at::kHalf), i});
  const Tensor image = Random({1, 2, 5, 7});
  Check("aclnnUpsampleNearest2d", {image, Dims{11, 9}}, {at::upsample_nearest2d(image, {11, 9})});
  Check("aclnnUpsampleBilinear2d", {image, Dims{11, 9}, true, 0.0, 0.0},
        {at::upsample_bilinear2d(image, {11, 9}, true)});
}

}  // namespace
}  // namespace acltape::opapi
