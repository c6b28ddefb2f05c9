// Convolutions at moved places: places that the grid leaves out, and calls that are refused.
#include <limits>

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr const char* kMoved = "aclnnDeformableConv2d";
constexpr const char* kMovedBack = "aclnnDeformableConv2dBackward";
using Integers = std::vector<int64_t>;

// A kernel of one element over a map of one channel, whose weight is 1: the result is the samples.
Args OneTap(const Tensor& x, const Tensor& offset) {
  return {x,
          at::ones({1, 1, 1, 1}),
          offset,
          Null{},
          Integers{1, 1},
          Integers{1, 1, 1, 1},
          Integers{0, 0, 0, 0},
          Integers{1, 1, 1, 1},
          int64_t{1},
          int64_t{1},
          true,
          at::full({1, 1, x.size(2), x.size(3)}, 7.0F),
          Null{}};
}

// The moves of a row of places along x, no moves along y, and weights.
Tensor RowOfMoves(std::vector<float> along_x, std::vector<float> weights) {
  const auto count = static_cast<int64_t>(along_x.size());
  const Tensor x = at::tensor(along_x), weight = at::tensor(weights);
  return at::stack({x, at::zeros({count}), weight}).view({1, 3, 1, count});
}

TEST(DeformableConvolution, ReadsElementsAtWholePlacesAndBetweenThem) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinite = std::numeric_limits<float>::infinity();
  const Tensor x = at::tensor({10.0F, 20.0F, 40.0F, 80.0F, 160.0F, 320.0F}).view({1, 1, 1, 6});
  // Places 1, -0.5, 1.25, 5.5, NaN and infinity.
  const Tensor offset = RowOfMoves({1, -1.5F, -0.75F, 2.5F, nan, infinite}, {1, 2, 1, 0.5F, 1, 1});
  const Args args = OneTap(x, offset);
  ASSERT_EQ(RunOperator(kMoved, args), 0) << LastMessage();
  const Tensor expected = at::tensor({20.0F, 10.0F, 25.0F, 80.0F, 0.0F, 0.0F}).view({1, 1, 1, 6});
  EXPECT_TRUE(SameBits(std::get<Tensor>(args[11]), expected));
}

// At a whole place the change is that towards the next element; a pixel outside there is none.
TEST(DeformableConvolution, GradientsOfMovesAreThoseTowardsTheNextElement) {
  const Tensor x = at::tensor({10.0F, 20.0F, 40.0F, 80.0F}).view({1, 1, 1, 4});
  const Tensor offset = RowOfMoves({1, 0, 1, -4}, {1, 2, 1, 1});  // places 1, 1, 3 and -1
  const Args forward = OneTap(x, offset);
  Args args = {x, at::ones({1, 1, 1, 4}), at::ones({1, 1, 1, 4}), forward[1], offset};
  args.insert(args.end(), forward.begin() + 4, forward.begin() + 11);
  const Tensor of_x = at::full({1, 1, 1, 4}, 7.0F), of_weight = at::full({1, 1, 1, 1}, 7.0F);
  const Tensor of_offset = at::full({1, 3, 1, 4}, 7.0F), of_bias = at::full({1}, 7.0F);
  args.insert(args.end(), {of_x, of_weight, of_offset, of_bias});
  ASSERT_EQ(RunOperator(kMovedBack, args), 0) << LastMessage();
  EXPECT_TRUE(SameBits(of_x.flatten(), at::tensor({0.0F, 3.0F, 0.0F, 1.0F})));
  EXPECT_TRUE(SameBits(of_offset[0][0][0], at::tensor({20.0F, 40.0F, -80.0F, 0.0F})));
  EXPECT_TRUE(SameBits(of_offset[0][1][0], at::tensor({-20.0F, -40.0F, -80.0F, 0.0F})));
  EXPECT_TRUE(SameBits(of_offset[0][2][0], at::tensor({20.0F, 20.0F, 80.0F, 0.0F})));
  EXPECT_TRUE(SameBits(of_weight.flatten(), at::tensor({4.0F})));
  EXPECT_TRUE(SameBits(of_bias, at::tensor({4.0F})));
}

struct RefusedLayer {
  size_t position;
  Arg value;
  const char* sentence;  // follows the operator's name
};

void ExpectRefusedLayers(const char* name, const Args& valid,
                         const std::vector<RefusedLayer>& all) {
  ASSERT_EQ(RunOperator(name, valid), 0) << LastMessage();
  for (const RefusedLayer& refused : all) {
    Args args = valid;
    args[refused.position] = refused.value;
    EXPECT_EQ(RunOperator(name, args), kReject) << refused.sentence;
    EXPECT_EQ(LastMessage(), std::string(name) + ": " + refused.sentence);
  }
}

Args Layer() {
  return {Random({2, 4, 5, 5}),
          Random({6, 2, 3, 3}),
          Random({2, 54, 5, 5}),
          Random({6}),
          Integers{3, 3},
          Integers{1, 1, 1, 1},
          Integers{1, 1, 1, 1},
          Integers{1, 1, 1, 1},
          int64_t{2},
          int64_t{2},
          true,
          at::empty({2, 6, 5, 5}),
          at::empty({2, 4, 15, 15})};
}

TEST(DeformableConvolution, WhatThePageDoesNotAllowIsRefusedInPhaseOne) {
  ExpectRefusedLayers(
      kMoved, Layer(),
      {{0, Random({2, 4, 5}), "x has shape [2, 4, 5], expected 4 dims."},
       {0, Random({0, 4, 5, 5}), "x has no elements."},
       {0, Random({2, 4, 5, 5}, at::kDouble),
        "x has dtype Double, expected Float or Half or BFloat16."},
       {1, Random({6, 2, 3, 3}, at::kHalf), "weight has dtype Half, expected Float."},
       {1, Random({6, 4, 3, 3}), "weight has shape [6, 4, 3, 3], expected [6, 2, 3, 3]."},
       {2, Random({2, 36, 5, 5}), "offset has shape [2, 36, 5, 5], expected [2, 54, 5, 5]."},
       {2, Random({2, 54, 5, 5}, at::kHalf), "offset has dtype Half, expected Float."},
       {3, Random({5}), "biasOptional has shape [5], expected [6]."},
       {3, Random({6}, at::kHalf), "biasOptional has dtype Half, expected Float."},
       {4, Integers{3}, "kernelSize has 1 entries, expected 2."},
       {4, Integers{0, 3}, "kernelSize holds 0, expected at least 1 and at most 2147483647."},
       {4, Integers{64, 64},
        "kernelSize is [64, 64], expected 2048 elements at most, and 65535 at most in all channels "
        "of a group."},
       {4, Integers{8, 3}, "kernelSize is [8, 3], larger than the padded map."},
       {5, Integers{1, 1}, "stride has 2 entries, expected 4."},
       {5, Integers{1, 2, 1, 1}, "stride is [1, 2, 1, 1], expected 1 for images and channels."},
       {6, Integers{1, 1, -1, 1}, "padding holds -1, expected at least 0 and at most 2147483647."},
       {7, Integers{1, 1, 0, 1}, "dilation holds 0, expected at least 1 and at most 2147483647."},
       {8, int64_t{3}, "groups is 3, which does not divide 4 channels."},
       {8, int64_t{4}, "groups is 4, which does not divide 6 channels."},
       {9, int64_t{0}, "deformableGroups is 0, which does not divide 4 channels."},
       {10, false, "modulated is false, expected true."},
       {11, at::empty({2, 6, 5, 4}), "out has shape [2, 6, 5, 4], expected [2, 6, 5, 5]."},
       {11, at::empty({2, 6, 5, 5}, at::kHalf), "out has dtype Half, expected Float."},
       {12, at::empty({2, 4, 5, 5}),
        "deformOutOptional has shape [2, 4, 5, 5], expected [2, 4, 15, 15]."}});
}

TEST(DeformableConvolution, GradientsThatDoNotFitAreRefusedInPhaseOne) {
  const Args layer = Layer();
  Args args = {layer[0], Random({2, 6, 5, 5}), Random({2, 4, 15, 15}), layer[1], layer[2]};
  args.insert(args.end(), layer.begin() + 4, layer.begin() + 11);
  args.insert(args.end(), {at::empty({2, 4, 5, 5}), at::empty({6, 2, 3, 3}),
                           at::empty({2, 54, 5, 5}), at::empty({6})});
  ExpectRefusedLayers(
      kMovedBack, args,
      {{1, Random({2, 6, 4, 5}), "gradOutput has shape [2, 6, 4, 5], expected [2, 6, 5, 5]."},
       {1, Random({2, 6, 5, 5}, at::kHalf), "gradOutput has dtype Half, expected Float."},
       {2, Random({2, 4, 5, 5}), "offsetOut has shape [2, 4, 5, 5], expected [2, 4, 15, 15]."},
       {11, false, "modulated is false, expected true."},
       {12, at::empty({2, 4, 5, 4}), "gradInput has shape [2, 4, 5, 4], expected [2, 4, 5, 5]."},
       {13, at::empty({6, 2, 3, 3}, at::kHalf), "gradWeight has dtype Half, expected Float."},
       {14, at::empty({2, 36, 5, 5}),
        "gradOffset has shape [2, 36, 5, 5], expected [2, 54, 5, 5]."},
       {15, at::empty({5}), "gradBias has shape [5], expected [6]."}});
}

}  // namespace
}  // namespace acltape::opapi
