// Elementwise operators in what the grid (grid/elementwise_rows.cpp, activation_rows.cpp) does not
// try: arguments that are refused, and dtypes that are no operator's usual ones.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

TEST(Elementwise, AnOutOfAnotherShapeIsRefusedWithBothShapes) {
  const Tensor x = Random({2, 3}), wrong = at::empty({3, 2});
  EXPECT_EQ(RunOperator("aclnnMul", {x, x, wrong}), kReject);
  EXPECT_EQ(LastMessage(), "aclnnMul: out has shape [3, 2], expected [2, 3].");
}

TEST(Elementwise, AModeThatTheirDocumentsDoNotListIsRefused) {
  const Tensor x = Random({4});
  EXPECT_EQ(RunOperator("aclnnDivMod", {x, x, 3, Unwritten(x)}), kReject);
  EXPECT_EQ(RunOperator("aclnnGeluV2", {x, 2, Unwritten(x)}), kReject);
  EXPECT_EQ(RunOperator("aclnnGeluBackwardV2", {x, x, "sigmoid", Unwritten(x)}), kReject);
}

TEST(Elementwise, AConditionOfFloatsIsRefused) {
  const Tensor x = Random({5, 37});
  EXPECT_EQ(RunOperator("aclnnSWhere", {x, x, x, Unwritten(x)}), kReject);
}

TEST(Alpha, MustFitTheOperands) {
  const Tensor x = Random({4}, at::kLong, 0, 9);
  EXPECT_EQ(RunOperator("aclnnAdd", {x, x, 0.5, Unwritten(x)}), kReject);
  EXPECT_EQ(RunOperator("aclnnAdd", {x, x, true, Unwritten(x)}), kReject);
  EXPECT_EQ(RunOperator("aclnnSub", {x.gt(2), x.gt(2), 1, at::empty({4}, at::kBool)}), kReject);
}

TEST(ComplexNumbers, HaveRealMagnitudesAndSignsOfOne) {
  const Tensor x = at::complex(Random({7, 45}), Random({7, 45})), real = at::abs(x);
  EXPECT_TRUE(Gives("aclnnSign", {x, Unwritten(x)}, {{1, at::sgn(x)}}));
  EXPECT_TRUE(Gives("aclnnAbs", {x, Unwritten(real)}, {{1, real}}));
  EXPECT_EQ(RunOperator("aclnnAbs", {x, at::empty({7, 45}, at::kLong)}), kReject);
}

TEST(ComplexNumbers, HaveNoProductWithALogarithm) {
  const Tensor x = at::complex(Random({5}), Random({5}));
  EXPECT_EQ(RunOperator("aclnnXLogYTensor", {x, x, Unwritten(x)}), kReject);
  EXPECT_EQ(RunOperator("aclnnInplaceXLogYTensor", {x, x}), kReject);
  EXPECT_EQ(LastMessage(),
            "aclnnInplaceXLogYTensor: a product with a logarithm is not defined for complex "
            "numbers.");
}

// The quotient of integers and a number is cut off, as on a device: c10d averages integers so. It
// is computed in float32.
TEST(QuotientsOfIntegers, AreCutOffForAnOutputOfIntegers) {
  for (at::ScalarType dtype : {at::kLong, at::kInt, at::kShort, at::kChar}) {
    const Tensor x = at::tensor({7, -7, 0, 6, -1, 100}, at::kLong).to(dtype);
    CheckInplace("aclnnInplaceDivs", {x.clone(), 2},
                 at::tensor({3, -3, 0, 3, 0, 50}, at::kLong).to(dtype));
    CheckInplace("aclnnInplaceDivs", {x.clone(), 2.5},
                 at::tensor({2, -2, 0, 2, 0, 40}, at::kLong).to(dtype));
    Check("aclnnDivs", {x, 4}, {at::tensor({1, -1, 0, 1, 0, 25}, at::kLong).to(dtype)});
  }
  const Tensor great = at::tensor({(int64_t{1} << 24) + 1}, at::kLong);
  CheckInplace("aclnnInplaceDivs", {great.clone(), 1}, at::tensor({int64_t{1} << 24}, at::kLong));
  const Tensor strided = at::arange(12, at::kInt).reshape({3, 4}).t();
  CheckInplace("aclnnInplaceDivs", {strided, 3},
               at::floor_divide(at::arange(12, at::kInt), 3).reshape({3, 4}).t());
}

TEST(QuotientsOfIntegers, OfFloatsOrByTensorsDoNotBecomeIntegers) {
  const Tensor x = Random({4}), integers = at::ones({4}, at::kLong);
  EXPECT_EQ(RunOperator("aclnnDivs", {x, 2, at::zeros({4}, at::kInt)}), kReject);
  EXPECT_EQ(RunOperator("aclnnDivs", {integers.to(at::kBool), 2, at::zeros({4}, at::kInt)}),
            kReject);
  EXPECT_EQ(RunOperator("aclnnInplaceDiv", {integers, integers.clone()}), kReject);
  EXPECT_EQ(LastMessage(),
            "aclnnInplaceDiv: selfRef has dtype Long, which cannot hold a result of dtype Float.");
}

TEST(InPlaceForms, RefuseAResultThatSelfCannotHoldAndNameSelf) {
  const Tensor x = Random({9}, at::kLong, 1, 20), matrix = Random({3, 3}, at::kLong, 1, 9);
  EXPECT_EQ(RunOperator("aclnnInplaceMuls", {x, 2.5}), kReject);
  EXPECT_EQ(LastMessage(),
            "aclnnInplaceMuls: selfRef has dtype Long, which cannot hold a result of dtype Float.");
  // The output lies between the arguments of the out-of-place form.
  EXPECT_EQ(RunOperator("aclnnInplaceAddmm", {x, matrix, matrix, 1, 1, 0}), kReject);
  EXPECT_EQ(LastMessage(), "aclnnInplaceAddmm: selfRef has shape [9], expected [3, 3].");
}

}  // namespace
}  // namespace acltape::opapi
