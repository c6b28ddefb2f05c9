// Reductions, index operators, copies and fills in what the grid (grid/reduce_rows.cpp,
// index_rows.cpp, shape_rows.cpp) does not try: arguments that are refused, and unusual outputs.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

TEST(Reductions, HaveTheDtypeThatTheCallNames) {
  const Tensor half = Random({4, 50}, at::kHalf);
  Check("aclnnReduceSum", {half, Dims{1}, false, at::kFloat},
        {at::sum(half, {1}, false, at::kFloat)});
  const Tensor integers = Random({4, 5}, at::kInt, -9, 9);
  EXPECT_EQ(
      RunOperator("aclnnMean", {integers, Dims{1}, false, at::kLong, at::empty({4}, at::kLong)}),
      kReject);
}

TEST(Reductions, TakeDimsInAnyOrder) {
  const Tensor x = Random({5, 37, 11});
  Check("aclnnReduceSum", {x, Dims{2, 0, 1}, false, at::kFloat}, {at::sum(x, {2, 0, 1})});
  Check("aclnnAmax", {x, Dims{2, 0}, true}, {at::amax(x, {2, 0}, true)});
  const Tensor bools = x.gt(1);
  Check("aclnnAll", {bools, Dims{1, 0}, false}, {at::all(at::all(bools, 1), 0)});
}

TEST(Reductions, ADimNamedTwiceIsRefused) {
  const Tensor scalar = Random({});
  EXPECT_EQ(
      RunOperator("aclnnReduceSum", {scalar, Dims{0, 0}, false, at::kFloat, Unwritten(scalar)}),
      kReject);
}

TEST(Sorts, MoreElementsThanThereAreAreRefused) {
  const Tensor x = Random({4, 5});
  EXPECT_EQ(RunOperator("aclnnTopk",
                        {x, 6, 1, true, true, at::empty({4, 6}), at::empty({4, 6}, at::kLong)}),
            kReject);
}

TEST(Index, MoreIndicesThanDimsAreRefused) {
  const Tensor x = Random({6, 5, 4}), i = Indices({3}, 4);
  EXPECT_EQ(RunOperator("aclnnIndex", {x, std::vector<Tensor>{i, i, i, i}, at::empty({3})}),
            kReject);
}

TEST(Index, AReductionThatIsNotListedIsRefused) {
  const Tensor x = Random({6, 5}), index = Indices({3, 5}, 6), values = Random({3, 5});
  EXPECT_EQ(RunOperator("aclnnScatter", {x, 0, index, values, 3, Unwritten(x)}), kReject);
}

TEST(Masks, OneThatDoesNotBroadcastIsRefused) {
  EXPECT_EQ(
      RunOperator("aclnnInplaceMaskedFillScalar", {Random({4, 6}), Random({3, 6}, at::kBool), 1.0}),
      kReject);
}

TEST(Copies, OfOverlappingViewsGoThroughATemporary) {
  const Tensor base = Random({10});
  const Tensor expected = at::cat({base.slice(0, 0, 1), base.slice(0, 0, 9)});
  EXPECT_TRUE(Gives("aclnnInplaceCopy", {base.slice(0, 1, 10), base.slice(0, 0, 9)},
                    {{0, expected.slice(0, 1, 10)}}));
  EXPECT_EQ(RunOperator("aclnnInplaceCopy", {Random({1, 6}), at::zeros({6, 4}).t()}), kReject);
}

TEST(Joins, AndSplitsOfOtherShapesAreRefused) {
  const Tensor x = Random({6, 5}), y = Random({2, 4});
  EXPECT_EQ(RunOperator("aclnnCat", {std::vector<Tensor>{x, y}, 1, at::empty({6, 9})}), kReject);
  EXPECT_EQ(
      RunOperator("aclnnSplitWithSize", {x, Dims{2, 4}, 0, std::vector<Tensor>{at::empty({2, 5})}}),
      kReject);
}

TEST(Ranges, HaveTheDtypeAndTheLengthOfOut) {
  Check("aclnnArange", {0, 5, 1}, {at::arange(0, 5, 1, at::kFloat)});
  Check("aclnnArange", {0, 5, 1}, {at::arange(0, 5, 1, at::kHalf)});
  Check("aclnnLogSpace", {0, 3, 7, 2.0}, {at::logspace(0, 3, 7, 2.0).to(at::kHalf)});
  EXPECT_EQ(RunOperator("aclnnArange", {0, 5, 1, at::empty({4})}), kReject);
  EXPECT_EQ(RunOperator("aclnnArange", {0, 5, 0, at::empty({4})}), kReject);
}

}  // namespace
}  // namespace acltape::opapi
