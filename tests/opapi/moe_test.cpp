// Gating and routing of mixtures of experts against loops over tokens and experts.
#include <cmath>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Ints = std::vector<int64_t>;

Tensor Int32(const Ints& values) { return at::tensor(values, at::kInt); }

// Distinct scores, so that the best are known without a rule for equal ones.
Tensor Scores(int64_t rows, int64_t experts) {
  return (at::randperm(rows * experts, at::kFloat) / 7 - 1).reshape({rows, experts});
}

Ints BestExperts(const Tensor& row, int64_t k) {
  const Tensor order = at::argsort(row, -1, true).narrow(0, 0, k);
  return {order.data_ptr<int64_t>(), order.data_ptr<int64_t>() + k};
}

TEST(MoeGating, TheSoftmaxOfTheBestExperts) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Tensor x = Scores(3, 5).to(dtype),
                 finished = at::tensor({0, 1, 0}, at::kInt).to(at::kBool);
    const auto best = at::topk(at::softmax(x.to(at::kFloat), -1), 2);
    const Tensor experts = std::get<1>(best).to(at::kInt);
    experts[1].fill_(5);
    Check("aclnnMoeGatingTopKSoftmax", {x, finished, int64_t{2}},
          {std::get<0>(best).to(dtype), experts, Int32({0, 3, 1, 4, 2, 5}).reshape({3, 2})});
  }
}

TEST(MoeGating, TheSecondFormNormalisesBeforeOrAfterTheChoice) {
  const Tensor x = Scores(4, 6), all = at::softmax(x, -1);
  const auto before = at::topk(all, 3), after = at::topk(x, 3);
  Check("aclnnMoeGatingTopKSoftmaxV2", {x, Null{}, int64_t{3}, int64_t{0}, true},
        {std::get<0>(before), std::get<1>(before).to(at::kInt), all});
  Check("aclnnMoeGatingTopKSoftmaxV2", {x, Null{}, int64_t{3}, int64_t{1}, false},
        {at::softmax(std::get<0>(after), -1), std::get<1>(after).to(at::kInt), Tensor()});
  const Tensor y = at::empty({4, 7}), index = at::empty({4, 7}, at::kInt);
  EXPECT_EQ(RunOperator("aclnnMoeGatingTopKSoftmaxV2",
                        {x, Null{}, int64_t{7}, int64_t{0}, false, y, index, Null{}}),
            kReject);
}

// Two groups of three experts are chosen by their best two; the bias decides, the weights are
// without it.
TEST(MoeGating, GroupsOfExpertsAreChosenFirst) {
  const Tensor x = Random({5, 9}), bias = Random({9});
  const Tensor scores = at::sigmoid(x), wanted = scores + bias;
  const Tensor y = at::empty({5, 4}), experts = at::empty({5, 4}, at::kInt);
  for (int64_t row = 0; row < 5; ++row) {
    const Tensor groups = wanted[row].reshape({3, 3});
    const Tensor best_two = std::get<0>(groups.sort(-1, true)).narrow(-1, 0, 2).sum(-1);
    const Ints chosen = BestExperts(best_two, 2);
    Tensor left = at::full({3, 3}, -INFINITY);
    for (const int64_t group : chosen) left[group].copy_(groups[group]);
    const Ints best = BestExperts(left.flatten(), 4);
    for (int64_t k = 0; k < 4; ++k) experts[row][k].fill_(best[k]);
    const Tensor weights = scores[row].index_select(0, experts[row].to(at::kLong));
    y[row].copy_(weights / (weights.sum() + 1e-3) * 2.5);
  }
  const Tensor out = Unwritten(y), index = Unwritten(experts), all = Unwritten(scores);
  ASSERT_EQ(
      RunOperator("aclnnMoeGatingTopK", {x, bias, int64_t{4}, int64_t{2}, int64_t{3}, int64_t{1},
                                         int64_t{0}, int64_t{1}, true, 2.5, 1e-3, out, index, all}),
      0)
      << LastMessage();
  EXPECT_TRUE(SameBits(index, experts));
  EXPECT_TRUE(at::allclose(out, y, 1e-6, 1e-7));
  EXPECT_TRUE(SameBits(all, scores));
}

TEST(MoeGating, GroupsThatDoNotDivideTheExpertsAreRefused) {
  const Tensor x = Random({5, 9}), y = at::empty({5, 2}), index = at::empty({5, 2}, at::kInt);
  EXPECT_EQ(RunOperator("aclnnMoeGatingTopK",
                        {x, Null{}, int64_t{2}, int64_t{1}, int64_t{2}, int64_t{0}, int64_t{0},
                         int64_t{0}, false, 1.0, 1e-20, y, index, Null{}}),
            kReject);
  EXPECT_EQ(LastMessage(), "aclnnMoeGatingTopK: groupCount does not divide the number of experts.");
}

// Five tokens of a vocabulary of two; their experts come from a table.
TEST(MoeGating, ATableOfExpertsNeedsTokensAndNoChoiceOfGroups) {
  const Tensor x = Random({5, 8}), y = at::empty({5, 2}), index = at::empty({5, 2}, at::kInt);
  const Tensor all = at::full({5, 8}, 9.F);
  const auto run = [&](Arg ids, Arg table, int64_t kept, int64_t groups, int64_t norm) {
    const Args args = {x,          Null{}, std::move(ids), std::move(table),
                       int64_t{2}, kept,   groups,         int64_t{0},
                       int64_t{0}, norm,   false,          1.0,
                       1e-20,      y,      index,          all};
    return RunOperator("aclnnMoeGatingTopKHash", args);
  };
  const Tensor ids = Int32({0, 1, 1, 0, 1}), table = Int32({1, 7, 3, 2}).reshape({2, 2});
  EXPECT_EQ(run(ids, table, 1, 1, 2), 0) << LastMessage();
  EXPECT_TRUE(SameBits(index[1], Int32({3, 2})));
  EXPECT_TRUE(at::equal(all, at::full({5, 8}, 9.F)));  // outFlag is false
  EXPECT_EQ(run(ids, Null{}, 1, 1, 2), kReject);
  EXPECT_EQ(LastMessage(), "aclnnMoeGatingTopKHash: tid2eidOptional and inputIds need each other.");
  EXPECT_EQ(run(ids, table, 1, 2, 1), kReject);
  EXPECT_EQ(LastMessage(),
            "aclnnMoeGatingTopKHash: tid2eidOptional is given where groups of experts are chosen.");
  EXPECT_EQ(run(Null{}, Null{}, 1, 2, 2), kReject);
  EXPECT_EQ(LastMessage(), "aclnnMoeGatingTopKHash: normType is 2 with several groups.");
  constexpr int kTaskFailed = 507015;
  EXPECT_EQ(run(Int32({0, 1, 2, 0, 1}), table, 1, 1, 2), kTaskFailed);
  EXPECT_EQ(run(ids, Int32({1, 8, 3, 2}).reshape({2, 2}), 1, 1, 2), kTaskFailed);
}

// The list ends at a group without rows, so the last row of the result belongs to none.
TEST(MoeProducts, RowsAfterTheLastGroupAreZeros) {
  const Tensor x = Random({4, 3}, at::kHalf), weight = Random({2, 3, 5}, at::kHalf);
  const Tensor out = at::full({4, 5}, 9, at::kHalf), groups = Int32({1, 3, 0, 0, 1, 1});
  const auto run = [&](const Tensor& list) {
    using List = std::vector<Tensor>;
    return RunOperator("aclnnMoeGroupedMatmul", {List{x}, List{weight}, list, false, List{out}});
  };
  ASSERT_EQ(run(groups.reshape({3, 2})), 0) << LastMessage();
  EXPECT_TRUE(at::allclose(out.narrow(0, 0, 3).to(at::kFloat),
                           at::mm(x.narrow(0, 0, 3).to(at::kFloat), weight[1].to(at::kFloat)), 1e-2,
                           1e-2));
  EXPECT_TRUE(at::equal(out[3], at::zeros({5}, at::kHalf)));
  constexpr int kTaskFailed = 507015;
  EXPECT_EQ(run(Int32({2, 1}).reshape({1, 2})), kTaskFailed);  // the third expert of two
  EXPECT_EQ(run(Int32({1, 5}).reshape({1, 2})), kTaskFailed);  // five rows of four
  EXPECT_EQ(run(groups), kReject);
}

// The second group ends before the last row; a bias is none of what is computed.
TEST(MoeProducts, QuantizedRowsAfterTheLastGroupAreZeros) {
  using List = std::vector<Tensor>;
  const Tensor x = at::ones({4, 3}, at::kChar), weight = at::ones({3, 4}, at::kChar);
  const Tensor out = at::full({4, 2}, 9, at::kChar), scale = at::full({4}, 9.F);
  const auto run = [&](const Ints& ends, Arg bias) {
    return RunOperator(
        "aclnnGroupedMatmulSwigluQuantWeightNzTensorList",
        {x, List{weight, weight}, std::move(bias), Null{}, List{at::ones({4}), at::ones({4})},
         at::ones({4}), at::tensor(ends, at::kLong), 0.0, out, scale, at::empty({4})});
  };
  ASSERT_EQ(run({1, 3}, Null{}), 0) << LastMessage();
  EXPECT_TRUE(at::equal(out.select(1, 0), at::tensor({127, 127, 127, 0}, at::kChar)));
  EXPECT_EQ(scale[3].item<float>(), 0.F);
  EXPECT_EQ(run({1, 3}, at::ones({4})), kReject);
  EXPECT_EQ(LastMessage(),
            "aclnnGroupedMatmulSwigluQuantWeightNzTensorList: bias is given, which the soft device "
            "lacks.");
  EXPECT_EQ(run({3, 1}, Null{}), 507015);
  EXPECT_EQ(run({3, 5}, Null{}), 507015);
  EXPECT_EQ(run({3}, Null{}), kReject);
}

// Four tokens with two experts each, of three experts.
const Ints kExperts = {2, 0, 1, 2, 0, 1, 2, 0};
// The rows by their experts: flat positions 1, 4, 7; 2, 5; 0, 3, 6.
const Ints kOrder = {1, 4, 7, 2, 5, 0, 3, 6};
// The row to which each flat position went.
const Ints kWhere = {5, 0, 3, 6, 1, 4, 7, 2};

Tensor Experts() { return Int32(kExperts).reshape({4, 2}); }
Tensor RowsOf(const Tensor& x, const Ints& tokens) {
  return x.index_select(0, at::tensor(tokens, at::kLong));
}

TEST(MoeRouting, TokensStandInTheOrderOfTheirExperts) {
  const Tensor x = Random({4, 5}, at::kHalf);
  const Tensor sorted = RowsOf(x, {0, 2, 3, 1, 2, 0, 1, 3});
  const int64_t none = 0;
  Check("aclnnMoeInitRoutingV2", {x, Experts(), none, none, int64_t{3}, none, int64_t{1}, false},
        {sorted, Int32(kWhere), Int32({3, 5, 8}), Tensor()});
  Check("aclnnMoeInitRoutingV2",
        {x, Experts(), int64_t{3}, none, int64_t{3}, none, int64_t{2}, false},
        {sorted.narrow(0, 0, 3), Int32(kWhere), Int32({3, 2, 3}), Tensor()});
  Check("aclnnMoeTokenPermute", {x, Experts(), none, false}, {sorted, Int32(kWhere)});
  Check("aclnnMoeTokenPermute", {x, Experts(), int64_t{-2}, false},
        {sorted.narrow(0, 0, 6), Int32(kWhere)});
}

// The first form counts rows choice by choice: row 4 is the second choice of token 0.
TEST(MoeRouting, TheFirstFormTakesItsRowsAsGiven) {
  const Tensor x = Random({4, 5}), rows = Int32({0, 4, 1, 5, 2, 6, 3, 7}).reshape({4, 2});
  Check("aclnnMoeInitRouting", {x, rows, Experts(), int64_t{4}},
        {RowsOf(x, {0, 2, 3, 1, 2, 0, 1, 3}), Int32({5, 3, 1, 7, 0, 6, 4, 2}),
         Int32({0, 0, 0, 1, 1, 2, 2, 2})});
}

// With a capacity of two the third rows of the first and the last expert are dropped, and the
// second expert is full.
TEST(MoeRouting, TokensPastTheCapacityAreDropped) {
  const Tensor x = Random({4, 5}), out = at::zeros({4, 2, 5});
  out[0].copy_(RowsOf(x, {0, 2}));
  out[1].copy_(RowsOf(x, {1, 2}));
  out[2].copy_(RowsOf(x, {0, 1}));
  Check("aclnnMoeInitRoutingV2",
        {x, Experts(), int64_t{0}, int64_t{2}, int64_t{4}, int64_t{1}, int64_t{0}, true},
        {out, Int32({4, 0, 2, 5, 1, 3, -1, -1}), Tensor(), Int32({3, 2, 3, 0})});
}

TEST(MoeRouting, TheThirdFormRoutesARangeOfExperts) {
  const Tensor x = Random({4, 5}), scale = Random({4});
  const auto call = [&](int64_t type, int64_t scatter) {
    return Args{x,          Experts(), scale, Null{},      int64_t{8}, int64_t{0}, int64_t{4},
                int64_t{0}, type,      true,  int64_t{-1}, Ints{1, 4}, scatter};
  };
  const Tensor out = at::zeros({8, 5}), scales = at::zeros({8});
  out.narrow(0, 0, 5).copy_(RowsOf(x, {1, 2, 0, 1, 3}));
  scales.narrow(0, 0, 5).copy_(RowsOf(scale, {1, 2, 0, 1, 3}));
  for (const char* name : {"aclnnMoeInitRoutingV3", "aclnnMoeInitRoutingCustom"}) {
    Check(name, call(1, 0),
          {out, Int32({2, -1, 0, 3, -1, 1, 4, -1}), at::tensor({2, 3, 0}, at::kLong), scales});
    Check(name, call(0, 1),
          {out, Int32({2, 5, 0, 3, 6, -1, -1, -1}), at::tensor({2, 5, 5}, at::kLong), scales});
    Check(name, call(2, 1),
          {out, Int32({2, 5, 0, 3, 6, -1, -1, -1}),
           at::tensor({1, 2, 2, 3, 0, 0, 0, 0}, at::kLong).reshape({4, 2}), scales});
    Args uncounted = call(1, 0);
    uncounted[9] = false;
    const Tensor counts = at::full({3}, 7, at::kLong), routed = at::empty({8, 5});
    uncounted.insert(uncounted.end(), {routed, at::empty({8}, at::kInt), counts, at::empty({8})});
    ASSERT_EQ(RunOperator(name, uncounted), 0) << LastMessage();
    EXPECT_TRUE(SameBits(routed, out));
    EXPECT_TRUE(counts.eq(7).all().item<bool>()) << "nobody asked for the counts";
  }
}

// Runs all versions of the operator. The newer ones have experts without weights after the experts
// of the tokens, and the last one the number of experts for each token.
void ExpectFinalized(const Args& first, int64_t mode, const Tensor& expected) {
  for (int version : {2, 3, 4}) {
    const Tensor out = at::empty_like(expected);
    Args args = first;
    if (version > 2) args.insert(args.end(), 4, Null{});
    args.push_back(mode);
    if (version > 2) args.insert(args.end(), 3, Null{});
    if (version == 4) args.push_back(int64_t{2});
    args.push_back(out);
    const std::string name = "aclnnMoeFinalizeRoutingV" + std::to_string(version);
    ASSERT_EQ(RunOperator(name.c_str(), args), 0) << LastMessage();
    EXPECT_TRUE(at::allclose(out, expected, 1e-5, 1e-6)) << name << ", mode " << mode;
  }
}

TEST(MoeRouting, ResultsOfExpertsAreSummedForEachToken) {
  const Tensor rows = Random({8, 5}), scales = Random({4, 2}), shared = Random({4, 5});
  const Tensor bias = Random({3, 5}), expected = at::zeros({4, 5});
  for (int64_t token = 0; token < 4; ++token) {
    for (int64_t k = 0; k < 2; ++k) {
      const int64_t flat = token * 2 + k;
      expected[token].add_((rows[kWhere[flat]] + bias[kExperts[flat]]) * scales[token][k]);
    }
  }
  const auto expect_sum = [&](const Ints& where, int64_t mode) {
    ExpectFinalized({rows, Int32(where), shared, Null{}, bias, scales, Experts()}, mode,
                    expected + shared);
  };
  expect_sum(kWhere, 2);
  expect_sum({5, 3, 1, 7, 0, 6, 4, 2}, 0);  // the same, choice by choice
}

TEST(MoeRouting, DroppedTokensAddNothing) {
  const Tensor rows = Random({4, 2, 5}), scales = Random({4, 2}), expected = at::zeros({4, 5});
  const Ints where = {4, 0, 2, 5, 1, 3, -1, -1};
  for (int64_t flat = 0; flat < 6; ++flat) {
    expected[flat / 2].add_(rows.reshape({8, 5})[where[flat]] * scales[flat / 2][flat % 2]);
  }
  ExpectFinalized({rows, Int32(where), Null{}, Null{}, Null{}, scales, Null{}}, 3, expected);
  Ints by_choice;
  for (const int64_t k : {0, 1}) {
    for (int64_t token = 0; token < 4; ++token) by_choice.push_back(where[token * 2 + k]);
  }
  ExpectFinalized({rows, Int32(by_choice), Null{}, Null{}, Null{}, scales, Null{}}, 1, expected);
}

TEST(MoeRouting, PermutedTokensComeBackAndTheirGradientsToo) {
  const at::AutoGradMode enabled(true);
  const Tensor order = at::tensor(kOrder, at::kLong), where = at::tensor(kWhere, at::kLong);
  const Tensor tokens = Random({4, 5}).requires_grad_(), probs = Random({4, 2}).requires_grad_();
  const Tensor permuted = tokens.index_select(0, order.floor_divide(2));
  permuted.retain_grad();
  const Tensor back =
      (permuted.index_select(0, where).reshape({4, 2, 5}) * probs.unsqueeze(-1)).sum(1);
  const Tensor gradient = Random({4, 5});
  back.backward(gradient);

  const Tensor plain = permuted.detach(), weights = probs.detach(), index = Int32(kWhere);
  const auto near = [](const Tensor& actual, const Tensor& expected) {
    return at::allclose(actual, expected, 1e-5, 1e-6);
  };
  const Tensor out = at::empty({4, 5});
  ASSERT_EQ(RunOperator("aclnnMoeTokenUnpermute", {plain, index, weights, false, Null{}, out}), 0)
      << LastMessage();
  EXPECT_TRUE(near(out, back.detach()));

  const Tensor of_permuted = at::empty({8, 5}), of_probs = at::empty({4, 2});
  ASSERT_EQ(RunOperator("aclnnMoeTokenUnpermuteGrad",
                        {plain, gradient, index, weights, false, Null{}, of_permuted, of_probs}),
            0)
      << LastMessage();
  EXPECT_TRUE(near(of_permuted, permuted.grad()));
  EXPECT_TRUE(near(of_probs, probs.grad()));

  const Tensor of_tokens = at::empty({4, 5});
  ASSERT_EQ(
      RunOperator("aclnnMoeTokenPermuteGrad", {of_permuted, index, int64_t{2}, false, of_tokens}),
      0)
      << LastMessage();
  EXPECT_TRUE(near(of_tokens, tokens.grad()));
  EXPECT_EQ(
      RunOperator("aclnnMoeTokenPermuteGrad", {of_permuted, index, int64_t{2}, true, of_tokens}),
      kReject);
}

}  // namespace
}  // namespace acltape::opapi
