// Products of groups against the library's product of each group.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

constexpr int kRows = 0, kInner = 2, kPairs = -1;
constexpr int kGroupEnds = 0, kGroupLengths = 1;

// aclnnGroupedMatmulV4 without quantisation, into one tensor.
Args GroupedCall(const Tensors& x, const Tensors& weight, const Arg& bias, const Arg& groups,
                 int type, int list_type) {
  const Null none;
  return {x,      weight, bias, none, none, none, none,      none,
          groups, none,   none, none, 3,    type, list_type, 0};
}

// Newer versions have more arguments in front of the outputs: how to tune, and the size of a group
// of quantised weights.
void ExpectProducts(const Args& args, const Tensors& expected) {
  const std::pair<const char*, Args> versions[] = {
      {"aclnnGroupedMatmulV4", {}},
      {"aclnnGroupedMatmulV5", {Null{}}},
      {"aclnnGroupedMatmulWeightNz", {Null{}, int64_t{0}}}};
  for (const auto& [name, more] : versions) {
    Args all = args;
    Tensors outs;
    for (const Tensor& tensor : expected) outs.push_back(at::empty_like(tensor));
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), {outs, Null{}, Null{}});
    ASSERT_EQ(RunOperator(name, all), 0) << LastMessage();
    for (size_t i = 0; i < outs.size(); ++i) {
      EXPECT_TRUE(SameBits(outs[i], expected[i])) << name << ", output " << i;
    }
  }
}

TEST(GroupedMatmul, RowsMeetTheMatrixOfTheirGroup) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Tensor x = at::randn({7, 4}).to(dtype), w = at::randn({3, 4, 5}).to(dtype);
    const Tensor bias = at::randn({3, 5}).to(dtype);
    const Tensor ends = at::tensor({2, 2, 7}, at::kLong),
                 lengths = at::tensor({2, 0, 5}, at::kLong);
    Tensors parts{at::mm(x.slice(0, 0, 2), w[0]), at::mm(x.slice(0, 2, 7), w[2])};
    const Tensor plain = at::cat(parts);
    ExpectProducts(GroupedCall({x}, {w}, Null{}, ends, kRows, kGroupEnds), {plain});
    ExpectProducts(GroupedCall({x}, {w}, Null{}, lengths, kRows, kGroupLengths), {plain});
    ExpectProducts(GroupedCall({x}, {w[0], w[1], w[2]}, Null{}, ends, kRows, kGroupEnds), {plain});
    parts[0].add_(bias[0]);
    parts[1].add_(bias[2]);
    ExpectProducts(GroupedCall({x}, {w}, Tensors{bias}, ends, kRows, kGroupEnds), {at::cat(parts)});
  }
}

// A program hands rows on that belong to no group, so what they hold must not depend on the memory.
TEST(GroupedMatmul, RowsAfterTheLastGroupAreZeros) {
  const Tensor x = at::randn({7, 4}), w = at::randn({2, 4, 5});
  const Tensor expected = at::cat(
      Tensors{at::mm(x.slice(0, 0, 2), w[0]), at::mm(x.slice(0, 2, 4), w[1]), at::zeros({3, 5})});
  const auto check = [&](const char* name, Args args) {
    const Tensor out = at::full({7, 5}, 7, at::kFloat);
    args.emplace_back(Tensors{out});
    if (std::string(name) == "aclnnGroupedMatmulV4") args.insert(args.end(), {Null{}, Null{}});
    ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
    EXPECT_TRUE(SameBits(out, expected)) << name;
  };
  check("aclnnGroupedMatmulV4",
        GroupedCall({x}, {w}, Null{}, at::tensor({2, 4}, at::kLong), kRows, kGroupEnds));
  check("aclnnGroupedMatmulV4",
        GroupedCall({x}, {w}, Null{}, at::tensor({2, 2}, at::kLong), kRows, kGroupLengths));
}

TEST(GroupedMatmul, GroupsOfTheInnerDimGiveAMatrixEach) {
  const Tensor x = at::randn({7, 4}).t(), w = at::randn({7, 5});
  const Tensor ends = at::tensor({2, 2, 7}, at::kLong);
  const Tensor expected =
      at::stack(Tensors{at::mm(x.slice(1, 0, 2), w.slice(0, 0, 2)), at::zeros({4, 5}),
                        at::mm(x.slice(1, 2, 7), w.slice(0, 2, 7))});
  ExpectProducts(GroupedCall({x}, {w}, Null{}, ends, kInner, kGroupEnds), {expected});
}

TEST(GroupedMatmul, ListsAreMultipliedPairByPair) {
  const Tensor a = at::randn({3, 4}), b = at::randn({4, 2}), c = at::randn({1, 5}),
               d = at::randn({5, 6});
  ExpectProducts(GroupedCall({a, c}, {b, d}, Null{}, Null{}, kPairs, kGroupEnds),
                 {at::mm(a, b), at::mm(c, d)});
}

// (x, weight, bias, four of quantisation, groups, splitItem, ..., y) of the first forms
Args FirstForm(const Tensors& x, const Tensors& weight, const Arg& bias, const Arg& groups,
               Args tail) {
  Args args = {x, weight, bias, Null{}, Null{}, Null{}, Null{}, groups};
  args.insert(args.end(), tail.begin(), tail.end());
  return args;
}

TEST(GroupedMatmul, TheFirstFormsTakeTheGroupsFromTheHost) {
  const Tensor x = at::randn({7, 4}), w = at::randn({3, 4, 5}), bias = at::randn({3, 5});
  const std::vector<int64_t> ends = {2, 2, 7};
  const Tensors parts{at::mm(x.slice(0, 0, 2), w[0]) + bias[0], at::empty({0, 5}),
                      at::mm(x.slice(0, 2, 7), w[2]) + bias[2]};
  const Tensor whole = at::cat(parts);
  const auto check = [](const char* name, Args args, const Tensors& expected) {
    Tensors outs;
    for (const Tensor& tensor : expected) outs.push_back(at::empty_like(tensor));
    args.push_back(outs);
    ASSERT_EQ(RunOperator(name, args), 0) << LastMessage();
    for (size_t i = 0; i < outs.size(); ++i) EXPECT_TRUE(SameBits(outs[i], expected[i])) << i;
  };
  const Tensors biases{bias};
  check("aclnnGroupedMatmul", FirstForm({x}, {w}, biases, ends, {3}), {whole});
  check("aclnnGroupedMatmul", FirstForm({x}, {w[0], w[1], w[2]}, biases, ends, {1}), parts);
  check("aclnnGroupedMatmulV2", FirstForm({x}, {w}, biases, ends, {2, 0}), {whole});
  const Tensors inputs{x.slice(0, 0, 2), x.slice(0, 2, 7)}, weights{w[0], w[2]};
  const Tensors two{at::mm(inputs[0], w[0]), at::mm(inputs[1], w[2])};
  check("aclnnGroupedMatmul", FirstForm(inputs, weights, Null{}, Null{}, {0}), two);
  check("aclnnGroupedMatmul", FirstForm(inputs, weights, Null{}, Null{}, {2}), {at::cat(two)});
  check("aclnnGroupedMatmulV2", FirstForm(inputs, weights, Null{}, Null{}, {0, -1}), two);
  const Tensor on_device = at::tensor({2, 2, 7}, at::kLong);
  check("aclnnGroupedMatmulV3", FirstForm({x}, {w}, biases, on_device, {3, 0}), {whole});
  check("aclnnGroupedMatmulV3", FirstForm(inputs, weights, Null{}, Null{}, {0, -1}), two);
  const Tensor inner = at::randn({7, 4}).t(), rows = at::randn({7, 5});
  check("aclnnGroupedMatmulV3", FirstForm({inner}, {rows}, Null{}, on_device, {3, 2}),
        {at::stack(Tensors{at::mm(inner.slice(1, 0, 2), rows.slice(0, 0, 2)), at::zeros({4, 5}),
                           at::mm(inner.slice(1, 2, 7), rows.slice(0, 2, 7))})});
}

TEST(GroupedMatmul, TheFirstFormsRefuseGroupsThatDoNotFit) {
  const Tensor x = at::randn({7, 4}), w = at::randn({2, 4, 5});
  const Tensors out{at::empty({7, 5})};
  using Ends = std::vector<int64_t>;
  const auto refused = [&](const Arg& groups, int split) {
    return RunOperator("aclnnGroupedMatmul", FirstForm({x}, {w}, Null{}, groups, {split, out}));
  };
  EXPECT_EQ(refused(Ends{3, 7}, 3), 0) << LastMessage();
  EXPECT_EQ(refused(Ends{7}, 3), 161002);
  EXPECT_EQ(refused(Ends{5, 3}, 3), 161002);
  EXPECT_EQ(refused(Ends{5, 8}, 3), 161002);
  EXPECT_EQ(refused(Ends{3, 7}, 0), 161002);
  EXPECT_EQ(LastMessage(),
            "aclnnGroupedMatmul: y has not one tensor for each group as splitItem says.");
}

TEST(GroupedMatmul, GroupsThatDoNotFitAreRefused) {
  const Tensor x = at::randn({7, 4}), w = at::randn({3, 4, 5}), two = at::tensor({2, 7}, at::kLong);
  const auto refused = [](Args args, const Tensor& out) {
    args.insert(args.end(), {Tensors{out}, Null{}, Null{}});
    return RunOperator("aclnnGroupedMatmulV4", args);
  };
  const Tensor out = at::empty({7, 5});
  EXPECT_EQ(refused(GroupedCall({x}, {w}, Null{}, two, kRows, kGroupEnds), out), 161002);
  EXPECT_EQ(refused(GroupedCall({x}, {w}, Null{}, Null{}, kRows, kGroupEnds), out), 161002);
  EXPECT_EQ(refused(GroupedCall({x}, {w.transpose(1, 2)}, Null{}, at::tensor({1, 2, 7}, at::kLong),
                                kRows, kGroupEnds),
                    out),
            161002);
}

}  // namespace
}  // namespace acltape::opapi
