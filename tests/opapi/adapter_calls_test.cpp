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

// The forward pass in training mode leaves what the backward pass needs.
TEST(AdapterCalls, AnLstmTrains) {
  const at::AutoGradMode enabled(true);
  const auto leaf = [](const Ints& sizes) {
    return Random(sizes, at::kFloat, -0.5, 0.5).requires_grad_();
  };
  Tensor x = leaf({5, 3, 4}), h0 = leaf({2, 3, 6}), c0 = leaf({2, 3, 6});
  Tensors params;
  for (int direction = 0; direction < 2; ++direction) {
    for (const Ints& sizes : {Ints{24, 4}, Ints{24, 6}, Ints{24}, Ints{24}}) {
      params.push_back(leaf(sizes));
    }
  }
  const auto expected = at::lstm(x, {h0, c0}, params, true, 1, 0.0, true, true, false);
  const Tensor dy = Random({5, 3, 12}), dh = Random({2, 3, 6}), dc = Random({2, 3, 6});
  ((std::get<0>(expected) * dy).sum() + (std::get<1>(expected) * dh).sum() +
   (std::get<2>(expected) * dc).sum())
      .backward();

  const auto plain = [](const Tensors& list) {
    Tensors detached;
    for (const Tensor& tensor : list) detached.push_back(tensor.detach());
    return detached;
  };
  std::vector<Tensors> traces;
  for (int k = 0; k < 7; ++k) traces.push_back({at::empty({5, 3, 6}), at::empty({5, 3, 6})});
  const Tensor y = at::empty({5, 3, 12}), hy = at::empty({2, 3, 6}), cy = at::empty({2, 3, 6});
  Args forward = {x.detach(), plain(params), plain({h0, c0}), Null{}, true, int64_t{1}, 0.0,
                  true,       true,          false,           y,      hy,   cy};
  for (const Tensors& trace : traces) forward.push_back(trace);
  ASSERT_EQ(RunOperator("aclnnLSTM", forward), 0) << LastMessage();
  EXPECT_TRUE(at::allclose(y, std::get<0>(expected), 1e-5, 1e-6));

  Args backward = {x.detach(), plain({h0, c0}), plain(params), dy, dh, dc};
  for (const Tensors& trace : traces) backward.push_back(trace);
  const Tensor dx = at::empty({5, 3, 4}), dh0 = at::empty({2, 3, 6}), dc0 = at::empty({2, 3, 6});
  Tensors dparams;
  for (const Tensor& param : params) dparams.push_back(at::empty(param.sizes()));
  backward.insert(backward.end(), {Null{}, true, int64_t{1}, 0.0, true, true, false,
                                   Ints{1, 1, 1, 1}, dx, dh0, dc0, dparams});
  ASSERT_EQ(RunOperator("aclnnLstmBackward", backward), 0) << LastMessage();
  EXPECT_TRUE(at::allclose(dx, x.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(dh0, h0.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(dc0, c0.grad(), 1e-4, 1e-5));
  for (size_t k = 0; k < params.size(); ++k) {
    EXPECT_TRUE(at::allclose(dparams[k], params[k].grad(), 1e-4, 1e-5)) << "parameter " << k;
  }
}

}  // namespace
}  // namespace acltape::opapi
