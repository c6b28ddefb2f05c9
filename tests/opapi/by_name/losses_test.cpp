// Losses by their names, beside loops over rows in doubles.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

const char* const kLossReductions[] = {"none", "mean", "sum"};

testing::AssertionResult NearLoss(const Tensor& actual, const Tensor& wanted, double tolerance) {
  if (at::allclose(actual.to(at::kDouble), wanted.to(at::kDouble), tolerance, tolerance)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << actual << " instead of " << wanted;
}

void ExpectLossRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(LossesOfRowsByName, SquaredDistances) {
  at::manual_seed(91);
  for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    const double tolerance = dtype == at::kFloat ? 1e-5 : 1e-2;
    const Tensor x = Random({2, 3}, dtype), y = Random({2, 3}, dtype);
    const Tensor distance = x.to(at::kDouble) - y.to(at::kDouble);
    for (int reduction = 0; reduction < 3; ++reduction) {
      const std::vector<int64_t> shape = reduction == 0 ? x.sizes().vec() : std::vector<int64_t>{};
      const Tensor out = at::full(shape, 77, dtype), gradient = Random(shape, dtype);
      NamedCall call("MseLoss");
      call.In(x).In(y).Out(out).Set("reduction", kLossReductions[reduction]);
      ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
      Tensor wanted = distance * distance;
      if (reduction > 0) wanted = wanted.sum() / (reduction == 1 ? 6 : 1);
      EXPECT_TRUE(NearLoss(out, wanted, tolerance));
      const Tensor dx = at::full({2, 3}, 77, dtype);
      NamedCall back("MseLossGrad");
      back.In(x).In(y).In(gradient).Out(dx).Set("reduction", kLossReductions[reduction]);
      ASSERT_EQ(back.Run(), ACL_SUCCESS) << TakeMessage();
      const Tensor slope = distance * 2 * gradient.to(at::kDouble) / (reduction == 1 ? 6 : 1);
      EXPECT_TRUE(NearLoss(dx, slope, tolerance));
    }
  }
}

TEST(LossesOfRowsByName, ClassesWithWeights) {
  at::manual_seed(92);
  const Tensor x = Random({4, 3}), weight = Random({3}, at::kFloat, 0.5, 2);
  const Tensor target = at::tensor({2, 0, 1, 2}, at::kInt);
  for (int64_t ignored : {-100, 1}) {
    for (int reduction = 0; reduction < 3; ++reduction) {
      const std::vector<int64_t> shape =
          reduction == 0 ? std::vector<int64_t>{4} : std::vector<int64_t>{};
      const Tensor out = at::full(shape, 77.0f), sum = at::full({}, 77.0f);
      NamedCall call("NLLLoss");
      call.In(x).In(target).In(weight).Out(out).Out(sum);
      call.Set("reduction", kLossReductions[reduction]).Set("ignore_index", ignored);
      ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
      const Tensor each = at::zeros({4}, at::kDouble);
      double weights = 0;
      for (int64_t row = 0; row < 4; ++row) {
        const auto of = target[row].item<int64_t>();
        if (of == ignored) continue;
        const double w = weight[of].item<double>();
        each[row] = -w * x[row][of].item<double>();
        weights += w;
      }
      const double part = reduction == 1 ? weights : 1;
      EXPECT_TRUE(NearLoss(out, reduction == 0 ? each : each.sum() / part, 1e-5));
      if (reduction > 0) {
        EXPECT_NEAR(sum.item<double>(), weights, 1e-5);
      }
      const Tensor total = at::scalar_tensor(static_cast<float>(weights));
      const Tensor gradient = Random(shape), dx = at::full({4, 3}, 77.0f);
      NamedCall back("NLLLossGrad");
      back.In(x).In(gradient).In(target).In(weight).In(total).Out(dx);
      back.Set("reduction", kLossReductions[reduction]).Set("ignore_index", ignored);
      ASSERT_EQ(back.Run(), ACL_SUCCESS) << TakeMessage();
      const Tensor wanted = at::zeros({4, 3}, at::kDouble);
      for (int64_t row = 0; row < 4; ++row) {
        const auto of = target[row].item<int64_t>();
        if (of == ignored) continue;
        const double g = reduction == 0 ? gradient[row].item<double>() : gradient.item<double>();
        wanted[row][of] = -weight[of].item<double>() * g / part;
      }
      EXPECT_TRUE(NearLoss(dx, wanted, 1e-5));
    }
  }
}

TEST(LossesOfRowsByName, FormsThatAreRefused) {
  const Tensor x = Random({2, 3}), target = at::tensor({0, 1}, at::kInt), one = at::empty({});
  {
    NamedCall wrong("MseLoss");
    wrong.In(x).In(x).Out(one).Set("reduction", "most");
    ExpectLossRefused(wrong, "reduction is most, expected none, mean or sum");
  }
  {
    NamedCall wrong("MseLoss");
    wrong.In(x).In(Random({3, 2})).Out(one);
    ExpectLossRefused(wrong, "input 1 has the shape [3, 2], expected [2, 3]");
  }
  {
    NamedCall wrong("MseLossGrad");
    wrong.In(x).In(x).In(Random({2})).Out(at::empty({2, 3}));
    ExpectLossRefused(wrong, "input 2 has the shape [2], expected []");
  }
  {
    NamedCall wrong("NLLLoss");
    wrong.In(x).In(target.to(at::kFloat)).In(at::ones({3})).Out(one).Out(one);
    ExpectLossRefused(wrong, "takes a row for each target, as int32 or int64");
  }
  {
    NamedCall wrong("NLLLoss");
    wrong.In(x).In(target).In(at::ones({2})).Out(one).Out(one);
    ExpectLossRefused(wrong, "input 2 has the shape [2], expected [3]");
  }
  {
    NamedCall wrong("NLLLossGrad");
    wrong.In(x).In(one).In(target).In(at::ones({3})).In(one).Out(at::empty({2}));
    ExpectLossRefused(wrong, "output 0 has the shape [2], expected [2, 3]");
  }
}

}  // namespace
}  // namespace acltape::opapi
