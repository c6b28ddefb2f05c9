// Attention over blocks in what the grid does not try: rows without blocks, the time at which the
// mask is read, refused arguments.
#include <cmath>
#include <functional>
#include <limits>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Ints = std::vector<int64_t>;

constexpr int64_t kUnbounded = std::numeric_limits<int32_t>::max();

// Two sequences of 4 queries and 130 keys, in blocks of 2 queries and 128 keys.
Tensor Queries(int64_t width = 128) { return Random({2, 2, 4, width}, at::kHalf); }
Tensor Keys(int64_t width = 128) { return Random({2, 1, 130, width}, at::kHalf); }
Tensor AllBlocks() { return at::ones({2, 2, 2, 2}, at::kChar); }

// Positions of arguments of aclnnBlockSparseAttention.
constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kMask = 3, kScoreMask = 4, kShape = 5,
                 kLengths = 6, kKeyLengths = 7, kBlockTable = 8, kLayout = 9, kKeyLayout = 10,
                 kKeyHeads = 11, kMaskType = 12, kPrecise = 14, kBlockSize = 15, kPre = 16,
                 kNext = 17, kLseFlag = 18, kOut = 19, kLse = 20;

Args Forward(const Tensor& mask) {
  const Tensor query = Queries();
  return {query,
          Keys(),
          Keys(),
          mask,
          Null{},
          Ints{2, 128},
          Null{},
          Null{},
          Null{},
          "BNSD",
          "BNSD",
          int64_t{1},
          int64_t{0},
          0.1,
          int64_t{0},
          int64_t{0},
          kUnbounded,
          kUnbounded,
          int64_t{1},
          Unwritten(query),
          at::full({2, 2, 4, 1}, 7.0)};
}

const Tensor& In(const Args& args, size_t i) { return std::get<Tensor>(args[i]); }

Args Backward(const Args& forward) {
  const auto same = [&](size_t i) { return at::empty_like(In(forward, i)); };
  return {Random({2, 2, 4, 128}, at::kHalf),
          forward[kQuery],
          forward[kKey],
          forward[kValue],
          forward[kOut],
          forward[kLse],
          forward[kMask],
          Null{},
          forward[kShape],
          forward[kLengths],
          forward[kKeyLengths],
          "BNSD",
          "BNSD",
          int64_t{1},
          int64_t{0},
          0.1,
          kUnbounded,
          kUnbounded,
          same(kQuery),
          same(kKey),
          same(kValue)};
}

TEST(BlockSparseAttention, RowsWithoutABlockAreZerosAndSoAreTheirGradients) {
  const Tensor mask = AllBlocks();
  mask[1][0][1].fill_(0);
  const Args args = Forward(mask);
  ASSERT_EQ(RunOperator("aclnnBlockSparseAttention", args), 0) << LastMessage();
  const Tensor rows = In(args, kOut)[1][0].slice(0, 2), lse = In(args, kLse)[1][0].slice(0, 2);
  EXPECT_TRUE(rows.eq(0).all().item<bool>());
  EXPECT_TRUE(lse.eq(-INFINITY).all().item<bool>()) << "the logarithm of an empty sum";
  EXPECT_EQ(In(args, kLse).isinf().sum().item<int64_t>(), 2);

  const Args gradients = Backward(args);
  ASSERT_EQ(RunOperator("aclnnBlockSparseAttentionGrad", gradients), 0) << LastMessage();
  EXPECT_TRUE(In(gradients, 18)[1][0].slice(0, 2).eq(0).all().item<bool>());
  for (size_t i : {18, 19, 20}) EXPECT_TRUE(In(gradients, i).isfinite().all().item<bool>()) << i;
}

TEST(BlockSparseAttention, RowsAfterASequenceAreZeros) {
  Args args = Forward(AllBlocks());
  args[kLengths] = Ints{4, 3};
  args[kKeyLengths] = Ints{130, 129};
  ASSERT_EQ(RunOperator("aclnnBlockSparseAttention", args), 0) << LastMessage();
  EXPECT_TRUE(In(args, kOut)[1].select(1, 3).eq(0).all().item<bool>());
  EXPECT_TRUE(In(args, kLse)[1].select(1, 3).eq(0).all().item<bool>());

  const Args gradients = Backward(args);
  ASSERT_EQ(RunOperator("aclnnBlockSparseAttentionGrad", gradients), 0) << LastMessage();
  EXPECT_TRUE(In(gradients, 18)[1].select(1, 3).eq(0).all().item<bool>());
  EXPECT_TRUE(In(gradients, 19)[1].select(1, 129).eq(0).all().item<bool>());
}

TEST(BlockSparseAttention, WithoutTheFlagTheLogarithmsStayUnwritten) {
  Args args = Forward(AllBlocks());
  args[kLseFlag] = int64_t{0};
  ASSERT_EQ(RunOperator("aclnnBlockSparseAttention", args), 0) << LastMessage();
  EXPECT_TRUE(In(args, kLse).eq(7).all().item<bool>());
  args[kLse] = Null{};
  EXPECT_EQ(RunOperator("aclnnBlockSparseAttention", args), 0) << LastMessage();
}

TEST(BlockSparseAttention, TheMaskIsReadByTheTaskOnly) {
  const Tensor mask = AllBlocks();
  const Args args = Forward(mask);
  const aclrtStream stream = TestStream();
  PackedCall call("aclnnBlockSparseAttention", args);
  ASSERT_EQ(call.Prepare(), 0) << LastMessage();
  mask.fill_(0);  // as a task in front of it would have done meanwhile
  ASSERT_EQ(call.Launch(stream), 0);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_TRUE(In(args, kOut).eq(0).all().item<bool>());
}

struct Refused {
  size_t position;
  Arg value;
  const char* sentence;  // follows the operator's name
};

void ExpectRefused(const char* name, const Args& valid, const std::vector<Refused>& all) {
  ASSERT_EQ(RunOperator(name, valid), 0) << LastMessage();
  for (const Refused& refused : all) {
    Args args = valid;
    args[refused.position] = refused.value;
    EXPECT_EQ(RunOperator(name, args), kReject) << refused.sentence;
    EXPECT_EQ(LastMessage(), std::string(name) + ": " + refused.sentence);
  }
}

TEST(BlockSparseAttention, WhatADeviceRefusesIsRefusedInPhaseOneWithASentence) {
  ExpectRefused(
      "aclnnBlockSparseAttention", Forward(AllBlocks()),
      {{kScoreMask, at::zeros({4, 130}, at::kChar),
        "attenMaskOptional is given, which the soft device lacks."},
       {kBlockTable, at::zeros({2, 1}, at::kInt),
        "blockTableOptional is given, which the soft device lacks."},
       {kMask, Null{},
        "blockSparseMaskOptional is absent; the operator lacks attention without a mask of "
        "blocks."},
       {kMask, at::ones({2, 2, 2, 3}, at::kChar),
        "blockSparseMaskOptional has shape [2, 2, 2, 3], expected [2, 2, 2, 2]."},
       {kMask, at::ones({2, 2, 2, 2}), "blockSparseMaskOptional is neither bool nor a byte."},
       {kShape, Ints{2},
        "blockShapeOptional must hold two positive numbers, of queries and of "
        "keys."},
       {kShape, Ints{0, 128},
        "blockShapeOptional must hold two positive numbers, of queries and "
        "of keys."},
       {kShape, Ints{2, 64},
        "blockShapeOptional has blocks of 64 keys, but must have a multiple "
        "of 128."},
       {kKey, Keys().to(at::kBFloat16), "key has dtype BFloat16 but query has Half."},
       {kQuery, Random({2, 4, 128}, at::kHalf), "query has shape [2, 4, 128], expected 4 dims."},
       {kQuery, Queries(64), "key has another batch or width than query."},
       {kKey, Random({2, 3, 130, 128}, at::kHalf),
        "key has shape [2, 3, 130, 128], expected 1 heads."},
       {kKeyHeads, int64_t{2}, "key has shape [2, 1, 130, 128], expected 2 heads."},
       {kValue, Keys(64), "value has another width than query."},
       {kLayout, "BSND", "qInputLayout is \"BSND\", but must be \"TND\" or \"BNSD\"."},
       {kKeyLayout, "TND",
        "kvInputLayout is \"TND\", but qInputLayout is \"BNSD\"; both must be equal."},
       {kLengths, Ints{4, 4},
        "actualSeqLengthsKvOptional and actualSeqLengthsOptional must be given together."},
       {kLengths, Ints{4, 5}, "actualSeqLengthsOptional has the length 5 for a tensor of 4 rows."},
       {kLengths, Ints{4}, "actualSeqLengthsOptional has 1 entries for 2 sequences."},
       {kMaskType, int64_t{1}, "maskType is 1, but must be 0: the operator lacks masks of scores."},
       {kPrecise, int64_t{4}, "innerPrecise is 4, but must be 0 or 1."},
       {kBlockSize, int64_t{128},
        "blockSize is 128, but must be 0: the operator lacks pages of keys."},
       {kPre, int64_t{64},
        "preTokens is 64, but must be 2147483647: the operator lacks sliding windows."},
       {kNext, int64_t{0},
        "nextTokens is 0, but must be 2147483647: the operator lacks sliding windows."},
       {kLseFlag, int64_t{2}, "softmaxLseFlag is 2, but must be 0 or 1."},
       {kLse, at::empty({2, 2, 4, 1}, at::kHalf), "softmaxLseOptional must be float32."}});
}

TEST(BlockSparseAttention, OtherDtypesWidthsAndPrecisionsAreRefused) {
  struct Case {
    at::ScalarType dtype;
    int64_t width, precise;
    const char* sentence;
  };
  for (const Case& c : std::vector<Case>{
           {at::kFloat, 128, 0, "query has dtype Float, expected Half or BFloat16."},
           {at::kHalf, 32, 0, "query has width 32, but the operator takes the widths [64, 128]."},
           {at::kBFloat16, 128, 1, "innerPrecise is 1, but must be 0 where query is bfloat16."}}) {
    Args args = Forward(AllBlocks());
    args[kQuery] = Queries(c.width).to(c.dtype);
    args[kKey] = Keys(c.width).to(c.dtype);
    args[kValue] = Keys(c.width).to(c.dtype);
    args[kPrecise] = c.precise;
    EXPECT_EQ(RunOperator("aclnnBlockSparseAttention", args), kReject);
    EXPECT_EQ(LastMessage(), std::string("aclnnBlockSparseAttention: ") + c.sentence);
  }
}

TEST(BlockSparseAttention, PackedSequencesNeedTheirLengths) {
  Args args = Forward(at::ones({2, 2, 2, 2}, at::kBool));
  args[kQuery] = Random({7, 2, 128}, at::kHalf);
  args[kKey] = args[kValue] = Random({133, 1, 128}, at::kHalf);
  args[kLengths] = Ints{4, 3};
  args[kKeyLengths] = Ints{3, 130};
  args[kLayout] = args[kKeyLayout] = "TND";
  args[kOut] = at::empty({7, 2, 128}, at::kHalf);
  args[kLse] = at::empty({7, 2, 1});
  ExpectRefused(
      "aclnnBlockSparseAttention", args,
      {{kLengths, Null{}, "actualSeqLengthsOptional is absent, which the layout \"TND\" needs."},
       {kKeyLengths, Null{},
        "actualSeqLengthsKvOptional is absent, which the layout \"TND\" needs."},
       {kLengths, Ints{3, 7},
        "actualSeqLengthsOptional has lengths with the sum 10 for a tensor of 7 rows."},
       {kLengths, Ints{7},
        "actualSeqLengthsKvOptional has another number of sequences than "
        "actualSeqLengthsOptional."}});
}

TEST(BlockSparseAttention, ScalesOfQuantisationAreRefused) {
  Args args = Forward(AllBlocks());
  args.insert(args.begin() + kLayout, 3, Null{});
  const Tensor scale = at::ones({2, 2, 2, 1});
  ExpectRefused("aclnnBlockSparseAttentionV2", args,
                {{9, scale, "qDequantScaleOptional is given, which the soft device lacks."},
                 {10, scale, "kDequantScaleOptional is given, which the soft device lacks."},
                 {11, scale, "vDequantScaleOptional is given, which the soft device lacks."}});
}

TEST(BlockSparseAttention, TheGradientRefusesTheSame) {
  const Args forward = Forward(AllBlocks());
  ASSERT_EQ(RunOperator("aclnnBlockSparseAttention", forward), 0) << LastMessage();
  ExpectRefused(
      "aclnnBlockSparseAttentionGrad", Backward(forward),
      {{0, Random({2, 2, 4, 128}), "dout has dtype Float but query has Half."},
       {0, Random({2, 2, 5, 128}, at::kHalf),
        "dout has shape [2, 2, 5, 128], expected [2, 2, 4, 128]."},
       {2, Random({2, 1, 131, 128}, at::kHalf),
        "value has another batch, number of heads or length than key."},
       {5, at::empty({2, 2, 4}), "softmaxLse has shape [2, 2, 4], expected [2, 2, 4, 1]."},
       {6, Null{},
        "blockSparseMaskOptional is absent; the operator lacks attention without a mask of "
        "blocks."},
       {7, at::zeros({4, 130}, at::kBool),
        "attenMaskOptional is given, which the soft device lacks."},
       {14, int64_t{1}, "maskType is 1, but must be 0: the operator lacks masks of scores."},
       {16, int64_t{5},
        "preTokens is 5, but must be 2147483647: the operator lacks sliding windows."}});
}

}  // namespace
}  // namespace acltape::opapi
