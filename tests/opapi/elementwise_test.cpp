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

TEST(InPlaceForms, RefuseAResultThatSelfCannotHoldAndNameSelf) {
  const Tensor x = Random({9}, at::kLong, 1, 20), matrix = Random({3, 3}, at::kLong, 1, 9);
  EXPECT_EQ(RunOperator("aclnnInplaceDivs", {x, 2}), kReject);
  EXPECT_EQ(LastMessage(),
            "aclnnInplaceDivs: selfRef has dtype Long, which cannot hold a result of dtype Float.");
  // The output lies between the arguments of the out-of-place form.
  EXPECT_EQ(RunOperator("aclnnInplaceAddmm", {x, matrix, matrix, 1, 1, 0}), kReject);
  EXPECT_EQ(LastMessage(), "aclnnInplaceAddmm: selfRef has shape [9], expected [3, 3].");
}

}  // namespace
}  // namespace acltape::opapi
