// Elementwise arithmetic, comparisons, logic and bits.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

#define ONE(fn) [](const In& in) { return at::fn(in[0]); }
#define TWO(fn) [](const In& in) { return at::fn(in[0], in[1]); }
#define NUMBER(fn) [](const In& in) { return at::fn(in[0], in.number(1)); }

// libtorch has vector code and scalar code for these, which round differently; which of the two
// runs depends on the strides of input and output together.
const Tolerance kRounding = {4, 0, true, "vector and scalar code of libtorch round differently"};

// Among zeros of both signs, vector code and scalar code choose zeros of different signs.
const Tolerance kZeroSigns = {1, 0, true, "vector and scalar code of libtorch take another zero"};

// Where a division by zero or the least integer by -1 stops the program, the operands are positive.
Inputs PositivePairs(Args extra = {}) {
  return [extra](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    std::vector<std::vector<int64_t>> shapes[] = {
        {{5, 7}, {7}}, {{}, {3}}, {{3, 1, 4}, {2, 1}}, {{0, 4}, {1}}, {{33}, {33}}};
    for (const auto& shape : shapes) {
      Args args = {source.Random(shape[0], dtype, 0, 100), source.Random(shape[1], dtype, 1, 9)};
      args.insert(args.end(), extra.begin(), extra.end());
      inputs.push_back(args);
    }
    Args args = {source.Random({6, 9}, dtype, 0, 100).t(),
                 source.Random({18, 9}, dtype, 1, 9).slice(0, 0, 18, 2)};
    args.insert(args.end(), extra.begin(), extra.end());
    inputs.push_back(args);
    return inputs;
  };
}

Inputs PositiveAndNumber(Args extra = {}) {
  return [extra](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const auto& sizes : std::vector<std::vector<int64_t>>{{}, {37}, {0, 3}, {4, 6, 5}}) {
      for (const at::Scalar& number : {at::Scalar(3), at::Scalar(2.5)}) {
        Args args = {source.Random(sizes, dtype, 0, 100), number};
        args.insert(args.end(), extra.begin(), extra.end());
        inputs.push_back(args);
      }
    }
    inputs.push_back({source.Random({6, 9}, dtype, 0, 100).t(), at::Scalar(3)});
    inputs.back().insert(inputs.back().end(), extra.begin(), extra.end());
    return inputs;
  };
}

Rows Functions() {
  return {
      {"aclnnAbs", OneTensor(), kNumbers, ONE(abs)},
      {"aclnnNeg", OneTensor(), kNumbers, ONE(neg)},
      {"aclnnSign", OneTensor(), kAll, ONE(sign)},
      {"aclnnSignbit", OneTensor(), kNumbers, ONE(signbit)},
      {"aclnnIsFinite", OneTensor(), kAll, ONE(isfinite)},
      {"aclnnIsInf", OneTensor(), kAll, ONE(isinf)},
      {"aclnnLogicalNot", OneTensor(), kAll, ONE(logical_not)},
      {"aclnnBitwiseNot", OneTensor(), kAll, ONE(bitwise_not)},
      {"aclnnCeil", OneTensor(), kNumbers, ONE(ceil)},
      {"aclnnFloor", OneTensor(), kNumbers, ONE(floor)},
      {"aclnnRound", OneTensor(), kNumbers, ONE(round)},
      {"aclnnTrunc", OneTensor(), kNumbers, ONE(trunc)},
      {"aclnnFrac", OneTensor(), kFloats, ONE(frac)},
      {"aclnnReciprocal", OneTensor(), kAll, ONE(reciprocal)},
      {"aclnnSqrt", OneTensor(), kAll, ONE(sqrt)},
      {"aclnnRsqrt", OneTensor(), kAll, ONE(rsqrt), kRounding},
      {"aclnnExp", OneTensor(), kAll, ONE(exp), kRounding, -90, 90},
      {"aclnnExp2", OneTensor(), kAll, ONE(exp2), kRounding},
      {"aclnnExpm1", OneTensor(), kAll, ONE(expm1), kRounding},
      {"aclnnLog", OneTensor(), kAll, ONE(log), kRounding},
      {"aclnnLog10", OneTensor(), kAll, ONE(log10), kRounding},
      {"aclnnLog1p", OneTensor(), kAll, ONE(log1p), kRounding},
      {"aclnnLog2", OneTensor(), kAll, ONE(log2), kRounding},
      {"aclnnSin", OneTensor(), kAll, ONE(sin), kRounding, -100, 100},
      {"aclnnCos", OneTensor(), kAll, ONE(cos), kRounding, -100, 100},
      {"aclnnTan", OneTensor(), kAll, ONE(tan), kRounding},
      {"aclnnSinh", OneTensor(), kAll, ONE(sinh), kRounding},
      {"aclnnCosh", OneTensor(), kAll, ONE(cosh), kRounding},
      {"aclnnTanh", OneTensor(), kAll, ONE(tanh), kRounding},
      {"aclnnAsin", OneTensor(), kAll, ONE(asin), kRounding, -1, 1},
      {"aclnnAcos", OneTensor(), kAll, ONE(acos), kRounding, -1, 1},
      {"aclnnAtan", OneTensor(), kAll, ONE(atan), kRounding},
      {"aclnnAsinh", OneTensor(), kAll, ONE(asinh), kRounding},
      {"aclnnAtanh", OneTensor(), kAll, ONE(atanh), kRounding, -1, 1},
      {"aclnnErf", OneTensor(), kAll, ONE(erf), kRounding},
      {"aclnnErfc", OneTensor(), kAll, ONE(erfc), kRounding},
      {"aclnnErfinv", OneTensor(), kAll, ONE(erfinv), kRounding, -1, 1},
      {"aclnnDigamma", OneTensor(), kAll, ONE(digamma), kRounding, 0.1, 5},
      {"aclnnLgamma", OneTensor(), kAll, ONE(lgamma), kRounding, 0.1, 5},
      {"aclnnRoundDecimals", OneTensor({2}), kFloats,
       [](const In& in) { return at::round(in[0], in.integer(1)); }},
      {"aclnnNanToNum", OneTensor({1.5, 7.0, -7.0}), kAll,
       [](const In& in) { return at::nan_to_num(in[0], in.real(1), in.real(2), in.real(3)); }},
  };
}

Rows Arithmetic() {
  const auto subtract = [](const In& in) { return at::sub(in[0], in[1], in.number(2)); };
  const auto reverse = [](const In& in) { return at::rsub(in[0], in[1], in.number(2)); };
  const auto mode = [](const In& in) -> c10::optional<c10::string_view> {
    if (in.integer(2) == 0) return c10::nullopt;
    return in.integer(2) == 1 ? "trunc" : "floor";
  };
  const auto divide = [mode](const In& in) { return at::div(in[0], in[1], mode(in)); };
  const auto divide_number = [mode](const In& in) {
    return at::div(in[0], in.number(1), mode(in));
  };
  // A fractional factor of integers is refused.
  const at::Scalar part(0.5);
  const Inputs tensors = All({TwoTensors({2}), TwoTensors({part}, false)});
  const Inputs numbers = All({TensorAndNumbers({2}), TensorAndNumbers({part})});
  return {
      {"aclnnAdd", tensors, kAll, [](const In& in) { return at::add(in[0], in[1], in.number(2)); }},
      {"aclnnSub", tensors, kAll, subtract},
      {"aclnnRsub", tensors, kNumbers, reverse},
      {"aclnnMul", TwoTensors(), kAll, TWO(mul)},
      {"aclnnDiv", TwoTensors({}, false), kAll, TWO(div)},
      {"aclnnAdds", numbers, kAll,
       [](const In& in) { return at::add(in[0], in.number(1), in.number(2)); }},
      {"aclnnSubs", numbers, kNumbers,
       [](const In& in) { return at::sub(in[0], in.number(1), in.number(2)); }},
      {"aclnnRsubs", numbers, kNumbers,
       [](const In& in) { return at::rsub(in[0], in.number(1), in.number(2)); }},
      {"aclnnAddV3",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& view : source.Views(dtype)) {
           inputs.push_back({at::Scalar(3), view, at::Scalar(2)});
         }
         return inputs;
       },
       kNumbers,
       [](const In& in) {
         return at::add(at::native::wrapped_scalar_tensor(in.number(0)), in[1], in.number(2));
       }},
      {"aclnnMuls", TensorAndNumbers(), kAll, NUMBER(mul)},
      {"aclnnDivs", TensorAndNumbers(), kAll, NUMBER(div)},
      {"aclnnDivMod", All({PositivePairs({0}), PositivePairs({1}), PositivePairs({2})}), kNumbers,
       divide},
      {"aclnnDivMods",
       All({PositiveAndNumber({0}), PositiveAndNumber({1}), PositiveAndNumber({2})}), kNumbers,
       divide_number},
      {"aclnnFloorDivide", PositivePairs(), kNumbers,
       [](const In& in) { return at::div(in[0], in[1], "floor"); }},
      {"aclnnFloorDivides", PositiveAndNumber(), kNumbers,
       [](const In& in) { return at::div(in[0], in.number(1), "floor"); }},
      {"aclnnRemainderTensorTensor", PositivePairs(), kNumbers, TWO(remainder)},
      {"aclnnRemainderTensorScalar", PositiveAndNumber(), kNumbers, NUMBER(remainder)},
      {"aclnnFmodTensor", PositivePairs(), kNumbers, TWO(fmod)},
      {"aclnnFmodScalar", PositiveAndNumber(), kNumbers, NUMBER(fmod)},
      {"aclnnRemainderScalarTensor",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const auto& sizes : std::vector<std::vector<int64_t>>{{}, {37}, {0}, {4, 6, 5}}) {
           inputs.push_back({at::Scalar(17), source.Random(sizes, dtype, 1, 9)});
         }
         return inputs;
       },
       kNumbers, [](const In& in) { return at::remainder(in.number(0), in[1]); }},
      {"aclnnMaximum", TwoTensors(), kAll, TWO(maximum), kZeroSigns},
      {"aclnnMinimum", TwoTensors(), kAll, TWO(minimum), kZeroSigns},
      {"aclnnAtan2", TwoTensors({}, false), kNumbers, TWO(atan2), kRounding},
      {"aclnnLogAddExp",
       TwoTensors({}, false),
       kFloats,
       TWO(logaddexp),
       {4, 1e-6, true, "vector and scalar code of libtorch round differently"}},
      {"aclnnPowTensorTensor", PositivePairs(), kNumbers, TWO(pow), kRounding},
      {"aclnnPowTensorScalar",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& view : source.Views(dtype)) {
           for (const at::Scalar& exponent : {at::Scalar(2), at::Scalar(0.5), at::Scalar(3.25)}) {
             inputs.push_back({view, exponent});
           }
         }
         // These have exact paths of their own.
         for (double exponent : {3.0, -1.0, -0.5, -2.0, 0.0}) {
           inputs.push_back({source.Random({5, 33}, dtype, 1, 5), at::Scalar(exponent)});
         }
         inputs.push_back({source.Random({4, 3}, dtype), at::Scalar(-1)});
         return inputs;
       },
       kNumbers, NUMBER(pow), kRounding},
      {"aclnnPowScalarTensor",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const auto& sizes : std::vector<std::vector<int64_t>>{{}, {37}, {0}, {4, 6, 5}}) {
           inputs.push_back({at::Scalar(2.5), source.Random(sizes, dtype, 0, 4)});
           inputs.push_back({at::Scalar(2), source.Random(sizes, dtype, 0, 4)});
           inputs.push_back({at::Scalar(0.5), source.Random(sizes, dtype, 0, 4)});
           inputs.push_back({at::Scalar(-1.0), source.Random(sizes, dtype, 0, 4)});
           inputs.push_back({at::Scalar(0.0), source.Random(sizes, dtype, 0, 4)});
         }
         return inputs;
       },
       kNumbers, [](const In& in) { return at::pow(in.number(0), in[1]); }, kRounding},
  };
}

Rows Comparisons() {
  return {
      {"aclnnEqTensor", TwoTensors(), kAll, TWO(eq)},
      {"aclnnNeTensor", TwoTensors(), kAll, TWO(ne)},
      {"aclnnLtTensor", TwoTensors(), kAll, TWO(lt)},
      {"aclnnLeTensor", TwoTensors(), kAll, TWO(le)},
      {"aclnnGtTensor", TwoTensors(), kAll, TWO(gt)},
      {"aclnnGeTensor", TwoTensors(), kAll, TWO(ge)},
      {"aclnnEqScalar", TensorAndNumbers(), kAll, NUMBER(eq)},
      {"aclnnNeScalar", TensorAndNumbers(), kAll, NUMBER(ne)},
      {"aclnnLtScalar", TensorAndNumbers(), kAll, NUMBER(lt)},
      {"aclnnLeScalar", TensorAndNumbers(), kAll, NUMBER(le)},
      {"aclnnGtScalar", TensorAndNumbers(), kAll, NUMBER(gt)},
      {"aclnnGeScalar", TensorAndNumbers(), kAll, NUMBER(ge)},
      {"aclnnLogicalAnd", TwoTensors(), kAll, TWO(logical_and)},
      {"aclnnLogicalOr", TwoTensors(), kAll, TWO(logical_or)},
      {"aclnnLogicalXor", TwoTensors(), kAll, TWO(logical_xor)},
      {"aclnnBitwiseAndTensor", TwoTensors({}, false), kAll, TWO(bitwise_and)},
      {"aclnnBitwiseOrTensor", TwoTensors({}, false), kAll, TWO(bitwise_or)},
      {"aclnnBitwiseXorTensor", TwoTensors({}, false), kAll, TWO(bitwise_xor)},
      {"aclnnBitwiseAndScalar", OneTensor({at::Scalar(5)}), kIntegersAndBool, NUMBER(bitwise_and)},
      {"aclnnBitwiseOrScalar", OneTensor({at::Scalar(5)}), kIntegersAndBool, NUMBER(bitwise_or)},
      {"aclnnBitwiseXorScalar", OneTensor({at::Scalar(5)}), kIntegersAndBool, NUMBER(bitwise_xor)},
      {"aclnnLeftShift", TwoTensors({}, false), kIntegers, TWO(bitwise_left_shift)},
      {"aclnnLeftShifts", OneTensor({at::Scalar(3)}), kIntegers, NUMBER(bitwise_left_shift)},
      {"aclnnRightShift", TwoTensors({}, false), kIntegers, TWO(bitwise_right_shift)},
  };
}

// Three tensors that broadcast, all of the dtype.
Inputs ThreeTensors(Args extra = {}) {
  return [extra](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const auto& [a, b] : source.Pairs(dtype, dtype)) {
      const Tensor c =
          b.dim() == 0 ? source.Random({}, dtype, 1, 3) : source.Random({b.size(-1)}, dtype, 1, 3);
      inputs.push_back({a, b, c});
      inputs.back().insert(inputs.back().end(), extra.begin(), extra.end());
    }
    return inputs;
  };
}

Rows OfThree() {
  const Inputs with_factor =
      All({ThreeTensors({at::Scalar(2)}), OnlyFloats(ThreeTensors({at::Scalar(0.3)}))});
  return {
      {"aclnnAddcmul", with_factor, kNumbers,
       [](const In& in) { return at::addcmul(in[0], in[1], in[2], in.number(3)); }},
      {"aclnnAddcdiv", with_factor, kNumbers,
       [](const In& in) { return at::addcdiv(in[0], in[1], in[2], in.number(3)); }},
      {"aclnnLerp", ThreeTensors(), kFloats,
       [](const In& in) { return at::lerp(in[0], in[1], in[2]); }},
      {"aclnnLerps", TwoTensors({at::Scalar(0.3)}, false), kFloats,
       [](const In& in) { return at::lerp(in[0], in[1], in.number(2)); }},
      {"aclnnClampTensor", ThreeTensors(), kNumbers,
       [](const In& in) {
         return at::clamp(in[0], c10::optional<Tensor>(in[1]), c10::optional<Tensor>(in[2]));
       },
       kZeroSigns},
      {"aclnnSWhere",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const auto& [a, b] : source.Pairs(dtype, dtype)) {
           inputs.push_back({source.Random(a.sizes(), at::kBool), a, b});
         }
         inputs.push_back({source.Random({4, 1}, at::kBool), source.Random({6}, dtype),
                           source.Random({}, at::kFloat)});
         inputs.push_back({source.Random({4, 1}, at::kByte), source.Random({6}, dtype),
                           source.Random({4, 6}, dtype)});
         return inputs;
       },
       kAll, [](const In& in) { return at::where(in[0].to(at::kBool), in[1], in[2]); }},
      {"aclnnClamp",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& view : source.Views(dtype)) {
           inputs.push_back({view, at::Scalar(-1), at::Scalar(2)});
           inputs.push_back({view, Null{}, at::Scalar(1)});
           inputs.push_back({view, at::Scalar(1), Null{}});
           inputs.push_back({view, at::Scalar(2), at::Scalar(-1)});
         }
         inputs.push_back({source.Random({4, 3}, dtype), Null{}, Null{}});
         return inputs;
       },
       kNumbers,
       [](const In& in) { return at::clamp(in[0], in.maybe_number(1), in.maybe_number(2)); }},
      {"aclnnClampMinTensor", TwoTensors(), kFloats, TWO(clamp_min), kZeroSigns},
      {"aclnnClampMaxTensor", TwoTensors(), kFloats, TWO(clamp_max), kZeroSigns},
      {"aclnnClampMin", OneTensor({at::Scalar(-1)}), kNumbers, NUMBER(clamp_min)},
      {"aclnnClampMax", OneTensor({at::Scalar(1)}), kNumbers, NUMBER(clamp_max)},
  };
}

}  // namespace

Rows ElementwiseRows() {
  Rows rows;
  for (auto family : {Functions, Arithmetic, Comparisons, OfThree}) {
    for (Row& row : family()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace acltape::opapi::grid
