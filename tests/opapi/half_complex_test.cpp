// Complex numbers of two halves (dtype complex32), which two operators take on Atlas A2 by their
// pages: aclnnComplex makes them and aclnnReal reads them. In libtorch's tensors here they are
// halves in one more dim.
#include <cmath>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

// A tensor of complex32 whose numbers are the pairs of the last dim of `parts`.
struct Pairs {
  Dims sizes, strides;
  int64_t offset;
  Tensor parts;

  explicit Pairs(const Tensor& pairs) : offset(pairs.storage_offset() / 2), parts(pairs) {
    for (int64_t dim = 0; dim + 1 < pairs.dim(); ++dim) {
      sizes.push_back(pairs.size(dim));
      strides.push_back(pairs.stride(dim) / 2);
    }
  }
};

// Lets argument `i` of the call stand for the numbers.
void ReferToPairs(const PackedCall& call, int i, const Pairs& pairs) {
  ASSERT_EQ(aclInitTensor(call.tensor(i), pairs.sizes.data(), pairs.sizes.size(), ACL_COMPLEX32,
                          pairs.strides.data(), pairs.offset, ACL_FORMAT_ND, pairs.sizes.data(),
                          pairs.sizes.size(), StorageOf(pairs.parts)),
            OK);
}

void ExecutePairs(PackedCall& call) {
  const aclrtStream stream = TestStream();
  ASSERT_EQ(call.Prepare(), OK) << TakeMessage();
  ASSERT_EQ(call.Launch(stream), OK) << TakeMessage();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS) << TakeMessage();
}

// The views that operators must cope with, as pairs of halves.
std::vector<Tensor> ViewsOfPairs() {
  const Tensor whole = Random({4, 6, 2}, at::kHalf);
  whole[0][0][0] = INFINITY;
  whole[1][2][1] = NAN;
  return {whole,
          whole.transpose(0, 1),
          whole.slice(0, 1, 4, 2).slice(1, 1, 6, 3),
          whole.select(0, 2),
          Random({2}, at::kHalf),
          at::empty({0, 3, 2}, at::kHalf)};
}

TEST(HalfComplex, RealPartsAreHalves) {
  for (const Tensor& pairs : ViewsOfPairs()) {
    Dims sizes = pairs.sizes().vec();
    sizes.pop_back();
    const Tensor stand_in = at::empty(sizes, at::kFloat);
    for (const at::ScalarType dtype : {at::kHalf, at::kFloat}) {
      const Tensor out = Unwritten(at::empty(sizes, dtype));
      PackedCall call("aclnnReal", {stand_in, out});
      ReferToPairs(call, 0, Pairs(pairs));
      ExecutePairs(call);
      EXPECT_TRUE(SameBits(out, pairs.select(-1, 0).to(dtype))) << at::IntArrayRef(sizes);
    }
  }
}

TEST(HalfComplex, TwoTensorsOfHalvesMakeThem) {
  for (const Tensor& out : ViewsOfPairs()) {
    Dims sizes = out.sizes().vec();
    sizes.pop_back();
    const Tensor real = Random(sizes, at::kHalf), imaginary = Random(sizes, at::kHalf);
    PackedCall call("aclnnComplex", {real, imaginary, at::empty(sizes, at::kFloat)});
    ReferToPairs(call, 2, Pairs(out));
    ExecutePairs(call);
    EXPECT_TRUE(SameBits(out.select(-1, 0).contiguous(), real));
    EXPECT_TRUE(SameBits(out.select(-1, 1).contiguous(), imaginary));
  }
}

TEST(HalfComplex, TheirPartsBroadcast) {
  const Tensor real = Random({3, 1}, at::kHalf), imaginary = Random({4}, at::kHalf);
  const Tensor out = Unwritten(at::empty({3, 4, 2}, at::kHalf));
  PackedCall call("aclnnComplex", {real, imaginary, at::empty({3, 4}, at::kFloat)});
  ReferToPairs(call, 2, Pairs(out));
  ExecutePairs(call);
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t column = 0; column < 4; ++column) {
      EXPECT_TRUE(SameBits(out[row][column][0], real[row][0]));
      EXPECT_TRUE(SameBits(out[row][column][1], imaginary[column]));
    }
  }
}

// The parts may lie in the memory of the result: here the real parts are those that it holds.
TEST(HalfComplex, AResultMayLieOverItsParts) {
  const Tensor out = Random({5, 2}, at::kHalf), imaginary = Random({5}, at::kHalf);
  const Tensor before = out.clone();
  PackedCall call("aclnnComplex", {out.select(1, 1), imaginary, at::empty({5}, at::kFloat)});
  ReferToPairs(call, 2, Pairs(out));
  ExecutePairs(call);
  EXPECT_TRUE(SameBits(out.select(1, 0).contiguous(), before.select(1, 1).contiguous()));
  EXPECT_TRUE(SameBits(out.select(1, 1).contiguous(), imaginary));
}

std::string RefusalOfPairs(const char* name, const Args& args,
                           std::initializer_list<int> positions) {
  const Tensor pairs = at::zeros({3, 2}, at::kHalf);
  PackedCall call(name, args);
  for (const int i : positions) ReferToPairs(call, i, Pairs(pairs));
  EXPECT_EQ(call.Prepare(), kReject) << name;
  return TakeMessage();
}

TEST(HalfComplex, WhatThePagesLeaveOutIsRefused) {
  const Tensor floats = Random({3}), halves = Random({3}, at::kHalf);
  const Tensor bools = at::zeros({3}, at::kBool), two = at::empty({2}, at::kHalf);
  EXPECT_EQ(RefusalOfPairs("aclnnComplex", {floats, floats, floats}, {2}),
            "aclnnComplex: real is not float16, but out is complex32.");
  EXPECT_EQ(RefusalOfPairs("aclnnComplex", {halves, floats, floats}, {2}),
            "aclnnComplex: imag is not float16, but out is complex32.");
  EXPECT_EQ(RefusalOfPairs("aclnnReal", {floats, at::empty({3}, at::kInt)}, {0}),
            "aclnnReal: out has dtype Int, which cannot hold a result of dtype Half.");
  EXPECT_EQ(RefusalOfPairs("aclnnReal", {floats, two}, {0}),
            "aclnnReal: out has shape [2], expected [3].");
  EXPECT_EQ(RefusalOfPairs("aclnnReal", {floats, floats}, {0, 1}),
            "aclnnReal: out has dtype 33, which the soft device lacks.");
  const std::string lacks = " has dtype 33, which the soft device lacks.";
  EXPECT_EQ(RefusalOfPairs("aclnnInplaceFillScalar", {floats, 1}, {0}),
            "aclnnInplaceFillScalar: selfRef" + lacks);
  EXPECT_EQ(RefusalOfPairs("aclnnInplaceZero", {floats}, {0}), "aclnnInplaceZero: selfRef" + lacks);
  EXPECT_EQ(RefusalOfPairs("aclnnInplaceCopy", {floats, floats}, {0, 1}),
            "aclnnInplaceCopy: selfRef" + lacks);
  EXPECT_EQ(RefusalOfPairs("aclnnEqScalar", {floats, 1, bools}, {0}),
            "aclnnEqScalar: self" + lacks);
  EXPECT_EQ(RefusalOfPairs("aclnnCast", {floats, at::kFloat, floats}, {0}),
            "aclnnCast: self" + lacks);
}

}  // namespace
}  // namespace acltape::opapi
