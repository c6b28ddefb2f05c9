// Options of attention that programs seldom give, against its definition in double precision.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr int64_t kNoBound = std::numeric_limits<int32_t>::max();
constexpr int64_t kTokens = 5, kSources = 6, kAttentionHeads = 2, kAttentionWidth = 8;
constexpr double kScores = 0.3, kKept = 0.75;

Tensor WideParameter(const Tensor& tensor) {
  return tensor.to(at::kDouble).detach().requires_grad_(true);
}

// Attention of [1, heads, positions, width] with a factor for each probability and a further score
// of each head, which takes weight alone.
struct Attention {
  Tensor out, maximum, sum;

  Attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& factors,
            const Tensor& sink, const Tensor& left_out = Tensor()) {
    Tensor scores = at::matmul(query, key.transpose(-1, -2)) * kScores;
    if (left_out.defined()) scores = scores.masked_fill(left_out, -INFINITY);
    const Tensor more =
        sink.defined()
            ? sink.view({1, -1, 1, 1}).expand({1, kAttentionHeads, scores.size(2), 1})
            : at::full({1, kAttentionHeads, scores.size(2), 1}, -INFINITY, scores.options());
    const Tensor all = at::cat({scores, more}, -1);
    maximum = std::get<0>(all.detach().max(-1, true));
    sum = (all - maximum).exp().sum(-1, true);
    const Tensor weights = at::softmax(all, -1).narrow(-1, 0, scores.size(3));
    out = at::matmul(factors.defined() ? weights * factors : weights, value);
  }
};

// One bit for each score, the first in the lowest.
Tensor BitsOf(const Tensor& kept) {
  const Tensor flat = kept.flatten();
  const Tensor bytes = at::zeros({(flat.numel() + 7) / 8}, at::kByte);
  auto* to = bytes.data_ptr<uint8_t>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (flat[i].item<bool>()) to[i / 8] = static_cast<uint8_t>(to[i / 8] | 1 << i % 8);
  }
  return bytes;
}

void ExpectSame(const Tensor& actual, const Tensor& expected, const std::string& what) {
  const Tensor a = actual.to(at::kDouble), b = expected.detach().to(at::kDouble);
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  EXPECT_LE((a - b).abs().max().item<double>(), 2e-5 * b.abs().max().item<double>() + 1e-7) << what;
}

// A mode that leaves scores out by a triangle: causal from the first key, causal from the last one,
// or a band of two keys before and none after that.
struct Causal {
  int64_t mode;
  Tensor triangle, left_out;

  explicit Causal(int64_t mode_) : mode(mode_) {
    if (mode == 0) return;
    triangle = at::ones({2048, 2048}, at::kBool).triu(1);
    left_out = at::zeros({kTokens, kSources}, at::kBool);
    for (int64_t i = 0; i < kTokens; ++i) {
      for (int64_t j = 0; j < kSources; ++j) {
        const int64_t distance = j - i - (mode == 2 ? 0 : kSources - kTokens);
        if (distance > 0 || (mode == 4 && distance < -2)) left_out[i][j].fill_(true);
      }
    }
  }
  Arg mask() const { return mode == 0 ? Arg(Null{}) : Arg(triangle); }
  int64_t before() const { return mode == 4 ? 2 : kNoBound; }
  int64_t after() const { return mode == 4 ? 0 : kNoBound; }
};

// The arguments between the mask and the scale: sinks, prefixes, lengths and starts, which other
// modes than those of this test read.
struct Version {
  const char* forward;
  const char* backward;
  int before;  // absent arguments after the mask
  bool sink;
  bool prefix;
  int lengths;  // absent lengths of sequences
  bool starts;
};
constexpr Version kVersions[] = {
    {"aclnnFlashAttentionScore", "aclnnFlashAttentionScoreGrad", 0, false, true, 0, false},
    {"aclnnFlashAttentionScoreV2", "aclnnFlashAttentionScoreGradV2", 0, false, true, 0, true},
    {"aclnnFlashAttentionScoreV3", "aclnnFlashAttentionScoreGradV3", 0, true, true, 0, true},
    {"aclnnFlashAttentionScoreV4", nullptr, 5, true, true, 2, true},
};

TEST(GivenAttentionOptions, MasksOfDropoutAndSinksTakeWeight) {
  const at::AutoGradMode enabled(true);
  const auto bnsd = [](int64_t rows) {
    return Random({1, kAttentionHeads, rows, kAttentionWidth});
  };
  const Tensor query = bnsd(kTokens), key = bnsd(kSources), value = bnsd(kSources);
  const Tensor dy = bnsd(kTokens), sink = Random({kAttentionHeads});
  const Tensor kept = Random({1, kAttentionHeads, kTokens, kSources}, at::kFloat, 0, 1).lt(kKept);
  const std::vector<int64_t> ignored = {1}, statistics = {1, kAttentionHeads, kTokens, 8};
  for (const int64_t mode : {0, 2, 3, 4}) {
    const Causal causal(mode);
    for (const Version& version : kVersions) {
      const Tensor q = WideParameter(query), k = WideParameter(key), v = WideParameter(value);
      const Tensor s = version.sink ? WideParameter(sink) : Tensor();
      const Attention expected(q, k, v, kept.to(at::kDouble) / kKept, s, causal.left_out);
      (expected.out * dy).sum().backward();

      Args more(version.before, Null{});
      if (version.sink) more.push_back(sink);
      if (version.prefix) more.push_back(ignored);
      more.insert(more.end(), version.lengths, Null{});
      if (version.starts) more.insert(more.end(), {ignored, ignored});
      Args numbers = {kScores,         kKept,  causal.before(), causal.after(),
                      kAttentionHeads, "BNSD", int64_t{0},      mode};
      if (version.lengths > 0) numbers.push_back(int64_t{0});  // the dtype of the result
      if (version.starts) numbers.push_back(int64_t{1});       // the kind of the bias

      const Tensor maximum = at::empty(statistics), sum = at::empty(statistics);
      const Tensor out = at::empty(query.sizes());
      Args args = {query, key, value, Null{}, BitsOf(kept), Null{}, causal.mask()};
      args.insert(args.end(), more.begin(), more.end());
      args.insert(args.end(), numbers.begin(), numbers.end());
      if (version.lengths > 0) args.insert(args.end(), {"", int64_t{0}, int64_t{0}});
      args.insert(args.end(), {maximum, sum, Null{}, out});
      ASSERT_EQ(RunOperator(version.forward, args), 0) << LastMessage();
      ExpectSame(out, expected.out, version.forward);
      ExpectSame(maximum.select(3, 0), expected.maximum.select(3, 0), version.forward);
      ExpectSame(sum.select(3, 7), expected.sum.select(3, 0), version.forward);
      if (version.backward == nullptr) continue;

      const Tensor dq = at::empty(query.sizes()), dk = at::empty(key.sizes());
      const Tensor dv = at::empty(value.sizes()), dsink = at::empty({kAttentionHeads});
      args = {query,  key,           value,   dy,  Null{}, BitsOf(kept),
              Null{}, causal.mask(), maximum, sum, sum,    out};
      args.insert(args.end(), more.begin(), more.end());
      args.insert(args.end(), numbers.begin(), numbers.end());
      args.insert(args.end(), {dq, dk, dv, Null{}});
      if (version.sink) args.push_back(dsink);
      ASSERT_EQ(RunOperator(version.backward, args), 0) << LastMessage();
      ExpectSame(dq, q.grad(), version.backward);
      ExpectSame(dk, k.grad(), version.backward);
      ExpectSame(dv, v.grad(), version.backward);
      if (version.sink) ExpectSame(dsink, s.grad(), version.backward);
    }
  }
}

// One sequence after the other in one tensor: here a single one.
TEST(GivenAttentionOptions, PackedSequencesAreCausalInEachMode) {
  const at::AutoGradMode enabled(true);
  const auto packed = [](int64_t rows) { return Random({rows, kAttentionHeads, kAttentionWidth}); };
  const Tensor query = packed(kTokens), key = packed(kSources), value = packed(kSources);
  const Tensor dy = packed(kTokens);
  const std::vector<int64_t> ends = {kTokens}, key_ends = {kSources};
  const std::vector<int64_t> statistics = {kTokens, kAttentionHeads, 8};
  const auto heads_first = [](const Tensor& all) { return all.transpose(0, 1).unsqueeze(0); };
  const auto rows_first = [](const Tensor& all) { return all.squeeze(0).transpose(0, 1); };
  for (const int64_t mode : {2, 3, 4}) {
    const Causal causal(mode);
    for (const bool second : {false, true}) {
      const Tensor q = WideParameter(query), k = WideParameter(key), v = WideParameter(value);
      const Attention expected(heads_first(q), heads_first(k), heads_first(v), Tensor(), Tensor(),
                               causal.left_out);
      (rows_first(expected.out) * dy).sum().backward();
      Args numbers = {ends, key_ends};
      if (second) numbers.insert(numbers.end(), {Null{}, Null{}});
      numbers.insert(numbers.end(), {kScores, 1.0, causal.before(), causal.after(), kAttentionHeads,
                                     "TND", int64_t{0}, mode});
      if (second) numbers.push_back(int64_t{1});
      const Tensor maximum = at::empty(statistics), sum = at::empty(statistics);
      const Tensor out = at::empty(query.sizes());
      Args args = {query, key, value, Null{}, Null{}, Null{}, causal.mask(), Null{}};
      args.insert(args.end(), numbers.begin(), numbers.end());
      args.insert(args.end(), {maximum, sum, Null{}, out});
      const std::string forward =
          std::string("aclnnFlashAttentionVarLenScore") + (second ? "V2" : "");
      ASSERT_EQ(RunOperator(forward.c_str(), args), 0) << LastMessage();
      ExpectSame(out, rows_first(expected.out), forward);

      const Tensor dq = at::empty(query.sizes()), dk = at::empty(key.sizes());
      const Tensor dv = at::empty(value.sizes());
      args = {query,         key,     value, dy,  Null{}, Null{}, Null{},
              causal.mask(), maximum, sum,   sum, out,    Null{}};
      args.insert(args.end(), numbers.begin(), numbers.end());
      args.insert(args.end(), {dq, dk, dv, Null{}});
      const std::string backward =
          std::string("aclnnFlashAttentionUnpaddingScoreGrad") + (second ? "V2" : "");
      ASSERT_EQ(RunOperator(backward.c_str(), args), 0) << LastMessage();
      ExpectSame(dq, q.grad(), backward);
      ExpectSame(dk, k.grad(), backward);
      ExpectSame(dv, v.grad(), backward);
    }
  }
}

TEST(GivenAttentionOptions, LengthsOfSequencesLeaveRowsOut) {
  const auto bsnd = [](int64_t rows) {
    return Random({2, rows, kAttentionHeads, kAttentionWidth});
  };
  const Tensor query = bsnd(kTokens), key = bsnd(kSources), value = bsnd(kSources);
  const std::vector<int64_t> lengths = {3, 5}, key_lengths = {4, 6};
  const Tensor out = at::zeros(query.sizes());
  ASSERT_EQ(RunOperator("aclnnPromptFlashAttentionV3",
                        {query,           key,        value,    Null{},   Null{}, lengths,
                         key_lengths,     Null{},     Null{},   Null{},   Null{}, Null{},
                         kAttentionHeads, kScores,    kNoBound, kNoBound, "BSND", kAttentionHeads,
                         int64_t{0},      int64_t{0}, out}),
            0)
      << LastMessage();
  for (int64_t b = 0; b < 2; ++b) {
    const auto heads_first = [b](const Tensor& all, int64_t rows) {
      return all.narrow(0, b, 1).narrow(1, 0, rows).transpose(1, 2).to(at::kDouble);
    };
    const Attention expected(heads_first(query, lengths[b]), heads_first(key, key_lengths[b]),
                             heads_first(value, key_lengths[b]), Tensor(), Tensor());
    ExpectSame(heads_first(out, lengths[b]), expected.out, "batch " + std::to_string(b));
  }
}

TEST(GivenAttentionOptions, FurtherColumnsOfQueriesAndKeysScore) {
  constexpr int64_t kTurned = 4;
  const auto bnsd = [](int64_t rows, int64_t width) {
    return Random({1, kAttentionHeads, rows, width}, at::kHalf);
  };
  const Tensor query = bnsd(kTokens, kAttentionWidth), key = bnsd(kSources, kAttentionWidth);
  const Tensor value = bnsd(kSources, kAttentionWidth);
  const Tensor turned_query = bnsd(kTokens, kTurned), turned_key = bnsd(kSources, kTurned);
  const Tensor out = at::empty(query.sizes(), at::kHalf);
  Args args = {query, std::vector<Tensor>{key}, std::vector<Tensor>{value}};
  args.insert(args.end(), 21, Null{});
  args.insert(args.end(), {turned_query, turned_key, Null{}, kAttentionHeads, kScores, kNoBound,
                           kNoBound, "BNSD", kAttentionHeads, int64_t{0}, int64_t{0}, int64_t{0},
                           int64_t{0}, false, int64_t{0}, int64_t{0}, out, Null{}});
  ASSERT_EQ(RunOperator("aclnnFusedInferAttentionScoreV3", args), 0) << LastMessage();
  const Attention expected(at::cat({query, turned_query}, -1).to(at::kDouble),
                           at::cat({key, turned_key}, -1).to(at::kDouble), value.to(at::kDouble),
                           Tensor(), Tensor());
  const Tensor distance = (out.to(at::kDouble) - expected.out).abs();
  EXPECT_LE(distance.max().item<double>(), 2e-3);
}

}  // namespace
}  // namespace acltape::opapi
