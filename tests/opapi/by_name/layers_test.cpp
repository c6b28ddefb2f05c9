// Operators by name that layers and optimisers are made of.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

testing::AssertionResult CloseTo(const Tensor& actual, const Tensor& wanted, double tolerance) {
  const bool same =
      actual.sizes() == wanted.sizes() &&
      at::allclose(actual.to(at::kDouble), wanted.to(at::kDouble), tolerance, tolerance);
  if (same) return testing::AssertionSuccess();
  return testing::AssertionFailure() << actual << " instead of " << wanted;
}

void ExpectToBeRefused(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(ElementwiseByName, FunctionsOfOneTensor) {
  const struct {
    const char* name;
    Tensor (*of)(const Tensor&);
  } kCalls[] = {
      {"Abs", at::abs},
      {"Ceil", at::ceil},
      {"Exp", at::exp},
      {"Floor", at::floor},
      {"Mish", at::mish},
      {"Neg", at::neg},
      {"Relu", at::relu},
      {"Sigmoid", at::sigmoid},
      {"Sign", at::sign},
      {"Tanh", at::tanh},
      {"Rsqrt", at::rsqrt},
      {"Swish", at::silu},
      {"Reciprocal", at::reciprocal},
  };
  for (const auto& each : kCalls) {
    for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
      const Tensor x = Random({3, 5}, dtype, 0.125, 2) * (each.name[0] == 'R' ? 1 : -1);
      const Tensor out = at::full({3, 5}, 77, dtype);
      NamedCall call(each.name);
      call.In(x).Out(out);
      ASSERT_EQ(call.Run(), ACL_SUCCESS) << each.name << TakeMessage();
      EXPECT_TRUE(CloseTo(out, each.of(x.to(at::kFloat)), dtype == at::kHalf ? 2e-3 : 1e-6))
          << each.name;
    }
  }
  NamedCall empty("Mish");
  empty.In(at::empty({0})).Out(at::empty({0}));
  EXPECT_EQ(empty.Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor scalar = at::scalar_tensor(2.0f), out = at::scalar_tensor(0.0f);
  NamedCall one("Swish");
  one.In(scalar).Out(out).Set("scale", 0.5f);
  ASSERT_EQ(one.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(CloseTo(out, scalar * at::sigmoid(scalar * 0.5), 1e-6));
  NamedCall wrong("Mish");
  wrong.In(at::empty({3})).Out(at::empty({4}));
  ExpectToBeRefused(wrong, "output 0 has the shape [4], expected [3]");
}

TEST(ElementwiseByName, FunctionsOfTwoTensorsTakeNumbersOfTheHost) {
  const Tensor a = Random({3, 1}), b = Random({4});
  const struct {
    const char* name;
    Tensor (*of)(const Tensor&, const Tensor&);
  } kCalls[] = {
      {"Add", [](const Tensor& x, const Tensor& y) { return x + y; }},
      {"Sub", [](const Tensor& x, const Tensor& y) { return x - y; }},
      {"Mul", [](const Tensor& x, const Tensor& y) { return x * y; }},
      {"RealDiv", [](const Tensor& x, const Tensor& y) { return x / y; }},
      {"Maximum", [](const Tensor& x, const Tensor& y) { return at::maximum(x, y); }},
      {"Minimum", [](const Tensor& x, const Tensor& y) { return at::minimum(x, y); }},
  };
  for (const auto& each : kCalls) {
    const Tensor out = at::full({3, 4}, 77.0f);
    NamedCall call(each.name);
    call.In(a).In(b).Out(out);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << each.name << TakeMessage();
    EXPECT_TRUE(CloseTo(out, each.of(a, b), 1e-6)) << each.name;
    const Tensor column = at::full({3, 1}, 77.0f);
    NamedCall number(each.name);
    number.In(a).Host(at::scalar_tensor(1.5f)).Out(column);
    ASSERT_EQ(number.Run(), ACL_SUCCESS) << each.name << TakeMessage();
    EXPECT_TRUE(CloseTo(column, each.of(a, at::scalar_tensor(1.5f)), 1e-6)) << each.name;
  }
  const Tensor less = at::zeros({3, 4}, at::kBool);
  NamedCall compare("Less");
  compare.In(a).In(b).Out(less);
  ASSERT_EQ(compare.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(less, at::lt(a, b)));
  const Tensor whole = at::zeros({3, 1}, at::kInt);
  NamedCall cast("Cast");
  cast.In(a * 10).Out(whole).Set("dst_type", int64_t{ACL_INT32});
  ASSERT_EQ(cast.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(whole, (a * 10).to(at::kInt)));
  {
    NamedCall wrong("Add");
    wrong.In(a).In(b.to(at::kHalf)).Out(at::empty({3, 4}));
    ExpectToBeRefused(wrong, "the soft device takes one type");
  }
  {
    NamedCall wrong("Add");
    wrong.In(a).Host(b).Out(at::empty({3, 4}));
    ExpectToBeRefused(wrong, "the second input lies in host memory and has the shape [4]");
  }
  {
    NamedCall wrong("Add");
    wrong.In(a).In(b).Out(at::empty({3, 5}));
    ExpectToBeRefused(wrong, "aclnnAdd");
  }
}

TEST(ElementwiseByName, EmptyTensorsScalarsAndMatricesInBlocks) {
  NamedCall empty("Add");
  empty.In(at::empty({0, 4})).In(at::empty({1, 4})).Out(at::empty({0, 4}));
  EXPECT_EQ(empty.Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor scalar = at::scalar_tensor(0.0f);
  NamedCall two("Mul");
  two.In(at::scalar_tensor(3.0f)).Host(at::scalar_tensor(2.0f)).Out(scalar);
  ASSERT_EQ(two.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_EQ(scalar.item<float>(), 6);
  // Two rows and three columns of float32 in one block of 16 rows and 8 columns.
  const Tensor blocks = at::zeros({1, 1, 16, 8}), plain = Random({2, 3});
  blocks[0][0].slice(0, 0, 2).slice(1, 0, 3).copy_(plain);
  const Tensor other = Random({2, 3}), out = at::full({2, 3}, 77.0f);
  NamedCall difference("Sub");
  difference.InBlocks(blocks, {2, 3}).In(other).Out(out);
  ASSERT_EQ(difference.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, plain - other));
}

TEST(ElementwiseByName, GradientsOfActivations) {
  const at::AutoGradMode enabled(true);
  const Tensor gradient = Random({2, 3});
  for (const char* name : {"SwishGrad", "MishGrad"}) {
    const Tensor x = Random({2, 3}).requires_grad_();
    const Tensor y = name[0] == 'S' ? at::silu(x) : at::mish(x);
    y.backward(gradient);
    const at::AutoGradMode disabled(false);
    const Tensor out = at::full({2, 3}, 77.0f);
    NamedCall call(name);
    call.In(gradient).In(x.detach());
    if (name[0] == 'S') call.In(y.detach());
    call.Out(out);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << name << TakeMessage();
    EXPECT_TRUE(CloseTo(out, x.grad(), 1e-5)) << name;
  }
}

TEST(ExtremesByName, TheGreatestAndTheLeastComeWithTheirPositions) {
  for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    const Tensor x = Random({3, 4, 5}, dtype);
    for (bool keep : {false, true}) {
      for (int64_t dim : {0, 2, -2}) {
        for (const char* name : {"ArgMaxWithValue", "ArgMinWithValue"}) {
          const auto [values, positions] =
              name[4] == 'a' ? at::max(x, dim, keep) : at::min(x, dim, keep);
          const Tensor index = at::full(positions.sizes(), 77, at::kInt);
          const Tensor value = at::full(values.sizes(), 77, dtype);
          NamedCall call(name);
          call.In(x).Out(index).Out(value).Set("dimension", dim).Set("keep_dims", keep);
          ASSERT_EQ(call.Run(), ACL_SUCCESS) << name << TakeMessage();
          EXPECT_TRUE(SameBits(value, values)) << name << dim;
          EXPECT_TRUE(SameBits(index, positions.to(at::kInt))) << name << dim;
        }
      }
    }
  }
  const Tensor scalar = at::scalar_tensor(3.0f), index = at::scalar_tensor(7, at::kInt);
  const Tensor value = at::scalar_tensor(0.0f);
  NamedCall one("ArgMaxWithValue");
  one.In(scalar).Out(index).Out(value).Set("dimension", int64_t{-1}).Set("keep_dims", true);
  ASSERT_EQ(one.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_EQ(value.item<float>(), 3);
  EXPECT_EQ(index.item<int>(), 0);
  NamedCall wrong("ArgMaxWithValue");
  wrong.In(at::zeros({3})).Out(index).Out(value).Set("dimension", int64_t{1});
  ExpectToBeRefused(wrong, "there is no dim 1 in a tensor of 1 dims");
}

TEST(ConvolutionsByName, ImagesAndVolumes) {
  for (bool biased : {false, true}) {
    const Tensor x = Random({2, 4, 7, 6}), filter = Random({6, 2, 3, 2}), bias = Random({6});
    const Tensor wanted =
        at::conv2d(x, filter, biased ? bias : Tensor(), {2, 1}, {1, 2}, {1, 3}, 2);
    const Tensor out = at::full(wanted.sizes(), 77.0f);
    NamedCall call("Conv2D");
    call.In(x).In(filter);
    if (biased) call.In(bias);
    call.Out(out).Set("strides", std::vector<int64_t>{1, 1, 2, 1});
    call.Set("pads", std::vector<int64_t>{1, 1, 2, 2}).Set("groups", int64_t{2});
    call.Set("dilations", std::vector<int64_t>{1, 1, 1, 3}).Set("data_format", "NCHW");
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(CloseTo(out, wanted, 1e-4));
  }
  const Tensor x = Random({1, 3, 4, 5, 6}), filter = Random({2, 3, 2, 3, 1});
  const Tensor wanted = at::conv3d(x, filter, {}, {1, 2, 1}, {1, 0, 2});
  const Tensor out = at::full(wanted.sizes(), 77.0f);
  NamedCall call("Conv3D");
  call.In(x).In(filter).Out(out).Set("strides", std::vector<int64_t>{1, 1, 1, 2, 1});
  call.Set("pads", std::vector<int64_t>{1, 1, 0, 0, 2, 2}).Set("data_format", "NCDHW");
  call.Set("dilations", std::vector<int64_t>{1, 1, 1, 1, 1});
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(CloseTo(out, wanted, 1e-4));
  {
    NamedCall wrong("Conv2D");
    wrong.In(Random({1, 1, 4, 4})).In(Random({1, 1, 2, 2})).Out(at::empty({1, 1, 4, 4}));
    wrong.Set("strides", std::vector<int64_t>{1, 1, 1, 1});
    wrong.Set("pads", std::vector<int64_t>{0, 1, 0, 1});
    ExpectToBeRefused(wrong, "pads is [0, 1, 0, 1]; the soft device takes two equal numbers");
  }
  {
    NamedCall wrong("Conv2D");
    wrong.In(x).In(filter).Out(out).Set("strides", std::vector<int64_t>{1, 1, 1, 1});
    ExpectToBeRefused(wrong, "the soft device takes x and filter of 4 dims in the format NCHW");
  }
  {
    NamedCall wrong("Conv2D");
    wrong.In(Random({1, 1, 4, 4})).In(Random({1, 1, 2, 2})).Out(at::empty({1, 1, 4, 4}));
    wrong.Set("strides", std::vector<int64_t>{1, 1, 0, 1});
    ExpectToBeRefused(wrong, "strides is [1, 1, 0, 1]");
  }
}

TEST(ConvolutionsByName, AMatrixProductAddsABias) {
  const Tensor a = Random({2, 4}), b = Random({3, 4}), bias = Random({3});
  const Tensor out = at::full({2, 3}, 77.0f);
  for (const char* name : {"MatMul", "MatMulV2"}) {
    NamedCall call(name);
    call.In(a).In(b).In(bias).Out(out).Set("transpose_x1", false).Set("transpose_x2", true);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    for (int64_t i = 0; i < 6; ++i) {
      double sum = bias[i % 3].item<double>();
      for (int64_t k = 0; k < 4; ++k) {
        sum += a[i / 3][k].item<double>() * b[i % 3][k].item<double>();
      }
      EXPECT_NEAR(out[i / 3][i % 3].item<double>(), sum, 1e-4);
    }
  }
  NamedCall wrong("MatMul");
  wrong.In(Random({1, 2, 4})).In(Random({1, 4, 3})).In(bias).Out(at::empty({1, 2, 3}));
  ExpectToBeRefused(wrong, "adds a bias to a matrix");
}

TEST(ConvolutionsByName, TransposedConvolutionsHaveTheSizeOfTheirOutput) {
  for (bool biased : {false, true}) {
    const Tensor x = Random({2, 4, 3, 5}), filter = Random({4, 3, 3, 2}), bias = Random({6});
    const Tensor wanted = at::conv_transpose2d(x, filter, biased ? bias : Tensor(), {2, 3}, {1, 0},
                                               {1, 2}, 2, {1, 2});
    const Tensor out = at::full(wanted.sizes(), 77.0f);
    NamedCall call("Conv2DTranspose");
    call.Host(at::tensor(wanted.sizes(), at::kInt)).In(x).In(filter);
    if (biased) call.In(bias);
    call.Out(out).Set("strides", std::vector<int64_t>{1, 1, 2, 3}).Set("groups", int64_t{2});
    call.Set("pads", std::vector<int64_t>{1, 1, 0, 0}).Set("data_format", "NCHW");
    call.Set("dilations", std::vector<int64_t>{1, 1, 1, 2});
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(CloseTo(out, wanted, 1e-4));
  }
  const Tensor x = Random({1, 2, 3, 3, 3}), filter = Random({2, 3, 2, 2, 2});
  const Tensor wanted = at::conv_transpose3d(x, filter, {}, {2, 1, 1});
  const Tensor out = at::full(wanted.sizes(), 77.0f);
  NamedCall call("Conv3DTranspose");
  call.Host(at::tensor(wanted.sizes(), at::kInt)).In(x).In(filter).Out(out);
  call.Set("strides", std::vector<int64_t>{1, 1, 2, 1, 1}).Set("data_format", "NCDHW");
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(CloseTo(out, wanted, 1e-4));
  NamedCall wrong("Conv3DTranspose");
  wrong.Host({1, 3, 9, 4, 4}).In(x).In(filter).Out(at::empty({1, 3, 9, 4, 4}));
  ExpectToBeRefused(wrong, "give no result of shape [1, 3, 9, 4, 4]");
}

TEST(RecurrentByName, ALayerOfGatedUnitsGivesItsGates) {
  constexpr int64_t kLong = 4, kMany = 3, kWide = 5, kDeep = 6;
  const Tensor x = Random({kLong, kMany, kWide}), h = Random({1, kMany, kDeep});
  const Tensor input_weight = Random({kWide, 3 * kDeep}), weight = Random({kDeep, 3 * kDeep});
  const Tensor input_bias = Random({3 * kDeep}), bias = Random({3 * kDeep});
  const std::vector<Tensor> parameters{input_weight.t(), weight.t(), input_bias, bias};
  const auto [wanted, last] = at::gru(x, h, parameters, true, 1, 0.0, false, false, false);
  std::vector<Tensor> results;  // y, h, update, reset, new, the state's part of new
  for (int i = 0; i < 6; ++i) results.push_back(at::full({kLong, kMany, kDeep}, 77.0f));
  const auto run = [&](const char* order) {
    NamedCall call("DynamicGRUV2");
    call.In(x).In(input_weight).In(weight).In(input_bias).In(bias).None().In(h);
    for (const Tensor& result : results) call.Out(result);
    call.Set("direction", "UNIDIRECTIONAL").Set("gate_order", order).Set("reset_after", true);
    return call.Set("time_major", true).Run();
  };
  ASSERT_EQ(run("rzh"), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(CloseTo(results[0], wanted, 1e-5));
  EXPECT_TRUE(CloseTo(results[1], wanted, 1e-5));
  EXPECT_TRUE(CloseTo(results[1][kLong - 1], last[0], 1e-5));
  const Tensor before = at::cat({h, wanted.slice(0, 0, kLong - 1)});
  const auto of_input = (at::matmul(x, input_weight) + input_bias).chunk(3, 2);
  const auto of_state = (at::matmul(before, weight) + bias).chunk(3, 2);
  const Tensor reset = at::sigmoid(of_input[0] + of_state[0]);
  EXPECT_TRUE(CloseTo(results[2], at::sigmoid(of_input[1] + of_state[1]), 1e-5));
  EXPECT_TRUE(CloseTo(results[3], reset, 1e-5));
  EXPECT_TRUE(CloseTo(results[4], at::tanh(of_input[2] + reset * of_state[2]), 1e-5));
  EXPECT_TRUE(CloseTo(results[5], of_state[2], 1e-5));
  TakeMessage();
  EXPECT_NE(run("zrh"), ACL_SUCCESS);
  EXPECT_NE(TakeMessage().find("the gate_order rzh"), std::string::npos);
}

TEST(TrainingByName, AdamTakesAStepInItsTwoModes) {
  for (bool other : {false, true}) {
    for (double decay : {0.0, 0.125}) {
      const Tensor var = Random({3, 4}), m = Random({3, 4}), gradient = Random({3, 4});
      const Tensor v = Random({3, 4}, at::kFloat, 0.5, 2);
      const double norm = 4, lr = 0.25, step = 0.5;
      const Tensor g = gradient / norm;
      const Tensor new_m = m * 0.75 + g * 0.25, new_v = v * 0.875 + g * g * 0.125;
      const Tensor update = new_m / (new_v.sqrt() + 1e-3);
      const Tensor wanted =
          other ? var - update * step - decay * lr * var : var - lr * (update + decay * var);
      const auto number = [](double value) { return at::scalar_tensor(value, at::kFloat); };
      NamedCall call("ApplyAdamV2");
      call.In(var).In(m).In(v).Host(number(lr)).Host(number(0.75)).Host(number(0.875));
      call.Host(number(1e-3)).In(gradient).Host(number(1)).Host(number(norm)).Host(number(decay));
      if (other) call.Host(number(step));
      call.Out(var).Out(m).Out(v).Set("adam_mode", other ? "mbart_adam" : "adam");
      ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
      EXPECT_TRUE(CloseTo(var, wanted, 1e-5));
      EXPECT_TRUE(CloseTo(m, new_m, 1e-6));
      EXPECT_TRUE(CloseTo(v, new_v, 1e-6));
    }
  }
  NamedCall wrong("ApplyAdamV2");
  wrong.In(at::zeros({3}));
  ExpectToBeRefused(wrong, "it has 1 inputs and 0 outputs, expected at least 11 and 3");
}

TEST(TrainingByName, ASoftmaxWithADropoutKeepsWhatItsMaskNames) {
  const Tensor x1 = Random({2, 3, 5}), x2 = Random({2, 3, 5});
  const Tensor mask = at::full({128}, 9, at::kByte);
  NamedCall draw("DropOutGenMaskV3");
  draw.Host({2, 3, 5}).Host(at::scalar_tensor(0.5f)).Out(mask);
  draw.Set("seed", int64_t{2}).Set("seed2", int64_t{0});
  ASSERT_EQ(draw.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(at::logical_or(mask.eq(0), mask.eq(1)).all().item<bool>());
  const auto kept = mask.sum().item<int64_t>();
  EXPECT_GT(kept, 30);
  EXPECT_LT(kept, 98);
  const Tensor used = mask.slice(0, 0, 30).view({2, 3, 5}).to(at::kFloat);
  const Tensor softmax = at::softmax(x1 + 0.5 * x2, -1);
  const Tensor first = at::full({2, 3, 5}, 77.0f), second = at::full({2, 3, 5}, 77.0f);
  NamedCall call("AxpyWithSoftmaxAndDropOutDoMask");
  call.In(x1).In(x2).In(mask).Out(first).Out(second).Set("alpha", 0.5f);
  call.Set("input_keep_prob", 0.5f).Set("axis", std::vector<int64_t>{-1});
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(CloseTo(first, softmax, 1e-5));
  EXPECT_TRUE(CloseTo(second, softmax * used * 2, 1e-5));
  const Tensor gradient = Random({2, 3, 5}), out = at::full({2, 3, 5}, 77.0f);
  NamedCall back("DropoutWithMulsAndSoftmaxGrad");
  back.In(gradient).In(mask).In(softmax).Out(out).Set("alpha", 0.5f);
  back.Set("input_keep_prob", 0.5f).Set("axes", std::vector<int64_t>{-1});
  ASSERT_EQ(back.Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor of_softmax = gradient * used * 2;
  EXPECT_TRUE(
      CloseTo(out, 0.5 * softmax * (of_softmax - (of_softmax * softmax).sum(-1, true)), 1e-5));
  NamedCall wrong("DropOutGenMaskV3");
  wrong.Host({200}).Host(at::scalar_tensor(0.5f)).Out(mask);
  ExpectToBeRefused(wrong, "uint8 elements for each of the shape [200]");
}

TEST(TrainingByName, SignsArePackedAndUnpacked) {
  const Tensor x = Random({19});
  const Tensor bits = at::full({1, 3}, 77, at::kByte), out = at::full({1, 24}, 77.0f);
  NamedCall pack("SignBitsPack");
  pack.In(x).Out(bits).Set("size", int64_t{1});
  ASSERT_EQ(pack.Run(), ACL_SUCCESS) << TakeMessage();
  NamedCall unpack("SignBitsUnpack");
  unpack.In(bits.view({3})).Out(out).Set("size", int64_t{1}).Set("dtype", int64_t{0});
  ASSERT_EQ(unpack.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out[0].slice(0, 0, 19), at::where(x.ge(0), 1.0f, -1.0f)));
  NamedCall wrong("SignBitsUnpack");
  wrong.In(bits.view({3})).Out(out).Set("size", int64_t{1}).Set("dtype", int64_t{1});
  ExpectToBeRefused(wrong, "dtype is 1, and the output has the type 0");
}

}  // namespace
}  // namespace acltape::opapi
