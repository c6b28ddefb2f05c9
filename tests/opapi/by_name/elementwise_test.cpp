// Functions of single elements by their names, beside the functions of C++.
#include <cmath>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct OfOneElement {
  const char* name;
  double (*function)(double);
  double low, high;
};

const OfOneElement kOfOneElement[] = {
    {"Acosh", [](double x) { return std::acosh(x); }, 1.1, 4},
    {"Asinh", [](double x) { return std::asinh(x); }, -4, 4},
    {"Atanh", [](double x) { return std::atanh(x); }, -0.9, 0.9},
    {"Erfc", [](double x) { return std::erfc(x); }, -2, 2},
    {"Erfinv",
     [](double x) {
       double y = 0;  // by Newton's method
       for (int i = 0; i < 60; ++i) {
         y -= (std::erf(y) - x) / (2 / std::sqrt(M_PI) * std::exp(-y * y));
       }
       return y;
     },
     -0.9, 0.9},
    {"FastGelu",
     [](double x) {
       return x / (1 + std::exp(-1.702 * std::abs(x))) * std::exp(0.851 * (x - std::abs(x)));
     },
     -3, 3},
    {"Gelu",
     [](double x) {
       return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
     },
     -3, 3},
    {"Square", [](double x) { return x * x; }, -3, 3},
    {"Trunc", [](double x) { return std::trunc(x); }, -3, 3},
};

struct OfTwoElements {
  const char* name;
  double (*function)(double, double);
};

const OfTwoElements kOfTwoElements[] = {
    {"Atan2", [](double a, double b) { return std::atan2(a, b); }},
    {"FloorDiv", [](double a, double b) { return std::floor(a / b); }},
    {"FloorMod", [](double a, double b) { return a - std::floor(a / b) * b; }},
    {"Mod", [](double a, double b) { return a - std::trunc(a / b) * b; }},
    {"LogAddExp", [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); }},
    {"Xlogy", [](double a, double b) { return a * std::log(b); }},
    // (result, gradient)
    {"SigmoidGrad", [](double y, double dy) { return dy * y * (1 - y); }},
    {"TanhGrad", [](double y, double dy) { return dy * (1 - y * y); }},
};

template <typename Function>
Tensor Mapped(const Tensor& a, const Tensor& b, Function function) {
  const Tensor first = a.to(at::kDouble).contiguous(), second = b.to(at::kDouble).contiguous();
  const Tensor out = at::empty(a.sizes(), at::kDouble);
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.data_ptr<double>()[i] = function(first.data_ptr<double>()[i], second.data_ptr<double>()[i]);
  }
  return out;
}

TEST(FunctionsByName, FunctionsOfOneElement) {
  at::manual_seed(61);
  for (const OfOneElement& row : kOfOneElement) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{3, 5}, std::vector<int64_t>{}, std::vector<int64_t>{0, 2}}) {
      const Tensor x = Random(shape, at::kFloat, row.low, row.high);
      const Tensor out = at::full(shape, 77.0f);
      NamedCall call(row.name);
      ASSERT_EQ(call.In(x).Out(out).Run(), ACL_SUCCESS) << TakeMessage();
      const Tensor wanted = Mapped(x, x, [&](double a, double) { return row.function(a); });
      EXPECT_TRUE(at::allclose(out.to(at::kDouble), wanted, 1e-5, 1e-5)) << row.name << x << out;
    }
  }
  const Tensor truths = at::zeros({3}, at::kBool);
  NamedCall finite("IsFinite");
  ASSERT_EQ(finite.In(at::tensor({1.0f, INFINITY, NAN})).Out(truths).Run(), ACL_SUCCESS)
      << TakeMessage();
  EXPECT_TRUE(SameBits(truths, at::tensor({1, 0, 0}).to(at::kBool)));
  const Tensor bits = at::zeros({2}, at::kInt);
  NamedCall invert("Invert");
  ASSERT_EQ(invert.In(at::tensor({5, -1}, at::kInt)).Out(bits).Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(bits, at::tensor({-6, 0}, at::kInt)));
}

TEST(FunctionsByName, FunctionsOfTwoElements) {
  at::manual_seed(62);
  const Tensor a = Random({4, 6}, at::kFloat, 0.2, 5), b = Random({4, 6}, at::kFloat, 0.3, 2);
  for (const OfTwoElements& row : kOfTwoElements) {
    const Tensor out = at::full({4, 6}, 77.0f);
    NamedCall call(row.name);
    ASSERT_EQ(call.In(a).In(b).Out(out).Run(), ACL_SUCCESS) << TakeMessage();
    const Tensor wanted = Mapped(a, b, row.function);
    EXPECT_TRUE(at::allclose(out.to(at::kDouble), wanted, 1e-5, 1e-5)) << row.name << out << wanted;
  }
  const Tensor first = at::tensor({12, 7, -1}, at::kInt), second = at::tensor({10, 1, 6}, at::kInt);
  for (const auto& [name, results] :
       {std::pair{"BitwiseAnd", std::array{8, 1, 6}}, std::pair{"BitwiseOr", std::array{14, 7, -1}},
        std::pair{"BitwiseXor", std::array{6, 6, -7}}}) {
    const Tensor bits = at::zeros({3}, at::kInt);
    NamedCall call(name);
    ASSERT_EQ(call.In(first).In(second).Out(bits).Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(SameBits(bits, at::tensor({results[0], results[1], results[2]}, at::kInt))) << name;
  }
}

TEST(FunctionsByName, GradientsOfActivations) {
  at::manual_seed(63);
  const Tensor x = Random({4, 6}), gradient = Random({4, 6});
  constexpr double kStep = 1e-6;
  for (const std::string name : {"FastGelu", "Gelu"}) {
    const Tensor out = at::full({4, 6}, 77.0f);
    NamedCall call((name + "Grad").c_str());
    call.In(gradient).In(x);
    if (name == "Gelu") call.In(at::full({4, 6}, 5.0f));  // the result
    ASSERT_EQ(call.Out(out).Run(), ACL_SUCCESS) << TakeMessage();
    const auto* row = std::find_if(std::begin(kOfOneElement), std::end(kOfOneElement),
                                   [&](const auto& of) { return of.name == name; });
    const Tensor wanted = Mapped(gradient, x, [&](double g, double value) {
      return g * (row->function(value + kStep) - row->function(value - kStep)) / (2 * kStep);
    });
    EXPECT_TRUE(at::allclose(out.to(at::kDouble), wanted, 1e-4, 1e-4)) << name << out << wanted;
  }
  for (double threshold : {0.0, 0.5}) {
    const Tensor out = at::full({4, 6}, 77.0f);
    NamedCall call(threshold == 0 ? "ReluGrad" : "ThresholdGradV2D");
    call.In(gradient).In(x).Out(out);
    if (threshold != 0) call.Set("threshold", static_cast<float>(threshold));
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    const Tensor wanted =
        Mapped(gradient, x, [&](double g, double value) { return value > threshold ? g : 0; });
    EXPECT_TRUE(at::allclose(out.to(at::kDouble), wanted, 0, 0)) << out << wanted;
  }
}

TEST(FunctionsByName, ActivationsWithASlope) {
  at::manual_seed(64);
  const Tensor x = Random({4, 6}), gradient = Random({4, 6}), out = at::full({4, 6}, 77.0f);
  NamedCall call("LeakyRelu");
  ASSERT_EQ(call.In(x).Out(out).Set("negative_slope", 0.25f).Run(), ACL_SUCCESS) << TakeMessage();
  const auto near = [&](const Tensor& wanted) {
    return at::allclose(out.to(at::kDouble), wanted, 1e-5, 1e-5);
  };
  EXPECT_TRUE(near(Mapped(x, x, [](double a, double) { return a > 0 ? a : a / 4; })));
  NamedCall back("LeakyReluGrad");
  back.In(gradient).In(x).Out(out).Set("negative_slope", 0.25f);
  ASSERT_EQ(back.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(near(Mapped(gradient, x, [](double g, double a) { return a > 0 ? g : g / 4; })));
  NamedCall hard("HardSwish");
  const Tensor wide = x * 3;
  ASSERT_EQ(hard.In(wide).Out(out).Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(near(
      Mapped(wide, wide, [](double a, double) { return a * std::clamp(a + 3, 0.0, 6.0) / 6; })));
  NamedCall hard_back("HardSwishGrad");
  ASSERT_EQ(hard_back.In(gradient).In(wide).Out(out).Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(near(Mapped(gradient, wide, [](double g, double a) {
    return a <= -3 ? 0 : a >= 3 ? g : g * (a / 3 + 0.5);
  })));
  NamedCall silu("SiluGrad");
  ASSERT_EQ(silu.In(gradient).In(x).Out(out).Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(near(Mapped(gradient, x, [](double g, double a) {
    const double s = 1 / (1 + std::exp(-a));
    return g * s * (1 + a * (1 - s));
  })));
}

TEST(FunctionsByName, OtherTypesThanOfTheFirstInputAreRefused) {
  for (const char* name : {"Atan2", "SigmoidGrad"}) {
    TakeMessage();
    NamedCall call(name);
    call.In(at::ones({2})).In(at::ones({2}, at::kHalf)).Out(at::empty({2}));
    EXPECT_NE(call.Run(), ACL_SUCCESS);
    EXPECT_NE(TakeMessage().find("the soft device takes one type"), std::string::npos);
  }
}

}  // namespace
}  // namespace acltape::opapi
