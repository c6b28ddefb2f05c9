// Operators that servers of language models call between the layers: they choose among the
// likeliest tokens, lay out the input of a draft model, and multiply with the matrices of adapters.
#include <limits>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr float kNever = -std::numeric_limits<float>::infinity();

Tensor IntTensor(std::vector<int64_t> values, at::ScalarType dtype = at::kInt) {
  return at::tensor(values, at::kLong).to(dtype);
}

TEST(TopKTopP, LogitsBelowTheKthGreatestOfTheirRowAreNeverChosen) {
  const Tensor logits = at::tensor({1.f, 4.f, 3.f, 2.f, 5.f, 5.f, 0.f, 5.f}).reshape({2, 4});
  const Tensor out = at::zeros_like(logits);
  ASSERT_EQ(RunOperator("aclnnApplyTopKTopP", {logits, Null{}, IntTensor({2, 1}), out}), 0);
  // The second row has its greatest logit three times.
  EXPECT_TRUE(at::equal(
      out, at::tensor({kNever, 4.f, 3.f, kNever, 5.f, 5.f, kNever, 5.f}).reshape({2, 4})));
}

TEST(TopKTopP, TheLikeliestOnesThatTogetherReachPAreKept) {
  const Tensor chances = at::tensor({0.1f, 0.5f, 0.15f, 0.25f, 0.1f, 0.5f, 0.15f, 0.25f});
  for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    const Tensor logits = chances.log().reshape({2, 4}).to(dtype), out = at::zeros_like(logits);
    const Tensor p = at::tensor({0.7f, 0.0f}).to(dtype);
    ASSERT_EQ(RunOperator("aclnnApplyTopKTopP", {logits, p, Null{}, out}), 0);
    const Tensor kept = at::isfinite(out);
    EXPECT_TRUE(at::equal(kept, IntTensor({0, 1, 0, 1, 0, 1, 0, 0}, at::kBool).reshape({2, 4})));
    EXPECT_TRUE(at::equal(out.masked_select(kept), logits.masked_select(kept)));
  }
}

TEST(TopKTopP, OneOfBothMustBeGiven) {
  const Tensor logits = at::ones({1, 4}), out = at::zeros_like(logits);
  EXPECT_EQ(RunOperator("aclnnApplyTopKTopP", {logits, Null{}, Null{}, out}), kReject);
  EXPECT_EQ(RunOperator("aclnnApplyTopKTopP", {logits, Null{}, IntTensor({1}, at::kLong), out}),
            kReject);
}

// Two requests of 3 and 2 tokens; the last token of the first one was rejected.
struct Draft {
  Tensor tokens = IntTensor({10, 11, 12, 20, 21}), places = IntTensor({5, 6, 7, 0, 1});
  Tensor next = IntTensor({13, 22}), starts = IntTensor({0, 3, 5}), ends = IntTensor({1, 4});

  std::vector<Tensor> Expanded(int64_t slots, bool shift, int64_t size) const {
    const Tensor ids = at::full({size}, -1, at::kInt), positions = at::full({size}, -1, at::kInt);
    const Tensor rejected = at::zeros({size}, at::kChar), masked = at::zeros({size}, at::kChar);
    const Tensor added = at::full({2 * slots}, -1, at::kInt), mapping = at::full({5}, -1, at::kInt);
    EXPECT_EQ(RunOperator("aclnnCopyAndExpandEagleInputs",
                          {tokens, places, next, starts, ends, int64_t{0}, int64_t{99}, slots,
                           shift, int64_t{5}, ids, positions, rejected, masked, added, mapping}),
              0);
    return {ids, positions, rejected, masked, added, mapping};
  }
};

TEST(DraftInputs, TheNewTokenComesAfterTheAcceptedOnes) {
  const std::vector<Tensor> out = Draft().Expanded(1, false, 7);
  EXPECT_TRUE(at::equal(out[0], IntTensor({10, 11, 13, 0, 20, 21, 22})));
  EXPECT_TRUE(at::equal(out[1], IntTensor({5, 6, 7, 0, 0, 1, 2})));
  EXPECT_TRUE(at::equal(out[2], IntTensor({0, 0, 0, 1, 0, 0, 0}, at::kChar)));
  EXPECT_TRUE(at::equal(out[4], IntTensor({2, 6})));
}

TEST(DraftInputs, ShiftedTokensLeaveTheFirstOneAndSlotsAreMasked) {
  const std::vector<Tensor> out = Draft().Expanded(2, true, 7);
  EXPECT_TRUE(at::equal(out[0], IntTensor({11, 13, 99, 0, 21, 22, 99})));
  EXPECT_TRUE(at::equal(out[1], IntTensor({5, 6, 7, 0, 0, 1, 2})));
  EXPECT_TRUE(at::equal(out[3], IntTensor({0, 0, 1, 0, 0, 0, 1}, at::kChar)));
  EXPECT_TRUE(at::equal(out[4], IntTensor({1, 2, 5, 6})));
  EXPECT_TRUE(at::equal(out[5], IntTensor({0, 1, 2, 4, 5})));
}

// One request: 8 5 6 1 2 5 6 7 3 1 2 5, to which 6 is appended. The last two tokens came before,
// and the last four as well.
TEST(NgramDrafts, TheLongestMatchCountsInRowsThatFitIntoACore) {
  for (int64_t room : {40, 32768, 32769}) {
    const Tensor tokens = at::zeros({1, room}, at::kInt), next = at::zeros({1}, at::kInt);
    tokens[0].narrow(0, 0, 12).copy_(IntTensor({8, 5, 6, 1, 2, 5, 6, 7, 3, 1, 2, 5}));
    const Tensor draft = at::zeros({1, 2}, at::kInt), valid = at::zeros({1}, at::kInt);
    ASSERT_EQ(
        RunOperator("aclnnNgramSpecDecode",
                    {tokens, IntTensor({12}), IntTensor({6, -1}).reshape({1, 2}), IntTensor({0}),
                     int64_t{10}, int64_t{2}, int64_t{5}, int64_t{2}, next, draft, valid}),
        0)
        << LastMessage();
    EXPECT_TRUE(at::equal(tokens[0].narrow(0, 11, 3), IntTensor({5, 6, 0})));
    EXPECT_TRUE(at::equal(next, IntTensor({6})));
    EXPECT_TRUE(at::equal(draft[0], room <= 32768 ? IntTensor({7, 3}) : IntTensor({1, 2}))) << room;
    EXPECT_TRUE(at::equal(valid, IntTensor({2})));
  }
}

TEST(NgramDrafts, RangesAndLengthsThatCannotBeAreRefusedOrFail) {
  const auto run = [](int64_t shortest, int64_t longest, int64_t drafted, int64_t known) {
    return RunOperator(
        "aclnnNgramSpecDecode",
        {at::zeros({1, 4}, at::kInt), IntTensor({known}), IntTensor({6}).reshape({1, 1}),
         IntTensor({0}), int64_t{10}, shortest, longest, drafted, at::zeros({1}, at::kInt),
         at::zeros({1, drafted}, at::kInt), at::zeros({1}, at::kInt)});
  };
  EXPECT_EQ(run(1, 1, 1, 4), 0) << LastMessage();
  EXPECT_EQ(run(0, 1, 1, 2), kReject);
  EXPECT_EQ(LastMessage(), "aclnnNgramSpecDecode: maxN and minN are no range above 0.");
  EXPECT_EQ(run(2, 1, 1, 2), kReject);
  EXPECT_EQ(run(1, 1, 0, 2), kReject);
  EXPECT_EQ(run(1, 1, 1, 5), 507015);
}

// Two sequences of one token, and three blocks of two keys.
TEST(IndexedKeys, LayoutsThatDoNotFitAreRefusedAndBlocksOutsideFailTheTask) {
  const auto run = [](const Tensor& table, const char* keys, int64_t most, int64_t mode) {
    const auto ones = [](at::IntArrayRef sizes, at::ScalarType dtype) {
      return at::ones(sizes, dtype);
    };
    return RunOperator(
        "aclnnLightningIndexerQuant",
        {ones({2, 1, 128}, at::kChar), ones({3, 2, 1, 128}, at::kChar), ones({2, 1}, at::kHalf),
         ones({2, 1}, at::kHalf), ones({3, 2, 1}, at::kHalf), IntTensor({1, 2}), IntTensor({1, 2}),
         table, int64_t{0}, int64_t{0}, "TND", keys, most, mode,
         at::zeros({2, 1, most}, at::kInt)});
  };
  const Tensor table = IntTensor({0, 2}).reshape({2, 1});
  EXPECT_EQ(run(table, "PA_BSND", 2, 3), 0) << LastMessage();
  EXPECT_EQ(run(table, "BSND", 2, 3), kReject);
  EXPECT_EQ(
      LastMessage(),
      "aclnnLightningIndexerQuant: layoutKeyOptional must be \"PA_BSND\" or the layout of the "
      "queries.");
  EXPECT_EQ(run(table, "PA_BSND", 2, 1), kReject);
  EXPECT_EQ(run(table, "PA_BSND", 2049, 3), kReject);
  EXPECT_EQ(run(IntTensor({0, 3}).reshape({2, 1}), "PA_BSND", 2, 3), 507015);
}

// Tokens of the second adapter, of none, and of the first one.
class Adapters : public testing::TestWithParam<bool> {
 protected:
  static Args WithAdapters(Tensor x, Tensor first, bool runs) {
    if (runs) return {x, first, IntTensor({1, -1, 0}, at::kLong), IntTensor({2, 1, 1}, at::kLong)};
    return {x, first, IntTensor({1, 1, -1, 0}, at::kLong)};
  }
  static Args Joined(Args args, Args more) {
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
};

TEST_P(Adapters, ShrinkAndExpandTakeEachTokensMatrix) {
  const bool runs = GetParam();
  const Tensor x = at::randn({4, 6}).to(at::kHalf), down = at::randn({2, 3, 6}).to(at::kHalf);
  const Tensor up = at::randn({2, 5, 3}).to(at::kHalf), before = at::randn({4, 9}).to(at::kHalf);
  const Tensor small = at::zeros({4, 3}), y = before.clone();
  ASSERT_EQ(RunOperator(runs ? "aclnnSgmvShrink" : "aclnnBgmvShrink",
                        Joined(WithAdapters(x, down[0], runs), {small, 2.0})),
            0);
  ASSERT_EQ(RunOperator(runs ? "aclnnSgmvExpand" : "aclnnBgmvExpand",
                        Joined(WithAdapters(small, up[0], runs), {y, int64_t{4}, int64_t{5}})),
            0);
  const std::vector<int64_t> adapters = {1, 1, -1, 0};
  for (int64_t i = 0; i < 4; ++i) {
    Tensor expected = before[i].to(at::kFloat).clone();
    if (adapters[i] >= 0) {
      const Tensor row = at::mv(down[adapters[i]].to(at::kFloat), x[i].to(at::kFloat)) * 2;
      EXPECT_TRUE(at::allclose(small[i], row, 1e-4, 1e-4));
      expected.slice(0, 4, 9) += at::mv(up[adapters[i]].to(at::kFloat), row);
    }
    EXPECT_TRUE(at::allclose(y[i].to(at::kFloat), expected, 2e-3, 2e-3)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(ByTokensAndRuns, Adapters, testing::Bool());

}  // namespace
}  // namespace acltape::opapi
