// Fused attention over sequences that follow each other, against each sequence on its own.
#include <cmath>
#include <limits>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Ints = std::vector<int64_t>;

constexpr int64_t kHeads = 4, kKeyValueHeads = 2, kHeadWidth = 8,
                  kAll = std::numeric_limits<int32_t>::max();
// Running sums: three sequences of 3, 0 and 4 queries, and a row after them that belongs to none.
const Ints kQueries = {3, 3, 7}, kKeys = {4, 6, 11};
constexpr int64_t kQueryRows = 8, kKeyRows = 11;

struct Masked {
  const char* what;
  Arg mask;
  int64_t mode;
  bool causal;
};

std::vector<Masked> Masks() {
  return {{"no mask", Null{}, 0, false},
          {"a triangle from the top left", at::ones({2048, 2048}, at::kBool).triu(1), 2, true},
          {"a mask of the longest sequence", at::ones({4, 5}, at::kBool).triu(1), 1, true}};
}

// Attention of one sequence, [rows, heads, width].
Tensor AttendOne(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  const auto heads_first = [](const Tensor& t) { return t.transpose(0, 1); };
  const int64_t sharing = kHeads / kKeyValueHeads;
  const Tensor keys = heads_first(k).repeat_interleave(sharing, 0);
  Tensor scores = at::matmul(heads_first(q), keys.transpose(1, 2)) * 0.3;
  if (causal) {
    const Tensor later = at::ones({q.size(0), k.size(0)}, at::kBool).triu(1);
    scores = scores.masked_fill(later, -INFINITY);
  }
  const Tensor values = heads_first(v).repeat_interleave(sharing, 0);
  return at::matmul(at::softmax(scores, -1), values).transpose(0, 1);
}

Tensor AttendEach(const Tensor& q, const Tensor& k, const Tensor& v, bool causal) {
  std::vector<Tensor> parts;
  int64_t first = 0, first_key = 0;
  for (size_t s = 0; s < kQueries.size(); ++s) {
    if (kQueries[s] > first) {
      parts.push_back(AttendOne(q.slice(0, first, kQueries[s]), k.slice(0, first_key, kKeys[s]),
                                v.slice(0, first_key, kKeys[s]), causal));
    }
    first = kQueries[s];
    first_key = kKeys[s];
  }
  parts.push_back(at::zeros({kQueryRows - first, kHeads, kHeadWidth}));
  return at::cat(parts);
}

// The second versions have the starts of queries and keys after the lengths, and the type of the
// bias after the sparse mode.
Args WithStarts(Args args, size_t behind_lengths, size_t behind_mode) {
  args.insert(args.begin() + static_cast<int64_t>(behind_mode), int64_t{0});
  args.insert(args.begin() + static_cast<int64_t>(behind_lengths), 2, Null{});
  return args;
}

TEST(PackedAttention, EachSequenceAttendsToItsOwnKeys) {
  const at::AutoGradMode enabled(true);
  for (const Masked& m : Masks()) {
    const auto leaf = [](int64_t rows, int64_t heads) {
      return Random({rows, heads, kHeadWidth}).requires_grad_();
    };
    const Tensor q = leaf(kQueryRows, kHeads), k = leaf(kKeyRows, kKeyValueHeads);
    const Tensor v = leaf(kKeyRows, kKeyValueHeads), dy = Random({kQueryRows, kHeads, kHeadWidth});
    const Tensor expected = AttendEach(q, k, v, m.causal);
    expected.backward(dy);

    const Tensor plain_q = q.detach(), plain_k = k.detach(), plain_v = v.detach();
    const Tensor maximum = at::empty({kQueryRows, kHeads, 8}), sum = at::empty_like(maximum);
    const Tensor out = at::empty_like(plain_q);
    const Args forward = {plain_q,    plain_k, plain_v, Null{}, Null{}, Null{}, m.mask, Null{},
                          kQueries,   kKeys,   0.3,     1.0,    kAll,   kAll,   kHeads, "TND",
                          int64_t{0}, m.mode,  maximum, sum,    Null{}, out};
    for (bool second : {true, false}) {
      out.fill_(-1);
      ASSERT_EQ(second
                    ? RunOperator("aclnnFlashAttentionVarLenScoreV2", WithStarts(forward, 10, 18))
                    : RunOperator("aclnnFlashAttentionVarLenScore", forward),
                0)
          << LastMessage();
      EXPECT_TRUE(at::allclose(out, expected.detach(), 1e-5, 1e-6)) << m.what;
    }

    const Tensor dq = at::empty_like(plain_q), dk = at::empty_like(plain_k),
                 dv = at::empty_like(plain_v);
    const Args backward = {plain_q,    plain_k, plain_v, dy,     Null{}, Null{}, Null{},
                           m.mask,     maximum, sum,     Null{}, out,    Null{}, kQueries,
                           kKeys,      0.3,     1.0,     kAll,   kAll,   kHeads, "TND",
                           int64_t{0}, m.mode,  dq,      dk,     dv,     Null{}};
    for (bool second : {true, false}) {
      for (const Tensor& gradient : {dq, dk, dv}) gradient.fill_(-1);
      ASSERT_EQ(second ? RunOperator("aclnnFlashAttentionUnpaddingScoreGradV2",
                                     WithStarts(backward, 15, 23))
                       : RunOperator("aclnnFlashAttentionUnpaddingScoreGrad", backward),
                0)
          << LastMessage();
      EXPECT_TRUE(at::allclose(dq, q.grad(), 1e-4, 1e-5)) << m.what;
      EXPECT_TRUE(at::allclose(dk, k.grad(), 1e-4, 1e-5)) << m.what;
      EXPECT_TRUE(at::allclose(dv, v.grad(), 1e-4, 1e-5)) << m.what;
    }
  }
}

TEST(PackedAttention, WhatTheSoftDeviceLacksIsRefused) {
  const Tensor q = Random({8, 4, 8}), k = Random({11, 2, 8}), statistic = at::empty({8, 4, 8});
  const auto call = [&](const Arg& lengths, double keep, const char* layout, const Arg& bias) {
    return RunOperator("aclnnFlashAttentionVarLenScore", {q,          k,
                                                          k,          bias,
                                                          Null{},     Null{},
                                                          Null{},     Null{},
                                                          lengths,    kKeys,
                                                          0.3,        keep,
                                                          kAll,       kAll,
                                                          kHeads,     layout,
                                                          int64_t{0}, int64_t{0},
                                                          statistic,  statistic.clone(),
                                                          Null{},     at::empty_like(q)});
  };
  EXPECT_EQ(call(kQueries, 1.0, "TND", Null{}), 0) << LastMessage();
  EXPECT_EQ(call(Null{}, 1.0, "TND", Null{}), kReject);
  EXPECT_EQ(call(Ints{3, 9}, 1.0, "TND", Null{}), kReject);
  EXPECT_EQ(LastMessage(),
            "aclnnFlashAttentionVarLenScore: actualSeqQLenOptional exceeds the tensor's 8 rows.");
  EXPECT_EQ(call(Ints{3, 2, 7}, 1.0, "TND", Null{}), kReject);
  EXPECT_EQ(call(kQueries, 0.9, "TND", Null{}), kReject);
  EXPECT_EQ(call(kQueries, 1.0, "BSH", Null{}), kReject);
  EXPECT_EQ(call(kQueries, 1.0, "TND", Random({1, 4, 8, 11})), kReject);
}

}  // namespace
}  // namespace acltape::opapi
