// Attention and its indexer in vLLM's plug-in: calls that do not fit, and caches with rows apart.
// Calls that fit are in the grid (grid/shared_kv_rows.cpp, grid/plugin_rows.cpp).
#include <limits>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Changes = std::map<int, Arg>;

Args Changed(Args args, const Changes& changes) {
  for (const auto& [i, arg] : changes) args[i] = arg;
  return args;
}

void ExpectEachRefused(const char* op, const Args& valid,
                       const std::vector<std::pair<Changes, std::string>>& refused) {
  EXPECT_EQ(RunOperator(op, valid), 0) << LastMessage();
  for (const auto& [changes, message] : refused) {
    EXPECT_EQ(RunOperator(op, Changed(valid, changes)), kReject) << message;
    EXPECT_EQ(LastMessage(), std::string(op) + ": " + message);
  }
}

Tensor Numbers(std::vector<int64_t> values, at::IntArrayRef sizes) {
  return at::tensor(values, at::kInt).reshape(sizes);
}

// Two sequences of 3 and 2 queries with keys of single tokens and compressed ones.
Args SharedKeysCall() {
  const Tensor query = Random({5, 4, 8}, at::kHalf);
  return {query,
          Random({3, 16, 1, 8}, at::kHalf),
          Random({3, 16, 1, 8}, at::kHalf),
          Null{},
          at::zeros({5, 1, 3}, at::kInt),
          Numbers({1, 0, 2, 0}, {2, 2}),
          Numbers({1, 2}, {2, 1}),
          Numbers({0, 3, 5}, {3}),
          Null{},
          Null{},
          Null{},
          Numbers({20, 5}, {2}),
          Random({4}),
          at::zeros({1024}, at::kInt),
          0.5,
          int64_t{4},
          int64_t{4},
          int64_t{3},
          int64_t{0},
          int64_t{0},
          int64_t{127},
          int64_t{0},
          "TND",
          "PA_ND",
          false,
          Unwritten(query),
          Null{}};
}

TEST(PluginAttention, RefusesSharedKeysThatDoNotFit) {
  ExpectEachRefused(
      "aclnnSparseAttnSharedkv", SharedKeysCall(),
      {{{{0, Random({5, 4, 8})}}, "q has dtype Float, expected Half or BFloat16."},
       {{{0, Random({5, 6, 8}, at::kHalf)}}, "q has no multiple of 4 heads."},
       {{{1, Null{}}}, "oriKvOptional is absent."},
       {{{1, Random({3, 16, 2, 8}, at::kHalf)}}, "oriKvOptional has more than one head."},
       {{{1, Random({3, 16, 1, 7}, at::kHalf)}}, "oriKvOptional has another width than q."},
       {{{1, Random({3, 15, 1, 8}, at::kHalf)}},
        "oriKvOptional has blocks of 15 rows, expected a multiple of 16 up to 1024."},
       {{{2, Random({3, 16, 1, 8}, at::kBFloat16)}},
        "cmpKvOptional has dtype BFloat16 but query has Half."},
       {{{2, Null{}}}, "cmpSparseIndicesOptional is given without cmpKv."},
       {{{3, at::zeros({5, 1, 3}, at::kInt)}},
        "oriSparseIndicesOptional is given, which the soft device lacks."},
       {{{4, at::zeros({4, 1, 3}, at::kInt)}},
        "cmpSparseIndicesOptional has shape [4, 1, 3], expected [5, 1, 3]."},
       {{{6, Null{}}}, "cmpBlockTableOptional is absent."},
       {{{5, Numbers({1, 0}, {1, 2})}}, "oriBlockTableOptional has not one row for each sequence."},
       {{{7, Null{}}}, "cuSeqlensQOptional is absent."},
       {{{11, Null{}}}, "sequsedKvOptional is absent."},
       {{{12, Random({3})}}, "sinksOptional has shape [3], expected [4]."},
       {{{13, Null{}}}, "metadataOptional is absent."},
       {{{15, int64_t{2}}}, "cmpRatio must be 4 or 128."},
       {{{16, int64_t{3}}}, "oriMaskMode must be 4."},
       {{{17, int64_t{0}}}, "cmpMaskMode must be 3."},
       {{{20, int64_t{-1}}}, "oriWinLeft is negative."},
       {{{22, "BNSD"}}, "layoutQOptional must be \"BSND\" or \"TND\"."},
       {{{23, "BSND"}},
        "layoutKvOptional must be \"PA_ND\"; the soft device takes keys in blocks."},
       {{{24, true}}, "returnSoftmaxLse is true, but the operator gives no sums."}});
}

TEST(PluginAttention, StopsWhereSharedKeysLeaveTheirTable) {
  const char* op = "aclnnSparseAttnSharedkv";
  const Args args = Changed(SharedKeysCall(), {{11, Numbers({20, 33}, {2})}});
  EXPECT_NE(RunOperator(op, args), 0);
  EXPECT_NE(LastMessage().find("sequence 1 has 33 keys, which leave its table of 2 blocks"),
            std::string::npos)
      << LastMessage();
}

// Blocks of keys that lie apart, as in a cache that holds more than keys.
TEST(PluginAttention, TakesSharedKeysWithRowsApart) {
  const char* op = "aclnnSparseAttnSharedkv";
  const Args dense = SharedKeysCall();
  Args apart = dense;
  for (int i : {1, 2}) {
    const Tensor keys = std::get<Tensor>(dense[i]), wide = at::zeros({3, 40, 1, 8}, at::kHalf);
    apart[i] = wide.narrow(1, 5, 16);
    std::get<Tensor>(apart[i]).copy_(keys);
  }
  for (int i : {18, 19}) apart[i] = int64_t{320};
  apart[0] = std::get<Tensor>(dense[0]).transpose(0, 1).contiguous().transpose(0, 1);
  apart[25] = Unwritten(at::zeros({8, 4, 5}, at::kHalf)).permute({2, 1, 0});
  ASSERT_EQ(RunOperator(op, dense), 0) << LastMessage();
  ASSERT_EQ(RunOperator(op, apart), 0) << LastMessage();
  EXPECT_TRUE(at::equal(std::get<Tensor>(apart[25]), std::get<Tensor>(dense[25])));
}

TEST(PluginAttention, RefusesAnIndexerThatDoesNotFit) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  const auto bytes = [](at::IntArrayRef sizes) { return at::ones(sizes, at::kChar); };
  const auto halves = [](at::IntArrayRef sizes) { return at::ones(sizes, at::kHalf); };
  const Args valid = {bytes({3, 2, 128}),
                      bytes({4, 4, 1, 128}),
                      halves({3, 2}),
                      halves({3, 2}),
                      halves({4, 4, 1}),
                      Numbers({1, 3}, {2}),
                      Numbers({9, 8}, {2}),
                      Numbers({1, 0, 2, 3}, {2, 2}),
                      at::zeros({1024}, at::kInt),
                      int64_t{0},
                      int64_t{0},
                      "TND",
                      "PA_BSND",
                      int64_t{2},
                      int64_t{3},
                      kAll,
                      kAll,
                      int64_t{4},
                      false,
                      int64_t{0},
                      int64_t{0},
                      at::zeros({3, 1, 2}, at::kInt),
                      Null{}};
  ExpectEachRefused(
      "aclnnVllmQuantLightningIndexer", valid,
      {{{{8, Null{}}}, "metadataOptional is absent."},
       {{{9, int64_t{1}}}, "queryQuantMode must be 0."},
       {{{12, "TND"}}, "layoutKeyOptional must be \"PA_BSND\"."},
       {{{13, int64_t{2049}}}, "sparseCount must be between 1 and 2048."},
       {{{14, int64_t{1}}}, "sparseMode must be 0 (all) or 3 (causal)."},
       {{{15, int64_t{7}}}, "preTokens must be the greatest number, for it is reserved."},
       {{{17, int64_t{3}}}, "cmpRatio must be a power of two up to 128."},
       {{{17, int64_t{256}}}, "cmpRatio must be a power of two up to 128."},
       {{{18, true}}, "returnValues is true, but the operator gives no scores."},
       {{{5, Numbers({1, 2, 2, 3}, {4})}},
        "actualSeqLengthsKeyOptional has shape [2], expected [4]."},
       {{{6, Null{}}}, "actualSeqLengthsKeyOptional is absent."}});
}

}  // namespace
}  // namespace acltape::opapi
