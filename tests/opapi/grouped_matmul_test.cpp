// Products of groups against the library's product of each group.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

constexpr int kRows = 0, kInner = 2, kPairs = -1;
constexpr int kEnds = 0, kLengths = 1;

// aclnnGroupedMatmulV4 without quantisation, into one tensor.
Args GroupedCall(const Tensors& x, const Tensors& weight, const Arg& bias, const Arg& groups,
                 int type, int list_type) {
  const Null none;
  return {x,      weight, bias, none, none, none, none,      none,
          groups, none,   none, none, 3,    type, list_type, 0};
}

void ExpectProducts(const Args& args, const Tensors& expected) {
  Args all = args;
  Tensors outs;
  for (const Tensor& tensor : expected) outs.push_back(at::empty_like(tensor));
  all.insert(all.end(), {outs, Null{}, Null{}});
  ASSERT_EQ(RunOperator("aclnnGroupedMatmulV4", all), 0) << LastMessage();
  for (size_t i = 0; i < outs.size(); ++i) EXPECT_TRUE(SameBits(outs[i], expected[i])) << i;
}

TEST(GroupedMatmul, RowsMeetTheMatrixOfTheirGroup) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Tensor x = at::randn({7, 4}).to(dtype), w = at::randn({3, 4, 5}).to(dtype);
    const Tensor bias = at::randn({3, 5}).to(dtype);
    const Tensor ends = at::tensor({2, 2, 7}, at::kLong),
                 lengths = at::tensor({2, 0, 5}, at::kLong);
    Tensors parts{at::mm(x.slice(0, 0, 2), w[0]), at::mm(x.slice(0, 2, 7), w[2])};
    const Tensor plain = at::cat(parts);
    ExpectProducts(GroupedCall({x}, {w}, Null{}, ends, kRows, kEnds), {plain});
    ExpectProducts(GroupedCall({x}, {w}, Null{}, lengths, kRows, kLengths), {plain});
    ExpectProducts(GroupedCall({x}, {w[0], w[1], w[2]}, Null{}, ends, kRows, kEnds), {plain});
    parts[0].add_(bias[0]);
    parts[1].add_(bias[2]);
    ExpectProducts(GroupedCall({x}, {w}, Tensors{bias}, ends, kRows, kEnds), {at::cat(parts)});
  }
}

TEST(GroupedMatmul, GroupsOfTheInnerDimGiveAMatrixEach) {
  const Tensor x = at::randn({7, 4}).t(), w = at::randn({7, 5});
  const Tensor ends = at::tensor({2, 2, 7}, at::kLong);
  const Tensor expected =
      at::stack(Tensors{at::mm(x.slice(1, 0, 2), w.slice(0, 0, 2)), at::zeros({4, 5}),
                        at::mm(x.slice(1, 2, 7), w.slice(0, 2, 7))});
  ExpectProducts(GroupedCall({x}, {w}, Null{}, ends, kInner, kEnds), {expected});
}

TEST(GroupedMatmul, ListsAreMultipliedPairByPair) {
  const Tensor a = at::randn({3, 4}), b = at::randn({4, 2}), c = at::randn({1, 5}),
               d = at::randn({5, 6});
  ExpectProducts(GroupedCall({a, c}, {b, d}, Null{}, Null{}, kPairs, kEnds),
                 {at::mm(a, b), at::mm(c, d)});
}

TEST(GroupedMatmul, GroupsThatDoNotFitAreRefused) {
  const Tensor x = at::randn({7, 4}), w = at::randn({3, 4, 5}), two = at::tensor({2, 7}, at::kLong);
  const auto refused = [](Args args, const Tensor& out) {
    args.insert(args.end(), {Tensors{out}, Null{}, Null{}});
    return RunOperator("aclnnGroupedMatmulV4", args);
  };
  const Tensor out = at::empty({7, 5});
  EXPECT_EQ(refused(GroupedCall({x}, {w}, Null{}, two, kRows, kEnds), out), 161002);
  EXPECT_EQ(refused(GroupedCall({x}, {w}, Null{}, Null{}, kRows, kEnds), out), 161002);
  EXPECT_EQ(refused(GroupedCall({x}, {w.transpose(1, 2)}, Null{}, at::tensor({1, 2, 7}, at::kLong),
                                kRows, kEnds),
                    out),
            161002);
}

}  // namespace
}  // namespace acltape::opapi
