// All versions of fused attention over sequences that follow each other: further columns, sinks,
// and the order of the statistics. Each sequence is computed on its own in double precision.
#include <cmath>
#include <limits>
#include <string>

#include "tests/opapi/named_arguments.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using RowEnds = std::vector<int64_t>;

constexpr int64_t kPackedHeads = 4, kPackedKeyHeads = 2, kPackedWidth = 16, kPackedValueWidth = 8,
                  kPackedRopeWidth = 8;
constexpr int64_t kPackedUnbounded = std::numeric_limits<int32_t>::max();
constexpr double kPackedScale = 0.3;
// Three sequences of 3, 0 and 4 queries, and a row after them that belongs to none.
const RowEnds kPackedEnds = {3, 3, 7}, kPackedKeyEnds = {4, 6, 11};
constexpr int64_t kPackedRows = 8, kPackedSources = 11;

struct PackedVersion {
  const char* forward;
  const char* backward;
  bool rope, sink;
  const char* order;  // nullptr: the version has no such argument

  bool like_input() const { return order != nullptr && std::string(order) == "same_as_input"; }
  at::ScalarType dtype() const { return rope ? at::kBFloat16 : at::kFloat; }
};

constexpr const char* kFirst = "aclnnFlashAttentionVarLenScore";
constexpr const char* kSecond = "aclnnFlashAttentionVarLenScoreV2";
constexpr const char* kThird = "aclnnFlashAttentionVarLenScoreV3";
constexpr const char* kFourth = "aclnnFlashAttentionVarLenScoreV4";
constexpr const char* kFifth = "aclnnFlashAttentionVarLenScoreV5";
constexpr const char* kFirstGrad = "aclnnFlashAttentionUnpaddingScoreGrad";
constexpr const char* kSecondGrad = "aclnnFlashAttentionUnpaddingScoreGradV2";
constexpr const char* kThirdGrad = "aclnnFlashAttentionUnpaddingScoreGradV3";
constexpr const char* kFourthGrad = "aclnnFlashAttentionUnpaddingScoreGradV4";
constexpr const char* kFifthGrad = "aclnnFlashAttentionUnpaddingScoreGradV5";
const PackedVersion kPackedVersions[] = {{kThird, kThirdGrad, true, false, nullptr},
                                         {kFirst, kFirstGrad, false, false, nullptr},
                                         {kSecond, kSecondGrad, false, false, nullptr},
                                         {kFourth, kFourthGrad, false, false, ""},
                                         {kFourth, kFourthGrad, false, false, "same_as_input"},
                                         {kFifth, kFifthGrad, false, true, "same_as_input"},
                                         {kFifth, kFifthGrad, false, true, ""},
                                         {kFifth, kFifthGrad, true, false, ""},
                                         {kFifth, kFifthGrad, true, true, "same_as_input"}};

struct PackedLeftOut {
  Arg mask;
  int64_t mode;

  // The keys that each query of a sequence does not see; undefined where it sees all.
  Tensor LeftOut(int64_t queries, int64_t keys) const {
    if (mode == 0) return {};
    const Tensor all = at::ones({queries, keys}, at::kBool);
    const int64_t shift = mode < 3 ? 0 : keys - queries;
    const Tensor later = all.triu(shift + 1);
    return mode == 4 ? later.logical_or(all.tril(shift - 3)) : later;
  }
  int64_t before() const { return mode == 4 ? 2 : kPackedUnbounded; }
  int64_t after() const { return mode == 4 ? 0 : kPackedUnbounded; }
};

std::vector<PackedLeftOut> PackedKinds() {
  const Tensor triangle = at::ones({2048, 2048}, at::kBool).triu(1);
  return {{Null{}, 0},
          {at::ones({4, 5}, at::kBool).triu(1), 1},
          {triangle, 2},
          {triangle, 3},
          {triangle, 4}};
}

struct PackedInputs {
  Tensor query, key, value, dy, query_rope, key_rope, sink;

  explicit PackedInputs(const PackedVersion& variant) {
    const auto random = [&](int64_t rows, int64_t heads, int64_t width) {
      return Random({rows, heads, width}, variant.dtype());
    };
    query = random(kPackedRows, kPackedHeads, kPackedWidth);
    key = random(kPackedSources, kPackedKeyHeads, kPackedWidth);
    value = random(kPackedSources, kPackedKeyHeads, kPackedValueWidth);
    dy = random(kPackedRows, kPackedHeads, kPackedValueWidth);
    if (variant.rope) {
      query_rope = random(kPackedRows, kPackedHeads, kPackedRopeWidth);
      key_rope = random(kPackedSources, kPackedKeyHeads, kPackedRopeWidth);
    }
    if (variant.sink) sink = Random({kPackedHeads});
  }
};

// Holds what the operators give, in double precision, with statistics in the order that is asked
// for.
struct PackedExpected {
  Tensor out, maximum, sum;
  Tensor dq, dk, dv, dq_rope, dk_rope, dsink;
};

Tensor PackedParameter(const Tensor& tensor) {
  return tensor.defined() ? tensor.to(at::kDouble).requires_grad_(true) : tensor;
}

PackedExpected PackedDefinition(const PackedInputs& in, const PackedVersion& variant,
                                const PackedLeftOut& kind) {
  const at::AutoGradMode enabled(true);
  const Tensor q = PackedParameter(in.query), k = PackedParameter(in.key),
               v = PackedParameter(in.value);
  const Tensor q_rope = PackedParameter(in.query_rope), k_rope = PackedParameter(in.key_rope);
  const Tensor sink = PackedParameter(in.sink);
  const int64_t sharing = kPackedHeads / kPackedKeyHeads;
  std::vector<Tensor> outs, tops, sums;
  int64_t first = 0, first_key = 0;
  for (size_t s = 0; s < kPackedEnds.size(); ++s) {
    const int64_t end = kPackedEnds[s], end_key = kPackedKeyEnds[s];
    if (end > first) {
      const auto queries = [&](const Tensor& all) {
        return all.slice(0, first, end).transpose(0, 1);
      };
      const auto keys = [&](const Tensor& all) {
        return all.slice(0, first_key, end_key).transpose(0, 1).repeat_interleave(sharing, 0);
      };
      Tensor scores = at::matmul(queries(q), keys(k).transpose(1, 2));
      if (q_rope.defined())
        scores = scores + at::matmul(queries(q_rope), keys(k_rope).transpose(1, 2));
      scores = scores * kPackedScale;
      const Tensor left_out = kind.LeftOut(end - first, end_key - first_key);
      if (left_out.defined()) scores = scores.masked_fill(left_out, -INFINITY);
      const Tensor more = sink.defined()
                              ? sink.view({-1, 1, 1}).expand({kPackedHeads, end - first, 1})
                              : at::full({kPackedHeads, end - first, 1}, -INFINITY, at::kDouble);
      const Tensor all = at::cat({scores, more}, -1);
      const Tensor weights = at::softmax(all, -1).narrow(-1, 0, scores.size(2));
      outs.push_back(at::matmul(weights, keys(v)).transpose(0, 1));
      const Tensor top = all.detach().amax(-1, /*keepdim=*/true);
      const Tensor sum = (all.detach() - top).exp().sum(-1, /*keepdim=*/true);
      for (const auto& [one, list] : {std::pair(top, &tops), std::pair(sum, &sums)}) {
        const Tensor eight = one.expand({-1, -1, 8});
        list->push_back((variant.like_input() ? eight.transpose(0, 1) : eight).reshape({-1, 8}));
      }
    }
    first = end;
    first_key = end_key;
  }
  outs.push_back(at::zeros({kPackedRows - first, kPackedHeads, kPackedValueWidth}, at::kDouble));
  for (auto* list : {&tops, &sums}) {
    list->push_back(at::zeros({(kPackedRows - first) * kPackedHeads, 8}, at::kDouble));
  }
  const Tensor out = at::cat(outs);
  out.backward(in.dy.to(at::kDouble));
  const auto gradient = [](const Tensor& of) { return of.defined() ? of.grad() : of; };
  return {out.detach(), at::cat(tops),    at::cat(sums),    gradient(q),   gradient(k),
          gradient(v),  gradient(q_rope), gradient(k_rope), gradient(sink)};
}

void ExpectPackedNear(const Tensor& actual, const Tensor& expected, double relative,
                      const std::string& what) {
  const Tensor a = actual.to(at::kDouble), b = expected.to(at::kDouble);
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  EXPECT_LE((a - b).abs().max().item<double>(), relative * b.abs().max().item<double>()) << what;
}

// The arguments that both directions have alike.
Named CommonArguments(const PackedInputs& in, const PackedVersion& variant,
                      const PackedLeftOut& kind) {
  Named named = {{"query", in.query},
                 {"value", in.value},
                 {"attenMaskOptional", kind.mask},
                 {"prefixOptional", RowEnds{0}},
                 {"actualSeqQLenOptional", kPackedEnds},
                 {"actualSeqKvLenOptional", kPackedKeyEnds},
                 {"scaleValue", kPackedScale},
                 {"preTokens", kind.before()},
                 {"nextTokens", kind.after()},
                 {"headNum", kPackedHeads},
                 {"inputLayout", "TND"},
                 {"sparseMode", kind.mode}};
  if (variant.rope) named["queryRope"] = in.query_rope;
  if (HasArgument(variant.forward, "pseType")) {
    named["qStartIdxOptional"] = RowEnds{0};
    named["kvStartIdxOptional"] = RowEnds{0};
    named["pseType"] = int64_t{1};
  }
  return named;
}

Named ForwardArguments(const PackedInputs& in, const PackedVersion& variant,
                       const PackedLeftOut& kind, const Tensor& maximum, const Tensor& sum,
                       const Tensor& out) {
  Named named = CommonArguments(in, variant, kind);
  named["key"] = in.key;
  if (variant.rope) named["keyRope"] = in.key_rope;
  if (variant.sink) named["sinkOptional"] = in.sink;
  if (variant.order != nullptr) named["softmaxOutLayout"] = variant.order;
  named["softmaxMaxOut"] = maximum;
  named["softmaxSumOut"] = sum;
  named["attentionOutOut"] = out;
  return named;
}

TEST(PackedVersions, EachGivesWhatItsSequencesGive) {
  for (const PackedVersion& variant : kPackedVersions) {
    for (const PackedLeftOut& kind : PackedKinds()) {
      const PackedInputs in(variant);
      const PackedExpected expected = PackedDefinition(in, variant, kind);
      const std::string what = std::string(variant.forward) + " mode " + std::to_string(kind.mode);
      const double near = variant.rope ? 1e-2 : 2e-5;
      for (const bool rows_first : {true, false}) {
        if (variant.like_input() && !rows_first) continue;
        const Tensor maximum = rows_first
                                   ? at::empty({kPackedRows, kPackedHeads, 8})
                                   : at::empty({kPackedHeads, kPackedRows, 16}).slice(2, 0, 16, 2);
        const Tensor sum = at::empty(maximum.sizes());
        const Tensor out =
            at::empty({kPackedRows, kPackedHeads, kPackedValueWidth}, variant.dtype());
        ASSERT_EQ(RunNamed(variant.forward, ForwardArguments(in, variant, kind, maximum, sum, out)),
                  0)
            << LastMessage();
        ExpectPackedNear(out, expected.out, near, what);
        ExpectPackedNear(maximum.reshape({-1, 8}), expected.maximum, near, what + " maximum");
        ExpectPackedNear(sum.reshape({-1, 8}), expected.sum, near, what + " sum");

        Named named = CommonArguments(in, variant, kind);
        named["keyIn"] = in.key;
        named["dy"] = in.dy;
        named["softmaxMaxOptional"] = maximum;
        named["softmaxSumOptional"] = sum;
        named["softmaxInOptional"] = sum;
        named["attentionInOptional"] = rows_first ? Arg(out) : Arg(Null{});
        const Tensor dq = at::empty_like(in.query), dk = at::empty_like(in.key);
        const Tensor dv = at::empty_like(in.value);
        named["dqOut"] = dq;
        named["dkOut"] = dk;
        named["dvOut"] = dv;
        Tensor dq_rope, dk_rope, dsink;
        if (variant.rope) {
          named["keyInRope"] = in.key_rope;
          named["dqRopeOut"] = dq_rope = at::empty_like(in.query_rope);
          named["dkRopeOut"] = dk_rope = at::empty_like(in.key_rope);
        }
        if (variant.sink) {
          named["sinkInOptional"] = in.sink;
          named["dsinkOut"] = dsink = at::empty_like(in.sink);
        }
        if (variant.order != nullptr) named["softmaxInLayout"] = variant.order;
        ASSERT_EQ(RunNamed(variant.backward, named), 0) << LastMessage();
        const double slope = variant.rope ? 3e-2 : 1e-4;
        ExpectPackedNear(dq, expected.dq, slope, what + " dq");
        ExpectPackedNear(dk, expected.dk, slope, what + " dk");
        ExpectPackedNear(dv, expected.dv, slope, what + " dv");
        if (variant.rope) {
          ExpectPackedNear(dq_rope, expected.dq_rope, slope, what + " dqRope");
          ExpectPackedNear(dk_rope, expected.dk_rope, slope, what + " dkRope");
        }
        if (variant.sink) ExpectPackedNear(dsink, expected.dsink, slope, what + " dsink");
      }
    }
  }
}

// A valid call of the forward operator.
Named ValidForward(const PackedVersion& variant) {
  return ForwardArguments(
      PackedInputs(variant), variant, PackedKinds()[0], at::empty({kPackedRows, kPackedHeads, 8}),
      at::empty({kPackedRows, kPackedHeads, 8}),
      at::empty({kPackedRows, kPackedHeads, kPackedValueWidth}, variant.dtype()));
}

TEST(PackedVersions, RefuseWhatTheirPagesDoNotAllow) {
  const auto rope = [](int64_t rows, int64_t heads, int64_t width, at::ScalarType dtype) {
    return Random({rows, heads, width}, dtype);
  };
  ExpectChangesRefused(
      kThird, ValidForward(kPackedVersions[0]),
      {{{{"queryRope", Null{}}}, "queryRope is absent."},
       {{{"keyRope", Null{}}}, "keyRope is absent."},
       {{{"queryRope", rope(kPackedRows, kPackedHeads, kPackedRopeWidth, at::kHalf)}},
        "queryRope has dtype Half, expected BFloat16."},
       {{{"queryRope", rope(kPackedRows, kPackedHeads, 4, at::kBFloat16)}},
        "queryRope must have a width that is a multiple of 8, at most that of value."},
       {{{"keyRope", rope(kPackedSources, kPackedHeads, kPackedRopeWidth, at::kBFloat16)}},
        "keyRope has shape [11, 4, 8], expected [11, 2, 8]."},
       {{{"pseType", int64_t{0}}}, "pseType must be 1 beside queryRope."},
       {{{"dropMaskOptional", at::zeros({8}, at::kByte)}},
        "dropMaskOptional is given, which the soft device lacks."},
       {{{"softmaxMaxOut", at::empty({kPackedRows, kPackedHeads})}},
        "softmaxMaxOut has shape [8, 4], expected [8, 4, 8]."}});
  ExpectChangesRefused(
      kFifth, ValidForward(kPackedVersions[8]),
      {{{{"keyRope", Null{}}}, "keyRope is absent."},
       {{{"sinkOptional", Random({3})}}, "sinkOptional has shape [3], expected [4]."},
       {{{"sinkOptional", Random({kPackedHeads}, at::kBFloat16)}},
        "sinkOptional has dtype BFloat16, expected Float."},
       {{{"softmaxOutLayout", "TND"}}, "softmaxOutLayout must be empty or \"same_as_input\"."},
       {{{"sparseMode", int64_t{6}}}, "sparseMode is 6; the soft device has sparse modes 0 to 4."},
       {{{"softmaxSumOut", at::empty({kPackedHeads, kPackedRows, 8})}},
        "softmaxSumOut has shape [4, 8, 8], expected [8, 4, 8]."},
       {{{"inputLayout", "BSND"}}, "inputLayout must be \"TND\"."},
       {{{"keepProb", 0.5}}, "keepProb is not 1; the soft device has no dropout here."}});
}

}  // namespace
}  // namespace acltape::opapi
