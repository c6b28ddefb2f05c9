// Operators that work element by element, against formulas of doubles.
#include <cmath>

#include "tests/opapi/grid/formula.h"

namespace acltape::opapi::grid {
namespace {

// sin(pi x) near an integer is the rounding of pi x.
const Tolerance kNearZero = {4, 5e-7, false, "pi x is rounded to the type before its sine"};

// fn of the input, in its floating type.
template <typename Fn>
Reference FormulaOfOne(Fn fn) {
  return [fn](const In& in) { return Formula(fn, in[0]).to(FloatFor(in[0].scalar_type())); };
}

// fn of two tensors of one dtype.
template <typename Fn>
Reference FormulaOfTwo(Fn fn) {
  return [fn](const In& in) { return Formula(fn, in[0], in[1]).to(FloatFor(in[0].scalar_type())); };
}

// fn of a tensor and the number after it.
template <typename Fn>
Reference FormulaWithNumber(Fn fn) {
  return [fn](const In& in) {
    const double number = in.real(1);
    return Formula([=](double x) { return fn(x, number); }, in[0])
        .to(FloatFor(in[0].scalar_type()));
  };
}

// fn of gradient, self and the number after them.
template <typename Fn>
Reference GradientWithNumber(Fn fn) {
  return [fn](const In& in) {
    const double number = in.real(2);
    return Formula([=](double dy, double x) { return fn(dy, x, number); }, in[0], in[1])
        .to(in[1].scalar_type());
  };
}

double XTimesLogY(double x, double y) {
  if (std::isnan(y)) return NAN;
  return x == 0 ? 0 : x * std::log(y);
}

double LogOfSumOfPowers(double x, double y) {
  const double most = std::fmax(x, y), least = std::fmin(x, y);
  if (std::isnan(x) || std::isnan(y)) return NAN;
  if (std::isinf(most)) return most;
  return most + std::log2(1 + std::exp2(least - most));
}

double SineCardinal(double x) { return x == 0 ? 1 : std::sin(M_PI * x) / (M_PI * x); }

double FastGeluOf(double x) { return x / (1 + std::exp(-1.702 * x)); }

double FastGeluSlope(double dy, double x) {
  const double s = 1 / (1 + std::exp(-1.702 * x));
  return dy * s * (1 + 1.702 * x * (1 - s));
}

// At the two kinks the slope on the right counts, as in libtorch.
double HardswishSlope(double dy, double x) { return x < -3 ? 0 : x < 3 ? dy * (x / 3 + 0.5) : dy; }

// A gradient and what the forward call read, of one shape; without NaN and infinities, at which the
// documentation says nothing.
Inputs FiniteGradients(Args extra = {}) {
  return [extra](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    Tensors views = source.Views(dtype);
    views.pop_back();
    for (const Tensor& view : views) {
      inputs.push_back({source.Random(view.sizes(), dtype), view});
      inputs.back().insert(inputs.back().end(), extra.begin(), extra.end());
    }
    return inputs;
  };
}

// beta of (x, beta) or (dy, x, beta); NULL stands for 1
double Beta(const In& in, int i) {
  const c10::optional<at::Scalar> beta = in.maybe_number(i);
  return beta ? beta->toDouble() : 1;
}

Reference SwishOf() {
  return [](const In& in) {
    const double beta = Beta(in, 1);
    return Formula([beta](double x) { return x / (1 + std::exp(-beta * x)); }, in[0])
        .to(in[0].scalar_type());
  };
}

Reference SwishSlopeOf() {
  return [](const In& in) {
    const double beta = Beta(in, 2);
    const auto slope = [beta](double dy, double x) {
      const double s = 1 / (1 + std::exp(-beta * x));
      return dy * s * (1 + beta * x * (1 - s));
    };
    return Formula(slope, in[0], in[1]).to(in[1].scalar_type());
  };
}

double SquareOfPositive(double x) { return std::isnan(x) ? NAN : x > 0 ? x * x : 0; }

double SeluSlope(double dy, double y) {
  const double scale = 1.0507009873554804934193349852946;
  const double alpha = 1.6732632423543772848170429916717;
  return y > 0 ? dy * scale : dy * (y + scale * alpha);
}

// (self, lambd, bias)
Tensor ShrunkByHand(const In& in) {
  const double bound = in.real(1), bias = in.real(2);
  return Formula([=](double x) { return x > bound    ? x - bias
                                        : x < -bound ? x + bias
                                                     : 0; }, in[0])
      .to(in[0].scalar_type());
}

Inputs FiniteTensors(Args extra = {}) {
  return [extra](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs = OneTensor(extra)(source, dtype);
    inputs.pop_back();
    return inputs;
  };
}

// Tensors of the dtype, and for float32 complex ones too.
Inputs RealsAndComplex() {
  return [](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs = OneTensor()(source, dtype);
    if (dtype != at::kFloat) return inputs;
    const auto pairs = [&](at::IntArrayRef sizes) {
      return at::complex(source.Random(sizes, dtype), source.Random(sizes, dtype));
    };
    inputs.push_back({pairs({5, 7})});
    inputs.push_back({pairs({6, 4}).t()});
    return inputs;
  };
}

Tensor AngleByHand(const In& in) {
  const Tensor x = in[0];
  if (!x.is_complex()) {
    return Formula([](double a) { return std::isnan(a) ? NAN
                                         : a < 0       ? M_PI
                                                       : 0; }, x)
        .to(FloatFor(x.scalar_type()));
  }
  return Formula([](double a, double b) { return std::atan2(b, a); }, at::real(x), at::imag(x))
      .to(at::kFloat);
}

}  // namespace

Rows ElementFormulaRows() {
  const auto is = [](double sign) {
    return Reference([sign](const In& in) {
      return Formula([=](double x) { return std::isinf(x) && x * sign > 0; }, in[0]).to(at::kBool);
    });
  };
  return {
      {"aclnnAcosh", OneTensor(), kAll, FormulaOfOne([](double x) { return std::acosh(x); }),
       kFormula, 0.5, 20},
      // For integers the result is the rounding error of pi only.
      {"aclnnSinc", FiniteTensors(), kFloats, FormulaOfOne(SineCardinal), kNearZero},
      {"aclnnAngleV2", RealsAndComplex(), kAll, AngleByHand, kFormula},
      {"aclnnReal", RealsAndComplex(), kAll,
       [](const In& in) { return in[0].is_complex() ? at::real(in[0]).clone() : in[0]; }},
      {"aclnnIsPosInf", OneTensor(), kAll, is(1)},
      {"aclnnIsNegInf", OneTensor(), kAll, is(-1)},
      {"aclnnLogAddExp2", TwoTensors({}, false), kFloats, FormulaOfTwo(LogOfSumOfPowers), kFormula},
      {"aclnnXLogYTensor", TwoTensors({}, false), kAll, FormulaOfTwo(XTimesLogY), kFormula, 0, 5},
      {"aclnnXLogYScalarOther", TensorAndNumbers(), kAll, FormulaWithNumber(XTimesLogY), kFormula},
      {"aclnnXLogYScalarSelf",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& view : source.Views(dtype)) {
           inputs.push_back({at::Scalar(inputs.size() % 2 == 0 ? 0.0 : 1.5), view});
         }
         return inputs;
       },
       kAll,
       [](const In& in) {
         const double number = in.real(0);
         return Formula([=](double y) { return XTimesLogY(number, y); }, in[1])
             .to(FloatFor(in[1].scalar_type()));
       },
       kFormula, 0, 5},
  };
}

Rows ActivationFormulaRows() {
  const at::Scalar half(0.5);
  const Dtypes loss_dtypes = {at::kFloat, at::kHalf, at::kBFloat16};
  Rows rows = {
      {"aclnnFastGelu", OneTensor(), kFloats, FormulaOfOne(FastGeluOf), kFormula, -8, 8},
      {"aclnnFastGeluV2", OneTensor(), kFloats, FormulaOfOne(FastGeluOf), kFormula, -8, 8},
      {"aclnnFastGeluBackward",
       FiniteGradients(),
       kFloats,
       FormulaOfTwo(FastGeluSlope),
       {4, 1e-6, false, "a difference of terms that are rounded to the type"}},
      {"aclnnSwish", All({FiniteTensors({at::Scalar(1.5)}), FiniteTensors({Null{}})}), kFloats,
       SwishOf(), kFormula},
      {"aclnnSwishBackward",
       All({FiniteGradients({at::Scalar(1.5)}), FiniteGradients({Null{}})}),
       kFloats,
       SwishSlopeOf(),
       {4, 1e-6, false, "a difference of terms that are rounded to the type"}},
      {"aclnnSquaredRelu", OneTensor(), kFloats, FormulaOfOne(SquareOfPositive), kFormula},
      {"aclnnHeaviside", TwoTensors({}, false), kFloats, FormulaOfTwo([](double x, double value) {
         return x == 0 ? value : x > 0 ? 1 : 0;
       }),
       kFormula},
      {"aclnnShrink", FiniteTensors({half, at::Scalar(0.25)}), kFloats, ShrunkByHand, kFormula},
      {"aclnnSeluBackward",
       FiniteGradients(),
       kFloats,
       FormulaOfTwo(SeluSlope),
       {4, 1e-6, false, "a difference of terms that are rounded to the type"}},
      {"aclnnHardshrink", OneTensor({half}), kFloats,
       FormulaWithNumber([](double x, double l) { return std::fabs(x) <= l ? 0 : x; }), kFormula},
      {"aclnnHardshrinkBackward", FiniteGradients({half}), kFloats,
       GradientWithNumber([](double dy, double x, double l) { return std::fabs(x) <= l ? 0 : dy; }),
       kFormula},
      {"aclnnSoftshrink", FiniteTensors({half}), kFloats, FormulaWithNumber([](double x, double l) {
         return x > l ? x - l : x < -l ? x + l : 0;
       }),
       kFormula},
      {"aclnnSoftshrinkBackward", FiniteGradients({half}), kFloats,
       GradientWithNumber([](double dy, double x, double l) { return std::fabs(x) <= l ? 0 : dy; }),
       kFormula},
      {"aclnnHardswishBackwardV2", FiniteGradients(), kFloats, FormulaOfTwo(HardswishSlope),
       kFormula, -5, 5},
      // (self, target, reduction): reduction 0 none, 1 mean, 2 sum
      {"aclnnSoftMarginLoss",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (int64_t reduction : {0, 1, 2}) {
           const Tensor signs = source.Random({4, 5}, dtype).sign();
           inputs.push_back({source.Random({4, 5}, dtype), signs, reduction});
           inputs.push_back({source.Random({5, 4}, dtype).t(), signs, reduction});
         }
         return inputs;
       },
       loss_dtypes,
       [](const In& in) {
         const Tensor each =
             Formula([](double x, double y) { return std::log1p(std::exp(-x * y)); }, in[0], in[1]);
         const int64_t reduction = in.integer(2);
         return (reduction == 0   ? each
                 : reduction == 1 ? each.mean()
                                  : each.sum())
             .to(in[0].scalar_type());
       },
       kFormula},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
