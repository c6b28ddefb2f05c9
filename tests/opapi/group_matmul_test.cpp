// Products that communicate with the ranks of a group, which are threads of this process. Expected
// values are sums of doubles.
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/hccl/ranks.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using hccl::OnRanks;
using hccl::Rank;

class GroupMatmul : public testing::Test {
 protected:
  static void SetUpTestSuite() { hccl::ShowDevices("8"); }
};

std::string NameOf(HcclComm comm) {
  char name[COMM_NAME_MAX_LENGTH] = {};
  EXPECT_EQ(HcclGetCommName(comm, name), HCCL_SUCCESS);
  return name;
}

// Values that a rank has; any rank can tell those of another one.
Tensor ValuesOf(uint32_t rank, at::IntArrayRef sizes, at::ScalarType dtype, int salt) {
  const int64_t count = c10::multiply_integers(sizes);
  Tensor values = at::empty({count}, at::kDouble);
  auto* out = values.data_ptr<double>();
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<double>((i * 37 + rank * 11 + salt * 5) % 23 - 11) / 8;
  }
  return values.reshape(sizes).to(dtype);
}

// The product of two matrices, element by element.
Tensor ProductOf(const Tensor& left, const Tensor& right, const Tensor& bias) {
  const Tensor a = left.to(at::kDouble), b = right.to(at::kDouble);
  const int64_t inner = a.size(1);
  Tensor product = at::zeros({a.size(0), b.size(1)}, at::kDouble);
  auto out = product.accessor<double, 2>();
  const auto x = a.accessor<double, 2>(), y = b.accessor<double, 2>();
  for (int64_t i = 0; i < a.size(0); ++i) {
    for (int64_t j = 0; j < b.size(1); ++j) {
      double sum = bias.defined() ? bias[j].item<double>() : 0;
      for (int64_t k = 0; k < inner; ++k) sum += x[i][k] * y[k][j];
      out[i][j] = sum;
    }
  }
  return product;
}

// The error of a rounding to the dtype for each rank and the result.
void ExpectClose(const Tensor& actual, const Tensor& expected, uint32_t ranks,
                 const std::string& what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  if (actual.numel() == 0) return;
  const double unit = actual.scalar_type() == at::kBFloat16 ? 1.0 / 128 : 1.0 / 1024;
  const Tensor error = (actual.to(at::kDouble) - expected).abs();
  const Tensor allowed = (expected.abs() + 8) * (unit * (ranks + 1));
  EXPECT_TRUE((error <= allowed).all().item<bool>())
      << what << ": error " << error.max().item<double>() << "\n"
      << actual << "\n"
      << expected;
}

// Both phases on the rank's stream. The call lives until the stream has run it.
std::unique_ptr<PackedCall> Start(const char* name, const Args& args, aclrtStream stream) {
  auto call = std::make_unique<PackedCall>(name, args);
  EXPECT_EQ(call->Prepare(), 0) << TakeMessage();
  EXPECT_EQ(call->Launch(stream), 0) << TakeMessage();
  return call;
}

// Runs the operator as it is called, or as a graph that runs three times.
void RunOn(const Rank& rank, const char* name, const Args& args, bool graph) {
  std::unique_ptr<PackedCall> call;
  aclmdlRI model = nullptr;
  if (graph) {
    ASSERT_OK(aclmdlRICaptureBegin(rank.stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    call = Start(name, args, rank.stream);
    ASSERT_OK(aclmdlRICaptureEnd(rank.stream, &model));
    for (int i = 0; i < 3; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, rank.stream));
  } else {
    call = Start(name, args, rank.stream);
  }
  EXPECT_OK(aclrtSynchronizeStream(rank.stream));
  if (model != nullptr) {
    EXPECT_OK(aclmdlRIDestroy(model));
  }
}

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

Arg OrNull(const Tensor& tensor) { return tensor.defined() ? Arg(tensor) : Arg(Null{}); }

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

std::string Refusal(const char* name, const Args& args) {
  PackedCall call(name, args);
  EXPECT_EQ(call.Prepare(), kReject);
  return TakeMessage();
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
    // The communicator goes on.
    const Tensor good = full({4, 2});
    RunOn(rank, "aclnnMatmulAllReduce", {x, weight, Null{}, name, "sum", 0, 1, good}, false);
    EXPECT_TRUE(SameBits(good, at::full({4, 2}, 6, at::kHalf)));
  });
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
