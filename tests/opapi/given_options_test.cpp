// Options that programs seldom give, each against the library's own operator or a formula in double
// precision: what stays at its default in all tests may be wrong without a word (options_test.cpp).
#include <cmath>
#include <vector>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Lists = std::vector<Tensor>;

void ExpectClose(const Tensor& actual, const Tensor& expected, double relative,
                 const std::string& what) {
  const Tensor a = actual.to(at::kDouble), b = expected.to(at::kDouble);
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const double magnitude = std::max(b.abs().max().item<double>(), 1e-6);
  EXPECT_LE((a - b).abs().max().item<double>(), relative * magnitude) << what;
}

// The gradient of BCE of logits by its definition, before a reduction.
Tensor LogitsGradient(const Tensor& x, const Tensor& target, const Tensor& weight,
                      const Tensor& positive) {
  const Tensor wide = x.to(at::kDouble).detach().requires_grad_(true);
  const Tensor loss =
      weight * (positive * target * at::softplus(-wide) + (1 - target) * at::softplus(wide));
  loss.sum().backward();
  return wide.grad();
}

TEST(GivenOptions, BinaryCrossEntropiesTakeWeights) {
  const at::AutoGradMode enabled(true);
  const Tensor chance = Random({4, 6}, at::kFloat, 0.1, 0.9);
  const Tensor target = Random({4, 6}, at::kFloat, 0, 1), x = Random({4, 6});
  const Tensor weight = Random({6}, at::kFloat, 0.5, 2), positive = Random({6}, at::kFloat, 0.5, 3);
  for (const int reduction : {0, 1, 2}) {
    const auto reduced = [&](const Tensor& each) {
      return reduction == 0 ? each : reduction == 1 ? each.mean() : each.sum();
    };
    const Tensor wide = chance.to(at::kDouble), wanted = target.to(at::kDouble);
    const Tensor each = -weight * (wanted * wide.log() + (1 - wanted) * (1 - wide).log());
    const Tensor loss = at::empty(reduced(each).sizes());
    ASSERT_EQ(RunOperator("aclnnBinaryCrossEntropy", {chance, target, weight, reduction, loss}), 0);
    ExpectClose(loss, reduced(each), 1e-5, "loss");

    const Tensor of_logits = weight * (positive * wanted * at::softplus(-x.to(at::kDouble)) +
                                       (1 - wanted) * at::softplus(x.to(at::kDouble)));
    ASSERT_EQ(RunOperator("aclnnBinaryCrossEntropyWithLogits",
                          {x, target, weight, positive, reduction, loss}),
              0);
    ExpectClose(loss, reduced(of_logits), 1e-5, "loss of logits");

    const Tensor gradient = Random(loss.sizes(), at::kFloat, 0.5, 2), out = at::empty({4, 6});
    const double count = reduction == 1 ? 24 : 1;
    ASSERT_EQ(RunOperator("aclnnBinaryCrossEntropyBackward",
                          {gradient, chance, target, weight, reduction, out}),
              0);
    const Tensor slope = weight * (wide - wanted) / (wide * (1 - wide));
    ExpectClose(out, slope * gradient / count, 1e-5, "gradient");
    if (reduction == 0) {
      ASSERT_EQ(RunOperator("aclnnBinaryCrossEntropyWithLogitsBackward",
                            {gradient, x, target, weight, positive, reduction, out}),
                0);
    } else {
      ASSERT_EQ(RunOperator("aclnnBinaryCrossEntropyWithLogitsBackward",
                            {gradient.expand({4, 6}).contiguous(), x, target, weight, positive,
                             reduction, out}),
                0);
    }
    ExpectClose(out,
                LogitsGradient(x, wanted, weight.to(at::kDouble), positive.to(at::kDouble)) *
                    gradient / count,
                1e-5, "gradient of logits");
  }
}

// As in the library, the gradients alone are zero: it is the caller who replaces infinite losses.
TEST(GivenOptions, GradientsOfTargetsThatDoNotFitAreZero) {
  const Tensor scores = at::log_softmax(Random({3, 2, 5}), 2);
  const Tensor targets = at::tensor(std::vector<int64_t>{1, 1, 1, 1, 2, 3}, at::kLong).view({2, 3});
  const std::vector<int64_t> inputs = {3, 3}, lengths = {3, 1};  // 1, 1, 1 needs five steps
  const auto [loss, alpha] = at::_ctc_loss(scores, targets, inputs, lengths, 0, true);
  const Tensor found = at::empty(loss.sizes()), kept = Unwritten(alpha);
  ASSERT_EQ(RunOperator("aclnnCtcLoss", {scores, targets, inputs, lengths, 0, true, found, kept}),
            0);
  EXPECT_TRUE(std::isinf(loss[0].item<float>())) << loss;
  EXPECT_TRUE(SameBits(found, loss));
  const Tensor gradient = at::ones({2}), out = at::empty(scores.sizes());
  ASSERT_EQ(RunOperator("aclnnCtcLossBackward",
                        {gradient, scores, targets, inputs, lengths, loss, alpha, 0, true, out}),
            0);
  EXPECT_TRUE(out.select(1, 0).eq(0).all().item<bool>()) << out;
  EXPECT_TRUE(SameBits(out, at::_ctc_loss_backward(gradient, scores, targets, inputs, lengths, loss,
                                                   alpha, 0, true)));
}

TEST(GivenOptions, AveragesCountTheirPadding) {
  const Tensor x = Random({2, 3, 7, 7}), g = Random({2, 3, 4, 4});
  const std::vector<int64_t> kernel = {3, 3}, stride = {2, 2}, padding = {1, 1};
  Check("aclnnAvgPool2dBackward", {g, x, kernel, stride, padding, false, true, 0, 0},
        {at::avg_pool2d_backward(g, x, kernel, stride, padding, false, true, c10::nullopt)});
}

TEST(GivenOptions, NormsOfABatchLearnFromTheRunningStatistics) {
  const Tensor g = Random({4, 3, 5}), x = Random({4, 3, 5}), weight = Random({3});
  const Tensor mean = Random({3}), variance = Random({3}, at::kFloat, 0.5, 2);
  const auto per_channel = [](const Tensor& values) {
    return values.to(at::kDouble).view({1, 3, 1});
  };
  const Tensor dx = at::empty({4, 3, 5}), dw = at::empty({3}), db = at::empty({3});
  ASSERT_EQ(
      RunOperator("aclnnBatchNormBackward", {g, x, weight, mean, variance, Null{}, Null{}, false,
                                             1e-5, std::vector<int64_t>{1, 1, 1}, dx, dw, db}),
      0)
      << LastMessage();
  const Tensor inverse = 1 / (per_channel(variance) + 1e-5).sqrt();
  const Tensor wide = g.to(at::kDouble);
  const Tensor normal = (x.to(at::kDouble) - per_channel(mean)) * inverse;
  ExpectClose(dx, wide * per_channel(weight) * inverse, 1e-5, "input");
  ExpectClose(dw, (wide * normal).sum(at::IntArrayRef({0, 2})), 1e-5, "weight");
  ExpectClose(db, wide.sum(at::IntArrayRef({0, 2})), 1e-5, "bias");
}

// One step of Adam by its definition (Loshchilov and Hutter, ICLR 2019; amsgrad: Reddi et al., ICLR
// 2018).
struct AdamStep {
  Tensor p, m, v, most;
  AdamStep(const Tensor& p0, const Tensor& m0, const Tensor& v0, const Tensor& most0,
           const Tensor& g0, double t, bool amsgrad, bool maximize) {
    const Tensor g = maximize ? -g0.to(at::kDouble) : g0.to(at::kDouble);
    m = m0.to(at::kDouble) * 0.9 + g * 0.1;
    v = v0.to(at::kDouble) * 0.99 + g * g * 0.01;
    most = at::maximum(most0.to(at::kDouble), v);
    const Tensor second = (amsgrad ? most : v) / (1 - std::pow(0.99, t));
    p = p0.to(at::kDouble) * (1 - 0.01 * 0.1) -
        0.01 * (m / (1 - std::pow(0.9, t))) / (second.sqrt() + 1e-6);
  }
};

TEST(GivenOptions, StepsOfAdamKeepTheGreatestSquareAndGoUpwards) {
  for (const bool amsgrad : {false, true}) {
    for (const bool maximize : {false, true}) {
      for (const bool fused : {false, true}) {
        const Tensor p = Random({40}), g = Random({40}), m = Random({40});
        const Tensor v = Random({40}, at::kFloat, 0.1, 1), most = Random({40}, at::kFloat, 0.1, 1);
        const AdamStep expected(p, m, v, most, g, 3, amsgrad, maximize);
        const Tensor before = most.clone();
        const Args args =
            fused ? Args{Lists{p}, Lists{g},    Lists{m},
                         Lists{v}, Lists{most}, Lists{at::full({}, 3.0)},
                         Null{},   Null{},      0.01,
                         0.9,      0.99,        0.1,
                         1e-6,     amsgrad,     maximize}
                  : Args{p,    m,   v,    most,    g,       at::full({1}, 2.0), 0.01, 0.9,
                         0.99, 0.1, 1e-6, amsgrad, maximize};
        ASSERT_EQ(RunOperator(fused ? "aclnnFusedAdamw" : "aclnnApplyAdamWV2", args), 0)
            << LastMessage();
        const std::string what = std::string("amsgrad ") + (amsgrad ? "1" : "0") + " maximize " +
                                 (maximize ? "1" : "0") + " fused " + (fused ? "1" : "0");
        ExpectClose(p, expected.p, 1e-5, what);
        ExpectClose(m, expected.m, 1e-5, what);
        ExpectClose(v, expected.v, 1e-5, what);
        ExpectClose(most, amsgrad ? expected.most : before, 1e-5, what);
      }
    }
  }
}

TEST(GivenOptions, StepsOfGradientDescentLookAhead) {
  for (const bool nesterov : {false, true}) {
    for (const bool maximize : {false, true}) {
      for (const double by : {1.0, 4.0}) {
        const Tensor p = Random({40}), g = Random({40}), buffer = Random({40});
        const Tensor wide = p.to(at::kDouble);
        Tensor slope = g.to(at::kDouble) / by;
        if (maximize) slope = -slope;
        slope = slope + 0.1 * wide;
        const Tensor moved = 0.9 * buffer.to(at::kDouble) + 0.75 * slope;
        const Tensor expected = wide - 0.01 * (nesterov ? slope + 0.9 * moved : moved);
        ASSERT_EQ(RunOperator("aclnnFusedSgd", {Lists{p}, Lists{g}, Lists{buffer},
                                                by == 1 ? Arg(Null{}) : Arg(at::full({1}, by)), 0.1,
                                                0.9, 0.01, 0.25, nesterov, maximize, false}),
                  0)
            << LastMessage();
        ExpectClose(p, expected, 1e-5, "parameter");
        ExpectClose(buffer, moved, 1e-5, "momentum");
      }
    }
  }
}

TEST(GivenOptions, DrawsWithoutReplacementAreDistinct) {
  const Tensor weights = at::ones({50, 8}), out = at::empty({50, 5}, at::kLong);
  const Tensor seed = at::tensor(std::vector<int64_t>{7}, at::kLong);
  const Tensor offset = at::zeros({1}, at::kLong);
  ASSERT_EQ(RunOperator("aclnnMultinomialTensor", {weights, 5, false, seed, offset, 0, out}), 0)
      << LastMessage();
  const Tensor sorted = std::get<0>(out.sort(1));
  EXPECT_TRUE(sorted.narrow(1, 1, 4).gt(sorted.narrow(1, 0, 4)).all().item<bool>()) << out;
  EXPECT_TRUE(out.ge(0).logical_and(out.lt(8)).all().item<bool>());
  EXPECT_FALSE(at::equal(out[0], out[1]) && at::equal(out[1], out[2]));
}

// The operators write what is asked for alone; the values are the same, in an order of their own.
TEST(GivenOptions, DistinctValuesComeWithoutTheirPlaces) {
  const Tensor self = Indices({40}, 9), runs = std::get<0>(self.sort());
  const Tensor expected = std::get<0>(at::_unique(self, true, false));
  const int64_t count = expected.numel();
  for (const char* name :
       {"aclnnUnique", "aclnnUnique2", "aclnnUniqueDim", "aclnnUniqueConsecutive"}) {
    const bool consecutive = std::string(name) == "aclnnUniqueConsecutive";
    const Tensor values = at::empty({40}, at::kLong), places = Unwritten(values);
    const Tensor counts = Unwritten(values), before = places.clone();
    Args args = {consecutive ? runs : self, false, false};
    if (std::string(name) == "aclnnUnique2") args.push_back(false);
    if (std::string(name) == "aclnnUniqueDim" || consecutive) args.push_back(int64_t{0});
    args.insert(args.end(), {values, places});
    if (std::string(name) != "aclnnUnique") args.push_back(counts);
    ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
    EXPECT_TRUE(SameBits(std::get<0>(values.narrow(0, 0, count).sort()), expected)) << name;
    if (std::string(name) == "aclnnUniqueDim") continue;  // it gives what has room
    EXPECT_TRUE(SameBits(places, before)) << name;
    EXPECT_TRUE(SameBits(counts, before)) << name;
  }
}

TEST(GivenOptions, ParametersOfProductsHoldOffsets) {
  const Tensor scale = Random({4}, at::kFloat, 0.1, 2);
  const Tensor offset = at::tensor(std::vector<float>{-256, -1, 0, 255});
  for (const int64_t mode : {0, 1}) {
    const Tensor out = at::empty({4}, at::kLong);
    ASSERT_EQ(RunOperator("aclnnTransQuantParamV3", {scale, offset, mode, out}), 0);
    for (int64_t i = 0; i < 4; ++i) {
      const auto bits = static_cast<uint64_t>(out[i].item<int64_t>());
      auto nine = static_cast<int>(bits >> 37 & 0x1FF);
      if (nine > 255) nine -= 512;
      EXPECT_EQ(nine, offset[i].item<float>()) << i;
      EXPECT_EQ(bits >> 46, 1u) << i;
      const auto upper = static_cast<uint32_t>(bits);
      float kept = 0;
      std::memcpy(&kept, &upper, sizeof(kept));
      EXPECT_NEAR(kept, scale[i].item<float>(), scale[i].item<float>() / 1000) << i;
    }
  }
}

TEST(GivenOptions, ExpertsOfFinishedTokensAreNone) {
  const Tensor x = Random({3, 6}),
               finished = at::tensor(std::vector<int64_t>{0, 1, 0}).to(at::kBool);
  const Tensor y = at::empty({3, 2}), experts = at::empty({3, 2}, at::kInt);
  const Tensor softmax = at::empty({3, 6});
  ASSERT_EQ(RunOperator("aclnnMoeGatingTopKSoftmaxV2",
                        {x, finished, int64_t{2}, int64_t{0}, true, y, experts, softmax}),
            0)
      << LastMessage();
  const Tensor chances = at::softmax(x.to(at::kDouble), 1);
  ExpectClose(softmax, chances, 1e-5, "softmax");
  const auto [best, chosen] = chances.topk(2, 1);
  ExpectClose(y, best, 1e-5, "weights");
  for (int64_t token = 0; token < 3; ++token) {
    for (int64_t k = 0; k < 2; ++k) {
      // The number of the experts stands for none.
      EXPECT_EQ(experts[token][k].item<int64_t>(),
                token == 1 ? 6 : chosen[token][k].item<int64_t>())
          << token << k;
    }
  }
}

TEST(GivenOptions, ResultsOfExpertsMeetTwoSharedOnes) {
  const Tensor rows = Random({8, 5}), scales = Random({4, 2});
  const Tensor first = Random({4, 5}), second = Random({4, 5});
  const Tensor where = at::arange(8, at::TensorOptions(at::kInt));
  const Tensor expected = (rows.view({4, 2, 5}) * scales.unsqueeze(-1)).sum(1) + first + second;
  for (const int version : {2, 3, 4}) {
    const Tensor out = at::empty({4, 5});
    Args args = {rows, where, first, second, Null{}, scales, Null{}};
    if (version > 2) args.insert(args.end(), 4, Null{});
    args.push_back(int64_t{2});
    if (version > 2) args.insert(args.end(), 3, Null{});
    if (version == 4) args.push_back(int64_t{2});
    args.push_back(out);
    const std::string name = "aclnnMoeFinalizeRoutingV" + std::to_string(version);
    ASSERT_EQ(RunOperator(name.c_str(), args), 0) << LastMessage();
    ExpectClose(out, expected, 1e-5, name);
  }
}

// The shape serves padded tokens alone.
TEST(GivenOptions, TokensComeBackWithAShapeThatIsNotNeeded) {
  const Tensor permuted = Random({8, 5}), probs = Random({4, 2}), gradient = Random({4, 5});
  const Tensor where = at::tensor(std::vector<int64_t>{5, 0, 3, 6, 1, 4, 7, 2}).to(at::kInt);
  const std::vector<int64_t> shape = {4, 5};
  Tensor found[2], slopes[2];
  for (const bool given : {false, true}) {
    const Arg restore = given ? Arg(shape) : Arg(Null{});
    const Tensor out = found[given] = at::empty({4, 5});
    ASSERT_EQ(RunOperator("aclnnMoeTokenUnpermute", {permuted, where, probs, false, restore, out}),
              0)
        << LastMessage();
    const Tensor slope = slopes[given] = at::empty({8, 5});
    ASSERT_EQ(RunOperator("aclnnMoeTokenUnpermuteGrad", {permuted, gradient, where, probs, false,
                                                         restore, slope, at::empty({4, 2})}),
              0)
        << LastMessage();
  }
  const Tensor rows = permuted.index_select(0, where.to(at::kLong)).view({4, 2, 5});
  ExpectClose(found[0], (rows * probs.unsqueeze(-1)).sum(1), 1e-5, "tokens");
  EXPECT_TRUE(SameBits(found[1], found[0]));
  EXPECT_TRUE(SameBits(slopes[1], slopes[0]));
}

TEST(GivenOptions, GatesGiveNoScoresThatNobodyAskedFor) {
  const Tensor x = Random({5, 8}), all = Unwritten(at::empty({5, 8})), before = all.clone();
  const Tensor y = at::empty({5, 2}), index = at::empty({5, 2}, at::kInt);
  const auto [best, chosen] = at::softmax(x.to(at::kDouble), 1).topk(2, 1);
  for (const bool renorm : {false, true}) {
    ASSERT_EQ(RunOperator("aclnnMoeGatingTopK",
                          {x, Null{}, int64_t{2}, int64_t{1}, int64_t{1}, int64_t{0},
                           int64_t{renorm}, int64_t{0}, false, 1.0, 1e-20, y, index, all}),
              0)
        << LastMessage();
    EXPECT_TRUE(SameBits(index, chosen.to(at::kInt)));
    ExpectClose(y, renorm ? best / best.sum(1, true) : best, 1e-5, "weights");
    EXPECT_TRUE(SameBits(all, before));
  }
}

TEST(GivenOptions, LossesOfClassesAreReducedInEachWay) {
  for (const bool planes : {false, true}) {
    const Tensor scores = planes ? Random({2, 5, 3, 4}) : Random({7, 5});
    const Tensor classes = Indices(planes ? at::IntArrayRef({2, 3, 4}) : at::IntArrayRef({7}), 5);
    const Tensor weight = Random({5}, at::kFloat, 0.5, 2);
    const Tensor counted = weight.index_select(0, classes.flatten())
                               .view(classes.sizes())
                               .masked_fill(classes.eq(2), 0);
    const Tensor each =
        -scores.gather(1, classes.unsqueeze(1)).squeeze(1).to(at::kDouble) * counted;
    const Tensor all = counted.to(at::kDouble).sum();
    for (const int reduction : {0, 1, 2}) {
      const Tensor expected = reduction == 0   ? each
                              : reduction == 1 ? each.sum() / all
                                               : each.sum();
      const Tensor loss = at::empty(expected.sizes()), total = at::empty({1});
      const std::string name = planes ? "aclnnNLLLoss2d" : "aclnnNLLLoss";
      ASSERT_EQ(
          RunOperator(name.c_str(), {scores, classes, weight, reduction, int64_t{2}, loss, total}),
          0)
          << LastMessage();
      ExpectClose(loss, expected, 1e-5, name);
      const Tensor gradient = Random(expected.sizes(), at::kFloat, 0.5, 2);
      const Tensor slope = at::empty(scores.sizes());
      ASSERT_EQ(RunOperator((name + "Backward").c_str(),
                            {gradient, scores, classes, weight, reduction, int64_t{2},
                             all.to(at::kFloat).view({1}), slope}),
                0)
          << LastMessage();
      const Tensor of_class = -counted * gradient / (reduction == 1 ? all.item<double>() : 1.0);
      const Tensor wanted =
          at::zeros(scores.sizes(), at::kDouble)
              .scatter(1, classes.unsqueeze(1), of_class.to(at::kDouble).unsqueeze(1));
      ExpectClose(slope, wanted, 1e-5, name);
    }
  }
}

}  // namespace
}  // namespace acltape::opapi
