// Losses, random numbers, list operators, optimizers and fused operators.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

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
    }
    const Tensor g = reduction == 0 ? Random({7}) : Random({});
    Check("aclnnNLLLossBackward", {g, scores, target, weight, reduction, -100, shown},
          {at::nll_loss_backward(g, scores, target, weight, reduction, -100, shown)});
    const Tensor x = Random({7, 5}), y = Random({7, 5}), p = at::sigmoid(x), q = at::sigmoid(y);
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

TEST(Losses, OfImagesAndGradientsEqualTheLibrary) {
  const Tensor scores = at::log_softmax(Random({2, 5, 3, 4}), 1), target = Indices({2, 3, 4}, 5);
  const auto [loss, total] = at::nll_loss2d_forward(scores, target, {}, 1, -100);
  Check("aclnnNLLLoss2d", {scores, target, Null{}, 1, -100}, {loss, total});
  const Tensor g = Random({});
  Check("aclnnNLLLoss2dBackward", {g, scores, target, Null{}, 1, -100, total},
        {at::nll_loss2d_backward(g, scores, target, {}, 1, -100, total)});
  const Tensor x = Random({7, 5}), y = Random({7, 5}), p = at::sigmoid(x), q = at::sigmoid(y);
  Check("aclnnBinaryCrossEntropyBackward", {g, p, q, Null{}, 1},
        {at::binary_cross_entropy_backward(g, p, q, {}, 1)});
}

TEST(Losses, OfSequencesEqualTheLibraryWhateverRoomADeviceLeaves) {
  const Tensor scores = at::log_softmax(Random({9, 2, 6}), 2);
  const Tensor targets = at::tensor({1, 2, 2, 5, 3, 4}, at::kLong);
  // The lengths are equal, because after a shorter sequence the library leaves its memory as it
  // was.
  const Dims inputs{9, 9}, lengths{3, 3};
  const auto [loss, alpha] = at::_ctc_loss(scores, targets, inputs, lengths, 0, false);
  Check("aclnnCtcLoss", {scores, targets, inputs, lengths, 0, false}, {loss, alpha});
  const Tensor g = Random({2});
  const Tensor gradient =
      at::_ctc_loss_backward(g, scores, targets, inputs, lengths, loss, alpha, 0);
  const Tensor wide = at::constant_pad_nd(alpha, {0, 8 - alpha.size(2)}, 3);
  for (const Tensor& kept : {alpha, wide}) {
    Check("aclnnCtcLossBackward", {g, scores, targets, inputs, lengths, loss, kept, 0, false},
          {gradient});
  }
  EXPECT_EQ(RunOperator("aclnnCtcLoss", {scores, targets, Dims{10, 7}, lengths, 0, false,
                                         at::empty({2}), at::empty({2, 9, 7})}),
            161002);
}

TEST(RandomNumbers, OfAllFormsRepeat) {
  const Tensor seed = at::full({1}, 11, at::kLong), offset = at::full({1}, 4, at::kLong);
  const auto same = [&](const char* name, Args values, const char* tensor_name, Args tensors) {
    ASSERT_EQ(RunOperator(name, values), 0) << LastMessage();
    EXPECT_TRUE(Gives(tensor_name, tensors, {{0, std::get<Tensor>(values[0])}}));
  };
  same("aclnnInplaceNormal", {at::zeros({99}), 1.0, 2.0, 11, 6}, "aclnnInplaceNormalTensor",
       {at::zeros({99}), 1.0, 2.0, seed, offset, 2});
  same("aclnnInplaceRandom", {at::zeros({99}, at::kLong), 3, 90, 11, 6}, "aclnnInplaceRandomTensor",
       {at::zeros({99}, at::kLong), 3, 90, seed, offset, 2});
  same("aclnnInplaceRandomWithoutFromTo", {at::zeros({99}, at::kInt), 11, 6},
       "aclnnInplaceRandomWithoutFromToTensor", {at::zeros({99}, at::kInt), seed, offset, 2});
  same("aclnnInplaceBernoulli", {at::zeros({99}), 0.3, 11, 6}, "aclnnInplaceBernoulli",
       {at::zeros({99}), 0.3, 11, 6});
  const Tensor drawn = at::zeros({11, 9});
  ASSERT_EQ(RunOperator("aclnnBernoulli", {at::zeros({9, 11}).t(), 0.3, 11, 6, drawn}), 0);
  CheckInplace("aclnnInplaceBernoulli", {at::zeros({11, 9}), 0.3, 11, 6}, drawn);
  EXPECT_GT(drawn.sum().item<float>(), 0);
  EXPECT_EQ(RunOperator("aclnnBernoulli", {at::zeros({9}), 0.3, 11, 6, at::zeros({8})}), 161002);
  EXPECT_EQ(RunOperator("aclnnBernoulli", {at::zeros({9}, at::kInt), 0.3, 11, 6, at::zeros({9})}),
            161002);
  const Tensor coins = at::zeros({99});
  ASSERT_EQ(RunOperator("aclnnInplaceBernoulliTensor", {coins, at::full({99}, 1.0), 11, 6}), 0);
  EXPECT_TRUE(SameBits(coins, at::ones({99})));
  const Tensor normal = at::zeros({99}), again = at::zeros({99});
  ASSERT_EQ(RunOperator("aclnnNormalFloatFloat", {1.0, 2.0, 11, 6, normal}), 0);
  CheckInplace("aclnnInplaceNormal", {again, 1.0, 2.0, 11, 6}, normal);
  const Tensor weights = Random({2, 9}, at::kFloat, 0, 1);
  const Tensor a = at::empty({2, 3}, at::kLong), b = at::empty({2, 3}, at::kLong);
  ASSERT_EQ(RunOperator("aclnnMultinomial", {weights, 3, true, 11, 6, a}), 0);
  ASSERT_EQ(RunOperator("aclnnMultinomialTensor", {weights, 3, true, seed, offset, 2, b}), 0);
  EXPECT_TRUE(SameBits(a, b));
}

// Means and deviations of the elements scale the draws that a seed gives.
TEST(RandomNumbers, OfTensorsOfMeansAndDeviationsScaleOneSequence) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const double error = dtype == at::kFloat ? 1e-6 : dtype == at::kHalf ? 4e-3 : 4e-2;
    const Tensor mean = Random({30, 1}, dtype, -2, 2), deviation = Random({40}, dtype, 0, 3);
    const Tensor standard = at::zeros({30, 40}, dtype);
    ASSERT_EQ(RunOperator("aclnnNormalFloatFloat", {0.0, 1.0, 11, 6, standard}), 0);
    const Tensor z = standard.to(at::kDouble);
    EXPECT_NEAR(z.mean().item<double>(), 0, 0.1);
    EXPECT_NEAR(z.std().item<double>(), 1, 0.1);
    const auto scaled = [&](const char* name, const Arg& of_mean, const Arg& of_deviation,
                            int64_t seed, const Tensor& expected) {
      const Tensor out = Unwritten(standard);
      EXPECT_EQ(RunOperator(name, {of_mean, of_deviation, seed, 6, out}), 0) << LastMessage();
      EXPECT_EQ(at::allclose(out.to(at::kDouble), expected, error, error), seed == 11) << name;
      return out;
    };
    const Tensor m = mean.to(at::kDouble), d = deviation.to(at::kDouble);
    for (int64_t seed : {11, 12}) {
      const Tensor both = scaled("aclnnNormalTensorTensor", mean, deviation, seed, m + d * z);
      EXPECT_TRUE(
          SameBits(scaled("aclnnNormalTensorTensor", mean, deviation, seed, m + d * z), both));
      scaled("aclnnNormalTensorFloat", mean, 1.5, seed, m + 1.5 * z);
      scaled("aclnnNormalFloatTensor", -0.5, deviation, seed, d * z - 0.5);
    }
  }
}

TEST(RandomNumbers, RepeatForASeedAndAnOffset) {
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
  EXPECT_FALSE(SameBits(later.slice(0, 0, 990), first.slice(0, 10, 1000)));
  const Tensor out = at::zeros({1000});
  const Tensor seed = at::full({1}, 5, at::kLong), offset = at::full({1}, 7, at::kLong);
  EXPECT_TRUE(Gives("aclnnInplaceUniformTensor", {out, -1.0, 3.0, seed, offset, 3}, {{0, later}}))
      << "the form that reads seed and offset from device memory gives the same numbers";
}

TEST(RandomNumbers, PermuteAllPlacesAndPickOnesThatAreThere) {
  const Tensor permuted = at::empty({50}, at::kLong);
  ASSERT_EQ(RunOperator("aclnnRandperm", {50, 11, 0, permuted}), 0);
  EXPECT_TRUE(SameBits(std::get<0>(permuted.sort()), at::arange(50)));
  const Tensor picks = at::empty({2, 3}, at::kLong);
  ASSERT_EQ(
      RunOperator("aclnnMultinomial", {Random({2, 9}, at::kFloat, 0, 1), 3, false, 11, 0, picks}),
      0);
  EXPECT_TRUE(picks.ge(0).logical_and(picks.lt(9)).all().item<bool>());
  EXPECT_EQ(RunOperator("aclnnInplaceRandom", {at::empty({5}, at::kLong), 9, 9, 1, 0}), 161002);
}

// In training each negative number has a slope of its own between the bounds.
TEST(RandomNumbers, SlopesOfRReluLieBetweenTheirBounds) {
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const Tensor x = Random({4000}, dtype, -2, 2), slopes = at::zeros_like(x);
    const Tensor y = at::zeros_like(x), negative = x.le(0);
    ASSERT_EQ(RunOperator("aclnnRReluWithNoise", {x, slopes, 0.25, 0.75, true, 7, 4, y}), 0)
        << LastMessage();
    const Tensor wide = slopes.to(at::kDouble), drawn = wide.masked_select(negative);
    EXPECT_TRUE(at::allclose(y.to(at::kDouble), x.to(at::kDouble) * wide, 1e-2, 1e-2));
    EXPECT_TRUE(wide.masked_select(negative.logical_not()).eq(1).all().item<bool>());
    EXPECT_GE(drawn.min().item<double>(), 0.25);
    EXPECT_LE(drawn.max().item<double>(), 0.75);
    EXPECT_NEAR(drawn.mean().item<double>(), 0.5, 0.02);
    EXPECT_NEAR(drawn.std().item<double>(), 0.144, 0.02);
    const Tensor in_place = x.clone(), noise = at::zeros_like(x);
    const auto again = [&](int64_t seed) {
      return RunOperator("aclnnInplaceRReluWithNoise",
                         {in_place, noise, 0.25, 0.75, true, seed, 4});
    };
    ASSERT_EQ(again(7), 0) << LastMessage();
    EXPECT_TRUE(SameBits(in_place, y));
    EXPECT_TRUE(SameBits(noise, slopes));
    in_place.copy_(x);
    ASSERT_EQ(again(8), 0) << LastMessage();
    EXPECT_FALSE(SameBits(noise, slopes));
  }
  const Tensor x = at::ones({2});
  EXPECT_EQ(RunOperator("aclnnInplaceRReluWithNoise", {x, at::ones({2}), 0.75, 0.25, true, 7, 4}),
            161002);
}

TEST(RandomNumbers, CoinsOfATensorOfProbabilitiesHaveThem) {
  const Tensor coins = at::zeros({2, 4000});
  const Tensor probabilities = at::tensor({0.125, 0.625}).to(at::kFloat).view({2, 1});
  ASSERT_EQ(RunOperator("aclnnBernoulliTensor", {at::zeros({2, 4000}), probabilities, 7, 4, coins}),
            0)
      << LastMessage();
  EXPECT_TRUE(coins.eq(0).logical_or(coins.eq(1)).all().item<bool>());
  EXPECT_TRUE(at::allclose(coins.mean(1), probabilities.view({2}), 0, 0.03));
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
  const Tensor first = at::zeros({128}, at::kByte);
  ASSERT_EQ(RunOperator("aclnnDropoutGenMask", {Dims{1000}, 0.25, 3, 0, first}), 0);
  EXPECT_TRUE(SameBits(first, mask));
  const Tensor again = at::zeros({128}, at::kByte);
  ASSERT_EQ(
      RunOperator("aclnnDropoutGenMaskV2Tensor", {Dims{1000}, 0.25, at::full({1}, 3, at::kLong),
                                                  at::zeros({1}, at::kLong), 0, at::kFloat, again}),
      0);
  EXPECT_TRUE(SameBits(again, mask));
}

TEST(Dropout, InOneOperatorGivesWhatTheTwoGive) {
  for (const at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const Tensor x = Random({10, 100}, dtype, 1, 2), mask = at::zeros({128}, at::kByte);
    const Tensor y = at::empty_like(x), both = at::ones({128}, at::kByte), out = at::empty_like(x);
    ASSERT_EQ(RunOperator("aclnnDropoutGenMaskV2", {Dims{10, 100}, 0.25, 3, 1, dtype, mask}), 0);
    ASSERT_EQ(RunOperator("aclnnDropoutDoMask", {x, mask, 0.25, y}), 0) << LastMessage();
    ASSERT_EQ(RunOperator("aclnnDropoutV3", {x, Null{}, 0.25, 3, 1, out, both}), 0)
        << LastMessage();
    EXPECT_TRUE(SameBits(both, mask));
    EXPECT_TRUE(SameBits(out, y));
    const Tensor gradient = at::empty_like(x);
    ASSERT_EQ(RunOperator("aclnnDropoutV3Grad", {x, both, 1 / 0.75, gradient}), 0) << LastMessage();
    EXPECT_TRUE(SameBits(gradient, y));
  }
}

TEST(Dropout, InOneOperatorKeepsAllOrNothing) {
  const Tensor x = Random({3, 5}), out = at::empty_like(x), mask = at::zeros({16}, at::kByte);
  ASSERT_EQ(RunOperator("aclnnDropoutV3", {x, Null{}, 0.0, 3, 0, out, mask}), 0) << LastMessage();
  EXPECT_TRUE(SameBits(out, x));
  ASSERT_EQ(RunOperator("aclnnDropoutV3", {x, Null{}, 1.0, 3, 0, out, mask}), 0) << LastMessage();
  EXPECT_TRUE(SameBits(out, at::zeros_like(x)));
  EXPECT_EQ(RunOperator("aclnnDropoutV3", {x, Null{}, 1.5, 3, 0, out, mask}), 161002);
  EXPECT_EQ(RunOperator("aclnnDropoutV3", {x, x, 0.5, 3, 0, out, mask}), 161002);
  EXPECT_EQ(LastMessage(),
            "aclnnDropoutV3: optionalNoiseShape is given; the soft device draws for each element.");
}

TEST(RandomNumbers, ExponentialNumbersHaveTheirMean) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const Tensor x = at::zeros({4000}, dtype), again = at::zeros({4000}, dtype);
    ASSERT_EQ(RunOperator("aclnnSimThreadExponential", {x, 4000, 2.0, 7, 0}), 0) << LastMessage();
    ASSERT_EQ(RunOperator("aclnnSimThreadExponential", {again, 4000, 2.0, 7, 0}), 0);
    EXPECT_TRUE(SameBits(again, x));
    EXPECT_NEAR(x.to(at::kDouble).mean().item<double>(), 0.5, 0.03);
    EXPECT_NEAR(x.to(at::kDouble).gt(0.5).to(at::kDouble).mean().item<double>(), 0.368, 0.03);
    EXPECT_GE(x.to(at::kDouble).min().item<double>(), 0);
    ASSERT_EQ(RunOperator("aclnnSimThreadExponential", {again, 4000, 2.0, 8, 0}), 0);
    EXPECT_FALSE(SameBits(again, x));
  }
  const Tensor x = at::zeros({4});
  EXPECT_EQ(RunOperator("aclnnSimThreadExponential", {x, 3, 2.0, 7, 0}), 161002);
  EXPECT_EQ(RunOperator("aclnnSimThreadExponential", {x, 4, 0.0, 7, 0}), 161002);
}

TEST(Foreach, FactorsOfListsMayBeFractions) {
  const std::vector<Tensor> x = {Random({3}), Random({2, 5})}, y = {Random({3}), Random({2, 5})};
  std::vector<Tensor> sum = {at::zeros({3}), at::zeros({2, 5})};
  ASSERT_EQ(RunOperator("aclnnForeachAddListV2", {x, y, 0.5, sum}), 0) << LastMessage();
  for (size_t k = 0; k < 2; ++k) EXPECT_TRUE(SameBits(sum[k], at::add(x[k], y[k], 0.5))) << k;
  ASSERT_EQ(RunOperator("aclnnForeachSubListV2", {x, y, 0.5, sum}), 0) << LastMessage();
  for (size_t k = 0; k < 2; ++k) EXPECT_TRUE(SameBits(sum[k], at::sub(x[k], y[k], 0.5))) << k;
  EXPECT_EQ(RunOperator("aclnnForeachMulList", {x, std::vector<Tensor>{y[0]}, x}), kReject);
}

TEST(Foreach, ANormMayHaveTheShapeOfOneElement) {
  const std::vector<Tensor> x = {Random({3}), Random({2, 5})};
  const std::vector<Tensor> norms = {at::zeros({}), at::zeros({1})};
  ASSERT_EQ(RunOperator("aclnnForeachNorm", {x, 2.0, norms}), 0) << LastMessage();
  for (size_t k = 0; k < 2; ++k) {
    EXPECT_TRUE(SameBits(norms[k].reshape({}), at::linalg_vector_norm(x[k], 2.0)));
  }
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

TEST(Activations, WithASecondResultEqualTheLibrary) {
  const Tensor x = Random({5, 8});
  const auto [sigmoid, buffer] = at::log_sigmoid_forward(x);
  Check("aclnnLogSigmoidForward", {x}, {sigmoid, buffer});
  const Tensor gelu = at::gelu(x.narrow(1, 4, 4), "tanh");
  Check("aclnnGeGluV3", {x, 1, 1, false}, {gelu * x.narrow(1, 0, 4), gelu});
}

TEST(Equal, IsFalseForOtherShapes) {
  const Tensor x = Random({5, 8});
  Check("aclnnEqual", {x, x.clone()}, {at::ones({1}, at::kBool)});
  Check("aclnnEqual", {x, Random({4, 3})}, {at::zeros({1}, at::kBool)});
}

TEST(Optimizers, FusedAdamWStepsEveryParameterUnlessAFlagIsSet) {
  const double lr = 0.01, decay = 0.1, eps = 1e-6;
  for (const bool stopped : {false, true}) {
    std::vector<Tensor> params, grads, means, squares, steps, expected;
    for (const int64_t size : {40, 3}) {
      const Tensor p = Random({size}), g = Random({size}), m = Random({size}),
                   v = Random({size}, at::kFloat, 0.1, 1);
      const Tensor mean = m * 0.9 + g * 0.1, square = v * 0.99 + g * g * 0.01;
      const Tensor stepped =
          p * (1 - lr * decay) -
          lr * (mean / (1 - std::pow(0.9, 3))) / ((square / (1 - std::pow(0.99, 3))).sqrt() + eps);
      expected.push_back(stopped ? p.clone() : stepped);
      params.push_back(p);
      grads.push_back(g);
      means.push_back(m);
      squares.push_back(v);
      steps.push_back(at::full({}, 3.0));
    }
    ASSERT_EQ(RunOperator("aclnnFusedAdamw", {params, grads, means, squares, Null{}, steps, Null{},
                                              at::full({}, stopped ? 1.0 : 0.0), lr, 0.9, 0.99,
                                              decay, eps, false, false}),
              0)
        << LastMessage();
    for (size_t k = 0; k < params.size(); ++k) {
      EXPECT_TRUE(at::allclose(params[k], expected[k], 1e-5, 1e-6)) << k << " stopped " << stopped;
    }
  }
}

TEST(Optimizers, FusedAdamWDividesTheGradientsByTheirScale) {
  const Tensor gradient = Random({40}), given = gradient.clone();
  const auto stepped = [&](const Tensor& by, const Tensor& g) {
    const Tensor p = at::ones({40}), m = at::zeros({40}), v = at::zeros({40});
    EXPECT_EQ(RunOperator("aclnnFusedAdamw",
                          {std::vector<Tensor>{p}, std::vector<Tensor>{g}, std::vector<Tensor>{m},
                           std::vector<Tensor>{v}, Null{}, std::vector<Tensor>{at::ones({})},
                           by.defined() ? Arg(by) : Arg(Null{}), Null{}, 0.01, 0.9, 0.99, 0.1, 0.5,
                           false, false}),
              0)
        << LastMessage();
    return p;
  };
  EXPECT_TRUE(SameBits(stepped(at::full({1}, 4.0), gradient), stepped(Tensor(), gradient / 4)));
  EXPECT_TRUE(SameBits(gradient, given)) << "the gradient is an input";
}

TEST(Optimizers, FusedSgdStepsLikeItsDefinition) {
  const Tensor p = Random({40}), g = Random({40}), buffer = at::zeros({40}), q = p.clone(),
               b = buffer.clone();
  for (bool first : {true, false}) {
    ASSERT_EQ(RunOperator("aclnnFusedSgd", {std::vector<Tensor>{p}, std::vector<Tensor>{g},
                                            std::vector<Tensor>{buffer}, Null{}, 0.125, 0.5, 0.25,
                                            0.0, false, false, first}),
              0)
        << LastMessage();
    const Tensor decayed = g.add(q, 0.125);
    b.copy_(first ? decayed : b.mul(0.5).add(decayed));
    q.copy_(q.add(b, -0.25));
    EXPECT_TRUE(SameBits(p, q));
    EXPECT_TRUE(SameBits(buffer, b));
  }
}

TEST(Transformers, FollowTheirDefinitions) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    const Tensor x = Random({3, 4, 8}, dtype), other = Random({3, 4, 8}, dtype),
                 gamma = Random({8}, dtype);
    const auto wide = [](const Tensor& t) { return t.to(at::kFloat); };
    const Tensor sum = wide(x) + wide(other),
                 inverse = sum.pow(2).mean({2}, true).add(1e-6).rsqrt();
    Check("aclnnAddRmsNorm", {x, other, gamma, 1e-6},
          {(sum * inverse * wide(gamma)).to(dtype), inverse, sum.to(dtype)});
    const Tensor first = wide(x).narrow(2, 0, 4), second = wide(x).narrow(2, 4, 4);
    const Tensor cosine = Random({4, 8}, dtype), sine = Random({4, 8}, dtype);
    const Tensor halves = at::cat({-second, first}, 2);
    Check("aclnnRotaryPositionEmbedding", {x, cosine, sine, 0},
          {(wide(x) * wide(cosine) + halves * wide(sine)).to(dtype)});
    const Tensor pairs =
        at::stack({-wide(x).slice(2, 1, 8, 2), wide(x).slice(2, 0, 8, 2)}, 3).flatten(2);
    Check("aclnnRotaryPositionEmbedding", {x, cosine, sine, 1},
          {(wide(x) * wide(cosine) + pairs * wide(sine)).to(dtype)});
    // Each half by halves of its own.
    const auto quarter = [&](int64_t i) { return wide(x).narrow(2, 2 * i, 2); };
    const Tensor quarters = at::cat({-quarter(1), quarter(0), -quarter(3), quarter(2)}, 2);
    Check("aclnnRotaryPositionEmbedding", {x, cosine, sine, 2},
          {(wide(x) * wide(cosine) + quarters * wide(sine)).to(dtype)});
    // Pairs that the result has as halves.
    const Tensor even = wide(x).slice(2, 0, 8, 2), odd = wide(x).slice(2, 1, 8, 2);
    Check("aclnnRotaryPositionEmbedding", {x, cosine, sine, 3},
          {(at::cat({even, odd}, 2) * wide(cosine) + at::cat({-odd, even}, 2) * wide(sine))
               .to(dtype)});
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
