// Refusals of fused attention of inference: padding, shared prefixes, caches of int8 and results of
// int8 that do not fit. Calls that it takes are in the grid (grid/infer_features.cpp).
#include <limits>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Ints = std::vector<int64_t>;
using Tensors = std::vector<Tensor>;
using Changes = std::map<int, Arg>;

class InferAttention : public testing::Test {
 protected:
  // Positions in aclnnFusedInferAttentionScoreV3.
  enum At {
    kQuery = 0,
    kKey = 1,
    kValue = 2,
    kLengths = 5,
    kKeyLengths = 6,
    kQueryScale = 7,
    kOutScale = 10,
    kOutOffset = 11,
    kScales = 12,
    kTable = 14,
    kQueryPadding = 15,
    kKeyPadding = 16,
    kKeyScale = 17,
    kKeyOffset = 18,
    kValueScale = 19,
    kKeyPrefix = 21,
    kValuePrefix = 22,
    kPrefixLength = 23,
    kRope = 24,
    kKeyRope = 25,
    kLayout = 31,
    kBlockSize = 35,
    kScalesMode = 36,
    kKeyMode = 38,
    kValueMode = 39,
    kOut = 40,
  };

  static constexpr int64_t kBatch = 2, kHeads = 2, kRows = 3, kKeys = 5, kWidth = 8;

  static Tensor Half(at::IntArrayRef sizes) { return Random(sizes, at::kHalf); }
  static Tensor Bytes(at::IntArrayRef sizes) { return at::ones(sizes, at::kChar); }
  static Tensor Padding() { return at::ones({1}, at::kLong); }
  // Keys and values of int8 for queries of some rows.
  static Changes ByteKeys(int64_t rows, Changes more) {
    const Tensor query = Half({kBatch, kHeads, rows, kWidth});
    Changes changes = {{kQuery, query},
                       {kKey, Tensors{Bytes({kBatch, kHeads, kKeys, kWidth})}},
                       {kValue, Tensors{Bytes({kBatch, kHeads, kKeys, kWidth})}},
                       {kOut, Unwritten(query)}};
    more.insert(changes.begin(), changes.end());
    return more;
  }
  static Changes Prefix(Changes more) {
    more.insert(
        {{kKeyPrefix, Half({1, kHeads, 4, kWidth})}, {kValuePrefix, Half({1, kHeads, 4, kWidth})}});
    return more;
  }

  static Args Call(const Changes& changes) {
    const int64_t all = std::numeric_limits<int32_t>::max();
    const Tensor query = Half({kBatch, kHeads, kRows, kWidth});
    Args args(27, Null{});
    args[kQuery] = query;
    args[kKey] = Tensors{Half({kBatch, kHeads, kKeys, kWidth})};
    args[kValue] = Tensors{Half({kBatch, kHeads, kKeys, kWidth})};
    args.insert(args.end(),
                {kHeads, 0.5, all, all, "BNSD", kHeads, int64_t{0}, int64_t{0}, int64_t{0},
                 int64_t{0}, false, int64_t{0}, int64_t{0}, Unwritten(query), Null{}});
    for (const auto& [i, arg] : changes) args[i] = arg;
    return args;
  }

  static void ExpectRefused(const Changes& changes, const std::string& message) {
    EXPECT_EQ(RunOperator("aclnnFusedInferAttentionScoreV3", Call(changes)), kReject) << message;
    EXPECT_EQ(LastMessage(), "aclnnFusedInferAttentionScoreV3: " + message);
  }

  const Arg all_rows_ = Ints{3, 3};
  const Arg all_keys_ = Ints{5, 5};
};

TEST_F(InferAttention, TakesThePlainCall) {
  EXPECT_EQ(RunOperator("aclnnFusedInferAttentionScoreV3", Call({})), 0) << LastMessage();
}

TEST_F(InferAttention, RefusesQueriesOfScalesThatItLacks) {
  ExpectRefused({{kQueryScale, at::ones({1})}},
                "deqScale1Optional is given, which the soft device lacks.");
}

TEST_F(InferAttention, RefusesPaddingThatDoesNotFit) {
  const Changes padded = {{kLengths, all_rows_}, {kKeyLengths, all_keys_}};
  const auto with = [&](Changes more) {
    more.insert(padded.begin(), padded.end());
    return more;
  };
  ExpectRefused(with({{kQueryPadding, at::ones({1}, at::kInt)}}),
                "queryPaddingSizeOptional has dtype Int, expected Long.");
  ExpectRefused(with({{kKeyPadding, at::ones({2}, at::kLong)}}),
                "kvPaddingSizeOptional has not one element.");
  ExpectRefused(with({{kKeyPadding, Padding()},
                      {kKey, Tensors(2, Half({1, kHeads, kKeys, kWidth}))},
                      {kValue, Tensors(2, Half({1, kHeads, kKeys, kWidth}))}}),
                "kvPaddingSizeOptional is given beside a list of keys.");
  ExpectRefused(with({{kKeyPadding, Padding()},
                      {kKey, Tensors{Half({3, kHeads, 4, kWidth})}},
                      {kValue, Tensors{Half({3, kHeads, 4, kWidth})}},
                      {kTable, at::zeros({2, 2}, at::kInt)},
                      {kBlockSize, int64_t{4}}}),
                "kvPaddingSizeOptional is given beside a table of blocks.");
  ExpectRefused(with({{kQueryPadding, Padding()},
                      {kRope, Half({kBatch, kHeads, kRows, 4})},
                      {kKeyRope, Half({kBatch, kHeads, kKeys, 4})}}),
                "queryPaddingSizeOptional is given beside queryRope.");
  const Tensor packed = Half({6, kHeads, kWidth});
  ExpectRefused({{kQuery, packed},
                 {kKey, Tensors{packed}},
                 {kValue, Tensors{packed}},
                 {kLengths, Ints{2, 6}},
                 {kKeyLengths, Ints{2, 6}},
                 {kQueryPadding, Padding()},
                 {kLayout, "TND"},
                 {kOut, Unwritten(packed)}},
                "queryPaddingSizeOptional is given beside a packed layout.");
}

TEST_F(InferAttention, StopsWhereARowWouldLieBeforeItsBatch) {
  const Args args = Call({{kLengths, all_rows_}, {kQueryPadding, Padding()}});
  EXPECT_NE(RunOperator("aclnnFusedInferAttentionScoreV3", args), 0);
  EXPECT_NE(LastMessage().find("sequence 0 of 3 queries begins before its batch of 3 rows with a "
                               "padding of 1"),
            std::string::npos)
      << LastMessage();
}

TEST_F(InferAttention, RefusesPrefixesThatDoNotFit) {
  ExpectRefused({{kKeyPrefix, Half({1, kHeads, 4, kWidth})}},
                "valueSharedPrefixOptional is absent, but the other prefix is given.");
  ExpectRefused({{kPrefixLength, Ints{2}}},
                "actualSharedPrefixLenOptional is given without a shared prefix.");
  ExpectRefused(Prefix({{kPrefixLength, Ints{5}}}),
                "actualSharedPrefixLenOptional exceeds the prefix.");
  ExpectRefused(Prefix({{kPrefixLength, Ints{1, 1}}}),
                "actualSharedPrefixLenOptional has not one entry.");
  ExpectRefused(Prefix({{kKeyPrefix, Half({2, kHeads, 4, kWidth})}}),
                "keySharedPrefixOptional has more than one batch.");
  ExpectRefused(Prefix({{kValuePrefix, Half({1, kHeads, 3, kWidth})}}),
                "valueSharedPrefixOptional has other rows than keySharedPrefix.");
  ExpectRefused(Prefix({{kValuePrefix, Half({1, kHeads, 4, kWidth + 1})}}),
                "valueSharedPrefixOptional has another width than value.");
  ExpectRefused(Prefix({{kKeyPrefix, Random({1, kHeads, 4, kWidth})}}),
                "keySharedPrefixOptional has dtype Float but query has Half.");
  ExpectRefused(Prefix({{kLengths, all_rows_}, {kQueryPadding, Padding()}}),
                "keySharedPrefixOptional is given beside left padding.");
  ExpectRefused(Prefix({{kKey, Tensors(2, Half({1, kHeads, kKeys, kWidth}))},
                        {kValue, Tensors(2, Half({1, kHeads, kKeys, kWidth}))}}),
                "keySharedPrefixOptional is given beside a list of keys.");
  const Tensor rows = at::ones({1, kBatch, kKeys});
  ExpectRefused(Prefix(ByteKeys(1, {{kKeyScale, rows},
                                    {kValueScale, rows},
                                    {kKeyMode, int64_t{1}},
                                    {kValueMode, int64_t{1}}})),
                "keySharedPrefixOptional is given beside scales of rows.");
}

TEST_F(InferAttention, RefusesCachesOfInt8WithoutScalesThatFit) {
  const Tensor channels = at::ones({kHeads, kWidth}, at::kHalf);
  ExpectRefused(ByteKeys(1, {}), "antiquantScaleOptional is absent, but key is int8.");
  ExpectRefused({{kScales, at::ones({2}, at::kHalf)}},
                "antiquantScaleOptional is given, but key is not int8.");
  ExpectRefused({{kValueScale, channels}},
                "valueAntiquantScaleOptional is given, but key is not int8.");
  ExpectRefused(
      ByteKeys(1, {{kQuery, Random({kBatch, kHeads, 1, kWidth})}, {kScales, at::ones({2})}}),
      "key is int8, which needs a query of float16 or bfloat16.");
  ExpectRefused(ByteKeys(1, {{kScales, at::ones({2})}}),
                "antiquantScaleOptional has dtype Float, expected Half.");
  ExpectRefused(ByteKeys(1, {{kScales, at::ones({3}, at::kHalf)}}),
                "antiquantScaleOptional has shape [3], expected one part for keys and one for "
                "values.");
  ExpectRefused(ByteKeys(1, {{kScales, at::ones({2}, at::kHalf)}, {kScalesMode, int64_t{2}}}),
                "antiquantMode is 2, expected a mode from 0 to 1.");
  ExpectRefused(ByteKeys(1, {{kValue, Tensors{Half({kBatch, kHeads, kKeys, kWidth})}},
                             {kScales, at::ones({2}, at::kHalf)}}),
                "value is not int8, but key is.");
  const auto apart = [&](int64_t rows, const Tensor& scale, int64_t mode, Changes more = {}) {
    more.insert({{kKeyScale, scale}, {kValueScale, scale}, {kKeyMode, mode}, {kValueMode, mode}});
    return ByteKeys(rows, more);
  };
  ExpectRefused(apart(1, channels, 0, {{kValueScale, Null{}}}),
                "valueAntiquantScaleOptional is absent, but the one of the keys is given.");
  ExpectRefused(apart(1, channels, 0, {{kKeyOffset, channels}}),
                "valueAntiquantOffsetOptional is absent, but the one of the keys is given.");
  ExpectRefused(apart(1, channels, 6), "keyAntiquantMode is 6, expected a mode from 0 to 5.");
  ExpectRefused(apart(kRows, channels, 2),
                "keyAntiquantMode is 2; modes after 1 are for queries of one row.");
  ExpectRefused(apart(1, channels, 4), "keyAntiquantMode is 4, but keys do not lie in blocks.");
  ExpectRefused(apart(1, channels, 0, {{kValueMode, int64_t{2}}}),
                "valueAntiquantMode is another mode than that of the keys.");
  ExpectRefused(apart(1, at::ones({kHeads, kWidth + 1}, at::kHalf), 0),
                "keyAntiquantScaleOptional has shape [2, 9], which fits no keys of 2 heads of "
                "width 8 in the mode 0.");
  ExpectRefused(apart(1, at::ones({kBatch, kKeys - 1}), 1),
                "keyAntiquantScaleOptional has shape [2, 4], which fits no keys of 2 heads of "
                "width 8 in the mode 1.");
  ExpectRefused(apart(1, at::ones({kBatch, 1, kKeys}), 3),
                "keyAntiquantScaleOptional has shape [2, 1, 5], which fits no keys of 2 heads of "
                "width 8 in the mode 3.");
  const Tensor packed = Half({6, kHeads, kWidth});
  ExpectRefused({{kQuery, packed},
                 {kKey, Tensors{Bytes({6, kHeads, kWidth})}},
                 {kValue, Tensors{Bytes({6, kHeads, kWidth})}},
                 {kLengths, Ints{2, 6}},
                 {kKeyLengths, Ints{2, 6}},
                 {kScales, at::ones({2}, at::kHalf)},
                 {kLayout, "TND"},
                 {kOut, Unwritten(packed)}},
                "key is int8, which packed layouts lack.");
}

TEST_F(InferAttention, RefusesResultsOfInt8WithoutAScaleThatFits) {
  const Arg bytes = Unwritten(Bytes({kBatch, kHeads, kRows, kWidth}));
  ExpectRefused({{kOut, bytes}}, "quantScale2Optional is absent, but the output is int8.");
  ExpectRefused({{kOutScale, at::ones({1})}},
                "quantScale2Optional is given, but the output is not int8.");
  ExpectRefused({{kOut, bytes}, {kOutScale, at::ones({1}, at::kBFloat16)}},
                "quantScale2Optional has dtype BFloat16, expected Float.");
  ExpectRefused({{kOut, bytes}, {kOutScale, at::ones({kWidth})}},
                "quantScale2Optional has not one entry per channel.");
}

TEST_F(InferAttention, LooksOnlyAtTheFirstLengths) {
  const Args args = Call({{kLengths, Ints{3, 2, 100}}, {kKeyLengths, Ints{5, 4, -1}}});
  EXPECT_EQ(RunOperator("aclnnFusedInferAttentionScoreV3", args), 0) << LastMessage();
  ExpectRefused({{kKeyLengths, Ints{5, 6}}}, "actualSeqLengthsKvOptional exceeds the tensor.");
}

// Scales are read when the task runs, also those that lie apart.
TEST_F(InferAttention, TakesScalesWithStrides) {
  const Tensor scale = Random({kWidth, kHeads}, at::kHalf, 0.01, 0.1).t();
  const auto attend = [&](const Tensor& key_scale) {
    const Tensor out = Unwritten(Half({kBatch, kHeads, 1, kWidth}));
    const Changes changes = {
        {kQuery, at::ones({kBatch, kHeads, 1, kWidth}, at::kHalf)},
        {kValue, Tensors{at::arange(-80, 80, at::kChar).reshape({kBatch, kHeads, kKeys, kWidth})}},
        {kKeyScale, key_scale},
        {kValueScale, key_scale}};
    Changes all = ByteKeys(1, changes);
    all[kOut] = out;
    EXPECT_EQ(RunOperator("aclnnFusedInferAttentionScoreV3", Call(all)), 0) << LastMessage();
    return out;
  };
  EXPECT_TRUE(at::equal(attend(scale), attend(scale.contiguous())));
}

// A query that is left with no score: its result is 0, the logarithm of its sum is infinite.
TEST_F(InferAttention, ASequenceWithoutKeysGivesZeros) {
  const Tensor lse = Unwritten(at::zeros({kBatch, kHeads, kRows, 1}));
  const Tensor out = Unwritten(Half({kBatch, kHeads, kRows, kWidth}));
  const Args args = Call({{kKeyLengths, Ints{0, 5}}, {37, true}, {kOut, out}, {41, lse}});
  ASSERT_EQ(RunOperator("aclnnFusedInferAttentionScoreV3", args), 0) << LastMessage();
  EXPECT_TRUE(at::equal(out[0], at::zeros_like(out[0])));
  EXPECT_TRUE(at::equal(
      lse[0], at::full({kHeads, kRows, 1}, std::numeric_limits<double>::infinity(), at::kFloat)));
  EXPECT_TRUE(lse[1].isfinite().all().item<bool>());
}

}  // namespace
}  // namespace acltape::opapi
