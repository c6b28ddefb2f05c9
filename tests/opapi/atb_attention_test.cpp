// Attention of libatb.so, against the softmax of each head's scores in double precision.
#include <limits>

#include "tests/opapi/atb_calls.h"

namespace acltape::opapi {
namespace {

using atb::infer::PagedAttentionParam;
using atb::infer::SelfAttentionParam;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr float kScale = 0.4F;

// Rows are [tokens, heads, width]; what is added to the scores broadcasts to [heads, queries,
// keys].
at::Tensor ByHead(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  const at::Tensor& added = at::zeros({1, 1, 1})) {
  at::Tensor out = at::zeros({query.size(0), query.size(1), value.size(2)}, at::kDouble);
  if (key.size(0) == 0) return out;
  const int64_t sharing = query.size(1) / key.size(1);
  const at::Tensor bias = added.to(at::kDouble).expand({query.size(1), query.size(0), key.size(0)});
  for (int64_t head = 0; head < query.size(1); ++head) {
    const auto of = [](const at::Tensor& rows, int64_t h) {
      return rows.select(1, h).to(at::kDouble);
    };
    const at::Tensor scores =
        at::matmul(of(query, head), of(key, head / sharing).t()) * double(kScale) + bias[head];
    out.select(1, head).copy_(at::matmul(at::softmax(scores, -1), of(value, head / sharing)));
  }
  return out;
}

// The mask of queries that see the keys up to their own place, which ends with the last.
at::Tensor UpToItself(int64_t queries, int64_t keys) {
  at::Tensor mask = at::zeros({1, queries, keys}, at::kDouble);
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = keys - queries + i + 1; j < keys; ++j) mask[0][i][j] = -kInfinite;
  }
  return mask;
}

testing::AssertionResult Near(const at::Tensor& actual, const at::Tensor& expected) {
  const double step = actual.scalar_type() == at::kBFloat16 ? 0.016 : 0.002;
  const at::Tensor distance = (actual.to(at::kDouble) - expected.reshape(actual.sizes())).abs();
  if (distance.numel() == 0 || distance.max().item().toDouble() <= step) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << actual << "\nexpected\n" << expected;
}

// Caches of three blocks of four rows, and a table with what no sequence reads at its ends.
struct Caches {
  Caches(int64_t heads, at::ScalarType dtype, int64_t width = 8, int64_t value_width = 8)
      : keys(Random({5, 4, heads, width}, dtype)),
        values(Random({5, 4, heads, value_width}, dtype)) {}

  at::Tensor RowsOf(const at::Tensor& cache, int64_t sequence, int64_t count) const {
    at::Tensor rows = at::empty({count, cache.size(2), cache.size(3)}, cache.options());
    for (int64_t i = 0; i < count; ++i) {
      rows[i].copy_(cache[table[sequence][i / 4].item().toLong()][i % 4]);
    }
    return rows;
  }
  at::Tensor Keys(int64_t sequence, int64_t count) const { return RowsOf(keys, sequence, count); }
  at::Tensor Values(int64_t sequence, int64_t count) const {
    return RowsOf(values, sequence, count);
  }

  at::Tensor keys, values;
  at::Tensor table =
      at::tensor({4, 1, -1, 0, 3, -1, 2, 99, 99, -1, -1, -1}, at::kInt).reshape({4, 3});
};

PagedAttentionParam Paged(int32_t heads, int32_t key_heads) {
  PagedAttentionParam param;
  param.headNum = heads;
  param.kvHeadNum = key_heads;
  param.qkScale = kScale;
  return param;
}

SelfAttentionParam Encoder(int32_t heads, int32_t key_heads) {
  SelfAttentionParam param;
  param.calcType = SelfAttentionParam::PA_ENCODER;
  param.headNum = heads;
  param.kvHeadNum = key_heads;
  param.qkScale = kScale;
  return param;
}

struct HeadCase {
  int heads, key_heads, given;  // given: kvHeadNum of the parameters
};
constexpr HeadCase kHeadCases[] = {{1, 1, 1}, {4, 2, 2}, {3, 3, 0}};

// --- PagedAttentionOperation

// The last block of two sequences is filled in part, and one sequence has nothing to see.
TEST_F(Atb, PagedAttentionSeesTheBlocksOfItsSequence) {
  for (const auto& [heads, key_heads, given] : kHeadCases) {
    for (at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
      const Caches caches(key_heads, dtype);
      const std::vector<int> lengths = {5, 8, 1, 0};
      const at::Tensor query = Random({4, heads, 8}, dtype), out = at::ones_like(query);
      Run(Paged(heads, given), {query, caches.keys, caches.values, caches.table, Lengths(lengths)},
          {out});
      for (int64_t s = 0; s < 4; ++s) {
        const int64_t count = lengths[static_cast<size_t>(s)];
        EXPECT_TRUE(Near(out[s].unsqueeze(0), ByHead(query[s].unsqueeze(0), caches.Keys(s, count),
                                                     caches.Values(s, count))))
            << heads << " heads, sequence " << s;
      }
    }
  }
}

TEST_F(Atb, PagedAttentionOfNoSequences) {
  const Caches caches(2, at::kHalf);
  const at::Tensor query = at::empty({0, 2, 8}, at::kHalf);
  Run(Paged(2, 2), {query, caches.keys, caches.values, at::empty({0, 3}, at::kInt), Lengths({})},
      {query});
}

TEST_F(Atb, PagedAttentionTakesValuesOfAnotherWidth) {
  const Caches caches(1, at::kHalf, 8, 3);
  const at::Tensor query = Random({1, 2, 8}, at::kHalf), out = at::empty({1, 2, 3}, at::kHalf);
  Run(Paged(2, 1), {query, caches.keys, caches.values, caches.table, Lengths({6})}, {out});
  EXPECT_TRUE(Near(out, ByHead(query, caches.Keys(0, 6), caches.Values(0, 6))));
}

// Values are the first columns of keys.
TEST_F(Atb, PagedAttentionOfLatentKeys) {
  const Caches caches(1, at::kBFloat16, 12);
  PagedAttentionParam param = Paged(3, 1);
  param.mlaVHeadSize = 8;
  const at::Tensor query = Random({2, 3, 12}, at::kBFloat16);
  const at::Tensor out = at::empty({2, 3, 8}, at::kBFloat16);
  Run(param, {query, caches.keys, caches.table, Lengths({5, 8})}, {out});
  for (int64_t s = 0; s < 2; ++s) {
    const at::Tensor keys = caches.Keys(s, s == 0 ? 5 : 8);
    EXPECT_TRUE(
        Near(out[s].unsqueeze(0), ByHead(query[s].unsqueeze(0), keys, keys.slice(2, 0, 8))));
  }
}

// A mask of each sequence and head, or of each head.
TEST_F(Atb, PagedAttentionAddsMasksOfHeads) {
  const Caches caches(1, at::kHalf);
  PagedAttentionParam param = Paged(2, 1);
  param.maskType = PagedAttentionParam::MASK_TYPE_ALIBI;
  const at::Tensor query = Random({2, 2, 8}, at::kHalf), out = at::empty_like(query);
  for (const at::Tensor& mask : {Random({2, 2, 1, 9}, at::kHalf), Random({2, 1, 9}, at::kHalf)}) {
    Run(param, {query, caches.keys, caches.values, caches.table, Lengths({5, 7}), mask}, {out});
    for (int64_t s = 0; s < 2; ++s) {
      const int64_t count = s == 0 ? 5 : 7;
      const at::Tensor own = mask.dim() == 4 ? mask[s] : mask;
      EXPECT_TRUE(
          Near(out[s].unsqueeze(0), ByHead(query[s].unsqueeze(0), caches.Keys(s, count),
                                           caches.Values(s, count), own.slice(-1, 0, count))));
    }
  }
}

// Several queries a sequence, with a row of the mask for each; and with a compressed mask.
TEST_F(Atb, PagedAttentionOfSeveralQueriesASequence) {
  const std::vector<int> queries = {3, 0, 1}, keys = {5, 4, 2};
  for (at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    const Caches caches(2, dtype);
    const at::Tensor query = Random({4, 4, 8}, dtype);
    at::Tensor mask = at::zeros({4, 6}, at::kDouble);
    mask.slice(0, 0, 3).slice(1, 0, 5).copy_(UpToItself(3, 5)[0]);
    mask[1][0] = -kInfinite;  // more than a triangle says
    for (const auto type :
         {PagedAttentionParam::MASK_TYPE_SPEC, PagedAttentionParam::MASK_TYPE_NORM_COMPRESS}) {
      const bool rows = type == PagedAttentionParam::MASK_TYPE_SPEC;
      PagedAttentionParam param = Paged(4, 2);
      param.calcType = PagedAttentionParam::CALC_TYPE_SPEC;
      param.maskType = type;
      const at::Tensor given =
          rows ? mask.clamp(-10000).to(dtype) : at::ones({16, 16}, dtype).triu(1);
      const at::Tensor out = at::empty_like(query);
      Run(param,
          {query, caches.keys, caches.values, caches.table, Lengths(keys), given, Lengths(queries)},
          {out});
      int64_t first = 0;
      for (int64_t s = 0; s < 3; ++s) {
        const int64_t count = queries[static_cast<size_t>(s)], seen = keys[static_cast<size_t>(s)];
        const at::Tensor added = rows ? mask.slice(0, first, first + count).slice(1, 0, seen)
                                      : UpToItself(count, seen)[0];
        EXPECT_TRUE(Near(out.slice(0, first, first + count),
                         ByHead(query.slice(0, first, first + count), caches.Keys(s, seen),
                                caches.Values(s, seen), added.unsqueeze(0))))
            << "maskType " << type << ", sequence " << s;
        first += count;
      }
    }
  }
}

// A captured call keeps its lengths, and reads caches and the table when it is replayed.
TEST_F(Atb, PagedAttentionIsReplayedOnWhatTheCachesHoldThen) {
  const Caches caches(1, at::kHalf);
  const at::Tensor query = Random({1, 2, 8}, at::kHalf), out = at::zeros_like(query);
  at::Tensor length = at::tensor({6}, at::kInt);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  context_->SetExecuteStream(stream);
  atb::Operation* operation = nullptr;
  ASSERT_EQ(atb::CreateOperation(Paged(2, 1), &operation), 0);
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL), ACL_SUCCESS);
  uint64_t bytes = 0;
  const auto pack =
      Pack({query, caches.keys, caches.values, caches.table, AtbOperand(length, true)}, {out});
  ASSERT_EQ(operation->Setup(*pack, bytes, context_), 0);
  ASSERT_EQ(operation->Execute(*pack, nullptr, bytes, context_), 0) << LastMessage();
  aclmdlRI graph = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &graph), ACL_SUCCESS);
  atb::DestroyOperation(operation);
  EXPECT_TRUE(at::equal(out, at::zeros_like(out)));

  length[0] = 1;
  caches.keys.copy_(Random({5, 4, 1, 8}, at::kHalf));
  at::Tensor(caches.table)[0][1] = 3;
  ASSERT_EQ(aclmdlRIExecuteAsync(graph, stream), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
  EXPECT_TRUE(Near(out, ByHead(query, caches.Keys(0, 6), caches.Values(0, 6))));
  EXPECT_EQ(aclmdlRIDestroy(graph), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

// --- SelfAttentionOperation

// Sequences that follow each other, and what their masks add to the scores of each.
struct Packed {
  Packed(int64_t heads, int64_t key_heads, at::ScalarType dtype)
      : query(Random({6, heads, 8}, dtype)),
        key(Random({6, key_heads, 8}, dtype)),
        value(Random({6, key_heads, 8}, dtype)) {}

  template <typename Added>
  void ExpectHeads(const at::Tensor& out, Added added) const {
    int64_t first = 0;
    for (int64_t s = 0; s < 3; ++s) {
      const int64_t count = lengths[static_cast<size_t>(s)];
      const auto rows = [&](const at::Tensor& all) { return all.slice(0, first, first + count); };
      EXPECT_TRUE(Near(rows(out), ByHead(rows(query), rows(key), rows(value), added(s, count))))
          << "sequence " << s;
      first += count;
    }
  }

  at::Tensor query, key, value;
  std::vector<int> lengths = {2, 0, 4};
};

TEST_F(Atb, SelfAttentionWithoutAMask) {
  for (const auto& [heads, key_heads, given] : kHeadCases) {
    const Packed rows(heads, key_heads, at::kHalf);
    const at::Tensor out = at::empty_like(rows.query);
    Run(Encoder(heads, given), {rows.query, rows.key, rows.value, Lengths(rows.lengths)}, {out});
    rows.ExpectHeads(out, [](int64_t, int64_t) { return at::zeros({1, 1, 1}); });
    // Heads and widths in one dim.
    const at::Tensor flat = at::empty({6, heads * 8}, at::kHalf);
    Run(Encoder(heads, given),
        {rows.query.flatten(1), rows.key.flatten(1), rows.value.flatten(1), Lengths(rows.lengths)},
        {flat});
    EXPECT_TRUE(at::equal(flat, out.flatten(1)));
  }
}

TEST_F(Atb, SelfAttentionOfNoTokens) {
  const at::Tensor none = at::empty({0, 2, 8}, at::kHalf);
  Run(Encoder(2, 2), {none, none, none, Lengths({0, 0})}, {none});
  Run(Encoder(2, 2), {none, none, none, Lengths({})}, {none});
}

// Minus infinity leaves out in a mask of float16; 1 does in one of bfloat16, or where the sums are
// float32.
TEST_F(Atb, SelfAttentionLeavesOutWhatItsMaskSays) {
  struct Case {
    at::ScalarType dtype;
    SelfAttentionParam::KernelType kernel;
    double left_out;
  };
  for (const Case& each : {Case{at::kHalf, SelfAttentionParam::KERNELTYPE_DEFAULT, -kInfinite},
                           Case{at::kBFloat16, SelfAttentionParam::KERNELTYPE_DEFAULT, 1},
                           Case{at::kHalf, SelfAttentionParam::KERNELTYPE_HIGH_PRECISION, 1}}) {
    const Packed rows(4, 2, each.dtype);
    SelfAttentionParam param = Encoder(4, 2);
    param.kernelType = each.kernel;
    param.maskType = SelfAttentionParam::MASK_TYPE_NORM;
    const at::Tensor out = at::empty_like(rows.query);
    at::Tensor left_out = at::zeros({3, 5, 5}, at::kBool);
    left_out.copy_(at::ones({5, 5}).triu(1));
    left_out[2][3][0] = true;
    // One mask for all sequences, and one for each.
    for (const at::Tensor& chosen : {left_out[2], left_out}) {
      const at::Tensor mask =
          at::zeros(chosen.sizes(), each.dtype).masked_fill(chosen, each.left_out);
      Run(param, {rows.query, rows.key, rows.value, mask, Lengths(rows.lengths)}, {out});
      rows.ExpectHeads(out, [&](int64_t s, int64_t count) {
        const at::Tensor own = chosen.dim() == 3 ? chosen[s] : chosen;
        return at::zeros({1, count, count}, at::kDouble)
            .masked_fill(own.slice(0, 0, count).slice(1, 0, count), -kInfinite);
      });
    }
  }
}

TEST_F(Atb, SelfAttentionAddsMasksOfHeads) {
  const Packed rows(2, 1, at::kBFloat16);
  SelfAttentionParam param = Encoder(2, 1);
  param.maskType = SelfAttentionParam::MASK_TYPE_ALIBI;
  param.isTriuMask = 1;
  const at::Tensor out = at::empty_like(rows.query);
  const at::Tensor triangle = at::full({4, 4}, -kInfinite, at::kBFloat16).triu(1);
  for (const at::Tensor& mask : {Random({2, 4, 4}, at::kBFloat16) + triangle,
                                 Random({3, 2, 4, 4}, at::kBFloat16) + triangle}) {
    Run(param, {rows.query, rows.key, rows.value, mask, Lengths(rows.lengths)}, {out});
    rows.ExpectHeads(out, [&](int64_t s, int64_t count) {
      const at::Tensor own = mask.dim() == 4 ? mask[s] : mask;
      return own.slice(1, 0, count).slice(2, 0, count);
    });
  }
}

TEST_F(Atb, SelfAttentionWithACompressedTriangle) {
  const Packed rows(2, 2, at::kHalf);
  SelfAttentionParam param = Encoder(2, 2);
  param.maskType = SelfAttentionParam::MASK_TYPE_NORM_COMPRESS;
  param.isTriuMask = 1;
  const at::Tensor mask = at::full({128, 128}, -kInfinite, at::kHalf).triu(1);
  const at::Tensor out = at::empty_like(rows.query);
  Run(param, {rows.query, rows.key, rows.value, mask, Lengths(rows.lengths)}, {out});
  rows.ExpectHeads(out, [](int64_t, int64_t count) { return UpToItself(count, count); });
}

// Queries follow keys that lie in the cache already.
TEST_F(Atb, SelfAttentionAfterAPrefix) {
  const std::vector<int> queries = {3, 1, 2}, keys = {5, 8, 2};
  const Caches caches(2, at::kBFloat16);
  const at::Tensor query = Random({6, 4, 8}, at::kBFloat16), out = at::empty_like(query);
  SelfAttentionParam param = Encoder(4, 2);
  param.calcType = SelfAttentionParam::PREFIX_ENCODER;
  param.kernelType = SelfAttentionParam::KERNELTYPE_HIGH_PRECISION;
  param.isTriuMask = 1;
  for (bool with_mask : {true, false}) {
    AtbOperands in = {query, caches.keys, caches.values.flatten(2), caches.table};
    if (with_mask) in.emplace_back(at::ones({128, 128}, at::kBFloat16).triu(1));
    in.push_back(Lengths(queries));
    in.push_back(Lengths(keys));
    param.maskType = with_mask ? SelfAttentionParam::MASK_TYPE_NORM_COMPRESS
                               : SelfAttentionParam::MASK_TYPE_CAUSAL_MASK;
    Run(param, in, {out});
    int64_t first = 0;
    for (int64_t s = 0; s < 3; ++s) {
      const int64_t count = queries[static_cast<size_t>(s)], seen = keys[static_cast<size_t>(s)];
      EXPECT_TRUE(Near(out.slice(0, first, first + count),
                       ByHead(query.slice(0, first, first + count), caches.Keys(s, seen),
                              caches.Values(s, seen), UpToItself(count, seen))));
      first += count;
    }
  }
}

// --- What is not offered

TEST_F(Atb, SelfAttentionNamesTheParameterThatItLacks) {
  const auto refuses = [&](auto change, const std::string& named) {
    SelfAttentionParam param = Encoder(4, 2);
    change(param);
    EXPECT_EQ(Refusal(param), "acltape: SelfAttentionOperation with " + named +
                                  " is not offered by the soft device.\n");
  };
  refuses([](auto& p) { p.calcType = SelfAttentionParam::DECODER; }, "calcType 2");
  refuses([](auto& p) { p.headNum = 0; }, "headNum 0");
  refuses([](auto& p) { p.kvHeadNum = 3; }, "kvHeadNum 3");
  refuses([](auto& p) { p.maskType = SelfAttentionParam::MASK_TYPE_ALIBI_COMPRESS; }, "maskType 4");
  refuses([](auto& p) { p.maskType = SelfAttentionParam::MASK_TYPE_SLIDING_WINDOW_NORM; },
          "maskType 7");
  refuses([](auto& p) { p.maskType = SelfAttentionParam::MASK_TYPE_NORM_COMPRESS; },
          "isTriuMask 0");
  refuses([](auto& p) { p.isTriuMask = 1; }, "isTriuMask 1");
  refuses([](auto& p) { p.kernelType = SelfAttentionParam::KERNELTYPE_EXP_M8V2; }, "kernelType 2");
  refuses([](auto& p) { p.quantType = 2; }, "quantType 2");
  refuses([](auto& p) { p.outDataType = ACL_FLOAT16; }, "outDataType 1");
  refuses([](auto& p) { p.batchRunStatusEnable = true; }, "batchRunStatusEnable 1");
  refuses([](auto& p) { p.clampType = 1; }, "clampType 1");
  refuses([](auto& p) { p.kvcacheCfg = 1; }, "kvcacheCfg 1");
  refuses([](auto& p) { p.scaleType = 1; }, "scaleType 1");
  refuses([](auto& p) { p.inputLayout = 1; }, "inputLayout 1");
  refuses([](auto& p) { p.mlaVHeadSize = 8; }, "mlaVHeadSize 8");
  refuses([](auto& p) { p.cacheType = 1; }, "cacheType 1");
  refuses([](auto& p) { p.windowSize = 4; }, "windowSize 4");
}

TEST_F(Atb, PagedAttentionNamesTheParameterThatItLacks) {
  const auto refuses = [&](auto change, const std::string& named) {
    PagedAttentionParam param = Paged(4, 2);
    change(param);
    EXPECT_EQ(Refusal(param), "acltape: PagedAttentionOperation with " + named +
                                  " is not offered by the soft device.\n");
  };
  refuses([](auto& p) { p.headNum = 0; }, "headNum 0");
  refuses([](auto& p) { p.kvHeadNum = 3; }, "kvHeadNum 3");
  refuses([](auto& p) { p.maskType = PagedAttentionParam::MASK_TYPE_NORM; }, "maskType 1");
  refuses([](auto& p) { p.maskType = PagedAttentionParam::MASK_TYPE_SPEC; }, "maskType 3");
  refuses([](auto& p) { p.calcType = PagedAttentionParam::CALC_TYPE_SPEC; }, "maskType 0");
  refuses([](auto& p) { p.batchRunStatusEnable = true; }, "batchRunStatusEnable 1");
  refuses([](auto& p) { p.quantType = 1; }, "quantType 1");
  refuses([](auto& p) { p.outDataType = ACL_BF16; }, "outDataType 27");
  refuses([](auto& p) { p.hasQuantOffset = true; }, "hasQuantOffset 1");
  refuses([](auto& p) { p.compressType = 1; }, "compressType 1");
  refuses([](auto& p) { p.scaleType = 1; }, "scaleType 1");
  refuses([](auto& p) { p.inputLayout = 1; }, "inputLayout 1");
  refuses([](auto& p) { p.mlaVHeadSize = 8; }, "mlaVHeadSize 8");
}

// Lengths decide how much a kernel does, so that operations read them when they are issued.
TEST_F(Atb, AttentionTakesLengthsInHostMemory) {
  const Caches caches(2, at::kHalf);
  const at::Tensor query = Random({1, 2, 8}, at::kHalf), length = at::tensor({2}, at::kInt);
  EXPECT_EQ(Misfit(Paged(2, 2), {query, caches.keys, caches.values, caches.table, length}, {query}),
            "acltape: PagedAttentionOperation takes lengths as int32 of one dim in host memory.\n");
  const AtbOperand wide = {at::tensor({1}, at::kLong), true};
  EXPECT_EQ(Misfit(Encoder(2, 2), {query, query, query, wide}, {query}),
            "acltape: SelfAttentionOperation takes lengths as int32 of one dim in host memory.\n");
}

// A capture may name more keys than the table has blocks for, because an update follows.
TEST_F(Atb, AttentionThatReadsTooFarFailsWhenItRuns) {
  const Caches caches(2, at::kHalf);
  const at::Tensor query = Random({1, 2, 8}, at::kHalf);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  context_->SetExecuteStream(stream);
  atb::Operation* operation = nullptr;
  ASSERT_EQ(atb::CreateOperation(Paged(2, 2), &operation), 0);
  const AtbOperand lengths = Lengths({13});
  const auto pack = Pack({query, caches.keys, caches.values, caches.table, lengths}, {query});
  EXPECT_EQ(operation->Execute(*pack, nullptr, 0, context_), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 507015);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find("kvSeqLen asks for 13 rows of keys in blocks of 4, and the table has 3"),
            std::string::npos)
      << message;
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  atb::DestroyOperation(operation);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

}  // namespace
}  // namespace acltape::opapi
