// ScaledMaskedSoftmax and its gradient by their names, beside formulas of doubles.
#include <cmath>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The softmax of one row of scores. A masked score counts as -10000.
std::vector<double> SoftmaxOf(const Tensor& x, const Tensor& masked, double scale) {
  std::vector<double> row;
  double greatest = -1e30, sum = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    row.push_back(masked[i].item<bool>() ? -10000 : x[i].item<double>() * scale);
    greatest = std::max(greatest, row.back());
  }
  for (double& score : row) sum += score = std::exp(score - greatest);
  for (double& score : row) score /= sum;
  return row;
}

struct Scores {
  at::ScalarType type;
  std::vector<int64_t> shape, mask;
  bool triangle;
};

const Scores kScores[] = {
    {at::kFloat, {2, 3, 4, 5}, {2, 1, 4, 5}, false},
    {at::kHalf, {2, 3, 4, 5}, {1, 1, 4, 5}, false},
    {at::kBFloat16, {2, 2, 4, 4}, {2, 2, 4, 4}, true},
    {at::kFloat, {3, 4}, {4}, false},
    {at::kFloat, {1, 1}, {1, 1}, false},
    {at::kHalf, {2, 3, 5}, {1}, true},
};

Tensor Masked(const Scores& of, const Tensor& mask) {
  const int64_t rows = of.shape[of.shape.size() - 2], columns = of.shape.back();
  const Tensor all = of.triangle ? at::ones({rows, columns}, at::kBool).triu(1) : mask;
  return all.expand(of.shape).reshape({-1, columns});
}

double ToleranceOf(at::ScalarType type) {
  return type == at::kFloat ? 1e-6 : type == at::kHalf ? 1e-3 : 8e-3;
}

TEST(MaskedSoftmaxByName, ScoresThatTheMaskNamesHaveNoWeight) {
  at::manual_seed(35);
  for (const Scores& of : kScores) {
    const Tensor x = Random(of.shape, of.type), mask = at::rand(of.mask) < 0.4;
    const Tensor out = at::full(of.shape, 77, of.type);
    NamedCall call("ScaledMaskedSoftmax");
    call.In(x).In(mask).Out(out).Set("scale", 0.75f).Set("fixed_triu_mask", of.triangle);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    const Tensor masked = Masked(of, mask), rows = x.reshape({-1, of.shape.back()});
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const std::vector<double> wanted = SoftmaxOf(rows[i], masked[i], 0.75);
      for (int64_t k = 0; k < of.shape.back(); ++k) {
        EXPECT_NEAR(out.view({-1, of.shape.back()})[i][k].item<double>(), wanted[k],
                    ToleranceOf(of.type));
      }
    }
  }
}

TEST(MaskedSoftmaxByName, TheGradientGoesToScoresThatAreNotMasked) {
  at::manual_seed(36);
  for (const Scores& of : kScores) {
    const Tensor gradient = Random(of.shape, of.type), mask = at::rand(of.mask) < 0.4;
    const Tensor y = at::softmax(Random(of.shape), -1).to(of.type);
    const Tensor out = at::full(of.shape, 77, of.type);
    NamedCall call("ScaledMaskedSoftmaxGrad");
    call.In(gradient).In(y).In(mask).Out(out).Set("scale", 1.5f);
    ASSERT_EQ(call.Set("fixed_triu_mask", of.triangle).Run(), ACL_SUCCESS) << TakeMessage();
    const int64_t columns = of.shape.back();
    const Tensor masked = Masked(of, mask);
    const auto number = [&](const Tensor& tensor, int64_t i, int64_t k) {
      return tensor.reshape({-1, columns})[i][k].item<double>();
    };
    for (int64_t i = 0; i < masked.size(0); ++i) {
      double sum = 0;
      for (int64_t k = 0; k < columns; ++k) sum += number(gradient, i, k) * number(y, i, k);
      for (int64_t k = 0; k < columns; ++k) {
        const double all = 1.5 * number(y, i, k) * (number(gradient, i, k) - sum);
        EXPECT_NEAR(number(out, i, k), masked[i][k].item<bool>() ? 0 : all,
                    3 * ToleranceOf(of.type));
      }
    }
  }
}

TEST(MaskedSoftmaxByName, NothingAndRefusals) {
  NamedCall none("ScaledMaskedSoftmax");
  none.In(at::empty({2, 0})).In(at::empty({2, 0}, at::kBool)).Out(at::empty({2, 0}));
  EXPECT_EQ(none.Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor x = at::zeros({2, 3}), mask = at::zeros({2, 3}, at::kBool);
  const struct {
    Tensor x, mask, out;
    const char* part;
  } kCalls[] = {
      {at::zeros({3}), at::zeros({3}, at::kBool), at::zeros({3}), "of two dims at least"},
      {x, at::zeros({3, 3}, at::kBool), x, "the mask [3, 3]"},
      {x, at::zeros({1, 2, 3}, at::kBool), x, "the mask [1, 2, 3]"},
      {x, at::zeros({2, 3}), x, "the mask [2, 3] and 0"},
      {x.to(at::kDouble), mask, x.to(at::kDouble), "and the type 11"},
      {x, mask, x.to(at::kHalf), "its tensors have the types 0 and 1"},
      {x, mask, at::zeros({3, 2}), "output 0 has the shape [3, 2]"},
  };
  for (const auto& each : kCalls) {
    NamedCall call("ScaledMaskedSoftmax");
    TakeMessage();
    EXPECT_NE(call.In(each.x).In(each.mask).Out(each.out).Run(), ACL_SUCCESS);
    const std::string message = TakeMessage();
    EXPECT_NE(message.find(each.part), std::string::npos) << message;
  }
  NamedCall gradient("ScaledMaskedSoftmaxGrad");
  gradient.In(x).In(at::zeros({3, 2})).In(mask).Out(x);
  TakeMessage();
  EXPECT_NE(gradient.Run(), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("input 1 has the shape [3, 2], and input 0 [2, 3]"),
            std::string::npos);
  NamedCall unmasked("ScaledMaskedSoftmax");
  EXPECT_NE(unmasked.In(x).None().Out(x).Run(), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("input 1 is missing"), std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
