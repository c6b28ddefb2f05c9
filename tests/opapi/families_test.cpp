// Operators that are not elementwise against the library's own, bit by bit.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

const Tensor kNone;

// Appends outputs to `args` in the shapes and strides of `expected` and compares them. Undefined
// expected tensors become NULL arguments.
void Check(const char* name, Args args, const std::vector<Tensor>& expected, Args tail = {}) {
  std::map<int, Tensor> wanted;
  for (const Tensor& tensor : expected) {
    if (tensor.defined()) {
      wanted[static_cast<int>(args.size())] = tensor;
      args.push_back(Unwritten(tensor));
    } else {
      args.push_back(Null{});
    }
  }
  args.insert(args.end(), tail.begin(), tail.end());
  EXPECT_TRUE(Gives(name, args, wanted));
}

// In place: argument 0 holds the result.
void CheckInplace(const char* name, const Args& args, const Tensor& expected) {
  EXPECT_TRUE(Gives(name, args, {{0, expected}}));
}

Tensor Indices(at::IntArrayRef sizes, int64_t bound, at::ScalarType dtype = at::kLong) {
  return Random(sizes, at::kDouble, 0, static_cast<double>(bound)).floor().to(dtype);
}

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

// ---- reductions

TEST(Reductions, OverDimsEqualTheLibrary) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf}) {
    const Tensor dense = Random({5, 37, 11}, dtype),
                 swapped = Random({11, 37, 5}, dtype).permute({2, 1, 0});
    for (const Tensor& x : {dense, swapped}) {
      for (const Dims& dims : {Dims{}, Dims{1}, Dims{-1}, Dims{0, 2}, Dims{2, 0, 1}}) {
        for (bool keep : {false, true}) {
          Check("aclnnReduceSum", {x, dims, keep, dtype}, {at::sum(x, dims, keep, dtype)});
          Check("aclnnMean", {x, dims, keep, dtype}, {at::mean(x, dims, keep, dtype)});
          Check("aclnnAmax", {x, dims, keep}, {at::amax(x, dims, keep)});
          Check("aclnnAmin", {x, dims, keep}, {at::amin(x, dims, keep)});
        }
      }
      Check("aclnnMax", {x}, {at::max(x)});
      Check("aclnnMin", {x}, {at::min(x)});
    }
  }
}

TEST(Reductions, TakeEdgeCases) {
  const Tensor scalar = Random({}), empty = Random({3, 0}),
               integers = Random({4, 5}, at::kInt, -9, 9);
  Check("aclnnReduceSum", {scalar, Dims{}, false, at::kFloat}, {at::sum(scalar)});
  Check("aclnnReduceSum", {empty, Dims{1}, false, at::kFloat}, {at::zeros({3})});
  Check("aclnnMean", {empty, Dims{1}, false, at::kFloat}, {at::mean(empty, {1})});
  Check("aclnnReduceSum", {integers, Dims{1}, false, at::kLong}, {at::sum(integers, {1})});
  const Tensor half = Random({4, 50}, at::kHalf);
  Check("aclnnReduceSum", {half, Dims{1}, false, at::kFloat},
        {at::sum(half, {1}, false, at::kFloat)});
  EXPECT_EQ(
      RunOperator("aclnnMean", {integers, Dims{1}, false, at::kLong, at::empty({4}, at::kLong)}),
      161002);
  EXPECT_EQ(
      RunOperator("aclnnReduceSum", {scalar, Dims{0, 0}, false, at::kFloat, Unwritten(scalar)}),
      161002);
}

TEST(Reductions, ToPositionsAndTruthEqualTheLibrary) {
  Tensor x = Random({6, 9}).mul(2).round();
  x[2][3] = NAN;
  for (bool keep : {false, true}) {
    for (int dim : {0, 1, -1}) {
      const auto [max, at_max] = at::max(x, dim, keep);
      const auto [min, at_min] = at::min(x, dim, keep);
      Check("aclnnMaxDim", {x, dim, keep}, {max, at_max});
      Check("aclnnMinDim", {x, dim, keep}, {min, at_min});
      Check("aclnnMaxDim", {x, dim, keep}, {max, at_max.to(at::kInt)});
      Check("aclnnArgMax", {x, dim, keep}, {at::argmax(x, dim, keep)});
      Check("aclnnArgMax", {x, dim, keep}, {at::argmax(x, dim, keep).to(at::kInt)});
      Check("aclnnArgMin", {x, dim, keep}, {at::argmin(x, dim, keep)});
      const Tensor bools = x.gt(1);
      Check("aclnnAny", {bools, Dims{dim}, keep}, {at::any(bools, dim, keep)});
      Check("aclnnAll", {bools, Dims{dim}, keep}, {at::all(bools, dim, keep)});
    }
  }
  const Tensor bools = x.gt(1), none = at::empty({2, 0}, at::kBool);
  Check("aclnnAny", {bools, Dims{}, false}, {at::any(bools)});
  Check("aclnnAny", {x, Dims{0, 1}, true}, {at::any(x).reshape({1, 1})});
  Check("aclnnAll", {bools, Dims{1, 0}, false}, {at::all(bools)});
  Check("aclnnAll", {none, Dims{1}, false}, {at::ones({2}, at::kBool)});
  Check("aclnnAny", {bools, Dims{1}, false}, {at::any(bools, 1).to(at::kByte)});
}

TEST(Reductions, OfSpreadNormAndScansEqualTheLibrary) {
  const Tensor x = Random({5, 37});
  Check("aclnnVar", {x, Dims{1}, true, false}, {at::var(x, {1}, true, false)});
  Check("aclnnVarCorrection", {x, Dims{1}, 2, false},
        {at::var(x, Dims{1}, c10::optional<int64_t>(2), false)});
  Check("aclnnStd", {x, Dims{0}, 1, true}, {at::std(x, Dims{0}, c10::optional<int64_t>(1), true)});
  const auto [var, mean] = at::var_mean(x, {1}, 1, false);
  Check("aclnnVarMean", {x, Dims{1}, 1, false}, {var, mean});
  Check("aclnnNorm", {x, 2.0, Dims{1}, false}, {at::norm(x, 2.0, {1}, false)});
  Check("aclnnLinalgVectorNorm", {x, 1.0, Dims{}, false, at::kFloat},
        {at::linalg_vector_norm(x, 1.0)});
  Check("aclnnLogSumExp", {x, Dims{1}, true}, {at::logsumexp(x, {1}, true)});
  Check("aclnnCumsum", {x, -1, at::kFloat}, {at::cumsum(x, -1)});
  Check("aclnnCumsum", {x.gt(0), 0, at::kLong}, {at::cumsum(x.gt(0), 0)});
  const Tensor half = x.to(at::kHalf);
  Check("aclnnCumsum", {half, 1, at::kHalf}, {at::cumsum(half.to(at::kFloat), 1).to(at::kHalf)});
  Check("aclnnCumprod", {x, 1, at::kFloat}, {at::cumprod(x, 1)});
  Check("aclnnProd", {x[0], at::kFloat}, {at::prod(x[0])});
  Check("aclnnProdDim", {x, 1, false, at::kFloat}, {at::prod(x, 1, false)});
  Check("aclnnMedian", {x}, {at::median(x)});
}

TEST(Sorts, EqualTheLibrary) {
  for (at::ScalarType dtype : {at::kFloat, at::kLong}) {
    const Tensor x = Random({6, 41}, dtype, -20, 20);
    for (bool flag : {false, true}) {
      const auto [values, indices] = at::sort(x, c10::optional<bool>(true), 1, flag);
      Check("aclnnSort", {x, true, 1, flag}, {values, indices});
      const auto [top, where] = at::topk(x, 5, 1, flag, true);
      Check("aclnnTopk", {x, 5, -1, flag, true}, {top, where});
    }
    Check("aclnnArgsort", {x, 0, true}, {at::argsort(x, 0, true)});
  }
  const Tensor x = Random({4, 5});
  EXPECT_EQ(RunOperator("aclnnTopk",
                        {x, 6, 1, true, true, at::empty({4, 6}), at::empty({4, 6}, at::kLong)}),
            161002);
  const auto [none, nowhere] = at::topk(x, 0, 1);
  Check("aclnnTopk", {x, 0, 1, true, true}, {none, nowhere});
}

// ---- index operators

TEST(Index, ReadsEqualTheLibrary) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kLong, at::kBool}) {
    const Tensor x = Random({11, 7, 5}, dtype, 0, 50), strided = x.transpose(0, 2);
    for (at::ScalarType index_dtype : {at::kLong, at::kInt}) {
      const Tensor rows = Indices({6}, 5, index_dtype);
      Check("aclnnIndexSelect", {x, 1, rows}, {at::index_select(x, 1, rows)});
      Check("aclnnIndexSelect", {strided, -3, rows}, {at::index_select(strided, 0, rows)});
      const Tensor grid = Indices({2, 3}, 11, index_dtype);
      Check("aclnnGatherV2", {x, 0, grid},
            {at::index_select(x, 0, grid.flatten()).view({2, 3, 7, 5})});
    }
    const Tensor index = Indices({4, 7, 5}, 11);
    Check("aclnnGather", {x, 0, index}, {at::gather(x, 0, index)});
    Check("aclnnGather", {x, 0, index.to(at::kInt)}, {at::gather(x, 0, index)});
    const Tensor flat = Indices({9}, 11 * 35);
    Check("aclnnTake", {x, flat}, {at::take(x, flat)});
  }
  const Tensor weight = Random({13, 8});
  for (const Dims& sizes : {Dims{}, Dims{4}, Dims{2, 3}, Dims{0}}) {
    const Tensor tokens = Indices(sizes, 13);
    Check("aclnnEmbedding", {weight, tokens}, {at::embedding(weight, tokens)});
    const Tensor g = Random(at::embedding(weight, tokens).sizes());
    Check("aclnnEmbeddingDenseBackward", {g, tokens, 13, -1, false},
          {at::embedding_dense_backward(g, tokens, 13, -1, false)});
  }
}

TEST(Index, ByListsEqualsTheLibrary) {
  const Tensor x = Random({6, 5, 4}), i = Indices({3}, 4), j = Indices({2, 3}, 4),
               k = at::neg(Indices({3}, 3)) - 1;
  const Tensor slice = at::empty({0}, at::kLong);
  using List = c10::List<c10::optional<Tensor>>;
  const c10::optional<Tensor> none;
  Check("aclnnIndex", {x, std::vector<Tensor>{i}}, {at::index(x, List({i}))});
  Check("aclnnIndex", {x, std::vector<Tensor>{i, j}}, {at::index(x, List({i, j}))});
  Check("aclnnIndex", {x, std::vector<Tensor>{slice, i, k}}, {at::index(x, List({none, i, k}))});
  Check("aclnnIndex", {x, std::vector<Tensor>{i, slice, k}}, {at::index(x, List({i, none, k}))});
  const Tensor mask = x.select(2, 0).gt(0);
  Check("aclnnIndex", {x, std::vector<Tensor>{mask}}, {at::index(x, List({mask}))});
  for (bool accumulate : {false, true}) {
    const Tensor self = x.clone(), values = Random({3, 4}), rows = Indices({3}, 5);
    const Tensor expected = at::index_put(x, List({i, rows}), values, accumulate);
    CheckInplace("aclnnIndexPutImpl",
                 {self, std::vector<Tensor>{i, rows}, values, accumulate, false}, expected);
  }
  EXPECT_EQ(RunOperator("aclnnIndex", {x, std::vector<Tensor>{i, i, i, i}, at::empty({3})}),
            161002);
}

TEST(Index, WritesEqualTheLibrary) {
  const Tensor x = Random({6, 5}), rows = at::tensor({4, 1}, at::kLong), source = Random({2, 5});
  CheckInplace("aclnnInplaceIndexCopy", {x.clone(), 0, rows, source},
               at::index_copy(x, 0, rows, source));
  CheckInplace("aclnnInplaceIndexCopy", {x.clone(), 0, rows.to(at::kInt), source},
               at::index_copy(x, 0, rows, source));
  Check("aclnnIndexAdd", {x, 0, rows, source, 0.5}, {at::index_add(x, 0, rows, source, 0.5)});
  Check("aclnnIndexFill", {x, 0, rows, 7.0}, {at::index_fill(x, 0, rows, 7.0)});
  CheckInplace("aclnnInplaceIndexFillTensor", {x.clone(), 0, Dims{4, 1}, 7.0},
               at::index_fill(x, 0, rows, 7.0));
  const Tensor index = Indices({3, 5}, 6), values = Random({3, 5});
  Check("aclnnScatter", {x, 0, index, values, 0}, {at::scatter(x, 0, index, values)});
  Check("aclnnScatter", {x, 0, index, values, 1}, {at::scatter(x, 0, index, values, "add")});
  CheckInplace("aclnnInplaceScatter", {x.clone(), 0, index, values, 2},
               at::scatter(x, 0, index, values, "multiply"));
  Check("aclnnScatterValue", {x, 0, index, 3.0, 0}, {at::scatter(x, 0, index, 3.0)});
  Check("aclnnScatterAdd", {x, 0, index, values}, {at::scatter_add(x, 0, index, values)});
  const Tensor sum = x.clone();
  EXPECT_TRUE(Gives("aclnnScatterAdd", {sum, 0, index, values, sum},
                    {{4, at::scatter_add(x, 0, index, values)}}));
  EXPECT_EQ(RunOperator("aclnnScatter", {x, 0, index, values, 3, Unwritten(x)}), 161002);
}

TEST(Masks, FillAndScatter) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kLong}) {
    const Tensor x = Random({4, 1, 6}, dtype, -9, 9), mask = Random({1, 6}, at::kBool);
    CheckInplace("aclnnInplaceMaskedFillScalar", {x.clone(), mask, -3.0},
                 at::masked_fill(x, mask, -3));
    CheckInplace("aclnnInplaceMaskedFillTensor",
                 {x.clone(), mask.to(at::kByte), at::full({1}, 2, dtype)},
                 at::masked_fill(x, mask, 2));
  }
  const Tensor x = Random({4, 6}), mask = Random({4, 6}, at::kBool), source = Random({24});
  CheckInplace("aclnnInplaceMaskedFillScalar", {x.clone(), mask, -INFINITY},
               at::masked_fill(x, mask, -INFINITY));
  CheckInplace("aclnnInplaceMaskedScatter", {x.clone(), mask, source},
               at::masked_scatter(x, mask, source));
  EXPECT_EQ(RunOperator("aclnnInplaceMaskedFillScalar", {x, Random({3, 6}, at::kBool), 1.0}),
            161002);
  const Tensor classes = Indices({3, 2}, 4);
  Check("aclnnOneHot", {classes, 4, at::ones({1}), at::zeros({1}), -1},
        {at::one_hot(classes, 4).to(at::kFloat)});
}

// ---- copies and fills

TEST(Copies, ConvertBroadcastAndFollowStrides) {
  for (at::ScalarType from : {at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kBool}) {
    for (at::ScalarType to : {at::kFloat, at::kHalf, at::kBFloat16, at::kInt, at::kBool}) {
      for (const auto& [name, x] : Views(from, -3, 3)) {
        const Tensor out = at::zeros(x.sizes(), to);
        CheckInplace("aclnnInplaceCopy", {out, x}, x.to(to));
        Check("aclnnCast", {x, to}, {x.to(to).clone()});
      }
    }
  }
  const Tensor row = Random({1, 6}), out = at::zeros({6, 4}).t();
  CheckInplace("aclnnInplaceCopy", {out, row}, row.expand({4, 6}));
  const Tensor base = Random({10});
  const Tensor expected = at::cat({base.slice(0, 0, 1), base.slice(0, 0, 9)});
  EXPECT_TRUE(Gives("aclnnInplaceCopy", {base.slice(0, 1, 10), base.slice(0, 0, 9)},
                    {{0, expected.slice(0, 1, 10)}}))
      << "overlapping views copy as if through a temporary";
  EXPECT_EQ(RunOperator("aclnnInplaceCopy", {row, out}), 161002);
}

TEST(Copies, OfViewsAndJoinsEqualTheLibrary) {
  const Tensor x = Random({3, 4, 5}), y = Random({3, 2, 5}),
               z = Random({5, 4, 3}).permute({2, 1, 0});
  Check("aclnnPermute", {x, Dims{2, 0, -2}}, {x.permute({2, 0, 1}).contiguous()});
  Check("aclnnExpand", {x[0], Dims{2, 4, 5}}, {x[0].expand({2, 4, 5}).contiguous()});
  Check("aclnnSlice", {x, 1, -3, 100, 2}, {x.slice(1, -3, 100, 2).contiguous()});
  Check("aclnnSliceV2", {x, Dims{1, 0}, Dims{3, 2}, Dims{2, 0}, Dims{1, 1}},
        {x.slice(2, 1, 3).slice(0, 0, 2).contiguous()});
  Check("aclnnCat", {std::vector<Tensor>{x, y, z}, 1}, {at::cat({x, y, z}, 1)});
  Check("aclnnCat", {std::vector<Tensor>{at::empty({0}), x}, -1}, {x});
  Check("aclnnCat", {std::vector<Tensor>{x, x.to(at::kHalf)}, 0},
        {at::cat({x, x.to(at::kHalf)}, 0)});
  Check("aclnnStack", {std::vector<Tensor>{x, z}, -1}, {at::stack({x, z}, -1)});
  Check("aclnnRepeat", {x, Dims{2, 1, 3, 1}}, {x.repeat({2, 1, 3, 1})});
  Check("aclnnRepeat", {x, Dims{0, 1, 1}}, {x.repeat({0, 1, 1})});
  Check("aclnnRepeatInterleaveIntWithDim", {x, 2, 1, 8}, {at::repeat_interleave(x, 2, 1)});
  Check("aclnnFlip", {x, Dims{0, 2}}, {at::flip(x, {0, 2})});
  Check("aclnnRoll", {x, Dims{1, -2}, Dims{0, 2}}, {at::roll(x, {1, -2}, {0, 2})});
  Check("aclnnConstantPadNd", {x, Dims{1, 2, -1, 0}, 1.5},
        {at::constant_pad_nd(x, {1, 2, -1, 0}, 1.5)});
  Check("aclnnReflectionPad1d", {x, Dims{2, 1}}, {at::reflection_pad1d(x, {2, 1})});
  for (int diagonal : {-1, 0, 2}) {
    Check("aclnnTriu", {x, diagonal}, {at::triu(x, diagonal)});
    Check("aclnnTril", {x, diagonal}, {at::tril(x, diagonal)});
    CheckInplace("aclnnInplaceTriu", {x.clone(), diagonal}, at::triu(x, diagonal));
  }
  const Tensor a = at::empty({3, 2, 5}), b = at::empty({3, 2, 5});
  ASSERT_EQ(RunOperator("aclnnSplitTensor", {x, 2, 1, std::vector<Tensor>{a, b}}), 0);
  EXPECT_TRUE(SameBits(at::cat({a, b}, 1), x));
  EXPECT_EQ(
      RunOperator("aclnnCat", {std::vector<Tensor>{x, Random({2, 4, 5})}, 1, at::empty({3, 8, 5})}),
      161002);
}

TEST(Fills, WriteTheViewOnly) {
  const Tensor base = Random({4, 6}), kept = base.clone();
  const Tensor view = base.slice(1, 1, 6, 2);
  CheckInplace("aclnnInplaceZero", {view}, at::zeros({4, 3}));
  EXPECT_TRUE(SameBits(base.slice(1, 0, 6, 2), kept.slice(1, 0, 6, 2)));
  CheckInplace("aclnnInplaceOne", {view}, at::ones({4, 3}));
  CheckInplace("aclnnInplaceFillScalar", {view, 2.5}, at::full({4, 3}, 2.5));
  CheckInplace("aclnnInplaceFillTensor", {view, at::full({1}, 3, at::kLong)},
               at::full({4, 3}, 3.0));
  EXPECT_TRUE(SameBits(base.slice(1, 0, 6, 2), kept.slice(1, 0, 6, 2)));
  CheckInplace("aclnnInplaceFillScalar", {at::zeros({3}, at::kLong), 7},
               at::full({3}, 7, at::kLong));
}

TEST(Ranges, HaveTheLengthOfOut) {
  Check("aclnnArange", {0, 10, 1}, {at::arange(10)});
  Check("aclnnArange", {2, -9, -3}, {at::arange(2, -9, -3)});
  Check("aclnnArange", {0.0, 1.0, 0.1}, {at::arange(0.0, 1.0, 0.1)});
  Check("aclnnArange", {0, 5, 1}, {at::arange(0, 5, 1, at::kFloat)});
  Check("aclnnArange", {0, 5, 1}, {at::arange(0, 5, 1, at::kHalf)});
  Check("aclnnLinspace", {0.0, 1.0, 7}, {at::linspace(0.0, 1.0, 7)});
  Check("aclnnEye", {3, 4}, {at::eye(3, 4)});
  EXPECT_EQ(RunOperator("aclnnArange", {0, 5, 1, at::empty({4})}), 161002);
  EXPECT_EQ(RunOperator("aclnnArange", {0, 5, 0, at::empty({4})}), 161002);
}

// ---- losses, random numbers, lists

TEST(Losses, EqualTheLibrary) {
  const Tensor scores = at::log_softmax(Random({7, 5}), 1), target = Indices({7}, 5);
  target[2] = -100;
  const Tensor weight = Random({5}, at::kFloat, 0.5, 2);
  for (int reduction = 0; reduction < 3; ++reduction) {
    const auto [loss, total] = at::nll_loss_forward(scores, target, weight, reduction, -100);
    const Tensor shown = reduction == 0 ? at::empty({}) : total;
    if (reduction != 0) {
      Check("aclnnNLLLoss", {scores, target, weight, reduction, -100}, {loss, total});
      const Tensor ones = at::ones({5});
      const auto [plain, count] = at::nll_loss_forward(scores, target, {}, reduction, -100);
      Check("aclnnNLLLoss", {scores, target, ones, reduction, -100}, {plain, count});
      Check("aclnnNLLLoss", {scores, target, Null{}, reduction, -100}, {plain, count});
    }
    const Tensor g = reduction == 0 ? Random({7}) : Random({});
    Check("aclnnNLLLossBackward", {g, scores, target, weight, reduction, -100, shown},
          {at::nll_loss_backward(g, scores, target, weight, reduction, -100, shown)});
    const Tensor x = Random({7, 5}), y = Random({7, 5}), p = at::sigmoid(x), q = at::sigmoid(y);
    Check("aclnnMseLoss", {x, y, reduction}, {at::mse_loss(x, y, reduction)});
    const Tensor mg = reduction == 0 ? Random({7, 5}) : Random({});
    Check("aclnnMseLossBackward", {mg, x, y, reduction},
          {at::mse_loss_backward(mg, x, y, reduction)});
    Check("aclnnL1Loss", {x, y, reduction}, {at::l1_loss(x, y, reduction)});
    Check("aclnnSmoothL1Loss", {x, y, reduction, 0.5}, {at::smooth_l1_loss(x, y, reduction, 0.5)});
    Check("aclnnBinaryCrossEntropy", {p, q, Null{}, reduction},
          {at::binary_cross_entropy(p, q, {}, reduction)});
    Check("aclnnBinaryCrossEntropyWithLogits", {x, q, Null{}, Null{}, reduction},
          {at::binary_cross_entropy_with_logits(x, q, {}, {}, reduction)});
    Check("aclnnKlDiv", {scores, at::softmax(x, 1), reduction, false},
          {at::kl_div(scores, at::softmax(x, 1), reduction, false)});
  }
  EXPECT_EQ(
      RunOperator("aclnnNLLLoss", {scores, target, weight, 3, -100, at::empty({}), at::empty({})}),
      161002);
}

TEST(RandomNumbers, RepeatForASeedAndAdvanceByTheOffset) {
  const auto draw = [](int64_t seed, int64_t offset) {
    const Tensor out = at::zeros({1000});
    EXPECT_EQ(RunOperator("aclnnInplaceUniform", {out, -1.0, 3.0, seed, offset}), 0)
        << LastMessage();
    return out;
  };
  const Tensor first = draw(5, 0);
  EXPECT_TRUE(SameBits(draw(5, 0), first));
  EXPECT_FALSE(SameBits(draw(6, 0), first));
  EXPECT_TRUE(first.ge(-1).logical_and(first.lt(3)).all().item<bool>());
  EXPECT_NEAR(first.mean().item<float>(), 1.0, 0.2);
  const Tensor later = draw(5, 10);
  EXPECT_TRUE(SameBits(later.slice(0, 0, 990), first.slice(0, 10, 1000)));
  const Tensor out = at::zeros({1000});
  const Tensor seed = at::full({1}, 5, at::kLong), offset = at::full({1}, 7, at::kLong);
  EXPECT_TRUE(Gives("aclnnInplaceUniformTensor", {out, -1.0, 3.0, seed, offset, 3}, {{0, later}}))
      << "the form that reads seed and offset from device memory gives the same numbers";
}

TEST(RandomNumbers, EqualTheLibrarysGenerator) {
  at::Generator generator = at::detail::createCPUGenerator(11);
  const Tensor normal = at::empty({500}).normal_(1.0, 2.0, generator);
  CheckInplace("aclnnInplaceNormal", {at::zeros({500}), 1.0, 2.0, 11, 0}, normal);
  generator = at::detail::createCPUGenerator(11);
  const Tensor integers = at::empty({500}, at::kLong).random_(3, 90, generator);
  CheckInplace("aclnnInplaceRandom", {at::zeros({500}, at::kLong), 3, 90, 11, 0}, integers);
  generator = at::detail::createCPUGenerator(11);
  const Tensor coins = at::empty({500}).bernoulli_(0.3, generator);
  CheckInplace("aclnnInplaceBernoulli", {at::zeros({500}), 0.3, 11, 0}, coins);
  const Tensor permuted = at::empty({50}, at::kLong);
  ASSERT_EQ(RunOperator("aclnnRandperm", {50, 11, 0, permuted}), 0);
  EXPECT_TRUE(SameBits(std::get<0>(permuted.sort()), at::arange(50)));
  const Tensor picks = at::empty({2, 3}, at::kLong);
  ASSERT_EQ(
      RunOperator("aclnnMultinomial", {Random({2, 9}, at::kFloat, 0, 1), 3, false, 11, 0, picks}),
      0);
  EXPECT_TRUE(picks.ge(0).logical_and(picks.lt(9)).all().item<bool>());
  EXPECT_EQ(RunOperator("aclnnInplaceRandom", {integers, 9, 9, 1, 0}), 161002);
}

TEST(Dropout, DividesTheKeptAndClearsTheRest) {
  const Tensor x = Random({1000}, at::kFloat, 1, 2), mask = at::zeros({128}, at::kByte),
               y = at::empty({1000});
  ASSERT_EQ(RunOperator("aclnnDropoutGenMaskV2", {Dims{1000}, 0.25, 3, 0, at::kFloat, mask}), 0)
      << LastMessage();
  ASSERT_EQ(RunOperator("aclnnDropoutDoMask", {x, mask, 0.25, y}), 0) << LastMessage();
  const Tensor kept = y.ne(0);
  EXPECT_NEAR(kept.to(at::kFloat).mean().item<float>(), 0.75, 0.06);
  const auto* bytes = mask.data_ptr<uint8_t>();
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(kept[i].item<bool>(), (bytes[i / 8] >> (i % 8) & 1) != 0);
  EXPECT_TRUE(at::allclose(y.masked_select(kept), (x / 0.75).masked_select(kept), 1e-6));
  const Tensor again = at::zeros({128}, at::kByte);
  ASSERT_EQ(
      RunOperator("aclnnDropoutGenMaskV2Tensor", {Dims{1000}, 0.25, at::full({1}, 3, at::kLong),
                                                  at::zeros({1}, at::kLong), 0, at::kFloat, again}),
      0);
  EXPECT_TRUE(SameBits(again, mask));
}

TEST(Foreach, DoesOneOperatorPerTensor) {
  const std::vector<Tensor> x = {Random({3}), Random({2, 5})},
                            y = {Random({3}, at::kFloat, 1, 2), Random({2, 5}, at::kFloat, 1, 2)};
  const std::vector<Tensor> z = {Random({3}, at::kFloat, 1, 2), Random({2, 5}, at::kFloat, 1, 2)};
  const auto check = [&](const char* name, Args args,
                         const std::function<Tensor(size_t)>& reference) {
    std::vector<Tensor> out = {at::zeros({3}), at::zeros({2, 5})};
    args.push_back(out);
    ASSERT_EQ(RunOperator(name, args), 0) << name << ": " << LastMessage();
    for (size_t k = 0; k < 2; ++k) EXPECT_TRUE(SameBits(out[k], reference(k))) << name << " " << k;
  };
  check("aclnnForeachAddScalarV2", {x, 1.5}, [&](size_t k) { return at::add(x[k], 1.5); });
  check("aclnnForeachAddScalar", {x, at::full({1}, 1.5)},
        [&](size_t k) { return at::add(x[k], 1.5); });
  check("aclnnForeachMulScalarV2", {x, 1.5}, [&](size_t k) { return at::mul(x[k], 1.5); });
  check("aclnnForeachDivScalarV2", {x, 1.5}, [&](size_t k) { return at::div(x[k], 1.5); });
  check("aclnnForeachAddListV2", {x, y, 0.5}, [&](size_t k) { return at::add(x[k], y[k], 0.5); });
  check("aclnnForeachMulList", {x, y}, [&](size_t k) { return at::mul(x[k], y[k]); });
  check("aclnnForeachDivList", {x, y}, [&](size_t k) { return at::div(x[k], y[k]); });
  check("aclnnForeachMaximumList", {x, y}, [&](size_t k) { return at::maximum(x[k], y[k]); });
  check("aclnnForeachSqrt", {y}, [&](size_t k) { return at::sqrt(y[k]); });
  check("aclnnForeachLerpScalar", {x, y, 0.3}, [&](size_t k) { return at::lerp(x[k], y[k], 0.3); });
  check("aclnnForeachDivScalarList", {x, std::vector<at::Scalar>{2.0, 3.0}},
        [&](size_t k) { return at::div(x[k], k == 0 ? 2.0 : 3.0); });
  check("aclnnForeachAddcmulScalarV2", {x, y, z, 0.5},
        [&](size_t k) { return at::addcmul(x[k], y[k], z[k], 0.5); });
  check("aclnnForeachAddcdivScalarV2", {x, y, z, 0.5},
        [&](size_t k) { return at::addcdiv(x[k], y[k], z[k], 0.5); });
  check("aclnnForeachPowScalarV2", {x, 2.0}, [&](size_t k) { return at::pow(x[k], 2.0); });
  EXPECT_EQ(RunOperator("aclnnForeachMulList", {x, std::vector<Tensor>{y[0]}, x}), 161002);
}

// ---- optimizers and fused operators, against their definitions

TEST(Optimizers, FollowTheirDefinitions) {
  const Tensor p = Random({40}), g = Random({40}), m = Random({40}),
               v = Random({40}, at::kFloat, 0.1, 1);
  const Tensor wp = p.to(at::kDouble), wg = g.to(at::kDouble);
  const Tensor wm = m.to(at::kDouble) * 0.9 + wg * 0.1,
               wv = v.to(at::kDouble) * 0.99 + wg * wg * 0.01;
  const Tensor expected =
      wp * (1 - 0.01 * 0.1) -
      0.01 * (wm / (1 - std::pow(0.9, 3))) / ((wv / (1 - std::pow(0.99, 3))).sqrt() + 1e-6);
  ASSERT_EQ(RunOperator("aclnnApplyAdamWV2", {p, m, v, Null{}, g, at::full({1}, 2.0), 0.01, 0.9,
                                              0.99, 0.1, 1e-6, false, false}),
            0)
      << LastMessage();
  EXPECT_TRUE(at::allclose(p.to(at::kDouble), expected, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(m.to(at::kDouble), wm, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(v.to(at::kDouble), wv, 1e-5, 1e-6));

  const Tensor scale = at::full({1}, 8.0), tracker = at::full({1}, 4, at::kInt),
               fine = at::zeros({1}), inf = at::ones({1});
  const Tensor next = at::empty({1}), count = at::empty({1}, at::kInt);
  ASSERT_EQ(RunOperator("aclnnAmpUpdateScale", {scale, tracker, fine, 2.0, 0.5, 5, next, count}),
            0);
  EXPECT_EQ(next.item<float>(), 16);
  EXPECT_EQ(count.item<int>(), 0);
  ASSERT_EQ(RunOperator("aclnnAmpUpdateScale", {scale, tracker, inf, 2.0, 0.5, 5, next, count}), 0);
  EXPECT_EQ(next.item<float>(), 4);

  const Tensor finite = Random({5}), infinite = at::full({2}, INFINITY), found = at::zeros({1}),
               kept = finite * 0.25;
  ASSERT_EQ(RunOperator("aclnnForeachNonFiniteCheckAndUnscale",
                        {std::vector<Tensor>{finite, infinite}, found, at::full({1}, 0.25)}),
            0);
  EXPECT_EQ(found.item<float>(), 1);
  EXPECT_TRUE(SameBits(finite, kept));
}

TEST(Selections, OfLesserOperatorsEqualTheLibrary) {
  const Tensor x = Random({5, 8}), y = Random({5, 8}), g = Random({5, 8});
  Check("aclnnLogAddExp", {x, y}, {at::logaddexp(x, y)});
  Check("aclnnMishBackward", {g, x}, {at::mish_backward(g, x)});
  Check("aclnnHardswishBackward", {g, x}, {at::hardswish_backward(g, x)});
  const Tensor half_g = Random({5, 4});
  Check("aclnnGluBackward", {half_g, x, 1}, {at::glu_backward(half_g, x, 1)});
  const auto [sigmoid, buffer] = at::log_sigmoid_forward(x);
  Check("aclnnLogSigmoidForward", {x}, {sigmoid, buffer});
  Check("aclnnLogSigmoidBackward", {g, x, buffer}, {at::log_sigmoid_backward(g, x, buffer)});
  const Tensor slopes = Random({8});
  Check("aclnnPrelu", {x, slopes}, {at::prelu(x, slopes)});
  const auto [median, where] = at::median(x, 1, false);
  Check("aclnnMedianDim", {x, 1, false}, {median, where});
  const Tensor limits = at::tensor({-1.0f, 0.0f, 1.0f});
  Check("aclnnBucketize", {x, limits, false, true}, {at::bucketize(x, limits, false, true)});
  Check("aclnnGer", {x[0], y[0]}, {at::outer(x[0], y[0])});
  Check("aclnnTrace", {x}, {at::trace(x)});
  const Tensor a = Random({4, 3}), b = Random({4, 3});
  Check("aclnnLinalgCross", {a, b, -1}, {at::linalg_cross(a, b, -1)});
  const Tensor image = Random({2, 3, 9, 11});
  const auto [pooled, positions] = at::adaptive_max_pool2d(image, {4, 5});
  Check("aclnnAdaptiveMaxPool2d", {image, Dims{4, 5}}, {pooled, positions});
  const Tensor gelu = at::gelu(x.narrow(1, 4, 4), "tanh");
  Check("aclnnGeGluV3", {x, 1, 1, false}, {gelu * x.narrow(1, 0, 4), gelu});
  Check("aclnnEqual", {x, x.clone()}, {at::ones({1}, at::kBool)});
  Check("aclnnEqual", {x, a}, {at::zeros({1}, at::kBool)});
}

TEST(Transformers, FollowTheirDefinitions) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    const Tensor x = Random({3, 4, 8}, dtype), other = Random({3, 4, 8}, dtype),
                 gamma = Random({8}, dtype);
    const auto wide = [](const Tensor& t) { return t.to(at::kFloat); };
    const Tensor rstd = wide(x).pow(2).mean({2}, true).add(1e-6).rsqrt();
    Check("aclnnRmsNorm", {x, gamma, 1e-6}, {(wide(x) * rstd * wide(gamma)).to(dtype), rstd});
    const Tensor sum = wide(x) + wide(other),
                 inverse = sum.pow(2).mean({2}, true).add(1e-6).rsqrt();
    Check("aclnnAddRmsNorm", {x, other, gamma, 1e-6},
          {(sum * inverse * wide(gamma)).to(dtype), inverse, sum.to(dtype)});
    const Tensor first = wide(x).narrow(2, 0, 4), second = wide(x).narrow(2, 4, 4);
    Check("aclnnSwiGlu", {x, -1}, {(at::silu(first) * second).to(dtype)});
    const Tensor cosine = Random({4, 8}, dtype), sine = Random({4, 8}, dtype);
    const Tensor halves = at::cat({-second, first}, 2);
    Check("aclnnRotaryPositionEmbedding", {x, cosine, sine, 0},
          {(wide(x) * wide(cosine) + halves * wide(sine)).to(dtype)});
    const Tensor pairs =
        at::stack({-wide(x).slice(2, 1, 8, 2), wide(x).slice(2, 0, 8, 2)}, 3).flatten(2);
    Check("aclnnRotaryPositionEmbedding", {x, cosine, sine, 1},
          {(wide(x) * wide(cosine) + pairs * wide(sine)).to(dtype)});
  }
}

TEST(Transformers, GradientsAgreeWithNumericOnes) {
  const Tensor x = Random({2, 6}, at::kDouble), gamma = Random({6}, at::kDouble),
               dy = Random({2, 6}, at::kDouble);
  const auto forward = [&](const Tensor& input) {
    return input * input.pow(2).mean({1}, true).add(1e-6).rsqrt() * gamma;
  };
  const Tensor rstd = x.pow(2).mean({1}, true).add(1e-6).rsqrt(), dx = at::empty_like(x),
               dgamma = at::empty_like(gamma);
  ASSERT_EQ(RunOperator("aclnnRmsNormGrad", {dy, x, rstd, gamma, dx, dgamma}), 0) << LastMessage();
  const auto swiglu = [](const Tensor& input) {
    return at::silu(input.narrow(1, 0, 3)) * input.narrow(1, 3, 3);
  };
  const Tensor half_dy = Random({2, 3}, at::kDouble), dswiglu = at::empty_like(x);
  ASSERT_EQ(RunOperator("aclnnSwiGluGrad", {half_dy, x, 1, dswiglu}), 0) << LastMessage();
  for (int i = 0; i < 12; ++i) {
    const Tensor step =
        at::zeros({12}, at::kDouble).index_fill(0, at::full({1}, i, at::kLong), 1e-6).view({2, 6});
    const auto slope = [&](const auto& fn, const Tensor& upstream) {
      return ((fn(x + step) - fn(x - step)) * upstream).sum().template item<double>() / 2e-6;
    };
    EXPECT_NEAR(dx.flatten()[i].item<double>(), slope(forward, dy), 1e-6);
    EXPECT_NEAR(dswiglu.flatten()[i].item<double>(), slope(swiglu, half_dy), 1e-6);
  }
  EXPECT_TRUE(at::allclose(dgamma, (dy * x * rstd).sum(0)));
}

}  // namespace
}  // namespace acltape::opapi
