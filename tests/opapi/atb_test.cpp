// libatb.so: operations of the adapter's transformers, issued as calls of operators. Those of
// attention are in atb_attention_test.cpp.
#include <cmath>
#include <functional>

#include "tests/opapi/atb_calls.h"

namespace acltape::opapi {
namespace {

TEST_F(Atb, RopeRotatesHalvesOrNeighboursInPlace) {
  const at::Tensor cosine = Random({3, 8}), sine = Random({3, 8}),
                   length = at::tensor({3}, at::kInt);
  for (int coefficient : {2, 8}) {
    const at::Tensor query = Random({3, 16}), key = Random({3, 8});
    const auto rotated = [&](const at::Tensor& x) {
      const at::Tensor heads = x.reshape({3, -1, 8});
      const at::Tensor turned =
          coefficient == 2
              ? at::cat({-heads.slice(2, 4, 8), heads.slice(2, 0, 4)}, 2)
              : at::stack({-heads.slice(2, 1, 8, 2), heads.slice(2, 0, 8, 2)}, 3).flatten(2);
      return (heads * cosine.unsqueeze(1) + turned * sine.unsqueeze(1)).reshape(x.sizes());
    };
    const at::Tensor expected_query = rotated(query), expected_key = rotated(key);
    atb::infer::RopeParam param;
    param.rotaryCoeff = coefficient;
    Run(param, {query, key, cosine, sine, length}, {query, key});
    EXPECT_TRUE(at::allclose(query, expected_query)) << coefficient;
    EXPECT_TRUE(at::allclose(key, expected_key)) << coefficient;
  }
}

TEST_F(Atb, ReshapeAndCacheWritesRowsAtTheirSlots) {
  const at::Tensor key = Random({2, 2, 4}, at::kHalf), value = Random({2, 2, 4}, at::kHalf);
  const at::Tensor keys = at::zeros({3, 2, 2, 4}, at::kHalf), values = at::zeros_like(keys);
  const at::Tensor slots = at::tensor({5, 0}, at::kInt);
  Run(atb::infer::ReshapeAndCacheParam(), {key, value, keys, values, slots}, {keys, values});
  at::Tensor expected = at::zeros_like(keys);
  expected[2][1].copy_(key[0]);
  expected[0][0].copy_(key[1]);
  EXPECT_TRUE(at::equal(keys, expected));
  EXPECT_TRUE(at::equal(values[2][1], value[0]));
  EXPECT_TRUE(at::equal(values[0][0], value[1]));
}

TEST_F(Atb, LinearAddsProductsOfHalfToFloat32) {
  const at::Tensor x = Random({2, 4}, at::kHalf), weight = Random({2, 3}, at::kHalf);
  const at::Tensor sum = Random({4, 3});
  const at::Tensor expected = at::addmm(sum, x.t().to(at::kFloat), weight.to(at::kFloat));
  atb::infer::LinearParam param;
  param.transposeA = true;
  param.transposeB = false;
  param.hasBias = false;
  param.enAccum = true;
  Run(param, {x, weight, sum}, {sum});
  EXPECT_TRUE(at::allclose(sum, expected));
}

TEST_F(Atb, ReshapeAndCacheWritesKeysAlone) {
  const at::Tensor key = Random({2, 1, 4}, at::kHalf), keys = at::zeros({3, 2, 1, 4}, at::kHalf);
  atb::infer::ReshapeAndCacheParam param;
  param.kvCacheCfg = atb::infer::ReshapeAndCacheParam::K_CACHE_V_BYPASS;
  Run(param, {key, keys, at::tensor({5, 0}, at::kInt)}, {keys});
  at::Tensor expected = at::zeros_like(keys);
  expected[2][1].copy_(key[0]);
  expected[0][0].copy_(key[1]);
  EXPECT_TRUE(at::equal(keys, expected));
}

// --- Elements

struct ElementCase {
  atb::infer::ElewiseParam::ElewiseType type;
  at::ScalarType out;
  std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> expected;
  bool second = true;  // takes two inputs
};

TEST_F(Atb, ElewiseComputesWhatItsTypeSays) {
  using P = atb::infer::ElewiseParam;
  using T = const at::Tensor&;
  const ElementCase cases[] = {
      {P::ELEWISE_CAST, at::kFloat, [](T x, T) { return x.to(at::kFloat); }, false},
      {P::ELEWISE_MULS, at::kHalf, [](T x, T) { return x * 0.5; }, false},
      {P::ELEWISE_COS, at::kHalf, [](T x, T) { return x.to(at::kFloat).cos().to(at::kHalf); },
       false},
      {P::ELEWISE_SIN, at::kHalf, [](T x, T) { return x.to(at::kFloat).sin().to(at::kHalf); },
       false},
      {P::ELEWISE_NEG, at::kHalf, [](T x, T) { return -x; }, false},
      {P::ELEWISE_TANH, at::kHalf, [](T x, T) { return x.to(at::kFloat).tanh().to(at::kHalf); },
       false},
      {P::ELEWISE_ADD, at::kHalf, [](T x, T y) { return x + y; }},
      {P::ELEWISE_SUB, at::kHalf, [](T x, T y) { return x - y; }},
      {P::ELEWISE_MUL, at::kHalf, [](T x, T y) { return x * y; }},
      {P::ELEWISE_REALDIV, at::kHalf, [](T x, T y) { return x / y; }},
      {P::ELEWISE_LESS, at::kChar, [](T x, T y) { return x.lt(y).to(at::kChar); }},
      {P::ELEWISE_GREATER, at::kChar, [](T x, T y) { return x.gt(y).to(at::kChar); }},
      {P::ELEWISE_EQUAL, at::kChar, [](T x, T y) { return x.eq(y).to(at::kChar); }},
  };
  const at::Tensor x = Random({3, 5}, at::kHalf), y = Random({5}, at::kHalf);
  x[0].copy_(y);
  for (const ElementCase& each : cases) {
    atb::infer::ElewiseParam param;
    param.elewiseType = each.type;
    param.mulsParam.varAttr = 0.5;
    param.outTensorType = each.type == P::ELEWISE_CAST ? ACL_FLOAT : ACL_DT_UNDEFINED;
    const at::Tensor out = at::empty({3, 5}, each.out);
    Run(param, each.second ? AtbOperands{x, y} : AtbOperands{x}, {out});
    EXPECT_TRUE(SameBits(out, each.expected(x, y))) << "elewiseType " << each.type;
  }
}

TEST_F(Atb, ElewiseCombinesBytesAsTruths) {
  using P = atb::infer::ElewiseParam;
  const at::Tensor x = at::tensor({0, 0, 1, 1}, at::kChar), y = at::tensor({0, 1, 0, 1}, at::kChar);
  const std::pair<P::ElewiseType, std::vector<int>> cases[] = {
      {P::ELEWISE_LOGICAL_AND, {0, 0, 0, 1}},
      {P::ELEWISE_LOGICAL_OR, {0, 1, 1, 1}},
      {P::ELEWISE_LOGICAL_NOT, {1, 1, 0, 0}}};
  for (const auto& [type, expected] : cases) {
    atb::infer::ElewiseParam param;
    param.elewiseType = type;
    const at::Tensor out = at::empty({4}, at::kChar);
    Run(param, type == P::ELEWISE_LOGICAL_NOT ? AtbOperands{x} : AtbOperands{x, y}, {out});
    EXPECT_TRUE(SameBits(out, at::tensor(expected, at::kChar))) << "elewiseType " << type;
  }
}

// Rounding comes before the offset, to even; the result is held to the range of int8.
TEST_F(Atb, ElewiseQuantisesPerChannel) {
  atb::infer::ElewiseParam param;
  param.elewiseType = atb::infer::ElewiseParam::ELEWISE_QUANT_PER_CHANNEL;
  const at::Tensor x = at::tensor({0.5, 1.5, -2.5, 500., 3., -500.}).to(at::kHalf).reshape({2, 3});
  const at::Tensor scale = at::tensor({1., 1., 2.}).to(at::kHalf);
  const at::Tensor offset = at::tensor({1, -1, 3}, at::kChar);
  const at::Tensor out = at::empty({2, 3}, at::kChar);
  Run(param, {x, scale, offset}, {out});
  EXPECT_TRUE(SameBits(out, at::tensor({1, 1, 2, 127, 2, -128}, at::kChar).reshape({2, 3})));
  Run(param, {x, scale, at::empty({0}, at::kChar)}, {out});
  EXPECT_TRUE(SameBits(out, at::tensor({0, 2, -1, 127, 3, -128}, at::kChar).reshape({2, 3})));
  const at::Tensor none = at::empty({0, 3}, at::kHalf), none_out = at::empty({0, 3}, at::kChar);
  Run(param, {none, scale, offset}, {none_out});
}

// --- Rows

TEST_F(Atb, RmsNormDividesByTheScaleOfItsQuantisation) {
  const at::Tensor x = Random({4, 1, 16}, at::kHalf), gamma = Random({1, 16}, at::kHalf);
  const at::Tensor beta = Random({1, 16}, at::kHalf), scale = at::tensor({0.3}).to(at::kHalf);
  const at::Tensor offset = at::tensor({2}, at::kChar), out = at::empty({4, 1, 16}, at::kChar);
  atb::infer::RmsNormParam param;
  param.layerType = atb::infer::RmsNormParam::RMS_NORM_NORM;
  param.normParam.quantType = atb::infer::RmsNormParam::QUANT_INT8;
  param.normParam.epsilon = 1e-3F;
  Run(param, {x, gamma, beta, scale, offset}, {out});
  for (int64_t row = 0; row < 4; ++row) {
    double squares = 0;
    for (int64_t i = 0; i < 16; ++i) squares += std::pow(x[row][0][i].item().toDouble(), 2);
    for (int64_t i = 0; i < 16; ++i) {
      const double normalized = x[row][0][i].item().toDouble() / std::sqrt(squares / 16 + 1e-3) *
                                    gamma[0][i].item().toDouble() +
                                beta[0][i].item().toDouble();
      const double expected = std::clamp(normalized / scale.item().toDouble() + 2, -128.0, 127.0);
      EXPECT_NEAR(out[row][0][i].item().toDouble(), expected, 0.501) << row << ", " << i;
    }
  }
}

TEST_F(Atb, RmsNormNormalisesRows) {
  atb::infer::RmsNormParam param;
  param.layerType = atb::infer::RmsNormParam::RMS_NORM_NORM;
  for (int64_t rows : {3, 0}) {
    const at::Tensor x = Random({rows, 8}, at::kHalf), gamma = Random({8}, at::kHalf);
    const at::Tensor out = at::empty_like(x), wide = x.to(at::kDouble);
    Run(param, {x, gamma}, {out});
    const at::Tensor expected =
        wide / (wide * wide).mean(1, true).add(1e-5).sqrt() * gamma.to(at::kDouble);
    EXPECT_TRUE(at::allclose(out.to(at::kDouble), expected, 1e-3, 1e-3));
  }
}

// Groups of 2: the best of each are 5, 7, 7 and 6; their sums are 9, 7, 8 and 12.
TEST_F(Atb, GroupTopkKeepsTheBestGroups) {
  const at::Tensor scores =
      at::tensor({4., 5., 7., 0., 1., 7., 6., 6.}).to(at::kHalf).reshape({1, 8});
  const at::Tensor numbers = at::arange(1024, at::kInt);
  atb::infer::GroupTopkParam param;
  param.groupNum = 4;
  param.k = 1;
  at::Tensor by_best = scores.clone();
  Run(param, {by_best, numbers}, {by_best});
  EXPECT_TRUE(at::equal(
      by_best, at::tensor({0., 0., 7., 0., 0., 0., 0., 0.}).to(at::kHalf).reshape({1, 8})));
  param.k = 2;
  param.groupMultiFlag = 1;
  param.n = 2;
  at::Tensor by_sum = scores.clone();
  Run(param, {by_sum, numbers}, {by_sum});
  EXPECT_TRUE(at::equal(
      by_sum, at::tensor({4., 5., 0., 0., 0., 0., 6., 6.}).to(at::kHalf).reshape({1, 8})));
  const at::Tensor none = at::empty({0, 8}, at::kHalf);
  Run(param, {none, numbers}, {none});
}

// --- What is not offered

TEST_F(Atb, WhatIsNotThereIsRefusedWhenItIsMade) {
  EXPECT_EQ(Refusal(atb::infer::LinearParam()),
            "acltape: LinearOperation with enAccum 0 is not offered by the soft device.\n");
  atb::infer::ReshapeAndCacheParam cache;
  cache.kvCacheCfg = 2;
  EXPECT_EQ(Refusal(cache),
            "acltape: ReshapeAndCacheOperation with kvCacheCfg 2 is not offered by the soft "
            "device.\n");
  cache.compressType = 1;
  EXPECT_NE(Refusal(cache).find("ReshapeAndCacheOperation with compressType 1"), std::string::npos);
  atb::infer::ElewiseParam elements;
  elements.elewiseType = atb::infer::ElewiseParam::ELEWISE_DYNAMIC_QUANT;
  EXPECT_NE(Refusal(elements).find("ElewiseOperation with elewiseType 19"), std::string::npos);
  atb::infer::RmsNormParam norm;
  norm.layerType = atb::infer::RmsNormParam::RMS_NORM_PRENORM;
  EXPECT_NE(Refusal(norm).find("RmsNormOperation with layerType 2"), std::string::npos);
  norm.layerType = atb::infer::RmsNormParam::RMS_NORM_NORM;
  norm.normParam.modelType = 1;
  EXPECT_NE(Refusal(norm).find("RmsNormOperation with normParam.modelType 1"), std::string::npos);
  EXPECT_NE(Refusal(atb::infer::GroupTopkParam()).find("GroupTopkOperation with k 0"),
            std::string::npos);
}

TEST_F(Atb, TensorsThatDoNotFitAreRefusedBeforeTheCall) {
  EXPECT_EQ(Misfit(atb::infer::RopeParam(), {}, {}),
            "acltape: RopeOperation has another number of tensors, or no context.\n");
  const at::Tensor row = at::zeros({8}, at::kHalf), rows = at::zeros({3, 8}, at::kHalf);
  EXPECT_EQ(Misfit(atb::infer::RopeParam(), {row, rows, rows, rows, Lengths({3})}, {row, rows}),
            "acltape: RopeOperation takes queries and keys of [tokens, heads * width].\n");
}

}  // namespace
}  // namespace acltape::opapi
