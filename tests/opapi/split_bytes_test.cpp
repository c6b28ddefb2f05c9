// Products of int8 with int4, which a device computes with halves of the bytes, and products whose
// results are the integers themselves. References are loops in double precision.
#include <cmath>
#include <cstring>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

Tensor WholeBytes(const Dims& sizes, double low, double high) {
  return Random(sizes, at::kFloat, low - 0.49, high + 0.49).round().to(at::kChar);
}

// Eight integers of 4 bits of the last dim in an int32, the first one lowest.
Tensor WordsOf(const Tensor& integers) {
  const Tensor dense = integers.contiguous();
  Dims sizes = dense.sizes().vec();
  sizes.back() /= 8;
  const Tensor words = at::zeros(sizes, at::kInt);
  const auto* from = dense.data_ptr<int8_t>();
  auto* to = words.data_ptr<int32_t>();
  for (int64_t i = 0; i < dense.numel(); ++i) {
    const uint32_t bits = static_cast<uint32_t>(from[i] & 15) << (4 * (i % 8));
    to[i / 8] = static_cast<int32_t>(static_cast<uint32_t>(to[i / 8]) | bits);
  }
  return words;
}

// Scales that a device's parameter holds without loss, and those parameters: the bits of the float.
Tensor CoarseScales(const Dims& sizes) {
  const Tensor scales = Random(sizes, at::kFloat, 0.01, 0.1);
  auto* values = scales.data_ptr<float>();
  for (int64_t i = 0; i < scales.numel(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof bits);
    bits &= 0xFFFFE000u;
    std::memcpy(values + i, &bits, sizeof bits);
  }
  return scales;
}
Tensor DeviceScales(const Tensor& scales) {
  const Tensor parameters = at::empty(scales.sizes(), at::kLong);
  for (int64_t i = 0; i < scales.numel(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, scales.data_ptr<float>() + i, sizeof bits);
    parameters.data_ptr<int64_t>()[i] = int64_t{bits} | int64_t{1} << 46;
  }
  return parameters;
}

// Lets argument `i` of the call be uint64, in the memory of the tensor of int64.
void MakeUnsigned(const PackedCall& call, int i, const Tensor& tensor) {
  ASSERT_EQ(aclInitTensor(call.tensor(i), tensor.sizes().data(), tensor.dim(), ACL_UINT64, nullptr,
                          0, ACL_FORMAT_ND, tensor.sizes().data(), tensor.dim(), tensor.data_ptr()),
            OK);
}

void ExecuteSplit(PackedCall& call) { ASSERT_EQ(RunPacked(call), 0) << LastMessage(); }

void ExpectCloseTo(const Tensor& actual, const Tensor& expected, double relative) {
  const Tensor a = actual.to(at::kDouble), b = expected.to(at::kDouble);
  EXPECT_LE((a - b).abs().max().item<double>(), relative * b.abs().max().item<double>())
      << actual << expected;
}

// One product: its factors, its scales and what the caller adds for the 8 that a device leaves out.
struct SplitProduct {
  int64_t rows, inner, columns, group;
  Tensor x1, x2, row_scale, scale, offset;  // x2: [inner, columns], one integer each

  SplitProduct(int64_t rows_, int64_t inner_, int64_t columns_, int64_t group_)
      : rows(rows_), inner(inner_), columns(columns_), group(group_) {
    x1 = WholeBytes({rows, inner}, -128, 127);
    x2 = WholeBytes({inner, columns}, -8, 7);
    row_scale = Random(group == 0 ? Dims{rows} : Dims{rows, 1}, at::kFloat, 0.5, 2);
    scale = CoarseScales(group == 0 ? Dims{columns} : Dims{inner / group, columns});
    offset = at::zeros({columns}, at::kFloat);
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k) sum += 8 * Weight(k, column);
      offset[column] = sum;
    }
  }

  double Weight(int64_t k, int64_t column) const {
    const int64_t place = group == 0 ? column : k / group * columns + column;
    const int64_t factor = scale.numel() == 1 ? 0 : place;
    return x2.data_ptr<int8_t>()[k * columns + column] * double{scale.data_ptr<float>()[factor]};
  }

  // x1 @ (x2 * x2Scale) * x1Scale, where yOffset is what the page says.
  Tensor Expected() const {
    const Tensor result = at::empty({rows, columns}, at::kDouble);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += x1.data_ptr<int8_t>()[row * inner + k] * Weight(k, column);
        }
        result[row][column] = sum * row_scale.data_ptr<float>()[row];
      }
    }
    return result;
  }

  Args Call(const Tensor& packed, bool transposed, const Tensor& out) const {
    return {x1,     packed, row_scale, DeviceScales(scale), Null{}, Null{}, Null{},
            offset, Null{}, false,     transposed,          group,  out};
  }
};

TEST(SplitBytes, ColumnsHaveScales) {
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    for (const bool transposed : {false, true}) {
      const SplitProduct product(3, 24, 16, 0);
      const Tensor packed = WordsOf(transposed ? product.x2.t() : product.x2);
      const Tensor out = Unwritten(at::empty({3, 16}, dtype));
      const Args args = product.Call(packed, transposed, out);
      PackedCall call("aclnnQuantMatmulV5", args);
      MakeUnsigned(call, 3, std::get<Tensor>(args[3]));
      ExecuteSplit(call);
      ExpectCloseTo(out, product.Expected(), 8e-3);
    }
  }
}

TEST(SplitBytes, GroupsOfTheInnerDimHaveScales) {
  const SplitProduct product(2, 512, 24, 256);
  const Tensor packed = WordsOf(product.x2), out = at::empty({2, 24}, at::kBFloat16);
  const Args args = product.Call(packed, false, out);
  PackedCall call("aclnnQuantMatmulV5", args);
  MakeUnsigned(call, 3, std::get<Tensor>(args[3]));
  ExecuteSplit(call);
  ExpectCloseTo(out, product.Expected(), 8e-3);
}

// One scale for all, and another offset than the page asks for: what is missing to 8 times the sum
// of the weights is missing in the result.
TEST(SplitBytes, TheCallersOffsetStandsForTheEight) {
  SplitProduct product(2, 16, 8, 0);
  product.scale = CoarseScales({1});
  product.offset = Random({8}, at::kFloat);
  Tensor expected = product.Expected();
  for (int64_t column = 0; column < 8; ++column) {
    double sum = product.offset[column].item<float>();
    for (int64_t k = 0; k < 16; ++k) sum -= 8 * product.Weight(k, column);
    for (int64_t row = 0; row < 2; ++row) {
      expected[row][column] += sum * product.row_scale[row].item<float>();
    }
  }
  const Tensor out = at::empty({2, 8}, at::kHalf);
  const Args args = product.Call(WordsOf(product.x2), false, out);
  PackedCall call("aclnnQuantMatmulV5", args);
  MakeUnsigned(call, 3, std::get<Tensor>(args[3]));
  ExecuteSplit(call);
  ExpectCloseTo(out, expected, 2e-3);
}

// Blocks of 16 rows and 8 words of columns, padded with zeros.
Tensor WordsInBlocks(const Tensor& words) {
  const int64_t rows = words.size(0), columns = words.size(1);
  const int64_t down = (rows + 15) / 16, right = (columns + 7) / 8;
  const Tensor blocks = at::zeros({right, down, 16, 8}, at::kInt);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      blocks[column / 8][row / 16][row % 16][column % 8] = words[row][column];
    }
  }
  return blocks;
}

TEST(SplitBytes, WeightsMayLieInBlocks) {
  for (const bool transposed : {false, true}) {
    const SplitProduct product(3, 40, 72, 0);
    const Tensor packed = WordsOf(transposed ? product.x2.t() : product.x2);
    const Tensor blocks = WordsInBlocks(packed), out = Unwritten(at::empty({3, 72}, at::kHalf));
    const Args args = product.Call(packed, transposed, out);
    for (const bool as_storage : {false, true}) {
      PackedCall call("aclnnQuantMatmulWeightNz", args);
      MakeUnsigned(call, 3, std::get<Tensor>(args[3]));
      const Dims storage = blocks.sizes().vec(),
                 sizes = as_storage ? storage : packed.sizes().vec();
      ASSERT_EQ(
          aclInitTensor(call.tensor(1), sizes.data(), sizes.size(), ACL_INT32, nullptr, 0,
                        ACL_FORMAT_FRACTAL_NZ, storage.data(), storage.size(), blocks.data_ptr()),
          OK);
      ExecuteSplit(call);
      ExpectCloseTo(out, product.Expected(), 2e-3);
    }
  }
}

std::string RefusalOfSplit(const Args& args, const char* name = "aclnnQuantMatmulV5") {
  PackedCall call(name, args);
  const auto* scale = std::get_if<Tensor>(&args[3]);
  if (scale != nullptr && scale->scalar_type() == at::kLong) MakeUnsigned(call, 3, *scale);
  EXPECT_EQ(call.Prepare(), kReject);
  return TakeMessage();
}

TEST(SplitBytes, WhatThePageLeavesOutIsRefused) {
  const SplitProduct product(3, 24, 16, 0);
  const Tensor packed = WordsOf(product.x2), out = at::empty({3, 16}, at::kHalf);
  const auto with = [&](int i, const Arg& value) {
    Args args = product.Call(packed, false, out);
    args[i] = value;
    return RefusalOfSplit(args);
  };
  const Tensor column = Random({16});
  EXPECT_EQ(with(2, Null{}), "aclnnQuantMatmulV5: x1Scale is absent, but x1 is int8 and x2 int4.");
  EXPECT_EQ(with(7, Null{}), "aclnnQuantMatmulV5: yOffset is absent, but x1 is int8 and x2 int4.");
  EXPECT_EQ(with(6, column), "aclnnQuantMatmulV5: x2Offset is given, but x1 is int8 and x2 int4.");
  EXPECT_EQ(with(8, column), "aclnnQuantMatmulV5: bias is given, but x1 is int8 and x2 int4.");
  EXPECT_EQ(with(3, column), "aclnnQuantMatmulV5: x2Scale is not uint64.");
  EXPECT_EQ(with(4, column), "aclnnQuantMatmulV5: yScale is given, which the soft device lacks.");
  EXPECT_EQ(with(7, Random({15})), "aclnnQuantMatmulV5: yOffset has shape [15], expected [16].");
  EXPECT_EQ(with(9, true), "aclnnQuantMatmulV5: transposeX1 must be false for int8 with int4.");
  EXPECT_EQ(with(11, int64_t{128}), "aclnnQuantMatmulV5: groupSize must be 0 or 256.");
  EXPECT_EQ(with(11, int64_t{256}),
            "aclnnQuantMatmulV5: x1 has an inner dim that is no multiple of 256.");
  EXPECT_EQ(with(0, WholeBytes({3, 23}, -128, 127)),
            "aclnnQuantMatmulV5: shapes [3, 23] and [24, 16] do not multiply.");
  EXPECT_EQ(with(12, at::empty({3, 16})),
            "aclnnQuantMatmulV5: out has dtype Float, expected Half or BFloat16.");
  EXPECT_EQ(with(1, product.x2),
            "aclnnQuantMatmulV5: yOffset is given, but only int8 with int4 in int32 takes it.");

  const SplitProduct grouped(2, 256, 8, 256);
  Args args = grouped.Call(WordsOf(grouped.x2.t()), true, at::empty({2, 8}, at::kHalf));
  EXPECT_EQ(RefusalOfSplit(args),
            "aclnnQuantMatmulV5: transposeX2 must be false for groups of 256.");
  args = grouped.Call(WordsOf(grouped.x2), false, at::empty({2, 8}, at::kHalf));
  EXPECT_EQ(RefusalOfSplit(args, "aclnnQuantMatmulWeightNz"),
            "aclnnQuantMatmulWeightNz: groupSize must be 0.");
  const SplitProduct odd(1, 7, 8, 0);
  EXPECT_EQ(RefusalOfSplit(odd.Call(WordsOf(odd.x2), false, at::empty({1, 8}, at::kHalf))),
            "aclnnQuantMatmulV5: x1 has an inner dim of an odd size.");
  SplitProduct wide(1, 2, 8, 0);
  wide.x1 = at::zeros({1, 29696}, at::kChar);
  wide.scale = CoarseScales({116, 8});
  wide.row_scale = at::ones({1, 1});
  wide.group = 256;
  EXPECT_EQ(RefusalOfSplit(
                wide.Call(at::zeros({29696, 1}, at::kInt), false, at::empty({1, 8}, at::kHalf))),
            "aclnnQuantMatmulV5: x1 has an inner dim that is not less than 29576.");
}

// The sums themselves, which no scale changes; the greatest ones do not fit a float.
TEST(ExactProducts, ResultsInInt32AreTheSums) {
  const Tensor x1 = at::full({2, 3000}, -128, at::kChar), x2 = at::full({3000, 3}, -128, at::kChar);
  x1[0][0] = 127;
  x2[0][1] = 1;
  const Tensor bias = at::tensor({1, -2, 3}, at::kInt), scale = Random({3}, at::kBFloat16);
  const Tensor expected = at::empty({2, 3}, at::kInt);
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t column = 0; column < 3; ++column) {
      int64_t sum = bias[column].item<int>();
      for (int64_t k = 0; k < 3000; ++k) {
        sum += int64_t{x1[row][k].item<int8_t>()} * x2[k][column].item<int8_t>();
      }
      expected[row][column] = sum;
    }
  }
  const Tensor out = Unwritten(expected);
  ASSERT_EQ(RunOperator("aclnnQuantMatmulV3", {x1, x2, scale, Null{}, bias, false, false, out}), 0)
      << LastMessage();
  EXPECT_TRUE(SameBits(out, expected));
}

TEST(ExactProducts, WhatThePageLeavesOutIsRefused) {
  const Tensor x1 = WholeBytes({2, 8}, -9, 9), x2 = WholeBytes({8, 3}, -9, 9);
  const Tensor scale = Random({3}), row_scale = Random({2}), out = at::empty({2, 3}, at::kInt);
  const auto refusal = [&](const Arg& factor, const Arg& offset, const Arg& rows, const Arg& bias) {
    EXPECT_EQ(
        RunOperator("aclnnQuantMatmulV4", {x1, x2, factor, offset, rows, bias, false, false, out}),
        kReject);
    return LastMessage();
  };
  EXPECT_EQ(refusal(scale, Null{}, row_scale, Null{}),
            "aclnnQuantMatmulV4: pertokenScaleOptional is given, but out is int32.");
  EXPECT_EQ(refusal(scale, scale, Null{}, Null{}),
            "aclnnQuantMatmulV4: offset is given, but out is int32.");
  EXPECT_EQ(refusal(scale, Null{}, Null{}, scale),
            "aclnnQuantMatmulV4: bias is not int32, but out is int32.");
  EXPECT_EQ(refusal(DeviceScales(scale), Null{}, Null{}, Null{}),
            "aclnnQuantMatmulV4: scale is of 64 bits, but out is int32.");
  EXPECT_EQ(RunOperator("aclnnQuantMatmulV3",
                        {WordsOf(x1), WordsOf(WholeBytes({8, 8}, -8, 7)), Random({8}), Null{},
                         Null{}, false, false, at::empty({2, 8}, at::kInt)}),
            kReject);
  EXPECT_EQ(LastMessage(), "aclnnQuantMatmulV3: out is int32, but x1 is int4.");
}

}  // namespace
}  // namespace acltape::opapi
