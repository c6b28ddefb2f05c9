// MaskedFillRange by its name, beside loops over ranges and positions.
#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Fills one position of each range after another, as the operator's description has it.
Tensor FilledByLoops(const Tensor& x, const Tensor& start, const Tensor& end, const Tensor& value,
                     int64_t axis) {
  Tensor out = x.clone();
  const int64_t dim = axis < 0 ? axis + x.dim() : axis;
  for (int64_t i = 0; i < start.size(0); ++i) {
    for (int64_t j = 0; j < start.size(1); ++j) {
      for (int64_t k = start[i][j].item<int>(); k < end[i][j].item<int>(); ++k) {
        if (k < 0 || k >= x.size(dim)) continue;
        const bool of_row = x.dim() > 1 && dim == x.dim() - 1;
        Tensor part = of_row ? out[j].select(dim - 1, k) : out.select(dim, k);
        part.fill_(value[i].item());
      }
    }
  }
  return out;
}

Tensor Limits(std::initializer_list<int> numbers, int64_t rounds) {
  return at::tensor(std::vector<int>(numbers), at::kInt).view({rounds, -1});
}

aclError Fill(const Tensor& x, const Tensor& start, const Tensor& end, const Tensor& value,
              const Tensor& out, int64_t axis) {
  NamedCall call("MaskedFillRange");
  return call.In(x).In(start).In(end).In(value).Out(out).Set("axis", axis).Run();
}

TEST(FilledRangesByName, TheExampleOfTheAdapter) {
  const Tensor x = Random({4, 4}), out = at::full({4, 4}, 77.0f);
  NamedCall call("MaskedFillRange");
  call.In(x).In(Limits({0, 1, 2, 4}, 1)).In(Limits({1, 2, 3, 4}, 1)).In(at::ones({1})).Out(out);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();  // without an axis it is the last one
  Tensor wanted = x.clone();
  for (int64_t i = 0; i < 3; ++i) wanted[i][i] = 1;
  EXPECT_TRUE(SameBits(out, wanted));
}

TEST(FilledRangesByName, EachAxisOfEachRankAndType) {
  at::manual_seed(31);
  const std::vector<std::vector<int64_t>> shapes{{9}, {3, 7}, {3, 4, 6}, {1, 5, 1}, {2, 1, 1}};
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kInt, at::kChar}) {
    for (const std::vector<int64_t>& shape : shapes) {
      const Tensor x = at::randint(1, 100, shape).to(type);
      const int64_t rank = x.dim(), rows = rank == 1 ? 1 : shape[0];
      for (int64_t axis = -rank; axis < rank; ++axis) {
        const Tensor start = at::randint(-2, 6, {3, rows}, at::kInt);
        const Tensor end = start + at::randint(-1, 4, {3, rows}, at::kInt);
        const Tensor value = at::tensor({-7, 0, 101}, at::kInt).to(type);
        const Tensor out = at::full(shape, 77, type);
        ASSERT_EQ(Fill(x, start, end, value, out, axis), ACL_SUCCESS) << TakeMessage();
        EXPECT_TRUE(SameBits(out, FilledByLoops(x, start, end, value, axis)))
            << type << x.sizes() << axis;
      }
    }
  }
}

TEST(FilledRangesByName, NoElementsAndNoRanges) {
  const Tensor nothing = at::empty({0, 3});
  EXPECT_EQ(Fill(nothing, at::empty({1, 0}, at::kInt), at::empty({1, 0}, at::kInt), at::ones({1}),
                 nothing, 1),
            ACL_SUCCESS)
      << TakeMessage();
  const Tensor x = Random({2, 3}), out = at::zeros({2, 3});
  EXPECT_EQ(
      Fill(x, at::empty({0, 2}, at::kInt), at::empty({0, 2}, at::kInt), at::ones({0}), out, 1),
      ACL_SUCCESS)
      << TakeMessage();
  EXPECT_TRUE(SameBits(out, x));
}

TEST(FilledRangesByName, AGraphReadsLimitsAndValuesWhenItRuns) {
  TestStream();
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  Tensor x = Random({2, 5}), start = Limits({0, 1}, 1), end = Limits({2, 3}, 1);
  Tensor value = at::ones({1}), out = at::zeros({2, 5});
  NamedCall call("MaskedFillRange");
  call.In(x).In(start).In(end).In(value).Out(out).Set("axis", int64_t{1});
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  ASSERT_EQ(call.Launch(stream), ACL_SUCCESS) << TakeMessage();
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  EXPECT_EQ(out.abs().sum().item<float>(), 0);
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_TRUE(SameBits(out, FilledByLoops(x, start, end, value, 1)));
    x.copy_(Random({2, 5}));
    start.add_(1);
    end.add_(2);
    value.fill_(9);
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST(FilledRangesByName, FormsThatAreRefused) {
  const Tensor x = at::zeros({2, 3}), limits = at::zeros({1, 2}, at::kInt), one = at::ones({1});
  const struct {
    Tensor x, start, end, value, out;
    int64_t axis;
    const char* part;
  } kCalls[] = {
      {at::zeros({}), limits, limits, one, at::zeros({}), 0, "expected 1 to 3 dims"},
      {x.to(at::kLong), limits, limits, one.to(at::kLong), x.to(at::kLong), 0, "the type 9"},
      {x, at::zeros({1, 3}, at::kInt), at::zeros({1, 3}, at::kInt), one, x, 1, "int32 [n, 2]"},
      {x, limits, at::zeros({2, 2}, at::kInt), one, x, 1, "end [2, 2]"},
      {x, limits.to(at::kLong), limits, one, x, 1, "start has the shape [1, 2] and the type 9"},
      {x, limits, limits, at::ones({2}), x, 1, "and value [2]"},
      {x, limits, limits, one.to(at::kHalf), x, 1, "its tensors have the types 0 and 1"},
      {x, limits, limits, one, at::zeros({3, 2}), 1, "output 0 has the shape [3, 2]"},
      {x, limits, limits, one, x, 2, "there is no axis 2 in a tensor of 2 dims"},
      {x, limits, limits, one, x, -3, "there is no axis -3"},
  };
  for (const auto& each : kCalls) {
    TakeMessage();
    EXPECT_NE(Fill(each.x, each.start, each.end, each.value, each.out, each.axis), ACL_SUCCESS);
    const std::string message = TakeMessage();
    EXPECT_NE(message.find(each.part), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace acltape::opapi
