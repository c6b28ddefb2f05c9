// Calls in the forms in which framework adapters make them.
#include <limits>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

// `x[mask] = 0` where nothing is true: the mask has become an index without elements.
TEST(AdapterCalls, AnIndexWithoutElementsPutsNothing) {
  const Tensor x = Random({4, 3}, at::kDouble), before = x.clone();
  const Tensor none = at::empty({0}, at::kLong), value = at::zeros({}, at::kDouble);
  EXPECT_TRUE(Gives("aclnnIndexPutImpl", {x, Tensors{none}, value, false, false}, {{0, before}}));
  const Tensor out = at::empty({0, 3}, at::kDouble);
  EXPECT_EQ(RunOperator("aclnnIndex", {x, Tensors{none}, out}), 0) << LastMessage();
}

// "All of a dim" is an empty tensor of self's dtype beside an index.
TEST(AdapterCalls, AnEmptyTensorBesideAnIndexStandsForAWholeDim) {
  const Tensor x = Random({4, 3}), index = at::tensor({2, 0}, at::kLong), all = at::empty({0});
  const Tensor out = Unwritten(at::empty({4, 2}));
  EXPECT_TRUE(Gives("aclnnIndex", {x, Tensors{all, index}, out}, {{2, x.index_select(1, index)}}));
}

TEST(AdapterCalls, AFillMayOverlapItself) {
  const Tensor row = Random({1, 5}), rows = row.expand({3, 5});
  EXPECT_TRUE(Gives("aclnnInplaceFillScalar", {rows, 2.5}, {{0, at::full({3, 5}, 2.5)}}));
  EXPECT_TRUE(Gives("aclnnInplaceZero", {rows}, {{0, at::zeros({3, 5})}}));
}

TEST(AdapterCalls, ProductsOfDifferentFloatsPromote) {
  const Tensor a = Random({3, 4}, at::kHalf), b = Random({4, 5});
  Check("aclnnMm", {a, b}, {at::mm(a.to(at::kFloat), b)}, {int64_t{0}});
  Check("aclnnMatmul", {b.t(), a.t()}, {at::matmul(b.t(), a.to(at::kFloat).t())}, {int64_t{0}});
  const Tensor integers = at::ones({4, 5}, at::kInt), out = at::empty({3, 5});
  EXPECT_EQ(RunOperator("aclnnMm", {a, integers, out, int64_t{0}}), 161002);
  EXPECT_EQ(LastMessage(), "aclnnMm: mat2 has dtype Int but self has Half.");
}

TEST(AdapterCalls, LengthsOfAQueryOfOneRowAreNotLookedAt) {
  const int64_t all = std::numeric_limits<int32_t>::max();
  const Tensor query = Random({2, 2, 1, 8}), key = Random({2, 2, 6, 8});
  const Tensor value = Random({2, 2, 6, 8}), out = Unwritten(query);
  Args args = {query, Tensors{key}, Tensors{value}, Null{}, Null{}, Ints{100}, Ints{6, 4}};
  for (int i = 0; i < 20; ++i) args.push_back(Null{});
  args.insert(args.end(), {int64_t{2}, 0.5, all, all, "BNSD", int64_t{0}, int64_t{0}, int64_t{0},
                           int64_t{0}, int64_t{0}, false, int64_t{0}, int64_t{0}, out, Null{}});
  ASSERT_EQ(RunOperator("aclnnFusedInferAttentionScoreV3", args), 0) << LastMessage();
  const auto attend = [&](int64_t batch, int64_t keys) {
    const Tensor scores = at::matmul(query[batch], key[batch].narrow(1, 0, keys).transpose(1, 2));
    return at::matmul(at::softmax(scores * 0.5, -1), value[batch].narrow(1, 0, keys));
  };
  EXPECT_TRUE(at::allclose(out[0], attend(0, 6), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(out[1], attend(1, 4), 1e-5, 1e-6));
}

TEST(AdapterCalls, HistogramsCountIntegers) {
  const Tensor experts = at::tensor({0, 3, 3, 1, 7, 3}, at::kInt);
  Check("aclnnHistc", {experts, int64_t{8}, 0, 7},
        {at::tensor({1, 1, 0, 3, 0, 0, 0, 1}, at::kInt)});
}

}  // namespace
}  // namespace acltape::opapi
