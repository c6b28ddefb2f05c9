// Reductions, index operators, copies and fills against the library's own, bit by bit.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

// ---- reductions

TEST(Reductions, OverDimsEqualTheLibrary) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kHalf}) {
    const Tensor dense = Random({5, 37, 11}, dtype),
                 swapped = Random({11, 37, 5}, dtype).permute({2, 1, 0});
    for (const Tensor& x : {dense, swapped}) {
      for (const Dims& dims : {Dims{}, Dims{1}, Dims{-1}, Dims{0, 2}, Dims{2, 0, 1}}) {
        for (bool keep : {false, true}) {
          Check("aclnnReduceSum", {x, dims, keep, dtype}, {at::sum(x, dims, keep, dtype)});
          Check("aclnnMean", {x, dims, keep, dtype}, {at::mean(x, dims, keep, dtype)});
          Check("aclnnAmax", {x, dims, keep}, {at::amax(x, dims, keep)});
          Check("aclnnAmin", {x, dims, keep}, {at::amin(x, dims, keep)});
        }
      }
      Check("aclnnMax", {x}, {at::max(x)});
      Check("aclnnMin", {x}, {at::min(x)});
    }
  }
}

TEST(Reductions, TakeEdgeCases) {
  const Tensor scalar = Random({}), empty = Random({3, 0}),
               integers = Random({4, 5}, at::kInt, -9, 9);
  Check("aclnnReduceSum", {scalar, Dims{}, false, at::kFloat}, {at::sum(scalar)});
  Check("aclnnReduceSum", {empty, Dims{1}, false, at::kFloat}, {at::zeros({3})});
  Check("aclnnMean", {empty, Dims{1}, false, at::kFloat}, {at::mean(empty, {1})});
  Check("aclnnReduceSum", {integers, Dims{1}, false, at::kLong}, {at::sum(integers, {1})});
  const Tensor half = Random({4, 50}, at::kHalf);
  Check("aclnnReduceSum", {half, Dims{1}, false, at::kFloat},
        {at::sum(half, {1}, false, at::kFloat)});
  EXPECT_EQ(
      RunOperator("aclnnMean", {integers, Dims{1}, false, at::kLong, at::empty({4}, at::kLong)}),
      161002);
  EXPECT_EQ(
      RunOperator("aclnnReduceSum", {scalar, Dims{0, 0}, false, at::kFloat, Unwritten(scalar)}),
      161002);
}

TEST(Reductions, ToPositionsAndTruthEqualTheLibrary) {
  Tensor x = Random({6, 9}).mul(2).round();
  x[2][3] = NAN;
  for (bool keep : {false, true}) {
    for (int dim : {0, 1, -1}) {
      const auto [max, at_max] = at::max(x, dim, keep);
      const auto [min, at_min] = at::min(x, dim, keep);
      Check("aclnnMaxDim", {x, dim, keep}, {max, at_max});
      Check("aclnnMinDim", {x, dim, keep}, {min, at_min});
      Check("aclnnMaxDim", {x, dim, keep}, {max, at_max.to(at::kInt)});
      Check("aclnnArgMax", {x, dim, keep}, {at::argmax(x, dim, keep)});
      Check("aclnnArgMax", {x, dim, keep}, {at::argmax(x, dim, keep).to(at::kInt)});
      Check("aclnnArgMin", {x, dim, keep}, {at::argmin(x, dim, keep)});
      const Tensor bools = x.gt(1);
      Check("aclnnAny", {bools, Dims{dim}, keep}, {at::any(bools, dim, keep)});
      Check("aclnnAll", {bools, Dims{dim}, keep}, {at::all(bools, dim, keep)});
    }
  }
  const Tensor bools = x.gt(1), none = at::empty({2, 0}, at::kBool);
  Check("aclnnAny", {bools, Dims{}, false}, {at::any(bools)});
  Check("aclnnAny", {x, Dims{0, 1}, true}, {at::any(x).reshape({1, 1})});
  Check("aclnnAll", {bools, Dims{1, 0}, false}, {at::all(bools)});
  Check("aclnnAll", {none, Dims{1}, false}, {at::ones({2}, at::kBool)});
  Check("aclnnAny", {bools, Dims{1}, false}, {at::any(bools, 1).to(at::kByte)});
}

TEST(Reductions, OfSpreadNormAndScansEqualTheLibrary) {
  const Tensor x = Random({5, 37});
  Check("aclnnVar", {x, Dims{1}, true, false}, {at::var(x, {1}, true, false)});
  Check("aclnnVarCorrection", {x, Dims{1}, 2, false},
        {at::var(x, Dims{1}, c10::optional<int64_t>(2), false)});
  Check("aclnnStd", {x, Dims{0}, 1, true}, {at::std(x, Dims{0}, c10::optional<int64_t>(1), true)});
  const auto [var, mean] = at::var_mean(x, {1}, 1, false);
  Check("aclnnVarMean", {x, Dims{1}, 1, false}, {var, mean});
  Check("aclnnNorm", {x, 2.0, Dims{1}, false}, {at::norm(x, 2.0, {1}, false)});
  Check("aclnnLinalgVectorNorm", {x, 1.0, Dims{}, false, at::kFloat},
        {at::linalg_vector_norm(x, 1.0)});
  Check("aclnnLogSumExp", {x, Dims{1}, true}, {at::logsumexp(x, {1}, true)});
  Check("aclnnCumsum", {x, -1, at::kFloat}, {at::cumsum(x, -1)});
  Check("aclnnCumsum", {x.gt(0), 0, at::kLong}, {at::cumsum(x.gt(0), 0)});
  const Tensor half = x.to(at::kHalf);
  Check("aclnnCumsum", {half, 1, at::kHalf}, {at::cumsum(half.to(at::kFloat), 1).to(at::kHalf)});
  Check("aclnnCumprod", {x, 1, at::kFloat}, {at::cumprod(x, 1)});
  Check("aclnnProd", {x[0], at::kFloat}, {at::prod(x[0])});
  Check("aclnnProdDim", {x, 1, false, at::kFloat}, {at::prod(x, 1, false)});
  Check("aclnnMedian", {x}, {at::median(x)});
}

TEST(Sorts, EqualTheLibrary) {
  for (at::ScalarType dtype : {at::kFloat, at::kLong}) {
    const Tensor x = Random({6, 41}, dtype, -20, 20);
    for (bool flag : {false, true}) {
      const auto [values, indices] = at::sort(x, c10::optional<bool>(true), 1, flag);
      Check("aclnnSort", {x, true, 1, flag}, {values, indices});
      const auto [top, where] = at::topk(x, 5, 1, flag, true);
      Check("aclnnTopk", {x, 5, -1, flag, true}, {top, where});
    }
    Check("aclnnArgsort", {x, 0, true}, {at::argsort(x, 0, true)});
  }
  const Tensor x = Random({4, 5});
  EXPECT_EQ(RunOperator("aclnnTopk",
                        {x, 6, 1, true, true, at::empty({4, 6}), at::empty({4, 6}, at::kLong)}),
            161002);
  const auto [none, nowhere] = at::topk(x, 0, 1);
  Check("aclnnTopk", {x, 0, 1, true, true}, {none, nowhere});
}

// ---- index operators

TEST(Index, ReadsEqualTheLibrary) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kLong, at::kBool}) {
    const Tensor x = Random({11, 7, 5}, dtype, 0, 50), strided = x.transpose(0, 2);
    for (at::ScalarType index_dtype : {at::kLong, at::kInt}) {
      const Tensor rows = Indices({6}, 5, index_dtype);
      Check("aclnnIndexSelect", {x, 1, rows}, {at::index_select(x, 1, rows)});
      Check("aclnnIndexSelect", {strided, -3, rows}, {at::index_select(strided, 0, rows)});
      const Tensor grid = Indices({2, 3}, 11, index_dtype);
      Check("aclnnGatherV2", {x, 0, grid},
            {at::index_select(x, 0, grid.flatten()).view({2, 3, 7, 5})});
    }
    const Tensor index = Indices({4, 7, 5}, 11);
    Check("aclnnGather", {x, 0, index}, {at::gather(x, 0, index)});
    Check("aclnnGather", {x, 0, index.to(at::kInt)}, {at::gather(x, 0, index)});
    const Tensor flat = Indices({9}, 11 * 35);
    Check("aclnnTake", {x, flat}, {at::take(x, flat)});
  }
  const Tensor weight = Random({13, 8});
  for (const Dims& sizes : {Dims{}, Dims{4}, Dims{2, 3}, Dims{0}}) {
    const Tensor tokens = Indices(sizes, 13);
    Check("aclnnEmbedding", {weight, tokens}, {at::embedding(weight, tokens)});
    const Tensor g = Random(at::embedding(weight, tokens).sizes());
    Check("aclnnEmbeddingDenseBackward", {g, tokens, 13, -1, false},
          {at::embedding_dense_backward(g, tokens, 13, -1, false)});
  }
}

TEST(Index, ByListsEqualsTheLibrary) {
  const Tensor x = Random({6, 5, 4}), i = Indices({3}, 4), j = Indices({2, 3}, 4),
               k = at::neg(Indices({3}, 3)) - 1;
  const Tensor slice = at::empty({0}, at::kLong);
  using List = c10::List<c10::optional<Tensor>>;
  const c10::optional<Tensor> none;
  Check("aclnnIndex", {x, std::vector<Tensor>{i}}, {at::index(x, List({i}))});
  Check("aclnnIndex", {x, std::vector<Tensor>{i, j}}, {at::index(x, List({i, j}))});
  Check("aclnnIndex", {x, std::vector<Tensor>{slice, i, k}}, {at::index(x, List({none, i, k}))});
  Check("aclnnIndex", {x, std::vector<Tensor>{i, slice, k}}, {at::index(x, List({i, none, k}))});
  const Tensor mask = x.select(2, 0).gt(0);
  Check("aclnnIndex", {x, std::vector<Tensor>{mask}}, {at::index(x, List({mask}))});
  for (bool accumulate : {false, true}) {
    const Tensor self = x.clone(), values = Random({3, 4}), rows = Indices({3}, 5);
    const Tensor expected = at::index_put(x, List({i, rows}), values, accumulate);
    CheckInplace("aclnnIndexPutImpl",
                 {self, std::vector<Tensor>{i, rows}, values, accumulate, false}, expected);
  }
  EXPECT_EQ(RunOperator("aclnnIndex", {x, std::vector<Tensor>{i, i, i, i}, at::empty({3})}),
            161002);
}

TEST(Index, WritesEqualTheLibrary) {
  const Tensor x = Random({6, 5}), rows = at::tensor({4, 1}, at::kLong), source = Random({2, 5});
  CheckInplace("aclnnInplaceIndexCopy", {x.clone(), 0, rows, source},
               at::index_copy(x, 0, rows, source));
  CheckInplace("aclnnInplaceIndexCopy", {x.clone(), 0, rows.to(at::kInt), source},
               at::index_copy(x, 0, rows, source));
  Check("aclnnIndexAdd", {x, 0, rows, source, 0.5}, {at::index_add(x, 0, rows, source, 0.5)});
  Check("aclnnIndexFill", {x, 0, rows, 7.0}, {at::index_fill(x, 0, rows, 7.0)});
  CheckInplace("aclnnInplaceIndexFillTensor", {x.clone(), 0, Dims{4, 1}, 7.0},
               at::index_fill(x, 0, rows, 7.0));
  const Tensor index = Indices({3, 5}, 6), values = Random({3, 5});
  Check("aclnnScatter", {x, 0, index, values, 0}, {at::scatter(x, 0, index, values)});
  Check("aclnnScatter", {x, 0, index, values, 1}, {at::scatter(x, 0, index, values, "add")});
  CheckInplace("aclnnInplaceScatter", {x.clone(), 0, index, values, 2},
               at::scatter(x, 0, index, values, "multiply"));
  Check("aclnnScatterValue", {x, 0, index, 3.0, 0}, {at::scatter(x, 0, index, 3.0)});
  Check("aclnnScatterAdd", {x, 0, index, values}, {at::scatter_add(x, 0, index, values)});
  const Tensor sum = x.clone();
  EXPECT_TRUE(Gives("aclnnScatterAdd", {sum, 0, index, values, sum},
                    {{4, at::scatter_add(x, 0, index, values)}}));
  EXPECT_EQ(RunOperator("aclnnScatter", {x, 0, index, values, 3, Unwritten(x)}), 161002);
}

TEST(Index, LesserFormsEqualTheLibrary) {
  const Tensor x = Random({6, 5}), rows = at::tensor({4, 1}, at::kLong), index = Indices({3, 5}, 6);
  CheckInplace("aclnnInplaceIndexFill", {x.clone(), 0, rows, 7.0}, at::index_fill(x, 0, rows, 7.0));
  Check("aclnnIndexFillTensor", {x, 0, Dims{4, 1}, 7.0}, {at::index_fill(x, 0, rows, 7.0)});
  CheckInplace("aclnnInplaceScatterValue", {x.clone(), 0, index, 3.0, 1},
               at::scatter(x, 0, index, 3.0, "add"));
  const auto [values, positions] = at::kthvalue(x, 2, 1, true);
  Check("aclnnKthvalue", {x, 2, 1, true}, {values, positions});
  CheckInplace("aclnnInplaceTril", {x.clone(), 1}, at::tril(x, 1));
  CheckInplace("aclnnInplaceFillDiagonal", {x.clone(), 9.0, false}, x.clone().fill_diagonal_(9.0));
  Check("aclnnRange", {1.0, 3.0, 0.5}, {at::range(1.0, 3.0, 0.5)});
  const Tensor image = Random({2, 3, 6, 7});
  Check("aclnnReflectionPad2d", {image, Dims{1, 2, 0, 1}},
        {at::reflection_pad2d(image, {1, 2, 0, 1})});
  Check("aclnnIm2col", {image, Dims{2, 3}, Dims{1, 1}, Dims{1, 0}, Dims{2, 1}},
        {at::im2col(image, {2, 3}, {1, 1}, {1, 0}, {2, 1})});
  const Tensor a = at::empty({2, 5}), b = at::empty({4, 5});
  ASSERT_EQ(RunOperator("aclnnSplitWithSize", {x, Dims{2, 4}, 0, std::vector<Tensor>{a, b}}), 0);
  EXPECT_TRUE(SameBits(at::cat({a, b}), x));
  EXPECT_EQ(RunOperator("aclnnSplitWithSize", {x, Dims{2, 4}, 0, std::vector<Tensor>{a}}), 161002);
}

TEST(Masks, FillAndScatter) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf, at::kLong}) {
    const Tensor x = Random({4, 1, 6}, dtype, -9, 9), mask = Random({1, 6}, at::kBool);
    CheckInplace("aclnnInplaceMaskedFillScalar", {x.clone(), mask, -3.0},
                 at::masked_fill(x, mask, -3));
    CheckInplace("aclnnInplaceMaskedFillTensor",
                 {x.clone(), mask.to(at::kByte), at::full({1}, 2, dtype)},
                 at::masked_fill(x, mask, 2));
  }
  const Tensor x = Random({4, 6}), mask = Random({4, 6}, at::kBool), source = Random({24});
  CheckInplace("aclnnInplaceMaskedFillScalar", {x.clone(), mask, -INFINITY},
               at::masked_fill(x, mask, -INFINITY));
  CheckInplace("aclnnInplaceMaskedScatter", {x.clone(), mask, source},
               at::masked_scatter(x, mask, source));
  EXPECT_EQ(RunOperator("aclnnInplaceMaskedFillScalar", {x, Random({3, 6}, at::kBool), 1.0}),
            161002);
  const Tensor classes = Indices({3, 2}, 4);
  Check("aclnnOneHot", {classes, 4, at::ones({1}), at::zeros({1}), -1},
        {at::one_hot(classes, 4).to(at::kFloat)});
}

// ---- copies and fills

TEST(Copies, ConvertBroadcastAndFollowStrides) {
  for (at::ScalarType from : {at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kBool}) {
    for (at::ScalarType to : {at::kFloat, at::kHalf, at::kBFloat16, at::kInt, at::kBool}) {
      for (const auto& [name, x] : Views(from, -3, 3)) {
        const Tensor out = at::zeros(x.sizes(), to);
        CheckInplace("aclnnInplaceCopy", {out, x}, x.to(to));
        Check("aclnnCast", {x, to}, {x.to(to).clone()});
      }
    }
  }
  const Tensor row = Random({1, 6}), out = at::zeros({6, 4}).t();
  CheckInplace("aclnnInplaceCopy", {out, row}, row.expand({4, 6}));
  const Tensor base = Random({10});
  const Tensor expected = at::cat({base.slice(0, 0, 1), base.slice(0, 0, 9)});
  EXPECT_TRUE(Gives("aclnnInplaceCopy", {base.slice(0, 1, 10), base.slice(0, 0, 9)},
                    {{0, expected.slice(0, 1, 10)}}))
      << "overlapping views copy as if through a temporary";
  EXPECT_EQ(RunOperator("aclnnInplaceCopy", {row, out}), 161002);
}

TEST(Copies, OfViewsAndJoinsEqualTheLibrary) {
  const Tensor x = Random({3, 4, 5}), y = Random({3, 2, 5}),
               z = Random({5, 4, 3}).permute({2, 1, 0});
  Check("aclnnPermute", {x, Dims{2, 0, -2}}, {x.permute({2, 0, 1}).contiguous()});
  Check("aclnnExpand", {x[0], Dims{2, 4, 5}}, {x[0].expand({2, 4, 5}).contiguous()});
  Check("aclnnSlice", {x, 1, -3, 100, 2}, {x.slice(1, -3, 100, 2).contiguous()});
  Check("aclnnSliceV2", {x, Dims{1, 0}, Dims{3, 2}, Dims{2, 0}, Dims{1, 1}},
        {x.slice(2, 1, 3).slice(0, 0, 2).contiguous()});
  Check("aclnnCat", {std::vector<Tensor>{x, y, z}, 1}, {at::cat({x, y, z}, 1)});
  Check("aclnnCat", {std::vector<Tensor>{at::empty({0}), x}, -1}, {x});
  Check("aclnnCat", {std::vector<Tensor>{x, x.to(at::kHalf)}, 0},
        {at::cat({x, x.to(at::kHalf)}, 0)});
  Check("aclnnStack", {std::vector<Tensor>{x, z}, -1}, {at::stack({x, z}, -1)});
  Check("aclnnRepeat", {x, Dims{2, 1, 3, 1}}, {x.repeat({2, 1, 3, 1})});
  Check("aclnnRepeat", {x, Dims{0, 1, 1}}, {x.repeat({0, 1, 1})});
  Check("aclnnRepeatInterleaveIntWithDim", {x, 2, 1, 8}, {at::repeat_interleave(x, 2, 1)});
  Check("aclnnFlip", {x, Dims{0, 2}}, {at::flip(x, {0, 2})});
  Check("aclnnRoll", {x, Dims{1, -2}, Dims{0, 2}}, {at::roll(x, {1, -2}, {0, 2})});
  Check("aclnnConstantPadNd", {x, Dims{1, 2, -1, 0}, 1.5},
        {at::constant_pad_nd(x, {1, 2, -1, 0}, 1.5)});
  Check("aclnnReflectionPad1d", {x, Dims{2, 1}}, {at::reflection_pad1d(x, {2, 1})});
  for (int diagonal : {-1, 0, 2}) {
    Check("aclnnTriu", {x, diagonal}, {at::triu(x, diagonal)});
    Check("aclnnTril", {x, diagonal}, {at::tril(x, diagonal)});
    CheckInplace("aclnnInplaceTriu", {x.clone(), diagonal}, at::triu(x, diagonal));
  }
  const Tensor a = at::empty({3, 2, 5}), b = at::empty({3, 2, 5});
  ASSERT_EQ(RunOperator("aclnnSplitTensor", {x, 2, 1, std::vector<Tensor>{a, b}}), 0);
  EXPECT_TRUE(SameBits(at::cat({a, b}, 1), x));
  EXPECT_EQ(
      RunOperator("aclnnCat", {std::vector<Tensor>{x, Random({2, 4, 5})}, 1, at::empty({3, 8, 5})}),
      161002);
}

TEST(Fills, WriteTheViewOnly) {
  const Tensor base = Random({4, 6}), kept = base.clone();
  const Tensor view = base.slice(1, 1, 6, 2);
  CheckInplace("aclnnInplaceZero", {view}, at::zeros({4, 3}));
  EXPECT_TRUE(SameBits(base.slice(1, 0, 6, 2), kept.slice(1, 0, 6, 2)));
  CheckInplace("aclnnInplaceOne", {view}, at::ones({4, 3}));
  CheckInplace("aclnnInplaceFillScalar", {view, 2.5}, at::full({4, 3}, 2.5));
  CheckInplace("aclnnInplaceFillTensor", {view, at::full({1}, 3, at::kLong)},
               at::full({4, 3}, 3.0));
  EXPECT_TRUE(SameBits(base.slice(1, 0, 6, 2), kept.slice(1, 0, 6, 2)));
  CheckInplace("aclnnInplaceFillScalar", {at::zeros({3}, at::kLong), 7},
               at::full({3}, 7, at::kLong));
}

TEST(Ranges, HaveTheLengthOfOut) {
  Check("aclnnArange", {0, 10, 1}, {at::arange(10)});
  Check("aclnnArange", {2, -9, -3}, {at::arange(2, -9, -3)});
  Check("aclnnArange", {0.0, 1.0, 0.1}, {at::arange(0.0, 1.0, 0.1)});
  Check("aclnnArange", {0, 5, 1}, {at::arange(0, 5, 1, at::kFloat)});
  Check("aclnnArange", {0, 5, 1}, {at::arange(0, 5, 1, at::kHalf)});
  Check("aclnnLinspace", {0.0, 1.0, 7}, {at::linspace(0.0, 1.0, 7)});
  Check("aclnnEye", {3, 4}, {at::eye(3, 4)});
  EXPECT_EQ(RunOperator("aclnnArange", {0, 5, 1, at::empty({4})}), 161002);
  EXPECT_EQ(RunOperator("aclnnArange", {0, 5, 0, at::empty({4})}), 161002);
}

}  // namespace
}  // namespace acltape::opapi
