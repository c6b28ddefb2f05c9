// Products with the experts of the ranks of a group, where the tokens come from all ranks or the
// results go to them. What is expected is worked out row by row.
#include <string>
#include <vector>

#include "tests/opapi/group_calls.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using hccl::OnRanks;
using hccl::Rank;

class GroupGroupedMatmul : public testing::Test {
 protected:
  static void SetUpTestSuite() { hccl::ShowDevices("8"); }
};

constexpr int64_t kInner = 4, kColumns = 5, kEach = 3;

// Tokens of all ranks; those of a rank lie by the rank and the expert to which they go.
struct Tokens {
  int64_t ranks = 2;
  at::ScalarType dtype = at::kHalf;
  bool transposed = false, shared = false, second = false, graph = false;

  std::string Text() const {
    return std::string(at::toString(dtype)) + ", " + std::to_string(ranks) + " ranks" +
           (transposed ? ", transposed" : "") + (shared ? ", shared" : "") +
           (second ? ", V2" : "") + (graph ? ", graph" : "");
  }
  // From one rank to an expert of another one. Numbers differ, and one expert gets none.
  int64_t Count(int64_t from, int64_t to, int64_t expert) const {
    return expert == 1 && to == ranks - 1 ? 0 : (from * 2 + to + expert) % 4;
  }
  std::vector<int64_t> Sent(int64_t from) const {
    std::vector<int64_t> counts;
    for (int64_t to = 0; to < ranks; ++to) {
      for (int64_t expert = 0; expert < kEach; ++expert) counts.push_back(Count(from, to, expert));
    }
    return counts;
  }
  std::vector<int64_t> Received(int64_t to) const {
    std::vector<int64_t> counts;
    for (int64_t from = 0; from < ranks; ++from) {
      for (int64_t expert = 0; expert < kEach; ++expert) counts.push_back(Count(from, to, expert));
    }
    return counts;
  }
  int64_t AllSent(int64_t from) const {
    int64_t all = 0;
    for (const int64_t count : Sent(from)) all += count;
    return all;
  }
  Tensor X(int64_t from) const {
    return ValuesOf(static_cast<uint32_t>(from), {AllSent(from), kInner}, dtype, 1);
  }
  // The rows of one rank for an expert of another one.
  Tensor Rows(int64_t from, int64_t to, int64_t expert) const {
    int64_t begin = 0;
    for (int64_t n = 0; n < to * kEach + expert; ++n) begin += Sent(from)[n];
    return X(from).narrow(0, begin, Count(from, to, expert));
  }
  // The rows that a rank gets, by expert and by the rank from which they come.
  Tensor Came(int64_t to) const {
    std::vector<Tensor> rows;
    for (int64_t expert = 0; expert < kEach; ++expert) {
      for (int64_t from = 0; from < ranks; ++from) rows.push_back(Rows(from, to, expert));
    }
    return at::cat(rows);
  }
  Tensor Weight(int64_t rank) const {
    return transposed ? ValuesOf(static_cast<uint32_t>(rank), {kEach, kColumns, kInner}, dtype, 2)
                            .transpose(1, 2)
                      : ValuesOf(static_cast<uint32_t>(rank), {kEach, kInner, kColumns}, dtype, 2);
  }
  Tensor SharedX(int64_t rank) const {
    return ValuesOf(static_cast<uint32_t>(rank), {3, kInner + 1}, dtype, 4);
  }
  Tensor SharedWeight(int64_t rank) const {
    return transposed
               ? ValuesOf(static_cast<uint32_t>(rank), {kColumns + 1, kInner + 1}, dtype, 5).t()
               : ValuesOf(static_cast<uint32_t>(rank), {kInner + 1, kColumns + 1}, dtype, 5);
  }
  Tensor Product(const Tensor& rows, int64_t rank, int64_t expert) const {
    return ProductOf(rows, Weight(rank)[expert], {});
  }
};

std::vector<Tokens> Cases() {
  std::vector<Tokens> cases;
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    for (const int64_t ranks : {1, 2, 4}) {
      for (int bits = 0; bits < 16; ++bits) {
        cases.push_back(
            {ranks, dtype, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0});
      }
    }
  }
  return cases;
}

// (gmmX, ..., transMmWeight)
Args Begin(const Tokens& tokens, const Rank& rank, const Tensor& x, const std::string& group,
           const std::vector<int64_t>& send, const std::vector<int64_t>& receive) {
  const Tensor weight = tokens.Weight(rank.rank), shared = tokens.SharedWeight(rank.rank);
  Args args = {x, tokens.transposed ? weight.transpose(1, 2) : weight, Null{}, Null{}};
  if (tokens.shared) {
    args.emplace_back(tokens.SharedX(rank.rank));
    args.emplace_back(tokens.transposed ? shared.t() : shared);
  } else {
    args.insert(args.end(), {Null{}, Null{}});
  }
  args.emplace_back(group.c_str());
  if (tokens.second) args.emplace_back("aiv");
  args.insert(args.end(), {tokens.ranks, send, receive, tokens.transposed, tokens.transposed});
  return args;
}

Tensor SharedOut(const Tokens& tokens) { return at::full({3, kColumns + 1}, -1, tokens.dtype); }

void ExpectShared(const Tokens& tokens, const Rank& rank, const Tensor& out) {
  if (!tokens.shared) return;
  ExpectClose(out, ProductOf(tokens.SharedX(rank.rank), tokens.SharedWeight(rank.rank), {}), 1,
              tokens.Text());
}

TEST_F(GroupGroupedMatmul, TokensOfAllRanksAreMultipliedByTheirExperts) {
  for (const Tokens& tokens : Cases()) {
    for (const bool gives_rows : {true, false}) {
      OnRanks(static_cast<uint32_t>(tokens.ranks), [&](Rank& rank) {
        const std::string group = NameOf(rank.comm);
        const Tensor rows = tokens.Came(rank.rank);
        const Tensor out = at::full({rows.size(0), kColumns}, -1, tokens.dtype);
        const Tensor came = at::full(rows.sizes(), -1, tokens.dtype);
        const Tensor shared = SharedOut(tokens);
        Args args = Begin(tokens, rank, tokens.X(rank.rank), group, tokens.Sent(rank.rank),
                          tokens.Received(rank.rank));
        args.insert(args.end(), {gives_rows, out, tokens.shared ? Arg(shared) : Arg(Null{}),
                                 gives_rows ? Arg(came) : Arg(Null{})});
        RunOn(rank, tokens.second ? "aclnnAlltoAllvGroupedMatMulV2" : "aclnnAlltoAllvGroupedMatMul",
              args, tokens.graph);
        std::vector<Tensor> expected;
        for (int64_t expert = 0; expert < kEach; ++expert) {
          for (int64_t from = 0; from < tokens.ranks; ++from) {
            expected.push_back(
                tokens.Product(tokens.Rows(from, rank.rank, expert), rank.rank, expert));
          }
        }
        ExpectClose(out, at::cat(expected), 1, tokens.Text());
        if (gives_rows) {
          EXPECT_TRUE(SameBits(came, rows)) << tokens.Text();
        }
        ExpectShared(tokens, rank, shared);
      });
    }
  }
}

// The way back: each rank has what came to it, and the results go where the tokens came from.
TEST_F(GroupGroupedMatmul, ResultsGoBackToTheRanksOfTheirTokens) {
  for (const Tokens& tokens : Cases()) {
    OnRanks(static_cast<uint32_t>(tokens.ranks), [&](Rank& rank) {
      const std::string group = NameOf(rank.comm);
      const Tensor out = at::full({tokens.AllSent(rank.rank), kColumns}, -1, tokens.dtype);
      const Tensor shared = SharedOut(tokens);
      Args args = Begin(tokens, rank, tokens.Came(rank.rank), group, tokens.Received(rank.rank),
                        tokens.Sent(rank.rank));
      args.insert(args.end(), {out, tokens.shared ? Arg(shared) : Arg(Null{})});
      RunOn(rank, tokens.second ? "aclnnGroupedMatMulAlltoAllvV2" : "aclnnGroupedMatMulAlltoAllv",
            args, tokens.graph);
      std::vector<Tensor> expected;
      for (int64_t to = 0; to < tokens.ranks; ++to) {
        for (int64_t expert = 0; expert < kEach; ++expert) {
          expected.push_back(tokens.Product(tokens.Rows(rank.rank, to, expert), to, expert));
        }
      }
      ExpectClose(out, at::cat(expected), 1, tokens.Text());
      ExpectShared(tokens, rank, shared);
    });
  }
}

TEST_F(GroupGroupedMatmul, WhatDoesNotFitIsRefusedInTheFirstPhase) {
  OnRanks(2, [](Rank& rank) {
    const std::string group = NameOf(rank.comm);
    Tokens tokens;
    tokens.shared = true;
    const Tensor out = at::zeros({tokens.Came(rank.rank).size(0), kColumns}, at::kHalf);
    Args good = Begin(tokens, rank, tokens.X(rank.rank), group, tokens.Sent(rank.rank),
                      tokens.Received(rank.rank));
    good.insert(good.end(), {false, out, SharedOut(tokens), Null{}});
    const auto refused = [&](int i, const Arg& instead, const std::string& words) {
      Args args = good;
      args[i] = instead;
      const std::string message = Refusal("aclnnAlltoAllvGroupedMatMul", args);
      EXPECT_NE(message.find(words), std::string::npos) << message;
    };
    refused(0, at::zeros({1, kInner}, at::kHalf), "gmmX has 1 rows, and sendCounts count");
    refused(0, tokens.X(rank.rank).to(at::kFloat), "gmmX has dtype Float");
    refused(1, at::zeros({kEach, kInner + 1, kColumns}, at::kHalf),
            "gmmX has rows of 4, and matrices of gmmWeight take 5");
    refused(2, at::zeros({6}, at::kLong), "sendCountsTensorOptional is given");
    refused(5, Null{}, "mmWeightOptional is absent, and the other factor is not");
    refused(6, "nobody", "group \"nobody\" is no communicator of this process");
    refused(7, 8, "epWorldSize is 8, and the group has 2 ranks");
    refused(8, std::vector<int64_t>{1, 2}, "sendCounts has 2 elements, expected 6: 3 experts on");
    refused(9, std::vector<int64_t>{1, 2, -1, 0, 0, 0}, "recvCounts has a negative count");
    refused(12, true, "permuteOutOptional is absent, and permuteOutFlag asks for it");
    refused(13, at::zeros({1, kColumns}, at::kHalf), "gmmY has shape [1, 5]");
    refused(14, at::zeros({1, kColumns}, at::kHalf), "mmYOptional has shape [1, 5]");
  });
}

TEST_F(GroupGroupedMatmul, CountsThatRanksDisagreeAboutAreToldSo) {
  OnRanks(2, [](Rank& rank) {
    const std::string group = NameOf(rank.comm);
    const Tokens tokens;
    std::vector<int64_t> receive = tokens.Received(rank.rank);
    if (rank.rank == 0) receive[4] += 1;
    int64_t rows = 0;
    for (const int64_t count : receive) rows += count;
    Args args = Begin(tokens, rank, tokens.X(rank.rank), group, tokens.Sent(rank.rank), receive);
    args.insert(args.end(), {false, at::zeros({rows, kColumns}, at::kHalf), Null{}, Null{}});
    const auto call = Start("aclnnAlltoAllvGroupedMatMul", args, rank.stream);
    EXPECT_NE(aclrtSynchronizeStream(rank.stream), ACL_SUCCESS);
    const std::string told = TakeMessage();
    EXPECT_NE(told.find("EI0005"), std::string::npos) << told;
    EXPECT_NE(told.find("to rank 0, which wants"), std::string::npos) << told;
  });
}

}  // namespace
}  // namespace acltape::opapi
