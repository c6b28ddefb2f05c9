// Random operators at many offsets, as a framework's adapter calls them: it advances the offset by
// a few for each draw (torch_npu by 12 for a dropout). Seeds are fixed, so nothing here fails by
// chance. Each suite runs in a process of its own, because the generator is a setting.
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <cstdlib>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

constexpr int64_t kElements = 16384;
constexpr int64_t kDraws = 100;
constexpr int64_t kAdvance = 12;
constexpr int64_t kMostLag = 64;

// The mask of a dropout that keeps half of the elements, one number for each.
Tensor Mask(int64_t seed, int64_t offset) {
  const Tensor bits = at::zeros({kElements / 8}, at::kByte);
  EXPECT_EQ(
      RunOperator("aclnnDropoutGenMaskV2", {Dims{kElements}, 0.5, seed, offset, at::kFloat, bits}),
      0)
      << LastMessage();
  Tensor mask = at::empty({kElements}, at::kFloat);
  const auto* bytes = bits.data_ptr<uint8_t>();
  for (int64_t i = 0; i < kElements; ++i) {
    mask.data_ptr<float>()[i] = static_cast<float>(bytes[i / 8] >> (i % 8) & 1);
  }
  return mask;
}

Tensor UniformNumbers(int64_t seed, int64_t offset) {
  const Tensor out = at::empty({kElements});
  EXPECT_EQ(RunOperator("aclnnInplaceUniform", {out, 0.0, 1.0, seed, offset}), 0) << LastMessage();
  return out;
}

Tensor NormalNumbers(int64_t seed, int64_t offset) {
  const Tensor out = at::empty({kElements});
  EXPECT_EQ(RunOperator("aclnnInplaceNormal", {out, 0.0, 1.0, seed, offset}), 0) << LastMessage();
  return out;
}

// The greatest correlation of a draw with the one before it, at lags 0 to kMostLag in both
// directions.
double GreatestCorrelation(const std::vector<Tensor>& draws) {
  double greatest = 0;
  for (size_t d = 1; d < draws.size(); ++d) {
    const Tensor before = draws[d - 1] - draws[d - 1].mean(), now = draws[d] - draws[d].mean();
    const double scale = (before.pow(2).sum() * now.pow(2).sum()).sqrt().item<double>();
    for (int64_t lag = 0; lag <= kMostLag; ++lag) {
      const int64_t n = kElements - lag;
      for (const auto& [a, b] : {std::pair(before, now), std::pair(now, before)}) {
        const double sum = a.narrow(0, lag, n).dot(b.narrow(0, 0, n)).item<double>();
        greatest = std::max(greatest, std::abs(sum) / scale);
      }
    }
  }
  return greatest;
}

// The probability of a sum of squares of `count` standard normal numbers that is at least so great,
// by the approximation of Wilson and Hilferty.
double UpperTail(double sum, double count) {
  const double part = 2.0 / (9 * count);
  const double z = (std::cbrt(sum / count) - (1 - part)) / std::sqrt(part);
  return 0.5 * std::erfc(z / std::sqrt(2.0));
}

// The probability that sums of fair and independent numbers lie as far from what is expected.
double ProbabilityOfSums(const std::vector<double>& sums, double mean, double variance) {
  double squares = 0;
  for (double sum : sums) squares += (sum - mean) * (sum - mean) / variance;
  const double upper = UpperTail(squares, static_cast<double>(sums.size()));
  return 2 * std::min(upper, 1 - upper);
}

using Draw = Tensor (*)(int64_t seed, int64_t offset);

std::vector<Tensor> Draws(Draw draw) {
  std::vector<Tensor> draws;
  for (int64_t d = 0; d < kDraws; ++d) draws.push_back(draw(/*seed=*/0, d * kAdvance));
  return draws;
}

TEST(IndependentNumbers, RND_08_MasksAtAHundredOffsetsAreFairAndIndependent) {
  const std::vector<Tensor> masks = Draws(Mask);
  std::vector<double> kept, agreements;
  for (size_t d = 0; d < masks.size(); ++d) {
    kept.push_back(masks[d].sum().item<double>());
    if (d > 0) agreements.push_back(masks[d].eq(masks[d - 1]).sum().item<double>());
  }
  const double fair = kElements / 2.0, variance = kElements / 4.0;
  const double p_kept = ProbabilityOfSums(kept, fair, variance);
  const double p_agree = ProbabilityOfSums(agreements, fair, variance);
  const double correlation = GreatestCorrelation(masks);
  RecordProperty("p_kept", std::to_string(p_kept));
  RecordProperty("p_agree", std::to_string(p_agree));
  RecordProperty("greatest_correlation", std::to_string(correlation));
  EXPECT_GT(p_kept, 0.001);
  EXPECT_GT(p_agree, 0.001);
  EXPECT_LT(correlation, 0.05);
}

TEST(IndependentNumbers, RND_08_UniformAndNormalNumbersAtAHundredOffsetsAreIndependent) {
  for (const auto& [name, draw, mean, variance] :
       {std::tuple("uniform", Draw{UniformNumbers}, 0.5, 1.0 / 12),
        std::tuple("normal", Draw{NormalNumbers}, 0.0, 1.0)}) {
    const std::vector<Tensor> draws = Draws(draw);
    std::vector<double> sums;
    for (const Tensor& numbers : draws)
      sums.push_back(numbers.to(at::kDouble).sum().item<double>());
    const double p = ProbabilityOfSums(sums, mean * kElements, variance * kElements);
    const double correlation = GreatestCorrelation(draws);
    RecordProperty(std::string("p_") + name, std::to_string(p));
    RecordProperty(std::string("correlation_") + name, std::to_string(correlation));
    EXPECT_GT(p, 0.001) << name;
    EXPECT_LT(correlation, 0.05) << name;
  }
}

TEST(IndependentNumbers, RND_08_NoOffsetShiftsTheNumbersOfAnother) {
  const Tensor first = UniformNumbers(5, 0);
  for (int64_t offset : {int64_t{1}, int64_t{4}, int64_t{12}, int64_t{624}, int64_t{1} << 40}) {
    const Tensor later = UniformNumbers(5, offset);
    for (int64_t shift = 0; shift < 700; ++shift) {
      const int64_t n = kElements - shift;
      EXPECT_LT(later.narrow(0, 0, n).eq(first.narrow(0, shift, n)).sum().item<int64_t>(), 5)
          << offset << " is " << shift;
    }
  }
  EXPECT_FALSE(SameBits(UniformNumbers(6, 0), first)) << "another seed";
  EXPECT_FALSE(SameBits(UniformNumbers(int64_t{5} << 32, 0), first)) << "its high bits count too";
}

TEST(IndependentNumbers, RND_08_EqualSeedsAndOffsetsGiveEqualNumbersEagerInAGraphAndInEveryRun) {
  const Tensor integers = at::empty({6}, at::kLong);
  ASSERT_EQ(RunOperator("aclnnInplaceRandom", {integers, 0, 1000, 5, 12}), 0) << LastMessage();
  EXPECT_TRUE(SameBits(integers, at::tensor({549, 98, 262, 864, 977, 330}, at::kLong)))
      << "every run and every machine gives these: " << integers;
  const Tensor eager = UniformNumbers(5, 12);
  EXPECT_TRUE(SameBits(UniformNumbers(5, 12), eager));
  const Tensor seed = at::full({1}, 5, at::kLong), offset = at::full({1}, 8, at::kLong);
  const Tensor of_tensors = at::empty({kElements});
  EXPECT_TRUE(
      Gives("aclnnInplaceUniformTensor", {of_tensors, 0.0, 1.0, seed, offset, 4}, {{0, eager}}));

  TestStream();
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  const Tensor captured = at::zeros({kElements});
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL), ACL_SUCCESS);
  {
    PackedCall uniform("aclnnInplaceUniformTensor", {captured, 0.0, 1.0, seed, offset, 4});
    ASSERT_EQ(uniform.Prepare(), 0);
    ASSERT_EQ(uniform.Launch(stream), 0);
  }
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  for (int64_t advanced : {0, 12, 24}) {
    offset.fill_(8 + advanced);
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_TRUE(SameBits(captured, UniformNumbers(5, 12 + advanced)));
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

// Older recordings were made with it.
class FirstGenerator : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("ACLTAPE_SOFT_GENERATOR", "1", 1); }
};

TEST_F(FirstGenerator, RND_09_IsTheLibrarysOwnAdvancedByTheOffset) {
  const at::Generator generator = at::detail::createCPUGenerator(5);
  const Tensor expected = at::empty({kElements + kAdvance}).uniform_(0, 1, generator);
  EXPECT_TRUE(SameBits(UniformNumbers(5, 0), expected.narrow(0, 0, kElements)));
  EXPECT_TRUE(SameBits(UniformNumbers(5, kAdvance), expected.narrow(0, kAdvance, kElements)));
  EXPECT_GT(GreatestCorrelation(Draws(Mask)), 0.9) << "the second mask is the first one shifted";
}

TEST_F(FirstGenerator, RND_09_GivesTheLibrarysNumbersInAllForms) {
  at::Generator generator = at::detail::createCPUGenerator(11);
  const Tensor normal = at::empty({500}).normal_(1.0, 2.0, generator);
  CheckInplace("aclnnInplaceNormal", {at::zeros({500}), 1.0, 2.0, 11, 0}, normal);
  generator = at::detail::createCPUGenerator(11);
  const Tensor integers = at::empty({500}, at::kLong).random_(3, 90, generator);
  CheckInplace("aclnnInplaceRandom", {at::zeros({500}, at::kLong), 3, 90, 11, 0}, integers);
  generator = at::detail::createCPUGenerator(11);
  const Tensor coins = at::empty({500}).bernoulli_(0.3, generator);
  CheckInplace("aclnnInplaceBernoulli", {at::zeros({500}), 0.3, 11, 0}, coins);
}

}  // namespace
}  // namespace acltape::opapi
