// Sums over ranks of products of quantised matrices. Expected values are sums of doubles.
#include <string>
#include <vector>

#include "tests/opapi/group_calls.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using hccl::OnRanks;
using hccl::Rank;

class GroupQuantizedMatmul : public testing::Test {
 protected:
  static void SetUpTestSuite() { hccl::ShowDevices("8"); }
};

constexpr int64_t kRows = 4, kInner = 6, kColumns = 5;

struct Case {
  at::ScalarType dtype = at::kHalf;
  int64_t ranks = 2;
  int version = 1;
  bool per_column = false, by_rows = false, adds = false, graph = false, batch = false;

  std::string Text() const {
    return std::string(at::toString(dtype)) + ", " + std::to_string(ranks) + " ranks, version " +
           std::to_string(version) + (per_column ? ", per column" : "") +
           (by_rows ? ", by rows" : "") + (adds ? ", adds" : "") + (graph ? ", graph" : "") +
           (batch ? ", three dims" : "");
  }
  std::vector<int64_t> Sizes(int64_t last) const {
    return batch ? std::vector<int64_t>{2, kRows / 2, last} : std::vector<int64_t>{kRows, last};
  }
};

std::vector<Case> Cases(int versions) {
  std::vector<Case> cases;
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    for (const int64_t ranks : {1, 2, 4}) {
      for (int version = 1; version <= versions; ++version) {
        for (const int bits : {0, 1, 3, 7, 15, 16, 27}) {
          cases.push_back({dtype, ranks, version, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0,
                           (bits & 8) != 0, (bits & 16) != 0});
        }
      }
    }
  }
  return cases;
}

Tensor Integers(int64_t rank, at::IntArrayRef sizes, int salt) {
  return (ValuesOf(static_cast<uint32_t>(rank), sizes, at::kDouble, salt) * 8).to(at::kChar);
}

// Factors that a rank has for each column, or for all.
Tensor Factors(int64_t rank, int64_t count, at::ScalarType dtype, int salt) {
  return ((ValuesOf(static_cast<uint32_t>(rank), {count}, at::kDouble, salt) + 2) / 16).to(dtype);
}

// As the device takes factors for float16: the upper bits of a float, and a mark.
Tensor AsParameters(const Tensor& factors) {
  const Tensor bits = factors.to(at::kFloat).contiguous().view(at::kInt).to(at::kLong);
  return bits.bitwise_and(at::Scalar(int64_t{0xFFFFE000})).bitwise_or(int64_t{1} << 46);
}

TEST_F(GroupQuantizedMatmul, ProductsOfIntegersAreScaledAndSummed) {
  for (const Case& one : Cases(5)) {
    const bool by_rows = one.by_rows && one.version > 1;
    const bool parameters = one.dtype == at::kHalf && !by_rows;
    struct Own {
      Tensor x1, x2, bias, scale, row_scale, x3, product;
    };
    const auto own = [&](int64_t rank) {
      Own of;
      of.x1 = Integers(rank, one.Sizes(kInner), 1);
      of.x2 = Integers(rank, {kInner, kColumns}, 2);
      of.bias = one.adds ? Integers(rank, {kColumns}, 3).to(at::kInt) : Tensor();
      of.scale = Factors(rank, one.per_column ? kColumns : 1,
                         one.dtype == at::kHalf ? at::kFloat : at::kBFloat16, 4);
      of.row_scale = by_rows ? Factors(rank, kRows, at::kFloat, 5) : Tensor();
      of.x3 = one.adds ? ValuesOf(static_cast<uint32_t>(rank), one.Sizes(kColumns), one.dtype, 6)
                       : Tensor();
      Tensor product = ProductOf(of.x1.view({kRows, kInner}), of.x2,
                                 one.adds ? of.bias.to(at::kDouble) : Tensor()) *
                       of.scale.to(at::kDouble);
      if (by_rows) product = product * of.row_scale.to(at::kDouble).unsqueeze(1);
      product = product.view(one.Sizes(kColumns));
      of.product = one.adds ? product + of.x3.to(at::kDouble) : product;
      return of;
    };
    Tensor expected = at::zeros(one.Sizes(kColumns), at::kDouble);
    for (int64_t rank = 0; rank < one.ranks; ++rank) expected += own(rank).product;
    OnRanks(static_cast<uint32_t>(one.ranks), [&](Rank& rank) {
      const std::string group = NameOf(rank.comm);
      const Own of = own(rank.rank);
      const Tensor out = at::full(one.Sizes(kColumns), -1, one.dtype);
      const Tensor scale = parameters ? AsParameters(of.scale) : of.scale;
      Args args = {of.x1, of.x2, OrNull(of.bias), OrNull(of.x3)};
      if (one.version >= 4) args.push_back(OrNull(of.row_scale));
      args.emplace_back(scale);
      if (one.version == 2 || one.version == 3) args.push_back(OrNull(of.row_scale));
      if (one.version >= 3) args.insert(args.end(), {Null{}, Null{}});
      args.insert(args.end(), {group.c_str(), "sum"});
      if (one.version == 5) args.emplace_back("ai_cpu");
      args.insert(args.end(), {0, 1});
      if (one.version >= 4) args.insert(args.end(), {0, 0});
      args.emplace_back(out);
      const std::string name = std::string("aclnnQuantMatmulAllReduce") +
                               (one.version == 1 ? "" : "V" + std::to_string(one.version));
      RunOn(rank, name.c_str(), args, one.graph);
      ExpectClose(out, expected, static_cast<uint32_t>(one.ranks), one.Text());
    });
  }
}

TEST_F(GroupQuantizedMatmul, AFactorOfIntegersIsWidenedBeforeTheProduct) {
  for (const Case& one : Cases(2)) {
    // Groups of two rows, one factor for each column, or one for all.
    const int64_t group_size = one.by_rows ? 2 : 0;
    const auto scales = [&](int64_t rank, int salt) {
      if (!one.by_rows) return Factors(rank, one.per_column ? kColumns : 1, one.dtype, salt);
      return Factors(rank, kInner / 2 * kColumns, one.dtype, salt).view({kInner / 2, kColumns});
    };
    const auto spread = [&](const Tensor& values) {
      const Tensor wide = values.to(at::kDouble);
      return one.by_rows ? wide.repeat_interleave(2, 0) : wide;
    };
    Tensor expected = at::zeros(one.Sizes(kColumns), at::kDouble);
    for (int64_t rank = 0; rank < one.ranks; ++rank) {
      const auto number = static_cast<uint32_t>(rank);
      Tensor wide = Integers(rank, {kInner, kColumns}, 2).to(at::kDouble);
      const auto rounded = [&](const Tensor& values) {
        return values.to(one.dtype).to(at::kDouble);
      };
      if (one.adds) wide = rounded(wide + spread(scales(rank, 7)));
      wide = rounded(wide * spread(scales(rank, 4)));
      const Tensor x1 = ValuesOf(number, {kRows, kInner}, one.dtype, 1);
      Tensor product =
          ProductOf(x1, wide, one.adds ? ValuesOf(number, {kColumns}, one.dtype, 3) : Tensor())
              .view(one.Sizes(kColumns));
      if (one.adds) {
        product = product + ValuesOf(number, one.Sizes(kColumns), one.dtype, 6).to(at::kDouble);
      }
      expected += product;
    }
    OnRanks(static_cast<uint32_t>(one.ranks), [&](Rank& rank) {
      const std::string group = NameOf(rank.comm);
      const Tensor out = at::full(one.Sizes(kColumns), -1, one.dtype);
      const auto given = [&](const Tensor& tensor) { return one.adds ? Arg(tensor) : Arg(Null{}); };
      Args args = {ValuesOf(rank.rank, {kRows, kInner}, one.dtype, 1).view(one.Sizes(kInner)),
                   Integers(rank.rank, {kInner, kColumns}, 2),
                   given(ValuesOf(rank.rank, {kColumns}, one.dtype, 3)),
                   scales(rank.rank, 4),
                   given(scales(rank.rank, 7)),
                   given(ValuesOf(rank.rank, one.Sizes(kColumns), one.dtype, 6)),
                   group.c_str(),
                   "sum"};
      if (one.version == 2) args.emplace_back("ai_cpu");
      args.insert(args.end(), {0, 1, group_size, out});
      RunOn(rank,
            one.version == 2 ? "aclnnWeightQuantMatmulAllReduceV2"
                             : "aclnnWeightQuantMatmulAllReduce",
            args, one.graph);
      ExpectClose(out, expected, static_cast<uint32_t>(one.ranks), one.Text());
    });
  }
}

// (x1, x2, bias, x1Scale, x2Scale, commScale, x1Offset, x2Offset) and the group with what is asked.
Args PartsCall(const Args& factors, bool axes_first, bool second, const Arg& axes,
               const std::string& group, int64_t mode, bool in) {
  Args args = factors;
  args.insert(args.end(), {Null{}, Null{}, Null{}});
  if (axes_first) args.push_back(axes);
  args.emplace_back(group.c_str());
  if (second) args.emplace_back("aiv");
  if (!axes_first) args.push_back(axes);
  args.insert(args.end(), {mode, 2, 0, -1});
  if (in) args.emplace_back(2);  // x1QuantDtype
  args.insert(args.end(), {0, false, false});
  return args;
}

TEST_F(GroupQuantizedMatmul, EachRankGetsItsColumnsOfAllProductsOfIntegers) {
  for (const Case& one : Cases(2)) {
    const int64_t columns = 3, all_columns = columns * one.ranks;
    const auto product = [&](int64_t rank) {
      const Tensor scaled = ProductOf(Integers(rank, {kRows, kInner}, 1),
                                      Integers(rank, {kInner, all_columns}, 2), {}) *
                            Factors(rank, kRows, at::kFloat, 5).to(at::kDouble).unsqueeze(1) *
                            Factors(rank, all_columns, at::kFloat, 4).to(at::kDouble);
      if (!one.adds) return scaled;
      return scaled + ValuesOf(static_cast<uint32_t>(rank), {all_columns}, one.dtype, 3);
    };
    OnRanks(static_cast<uint32_t>(one.ranks), [&](Rank& rank) {
      const std::string group = NameOf(rank.comm);
      const Tensor out = at::full({kRows * one.ranks, columns}, -1, one.dtype);
      Args args = PartsCall(
          {Integers(rank.rank, {kRows, kInner}, 1), Integers(rank.rank, {kInner, all_columns}, 2),
           one.adds ? Arg(ValuesOf(rank.rank, {all_columns}, one.dtype, 3)) : Arg(Null{}),
           Factors(rank.rank, kRows, at::kFloat, 5),
           Factors(rank.rank, all_columns, at::kFloat, 4)},
          true, one.version == 2, std::vector<int64_t>{-1, -2}, group, 3, false);
      args.emplace_back(out);
      RunOn(rank, one.version == 2 ? "aclnnQuantMatmulAlltoAllV2" : "aclnnQuantMatmulAlltoAll",
            args, one.graph);
      std::vector<Tensor> expected;
      for (int64_t from = 0; from < one.ranks; ++from) {
        expected.push_back(product(from).narrow(1, rank.rank * columns, columns));
      }
      ExpectClose(out, at::cat(expected), 1, one.Text());
    });
  }
}

TEST_F(GroupQuantizedMatmul, PartsOfAllRanksBecomeIntegersAndAreMultiplied) {
  for (const Case& one : Cases(2)) {
    const int64_t part = kRows / one.ranks, inner = kInner * one.ranks;
    OnRanks(static_cast<uint32_t>(one.ranks), [&](Rank& rank) {
      const std::string group = NameOf(rank.comm);
      std::vector<Tensor> parts;
      for (uint32_t from = 0; from < one.ranks; ++from) {
        parts.push_back(
            ValuesOf(from, {kRows, kInner}, one.dtype, 1).narrow(0, rank.rank * part, part));
      }
      const Tensor rows = at::cat(parts, 1), x2 = Integers(rank.rank, {inner, kColumns}, 2);
      const Tensor smooth = Factors(0, inner, one.dtype, 6) + 1;
      const Tensor scale = Factors(rank.rank, kColumns, at::kFloat, 4);
      const Tensor bias = ValuesOf(rank.rank, {kColumns}, one.dtype, 3);
      const Tensor out = at::full({part, kColumns}, -1, one.dtype);
      const Tensor came = at::full(rows.sizes(), -1, one.dtype);
      Args args = PartsCall(
          {ValuesOf(rank.rank, {kRows, kInner}, one.dtype, 1), x2,
           one.adds ? Arg(bias) : Arg(Null{}), one.by_rows ? Arg(smooth) : Arg(Null{}), scale},
          false, one.version == 2, Null{}, group, 7, true);
      args.emplace_back(out);
      args.push_back(one.per_column ? Arg(came) : Arg(Null{}));
      RunOn(rank, one.version == 2 ? "aclnnAlltoAllQuantMatmulV2" : "aclnnAlltoAllQuantMatmul",
            args, one.graph);
      // Whole numbers are found in float32, as a quantisation alone finds them.
      Tensor left = rows.to(at::kFloat);
      if (one.by_rows) left = left * smooth.to(at::kFloat);
      const Tensor step = std::get<0>(left.abs().max(1, true)) / 127;
      Tensor expected = ProductOf((left / step).round(), x2, {}) * step * scale.to(at::kDouble);
      if (one.adds) expected = expected + bias.to(at::kDouble);
      ExpectClose(out, expected, 1, one.Text());
      if (one.per_column) {
        EXPECT_TRUE(SameBits(came, rows)) << one.Text();
      }
    });
  }
}

TEST_F(GroupQuantizedMatmul, WhatDoesNotFitIsRefusedInTheFirstPhase) {
  OnRanks(2, [](Rank& rank) {
    const std::string group = NameOf(rank.comm);
    const Tensor x1 = Integers(0, {kRows, kInner}, 1), x2 = Integers(0, {kInner, kColumns}, 2);
    const Tensor out = at::zeros({kRows, kColumns}, at::kHalf);
    const Args good = {x1,     x2,     Null{}, Null{},        Factors(0, 1, at::kFloat, 4),
                       Null{}, Null{}, Null{}, group.c_str(), "sum",
                       0,      1,      out};
    const auto refused = [&](int i, const Arg& instead, const std::string& words) {
      Args args = good;
      args[i] = instead;
      const std::string message = Refusal("aclnnQuantMatmulAllReduceV3", args);
      EXPECT_NE(message.find(words), std::string::npos) << message;
    };
    refused(0, x1.to(at::kHalf), "x1 is not of dtype int8");
    refused(1, Integers(0, {kColumns, kInner}, 2), "shapes [4, 6] and [5, 6] do not multiply");
    refused(2, at::zeros({kColumns}, at::kHalf), "biasOptional has dtype Half, expected Int");
    refused(3, at::zeros({1, kColumns}, at::kHalf), "x3Optional has shape [1, 5]");
    refused(4, Factors(0, 3, at::kFloat, 4), "dequantScale has shape [3]");
    refused(5, Factors(0, 3, at::kFloat, 4), "pertokenScaleOptional has shape [3]");
    refused(6, Factors(0, kColumns, at::kHalf, 4),
            "commQuantScale1Optional is given, which the soft device lacks");
    refused(8, "nobody", "group \"nobody\" is no communicator of this process");
    refused(9, "max", "reduceOp is \"max\"; ranks only sum");
    refused(12, at::zeros({kRows, kColumns}, at::kFloat), "output has dtype Float");
    const Args parts = {x1, x2, Null{}, Factors(0, kRows, at::kFloat, 5),
                        Factors(0, kColumns, at::kFloat, 4)};
    const auto refuses = [&](int64_t mode, const Arg& axes, const std::string& words) {
      Args args = PartsCall(parts, true, false, axes, group, mode, false);
      args.emplace_back(at::zeros({2 * kRows, kColumns / 2}, at::kHalf));
      const std::string message = Refusal("aclnnQuantMatmulAlltoAll", args);
      EXPECT_NE(message.find(words), std::string::npos) << message;
    };
    refuses(6, Null{}, "x1QuantMode is 6, and the soft device knows 3 alone");
    refuses(3, Null{}, "x2 has 5 columns, which 2 ranks do not share evenly");
    refuses(3, std::vector<int64_t>{-2, -1}, "alltoAllAxesOptional must be [-1, -2], or absent");
  });
}

}  // namespace
}  // namespace acltape::opapi
