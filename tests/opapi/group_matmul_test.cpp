// Products that communicate with the ranks of a group, which are threads of this process. Expected
// values are sums of doubles.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/opapi/group_calls.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using hccl::OnRanks;
using hccl::Rank;

class GroupMatmul : public testing::Test {
 protected:
  static void SetUpTestSuite() { hccl::ShowDevices("8"); }
};

struct Case {
  at::ScalarType dtype = at::kHalf;
  uint32_t ranks = 2;
  bool transposed = false, biased = false, graph = false;

  std::string Text() const {
    return std::string(at::toString(dtype)) + ", " + std::to_string(ranks) + " ranks" +
           (transposed ? ", transposed" : "") + (biased ? ", bias" : "") + (graph ? ", graph" : "");
  }
  Tensor Weight(uint32_t rank, int64_t inner, int64_t columns) const {
    return transposed ? ValuesOf(rank, {columns, inner}, dtype, 2).t()
                      : ValuesOf(rank, {inner, columns}, dtype, 2);
  }
  Tensor Bias(uint32_t rank, int64_t columns) const {
    return biased ? ValuesOf(rank, {columns}, dtype, 3) : Tensor();
  }
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    for (const uint32_t ranks : {1, 2, 4}) {
      for (const int bits : {0, 1, 2, 3, 4, 7}) {
        cases.push_back({dtype, ranks, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
      }
    }
  }
  return cases;
}

constexpr int64_t kRows = 8, kInner = 5, kColumns = 7;

TEST_F(GroupMatmul, AProductIsSummedOverTheRanks) {
  for (const Case& one : Cases()) {
    for (const bool adds : {false, true}) {
      Tensor expected = at::zeros({kRows, kColumns}, at::kDouble);
      for (uint32_t i = 0; i < one.ranks; ++i) {
        expected += ProductOf(ValuesOf(i, {kRows, kInner}, one.dtype, 1),
                              one.Weight(i, kInner, kColumns), one.Bias(i, kColumns));
        if (adds) expected += ValuesOf(i, {kRows, kColumns}, one.dtype, 4).to(at::kDouble);
      }
      OnRanks(one.ranks, [&](Rank& rank) {
        const std::string group = NameOf(rank.comm);
        const Tensor out = at::full({kRows, kColumns}, -1, one.dtype);
        Args args = {ValuesOf(rank.rank, {kRows, kInner}, one.dtype, 1),
                     one.Weight(rank.rank, kInner, kColumns),
                     OrNull(one.Bias(rank.rank, kColumns))};
        if (adds) args.emplace_back(ValuesOf(rank.rank, {kRows, kColumns}, one.dtype, 4));
        args.insert(args.end(), {group.c_str(), "sum", 0, 1, out});
        RunOn(rank, adds ? "aclnnMatmulAllReduceV2" : "aclnnMatmulAllReduce", args, one.graph);
        ExpectClose(out, expected, one.ranks, one.Text());
      });
    }
  }
}

TEST_F(GroupMatmul, RowsOfAllRanksAreMultiplied) {
  for (const Case& one : Cases()) {
    Tensor rows;
    std::vector<Tensor> parts;
    for (uint32_t i = 0; i < one.ranks; ++i) {
      parts.push_back(ValuesOf(i, {kRows, kInner}, one.dtype, 1));
    }
    rows = at::cat(parts);
    for (const bool second : {false, true}) {
      for (const bool gives_rows : {true, false}) {
        OnRanks(one.ranks, [&](Rank& rank) {
          const std::string group = NameOf(rank.comm);
          const Tensor weight = one.Weight(rank.rank, kInner, kColumns);
          const Tensor bias = one.Bias(rank.rank, kColumns);
          // The output is a part of a wider tensor.
          const Tensor out =
              at::full({rows.size(0), kColumns + 2}, -1, one.dtype).narrow(1, 1, kColumns);
          const Tensor gathered =
              gives_rows ? at::full(rows.sizes(), -1, one.dtype) : at::empty({0}, one.dtype);
          Args args = {parts[rank.rank], weight, OrNull(bias)};
          if (second) {
            args.insert(args.end(), {Null{}, Null{}, Null{}, 0, group.c_str(), 0, 0, 1, 0, "aiv"});
          } else {
            args.insert(args.end(), {group.c_str(), 0, 0, 1});
          }
          args.insert(args.end(), {out, gathered});
          if (second) args.emplace_back(Null{});
          RunOn(rank, second ? "aclnnAllGatherMatmulV2" : "aclnnAllGatherMatmul", args, one.graph);
          ExpectClose(out, ProductOf(rows, weight, bias), 1, one.Text());
          if (gives_rows) {
            EXPECT_TRUE(SameBits(gathered, rows)) << one.Text();
          }
        });
      }
    }
  }
}

TEST_F(GroupMatmul, EachRankGetsItsRowsOfTheSum) {
  for (const Case& one : Cases()) {
    Tensor sum = at::zeros({kRows, kColumns}, at::kDouble);
    for (uint32_t i = 0; i < one.ranks; ++i) {
      sum += ProductOf(ValuesOf(i, {kRows, kInner}, one.dtype, 1), one.Weight(i, kInner, kColumns),
                       one.Bias(i, kColumns));
    }
    for (const bool second : {false, true}) {
      OnRanks(one.ranks, [&](Rank& rank) {
        const std::string group = NameOf(rank.comm);
        const int64_t part = kRows / one.ranks;
        const Tensor out = at::full({part, kColumns}, -1, one.dtype);
        Args args = {ValuesOf(rank.rank, {kRows, kInner}, one.dtype, 1),
                     one.Weight(rank.rank, kInner, kColumns),
                     OrNull(one.Bias(rank.rank, kColumns))};
        if (second) {
          args.insert(args.end(),
                      {Null{}, Null{}, Null{}, 0, group.c_str(), "sum", 0, 1, 0, "aiv"});
        } else {
          args.insert(args.end(), {group.c_str(), "sum", 0, 1});
        }
        args.emplace_back(out);
        if (second) args.emplace_back(Null{});
        RunOn(rank, second ? "aclnnMatmulReduceScatterV2" : "aclnnMatmulReduceScatter", args,
              one.graph);
        ExpectClose(out, sum.narrow(0, rank.rank * part, part), one.ranks, one.Text());
      });
    }
  }
}

TEST_F(GroupMatmul, ASumIsAddedAndNormalised) {
  constexpr double kEpsilon = 1e-5;
  for (const Case& one : Cases()) {
    const Tensor residual = ValuesOf(0, {kRows, kColumns}, one.dtype, 6);
    const Tensor gamma = ValuesOf(0, {kColumns}, one.dtype, 7);
    for (const bool plugin : {false, true}) {
      Tensor sum = residual.to(at::kDouble);
      for (uint32_t i = 0; i < one.ranks; ++i) {
        sum +=
            ProductOf(ValuesOf(i, {kRows, kInner}, one.dtype, 1), one.Weight(i, kInner, kColumns),
                      plugin ? Tensor() : one.Bias(i, kColumns));
      }
      const Tensor norm =
          sum / (sum * sum).mean({1}, true).add(kEpsilon).sqrt() * gamma.to(at::kDouble);
      OnRanks(one.ranks, [&](Rank& rank) {
        const std::string group = NameOf(rank.comm);
        const Tensor x = ValuesOf(rank.rank, {kRows, kInner}, one.dtype, 1);
        const Tensor weight = one.Weight(rank.rank, kInner, kColumns);
        const Tensor added = at::full({kRows, kColumns}, -1, one.dtype);
        const Tensor normed = at::full({kRows, kColumns}, -1, one.dtype);
        if (plugin) {
          // The weight as a linear layer has it, or as a product takes it.
          const Tensor given = one.transposed ? weight.t() : weight;
          RunOn(rank, "aclnnMatmulAllreduceAddRmsnorm",
                {x, given, residual, gamma, group.c_str(), int64_t{one.ranks}, int64_t{rank.rank},
                 kEpsilon, one.transposed, true, normed, added},
                one.graph);
        } else {
          RunOn(rank, "aclnnMatmulAllReduceAddRmsNorm",
                {x, weight, OrNull(one.Bias(rank.rank, kColumns)), residual, gamma, kEpsilon,
                 group.c_str(), "sum", 0, 1, added, normed},
                one.graph);
        }
        ExpectClose(added, sum, one.ranks, one.Text());
        ExpectClose(normed, norm, one.ranks, one.Text());
      });
    }
  }
}

TEST_F(GroupMatmul, PartsOfAllRanksAreMultipliedSideBySide) {
  for (const Case& one : Cases()) {
    const int64_t part = kRows / one.ranks;
    for (const bool second : {false, true}) {
      for (const bool gives_parts : {true, false}) {
        OnRanks(one.ranks, [&](Rank& rank) {
          const std::string group = NameOf(rank.comm);
          std::vector<Tensor> parts;
          for (uint32_t i = 0; i < one.ranks; ++i) {
            parts.push_back(ValuesOf(i, {kRows, kInner}, one.dtype, 1)
                                .narrow(0, static_cast<int64_t>(rank.rank) * part, part));
          }
          const Tensor rows = at::cat(parts, 1);
          const Tensor weight = one.Weight(rank.rank, kInner * one.ranks, kColumns);
          const Tensor bias = one.Bias(rank.rank, kColumns);
          const Tensor out = at::full({part, kColumns}, -1, one.dtype);
          const Tensor came = at::full(rows.sizes(), -1, one.dtype);
          Args args = {ValuesOf(rank.rank, {kRows, kInner}, one.dtype, 1),
                       one.transposed ? weight.t() : weight, OrNull(bias)};
          if (gives_parts) {
            args.emplace_back(std::vector<int64_t>{-2, -1});
          } else {
            args.emplace_back(Null{});
          }
          args.emplace_back(group.c_str());
          if (second) args.emplace_back("ccu");
          args.insert(args.end(), {false, one.transposed, out});
          args.push_back(gives_parts ? Arg(came) : Arg(Null{}));
          RunOn(rank, second ? "aclnnAlltoAllMatmulV2" : "aclnnAlltoAllMatmul", args, one.graph);
          ExpectClose(out, ProductOf(rows, weight, bias), 1, one.Text());
          if (gives_parts) {
            EXPECT_TRUE(SameBits(came, rows)) << one.Text();
          }
        });
      }
    }
  }
}

TEST_F(GroupMatmul, EachRankGetsItsColumnsOfAllProducts) {
  for (const Case& one : Cases()) {
    const int64_t columns = 3, all_columns = columns * one.ranks;
    for (const bool second : {false, true}) {
      OnRanks(one.ranks, [&](Rank& rank) {
        const std::string group = NameOf(rank.comm);
        std::vector<Tensor> products;
        for (uint32_t i = 0; i < one.ranks; ++i) {
          products.push_back(ProductOf(ValuesOf(i, {kRows, kInner}, one.dtype, 1),
                                       one.Weight(i, kInner, all_columns), one.Bias(i, all_columns))
                                 .narrow(1, static_cast<int64_t>(rank.rank) * columns, columns));
        }
        const Tensor weight = one.Weight(rank.rank, kInner, all_columns);
        const Tensor out = at::full({kRows * one.ranks, columns}, -1, one.dtype);
        Args args = {ValuesOf(rank.rank, {kRows, kInner}, one.dtype, 1),
                     one.transposed ? weight.t() : weight, OrNull(one.Bias(rank.rank, all_columns)),
                     std::vector<int64_t>{-1, -2}, group.c_str()};
        if (second) args.emplace_back("ccu");
        args.insert(args.end(), {false, one.transposed, out});
        RunOn(rank, second ? "aclnnMatmulAlltoAllV2" : "aclnnMatmulAlltoAll", args, one.graph);
        ExpectClose(out, at::cat(products), 1, one.Text());
      });
    }
  }
}

TEST_F(GroupMatmul, ItHasTheBitsOfAProductAndACollective) {
  OnRanks(4, [](Rank& rank) {
    const std::string group = NameOf(rank.comm);
    const Tensor x = ValuesOf(rank.rank, {33, 65}, at::kHalf, 1);
    const Tensor weight = ValuesOf(rank.rank, {65, 17}, at::kHalf, 2);
    const Tensor fused = at::full({33, 17}, -1, at::kHalf),
                 apart = at::full({33, 17}, -1, at::kHalf);
    const auto product = Start("aclnnMm", {x, weight, apart, 0}, rank.stream);
    EXPECT_EQ(HcclAllReduce(apart.data_ptr(), apart.data_ptr(), apart.numel(), HCCL_DATA_TYPE_FP16,
                            HCCL_REDUCE_SUM, rank.comm, rank.stream),
              HCCL_SUCCESS);
    RunOn(rank, "aclnnMatmulAllReduce", {x, weight, Null{}, group.c_str(), "sum", 0, 1, fused},
          false);
    EXPECT_TRUE(SameBits(fused, apart));
  });
}

TEST_F(GroupMatmul, EmptyFactorsAndThreeDims) {
  OnRanks(2, [](Rank& rank) {
    const std::string group = NameOf(rank.comm);
    const auto sum = [&](at::IntArrayRef left, int64_t columns, at::IntArrayRef sizes) {
      const Tensor out = at::full(sizes, -1, at::kHalf);
      RunOn(rank, "aclnnMatmulAllReduce",
            {at::ones(left, at::kHalf), at::ones({left.back(), columns}, at::kHalf), Null{},
             group.c_str(), "sum", 0, 1, out},
            false);
      return out;
    };
    EXPECT_TRUE(SameBits(sum({3, 0}, 4, {3, 4}), at::zeros({3, 4}, at::kHalf)));
    EXPECT_EQ(sum({0, 3}, 4, {0, 4}).numel(), 0);
    EXPECT_TRUE(SameBits(sum({2, 3, 5}, 4, {2, 3, 4}), at::full({2, 3, 4}, 10, at::kHalf)));
  });
}

TEST_F(GroupMatmul, TwoGroupsInOneGraphMeetInAnyOrder) {
  std::vector<HcclComm> others(2);
  std::vector<int32_t> devices = {0, 1};
  aclInit(nullptr);  // this test may be the first one
  ASSERT_EQ(HcclCommInitAll(2, devices.data(), others.data()), HCCL_SUCCESS);
  OnRanks(2, [&](Rank& rank) {
    const std::string names[] = {NameOf(rank.comm), NameOf(others[rank.rank])};
    const Tensor x = at::full({4, 4}, static_cast<int64_t>(rank.rank) + 1, at::kHalf);
    const Tensor weight = at::eye(4, at::kHalf);
    const Tensor outs[] = {at::zeros({4, 4}, at::kHalf), at::zeros({4, 4}, at::kHalf)};
    aclrtStream second = nullptr;
    aclrtEvent forked = nullptr, joined = nullptr;
    ASSERT_OK(aclrtCreateStream(&second));
    ASSERT_OK(aclrtCreateEventExWithFlag(&forked, ACL_EVENT_SYNC));
    ASSERT_OK(aclrtCreateEventExWithFlag(&joined, ACL_EVENT_SYNC));
    aclmdlRI model = nullptr;
    ASSERT_OK(aclmdlRICaptureBegin(rank.stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    ASSERT_OK(aclrtRecordEvent(forked, rank.stream));
    ASSERT_OK(aclrtStreamWaitEvent(second, forked));
    // Rank 0 comes to the first group first, rank 1 to the second one.
    std::vector<std::unique_ptr<PackedCall>> calls;
    for (const uint32_t i : {rank.rank, 1 - rank.rank}) {
      calls.push_back(Start("aclnnMatmulAllReduce",
                            {x, weight, Null{}, names[i].c_str(), "sum", 0, 1, outs[i]},
                            i == rank.rank ? rank.stream : second));
    }
    ASSERT_OK(aclrtRecordEvent(joined, second));
    ASSERT_OK(aclrtStreamWaitEvent(rank.stream, joined));
    ASSERT_OK(aclmdlRICaptureEnd(rank.stream, &model));
    for (int i = 0; i < 5; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, rank.stream));
    EXPECT_OK(aclrtSynchronizeStreamWithTimeout(rank.stream, 60000));
    for (const Tensor& out : outs) EXPECT_TRUE(SameBits(out, at::full({4, 4}, 3, at::kHalf)));
    EXPECT_OK(aclmdlRIDestroy(model));
    EXPECT_OK(aclrtDestroyEvent(forked));
    EXPECT_OK(aclrtDestroyEvent(joined));
    EXPECT_OK(aclrtDestroyStream(second));
  });
  for (HcclComm comm : others) EXPECT_EQ(HcclCommDestroy(comm), HCCL_SUCCESS);
}

TEST_F(GroupMatmul, WhatDoesNotFitIsRefusedInTheFirstPhase) {
  const auto full = [](at::IntArrayRef sizes, at::ScalarType dtype = at::kHalf) {
    return at::ones(sizes, dtype);
  };
  OnRanks(2, [&](Rank& rank) {
    const std::string group = NameOf(rank.comm);
    const auto sum = [&](const Tensor& x, const Tensor& weight, const Arg& bias, const char* name,
                         const char* op, const Tensor& out) {
      return Refusal("aclnnMatmulAllReduce", {x, weight, bias, name, op, 0, 1, out});
    };
    const char* name = group.c_str();
    const Tensor x = full({4, 3}), weight = full({3, 2}), out = full({4, 2});
    EXPECT_EQ(
        sum(x, weight, Null{}, "nobody", "sum", out),
        "aclnnMatmulAllReduce: group \"nobody\" is no communicator of this process, which has \"" +
            group + "\".");
    EXPECT_EQ(sum(x, weight, Null{}, name, "max", out),
              "aclnnMatmulAllReduce: reduceOp is \"max\"; ranks only sum.");
    EXPECT_EQ(sum(x, full({2, 2}), Null{}, name, "sum", out),
              "aclnnMatmulAllReduce: shapes [4, 3] and [2, 2] do not multiply.");
    EXPECT_NE(sum(x, weight, Null{}, name, "sum", full({4, 3})).find("output has shape"),
              std::string::npos);
    EXPECT_NE(sum(x, weight, full({3}), name, "sum", out).find("bias has shape"),
              std::string::npos);
    EXPECT_NE(sum(x, full({3, 2}, at::kBFloat16), Null{}, name, "sum", out).find("x2 has dtype"),
              std::string::npos);
    EXPECT_NE(sum(full({4, 3}, at::kFloat), weight, Null{}, name, "sum", out).find("x1 has dtype"),
              std::string::npos);
    EXPECT_NE(Refusal("aclnnMatmulReduceScatter",
                      {full({3, 3}), weight, Null{}, name, "sum", 0, 1, full({1, 2})})
                  .find("3 rows, which 2 ranks do not share evenly"),
              std::string::npos);
    EXPECT_NE(Refusal("aclnnAllGatherMatmul",
                      {x, weight, Null{}, name, 1, 0, 1, full({8, 2}), full({8, 3})})
                  .find("gatherIndex must be 0"),
              std::string::npos);
    EXPECT_NE(Refusal("aclnnMatmulAllreduceAddRmsnorm",
                      {x, weight, out, full({2}), name, 4, int64_t{rank.rank}, 1e-5, false, true,
                       full({4, 2}), full({4, 2})})
                  .find("tpRankSize is 4, and the group has 2 ranks"),
              std::string::npos);
    const auto parts = [&](const Tensor& left, const Tensor& right, const Arg& axes, bool turned,
                           const Tensor& product) {
      return Refusal("aclnnAlltoAllMatmul",
                     {left, right, Null{}, axes, name, turned, false, product, Null{}});
    };
    EXPECT_NE(parts(full({4, 3}), weight, Null{}, false, out)
                  .find("shapes [4, 3] and [3, 2] do not multiply for 2 ranks"),
              std::string::npos);
    EXPECT_NE(parts(full({3, 3}), full({6, 2}), Null{}, false, out)
                  .find("x1 has 3 rows, which 2 ranks do not share evenly"),
              std::string::npos);
    EXPECT_NE(parts(full({4, 3}), full({6, 2}), std::vector<int64_t>{-1, -2}, false, out)
                  .find("alltoAllAxesOptional must be [-2, -1], or absent"),
              std::string::npos);
    EXPECT_NE(
        parts(full({4, 3}), full({6, 2}), Null{}, true, out).find("transposeX1 must be false"),
        std::string::npos);
    EXPECT_NE(Refusal("aclnnMatmulAlltoAll",
                      {x, full({3, 3}), Null{}, Null{}, name, false, false, full({8, 1})})
                  .find("x2 has 3 columns, which 2 ranks do not share evenly"),
              std::string::npos);
    // The communicator goes on.
    const Tensor good = full({4, 2});
    RunOn(rank, "aclnnMatmulAllReduce", {x, weight, Null{}, name, "sum", 0, 1, good}, false);
    EXPECT_TRUE(SameBits(good, at::full({4, 2}, 6, at::kHalf)));
  });
}

TEST_F(GroupMatmul, ABarrierEndsWhenTheLastRankHasCome) {
  for (const bool second : {false, true}) {
    for (const bool graph : {false, true}) {
      std::atomic<int> come = 0;
      OnRanks(4, [&](Rank& rank) {
        const std::string group = NameOf(rank.comm);
        const Tensor x = at::full({3}, 7, at::kHalf);
        Args args = {x};
        if (second) args.insert(args.end(), {Null{}, Null{}});
        args.insert(args.end(), {group.c_str(), 4});
        const char* name = second ? "aclnnDistributeBarrierV2" : "aclnnDistributeBarrier";
        std::this_thread::sleep_for(std::chrono::milliseconds(5 * rank.rank));
        ++come;
        RunOn(rank, name, args, graph);
        EXPECT_EQ(come, 4);
        EXPECT_TRUE(SameBits(x, at::full({3}, 7, at::kHalf)));
        args[second ? 4 : 2] = 3;
        EXPECT_NE(Refusal(name, args).find("worldSize is 3, and the group has 4 ranks"),
                  std::string::npos);
      });
    }
  }
}

TEST_F(GroupMatmul, RanksThatDisagreeAreToldSo) {
  OnRanks(2, [](Rank& rank) {
    const std::string group = NameOf(rank.comm);
    const int64_t rows = rank.rank == 0 ? 4 : 6;
    const auto call = Start("aclnnMatmulAllReduce",
                            {at::ones({rows, 3}, at::kHalf), at::ones({3, 2}, at::kHalf), Null{},
                             group.c_str(), "sum", 0, 1, at::ones({rows, 2}, at::kHalf)},
                            rank.stream);
    EXPECT_NE(aclrtSynchronizeStream(rank.stream), ACL_SUCCESS);
    const std::string told = TakeMessage();
    for (const char* words : {"EI0005", "HcclAllReduce(count 8, fp16, sum), not captured on rank 0",
                              "HcclAllReduce(count 12, fp16, sum), not captured on rank 1"}) {
      EXPECT_NE(told.find(words), std::string::npos) << told;
    }
  });
}

}  // namespace
}  // namespace acltape::opapi
