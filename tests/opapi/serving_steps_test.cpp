// Phase one refuses wrong steps of servers: tokens that are drawn, rows for lists and caches, rows
// that matrices turn. The grid has their numbers.
#include <cmath>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

constexpr int kStepFailed = 507015;

std::string RefusedStep(const char* name, Args args, int position, Arg value) {
  args[position] = std::move(value);
  EXPECT_EQ(RunOperator(name, args), kReject) << name << " " << position;
  return LastMessage();
}

TEST(ServingSteps, RowsForAListHaveToFitItsTensors) {
  const char* const name = "aclnnScatterList";
  const std::string says = "aclnnScatterList: ";
  const Args args = {Tensors{at::zeros({4, 2}), at::zeros({4, 2})},
                     at::tensor({1, 2}, at::kInt),
                     at::ones({2, 2, 2}),
                     Null{},
                     "update",
                     int64_t{-2}};
  ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
  EXPECT_EQ(RefusedStep(name, args, 4, "add"), says + "reduceOptional must be \"update\".");
  for (int64_t axis : {0, 3, -3}) {
    EXPECT_EQ(RefusedStep(name, args, 5, axis),
              says + "axis must name a dim of updates other than the first.");
  }
  EXPECT_EQ(RefusedStep(name, args, 2, at::ones({2, 5, 2})),
            says + "updates has more rows than varRef.");
  EXPECT_EQ(RefusedStep(name, args, 2, at::ones({2, 2, 2}, at::kHalf)),
            says + "updates has another dtype than varRef.");
  EXPECT_EQ(RefusedStep(name, args, 0, Tensors{at::zeros({4, 2}), at::zeros({3, 2})}),
            says + "varRef has tensors of different shapes.");
  EXPECT_EQ(
      RefusedStep(name, args, 0, Tensors{at::zeros({4, 1}).expand({4, 2}), at::zeros({4, 2})}),
      says + "varRef holds an output of which several elements share memory.");
  EXPECT_NE(RefusedStep(name, args, 3, at::ones({2})).find("maskOptional has dtype Float"),
            std::string::npos);
  Args wrong = args;
  for (const Ints& places : {Ints{1, 3}, Ints{-1, 0}}) {
    wrong[1] = at::tensor(places, at::kInt);
    EXPECT_EQ(RunOperator(name, wrong), kStepFailed);
  }
  wrong[1] = at::tensor({0, 3, 0, 1}, at::kLong).view({2, 2});
  EXPECT_EQ(RunOperator(name, wrong), kStepFailed);
}

TEST(ServingSteps, DrawingTokensHasItsBounds) {
  const char* const name = "aclnnTopKTopPSampleV2";
  const std::string says = "aclnnTopKTopPSampleV2: ";
  const Args args = {Random({2, 5}),
                     at::tensor({2, 0}, at::kInt),
                     at::tensor({0.5, 1.0}, at::kFloat),
                     Null{},
                     Null{},
                     1e-8,
                     false,
                     int64_t{32},
                     int64_t{1024},
                     true,
                     false,
                     at::empty({2}, at::kLong),
                     Null{},
                     Null{},
                     Null{}};
  ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
  for (int64_t most : {0, 1025}) {
    EXPECT_EQ(RefusedStep(name, args, 8, most), says + "ksMax must be between 1 and 1024.");
  }
  EXPECT_NE(RefusedStep(name, args, 2, at::ones({2}, at::kHalf)).find("topP has dtype Half"),
            std::string::npos);
  Args kept = args;
  kept[10] = true;
  kept[13] = at::empty({2, 5}, at::kLong);
  kept[14] = at::empty({2, 5});
  ASSERT_EQ(RunOperator(name, kept), 0) << LastMessage();
  EXPECT_TRUE(at::equal(std::get<Tensor>(kept[11]), at::zeros({2}, at::kLong)));
  EXPECT_EQ(RefusedStep(name, kept, 3, at::ones({2, 5})),
            says + "q is given beside isNeedSampleResult.");
  const Args first = {
      Random({2, 5}), at::tensor({2, 0}, at::kInt), at::ones({2}), Null{}, 1e-8, false,
      int64_t{32},    at::empty({2}, at::kLong),    Null{}};
  EXPECT_NE(RefusedStep("aclnnTopKTopPSample", first, 3, Null{}).find("logits has dtype Float"),
            std::string::npos);
}

TEST(ServingSteps, GatesOfTheSecondVersionHaveItsBounds) {
  const char* const name = "aclnnMoeGatingTopKV2";
  const std::string says = "aclnnMoeGatingTopKV2: ";
  const Args args = {Random({3, 8}),
                     Null{},
                     Null{},
                     Null{},
                     int64_t{2},
                     int64_t{1},
                     int64_t{1},
                     int64_t{0},
                     int64_t{0},
                     int64_t{0},
                     false,
                     1.0,
                     1e-20,
                     at::empty({3, 2}),
                     at::empty({3, 2}, at::kInt),
                     Null{}};
  ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
  EXPECT_EQ(RefusedStep(name, args, 8, int64_t{2}), says + "renorm must be 0 or 1.");
  EXPECT_EQ(RefusedStep(name, args, 9, int64_t{2}),
            says + "normType must be 0 (softmax) or 1 (sigmoid).");
  // A table without tokens is not looked at.
  Args alone = args;
  alone[3] = at::full({4, 2}, 99, at::kInt);
  EXPECT_EQ(RunOperator(name, alone), 0) << LastMessage();
  Args many = args;
  many[0] = Random({1, 130});
  many[5] = many[6] = int64_t{65};
  many[13] = at::empty({1, 2});
  EXPECT_EQ(RefusedStep(name, many, 14, at::empty({1, 2}, at::kInt)),
            says + "groupCount makes groups that need more than 2048 places in steps of 32.");
  Args table = args;
  table[0] = Random({1, 80});
  table[2] = at::zeros({1}, at::kInt);
  table[3] = at::zeros({1, 65}, at::kInt);
  table[4] = int64_t{65};
  table[13] = at::empty({1, 65});
  EXPECT_EQ(RefusedStep(name, table, 14, at::empty({1, 65}, at::kInt)),
            says + "k is above 64 with a table of experts.");
}

TEST(ServingSteps, KeysForACacheOfInt8HaveTheirBounds) {
  const char* const name = "aclnnDequantRopeQuantKvcache";
  const std::string says = "aclnnDequantRopeQuantKvcache: ";
  const auto cache = [] { return at::zeros({2, 4, 1, 16}, at::kChar); };
  const Args args = {Random({2, 64}, at::kHalf),
                     Random({2, 16}, at::kHalf),
                     Random({2, 16}, at::kHalf),
                     cache(),
                     cache(),
                     at::tensor({3, 0}, at::kInt),
                     at::ones({1, 16}),
                     at::ones({1, 16}),
                     Null{},
                     Null{},
                     Null{},
                     Null{},
                     Null{},
                     Ints{32, 16, 16},
                     Null{},
                     Null{},
                     false,
                     Null{},
                     at::empty({2, 2, 16}, at::kHalf),
                     Null{},
                     Null{}};
  ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
  EXPECT_EQ(RefusedStep(name, args, 14, "dynamic"), says + "quantModeOptional must be \"static\".");
  EXPECT_EQ(RefusedStep(name, args, 15, "BNSD"), says + "layoutOptional must be \"BSND\".");
  EXPECT_EQ(RefusedStep(name, args, 17, "Page"),
            says + "cacheModeOptional must be \"contiguous\" or \"page\".");
  EXPECT_EQ(RefusedStep(name, args, 13, Ints{32, 32}), says + "sizeSplits has not 3 entries.");
  EXPECT_EQ(RefusedStep(name, args, 13, Ints{16, 16, 32}),
            says + "sizeSplits gives keys or values another size than the caches have.");
  EXPECT_EQ(RefusedStep(name, args, 0, Random({2, 48}, at::kHalf)),
            says + "x has a last dim that is no multiple of 64 up to 4096.");
  EXPECT_EQ(RefusedStep(name, args, 0, at::ones({2, 64}, at::kInt)),
            says + "weightScaleOptional is absent, and x is of dtype int32.");
  EXPECT_EQ(RefusedStep(name, args, 0, at::ones({2, 64}, at::kBFloat16)),
            says + "x has another dtype than cos.");
  Args wrong = args;
  wrong[5] = at::tensor({4, 0}, at::kInt);
  EXPECT_EQ(RunOperator(name, wrong), kStepFailed);
}

TEST(ServingSteps, NormedRowsForCachesHaveTheirBounds) {
  const char* const name = "aclnnKvRmsNormRopeCacheV2";
  const std::string says = "aclnnKvRmsNormRopeCacheV2: ";
  const Args args = {Random({1, 1, 2, 48}, at::kHalf),
                     Random({32}, at::kHalf),
                     Random({1, 1, 2, 16}, at::kHalf),
                     Random({1, 1, 2, 16}, at::kHalf),
                     at::tensor({5, 16}, at::kLong),
                     at::zeros({2, 16, 1, 16}, at::kHalf),
                     at::zeros({2, 16, 1, 32}, at::kHalf),
                     Null{},
                     Null{},
                     Null{},
                     Null{},
                     Null{},
                     1e-5,
                     "PA",
                     false,
                     Null{},
                     Null{}};
  ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
  EXPECT_EQ(RefusedStep(name, args, 13, "BSND"),
            says +
                "cacheModeOptional must be \"Norm\", \"PA\", \"PA_BNSD\", \"PA_NZ\", "
                "\"PA_BLK_BNSD\" or \"PA_BLK_NZ\".");
  EXPECT_EQ(RefusedStep(name, args, 3, Null{}),
            says + "sin is absent, which the soft device lacks.");
  EXPECT_EQ(RefusedStep(name, args, 9, at::ones({16})),
            says + "kRopeOffsetOptional is given, and vOptional is absent.");
  EXPECT_EQ(RefusedStep(name, args, 0, Random({1, 2, 2, 48}, at::kHalf)),
            says + "kv has more than one head, and vOptional is absent.");
  EXPECT_NE(
      RefusedStep(name, args, 7, at::ones({16})).find("kCacheRef has dtype Half, expected Char"),
      std::string::npos);
  EXPECT_EQ(RefusedStep(name, args, 5, at::zeros({2, 8, 1, 16}, at::kHalf)),
            says + "kCacheRef has blocks of a number of slots that does not fill 32 bytes.");
  EXPECT_EQ(RefusedStep(name, args, 6, at::zeros({1, 16, 1, 32}, at::kHalf)),
            says + "ckvCacheRef has other slots than kCacheRef.");
  Args heads = args;
  heads[0] = Random({1, 2, 2, 16}, at::kHalf);
  heads[1] = Random({16}, at::kHalf);
  heads[5] = at::zeros({2, 16, 2, 16}, at::kHalf);
  heads[6] = at::zeros({2, 16, 2, 32}, at::kHalf);
  heads[11] = Random({1, 2, 2, 32}, at::kHalf);
  ASSERT_EQ(RunOperator(name, heads), 0) << LastMessage();
  EXPECT_EQ(RefusedStep(name, heads, 13, "PA_NZ"),
            says + "kv has several heads, which no cache in fractals holds.");
  EXPECT_EQ(RefusedStep(name, heads, 9, at::ones({16})),
            says + "kRopeOffsetOptional is given without a scale.");
  Args wrong = args;
  wrong[4] = at::tensor({5, 32}, at::kLong);
  EXPECT_EQ(RunOperator(name, wrong), kStepFailed);
}

TEST(ServingSteps, TurnedRowsHaveTheirBounds) {
  const char* name = "aclnnRotateQuant";
  std::string says = "aclnnRotateQuant: ";
  const Args args = {Random({2, 128}, at::kHalf),
                     Random({16, 16}, at::kHalf),
                     Null{},
                     int64_t{-1},
                     Null{},
                     int64_t{0},
                     0.0,
                     false,
                     at::empty({2, 16}, at::kInt),
                     at::empty({2})};
  ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();  // eight of 4 bits in an int32
  EXPECT_EQ(RefusedStep(name, args, 2, at::ones({1})),
            says + "alpha is given, which the soft device lacks.");
  EXPECT_EQ(RefusedStep(name, args, 3, int64_t{0}), says + "axis must be -1 or 1.");
  EXPECT_EQ(RefusedStep(name, args, 4, "hybrid"),
            says + "roundMode must be \"rint\", \"round\" or \"floor\".");
  EXPECT_EQ(RefusedStep(name, args, 5, int64_t{1}), says + "scaleAlg must be 0.");
  EXPECT_EQ(RefusedStep(name, args, 6, 1.0), says + "dstTypeMax must be 0.");
  EXPECT_EQ(RefusedStep(name, args, 7, true), says + "trans must be false.");
  EXPECT_EQ(RefusedStep(name, args, 1, Random({48, 48}, at::kHalf)),
            says + "rotation has a size that does not divide the last dim of x.");
  EXPECT_EQ(RefusedStep(name, args, 1, Random({8, 8}, at::kHalf)),
            says + "rotation must have 16 to 1024 rows.");
  name = "aclnnFlatQuant";
  says = "aclnnFlatQuant: ";
  const Args flat = {Random({2, 3, 8}, at::kHalf),   Random({3, 3}, at::kHalf),
                     Random({8, 8}, at::kHalf),      1.0,
                     at::empty({2, 3, 1}, at::kInt), at::empty({2})};
  ASSERT_EQ(RunOperator(name, flat), 0) << LastMessage();
  for (double ratio : {0.0, 1.5}) {
    EXPECT_EQ(RefusedStep(name, flat, 3, ratio), says + "clipRatio must be above 0 and at most 1.");
  }
  EXPECT_EQ(RefusedStep(name, flat, 4, at::empty({2, 3, 8}, at::kChar)),
            says + "out must be of dtype int4, or int32 that packs them.");
}

TEST(ServingSteps, ProductsOfManyMatricesHaveTheirBounds) {
  const char* name = "aclnnQuantMatmulReduceSumWeightNz";
  std::string says = std::string(name) + ": ";
  const Tensor bytes = at::ones({2, 3, 4}, at::kChar);
  const Args sum = {bytes,
                    bytes.transpose(1, 2).contiguous(),
                    at::ones({2, 3}),
                    at::ones({3}, at::kBFloat16),
                    Null{},
                    Null{},
                    Null{},
                    Null{},
                    Null{},
                    false,
                    false,
                    int64_t{0},
                    Ints{0},
                    false,
                    at::empty({3, 3}, at::kBFloat16)};
  ASSERT_EQ(RunOperator(name, sum), 0) << LastMessage();
  for (const auto& [i, argument] :
       {std::pair{4, "yScale"}, {5, "x1Offset"}, {6, "x2Offset"}, {7, "yOffset"}, {8, "bias"}}) {
    EXPECT_EQ(RefusedStep(name, sum, i, at::ones({1})),
              says + argument + " is given, which the soft device lacks.");
  }
  for (const auto& [i, argument] :
       {std::pair{9, "transposeX1"}, {10, "transposeX2"}, {13, "keepDims"}}) {
    EXPECT_EQ(RefusedStep(name, sum, i, true), says + argument + " must be false.");
  }
  EXPECT_EQ(RefusedStep(name, sum, 11, int64_t{32}), says + "groupSize must be 0.");
  EXPECT_EQ(RefusedStep(name, sum, 12, Ints{1}), says + "dims must be {0}.");
  name = "aclnnTransposeBatchMatMulWeightNz";
  says = std::string(name) + ": ";
  const Args laid = {Random({2, 3, 16}, at::kHalf),
                     Random({2, 16, 16}, at::kHalf),
                     Null{},
                     Null{},
                     Ints{0, 1, 2},
                     Ints{0, 1, 2},
                     Ints{1, 0, 2},
                     int64_t{0},
                     1,
                     at::empty({3, 2, 16}, at::kHalf)};
  ASSERT_EQ(RunOperator(name, laid), 0) << LastMessage();
  EXPECT_EQ(RefusedStep(name, laid, 2, at::ones({16})),
            says + "bias is given, which the soft device lacks.");
  EXPECT_EQ(RefusedStep(name, laid, 3, at::ones({32}, at::kLong)),
            says + "scale is given, which the soft device lacks.");
  EXPECT_EQ(RefusedStep(name, laid, 4, Ints{2, 1, 0}),
            says + "permX1 must be {0, 1, 2} or {1, 0, 2}.");
  EXPECT_EQ(RefusedStep(name, laid, 5, Ints{0, 2, 1}), says + "permX2 must be {0, 1, 2}.");
  EXPECT_EQ(RefusedStep(name, laid, 6, Ints{0, 1, 2}), says + "permY must be {1, 0, 2}.");
  EXPECT_EQ(RefusedStep(name, laid, 8, 3), says + "batchSplitFactor does not divide the batch.");
  EXPECT_EQ(RefusedStep(name, laid, 1, Random({2, 16, 15}, at::kHalf)),
            says + "x2 has matrices whose dims are no multiples of 16.");
  name = "aclnnEinsum";
  says = "aclnnEinsum: ";
  const Args pairs = {Tensors{at::ones({2}), at::ones({3})}, "a,b->ab", at::empty({2, 3})};
  ASSERT_EQ(RunOperator(name, pairs), 0) << LastMessage();
  EXPECT_EQ(RefusedStep(name, pairs, 1, "ab,bc->ac"),
            says + "equation must be \"abcd,abced->abce\" or \"a,b->ab\".");
  EXPECT_EQ(RefusedStep(name, pairs, 0, Tensors{at::ones({2})}),
            says + "tensors must hold two tensors.");
  EXPECT_EQ(RefusedStep(name, pairs, 0, Tensors{at::ones({2}), at::ones({3}, at::kHalf)}),
            says + "tensors has tensors of different dtypes.");
  name = "aclnnAddLora";
  says = "aclnnAddLora: ";
  const Args lora = {Random({2, 32}, at::kHalf),
                     Random({2, 16}, at::kHalf),
                     Random({3, 2, 16, 16}, at::kHalf),
                     at::tensor({0, 2}, at::kInt),
                     Null{},
                     int64_t{1},
                     1.0,
                     int64_t{16},
                     int64_t{16},
                     at::empty({2, 32}, at::kHalf)};
  ASSERT_EQ(RunOperator(name, lora), 0) << LastMessage();
  EXPECT_EQ(RefusedStep(name, lora, 5, int64_t{2}), says + "layerIdx names no layer of weightB.");
  EXPECT_EQ(RefusedStep(name, lora, 7, int64_t{17}), says + "yOffset and ySliceSize leave y.");
  EXPECT_EQ(RefusedStep(name, lora, 8, int64_t{8}),
            says + "ySliceSize is not the number of rows of weightB.");
  Args wrong = lora;
  wrong[3] = at::tensor({0, 3}, at::kInt);
  EXPECT_EQ(RunOperator(name, wrong), kStepFailed);
}

}  // namespace
}  // namespace acltape::opapi
