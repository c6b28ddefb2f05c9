// Calls that the vendor documents and that libtorch's operators refuse or answer in another way.
#include <cmath>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

TEST(Documented, OPI_01_AResultOfOneNumberMayHaveTheShapeOfOneElement) {
  const Tensor x = Random({3, 4}), y = Random({3, 4}), v = Random({5}), w = Random({5});
  const Tensor chance = at::sigmoid(x), target = at::tensor({1, 0, 3}, at::kLong);
  const int64_t mean = 1;
  const auto one = [](const Tensor& result) { return result.reshape({1}); };
  Check("aclnnMax", {x}, {one(at::max(x))});
  Check("aclnnMin", {x}, {one(at::min(x))});
  Check("aclnnMedian", {x}, {one(at::median(x))});
  Check("aclnnProd", {x, at::kFloat}, {one(at::prod(x))});
  Check("aclnnReduceSum", {x, Dims{0, 1}, false, at::kFloat}, {one(at::sum(x))});
  Check("aclnnMean", {x, Dims{}, false, at::kFloat}, {one(at::mean(x))});
  Check("aclnnAmax", {x, Dims{0, 1}, false}, {one(at::amax(x))});
  Check("aclnnAll", {x, Dims{0, 1}, false}, {one(at::all(x.ne(0)))});
  Check("aclnnArgMax", {v, int64_t{0}, false}, {one(at::argmax(v))});
  Check("aclnnNorm", {x, 2.0, Dims{0, 1}, false},
        {one(at::norm(x, at::Scalar(2.0), at::IntArrayRef({0, 1}), false))});
  Check("aclnnVar", {x, Dims{0, 1}, true, false}, {one(at::var(x, at::IntArrayRef({0, 1}), true))});
  Check("aclnnDot", {v, w}, {one(at::dot(v, w))});
  Check("aclnnTrace", {x}, {one(at::trace(x))});
  Check("aclnnKlDiv", {x, chance, mean, false}, {one(at::kl_div(x, chance, mean))});
  Check("aclnnL1Loss", {x, y, mean}, {one(at::l1_loss(x, y, mean))});
  Check("aclnnMseLoss", {x, y, mean}, {one(at::mse_loss(x, y, mean))});
  Check("aclnnSmoothL1Loss", {x, y, mean, 0.5}, {one(at::smooth_l1_loss(x, y, mean, 0.5))});
  Check("aclnnBinaryCrossEntropy", {chance, chance, Null{}, mean},
        {one(at::binary_cross_entropy(chance, chance, {}, mean))});
  Check("aclnnBinaryCrossEntropyWithLogits", {x, chance, Null{}, Null{}, mean},
        {one(at::binary_cross_entropy_with_logits(x, chance, {}, {}, mean))});
  const auto loss = at::nll_loss_forward(x, target, {}, mean, -100);
  Check("aclnnNLLLoss", {x, target, Null{}, mean, int64_t{-100}},
        {one(std::get<0>(loss)), one(std::get<1>(loss))});
  // Two numbers are none, and neither is one number with a dim more.
  EXPECT_EQ(RunOperator("aclnnMax", {x, at::empty({2})}), kReject);
  EXPECT_EQ(RunOperator("aclnnMax", {x, at::empty({1, 1})}), kReject);
}

TEST(Documented, OPI_02_IntegersDividedByZeroGiveAllBitsAndTheDividend) {
  for (const at::ScalarType dtype : {at::kInt, at::kLong, at::kShort, at::kChar}) {
    const Tensor a = at::tensor({7, -7, 0, 5}, dtype), b = at::tensor({0, 0, 0, 2}, dtype);
    Check("aclnnFloorDivide", {a, b}, {at::tensor({-1, -1, -1, 2}, dtype)});
    Check("aclnnRemainderTensorTensor", {a, b}, {at::tensor({7, -7, 0, 1}, dtype)});
    Check("aclnnFmodTensor", {a, b}, {at::tensor({7, -7, 0, 1}, dtype)});
    Check("aclnnFloorDivides", {a, 0}, {at::tensor({-1, -1, -1, -1}, dtype)});
    Check("aclnnDivMod", {a, b, 1}, {at::tensor({-1, -1, -1, 2}, dtype)});
    CheckInplace("aclnnInplaceRemainderTensorTensor", {a.clone(), b},
                 at::tensor({7, -7, 0, 1}, dtype));
    CheckInplace("aclnnInplaceFloorDivide", {a.clone(), b}, at::tensor({-1, -1, -1, 2}, dtype));
  }
  const Tensor byte = at::tensor({9, 200}, at::kByte), none = at::zeros({1}, at::kByte);
  Check("aclnnFloorDivide", {byte, none}, {at::full({2}, 255, at::kByte)});
  Check("aclnnRemainderTensorTensor", {byte, none}, {byte});
  const Tensor x = Random({3}), zero = at::zeros({3});
  Check("aclnnFloorDivide", {x, zero}, {at::floor_divide(x, zero)});
}

TEST(Documented, OPI_03_WhatIsNotDefinedForBoolsIsRefusedByTheFirstPhase) {
  const Tensor a = at::ones({2}, at::kBool), out = at::empty({2}, at::kBool);
  for (const char* name : {"aclnnFloorDivide", "aclnnRemainderTensorTensor", "aclnnFmodTensor",
                           "aclnnPowTensorTensor"}) {
    EXPECT_EQ(RunOperator(name, {a, a, out}), kReject) << name;
    EXPECT_NE(LastMessage().find("are bools, for which"), std::string::npos) << LastMessage();
  }
  const Tensor matrix = at::ones({2, 2}, at::kBool);
  EXPECT_EQ(RunOperator("aclnnAddmv", {a, matrix, a, 1.0, 1.0, out, 0}), kReject);
  EXPECT_EQ(LastMessage(), "aclnnAddmv: self is of dtype Bool.");
  EXPECT_EQ(RunOperator("aclnnRoundDecimals", {a, 1, out}), kReject);
}

TEST(Documented, OPI_03_MagnitudesAndTracesOfBoolsAreDefined) {
  const Tensor bools = at::tensor({1, 0, 1, 1}, at::kInt).to(at::kBool).view({2, 2});
  Check("aclnnAbs", {bools}, {bools});
  Check("aclnnTrace", {bools}, {at::tensor(int64_t{2}, at::kLong).reshape({})});
}

TEST(Documented, OPI_04_IntegersAreRoundedToTensAndHundreds) {
  for (const at::ScalarType dtype : {at::kInt, at::kLong}) {
    const Tensor x = at::tensor({1234, -1250, 15, 25, -5}, dtype);
    Check("aclnnRoundDecimals", {x, 2}, {x});
    Check("aclnnRoundDecimals", {x, -1}, {at::tensor({1230, -1250, 20, 20, 0}, dtype)});
    Check("aclnnRoundDecimals", {x, -2}, {at::tensor({1200, -1200, 0, 0, 0}, dtype)});
    CheckInplace("aclnnInplaceRoundDecimals", {x.clone(), -3},
                 at::tensor({1000, -1000, 0, 0, 0}, dtype));
  }
}

TEST(Documented, OPI_05_IndicesBelowZeroCountFromTheEnd) {
  const Tensor x = Random({4, 3});
  const Tensor index = at::tensor({-1, 0, -4, 2}, at::kLong), wrapped = at::tensor({3, 0, 0, 2});
  const Tensor expected = at::index_select(x, 0, wrapped.to(at::kLong));
  Check("aclnnGatherV2", {x, int64_t{0}, index}, {expected});
  Check("aclnnGatherV2", {x, int64_t{0}, index.to(at::kInt).view({2, 2})},
        {expected.view({2, 2, 3})});
}

TEST(Documented, OPI_04_WindowsAndPaddingsOfIntegersAndBools) {
  for (const at::ScalarType dtype : {at::kInt, at::kLong, at::kChar, at::kByte, at::kBool}) {
    const Tensor image = at::arange(2 * 3 * 5 * 4).remainder(7).sub(3).to(dtype).view({2, 3, 5, 4});
    const Tensor windows =
        at::im2col(image.to(at::kFloat), {2, 3}, {2, 1}, {1, 2}, {1, 2}).to(dtype);
    Check("aclnnIm2col", {image, Dims{2, 3}, Dims{2, 1}, Dims{1, 2}, Dims{1, 2}}, {windows});
    const Tensor row = image.view({6, 5, 4});
    Check("aclnnReflectionPad1d", {row, Dims{3, 2}},
          {at::reflection_pad1d(row.to(at::kFloat), {3, 2}).to(dtype)});
    Check("aclnnReflectionPad2d", {image, Dims{3, 2, 1, 4}},
          {at::reflection_pad2d(image.to(at::kFloat), {3, 2, 1, 4}).to(dtype)});
    Check("aclnnReplicationPad2d", {image, Dims{3, 2, 6, 1}},
          {at::replication_pad2d(image.to(at::kFloat), {3, 2, 6, 1}).to(dtype)});
  }
  EXPECT_EQ(RunOperator("aclnnReflectionPad1d", {Random({2, 3}), Dims{3, 0}, at::empty({2, 6})}),
            kReject);
  EXPECT_EQ(LastMessage(),
            "aclnnReflectionPad1d: padding is not less than the size that it mirrors.");
}

TEST(Documented, OPI_04_PowersOfListsOfSmallIntegersLoseTheirFractions) {
  const Tensor x = at::tensor({0, 1, 2, 4}, at::kChar);
  const Tensor out = at::empty({4}, at::kChar);
  ASSERT_EQ(RunOperator("aclnnForeachExp", {std::vector<Tensor>{x}, std::vector<Tensor>{out}}), 0)
      << LastMessage();
  EXPECT_TRUE(SameBits(out, at::tensor({1, 2, 7, 54}, at::kChar)));
}

TEST(Documented, OPI_04_RandomNumbersOfIntegersAndHalves) {
  const Tensor seed = at::tensor({5}, at::kLong), offset = at::tensor({0}, at::kLong);
  const Tensor whole = at::empty({4000}, at::kInt), real = at::empty({4000});
  for (const Tensor& out : {whole, real}) {
    ASSERT_EQ(RunOperator("aclnnInplaceUniformTensor", {out, -3.0, 9.0, seed, offset, int64_t{0}}),
              0)
        << LastMessage();
  }
  EXPECT_TRUE(SameBits(whole, real.to(at::kInt)));
  for (const Tensor& out : {whole, real}) {
    ASSERT_EQ(RunOperator("aclnnInplaceNormalTensor", {out, 4.0, 9.0, seed, offset, int64_t{0}}), 0)
        << LastMessage();
  }
  EXPECT_TRUE(SameBits(whole, real.to(at::kInt)));
  const Tensor half = at::empty({4000}, at::kHalf), full = at::empty({4000});
  for (const Tensor& out : {half, full}) {
    ASSERT_EQ(RunOperator("aclnnInplaceBernoulli", {out, 0.25, int64_t{5}, int64_t{0}}), 0)
        << LastMessage();
  }
  EXPECT_TRUE(SameBits(half, full.to(at::kHalf)));
  EXPECT_NEAR(full.mean().item<double>(), 0.25, 0.03);
}

TEST(Documented, OPI_06_RangesFillOutputsOfAnyShape) {
  Check("aclnnArange", {0.0, 6.0, 1.0}, {at::arange(6.0, at::kFloat).view({1, 1, 1, 6})});
  Check("aclnnArange", {0, 6, 1}, {at::arange(6).view({2, 3})});
  Check("aclnnRange", {1.0, 3.0, 0.5}, {at::range(1.0, 3.0, 0.5, at::kFloat).to(at::kHalf)});
  EXPECT_EQ(RunOperator("aclnnArange", {0.0, 6.0, 1.0, at::empty({1, 7})}), kReject);
  EXPECT_EQ(LastMessage(), "aclnnArange: out has shape [1, 7], expected [6].");
}

TEST(Documented, OPI_06_SelectionsTakeAnOutputOfTheExactSize) {
  const Tensor x = at::tensor({1, 0, 2, 0, 0, 3}, at::kInt).view({2, 3});
  const Tensor found = at::nonzero(x).contiguous();
  Check("aclnnNonzero", {x}, {found});
  Check("aclnnNonzeroV2", {x}, {found.t().contiguous()});
  Check("aclnnMaskedSelect", {x, x.ne(0)}, {at::tensor({1, 2, 3}, at::kInt)});
  const Tensor large = at::empty({2, 6}, at::kLong);  // the greatest size
  EXPECT_EQ(RunOperator("aclnnNonzeroV2", {x, large}), 0) << LastMessage();
  EXPECT_EQ(RunOperator("aclnnNonzeroV2", {x, at::empty({2, 7}, at::kLong)}), kReject);
  EXPECT_EQ(RunOperator("aclnnNonzeroV2", {x, at::empty({3, 3}, at::kLong)}), kReject);
}

TEST(Documented, OPI_07_AFlashAttentionThatReadsNoPrefixTakesOne) {
  const Tensor q = Random({1, 2, 4, 8}, at::kHalf), k = Random({1, 2, 4, 8}, at::kHalf);
  Tensor without, with;
  for (const bool prefix : {false, true}) {
    Tensor& out = prefix ? with : without;
    out = at::empty({1, 2, 4, 8}, at::kHalf);
    const Tensor maximum = at::empty({1, 2, 4, 8}), sum = at::empty({1, 2, 4, 8});
    const Arg lengths = prefix ? Arg(Dims{3}) : Arg(Null{});
    ASSERT_EQ(
        RunOperator(
            "aclnnFlashAttentionScoreV2",
            {q,          k,      k,          Null{},     Null{},     Null{},         Null{},
             lengths,    Null{}, Null{},     0.5,        1.0,        int64_t{65536}, int64_t{65536},
             int64_t{2}, "BNSD", int64_t{0}, int64_t{0}, int64_t{1}, maximum,        sum,
             Null{},     out}),
        0)
        << LastMessage();
  }
  EXPECT_TRUE(SameBits(with, without));
}

// The vendor's formula is target * (log(target) - self).
TEST(Documented, OPI_07_ADivergenceFromATargetOfZeroIsNan) {
  const Tensor scores = at::tensor({-1.0f, -2.0f}), target = at::tensor({0.5f, 0.0f});
  const Tensor each = at::empty({2}), sum = at::empty({}), logarithms = at::empty({2});
  ASSERT_EQ(RunOperator("aclnnKlDiv", {scores, target, int64_t{0}, false, each}), 0);
  EXPECT_FLOAT_EQ(each[0].item<float>(), 0.5f * (std::log(0.5f) + 1.0f));
  EXPECT_TRUE(std::isnan(each[1].item<float>()));
  ASSERT_EQ(RunOperator("aclnnKlDiv", {scores, target, int64_t{2}, false, sum}), 0);
  EXPECT_TRUE(std::isnan(sum.item<float>()));
  ASSERT_EQ(RunOperator("aclnnKlDiv", {scores, target, int64_t{0}, true, logarithms}), 0);
  EXPECT_FLOAT_EQ(logarithms[1].item<float>(), 2.0f);
}

TEST(Documented, OPI_07_TheGradientOfLogSigmoidReadsNoBuffer) {
  const Tensor x = at::tensor({1.0f}), gradient = at::ones({1}), out = at::empty({1});
  for (const float buffer : {0.0f, 123.0f}) {
    ASSERT_EQ(RunOperator("aclnnLogSigmoidBackward", {gradient, x, at::full({1}, buffer), out}), 0);
    EXPECT_NEAR(out.item<float>(), 0.26894f, 1e-5);
  }
}

// (x, smoothScales?, groupIndex?, dstType, y, scale, offset?)
TEST(Documented, OPI_11_RowsAreQuantisedByTheirRangeAndByTheFactorsOfTheirGroup) {
  const Tensor x = Random({5, 8}), factors = Random({2, 8}, at::kFloat, 0.5, 2);
  const Tensor ends = at::tensor({2, 5}, at::kInt);
  const Tensor y = at::empty({5, 8}, at::kChar), scale = at::empty({5}), offset = at::empty({5});
  ASSERT_EQ(RunOperator("aclnnDynamicQuantV2", {x, factors, ends, int64_t{2}, y, scale, offset}), 0)
      << LastMessage();
  const Tensor wide =
      at::cat({x.narrow(0, 0, 2) * factors[0], x.narrow(0, 2, 3) * factors[1]}).to(at::kDouble);
  const Tensor most = wide.amax(1), step = (most - wide.amin(1)) / 255;
  EXPECT_TRUE(at::allclose(scale.to(at::kDouble), step, 1e-6));
  EXPECT_TRUE(at::allclose(offset.to(at::kDouble), 127 - most / step, 1e-5, 1e-4));
  const Tensor back = (y.to(at::kDouble) - offset.unsqueeze(1)) * scale.unsqueeze(1);
  EXPECT_LE(((back - wide).abs() / step.unsqueeze(1)).max().item<double>(), 0.51);
  EXPECT_EQ(y.amax(1).min().item<int>(), 127);
  EXPECT_EQ(y.amin(1).max().item<int>(), -128);
  const Tensor plain = at::empty({5, 8}, at::kChar), plain_scale = at::empty({5});
  ASSERT_EQ(
      RunOperator("aclnnDynamicQuantV2", {x, factors[0], Null{}, int64_t{2}, y, scale, Null{}}), 0)
      << LastMessage();
  ASSERT_EQ(RunOperator("aclnnDynamicQuant", {x, factors[0], plain, plain_scale}), 0);
  EXPECT_TRUE(SameBits(y, plain));
  EXPECT_TRUE(SameBits(scale, plain_scale));
}

TEST(Documented, OPI_08_ProductsPromoteTheirTypes) {
  const Tensor x = Random({3, 4});
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    const Tensor weight = Random({4, 5}, dtype);
    const Tensor expected = at::mm(x, weight.to(at::kFloat));
    Check("aclnnMm", {x, weight}, {expected}, {int64_t{0}});
    Check("aclnnMatmul", {x, weight}, {expected}, {int64_t{0}});
    Check("aclnnBatchMatMul", {x.unsqueeze(0), weight.unsqueeze(0)},
          {at::bmm(x.unsqueeze(0), weight.to(at::kFloat).unsqueeze(0))}, {int64_t{0}});
  }
}

}  // namespace
}  // namespace acltape::opapi
