// The gradient of a layer norm by its name, beside the steps of the product's formula in doubles.
#include <cmath>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct NormInputs {
  Tensor dy, x, variance, mean, gamma;
};

NormInputs RandomNorm(at::IntArrayRef shape, int64_t normed, at::ScalarType dtype) {
  std::vector<int64_t> rows = shape.vec();
  for (size_t i = rows.size() - normed; i < rows.size(); ++i) rows[i] = 1;
  return {Random(shape, dtype), Random(shape, dtype), Random(rows, dtype, 0.5, 2),
          Random(rows, dtype), Random(shape.slice(shape.size() - normed), dtype)};
}

// The gradient for the variance and that for the mean come first, as in the product's description.
std::array<Tensor, 3> NormGradients(const NormInputs& given) {
  const int64_t width = given.gamma.numel(), rows = given.x.numel() / width;
  const auto numbers = [](const Tensor& of) {
    const Tensor wide = of.to(at::kDouble).contiguous();
    return std::vector<double>(wide.data_ptr<double>(), wide.data_ptr<double>() + wide.numel());
  };
  const std::vector<double> dy = numbers(given.dy), x = numbers(given.x);
  const std::vector<double> variance = numbers(given.variance), mean = numbers(given.mean);
  const std::vector<double> gamma = numbers(given.gamma);
  std::array<Tensor, 3> out{at::zeros({rows, width}, at::kDouble), at::zeros({width}, at::kDouble),
                            at::zeros({width}, at::kDouble)};
  for (int64_t row = 0; row < rows; ++row) {
    const double v = variance[row] + 1e-12, root = std::pow(v, -0.5);
    double of_variance = 0, of_mean = 0, distances = 0;
    for (int64_t i = 0; i < width; ++i) {
      const double distance = x[row * width + i] - mean[row];
      const double scaled = dy[row * width + i] * gamma[i];
      of_variance += -0.5 * scaled * distance * std::pow(v, -1.5);
      of_mean -= scaled * root;
      distances += distance;
    }
    const auto m = static_cast<double>(width);
    of_mean += of_variance / m * -2 * distances;
    for (int64_t i = 0; i < width; ++i) {
      const double distance = x[row * width + i] - mean[row], g = dy[row * width + i];
      out[0][row][i] = g * gamma[i] * root + of_variance * 2 / m * distance + of_mean / m;
      out[1][i] += g * distance * root;
      out[2][i] += g;
    }
  }
  return out;
}

aclError RunNormGradient(const NormInputs& given, const std::array<Tensor, 3>& out) {
  NamedCall call("LayerNormGrad");
  call.In(given.dy).In(given.x).In(given.variance).In(given.mean).In(given.gamma);
  return call.Out(out[0]).Out(out[1]).Out(out[2]).Run();
}

// The mean and the variance of each row of x.
void Measure(NormInputs* given) {
  const int64_t width = given->gamma.numel();
  const Tensor rows = given->x.to(at::kDouble).view({-1, width});
  given->mean = rows.mean(1).view(given->mean.sizes()).to(given->x.scalar_type());
  given->variance = rows.var(1, false).view(given->mean.sizes()).to(given->x.scalar_type());
}

TEST(LayerNormGradientByName, EachRowHasAMeanAndAVariance) {
  at::manual_seed(31);
  const std::vector<std::pair<std::vector<int64_t>, int64_t>> shapes = {
      {{3, 5}, 1}, {{2, 3, 4}, 2}, {{2, 3, 4}, 1}, {{7}, 1}, {{1, 1}, 1}};
  for (const auto& [shape, normed] : shapes) {
    for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
      NormInputs given = RandomNorm(shape, normed, dtype);
      if (given.gamma.numel() > 1) Measure(&given);
      const std::array<Tensor, 3> wanted = NormGradients(given);
      const std::array<Tensor, 3> out{at::full(shape, 77, dtype),
                                      at::full(given.gamma.sizes(), 77, dtype),
                                      at::full(given.gamma.sizes(), 77, dtype)};
      ASSERT_EQ(RunNormGradient(given, out), ACL_SUCCESS) << TakeMessage();
      const double tolerance = dtype == at::kFloat ? 1e-4 : dtype == at::kHalf ? 2e-2 : 0.1;
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(at::allclose(out[i].to(at::kDouble), wanted[i].view(out[i].sizes()), tolerance,
                                 tolerance))
            << i << out[i] << wanted[i];
      }
    }
  }
}

TEST(LayerNormGradientByName, TheNormGivesAMeanAndAVariance) {
  at::manual_seed(32);
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const Tensor x = Random({2, 3, 4}, dtype), gamma = Random({3, 4}, dtype);
    const Tensor beta = Random({3, 4}, dtype), y = at::full({2, 3, 4}, 77, dtype);
    const Tensor mean = at::full({2, 1, 1}, 77, dtype), variance = at::full({2, 1, 1}, 77, dtype);
    NamedCall call("LayerNorm");
    call.In(x).In(gamma).In(beta).Out(y).Out(mean).Out(variance).Set("epsilon", 0.5f);
    call.Set("begin_norm_axis", int64_t{1}).Set("begin_params_axis", int64_t{-2});
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    const double tolerance = dtype == at::kFloat ? 1e-5 : dtype == at::kHalf ? 1e-2 : 0.1;
    for (int64_t row = 0; row < 2; ++row) {
      const Tensor of_row = x[row].to(at::kDouble).view({-1}).contiguous();
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < 12; ++i) sum += of_row[i].item<double>();
      for (int64_t i = 0; i < 12; ++i) {
        squares += std::pow(of_row[i].item<double>() - sum / 12, 2);
      }
      EXPECT_NEAR(mean.view({-1})[row].item<double>(), sum / 12, tolerance);
      EXPECT_NEAR(variance.view({-1})[row].item<double>(), squares / 12, tolerance);
      for (int64_t i = 0; i < 12; ++i) {
        const double normed = (of_row[i].item<double>() - sum / 12) / std::sqrt(squares / 12 + 0.5);
        const double wanted =
            normed * gamma.view({-1})[i].item<double>() + beta.view({-1})[i].item<double>();
        EXPECT_NEAR(y[row].view({-1})[i].item<double>(), wanted, tolerance);
      }
    }
  }
  const Tensor x = Random({2, 3}), row = at::ones({3}), means = at::empty({2, 1});
  TakeMessage();
  NamedCall wrong("LayerNorm");
  wrong.In(x).In(row).In(row).Out(x).Out(means).Out(means).Set("begin_norm_axis", int64_t{1});
  EXPECT_NE(wrong.Run(), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("begin_norm_axis is 1 and begin_params_axis 0"), std::string::npos);
  NamedCall other("LayerNorm");
  other.In(x).In(at::ones({2})).In(row).Out(x).Out(means).Out(means);
  other.Set("begin_norm_axis", int64_t{1}).Set("begin_params_axis", int64_t{1});
  EXPECT_NE(other.Run(), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("input 1 has the shape [2], expected [3]"), std::string::npos);
}

TEST(LayerNormGradientByName, NoRowsAndFormsThatAreRefused) {
  const Tensor zeros = at::zeros({4});
  const std::array<Tensor, 3> out{at::empty({0, 4}), at::full({4}, 77.0f), at::full({4}, 77.0f)};
  const NormInputs none{at::empty({0, 4}), at::empty({0, 4}), at::empty({0, 1}), at::empty({0, 1}),
                        at::ones({4})};
  ASSERT_EQ(RunNormGradient(none, out), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out[1], zeros) && SameBits(out[2], zeros));
  const auto refuse = [](NormInputs given, const std::array<Tensor, 3>& to, const char* part) {
    TakeMessage();
    EXPECT_NE(RunNormGradient(given, to), ACL_SUCCESS);
    const std::string message = TakeMessage();
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const NormInputs given = RandomNorm({2, 4}, 1, at::kFloat);
  const std::array<Tensor, 3> fits{at::empty({2, 4}), at::empty({4}), at::empty({4})};
  NormInputs wrong = given;
  wrong.gamma = at::ones({2});
  refuse(wrong, fits, "expected dy as x, gamma as the last dims of x");
  wrong = given;
  wrong.variance = at::ones({2, 4});
  refuse(wrong, fits, "a variance and a mean for each row");
  refuse(given, {at::empty({2, 4}), at::empty({4}), at::empty({2})}, "output 2 has the shape [2]");
  wrong = given;
  wrong.mean = at::zeros({2, 1}, at::kInt);
  refuse(wrong, fits, "tensor 3 has the type 3");
}

}  // namespace
}  // namespace acltape::opapi
