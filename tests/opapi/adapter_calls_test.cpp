// Calls in the forms in which framework adapters make them.
#include <dlfcn.h>

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

TEST(AdapterCalls, AnIndexMayBeInt32) {
  const Tensor x = Random({5, 4}), rows = at::tensor({3, 0, 3}, at::kInt);
  const Tensor out = Unwritten(at::empty({3, 4}));
  EXPECT_TRUE(Gives("aclnnIndex", {x, Tensors{rows}, out}, {{2, x.index_select(0, rows)}}));
  const Tensor columns = at::tensor({1, 2, 0}, at::kInt), picked = Unwritten(at::empty({3}));
  EXPECT_TRUE(Gives("aclnnIndex", {x, Tensors{rows, columns}, picked},
                    {{2, x.index({rows.to(at::kLong), columns.to(at::kLong)})}}));
  const Tensor target = x.clone(), value = Random({3});
  Tensor expected = x.clone();
  expected.index_put_({rows.to(at::kLong), columns.to(at::kLong)}, value);
  EXPECT_TRUE(Gives("aclnnIndexPutImpl", {target, Tensors{rows, columns}, value, false, false},
                    {{0, expected}}));
}

// Some adapters call the second phase although the first one was refused.
TEST(AdapterCalls, ASecondPhaseWithoutExecutorHasTheReasonOfTheFirst) {
  const Tensor x = Random({4, 3}), wrong = Random({2});
  EXPECT_EQ(RunOperator("aclnnIndex", {x, Tensors{wrong}, at::empty({2, 3})}), 161002);
  const std::string why = LastMessage();
  EXPECT_NE(why, "");
  const auto second =
      reinterpret_cast<int (*)(void*, uint64_t, void*, void*)>(dlsym(RTLD_DEFAULT, "aclnnIndex"));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second(nullptr, 0, nullptr, nullptr), 161001);
  EXPECT_EQ(TakeMessage(), "aclnnIndex: executor is NULL; the first phase was refused: " + why);
  const auto other =
      reinterpret_cast<int (*)(void*, uint64_t, void*, void*)>(dlsym(RTLD_DEFAULT, "aclnnAdd"));
  EXPECT_EQ(other(nullptr, 0, nullptr, nullptr), 161001);
  EXPECT_EQ(TakeMessage(), "aclnnAdd: executor is NULL.");
}

TEST(AdapterCalls, ProductsOfHalfAreAddedInFloat32) {
  const Tensor a = Random({2, 4}, at::kHalf), b = Random({2, 3}, at::kHalf), sum = Random({4, 3});
  const Tensor expected = at::addmm(sum, a.t().to(at::kFloat), b.to(at::kFloat));
  EXPECT_TRUE(Gives("aclnnInplaceAddmm", {sum, a.t(), b, 1, 1, int64_t{0}}, {{0, expected}}));
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

// The attention of servers: packed queries, keys and values in blocks of a cache, lengths of keys
// one by one, and a mask that stands for all causal ones. Rows of a graph that no sequence fills
// have the length 0.
class BlocksOfACache : public testing::Test {
 protected:
  static constexpr int64_t kBlock = 4, kHeads = 4, kKeyHeads = 2, kWidth = 8;

  // Keys or values of one sequence as the table says: [heads, length, width].
  static Tensor Rows(const Tensor& cache, const Ints& blocks, int64_t length) {
    std::vector<Tensor> parts;
    for (int64_t block : blocks) parts.push_back(cache[block]);
    return at::cat(parts).narrow(0, 0, length).unflatten(1, {kKeyHeads, kWidth}).transpose(0, 1);
  }

  static Tensor Attended(const Tensor& query, const Tensor& key, const Tensor& value) {
    const int64_t queries = query.size(0), keys = key.size(1), each = kHeads / kKeyHeads;
    const Tensor scores =
        at::matmul(query.transpose(0, 1), key.repeat_interleave(each, 0).transpose(1, 2)) * 0.5;
    const Tensor later = at::ones({queries, keys}, at::kBool).triu(keys - queries + 1);
    const Tensor weights =
        at::softmax(scores.masked_fill(later, -std::numeric_limits<double>::infinity()), -1);
    return at::matmul(weights, value.repeat_interleave(each, 0)).transpose(0, 1);
  }

  static Args Call(const Tensor& query, const Tensor& keys, const Tensor& values, Ints lengths,
                   Ints key_lengths, const Tensor& table, const Tensor& out) {
    Args args = {query,   Tensors{keys}, Tensors{values}, Null{}, at::ones({2048, 2048}, at::kChar),
                 lengths, key_lengths};
    for (int i = 7; i < 27; ++i) args.push_back(i == 14 ? Arg(table) : Arg(Null{}));
    args.insert(args.end(), {int64_t{kHeads}, 0.5, int64_t{1} << 30, int64_t{1} << 30, "TND",
                             int64_t{kKeyHeads}, int64_t{3}, int64_t{0}, int64_t{kBlock},
                             int64_t{0}, false, int64_t{0}, int64_t{0}, out, Null{}});
    return args;
  }

  const Tensor keys_ = Random({6, kBlock, kKeyHeads* kWidth});
  const Tensor values_ = Random({6, kBlock, kKeyHeads* kWidth});
  const Tensor table_ = at::tensor({5, 1, 0, 2, 3, 0, 0, 0, 0}, at::kInt).reshape({3, 3});
};

TEST_F(BlocksOfACache, AreGatheredForEachSequence) {
  const Tensor query = Random({4, kHeads, kWidth}), out = Unwritten(query);
  const Args args = Call(query, keys_, values_, {1, 4, 4}, {6, 5, 0}, table_, out);
  ASSERT_EQ(RunOperator("aclnnFusedInferAttentionScoreV3", args), 0) << LastMessage();
  const Tensor first =
      Attended(query.narrow(0, 0, 1), Rows(keys_, {5, 1}, 6), Rows(values_, {5, 1}, 6));
  const Tensor second =
      Attended(query.narrow(0, 1, 3), Rows(keys_, {2, 3}, 5), Rows(values_, {2, 3}, 5));
  EXPECT_TRUE(at::allclose(out, at::cat({first, second}), 1e-5, 1e-6));
}

TEST_F(BlocksOfACache, MayHaveHeadsFirstOrLieInFractals) {
  const Tensor query = Random({4, kHeads, 16}), expected = Unwritten(query);
  const Tensor keys = Random({6, kBlock, kKeyHeads * 16}),
               values = Random({6, kBlock, kKeyHeads * 16});
  const Ints lengths = {1, 4}, key_lengths = {6, 5};
  ASSERT_EQ(RunOperator("aclnnFusedInferAttentionScoreV3",
                        Call(query, keys, values, lengths, key_lengths, table_, expected)),
            0)
      << LastMessage();
  const auto heads_first = [](const Tensor& cache) {
    return cache.unflatten(2, {kKeyHeads, 16}).transpose(1, 2).contiguous();
  };
  for (bool fractals : {false, true}) {
    Tensor k = heads_first(keys), v = heads_first(values);
    if (fractals) {
      k = k.unflatten(3, {1, 16}).transpose(2, 3).contiguous();
      v = v.unflatten(3, {1, 16}).transpose(2, 3).contiguous();
    }
    const Tensor out = Unwritten(query);
    const Args args = Call(query, k, v, lengths, key_lengths, table_, out);
    ASSERT_EQ(RunOperator("aclnnFusedInferAttentionScoreV3", args), 0) << LastMessage();
    EXPECT_TRUE(at::equal(out, expected)) << "fractals: " << fractals;
  }
}

TEST_F(BlocksOfACache, AreRefusedWhereTheyDoNotFit) {
  const Tensor query = Random({4, kHeads, kWidth}), out = Unwritten(query);
  const std::string op = "aclnnFusedInferAttentionScoreV3";
  const auto status = [&](const Args& args) { return RunOperator(op.c_str(), args); };
  EXPECT_EQ(status(Call(query, keys_, values_, {1, 4}, {6, 13}, table_, out)), 161002);
  EXPECT_EQ(LastMessage(), op + ": actualSeqLengthsKvOptional exceeds the tensor.");
  const Tensor wide = table_.to(at::kLong);
  EXPECT_EQ(status(Call(query, keys_, values_, {1, 4}, {6, 5}, wide, out)), 161002);
  EXPECT_EQ(LastMessage(), op + ": blockTableOptional is not int32.");
  const Tensor other = Random({6, kBlock + 1, kKeyHeads * kWidth});
  EXPECT_EQ(status(Call(query, other, values_, {1, 4}, {6, 5}, table_, out)), 161002);
  EXPECT_EQ(LastMessage(),
            op + ": key has shape [6, 5, 16], which is no cache of 2 heads in blocks of 4.");
}

TEST(AdapterCalls, HistogramsCountIntegers) {
  const Tensor experts = at::tensor({0, 3, 3, 1, 7, 3}, at::kInt);
  Check("aclnnHistc", {experts, int64_t{8}, 0, 7},
        {at::tensor({1, 1, 0, 3, 0, 0, 0, 1}, at::kInt)});
}

}  // namespace
}  // namespace acltape::opapi
