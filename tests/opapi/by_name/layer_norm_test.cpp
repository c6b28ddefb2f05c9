// LayerNormV3 by its name, beside a formula of doubles.
#include <cmath>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct Layer {
  at::ScalarType x, gamma;
  std::vector<int64_t> shape;
  int64_t begin;
};

TEST(LayerNormsByName, RowsHaveTheMeanAndTheDeviationOfTheParameters) {
  at::manual_seed(37);
  const Layer layers[] = {
      {at::kFloat, at::kFloat, {6, 4}, 1},       {at::kHalf, at::kHalf, {2, 3, 5}, -1},
      {at::kBFloat16, at::kFloat, {2, 3, 8}, 1}, {at::kHalf, at::kFloat, {3, 4, 2}, 2},
      {at::kFloat, at::kFloat, {7}, 0},          {at::kFloat, at::kFloat, {2, 1}, 1},
      {at::kBFloat16, at::kBFloat16, {4, 6}, 1}, {at::kFloat, at::kHalf, {4, 6}, 1},
  };
  for (const Layer& layer : layers) {
    const size_t rank = layer.shape.size();
    const size_t begin = layer.begin < 0 ? rank + layer.begin : layer.begin;
    const std::vector<int64_t> row(layer.shape.begin() + begin, layer.shape.end());
    std::vector<int64_t> means = layer.shape;
    std::fill(means.begin() + begin, means.end(), 1);
    const Tensor x = Random(layer.shape, layer.x), gamma = Random(row, layer.gamma);
    const Tensor beta = Random(row, layer.gamma), y = at::full(layer.shape, 77, layer.x);
    const Tensor mean = at::full(means, 77, layer.gamma), rstd = at::full(means, 77, layer.gamma);
    NamedCall call("LayerNormV3");
    call.In(x).In(gamma).In(beta).Out(y).Out(mean).Out(rstd).Set("epsilon", 0.25f);
    call.Set("begin_norm_axis", layer.begin).Set("begin_params_axis", layer.begin);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    const int64_t count = gamma.numel(), rows = x.numel() / count;
    const bool bfloat16 = layer.x == at::kBFloat16 || layer.gamma == at::kBFloat16;
    const bool half = layer.x == at::kHalf || layer.gamma == at::kHalf;
    const double near = bfloat16 ? 3e-2 : half ? 4e-3 : 1e-5;
    const auto number = [](const Tensor& of, int64_t i) {
      return of.reshape({-1})[i].item<double>();
    };
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0, squares = 0;
      for (int64_t k = 0; k < count; ++k) sum += number(x, i * count + k);
      for (int64_t k = 0; k < count; ++k) {
        squares += std::pow(number(x, i * count + k) - sum / count, 2);
      }
      const double scale = 1 / std::sqrt(squares / count + 0.25);
      EXPECT_NEAR(number(mean, i), sum / count, near);
      EXPECT_NEAR(number(rstd, i), scale, near);
      for (int64_t k = 0; k < count; ++k) {
        const double normal = (number(x, i * count + k) - sum / count) * scale;
        EXPECT_NEAR(number(y, i * count + k), normal * number(gamma, k) + number(beta, k), near);
      }
    }
  }
}

TEST(LayerNormsByName, NothingAndRefusals) {
  NamedCall none("LayerNormV3");
  none.In(at::empty({0, 3})).In(at::ones({3})).In(at::zeros({3})).Out(at::empty({0, 3}));
  none.Out(at::empty({0, 1})).Out(at::empty({0, 1})).Set("begin_norm_axis", int64_t{1});
  EXPECT_EQ(none.Set("begin_params_axis", int64_t{1}).Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor x = at::zeros({2, 3}), row = at::zeros({3}), mean = at::zeros({2, 1});
  const struct {
    Tensor x, gamma, beta, y, mean;
    int64_t norm, params;
    const char* part;
  } kCalls[] = {
      {x, row, row, x, mean, 1, 0, "begin_norm_axis is 1 and begin_params_axis 0"},
      {x, row, row, x, mean, 2, 2, "of the 2 dims of x"},
      {x, row, row, x, mean, 0, 0, "expected [2, 3]"},
      {x, at::zeros({2}), row, x, mean, 1, 1, "gamma has the shape [2]"},
      {x, row, row.to(at::kHalf), x, mean, 1, 1, "one type for both"},
      {x, row, row, x.to(at::kHalf), mean, 1, 1, "one for x and y"},
      {x.to(at::kInt), row, row, x.to(at::kInt), mean, 1, 1, "input 0 has the type 3"},
      {x, row, row, at::zeros({3, 2}), mean, 1, 1, "output 0 has the shape [3, 2]"},
      {x, row, row, x, at::zeros({2}), 1, 1, "output 1 has the shape [2], expected [2, 1]"},
      {at::zeros({2, 0}), at::zeros({0}), at::zeros({0}), at::zeros({2, 0}), mean, 1, 1,
       "expected [0], which has elements"},
  };
  for (const auto& each : kCalls) {
    NamedCall call("LayerNormV3");
    call.In(each.x).In(each.gamma).In(each.beta).Out(each.y).Out(each.mean).Out(each.mean);
    call.Set("begin_norm_axis", each.norm).Set("begin_params_axis", each.params);
    TakeMessage();
    EXPECT_NE(call.Run(), ACL_SUCCESS);
    const std::string message = TakeMessage();
    EXPECT_NE(message.find(each.part), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace acltape::opapi
