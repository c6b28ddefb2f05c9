// Integers of 4 bits: two in a byte (dtype int4), the first in the lower half, or eight in an
// int32. References are computed in double precision from the integers one by one.
#include <cmath>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

// Whole numbers between -8 and 7, of dtype int8.
Tensor Nibbles(const Dims& sizes) {
  return Random(sizes, at::kFloat, -8.49, 7.49).round().to(at::kChar);
}

// Two integers in a byte, in row-major order.
std::vector<uint8_t> TwoInAByte(const Tensor& integers) {
  const Tensor dense = integers.to(at::kChar).contiguous();
  const auto* from = dense.data_ptr<int8_t>();
  std::vector<uint8_t> bytes((dense.numel() + 1) / 2, 0);
  for (int64_t i = 0; i < dense.numel(); ++i) {
    bytes[i / 2] = static_cast<uint8_t>(bytes[i / 2] | (from[i] & 15) << (4 * (i % 2)));
  }
  return bytes;
}

// Eight integers in an int32 along the last dim.
Tensor EightInAWord(const Tensor& integers) {
  Dims sizes = integers.sizes().vec();
  sizes.back() /= 8;
  const Tensor packed = at::empty(sizes, at::kInt);
  const std::vector<uint8_t> bytes = TwoInAByte(integers);
  std::memcpy(packed.data_ptr(), bytes.data(), bytes.size());
  return packed;
}

Tensor FromBytes(const std::vector<uint8_t>& bytes, const Dims& sizes) {
  const Tensor integers = at::empty(sizes, at::kChar);
  auto* to = integers.data_ptr<int8_t>();
  for (int64_t i = 0; i < integers.numel(); ++i) {
    const int bits = bytes[i / 2] >> (4 * (i % 2)) & 15;
    to[i] = static_cast<int8_t>(bits < 8 ? bits : bits - 16);
  }
  return integers;
}

// An int4 tensor in memory of its own; of a transposed one the first dim lies dense.
struct FourBitTensor {
  Dims sizes, strides;
  std::vector<uint8_t> bytes;

  explicit FourBitTensor(const Tensor& integers, bool transposed = false)
      : sizes(integers.sizes().vec()),
        strides(at::detail::defaultStrides(integers.sizes())),
        bytes(TwoInAByte(transposed ? integers.t() : integers)) {
    if (transposed) strides = {1, sizes[0]};
  }
};

// Lets argument `i` of the call stand for the tensor.
void ReferTo(const PackedCall& call, int i, FourBitTensor& tensor) {
  ASSERT_EQ(aclInitTensor(call.tensor(i), tensor.sizes.data(), tensor.sizes.size(), ACL_INT4,
                          tensor.strides.data(), 0, ACL_FORMAT_ND, tensor.sizes.data(),
                          tensor.sizes.size(), tensor.bytes.data()),
            OK);
}

void Execute(PackedCall& call) {
  const aclrtStream stream = TestStream();
  ASSERT_EQ(call.Prepare(), OK) << TakeMessage();
  ASSERT_EQ(call.Launch(stream), OK) << TakeMessage();
  ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS) << TakeMessage();
}

void ExpectNear(const Tensor& actual, const Tensor& expected, double relative) {
  const Tensor a = actual.to(at::kDouble), b = expected.to(at::kDouble);
  const double magnitude = b.abs().max().item<double>();
  EXPECT_LE((a - b).abs().max().item<double>(), relative * magnitude) << actual << expected;
}

TEST(FourBits, WeightsOfGroupsMultiplyAsGgmlDescribesThem) {
  constexpr int64_t kInner = 96, kColumns = 6, kGroup = 32;
  for (const bool transposed : {false, true}) {
    for (const int64_t group : {int64_t{0}, kGroup}) {
      const Tensor x = Random({5, kInner}, at::kHalf), weight = Nibbles({kInner, kColumns});
      const int64_t groups = group == 0 ? 1 : kInner / group;
      const Tensor scale = Random({groups, kColumns}, at::kHalf, 0.1, 1);
      const Tensor y = at::empty({5, kColumns}, at::kHalf);
      PackedCall call("aclnnWeightQuantBatchMatmulV2",
                      {x, at::empty({kInner, kColumns}, at::kChar), scale, Null{}, Null{}, Null{},
                       Null{}, group, y});
      FourBitTensor packed(weight, transposed);
      ReferTo(call, 1, packed);
      Execute(call);
      Tensor wide = weight.to(at::kDouble);
      for (int64_t k = 0; k < kInner; ++k) {
        wide[k] = (wide[k] * scale[group == 0 ? 0 : k / group].to(at::kDouble)).to(at::kHalf);
      }
      ExpectNear(y, at::matmul(x.to(at::kDouble), wide), 2e-3);
    }
  }
}

TEST(FourBits, AWeightIsPackedTwoInAByte) {
  const Tensor whole = Nibbles({4, 12});
  FourBitTensor packed(at::zeros({4, 12}, at::kChar));
  PackedCall call("aclnnConvertWeightToINT4Pack",
                  {whole.to(at::kInt), at::empty({4, 12}, at::kChar)});
  ReferTo(call, 1, packed);
  Execute(call);
  EXPECT_EQ(packed.bytes, TwoInAByte(whole));
}

TEST(FourBits, BothFactorsOfAQuantisedProductMayHaveThem) {
  constexpr int64_t kRows = 3, kInner = 16, kColumns = 8;
  for (const bool turned : {false, true}) {
    for (const bool words : {false, true}) {
      const Tensor x1 = Nibbles({kRows, kInner});
      const Tensor x2 = Nibbles(turned ? Dims{kColumns, kInner} : Dims{kInner, kColumns});
      const Tensor scale = Random({kColumns}, at::kFloat, 0.1, 1);
      const Tensor row_scale = Random({kRows}, at::kFloat, 0.5, 2);
      const Tensor bias = at::randint(-9, 9, {kColumns}, at::kInt);
      const Tensor out = at::empty({kRows, kColumns}, at::kBFloat16);
      const Args args = {words ? EightInAWord(x1) : x1,
                         words ? EightInAWord(x2) : x2,
                         row_scale,
                         scale,
                         Null{},
                         Null{},
                         Null{},
                         Null{},
                         bias,
                         false,
                         turned,
                         int64_t{0},
                         out};
      PackedCall call("aclnnQuantMatmulV5", args);
      FourBitTensor first(x1), second(x2);
      if (!words) {
        ReferTo(call, 0, first);
        ReferTo(call, 1, second);
      }
      Execute(call);
      const Tensor wide = turned ? x2.t() : x2;
      const Tensor sum =
          at::matmul(x1.to(at::kDouble), wide.to(at::kDouble)) + bias.to(at::kDouble);
      ExpectNear(out, sum * scale * row_scale.unsqueeze(-1), 8e-3);
    }
  }
}

TEST(FourBits, GroupsOfTheInnerDimHaveScalesAndOffsets) {
  constexpr int64_t kRows = 3, kInner = 1024, kColumns = 256, kGroups = 4;
  const Tensor x1 = Nibbles({kRows, kInner}), x2 = Nibbles({kColumns, kInner});
  const Tensor row_scale = Random({kRows, 1}, at::kFloat, 0.5, 2);
  const Tensor scale = Random({kGroups, kColumns}, at::kFloat, 0.1, 1);
  const Tensor offset = Random({kGroups, kColumns}, at::kHalf, -3, 3);
  const Tensor out = at::empty({kRows, kColumns}, at::kBFloat16);
  PackedCall call("aclnnQuantMatmulV5", {x1, x2, row_scale, scale, Null{}, Null{}, offset, Null{},
                                         Null{}, false, true, int64_t{256}, out});
  FourBitTensor first(x1), second(x2);
  ReferTo(call, 0, first);
  ReferTo(call, 1, second);
  Execute(call);
  Tensor expected = at::zeros({kRows, kColumns}, at::kDouble);
  for (int64_t group = 0; group < kGroups; ++group) {
    const Tensor a = x1.narrow(1, group * 256, 256).to(at::kDouble);
    const Tensor b = x2.narrow(1, group * 256, 256).to(at::kDouble).t();
    const Tensor shift = a.sum(1, /*keepdim=*/true) * offset[group].to(at::kDouble);
    expected += (at::matmul(a, b) - shift) * scale[group].to(at::kDouble);
  }
  ExpectNear(out, expected * row_scale, 8e-3);
}

TEST(FourBits, BlocksOfBytesHaveScalesOfBothFactors) {
  constexpr int64_t kRows = 2, kInner = 512, kColumns = 256, kBlock = 128;
  const Tensor x1 = at::randint(-9, 9, {kRows, kInner}, at::kChar);
  const Tensor x2 = at::randint(-9, 9, {kColumns, kInner}, at::kChar);
  const Tensor first = Random({kRows, kInner / kBlock}, at::kFloat, 0.5, 2);
  const Tensor second = Random({kColumns / kBlock, kInner / kBlock}, at::kFloat, 0.5, 2);
  const Tensor bias = Random({kColumns}, at::kFloat);
  const int64_t groups = 128 | int64_t{128} << 16 | int64_t{1} << 32;
  const Tensor out = at::empty({kRows, kColumns}, at::kBFloat16);
  PackedCall call("aclnnQuantMatmulV5", {x1, x2, first, second, Null{}, Null{}, Null{}, Null{},
                                         bias, false, true, groups, out});
  Execute(call);
  Tensor expected = at::zeros({kRows, kColumns}, at::kDouble);
  for (int64_t block = 0; block < kInner / kBlock; ++block) {
    const Tensor a = x1.narrow(1, block * kBlock, kBlock).to(at::kDouble);
    const Tensor b = x2.narrow(1, block * kBlock, kBlock).to(at::kDouble).t();
    for (int64_t column = 0; column < kColumns; ++column) {
      expected.select(1, column) += at::matmul(a, b.select(1, column)) *
                                    first.select(1, block).to(at::kDouble) *
                                    second[column / kBlock][block].item<double>();
    }
  }
  ExpectNear(out, expected + bias.to(at::kDouble), 8e-3);
}

TEST(FourBits, QuantisationGivesThemTwoInAByteAndEightInAWord) {
  const Tensor x = Random({3, 16}, at::kFloat, -4, 4), scale = Random({16}, at::kFloat, 1, 3);
  const Tensor expected = (x * scale).round().clamp(-8, 7).to(at::kChar);
  const Tensor words = at::empty({3, 2}, at::kInt);
  ASSERT_EQ(RunOperator("aclnnAscendQuant", {x, scale, Null{}, false, "round", 3, words}), 0)
      << LastMessage();
  EXPECT_TRUE(SameBits(words, EightInAWord(expected)));
  PackedCall call("aclnnAscendQuantV3",
                  {x, scale, Null{}, false, "round", 29, -1, at::empty({3, 16}, at::kChar)});
  FourBitTensor packed(at::zeros({3, 16}, at::kChar));
  ReferTo(call, 7, packed);
  Execute(call);
  EXPECT_EQ(packed.bytes, TwoInAByte(expected));

  const Tensor back = at::empty({3, 16}, at::kHalf);
  PackedCall anti("aclnnAscendAntiQuant",
                  {at::empty({3, 16}, at::kChar), scale, Null{}, int64_t{1}, false, back});
  ReferTo(anti, 0, packed);
  Execute(anti);
  ExpectNear(back, expected * scale, 1e-3);
}

TEST(FourBits, RowsAreScaledToTheirRange) {
  const Tensor x = Random({3, 16}, at::kFloat, -4, 4);
  const Tensor words = at::empty({3, 2}, at::kInt), scale = at::empty({3}, at::kFloat);
  ASSERT_EQ(RunOperator("aclnnDynamicQuant", {x, Null{}, words, scale}), 0) << LastMessage();
  const Tensor step = x.abs().amax(1) / 7;
  EXPECT_TRUE(SameBits(scale, step));
  EXPECT_TRUE(SameBits(words, EightInAWord((x / step.unsqueeze(1)).round())));

  const Tensor shift = at::empty({3}, at::kFloat);
  PackedCall call("aclnnDynamicQuantV2",
                  {x, Null{}, Null{}, int64_t{29}, at::empty({3, 16}, at::kChar), scale, shift});
  FourBitTensor packed(at::zeros({3, 16}, at::kChar));
  ReferTo(call, 4, packed);
  Execute(call);
  const Tensor most = x.amax(1), range = (most - x.amin(1)) / 15;
  ExpectNear(scale, range, 1e-6);
  ExpectNear(shift, 7 - most / range, 1e-6);
  const Tensor integers = FromBytes(packed.bytes, {3, 16});
  EXPECT_EQ(integers.amin().item<int>(), -8);
  EXPECT_EQ(integers.amax().item<int>(), 7);
  ExpectNear((integers.to(at::kFloat) - shift.unsqueeze(1)) * scale.unsqueeze(1), x, 0.1);
}

TEST(FourBits, FormsThatCannotBeAreRefusedWithASentence) {
  const Tensor x = Random({5, 32}, at::kHalf);
  PackedCall odd("aclnnConvertWeightToINT4Pack",
                 {at::zeros({2, 3}, at::kInt), at::empty({2, 3}, at::kChar)});
  FourBitTensor three(Nibbles({2, 3}));
  ReferTo(odd, 1, three);
  EXPECT_EQ(odd.Prepare(), kReject);
  EXPECT_NE(TakeMessage().find("odd size"), std::string::npos);

  EXPECT_EQ(
      RunOperator("aclnnDynamicQuant", {x, Null{}, at::empty({5, 32}, at::kByte), at::empty({5})}),
      kReject);
  EXPECT_EQ(LastMessage(), "aclnnDynamicQuant: yOut is not of dtype int8.");

  PackedCall sum("aclnnAdd", {at::zeros({4}, at::kChar), at::zeros({4}, at::kChar), at::Scalar(1),
                              at::zeros({4}, at::kChar)});
  FourBitTensor four(Nibbles({4}));
  ReferTo(sum, 0, four);
  EXPECT_EQ(sum.Prepare(), kReject);
  EXPECT_NE(TakeMessage().find("dtype 29"), std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
