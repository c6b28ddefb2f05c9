// Weights of integers whose product with floats is quantised to int8, and weights whose factors are
// parameters of the device, by the page of aclnnWeightQuantBatchMatmulV2. References are loops in
// double precision over numbers that halves hold without loss.
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Dims = std::vector<int64_t>;

Tensor IntegersBetween(const Dims& sizes, int64_t low, int64_t high, at::ScalarType dtype) {
  return at::randint(low, high + 1, sizes, at::kFloat).to(dtype);
}

// A parameter of the device: the upper 19 bits of a float, and an offset in bits 37 to 45.
int64_t ParameterOf(float scale, int64_t offset) {
  uint32_t bits;
  std::memcpy(&bits, &scale, sizeof bits);
  return int64_t{bits & 0xFFFFE000u} | (offset & 0x1FF) << 37 | int64_t{1} << 46;
}

Tensor ParametersOf(const Tensor& scales, const Tensor& offsets) {
  const Tensor parameters = at::empty(scales.sizes(), at::kLong);
  for (int64_t i = 0; i < scales.numel(); ++i) {
    parameters.data_ptr<int64_t>()[i] = ParameterOf(
        scales.data_ptr<float>()[i], static_cast<int64_t>(offsets.data_ptr<float>()[i]));
  }
  return parameters;
}

// Lets arguments of the call that are int64 be uint64.
void MakeAllUnsigned(const PackedCall& call, const Args& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const auto* tensor = std::get_if<Tensor>(&args[i]);
    if (tensor == nullptr || tensor->scalar_type() != at::kLong) continue;
    ASSERT_EQ(aclInitTensor(call.tensor(static_cast<int>(i)), tensor->sizes().data(), tensor->dim(),
                            ACL_UINT64, nullptr, 0, ACL_FORMAT_ND, tensor->sizes().data(),
                            tensor->dim(), tensor->data_ptr()),
              OK);
  }
}

void ExecuteUnsigned(const char* name, const Args& args) {
  PackedCall call(name, args);
  MakeAllUnsigned(call, args);
  ASSERT_EQ(RunPacked(call), 0) << LastMessage();
}

constexpr std::string_view kWithPrecision = "aclnnWeightQuantBatchMatmulV3";
constexpr const char* kWeightOperators[] = {"aclnnWeightQuantBatchMatmulV2", kWithPrecision.data(),
                                            "aclnnWeightQuantBatchMatmulNz"};

// The call of an operator; one of them has an argument more before the result.
Args WeightCall(std::string_view name, Args args, const Tensor& y) {
  if (name == kWithPrecision) args.push_back(int64_t{0});
  args.push_back(y);
  return args;
}

TEST(QuantisedResults, ProductsWithWeightsBecomeInt8) {
  constexpr int64_t kRows = 4, kInner = 32, kColumns = 8;
  const Tensor x = IntegersBetween({kRows, kInner}, -3, 3, at::kHalf);
  const Tensor weight = IntegersBetween({kInner, kColumns}, -9, 9, at::kChar);
  const Tensor half = at::full({1}, 0.5, at::kHalf), bias = Random({kColumns}, at::kHalf);
  for (const char* name : kWeightOperators) {
    for (const bool each : {false, true}) {
      for (const bool apart : {false, true}) {  // the offsets come in a tensor of their own
        const Dims sizes = each ? Dims{kColumns} : Dims{1};
        const Tensor scales = at::full(sizes, 1.5f), offsets = at::full(sizes, -7.0f);
        if (each) scales[3] = 64.0f;  // leaves the range
        if (each) offsets[2] = 100.0f;
        const Tensor packed = apart ? at::zeros(sizes) : offsets;
        const Tensor y = at::empty({kRows, kColumns}, at::kChar);
        ExecuteUnsigned(name, WeightCall(name,
                                         {x, weight, half, Null{}, ParametersOf(scales, packed),
                                          apart ? Arg(offsets) : Arg(Null{}), bias, int64_t{0}},
                                         y));
        for (int64_t row = 0; row < kRows; ++row) {
          for (int64_t column = 0; column < kColumns; ++column) {
            float sum = bias[column].item<float>();
            for (int64_t k = 0; k < kInner; ++k) {
              sum += x[row][k].item<float>() * weight[k][column].item<int8_t>() * 0.5f;
            }
            const int64_t own = each ? column : 0;
            const float scaled = sum * scales[own].item<float>() + offsets[own].item<float>();
            const float expected = std::fmin(std::fmax(std::nearbyint(scaled), -128.0f), 127.0f);
            EXPECT_LE(std::fabs(y[row][column].item<int8_t>() - expected),
                      std::fabs(scaled - std::floor(scaled) - 0.5f) < 1e-3f ? 1 : 0)
                << row << " " << column;
          }
        }
      }
    }
  }
}

TEST(QuantisedResults, FactorsOfAWeightMayBeParameters) {
  constexpr int64_t kRows = 3, kInner = 64, kColumns = 128;
  const Tensor x = Random({kRows, kInner}, at::kHalf);
  const Tensor weight = IntegersBetween({kColumns, kInner}, -128, 127, at::kChar).t();
  const Tensor scales = Random({kColumns}, at::kFloat, 0.001, 0.01);
  const Tensor none = at::zeros({kColumns});
  const Tensor offsets = IntegersBetween({kColumns}, -128, 127, at::kInt);
  for (const char* name : kWeightOperators) {
    for (const bool shifted : {false, true}) {
      const Tensor y = at::empty({kRows, kColumns}, at::kHalf);
      const Tensor parameters = ParametersOf(scales, none);
      ExecuteUnsigned(name, WeightCall(name,
                                       {x, weight, parameters, shifted ? Arg(offsets) : Arg(Null{}),
                                        Null{}, Null{}, Null{}, int64_t{0}},
                                       y));
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t column = 0; column < kColumns; column += 17) {
          double sum = 0;
          const int shift = shifted ? offsets[column].item<int>() : 0;
          for (int64_t k = 0; k < kInner; ++k) {
            sum += x[row][k].item<double>() * (weight[k][column].item<int8_t>() + shift);
          }
          uint32_t bits = static_cast<uint32_t>(parameters[column].item<int64_t>());
          float scale;
          std::memcpy(&scale, &bits, sizeof scale);
          EXPECT_NEAR(y[row][column].item<double>(), sum * scale, 0.02);
        }
      }
    }
  }
}

std::string RefusalOfWeights(const Args& args) {
  PackedCall call("aclnnWeightQuantBatchMatmulV2", args);
  MakeAllUnsigned(call, args);
  EXPECT_EQ(call.Prepare(), kReject);
  const std::string text = TakeMessage(), name = "aclnnWeightQuantBatchMatmulV2: ";
  EXPECT_EQ(text.find(name), 0u) << text;
  return text.substr(std::min(text.size(), name.size()));
}

TEST(QuantisedResults, WhatThePageLeavesOutIsRefused) {
  const Tensor x = Random({2, 64}, at::kHalf), y = at::empty({2, 64}, at::kHalf);
  const Tensor weight = IntegersBetween({64, 64}, -9, 9, at::kChar).t();
  const Tensor half = at::full({1}, 0.5, at::kHalf), bytes = at::empty({2, 64}, at::kChar);
  const Tensor parameter = at::tensor({ParameterOf(1, 0)}, at::kLong);
  const Tensor parameters = at::full({64}, ParameterOf(1, 0), at::kLong);
  const int64_t none = 0;
  EXPECT_EQ(RefusalOfWeights({x, weight, half, Null{}, Null{}, Random({1}), Null{}, none, y}),
            "quantOffsetOptional is given, but quantScaleOptional is absent.");
  EXPECT_EQ(RefusalOfWeights({x, weight, half, Null{}, Random({1}), Null{}, Null{}, none, bytes}),
            "quantScaleOptional is not uint64.");
  EXPECT_EQ(RefusalOfWeights({x, weight, half, Null{}, parameter, Null{}, Null{}, none, y}),
            "y is not of dtype int8.");
  EXPECT_EQ(
      RefusalOfWeights({x, weight, half, Null{}, parameter, Random({64}), Null{}, none, bytes}),
      "quantOffsetOptional has shape [64], expected [1].");
  EXPECT_EQ(RefusalOfWeights({x, weight, half, Null{}, Null{}, Null{}, Null{}, none, bytes}),
            "y has dtype Char, expected a floating dtype.");
  const std::string reason = ", but antiquantScale is of 64 bits.";
  const auto refusal = [&](int i, const Arg& value) {
    Args args = {x, weight, parameters, Null{}, Null{}, Null{}, Null{}, none, y};
    args[i] = value;
    return RefusalOfWeights(args);
  };
  EXPECT_EQ(refusal(0, Random({2, 64}, at::kBFloat16)), "x is not float16" + reason);
  EXPECT_EQ(refusal(0, Random({97, 64}, at::kHalf)),
            "x has less than 1 or more than 96 rows" + reason);
  EXPECT_EQ(refusal(1, weight.contiguous()), "weight is not transposed" + reason);
  EXPECT_EQ(refusal(1, at::zeros({64, 8}, at::kInt)), "weight is int4" + reason);
  EXPECT_EQ(refusal(1, at::zeros({60, 64}, at::kChar).t()),
            "weight has rows or columns that are no multiple of 64" + reason);
  EXPECT_EQ(refusal(7, int64_t{32}), "antiquantGroupSize is not 0" + reason);
  EXPECT_EQ(refusal(4, parameter), "quantScaleOptional is given" + reason);
  EXPECT_EQ(refusal(3, Random({64}, at::kHalf)),
            "antiquantOffsetOptional has dtype Half, expected Int.");
}

}  // namespace
}  // namespace acltape::opapi
