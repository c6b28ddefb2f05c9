// Elementwise operators against the library's own, bit by bit, over dtypes and views.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The rows that a suite applies to.
template <typename Case, size_t N, typename Keep>
std::vector<Case> Select(const Case (&cases)[N], Keep keep) {
  std::vector<Case> selected;
  for (const Case& row : cases) {
    if (keep(row)) selected.push_back(row);
  }
  return selected;
}

struct UnaryCase {
  const char* name;
  Tensor (*reference)(const Tensor&);
  bool half;      // libtorch has a kernel for half
  bool integers;  // integers in, integers out
  double low = -2, high = 2;
};

void PrintTo(const UnaryCase& test, std::ostream* out) { *out << test.name; }

#define ATEN(fn) [](const Tensor& x) { return at::fn(x); }

const UnaryCase kUnary[] = {
    {"aclnnAbs", ATEN(abs), true, true},
    {"aclnnAcos", ATEN(acos), false, false, -1, 1},
    {"aclnnAsin", ATEN(asin), false, false, -1, 1},
    {"aclnnAtan", ATEN(atan), false, false},
    {"aclnnCeil", ATEN(ceil), false, true},
    {"aclnnCos", ATEN(cos), false, false, -100, 100},
    {"aclnnCosh", ATEN(cosh), false, false},
    {"aclnnDigamma", ATEN(digamma), false, false, 0.1, 5},
    {"aclnnErf", ATEN(erf), false, false},
    {"aclnnErfc", ATEN(erfc), false, false},
    {"aclnnErfinv", ATEN(erfinv), false, false, -1, 1},
    {"aclnnExp", ATEN(exp), false, false, -90, 90},
    {"aclnnExp2", ATEN(exp2), true, false},
    {"aclnnExpm1", ATEN(expm1), false, false},
    {"aclnnFloor", ATEN(floor), false, true},
    {"aclnnFrac", ATEN(frac), true, true},
    {"aclnnIsInf", ATEN(isinf), true, true},
    {"aclnnLgamma", ATEN(lgamma), false, false, 0.1, 5},
    {"aclnnSignbit", ATEN(signbit), true, true},
    {"aclnnSinh", ATEN(sinh), false, false},
    {"aclnnIsFinite", ATEN(isfinite), true, true},
    {"aclnnLog", ATEN(log), false, false, -0.1, 5},
    {"aclnnLog10", ATEN(log10), false, false, 0, 5},
    {"aclnnLog1p", ATEN(log1p), false, false, -0.9, 5},
    {"aclnnLog2", ATEN(log2), false, false, 0, 5},
    {"aclnnLogicalNot", ATEN(logical_not), true, true},
    {"aclnnNeg", ATEN(neg), true, true},
    {"aclnnReciprocal", ATEN(reciprocal), true, false},
    {"aclnnRelu", ATEN(relu), false, true},
    {"aclnnRound", ATEN(round), false, true},
    {"aclnnRsqrt", ATEN(rsqrt), false, false, 0, 5},
    {"aclnnSigmoid", ATEN(sigmoid), false, false, -100, 100},
    {"aclnnSign", ATEN(sign), true, true},
    {"aclnnSin", ATEN(sin), false, false, -100, 100},
    {"aclnnSqrt", ATEN(sqrt), false, false, -0.1, 5},
    {"aclnnTan", ATEN(tan), false, false},
    {"aclnnTanh", ATEN(tanh), false, false},
    {"aclnnTrunc", ATEN(trunc), false, true},
    {"aclnnSilu", ATEN(silu), false, false, -20, 20},
    {"aclnnGelu", [](const Tensor& x) { return at::gelu(x, "tanh"); }, false, false},
    {"aclnnHardsigmoid", ATEN(hardsigmoid), false, false, -5, 5},
    {"aclnnHardswish", ATEN(hardswish), false, false, -5, 5},
    {"aclnnMish", ATEN(mish), false, false},
    {"aclnnLogSigmoid", ATEN(log_sigmoid), false, false},
    {"aclnnSelu", ATEN(selu), false, false},
};

// Those whose library operator takes floating tensors only.
bool FloatsOnly(const std::string& name) {
  for (const char* other : {"aclnnFrac", "aclnnSilu", "aclnnGelu", "aclnnHardsigmoid",
                            "aclnnHardswish", "aclnnMish", "aclnnLogSigmoid", "aclnnSelu"}) {
    if (name == other) return true;
  }
  return false;
}

class Unary : public testing::TestWithParam<UnaryCase> {};
class UnaryInPlace : public Unary {};
class UnaryOfIntegers : public Unary {};

TEST_P(Unary, EqualsTheLibraryOnFloatsOfAllViews) {
  const UnaryCase& test = GetParam();
  for (at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const auto& [name, x] : Views(dtype, test.low, test.high)) {
      const Tensor expected = test.reference(x);
      const Tensor out = Unwritten(expected);
      EXPECT_TRUE(Gives(test.name, {x, out}, {{1, expected}})) << dtype << " " << name;
    }
  }
}

TEST_P(Unary, RoundsHalfOnce) {
  const UnaryCase& test = GetParam();
  for (const auto& [name, x] : Views(at::kHalf, test.low, test.high)) {
    const Tensor wide = test.half ? test.reference(x) : test.reference(x.to(at::kFloat));
    const Tensor expected = wide.scalar_type() == at::kFloat ? wide.to(at::kHalf) : wide;
    const Tensor out = Unwritten(expected);
    EXPECT_TRUE(Gives(test.name, {x, out}, {{1, expected}})) << name;
  }
}

TEST_P(UnaryInPlace, WritesThroughItsInput) {
  const UnaryCase& test = GetParam();
  const Tensor x = Random({6, 35}, at::kFloat, test.low, test.high);
  const Tensor expected = test.reference(x);
  EXPECT_TRUE(Gives(test.name, {x, x}, {{1, expected}}));
}

// "aclnnX" -> "aclnnInplaceX" where the table has it; else empty.
std::string InplaceForm(const std::string& name) {
  const std::string inplace = "aclnnInplace" + name.substr(5);
  return acl::FindOperator(inplace) == nullptr ? "" : inplace;
}

class UnaryInplaceForm : public Unary {};

TEST_P(UnaryInplaceForm, EqualsTheLibraryOnDenseAndStridedTensors) {
  const UnaryCase& test = GetParam();
  for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    for (const Tensor& x : {Random({6, 35}, dtype, test.low, test.high),
                            Random({35, 12}, dtype, test.low, test.high).slice(1, 1, 12, 2)}) {
      const Tensor wide = dtype == at::kHalf && !test.half ? x.to(at::kFloat) : x;
      const Tensor expected = test.reference(wide).to(dtype);
      EXPECT_TRUE(Gives(InplaceForm(test.name).c_str(), {x}, {{0, expected}})) << dtype;
    }
  }
}

TEST_P(Unary, ConvertsToTheDtypeOfOut) {
  const UnaryCase& test = GetParam();
  const Tensor x = Random({4, 33}, at::kFloat, test.low, test.high);
  const Tensor expected = test.reference(x).to(at::kHalf);
  EXPECT_TRUE(Gives(test.name, {x, Unwritten(expected)}, {{1, expected}}));
}

TEST_P(UnaryOfIntegers, EqualsTheLibrary) {
  const UnaryCase& test = GetParam();
  const Tensor x = Random({5, 9}, at::kLong, 0, 9);
  const Tensor expected = test.reference(x);
  EXPECT_EQ(at::isFloatingType(expected.scalar_type()), !test.integers);
  EXPECT_TRUE(Gives(test.name, {x, Unwritten(expected)}, {{1, expected}}));
}

std::string CaseName(const testing::TestParamInfo<UnaryCase>& info) { return info.param.name; }

bool GivesFloats(const UnaryCase& test) {
  return test.reference(at::ones({1})).scalar_type() == at::kFloat;
}

INSTANTIATE_TEST_SUITE_P(Operators, Unary, testing::ValuesIn(kUnary), CaseName);
INSTANTIATE_TEST_SUITE_P(Operators, UnaryInPlace, testing::ValuesIn(Select(kUnary, GivesFloats)),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Operators, UnaryInplaceForm,
                         testing::ValuesIn(Select(kUnary,
                                                  [](const UnaryCase& test) {
                                                    return !InplaceForm(test.name).empty();
                                                  })),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(
    Operators, UnaryOfIntegers,
    testing::ValuesIn(Select(kUnary, [](const UnaryCase& test) { return !FloatsOnly(test.name); })),
    CaseName);

// Operators of two tensors, with a form for scalars and in-place forms where the table has them.
struct BinaryCase {
  const char* name;          // tensor, tensor
  const char* scalar_name;   // tensor, scalar; may be null
  const char* inplace_name;  // may be null
  Tensor (*reference)(const Tensor&, const Tensor&);
  bool alpha = false;  // takes a factor after the operands
  bool half = true;
  bool floats = true;
  double low = -2, high = 2;
};

void PrintTo(const BinaryCase& test, std::ostream* out) { *out << test.name; }

#define ATEN2(fn) [](const Tensor& x, const Tensor& y) { return at::fn(x, y); }
constexpr double kAlpha = 0.75;

const BinaryCase kBinary[] = {
    {"aclnnAdd", "aclnnAdds", "aclnnInplaceAdd",
     [](const Tensor& x, const Tensor& y) { return at::add(x, y, kAlpha); }, true},
    {"aclnnSub", "aclnnSubs", "aclnnInplaceSub",
     [](const Tensor& x, const Tensor& y) { return at::sub(x, y, kAlpha); }, true},
    {"aclnnRsub", "aclnnRsubs", nullptr,
     [](const Tensor& x, const Tensor& y) { return at::rsub(x, y, kAlpha); }, true},
    {"aclnnMul", "aclnnMuls", "aclnnInplaceMul", ATEN2(mul)},
    {"aclnnDiv", "aclnnDivs", "aclnnInplaceDiv", ATEN2(div)},
    {"aclnnMaximum", nullptr, nullptr, ATEN2(maximum)},
    {"aclnnMinimum", nullptr, nullptr, ATEN2(minimum)},
    {"aclnnPowTensorTensor", nullptr, "aclnnInplacePowTensorTensor", ATEN2(pow), false, true, true,
     0.1, 3},
    {"aclnnAtan2", nullptr, "aclnnInplaceAtan2", ATEN2(atan2), false, false},
    {"aclnnFmodTensor", "aclnnFmodScalar", "aclnnInplaceFmodTensor", ATEN2(fmod)},
    {"aclnnRemainderTensorTensor", "aclnnRemainderTensorScalar",
     "aclnnInplaceRemainderTensorTensor", ATEN2(remainder)},
    {"aclnnFloorDivide", "aclnnFloorDivides", "aclnnInplaceFloorDivide", ATEN2(floor_divide)},
    {"aclnnEqTensor", "aclnnEqScalar", "aclnnInplaceEqTensor", ATEN2(eq)},
    {"aclnnNeTensor", "aclnnNeScalar", "aclnnInplaceNeTensor", ATEN2(ne)},
    {"aclnnLtTensor", "aclnnLtScalar", "aclnnInplaceLtTensor", ATEN2(lt)},
    {"aclnnLeTensor", "aclnnLeScalar", "aclnnInplaceLeTensor", ATEN2(le)},
    {"aclnnGtTensor", "aclnnGtScalar", "aclnnInplaceGtTensor", ATEN2(gt)},
    {"aclnnGeTensor", "aclnnGeScalar", "aclnnInplaceGeTensor", ATEN2(ge)},
    {"aclnnLogicalAnd", nullptr, "aclnnInplaceLogicalAnd", ATEN2(logical_and)},
    {"aclnnLogicalOr", nullptr, "aclnnInplaceLogicalOr", ATEN2(logical_or)},
    {"aclnnLogicalXor", nullptr, nullptr, ATEN2(logical_xor)},
    {"aclnnSigmoidBackward", nullptr, nullptr, ATEN2(sigmoid_backward)},
    {"aclnnTanhBackward", nullptr, nullptr, ATEN2(tanh_backward), false, false},
    {"aclnnSiluBackward", nullptr, nullptr, ATEN2(silu_backward), false, false},
    {"aclnnGeluBackward", nullptr, nullptr,
     [](const Tensor& x, const Tensor& y) { return at::gelu_backward(x, y, "tanh"); }, false,
     false},
};

Args Operands(const BinaryCase& test, Arg x, Arg y, Arg out) {
  if (test.alpha) return {std::move(x), std::move(y), kAlpha, std::move(out)};
  return {std::move(x), std::move(y), std::move(out)};
}

class Binary : public testing::TestWithParam<BinaryCase> {
 protected:
  int out() const { return GetParam().alpha ? 3 : 2; }
};
class BinaryBroadcasting : public Binary {};
class BinaryOfMixedDtypes : public Binary {};
class BinaryWithScalar : public Binary {};
class BinaryInPlace : public Binary {};

bool IsBackward(const BinaryCase& test) {
  return std::string(test.name).find("Backward") != std::string::npos;
}

TEST_P(Binary, EqualsTheLibraryOnAllViews) {
  const BinaryCase& test = GetParam();
  for (at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const std::vector<NamedTensor> left = Views(dtype, test.low, test.high);
    const std::vector<NamedTensor> right = Views(dtype, test.low, test.high);
    for (size_t i = 0; i < left.size(); ++i) {
      const Tensor &x = left[i].tensor, &y = right[i].tensor;
      const Tensor expected = test.reference(x, y);
      EXPECT_TRUE(Gives(test.name, Operands(test, x, y, Unwritten(expected)), {{out(), expected}}))
          << dtype << " " << left[i].name;
    }
  }
}

TEST_P(BinaryBroadcasting, EqualsTheLibrary) {
  const BinaryCase& test = GetParam();
  const Tensor row = Random({1, 37}, at::kFloat, test.low, test.high);
  const Tensor column = Random({11, 1}, at::kFloat, test.low, test.high);
  const Tensor cube = Random({3, 11, 37}, at::kFloat, test.low, test.high);
  for (const auto& [x, y] :
       {std::pair(row, column), std::pair(cube, row), std::pair(column, cube)}) {
    const Tensor expected = test.reference(x, y);
    EXPECT_TRUE(Gives(test.name, Operands(test, x, y, Unwritten(expected)), {{out(), expected}}));
  }
}

TEST_P(Binary, ComputesHalfAsTheLibraryOrInFloat) {
  const BinaryCase& test = GetParam();
  const Tensor x = Random({7, 45}, at::kHalf, test.low, test.high);
  const Tensor y = Random({7, 45}, at::kHalf, test.low, test.high);
  const Tensor result =
      test.half ? test.reference(x, y) : test.reference(x.to(at::kFloat), y.to(at::kFloat));
  const Tensor expected = result.scalar_type() == at::kFloat ? result.to(at::kHalf) : result;
  EXPECT_TRUE(Gives(test.name, Operands(test, x, y, Unwritten(expected)), {{out(), expected}}));
}

TEST_P(BinaryOfMixedDtypes, PromotesAndConvertsToOut) {
  const BinaryCase& test = GetParam();
  const Tensor x = Random({5, 17}, at::kFloat, 1, 9), y = Random({5, 17}, at::kInt, 1, 9);
  const Tensor expected = test.reference(x, y).to(at::kDouble);
  EXPECT_TRUE(Gives(test.name, Operands(test, x, y, Unwritten(expected)), {{out(), expected}}));
}

TEST_P(BinaryWithScalar, EqualsTheLibrary) {
  const BinaryCase& test = GetParam();
  for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    const Tensor x = Random({9, 41}, dtype, test.low, test.high);
    const at::Scalar number = 1.3;
    const Tensor expected = test.reference(x, at::native::wrapped_scalar_tensor(number));
    EXPECT_TRUE(Gives(test.scalar_name, Operands(test, x, number, Unwritten(expected)),
                      {{out(), expected}}))
        << dtype;
  }
}

TEST_P(BinaryWithScalar, HasAnInPlaceForm) {
  const BinaryCase& test = GetParam();
  const std::string inplace = InplaceForm(test.scalar_name);
  if (inplace.empty()) return;  // only of Rsubs
  const Tensor x = Random({9, 41}, at::kFloat, test.low, test.high);
  const at::Scalar number = 1.3;
  const Tensor expected =
      test.reference(x, at::native::wrapped_scalar_tensor(number)).to(at::kFloat);
  Args args = {x, number};
  if (test.alpha) args.push_back(kAlpha);
  EXPECT_TRUE(Gives(inplace.c_str(), args, {{0, expected}}));
}

TEST_P(BinaryInPlace, KeepsTheDtypeOfSelf) {
  const BinaryCase& test = GetParam();
  for (const Tensor& y : {Random({6, 29}, at::kFloat, test.low, test.high),
                          Random({29}, at::kFloat, test.low, test.high)}) {
    const Tensor x = Random({6, 29}, at::kFloat, test.low, test.high);
    const Tensor expected = test.reference(x, y).to(at::kFloat);
    Args args = {x, y};
    if (test.alpha) args.push_back(kAlpha);
    EXPECT_TRUE(Gives(test.inplace_name, args, {{0, expected}}));
  }
}

TEST_P(Binary, RejectsAnOutOfAnotherShape) {
  const BinaryCase& test = GetParam();
  const Tensor x = Random({2, 3}), wrong = at::empty({3, 2});
  EXPECT_EQ(RunOperator(test.name, Operands(test, x, x, wrong)), 161002);
  EXPECT_NE(LastMessage().find(test.name), std::string::npos) << LastMessage();
  EXPECT_NE(LastMessage().find("[3, 2], expected [2, 3]"), std::string::npos) << LastMessage();
}

std::string BinaryName(const testing::TestParamInfo<BinaryCase>& info) { return info.param.name; }

const auto kBroadcasting =
    Select(kBinary, [](const BinaryCase& test) { return !IsBackward(test); });
const auto kMixed = Select(
    kBinary, [](const BinaryCase& test) { return test.half && !test.alpha && !IsBackward(test); });
const auto kScalar = Select(kBinary, [](const BinaryCase& test) { return test.scalar_name; });
const auto kInPlace = Select(kBinary, [](const BinaryCase& test) { return test.inplace_name; });

INSTANTIATE_TEST_SUITE_P(Operators, Binary, testing::ValuesIn(kBinary), BinaryName);
INSTANTIATE_TEST_SUITE_P(Operators, BinaryBroadcasting, testing::ValuesIn(kBroadcasting),
                         BinaryName);
INSTANTIATE_TEST_SUITE_P(Operators, BinaryOfMixedDtypes, testing::ValuesIn(kMixed), BinaryName);
INSTANTIATE_TEST_SUITE_P(Operators, BinaryWithScalar, testing::ValuesIn(kScalar), BinaryName);
INSTANTIATE_TEST_SUITE_P(Operators, BinaryInPlace, testing::ValuesIn(kInPlace), BinaryName);

TEST(Bits, EqualTheLibraryOnIntegersAndBools) {
  struct Row {
    const char* tensor;
    const char* scalar;
    Tensor (*reference)(const Tensor&, const Tensor&);
  };
  const Row rows[] = {
      {"aclnnBitwiseAndTensor", "aclnnBitwiseAndScalar", ATEN2(bitwise_and)},
      {"aclnnBitwiseOrTensor", "aclnnBitwiseOrScalar", ATEN2(bitwise_or)},
      {"aclnnBitwiseXorTensor", "aclnnBitwiseXorScalar", ATEN2(bitwise_xor)},
  };
  for (const Row& row : rows) {
    for (at::ScalarType dtype : {at::kLong, at::kInt, at::kBool, at::kByte}) {
      const Tensor x = Random({5, 13}, dtype, 0, 100), y = Random({5, 13}, dtype, 0, 100);
      const Tensor expected = row.reference(x, y);
      EXPECT_TRUE(Gives(row.tensor, {x, y, Unwritten(expected)}, {{2, expected}})) << dtype;
    }
    const Tensor x = Random({5, 13}, at::kLong, 0, 100);
    const Tensor expected = row.reference(x, at::native::wrapped_scalar_tensor(6));
    EXPECT_TRUE(Gives(row.scalar, {x, 6, Unwritten(expected)}, {{2, expected}}));
    EXPECT_TRUE(Gives(InplaceForm(row.scalar).c_str(), {x.clone(), 6}, {{0, expected}}));
    const Tensor y = Random({5, 13}, at::kLong, 0, 100);
    EXPECT_TRUE(Gives(InplaceForm(row.tensor).c_str(), {x.clone(), y}, {{0, row.reference(x, y)}}));
    EXPECT_EQ(RunOperator(row.tensor, {Random({2}), Random({2}), at::empty({2})}), 161002);
  }
  for (at::ScalarType dtype : {at::kLong, at::kBool}) {
    const Tensor x = Random({5, 13}, dtype, 0, 100);
    const Tensor expected = at::bitwise_not(x);
    EXPECT_TRUE(Gives("aclnnBitwiseNot", {x, Unwritten(expected)}, {{1, expected}}));
  }
}

TEST(Pow, KeepsTheExactPathsOfScalarExponents) {
  for (double exponent : {0.5, 2.0, 3.0, -1.0, -0.5, -2.0, 0.0, 1.7}) {
    const Tensor x = Random({5, 33}, at::kFloat, 0.1, 5);
    const Tensor expected = at::pow(x, exponent);
    EXPECT_TRUE(Gives("aclnnPowTensorScalar", {x, exponent, Unwritten(expected)}, {{2, expected}}));
    const Tensor powers = at::pow(at::Scalar(exponent), x);
    EXPECT_TRUE(Gives("aclnnPowScalarTensor", {exponent, x, Unwritten(powers)}, {{2, powers}}));
    EXPECT_TRUE(Gives("aclnnInplacePowTensorScalar", {x, exponent}, {{0, expected}}));
  }
  const Tensor integers = Random({4}, at::kLong, 1, 9);
  EXPECT_EQ(RunOperator("aclnnPowTensorScalar", {integers, -2, Unwritten(integers)}), 161002);
}

TEST(DivMod, RoundsTowardZeroOrDown) {
  const Tensor x = Random({6, 21}, at::kFloat, -9, 9), y = Random({6, 21}, at::kFloat, 1, 4);
  const char* modes[] = {"", "trunc", "floor"};
  for (int mode = 0; mode < 3; ++mode) {
    const Tensor expected =
        mode == 0 ? at::div(x, y) : at::div(x, y, c10::string_view(modes[mode]));
    EXPECT_TRUE(Gives("aclnnDivMod", {x, y, mode, Unwritten(expected)}, {{3, expected}}));
  }
  EXPECT_EQ(RunOperator("aclnnDivMod", {x, y, 3, Unwritten(x)}), 161002);
  const Tensor integers = Random({9}, at::kLong, -20, 20);
  const Tensor floored = at::floor_divide(integers, 3);
  EXPECT_TRUE(Gives("aclnnDivMods", {integers, 3, 2, Unwritten(floored)}, {{3, floored}}));
}

TEST(Div, OfIntegersIsAFloatAndNotKeptInAnIntegerSelf) {
  const Tensor x = Random({9}, at::kLong, 1, 20), y = Random({9}, at::kLong, 1, 20);
  const Tensor expected = at::div(x, y);
  EXPECT_EQ(expected.scalar_type(), at::kFloat);
  EXPECT_TRUE(Gives("aclnnDiv", {x, y, Unwritten(expected)}, {{2, expected}}));
  EXPECT_EQ(RunOperator("aclnnInplaceDivs", {x, 2}), 161002);
}

TEST(Alpha, MustFitTheOperands) {
  const Tensor x = Random({4}, at::kLong, 0, 9);
  EXPECT_EQ(RunOperator("aclnnAdd", {x, x, 0.5, Unwritten(x)}), 161002);
  EXPECT_EQ(RunOperator("aclnnAdd", {x, x, true, Unwritten(x)}), 161002);
  EXPECT_EQ(RunOperator("aclnnSub", {x.gt(2), x.gt(2), 1, at::empty({4}, at::kBool)}), 161002);
  const Tensor expected = at::add(x, x, 3);
  EXPECT_TRUE(Gives("aclnnAdd", {x, x, 3, Unwritten(x)}, {{3, expected}}));
}

TEST(Clamp, TakesEitherBoundOrBoth) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    Tensor x = Random({6, 35}, dtype);
    x[0][0] = std::numeric_limits<double>::quiet_NaN();
    const Tensor wide = dtype == at::kHalf ? x.to(at::kFloat) : x;
    const at::Scalar low = -0.5, high = 0.75;
    const Tensor both = at::clamp(wide, low, high).to(dtype);
    const Tensor above = at::clamp_min(wide, low).to(dtype);
    const Tensor below = at::clamp_max(wide, high).to(dtype);
    EXPECT_TRUE(Gives("aclnnClamp", {x, low, high, Unwritten(x)}, {{3, both}}));
    EXPECT_TRUE(Gives("aclnnClamp", {x, low, Null{}, Unwritten(x)}, {{3, above}}));
    EXPECT_TRUE(Gives("aclnnClamp", {x, Null{}, high, Unwritten(x)}, {{3, below}}));
    EXPECT_TRUE(Gives("aclnnClampMin", {x, low, Unwritten(x)}, {{2, above}}));
    EXPECT_TRUE(Gives("aclnnClampMax", {x, high, Unwritten(x)}, {{2, below}}));
    EXPECT_TRUE(Gives("aclnnInplaceClampMax", {x, high}, {{0, below}}));
    EXPECT_EQ(RunOperator("aclnnClamp", {x, Null{}, Null{}, Unwritten(x)}), 161002);
  }
}

TEST(Clamp, TakesTensorBounds) {
  const Tensor x = Random({6, 35}), low = Random({35}, at::kFloat, -1, 0),
               high = Random({6, 1}, at::kFloat, 0, 1);
  Check("aclnnClampTensor", {x, low, high},
        {at::clamp(x, c10::optional<Tensor>(low), c10::optional<Tensor>(high))});
  CheckInplace("aclnnInplaceClampMinTensor", {x.clone(), low}, at::clamp_min(x, low));
  CheckInplace("aclnnInplaceClampMaxTensor", {x.clone(), high}, at::clamp_max(x, high));
}

TEST(Pointwise, TernariesEqualTheLibrary) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    const Tensor x = Random({7, 33}, dtype), y = Random({7, 33}, dtype),
                 z = Random({33}, dtype, 1, 2);
    const auto wide = [&](const Tensor& t) { return dtype == at::kHalf ? t.to(at::kFloat) : t; };
    const Tensor mul = at::addcmul(wide(x), wide(y), wide(z), 0.3).to(dtype);
    const Tensor div = at::addcdiv(wide(x), wide(y), wide(z), 0.3).to(dtype);
    const Tensor lerp = at::lerp(wide(x), wide(y), 0.3).to(dtype);
    EXPECT_TRUE(Gives("aclnnAddcmul", {x, y, z, 0.3, Unwritten(x)}, {{4, mul}}));
    EXPECT_TRUE(Gives("aclnnAddcdiv", {x, y, z, 0.3, Unwritten(x)}, {{4, div}}));
    EXPECT_TRUE(Gives("aclnnLerps", {x, y, 0.3, Unwritten(x)}, {{3, lerp}}));
    const Tensor copy = x.clone();
    EXPECT_TRUE(Gives("aclnnInplaceAddcmul", {copy, y, z, 0.3}, {{0, mul}}));
    copy.copy_(x);
    EXPECT_TRUE(Gives("aclnnInplaceAddcdiv", {copy, y, z, 0.3}, {{0, div}}));
    copy.copy_(x);
    EXPECT_TRUE(Gives("aclnnInplaceLerps", {copy, y, 0.3}, {{0, lerp}}));
    const Tensor weights = Random({7, 33}, dtype, 0, 1);
    const Tensor lerped = at::lerp(wide(x), wide(y), wide(weights)).to(dtype);
    EXPECT_TRUE(Gives("aclnnLerp", {x, y, weights, Unwritten(x)}, {{3, lerped}}));
  }
  const Tensor integers = Random({4}, at::kLong, 1, 9);
  EXPECT_EQ(RunOperator("aclnnInplaceAddcdiv", {integers, integers, integers, 1}), 161002);
}

TEST(Where, BroadcastsThreeWaysAndTakesUint8Conditions) {
  const Tensor condition = Random({5, 1}, at::kBool), x = Random({1, 37}), y = Random({5, 37});
  const Tensor expected = at::where(condition, x, y);
  EXPECT_TRUE(Gives("aclnnSWhere", {condition, x, y, Unwritten(expected)}, {{3, expected}}));
  EXPECT_TRUE(
      Gives("aclnnSWhere", {condition.to(at::kByte), x, y, Unwritten(expected)}, {{3, expected}}));
  EXPECT_EQ(RunOperator("aclnnSWhere", {x, x, y, Unwritten(expected)}), 161002);
}

TEST(Activations, WithParametersEqualTheLibrary) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    const Tensor x = Random({7, 33}, dtype, -4, 4), g = Random({7, 33}, dtype);
    const Tensor wx = x.to(at::kFloat), wg = g.to(at::kFloat);
    const auto check = [&](const char* name, Args args, const Tensor& result) {
      const Tensor expected = result.to(dtype);
      args.push_back(Unwritten(expected));
      const int out = static_cast<int>(args.size()) - 1;
      EXPECT_TRUE(Gives(name, args, {{out, expected}})) << dtype;
    };
    check("aclnnGeluV2", {x, 0}, at::gelu(wx, "none"));
    check("aclnnGeluV2", {x, 1}, at::gelu(wx, "tanh"));
    check("aclnnGeluBackwardV2", {g, x, "none"}, at::gelu_backward(wg, wx, "none"));
    check("aclnnGeluBackwardV2", {g, x, "tanh"}, at::gelu_backward(wg, wx, "tanh"));
    check("aclnnLeakyRelu", {x, 0.2}, at::leaky_relu(wx, 0.2));
    check("aclnnLeakyReluBackward", {g, x, 0.2, false},
          at::leaky_relu_backward(wg, wx, 0.2, false));
    check("aclnnElu", {x, 1.5, 1.1, 0.9}, at::elu(wx, 1.5, 1.1, 0.9));
    check("aclnnEluBackward", {g, 1.5, 1.1, 0.9, false, x},
          at::elu_backward(wg, 1.5, 1.1, 0.9, false, wx));
    check("aclnnCelu", {x, 1.5}, at::celu(wx, 1.5));
    check("aclnnHardtanh", {x, -0.5, 0.5}, at::hardtanh(wx, -0.5, 0.5));
    check("aclnnHardtanhBackward", {g, x, -0.5, 0.5}, at::hardtanh_backward(wg, wx, -0.5, 0.5));
    check("aclnnHardsigmoidBackward", {g, x}, at::hardsigmoid_backward(wg, wx));
    check("aclnnSoftplus", {x, 1.5, 2.0}, at::softplus(wx, 1.5, 2.0));
    check("aclnnSoftplusBackward", {g, x, 1.5, 2.0}, at::softplus_backward(wg, wx, 1.5, 2.0));
    check("aclnnThreshold", {x, 0.25, -7.0}, at::threshold(wx, 0.25, -7.0));
    check("aclnnThresholdBackward", {g, x, 0.25}, at::threshold_backward(wg, wx, 0.25));
    check("aclnnNanToNum", {x / 0, 1.0, 2.0, 3.0}, at::nan_to_num(wx / 0, 1.0, 2.0, 3.0));
    const Tensor wide_input = Random({5, 8, 6}, dtype);
    check("aclnnGlu", {wide_input, -2}, at::glu(wide_input.to(at::kFloat), 1));
  }
  const Tensor x = Random({4});
  EXPECT_EQ(RunOperator("aclnnGeluV2", {x, 2, Unwritten(x)}), 161002);
  EXPECT_EQ(RunOperator("aclnnGeluBackwardV2", {x, x, "sigmoid", Unwritten(x)}), 161002);
}

TEST(Activations, InPlaceFormsEqualTheLibrary) {
  const Tensor x = Random({7, 33}, at::kFloat, -4, 4);
  CheckInplace("aclnnInplaceLeakyRelu", {x.clone(), 0.2}, at::leaky_relu(x, 0.2));
  CheckInplace("aclnnInplaceElu", {x.clone(), 1.5, 1.1, 0.9}, at::elu(x, 1.5, 1.1, 0.9));
  CheckInplace("aclnnInplaceCelu", {x.clone(), 1.5}, at::celu(x, 1.5));
  CheckInplace("aclnnInplaceHardtanh", {x.clone(), -0.5, 0.5}, at::hardtanh(x, -0.5, 0.5));
  CheckInplace("aclnnInplaceThreshold", {x.clone(), 0.25, -7.0}, at::threshold(x, 0.25, -7.0));
  CheckInplace("aclnnInplaceNanToNum", {x / 0, 1.0, 2.0, 3.0},
               at::nan_to_num(x / 0, 1.0, 2.0, 3.0));
  CheckInplace("aclnnInplaceRoundDecimals", {x.clone(), 2}, at::round(x, 2));
  Check("aclnnRoundDecimals", {x, 2}, {at::round(x, 2)});
  const Tensor weight = Random({7, 33}, at::kFloat, 0, 1), end = Random({7, 33});
  CheckInplace("aclnnInplaceLerp", {x.clone(), end, weight}, at::lerp(x, end, weight));
  Check("aclnnAddV3", {1.5, x, 2.0}, {at::add(at::full({}, 1.5), x, 2.0)});
  Check("aclnnRemainderScalarTensor", {1.5, x}, {at::remainder(at::full({}, 1.5), x)});
  CheckInplace("aclnnInplaceDivMod", {x.clone(), end, 1}, at::div(x, end, "trunc"));
  CheckInplace("aclnnInplaceDivMods", {x.clone(), 0.7, 2}, at::div(x, 0.7, "floor"));
}

TEST(Bfloat16, UsesTheLibrarysKernels) {
  const Tensor x = Random({7, 45}, at::kBFloat16), y = Random({7, 45}, at::kBFloat16);
  const Tensor sum = at::add(x, y), exp = at::exp(x), sigmoid = at::sigmoid(x);
  EXPECT_TRUE(Gives("aclnnAdd", {x, y, 1, Unwritten(x)}, {{3, sum}}));
  EXPECT_TRUE(Gives("aclnnExp", {x, Unwritten(x)}, {{1, exp}}));
  EXPECT_TRUE(Gives("aclnnSigmoid", {x, Unwritten(x)}, {{1, sigmoid}}));
}

TEST(ComplexNumbers, HaveRealMagnitudesAndSignsOfOne) {
  const Tensor x = at::complex(Random({7, 45}), Random({7, 45})), real = at::abs(x);
  EXPECT_TRUE(Gives("aclnnSign", {x, Unwritten(x)}, {{1, at::sgn(x)}}));
  EXPECT_TRUE(Gives("aclnnAbs", {x, Unwritten(real)}, {{1, real}}));
  EXPECT_EQ(RunOperator("aclnnAbs", {x, at::empty({7, 45}, at::kLong)}), 161002);
}

}  // namespace
}  // namespace acltape::opapi
