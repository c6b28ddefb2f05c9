// Operators of tensor lists: the library's operator on each entry, or a formula of doubles.
#include <cmath>

#include "tests/opapi/grid/formula.h"

namespace acltape::opapi::grid {
namespace {

Tensors List(Source& source, at::ScalarType dtype) {
  return {source.Random({5, 7}, dtype), source.Random({3, 4}, dtype).t(), source.Random({}, dtype),
          source.Random({0, 3}, dtype), source.Random({40}, dtype).slice(0, 3, 37, 2)};
}

Tensors ListLike(Source& source, const Tensors& model) {
  Tensors list;
  for (const Tensor& tensor : model) {
    list.push_back(source.Random(tensor.sizes(), tensor.scalar_type(), 0.5, 3));
  }
  return list;
}

// `count` lists of the same shapes, then `extra`.
Inputs Lists(int count, Args extra = {}) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const Tensors first = List(source, dtype);
      Args args = {first};
      for (int i = 1; i < count; ++i) args.push_back(ListLike(source, first));
      args.insert(args.end(), extra.begin(), extra.end());
      inputs.push_back(args);
    }
    return inputs;
  };
}

// fn(i, in): entry i of the result.
template <typename Fn>
Reference Each(Fn fn) {
  return [fn](const In& in) {
    Tensors results;
    for (size_t i = 0; i < in.list(0).size(); ++i) results.push_back(fn(i, in));
    return results;
  };
}

// fn(x), with halves in float32: the library rounds a product and a sum of halves one by one.
template <typename Fn>
Tensor RoundedOnce(const Tensor& x, Fn fn) {
  const at::ScalarType dtype = x.scalar_type();
  return dtype == at::kHalf || dtype == at::kBFloat16 ? fn(x.to(at::kFloat)).to(dtype) : fn(x);
}

// One list, then a tensor of one number in [low, high).
Inputs ListAndTensor(double low = 1, double high = 3) {
  return [=](Source& source, at::ScalarType dtype) {
    return std::vector<Args>{{List(source, dtype), source.Random({1}, dtype, low, high)},
                             {List(source, dtype), source.Random({1}, dtype, low, high)}};
  };
}

// `count` lists of the same shapes, then a tensor of `numbers` numbers.
Inputs ListsAndTensor(int count, int64_t numbers) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs = Lists(count)(source, dtype);
    for (Args& args : inputs) args.push_back(source.Random({numbers}, dtype, 1, 3));
    return inputs;
  };
}

// fn(x, ...) of entry i of the lists at the positions, rounded once to their dtype.
template <typename Fn, typename... Position>
Reference EachOf(Fn fn, Position... positions) {
  return Each([=](size_t i, const In& in) {
    return Formula(fn, in.list(positions)[i]...).to(in.list(0)[i].scalar_type());
  });
}

struct Function {
  const char* name;
  double (*formula)(double);
  double low = -3, high = 3;
};

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

constexpr Function kFunctions[] = {
    {"aclnnForeachAcos", std::acos, -1, 1}, {"aclnnForeachAsin", std::asin, -1, 1},
    {"aclnnForeachAtan", std::atan},        {"aclnnForeachCos", std::cos},
    {"aclnnForeachCosh", std::cosh},        {"aclnnForeachErf", std::erf},
    {"aclnnForeachErfc", std::erfc},        {"aclnnForeachExpm1", std::expm1},
    {"aclnnForeachLog", std::log},          {"aclnnForeachLog10", std::log10},
    {"aclnnForeachLog1p", std::log1p},      {"aclnnForeachLog2", std::log2},
    {"aclnnForeachSigmoid", Sigmoid},       {"aclnnForeachSign", Sign},
    {"aclnnForeachSin", std::sin},          {"aclnnForeachSinh", std::sinh},
    {"aclnnForeachTan", std::tan, -1, 1},   {"aclnnForeachTanh", std::tanh},
};

// The modes of aclnnForeachRoundOffNumber, and what torch_npu passes for the fraction (7).
double Rounded(double x, int64_t mode) {
  switch (mode) {
    case 1:
      return std::nearbyint(x);
    case 2:
      return std::floor(x);
    case 3:
      return std::ceil(x);
    case 4:
      return std::round(x);
    case 5:
      return std::trunc(x);
    case 6:
      return x == std::floor(x) ? x : 2 * std::floor(x / 2) + 1;
    default:
      return x - std::trunc(x);
  }
}

// Each mode, of numbers half-way between integers too; the mode in a tensor of int8 or a number.
Inputs RoundingModes(bool in_tensor) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (int64_t mode : {1, 2, 3, 4, 5, 6, 7}) {
      Tensors list = List(source, dtype);
      list.push_back(at::arange(-3.5, 4, 0.5, at::kDouble).to(dtype));
      if (in_tensor) {
        inputs.push_back({list, at::full({1}, mode, at::kChar)});
      } else {
        inputs.push_back({list, at::Scalar(mode)});
      }
    }
    return inputs;
  };
}

Rows ListFormulaRows() {
  // Lists of integers as well.
  const Dtypes numbers = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt};
  const at::Scalar two(2), part(0.75);
  const std::vector<at::Scalar> five = {1.5, 2.0, 3.0, 4.0, 0.5};
  const auto add = [](double x, double y, double alpha) { return x + alpha * y; };
  const auto sub = [](double x, double y, double alpha) { return x - alpha * y; };
  const auto addcmul = [](double x, double y, double z, double by) { return x + by * y * z; };
  const auto addcdiv = [](double x, double y, double z, double by) { return x + by * y / z; };
  const auto least = [](double x, double y) { return std::fmin(x, y); };
  const auto greatest = [](double x, double y) { return std::fmax(x, y); };
  const auto power = [](double x, double y) { return std::pow(x, y); };

  // fn(list entries..., number in the tensor at `at`): its element i, or its only one.
  const auto with_tensor = [](auto fn, int index, bool each, auto... lists) {
    return Reference(Each([=](size_t i, const In& in) {
      const double number =
          in[index].flatten()[each ? static_cast<int64_t>(i) : 0].template item().toDouble();
      return Formula([=](auto... x) { return fn(x..., number); }, in.list(lists)[i]...)
          .to(in.list(0)[i].scalar_type());
    }));
  };
  // fn(x, number): one number for all entries, or one for each.
  const auto with_number = [](auto fn) {
    return Reference(Each([=](size_t i, const In& in) {
      const double number = in.number(1).toDouble();
      return Formula([=](double x) { return fn(x, number); }, in.list(0)[i])
          .to(in.list(0)[i].scalar_type());
    }));
  };
  const auto with_numbers = [](auto fn) {
    return Reference(Each([=](size_t i, const In& in) {
      const double number = in.numbers(1)[i].toDouble();
      return Formula([=](double x) { return fn(x, number); }, in.list(0)[i])
          .to(in.list(0)[i].scalar_type());
    }));
  };
  const auto minus = [](double x, double y) { return x - y; };
  const auto over = [](double x, double y) { return x / y; };

  Rows rows = {
      {"aclnnForeachAddList", ListsAndTensor(2, 1), kFloats, with_tensor(add, 2, false, 0, 1)},
      {"aclnnForeachSubList", ListsAndTensor(2, 1), kFloats, with_tensor(sub, 2, false, 0, 1)},
      {"aclnnForeachAddcmulScalar", ListsAndTensor(3, 1), kFloats,
       with_tensor(addcmul, 3, false, 0, 1, 2)},
      {"aclnnForeachAddcmulScalarList", ListsAndTensor(3, 5), kFloats,
       with_tensor(addcmul, 3, true, 0, 1, 2)},
      {"aclnnForeachAddcmulList", ListsAndTensor(3, 5), kFloats,
       with_tensor(addcmul, 3, true, 0, 1, 2)},
      {"aclnnForeachAddcdivList", ListsAndTensor(3, 5), kFloats,
       with_tensor(addcdiv, 3, true, 0, 1, 2)},
      {"aclnnForeachAddcdivScalar", ListsAndTensor(3, 1), kFloats,
       with_tensor(addcdiv, 3, false, 0, 1, 2)},
      {"aclnnForeachAddcdivScalarList", ListsAndTensor(3, 5), kFloats,
       with_tensor(addcdiv, 3, true, 0, 1, 2)},
      {"aclnnForeachSubScalar", ListAndTensor(), kFloats, with_tensor(minus, 1, false, 0)},
      {"aclnnForeachSubScalarList", Lists(1, {five}), kFloats, with_numbers(minus)},
      {"aclnnForeachDivScalar", ListAndTensor(), kFloats, with_tensor(over, 1, false, 0)},
      {"aclnnForeachMinimumList", Lists(2), numbers, EachOf(least, 0, 1)},
      {"aclnnForeachMinimumScalar", ListAndTensor(-1, 1), numbers, with_tensor(least, 1, false, 0)},
      {"aclnnForeachMinimumScalarList", Lists(1, {five}), kFloats, with_numbers(least)},
      {"aclnnForeachMaximumScalar", ListAndTensor(-1, 1), numbers,
       with_tensor(greatest, 1, false, 0)},
      {"aclnnForeachMaximumScalarV2", Lists(1, {two}), numbers, with_number(greatest)},
      {"aclnnForeachMaximumScalarList", Lists(1, {five}), kFloats, with_numbers(greatest)},
      {"aclnnForeachPowList", Lists(2), kFloats, EachOf(power, 0, 1)},
      {"aclnnForeachPowScalar", ListAndTensor(), kFloats, with_tensor(power, 1, false, 0)},
      {"aclnnForeachPowScalarList", Lists(1, {five}), kFloats, with_numbers(power)},
      {"aclnnForeachPowScalarAndTensor",
       [=](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{two, List(source, dtype)}, {part, List(source, dtype)}};
       },
       kFloats,
       [](const In& in) {
         Tensors results;
         const double base = in.number(0).toDouble();
         for (const Tensor& x : in.list(1)) {
           results.push_back(Formula([=](double exponent) { return std::pow(base, exponent); }, x)
                                 .to(x.scalar_type()));
         }
         return results;
       }},
      {"aclnnForeachLerpList", Lists(3), kFloats,
       EachOf([](double x, double y, double weight) { return x + weight * (y - x); }, 0, 1, 2)},
      {"aclnnForeachRoundOffNumber", RoundingModes(true), kFloats,
       with_tensor([](double x, double mode) { return Rounded(x, std::lround(mode)); }, 1, false,
                   0)},
      {"aclnnForeachRoundOffNumberV2", RoundingModes(false), kFloats,
       with_number([](double x, double mode) { return Rounded(x, std::lround(mode)); })},
  };
  for (const Function& function : kFunctions) {
    rows.push_back({function.name, Lists(1), kFloats, EachOf(function.formula, 0), kFormula,
                    function.low, function.high});
  }
  for (Row& row : rows) row.tolerance = {4, 1e-6, false, kFormula.reason};
  return rows;
}

}  // namespace

Rows ForeachRows() {
  const at::Scalar two(2);
  const std::vector<at::Scalar> five = {1.5, 2.0, 3.0, 4.0, 0.5};
  const Tolerance vector_code = {4, 0, true,
                                 "vector and scalar code of libtorch round differently"};
  const auto scalar_tensor = [](Source& source, at::ScalarType dtype) {
    return std::vector<Args>{{List(source, dtype), source.Random({1}, dtype, 1, 3)}};
  };
  Rows rows = {
      {"aclnnForeachAddScalar", scalar_tensor, kFloats,
       Each([](size_t i, const In& in) { return at::add(in.list(0)[i], in[1].reshape({})); })},
      {"aclnnForeachMulScalar", scalar_tensor, kFloats,
       Each([](size_t i, const In& in) { return at::mul(in.list(0)[i], in[1].reshape({})); })},
      {"aclnnForeachAddScalarV2", Lists(1, {two}), kNumbers,
       Each([](size_t i, const In& in) { return at::add(in.list(0)[i], in.number(1)); })},
      {"aclnnForeachSubScalarV2", Lists(1, {two}), kNumbers,
       Each([](size_t i, const In& in) { return at::sub(in.list(0)[i], in.number(1)); })},
      {"aclnnForeachMulScalarV2", Lists(1, {two}), kNumbers,
       Each([](size_t i, const In& in) { return at::mul(in.list(0)[i], in.number(1)); })},
      {"aclnnForeachDivScalarV2", Lists(1, {two}), kFloats,
       Each([](size_t i, const In& in) { return at::div(in.list(0)[i], in.number(1)); })},
      {"aclnnForeachAddScalarList", Lists(1, {five}), kFloats,
       Each([](size_t i, const In& in) { return at::add(in.list(0)[i], in.numbers(1)[i]); })},
      {"aclnnForeachMulScalarList", Lists(1, {five}), kFloats,
       Each([](size_t i, const In& in) { return at::mul(in.list(0)[i], in.numbers(1)[i]); })},
      {"aclnnForeachDivScalarList", Lists(1, {five}), kFloats,
       Each([](size_t i, const In& in) { return at::div(in.list(0)[i], in.numbers(1)[i]); })},
      {"aclnnForeachAddListV2", Lists(2, {two}), kNumbers, Each([](size_t i, const In& in) {
         return RoundedOnce(in.list(0)[i], [&](const Tensor& x) {
           return at::add(x, in.list(1)[i].to(x.scalar_type()), in.number(2));
         });
       })},
      {"aclnnForeachSubListV2", Lists(2, {two}), kNumbers, Each([](size_t i, const In& in) {
         return RoundedOnce(in.list(0)[i], [&](const Tensor& x) {
           return at::sub(x, in.list(1)[i].to(x.scalar_type()), in.number(2));
         });
       })},
      {"aclnnForeachMulList", Lists(2), kNumbers,
       Each([](size_t i, const In& in) { return at::mul(in.list(0)[i], in.list(1)[i]); })},
      {"aclnnForeachDivList", Lists(2), kFloats,
       Each([](size_t i, const In& in) { return at::div(in.list(0)[i], in.list(1)[i]); })},
      {"aclnnForeachMaximumList", Lists(2), kNumbers,
       Each([](size_t i, const In& in) { return at::maximum(in.list(0)[i], in.list(1)[i]); })},
      {"aclnnForeachMinimumScalarV2", Lists(1, {two}), kFloats, Each([](size_t i, const In& in) {
         return at::minimum(in.list(0)[i], at::scalar_tensor(in.number(1)).to(in.list(0)[i]));
       })},
      {"aclnnForeachAddcmulScalarV2", Lists(3, {two}), kFloats, Each([](size_t i, const In& in) {
         return at::addcmul(in.list(0)[i], in.list(1)[i], in.list(2)[i], in.number(3));
       })},
      {"aclnnForeachAddcdivScalarV2", Lists(3, {two}), kFloats, Each([](size_t i, const In& in) {
         return at::addcdiv(in.list(0)[i], in.list(1)[i], in.list(2)[i], in.number(3));
       })},
      {"aclnnForeachLerpScalar", Lists(2, {at::Scalar(0.25)}), kFloats,
       Each([](size_t i, const In& in) {
         return at::lerp(in.list(0)[i], in.list(1)[i], in.number(2));
       })},
      {"aclnnForeachSqrt", Lists(1), kFloats,
       Each([](size_t i, const In& in) { return at::sqrt(in.list(0)[i]); })},
      {"aclnnForeachNeg", Lists(1), kNumbers,
       Each([](size_t i, const In& in) { return at::neg(in.list(0)[i]); })},
      {"aclnnForeachAbs", Lists(1), kNumbers,
       Each([](size_t i, const In& in) { return at::abs(in.list(0)[i]); })},
      {"aclnnForeachExp", Lists(1), kFloats,
       Each([](size_t i, const In& in) { return at::exp(in.list(0)[i]); }), vector_code},
      {"aclnnForeachReciprocal", Lists(1), kFloats,
       Each([](size_t i, const In& in) { return at::reciprocal(in.list(0)[i]); })},
      {"aclnnForeachPowScalarV2", Lists(1, {two}), kFloats,
       Each([](size_t i, const In& in) { return at::pow(in.list(0)[i], in.number(1)); })},
      {"aclnnForeachCopy", Lists(1), kAll,
       Each([](size_t i, const In& in) { return in.list(0)[i].clone(); })},
      {"aclnnForeachZeroInplace", Lists(1), kAll,
       Each([](size_t i, const In& in) { return at::zeros_like(in.list(0)[i]); })},
      {"aclnnForeachNorm",
       Lists(1, {two}),
       {at::kFloat, at::kDouble},
       Each([](size_t i, const In& in) {
         return at::linalg_vector_norm(in.list(0)[i], in.number(1));
       })},
  };
  for (Row& row : ListFormulaRows()) rows.push_back(std::move(row));
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
