// Tokens that go to the experts of other ranks, and their results that come back. What is expected
// is worked out token by token from the choices of all ranks.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/opapi/group_calls.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using hccl::OnRanks;
using hccl::Rank;

class GroupExperts : public testing::Test {
 protected:
  static void SetUpTestSuite() { hccl::ShowDevices("8"); }
};

constexpr int64_t kWidth = 6, kChoices = 2, kEach = 3;
enum class Mask { kNone, kTokens, kChoices };

// A layer of experts on the ranks of a group, and the tokens of all ranks.
struct Layer {
  int64_t ranks = 2;
  at::ScalarType dtype = at::kHalf;
  int version = 2;
  Mask mask = Mask::kNone;
  bool quantises = false, smooth = false, weighs = false, sums = false, graph = false;
  int64_t shared = 0, shared_ranks = 0;
  int64_t zeros = 0, copies = 0, constants = 0;
  int round = 0;  // another one has other choices

  std::string Text() const {
    return std::string(at::toString(dtype)) + ", " + std::to_string(ranks) + " ranks, version " +
           std::to_string(version) + ", mask " + std::to_string(static_cast<int>(mask)) +
           (quantises ? ", quantises" : "") + (smooth ? ", smooth" : "") +
           (weighs ? ", weighs" : "") + (sums ? ", sums" : "") + (graph ? ", graph" : "") +
           ", shared " + std::to_string(shared) + " on " + std::to_string(shared_ranks) +
           ", round " + std::to_string(round);
  }
  int64_t experts() const { return kEach * (ranks - shared_ranks); }
  int64_t Here(int64_t rank) const { return rank < shared_ranks ? 1 : kEach; }
  // Ranks have different numbers of tokens, unless some take no part.
  int64_t Tokens(int64_t rank) const { return mask == Mask::kNone ? 5 - rank : 5; }
  int64_t all_tokens() const { return 5 * ranks; }
  // The greatest number of tokens that may come.
  int64_t Room(int64_t rank) const {
    if (rank >= shared_ranks) return all_tokens() * kChoices;
    const int64_t group = shared_ranks / shared;
    return 5 * ((ranks + group - 1) / group);
  }
  Tensor X(int64_t rank) const {
    return ValuesOf(static_cast<uint32_t>(rank), {Tokens(rank), kWidth}, dtype, 1 + round);
  }
  // The last expert gets no token. Choices of a token differ.
  int64_t Id(int64_t rank, int64_t token, int64_t choice) const {
    const int64_t used = experts() - 1 + zeros + copies + constants;
    const int64_t id = (token * 5 + rank * 3 + round * 2 + choice) % used;
    return id < experts() - 1 ? id : id + 1;
  }
  Tensor Ids(int64_t rank) const {
    const Tensor ids = at::empty({Tokens(rank), kChoices}, at::kInt);
    for (int64_t i = 0; i < ids.size(0); ++i) {
      for (int64_t k = 0; k < kChoices; ++k) ids[i][k] = static_cast<int32_t>(Id(rank, i, k));
    }
    return ids;
  }
  bool Counts(int64_t rank, int64_t token, int64_t choice) const {
    if (mask == Mask::kTokens) return token < 3 - rank;
    return mask == Mask::kNone || (token + choice + rank) % 3 != 0;
  }
  bool TakesPart(int64_t rank, int64_t token) const {
    return Counts(rank, token, 0) || Counts(rank, token, 1);
  }
  Tensor MaskOf(int64_t rank) const {
    if (mask == Mask::kNone) return {};
    const Tensor all = at::zeros({Tokens(rank), kChoices}, at::kBool);
    for (int64_t i = 0; i < all.size(0); ++i) {
      for (int64_t k = 0; k < kChoices; ++k) all[i][k] = Counts(rank, i, k);
    }
    return mask == Mask::kTokens ? all.select(1, 0).contiguous() : all;
  }
  Tensor Weights(int64_t rank) const {
    return ValuesOf(static_cast<uint32_t>(rank), {Tokens(rank), kChoices}, at::kFloat, 3);
  }
  Tensor Smooth() const { return ValuesOf(0, {shared + experts(), kWidth}, at::kFloat, 5) + 2; }
};

// A token that a rank got: whose it is, and the expert there.
struct Came {
  int64_t rank, token, choice, expert;
};

// The place of the routed expert with this id.
int64_t RankOf(const Layer& layer, int64_t id) { return layer.shared_ranks + id / kEach; }

std::vector<Came> ExpectedAt(const Layer& layer, int64_t here) {
  std::vector<Came> came;
  for (int64_t expert = 0; expert < layer.Here(here); ++expert) {
    for (int64_t rank = 0; rank < layer.ranks; ++rank) {
      for (int64_t token = 0; token < layer.Tokens(rank); ++token) {
        if (here < layer.shared_ranks) {
          const int64_t group = layer.shared_ranks / layer.shared;
          if (layer.TakesPart(rank, token) && rank % group == here % group) {
            came.push_back({rank, token, kChoices + here / group, expert});
          }
          continue;
        }
        for (int64_t choice = 0; choice < kChoices; ++choice) {
          const int64_t id = layer.Id(rank, token, choice);
          if (id < layer.experts() && layer.Counts(rank, token, choice) &&
              RankOf(layer, id) == here && id % kEach == expert) {
            came.push_back({rank, token, choice, expert});
          }
        }
      }
    }
  }
  return came;
}

// The row among the smooth factors, and what each expert multiplies tokens with.
int64_t FactorRow(const Layer& layer, const Came& one) {
  if (one.choice >= kChoices) return one.choice - kChoices;
  return layer.shared + layer.Id(one.rank, one.token, one.choice);
}
double Strength(const Layer& layer, const Came& one) {
  return static_cast<double>(FactorRow(layer, one) % 7 + 1) / 4;
}

struct Outputs {
  Tensor tokens, scales, info, token_counts, recv_counts, tp_counts, weights;

  Outputs(const Layer& layer, int64_t rank) {
    const int64_t room = layer.Room(rank);
    tokens = at::full({room, kWidth}, 7, layer.quantises ? at::kChar : layer.dtype);
    scales = at::full({room}, 7, at::kFloat);
    info = at::full({layer.version == 1 ? layer.Tokens(rank) * kChoices : room * 128}, 7, at::kInt);
    token_counts = at::full({layer.Here(rank)}, 7, at::kLong);
    recv_counts = at::full({layer.ranks * layer.Here(rank) + 2}, 7, at::kInt);
    tp_counts = at::full({1}, 7, at::kInt);
    weights = at::full({room}, 7, at::kFloat);
  }
};

void Append(Args* args, const Args& more) { args->insert(args->end(), more.begin(), more.end()); }

// (groupEp, ..., sharedExpertRankNum)
Args Places(const Layer& layer, int64_t rank, const std::string& group) {
  return {group.c_str(), layer.ranks,       rank, layer.experts(), "", 0, 0, 0,
          layer.shared,  layer.shared_ranks};
}

const char* DispatchName(const Layer& layer) {
  constexpr const char* kNames[] = {"aclnnMoeDistributeDispatch", "aclnnMoeDistributeDispatchV2",
                                    "aclnnMoeDistributeDispatchV3", "aclnnMoeDistributeDispatchV4"};
  return kNames[layer.version - 1];
}
const char* CombineName(const Layer& layer) {
  constexpr const char* kNames[] = {"aclnnMoeDistributeCombine", "aclnnMoeDistributeCombineV2",
                                    "aclnnMoeDistributeCombineV3", "aclnnMoeDistributeCombineV4"};
  return kNames[layer.version - 1];
}

struct Inputs {
  Tensor x, ids, mask, weights;
  Inputs(const Layer& layer, int64_t rank)
      : x(layer.X(rank)),
        ids(layer.Ids(rank)),
        mask(layer.MaskOf(rank)),
        weights(layer.Weights(rank)) {}
};

Args DispatchArgs(const Layer& layer, int64_t rank, const std::string& group, const Inputs& in,
                  const Outputs& out) {
  Args args = {in.x, in.ids, layer.smooth ? Arg(layer.Smooth()) : Arg(Null{}), OrNull(in.mask),
               layer.weighs ? Arg(in.weights) : Arg(Null{})};
  if (layer.version >= 3) args.emplace_back(Null{});  // elasticInfo
  if (layer.version >= 4) args.emplace_back(Null{});  // performanceInfo
  Append(&args, Places(layer, rank, group));
  Append(&args, {layer.quantises ? 2 : 0, layer.all_tokens(), layer.sums ? 0 : 1});
  if (layer.version >= 2) args.emplace_back("fullmesh");
  if (layer.version >= 3) Append(&args, {layer.zeros, layer.copies, layer.constants});
  Append(&args, {out.tokens, layer.quantises ? Arg(out.scales) : Arg(at::empty({0}, at::kFloat)),
                 out.info, out.token_counts, out.recv_counts, out.tp_counts,
                 layer.weighs ? Arg(out.weights) : Arg(at::empty({0}, at::kFloat))});
  return args;
}

// Data of the experts without a rank, and the result of an expert that each rank has.
struct Extras {
  Tensor original, alpha1, alpha2, constant, shared_x;
};

Args CombineArgs(const Layer& layer, int64_t rank, const std::string& group, const Inputs& in,
                 const Outputs& out, const Tensor& rows, const Extras& extras, const Tensor& to) {
  Args args = {rows,   in.ids, out.info, out.recv_counts, in.weights, Null{}, OrNull(in.mask),
               Null{}, Null{}, Null{},   Null{}};
  if (layer.version >= 2) args.push_back(OrNull(extras.shared_x));
  if (layer.version >= 3) {
    Append(&args, {Null{}, OrNull(extras.original), OrNull(extras.alpha1), OrNull(extras.alpha2),
                   OrNull(extras.constant)});
  }
  if (layer.version >= 4) args.emplace_back(Null{});  // performanceInfo
  Append(&args, Places(layer, rank, group));
  Append(&args, {layer.all_tokens(), 0, 0, 0});
  if (layer.version >= 2) args.emplace_back("");
  if (layer.version >= 3) Append(&args, {layer.zeros, layer.copies, layer.constants});
  args.emplace_back(to);
  return args;
}

void ExpectTokens(const Layer& layer, int64_t rank, const Outputs& out) {
  const std::vector<Came> came = ExpectedAt(layer, rank);
  const auto count = static_cast<int64_t>(came.size());
  for (int64_t n = 0; n < count; ++n) {
    const Tensor token = layer.X(came[n].rank)[came[n].token];
    if (!layer.quantises) {
      EXPECT_TRUE(SameBits(out.tokens[n], token)) << layer.Text() << ", row " << n;
      continue;
    }
    Tensor values = token.to(at::kDouble);
    if (layer.smooth) values = values * layer.Smooth()[FactorRow(layer, came[n])].to(at::kDouble);
    const double scale = values.abs().max().item<double>() / 127;
    EXPECT_NEAR(out.scales[n].item<double>(), scale, scale * 1e-6) << layer.Text();
    for (int64_t i = 0; i < kWidth; ++i) {
      EXPECT_NEAR(out.tokens[n][i].item<double>(), values[i].item<double>() / scale, 0.501)
          << layer.Text();
    }
  }
  const auto rest_is_zero = [&](const Tensor& all, int64_t from, const char* what) {
    EXPECT_TRUE(all.narrow(0, from, all.size(0) - from).eq(0).all().item<bool>())
        << layer.Text() << ", " << what << "\n"
        << all;
  };
  rest_is_zero(out.tokens, count, "expandX");
  if (layer.quantises) rest_is_zero(out.scales, count, "dynamicScales");
  if (layer.weighs) {
    for (int64_t n = 0; n < count; ++n) {
      const double weight =
          came[n].choice < kChoices
              ? layer.Weights(came[n].rank)[came[n].token][came[n].choice].item<double>()
              : 1;
      EXPECT_EQ(out.weights[n].item<double>(), weight) << layer.Text();
    }
    rest_is_zero(out.weights, count, "expandScales");
  }
  // Counts by expert, and the ends of the rows of each rank for each expert.
  std::vector<int64_t> each(layer.Here(rank), 0);
  std::vector<int32_t> ends;
  int32_t end = 0;
  for (int64_t expert = 0; expert < layer.Here(rank); ++expert) {
    for (int64_t from = 0; from < layer.ranks; ++from) {
      const auto here = std::count_if(came.begin(), came.end(), [&](const Came& one) {
        return one.expert == expert && one.rank == from;
      });
      each[expert] += here;
      end += static_cast<int32_t>(here);
      ends.push_back(end);
    }
  }
  for (size_t expert = 1; layer.sums && expert < each.size(); ++expert) {
    each[expert] += each[expert - 1];
  }
  EXPECT_TRUE(SameBits(out.token_counts, at::tensor(each, at::kLong))) << layer.Text();
  EXPECT_TRUE(SameBits(out.recv_counts.narrow(0, 0, layer.ranks * layer.Here(rank)),
                       at::tensor(ends, at::kInt)))
      << layer.Text();
  if (layer.version != 1) return;
  // For each choice, how many of this rank's tokens went to the same expert before.
  for (int64_t token = 0; token < layer.Tokens(rank); ++token) {
    for (int64_t choice = 0; choice < kChoices; ++choice) {
      int32_t before = 0;
      for (int64_t n = 0; n < token * kChoices + choice; ++n) {
        const int64_t other = n / kChoices, its = n % kChoices;
        if (layer.Counts(rank, other, its) &&
            layer.Id(rank, other, its) == layer.Id(rank, token, choice)) {
          ++before;
        }
      }
      if (!layer.Counts(rank, token, choice)) before = -1;
      EXPECT_EQ(out.info[token * kChoices + choice].item<int32_t>(), before) << layer.Text();
    }
  }
}

// A factor for each of the tokens that came, and 1 after them.
Tensor StrengthsAt(const Layer& layer, int64_t rank) {
  const std::vector<Came> came = ExpectedAt(layer, rank);
  const Tensor factors = at::ones({layer.Room(rank), 1}, at::kDouble);
  for (size_t n = 0; n < came.size(); ++n) {
    factors[static_cast<int64_t>(n)] = Strength(layer, came[n]);
  }
  return factors.to(layer.dtype);
}

// The sum of what the experts make of each token of the rank.
Tensor ExpectedSum(const Layer& layer, int64_t rank, const Extras& extras) {
  const Tensor x = layer.X(rank), weights = layer.Weights(rank).to(at::kDouble);
  const Tensor sum = at::zeros({layer.Tokens(rank), kWidth}, at::kDouble);
  for (int64_t token = 0; token < layer.Tokens(rank); ++token) {
    Tensor row = sum[token];
    for (int64_t choice = 0; choice < kChoices; ++choice) {
      if (!layer.Counts(rank, token, choice)) continue;
      int64_t id = layer.Id(rank, token, choice);
      const Tensor weight = weights[token][choice], own = x[token].to(at::kDouble);
      if (id < layer.experts()) {
        const double strength = Strength(layer, {rank, token, choice, 0});
        row += weight * (x[token] * strength).to(at::kDouble);
        continue;
      }
      id -= layer.experts() + layer.zeros;
      if (id < 0) continue;
      if (id < layer.copies) {
        row += weight * own;
        continue;
      }
      id -= layer.copies;
      row += weight * (extras.alpha1[id].to(at::kDouble) * own +
                       extras.alpha2[id].to(at::kDouble) * extras.constant[id].to(at::kDouble));
    }
    if (!layer.TakesPart(rank, token)) continue;
    for (int64_t s = 0; s < layer.shared; ++s) {
      row += (x[token] * Strength(layer, {rank, token, kChoices + s, 0})).to(at::kDouble);
    }
    if (extras.shared_x.defined()) row += extras.shared_x[token].to(at::kDouble);
  }
  return sum;
}

// Sends the tokens to their experts, which multiply them, and back; as calls, or as a graph that
// runs again with the choices of another round. Rows are not multiplied where they are quantised.
void SendAndSum(const Rank& rank, Layer layer, const Extras& extras = {}) {
  const std::string group = NameOf(rank.comm);
  Inputs in(layer, rank.rank);
  const Outputs out(layer, rank.rank);
  const Tensor factors = StrengthsAt(layer, rank.rank);
  const Tensor rows = at::full(out.tokens.sizes(), 7, layer.dtype);
  const Tensor sum = at::full(in.x.sizes(), 7, layer.dtype);
  std::vector<std::unique_ptr<PackedCall>> calls;
  const auto issue = [&] {
    calls.push_back(
        Start(DispatchName(layer), DispatchArgs(layer, rank.rank, group, in, out), rank.stream));
    if (layer.quantises) return;
    calls.push_back(Start("aclnnMul", {out.tokens, factors, rows}, rank.stream));
    calls.push_back(Start(CombineName(layer),
                          CombineArgs(layer, rank.rank, group, in, out, rows, extras, sum),
                          rank.stream));
  };
  const auto check = [&] {
    ASSERT_OK(aclrtSynchronizeStream(rank.stream));
    ExpectTokens(layer, rank.rank, out);
    if (!layer.quantises) {
      ExpectClose(sum, ExpectedSum(layer, rank.rank, extras), 1, layer.Text());
    }
  };
  if (!layer.graph) {
    issue();
    check();
    return;
  }
  aclmdlRI model = nullptr;
  ASSERT_OK(aclmdlRICaptureBegin(rank.stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  issue();
  ASSERT_OK(aclmdlRICaptureEnd(rank.stream, &model));
  for (const int round : {0, 1}) {
    layer.round = round;
    Inputs changed(layer, rank.rank);
    in.x.copy_(changed.x);
    in.ids.copy_(changed.ids);
    factors.copy_(StrengthsAt(layer, rank.rank));
    for (int i = 0; i < 2; ++i) ASSERT_OK(aclmdlRIExecuteAsync(model, rank.stream));
    check();
  }
  EXPECT_OK(aclmdlRIDestroy(model));
}

TEST_F(GroupExperts, TokensGoToTheirExpertsAndTheSumsComeBack) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    for (const int64_t ranks : {1, 2, 4}) {
      for (const int version : {1, 2, 3, 4}) {
        for (const Mask mask : {Mask::kNone, Mask::kTokens, Mask::kChoices}) {
          for (const bool graph : {false, true}) {
            Layer layer;
            layer.ranks = ranks;
            layer.dtype = dtype;
            layer.version = version;
            layer.mask = mask;
            layer.graph = graph;
            layer.weighs = (version + ranks) % 2 == 0;
            layer.sums = graph;
            OnRanks(static_cast<uint32_t>(ranks), [&](Rank& rank) { SendAndSum(rank, layer); });
          }
        }
      }
    }
  }
}

TEST_F(GroupExperts, TokensGoAsIntegersWithAScale) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    for (const int64_t ranks : {1, 2, 4}) {
      for (const int version : {1, 2}) {
        for (const bool smooth : {false, true}) {
          Layer layer;
          layer.ranks = ranks;
          layer.dtype = dtype;
          layer.version = version;
          layer.quantises = true;
          layer.smooth = smooth;
          layer.graph = version == 2;
          OnRanks(static_cast<uint32_t>(ranks), [&](Rank& rank) { SendAndSum(rank, layer); });
        }
      }
    }
  }
}

TEST_F(GroupExperts, IntegersHaveTheBitsOfAQuantisationAlone) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    Layer layer;
    layer.dtype = dtype;
    layer.quantises = true;
    OnRanks(2, [&](Rank& rank) {
      const std::string group = NameOf(rank.comm);
      const Inputs in(layer, rank.rank);
      const Outputs out(layer, rank.rank);
      RunOn(rank, DispatchName(layer), DispatchArgs(layer, rank.rank, group, in, out), false);
      std::vector<Tensor> tokens;
      for (const Came& one : ExpectedAt(layer, rank.rank)) {
        tokens.push_back(layer.X(one.rank)[one.token]);
      }
      const Tensor rows = at::stack(tokens), alone = at::zeros(rows.sizes(), at::kChar);
      const Tensor scales = at::zeros({rows.size(0)}, at::kFloat);
      RunOn(rank, "aclnnDynamicQuant", {rows, Null{}, alone, scales}, false);
      EXPECT_TRUE(SameBits(out.tokens.narrow(0, 0, rows.size(0)), alone));
      EXPECT_TRUE(SameBits(out.scales.narrow(0, 0, rows.size(0)), scales));
    });
  }
}

TEST_F(GroupExperts, SharedExpertsHaveRanksOfTheirOwn) {
  for (const int version : {1, 2}) {
    for (const int64_t shared_ranks : {1, 2, 3}) {
      for (const int64_t shared : {1, 2}) {
        if (shared_ranks % shared != 0) continue;
        for (const Mask mask : {Mask::kNone, Mask::kTokens, Mask::kChoices}) {
          for (const bool quantises : {false, true}) {
            Layer layer;
            layer.ranks = 4;
            layer.version = version;
            layer.shared = shared;
            layer.shared_ranks = shared_ranks;
            layer.mask = mask;
            layer.quantises = layer.smooth = quantises;
            layer.graph = shared == 2;
            OnRanks(4, [&](Rank& rank) { SendAndSum(rank, layer); });
          }
        }
      }
    }
  }
}

TEST_F(GroupExperts, SomeExpertsNeedNoRank) {
  for (const int version : {3, 4}) {
    for (const Mask mask : {Mask::kNone, Mask::kChoices}) {
      Layer layer;
      layer.version = version;
      layer.mask = mask;
      layer.zeros = 1;
      layer.copies = 2;
      layer.constants = 2;
      OnRanks(2, [&](Rank& rank) {
        Extras extras;
        extras.original = layer.X(rank.rank);
        extras.alpha1 = ValuesOf(0, {2}, layer.dtype, 11);
        extras.alpha2 = ValuesOf(0, {2}, layer.dtype, 12);
        extras.constant = ValuesOf(0, {2, kWidth}, layer.dtype, 13);
        SendAndSum(rank, layer, extras);
      });
    }
  }
}

TEST_F(GroupExperts, TheResultOfAnExpertThatEachRankHasIsAdded) {
  for (const int version : {2, 3, 4}) {
    for (const Mask mask : {Mask::kNone, Mask::kTokens}) {
      Layer layer;
      layer.version = version;
      layer.mask = mask;
      OnRanks(2, [&](Rank& rank) {
        Extras extras;
        extras.shared_x = ValuesOf(rank.rank, {layer.Tokens(rank.rank), kWidth}, layer.dtype, 14);
        SendAndSum(rank, layer, extras);
      });
    }
  }
}

TEST_F(GroupExperts, SumsAreAddedAndNormalised) {
  constexpr double kEpsilon = 1e-5;
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    for (const bool second : {false, true}) {
      Layer layer;
      layer.dtype = dtype;
      layer.version = second ? 4 : 2;
      OnRanks(2, [&](Rank& rank) {
        const std::string group = NameOf(rank.comm);
        const Inputs in(layer, rank.rank);
        const Outputs out(layer, rank.rank);
        const int64_t tokens = layer.Tokens(rank.rank);
        const Tensor rows = at::full(out.tokens.sizes(), 7, dtype);
        const Tensor factors = StrengthsAt(layer, rank.rank);
        const Tensor residual = ValuesOf(rank.rank, {tokens, 1, kWidth}, dtype, 15);
        const Tensor gamma = ValuesOf(0, {kWidth}, dtype, 16);
        const Tensor y = at::full({tokens, 1, kWidth}, 7, dtype), x = at::full_like(y, 7);
        const Tensor rstd = at::full({tokens, 1, 1}, 7, at::kFloat);
        const auto dispatch =
            Start(DispatchName(layer), DispatchArgs(layer, rank.rank, group, in, out), rank.stream);
        const auto multiply = Start("aclnnMul", {out.tokens, factors, rows}, rank.stream);
        Args args = {rows,   in.ids, out.info, out.recv_counts, in.weights, residual, gamma,
                     Null{}, Null{}, Null{},   Null{},          Null{},     Null{},   Null{}};
        if (second) Append(&args, {Null{}, Null{}, Null{}, Null{}, Null{}});
        Append(&args, Places(layer, rank.rank, group));
        Append(&args, {layer.all_tokens(), 0, 0, 0, "", kEpsilon});
        if (second) Append(&args, {0, 0, 0});
        Append(&args, {y, rstd, x});
        RunOn(rank,
              second ? "aclnnMoeDistributeCombineAddRmsNormV2"
                     : "aclnnMoeDistributeCombineAddRmsNorm",
              args, second);
        const Tensor sum = ExpectedSum(layer, rank.rank, {}) + residual.squeeze(1).to(at::kDouble);
        const Tensor inverse = 1 / (sum * sum).mean({1}, true).add(kEpsilon).sqrt();
        ExpectClose(x.squeeze(1), sum, 1, layer.Text());
        ExpectClose(y.squeeze(1), sum * inverse * gamma.to(at::kDouble), 1, layer.Text());
        EXPECT_TRUE(at::allclose(rstd.squeeze(1).to(at::kDouble), inverse, 1e-5));
      });
    }
  }
}

TEST_F(GroupExperts, ArgumentsThatDoNotFitAreRefusedInTheFirstPhase) {
  OnRanks(2, [](Rank& rank) {
    const std::string group = NameOf(rank.comm);
    Layer layer;
    const Inputs in(layer, rank.rank);
    const Outputs out(layer, rank.rank);
    const Args good = DispatchArgs(layer, rank.rank, group, in, out);
    const auto refused = [&](int i, const Arg& instead) {
      Args args = good;
      args[i] = instead;
      return Refusal("aclnnMoeDistributeDispatchV2", args);
    };
    const auto says = [](const std::string& message, const std::string& words) {
      EXPECT_NE(message.find(words), std::string::npos) << message;
    };
    EXPECT_EQ(refused(5, "nobody"),
              "aclnnMoeDistributeDispatchV2: group \"nobody\" is no communicator of this process, "
              "which has \"" +
                  group + "\".");
    EXPECT_EQ(refused(6, 4),
              "aclnnMoeDistributeDispatchV2: epWorldSize is 4, and the group has 2 ranks.");
    says(refused(7, int64_t{1} - rank.rank), "and this is rank " + std::to_string(rank.rank));
    says(refused(8, 5), "moeExpertNum is 5, which 2 ranks do not share evenly");
    says(refused(10, 2), "tpWorldSize is 2; the soft device exchanges with the group of experts");
    says(refused(12, 1), "expertShardType must be 0");
    says(refused(13, 2), "sharedExpertNum is 2, which does not fit 0 ranks");
    says(refused(14, 2), "sharedExpertRankNum is 2, expected 0 to 1");
    says(refused(15, 1), "quantMode is 1, expected 0 or 2");
    says(refused(16, 6), "globalBs is 6, expected 2 times the most tokens of a rank");
    says(refused(17, 2), "expertTokenNumsType is 2, expected 0 or 1");
    says(refused(0, in.x.to(at::kFloat)), "x has dtype Float, expected Half or BFloat16");
    says(refused(1, in.ids.to(at::kLong)), "expertIds has dtype Long, expected Int");
    says(refused(1, in.ids.narrow(0, 0, 2)), "expertIds has another number of tokens than x");
    says(refused(2, layer.Smooth()), "scalesOptional is given, and quantMode is 0");
    says(refused(3, at::ones({9}, at::kBool)), "xActiveMaskOptional has shape [9]");
    says(refused(4, at::ones({1, 2}, at::kFloat)), "expertScalesOptional has shape [1, 2]");
    says(refused(19, out.tokens.narrow(0, 0, 3)),
         "expandXOut has room for 3, and up to 20 may come");
    says(refused(19, out.tokens.to(at::kChar)), "expandXOut has dtype Char, expected Half");
    says(refused(21, out.info.narrow(0, 0, 10)), "assistInfoForCombineOut has room for 10");
    says(refused(22, at::zeros({2}, at::kLong)), "expertTokenNumsOut has shape [2]");
    says(refused(23, at::zeros({5}, at::kInt)), "epRecvCountsOut has room for 5");

    const Tensor sum = at::zeros(in.x.sizes(), layer.dtype);
    const Args back = CombineArgs(layer, rank.rank, group, in, out, out.tokens, {}, sum);
    const auto kept = [&](int i, const Arg& instead) {
      Args args = back;
      args[i] = instead;
      return Refusal("aclnnMoeDistributeCombineV2", args);
    };
    says(kept(0, out.tokens.to(at::kFloat)), "expandX has dtype Float, expected Half or BFloat16");
    says(kept(2, out.info.narrow(0, 0, 10)),
         "assistInfoForCombine is not the result of a dispatch");
    says(kept(3, at::zeros({2}, at::kInt)), "epSendCounts has 2 elements, expected 6");
    says(kept(4, at::ones({1, 2}, at::kFloat)), "expertScales has shape [1, 2]");
    says(kept(7, at::ones({1}, at::kFloat)),
         "activationScaleOptional is given, which the soft device lacks");
    says(kept(24, 2), "commQuantMode is 2, and the soft device knows 0 alone");
    says(kept(27, at::zeros({1, 2}, layer.dtype)), "xOut has shape [1, 2]");

    layer.version = 4;
    Args last = DispatchArgs(layer, rank.rank, group, in, out);
    last[5] = at::zeros({8}, at::kInt);
    says(Refusal("aclnnMoeDistributeDispatchV4", last),
         "elasticInfoOptional is given, which the soft device lacks");
    // The communicator goes on.
    SendAndSum(rank, layer);
  });
}

TEST_F(GroupExperts, AnIdThatIsNoExpertFailsTheTaskOfEachRank) {
  OnRanks(2, [](Rank& rank) {
    const std::string group = NameOf(rank.comm);
    const Layer layer;
    const Inputs in(layer, rank.rank);
    const Outputs out(layer, rank.rank);
    if (rank.rank == 1) in.ids[1][0] = 6;
    const auto call =
        Start(DispatchName(layer), DispatchArgs(layer, rank.rank, group, in, out), rank.stream);
    EXPECT_NE(aclrtSynchronizeStream(rank.stream), ACL_SUCCESS);
    const std::string told = TakeMessage();
    EXPECT_NE(told.find("expertIds[1, 0] is 6, and there are 6 experts"), std::string::npos)
        << told;
  });
}

TEST_F(GroupExperts, CountsOfAnotherDispatchAreFound) {
  OnRanks(2, [](Rank& rank) {
    const std::string group = NameOf(rank.comm);
    const Layer layer;
    const Inputs in(layer, rank.rank);
    const Outputs out(layer, rank.rank);
    RunOn(rank, DispatchName(layer), DispatchArgs(layer, rank.rank, group, in, out), false);
    if (rank.rank == 0) in.ids[0][0] = static_cast<int32_t>(layer.experts() - 1);
    const Tensor sum = at::zeros(in.x.sizes(), layer.dtype);
    const auto call =
        Start(CombineName(layer),
              CombineArgs(layer, rank.rank, group, in, out, out.tokens, {}, sum), rank.stream);
    EXPECT_NE(aclrtSynchronizeStream(rank.stream), ACL_SUCCESS);
    const std::string told = TakeMessage();
    EXPECT_NE(told.find("EI0005"), std::string::npos) << told;
    EXPECT_NE(told.find("which wants"), std::string::npos) << told;
  });
}

}  // namespace
}  // namespace acltape::opapi
