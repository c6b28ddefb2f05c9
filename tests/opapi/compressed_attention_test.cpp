// Attention over compressed keys and the choice of blocks, against their definition in double
// precision, one query at a time.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/opapi/sparse_attention_calls.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using IntList = std::vector<int64_t>;

constexpr int64_t kCompressWindow = 32, kCompressStep = 16, kCompressHeads = 4,
                  kCompressKeyHeads = 2;
constexpr int64_t kSelectBlock = 64, kEach = kSelectBlock / kCompressStep;
// Two sequences of 3 and 5 queries with 10 and 17 compressed keys, 3 and 5 blocks, and a query
// after them.
const IntList kCompressQueryEnds = {3, 8}, kCompressedEnds = {10, 27}, kBlockEnds = {3, 8};

// The places of the `count` greatest numbers, the first of equal ones first.
IntList Greatest(const std::vector<double>& scores, int64_t count) {
  IntList order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  order.resize(count);
  return order;
}

// The score of each block by the weights of the compressed keys.
std::vector<double> BlockScoresOf(const std::vector<double>& weights, int64_t blocks) {
  std::vector<double> scores(blocks, 0);
  const auto keys = static_cast<int64_t>(weights.size());
  for (int64_t j = 0; j < blocks; ++j) {
    for (int64_t m = 0; m < kEach; ++m) {
      for (int64_t n = 0; n < kCompressWindow / kCompressStep; ++n) {
        const int64_t i = kEach * (j + 1) - m - n;
        if (i >= 0 && i < keys) scores[j] += weights[i];
      }
    }
  }
  return scores;
}

Named CompressedCall(at::ScalarType dtype, bool with_masks, int64_t mode) {
  // Each query sees the first keys; all blocks of one query and the first of all are chosen.
  const Tensor seen = at::ones({6, 20}, at::kBool).triu(4);
  const Tensor chosen = at::zeros({6, 5}, at::kBool);
  chosen.select(1, 0).fill_(true);
  chosen[2].fill_(true);
  return {{"query", Random({9, kCompressHeads, 24}, dtype)},
          {"key", Random({27, kCompressKeyHeads, 24}, dtype)},
          {"value", Random({27, kCompressKeyHeads, 8}, dtype)},
          {"attenMaskOptional", with_masks ? Arg(seen) : Arg(Null{})},
          {"topkMaskOptional", with_masks ? Arg(chosen) : Arg(Null{})},
          {"actualSeqQLenOptional", kCompressQueryEnds},
          {"actualCmpSeqKvLenOptional", kCompressedEnds},
          {"actualSelSeqKvLenOptional", kBlockEnds},
          {"scaleValue", 0.3},
          {"headNum", kCompressHeads},
          {"inputLayout", "TND"},
          {"sparseMode", mode},
          {"compressBlockSize", kCompressWindow},
          {"compressStride", kCompressStep},
          {"selectBlockSize", kSelectBlock},
          {"selectBlockCount", int64_t{2}},
          {"softmaxMaxOut", at::empty({9, kCompressHeads, 8})},
          {"softmaxSumOut", at::empty({9, kCompressHeads, 8})},
          {"attentionOutOut", at::empty({9, kCompressHeads, 8}, dtype)},
          {"topkIndicesOut", at::empty({9, kCompressKeyHeads, 2}, at::kInt)}};
}

TEST(CompressedAttention, CompressedAttentionChoosesTheBlocksThatMatter) {
  for (const bool with_masks : {false, true}) {
    const at::ScalarType dtype = with_masks ? at::kBFloat16 : at::kHalf;
    const Named named = CompressedCall(dtype, with_masks, with_masks ? 1 : 0);
    ASSERT_EQ(RunNamed("aclnnNsaCompressAttention", named), 0) << LastMessage();
    const Tensor query = Wide(TensorOf(named, "query")), key = Wide(TensorOf(named, "key"));
    const Tensor value = Wide(TensorOf(named, "value"));
    const Tensor out = at::zeros({9, kCompressHeads, 8}, at::kDouble);
    const Tensor topk = at::zeros({9, kCompressKeyHeads, 2}, at::kInt);
    std::vector<Tensor> tops, sums;
    int64_t first = 0, first_key = 0, first_block = 0;
    for (size_t s = 0; s < kCompressQueryEnds.size(); ++s) {
      const int64_t queries = kCompressQueryEnds[s] - first, keys = kCompressedEnds[s] - first_key;
      const int64_t blocks = kBlockEnds[s] - first_block;
      std::vector<std::vector<double>> scores(queries * kCompressKeyHeads,
                                              std::vector<double>(blocks, 0));
      for (int64_t head = 0; head < kCompressHeads; ++head) {
        const int64_t of_key = head / 2;
        for (int64_t q = 0; q < queries; ++q) {
          Tensor all =
              at::matmul(key.narrow(0, first_key, keys).select(1, of_key), query[first + q][head]) *
              0.3;
          if (with_masks) all = all.slice(0, 0, std::min<int64_t>(q + 4, keys));
          const Tensor weights = at::softmax(all, 0), top = all.max();
          out[first + q][head].copy_(
              at::matmul(weights, value.narrow(0, first_key, all.size(0)).select(1, of_key)));
          tops.push_back(top.expand({8}));
          sums.push_back((all - top).exp().sum().expand({8}));
          std::vector<double> of_keys(keys, 0);
          for (int64_t k = 0; k < all.size(0); ++k) of_keys[k] = weights[k].item<double>();
          const std::vector<double> each = BlockScoresOf(of_keys, blocks);
          for (int64_t b = 0; b < blocks; ++b) scores[q * kCompressKeyHeads + of_key][b] += each[b];
        }
      }
      for (int64_t q = 0; q < queries; ++q) {
        for (int64_t of_key = 0; of_key < kCompressKeyHeads; ++of_key) {
          std::vector<double>& own = scores[q * kCompressKeyHeads + of_key];
          if (with_masks) own[0] = INFINITY;
          if (with_masks && q == 2) own.assign(own.size(), INFINITY);
          const IntList best = Greatest(own, 2);
          for (int64_t c = 0; c < 2; ++c) topk[first + q][of_key][c].fill_(best[c]);
        }
      }
      first = kCompressQueryEnds[s];
      first_key = kCompressedEnds[s];
      first_block = kBlockEnds[s];
    }
    ExpectRounded(TensorOf(named, "attentionOutOut"), out, "out");
    // The statistics lie sequence by sequence, in each all rows of one head after the other.
    const auto flat = [&](const char* name) {
      return TensorOf(named, name).view({-1, 8}).slice(0, 0, 8 * kCompressHeads);
    };
    ExpectRounded(flat("softmaxMaxOut"), at::stack(tops), "maximum");
    ExpectRounded(flat("softmaxSumOut"), at::stack(sums), "sum");
    EXPECT_TRUE(TensorOf(named, "topkIndicesOut").equal(topk));
  }
}

TEST(CompressedAttention, CompressedAttentionRefusesWhatDoesNotFit) {
  ExpectChangesRefused(
      "aclnnNsaCompressAttention", CompressedCall(at::kHalf, false, 0),
      {{{{"query", Random({9, 3, 24}, at::kHalf)}},
        "key has a number of heads that does not "
        "divide query's."},
       {{{"value", Random({27, kCompressKeyHeads, 32}, at::kHalf)}}, "value is wider than key."},
       {{{"attenMaskOptional", at::zeros({4, 20}, at::kBool)}},
        "attenMaskOptional must be a matrix of the longest sequence's queries and keys."},
       {{{"topkMaskOptional", at::zeros({5, 5})}},
        "topkMaskOptional has dtype Float, expected Bool or Byte."},
       {{{"actualSelSeqKvLenOptional", IntList{3, 7}}},
        "actualSelSeqKvLenOptional does not fit the sequences' compressed keys."},
       {{{"actualCmpSeqKvLenOptional", IntList{27}}},
        "actualCmpSeqKvLenOptional has another number of sequences than actualSeqQLen."},
       {{{"headNum", int64_t{2}}}, "headNum is not query's number of heads."},
       {{{"inputLayout", "BSND"}}, "inputLayout must be \"TND\"."},
       {{{"sparseMode", int64_t{2}}}, "sparseMode must be 0 or 1."},
       {{{"compressStride", int64_t{48}}}, "compressStride is above compressBlockSize."},
       {{{"selectBlockSize", int64_t{16}}}, "selectBlockSize is below compressBlockSize."},
       {{{"selectBlockCount", int64_t{4}}},
        "selectBlockCount is above the number of a sequence's blocks."},
       {{{"selectBlockCount", int64_t{33}}}, "selectBlockCount must be at most 32."},
       {{{"topkIndicesOut", at::empty({9, kCompressKeyHeads, 2}, at::kLong)}},
        "topkIndicesOut has dtype Long, expected Int."}});
}

// Two sequences of 9 and 40 compressed keys, which stand for 3 and 11 blocks, in blocks of 16 rows.
const IntList kCachedKeys = {9, 40};
const IntList kCachedBlocks = {3, 0, 0, 1, 4, 2};

Named CompressedStepCall(bool has_position, at::ScalarType dtype) {
  const Tensor query = Random({2, 1, kCompressHeads, 24}, dtype);
  const Tensor out = at::empty({2, 1, kCompressHeads, 8}, dtype);
  const Tensor topk = at::empty({2, 1, kCompressKeyHeads, 3}, at::kInt);
  const auto shaped = [&](const Tensor& tensor) {
    return has_position ? tensor : tensor.squeeze(1);
  };
  return {{"query", shaped(query)},
          {"key", Random({5, 16, kCompressKeyHeads * 24}, dtype)},
          {"value", Random({5, 16, kCompressKeyHeads * 8}, dtype)},
          {"attentionMaskOptional", has_position ? Arg(at::ones({1, 1}, at::kBool)) : Arg(Null{})},
          {"blockTableOptional", Ids(kCachedBlocks, {2, 3})},
          {"actualQSeqLenOptional", has_position ? Arg(IntList{1, 1}) : Arg(Null{})},
          {"actualCmpKvSeqLenOptional", kCachedKeys},
          {"actualSelKvSeqLenOptional", has_position ? Arg(IntList{160, 656}) : Arg(Null{})},
          {"topKMaskOptional", has_position ? Arg(at::ones({1, 1}, at::kBool)) : Arg(Null{})},
          {"numHeads", kCompressHeads},
          {"numKeyValueHeads", kCompressKeyHeads},
          {"selectBlockSize", kSelectBlock},
          {"selectBlockCount", int64_t{3}},
          {"compressBlockSize", kCompressWindow},
          {"compressBlockStride", kCompressStep},
          {"scaleValue", 0.3},
          {"layoutOptional", has_position ? "BSND" : "TND"},
          {"pageBlockSize", int64_t{16}},
          {"output", shaped(out)},
          {"topKOutput", shaped(topk)}};
}

TEST(CompressedAttention, AStepChoosesTheFirstBlockTheLastTwoAndTheBest) {
  int64_t mode = 0;  // the page reserves it
  for (const bool has_position : {true, false, true, false, true}) {
    for (const int64_t count : {3, 2}) {
      const at::ScalarType dtype = has_position ? at::kBFloat16 : at::kHalf;
      Named named = CompressedStepCall(has_position, dtype);
      named["sparseMode"] = mode;
      named["selectBlockCount"] = count;
      named["topKOutput"] = TensorOf(named, "topKOutput").slice(-1, 0, count);
      ASSERT_EQ(RunNamed("aclnnNsaCompressAttentionInfer", named), 0) << LastMessage();
      const Tensor query = Wide(TensorOf(named, "query")).reshape({2, kCompressHeads, 24});
      const Tensor key = Wide(TensorOf(named, "key")).view({5, 16, kCompressKeyHeads, 24});
      const Tensor value = Wide(TensorOf(named, "value")).view({5, 16, kCompressKeyHeads, 8});
      const Tensor out = at::empty({2, kCompressHeads, 8}, at::kDouble);
      const Tensor topk = at::empty({2, kCompressKeyHeads, count}, at::kInt);
      for (int64_t s = 0; s < 2; ++s) {
        const int64_t blocks = s == 0 ? 3 : 11;
        const auto rows_of = [&](const Tensor& cache, int64_t head) {
          std::vector<Tensor> parts;
          for (int64_t b = 0; b < 3; ++b) {
            parts.push_back(cache[kCachedBlocks[3 * s + b]].select(1, head));
          }
          return at::cat(parts).narrow(0, 0, kCachedKeys[s]);
        };
        for (int64_t of_key = 0; of_key < kCompressKeyHeads; ++of_key) {
          std::vector<double> scores(blocks, 0);
          for (int64_t head = 2 * of_key; head < 2 * of_key + 2; ++head) {
            const Tensor weights =
                at::softmax(at::matmul(rows_of(key, of_key), query[s][head]) * 0.3, 0);
            out[s][head].copy_(at::matmul(weights, rows_of(value, of_key)));
            std::vector<double> of_keys;
            for (int64_t k = 0; k < weights.size(0); ++k) {
              of_keys.push_back(weights[k].item<double>());
            }
            const std::vector<double> each = BlockScoresOf(of_keys, blocks);
            for (int64_t b = 0; b < blocks; ++b) scores[b] += each[b];
          }
          for (int64_t b : {int64_t{0}, blocks - 2, blocks - 1}) scores[b] = INFINITY;
          const IntList best = Greatest(scores, count);
          for (int64_t c = 0; c < count; ++c) topk[s][of_key][c].fill_(best[c]);
        }
      }
      ExpectRounded(TensorOf(named, "output").reshape(out.sizes()), out, "out");
      EXPECT_TRUE(TensorOf(named, "topKOutput").reshape(topk.sizes()).equal(topk));
    }
    ++mode;
  }
}

TEST(CompressedAttention, AStepOfCompressedAttentionRefusesWhatDoesNotFit) {
  ExpectChangesRefused(
      "aclnnNsaCompressAttentionInfer", CompressedStepCall(true, at::kHalf),
      {{{{"query", Random({2, 2, kCompressHeads, 24}, at::kHalf)}},
        "query has more than one row a sequence, which the soft device lacks."},
       {{{"query", Random({2, 1, kCompressHeads, 208}, at::kHalf)}}, "query is wider than 192."},
       {{{"key", Random({5, 16, kCompressKeyHeads * 8}, at::kHalf)}},
        "key has another width than query."},
       {{{"value", Random({5, 16, kCompressKeyHeads * 32}, at::kHalf)}},
        "value must be at most as wide as key and 128."},
       {{{"blockTableOptional", Null{}}},
        "blockTableOptional is absent, but the operator takes keys in blocks."},
       {{{"actualQSeqLenOptional", IntList{2, 2}}},
        "actualQSeqLenOptional must be 1; the soft device has one query a sequence."},
       {{{"actualCmpKvSeqLenOptional", IntList{9}}},
        "actualCmpKvSeqLenOptional has not one entry for each sequence."},
       {{{"actualCmpKvSeqLenOptional", IntList{9, 49}}},
        "actualCmpKvSeqLenOptional must be between 1 and the rows of the table, at most 8192."},
       {{{"numKeyValueHeads", int64_t{3}}},
        "numKeyValueHeads must serve groups of heads whose number divides 128, at most 128."},
       {{{"selectBlockCount", int64_t{4}}},
        "selectBlockCount is above the number of a sequence's blocks."},
       {{{"compressBlockStride", int64_t{80}}},
        "compressBlockStride must be a multiple of 16, at most 64."},
       {{{"layoutOptional", "BSH"}}, "layoutOptional must be \"TND\" or \"BSND\"."},
       {{{"pageBlockSize", int64_t{32}}}, "key has blocks of other rows than pageBlockSize."}});
}

}  // namespace
}  // namespace acltape::opapi
