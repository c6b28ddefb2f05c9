// SubSample and RandomChoiceWithMask by their names: what each draw must hold, and that draws
// differ.
#include <set>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

int64_t CountOf(const Tensor& labels, int number) {
  return (labels == number).sum().item<int64_t>();
}

Tensor Sample(const Tensor& labels, int64_t size, float fraction) {
  const Tensor out = at::full(labels.sizes(), 77, at::kInt);
  NamedCall call("SubSample");
  call.In(labels).Out(out).Set("batch_size_per_images", size).Set("positive_fraction", fraction);
  EXPECT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  return out;
}

TEST(RandomSamplesByName, ASampleHasTheNumbersOfExamplesThatItsAttributesSay) {
  at::manual_seed(38);
  const struct {
    int64_t positive, negative, others, size;
    float fraction;
    int64_t of_positive, of_negative;  // expected
  } kCases[] = {
      {8, 9, 3, 5, 0.6f, 3, 2},   {2, 9, 3, 5, 0.6f, 2, 3},  {8, 1, 0, 5, 0.6f, 3, 1},
      {2, 1, 7, 5, 0.6f, 2, 1},   {8, 9, 0, 10, 0.7f, 7, 3}, {8, 9, 0, 0, 0.5f, 0, 0},
      {4, 5, 0, 100, 1.0f, 4, 5}, {4, 5, 1, 3, 0.0f, 0, 3},  {0, 0, 4, 3, 0.5f, 0, 0},
      {1, 0, 0, 1, 1.0f, 1, 0},
  };
  for (const auto& each : kCases) {
    const Tensor sorted =
        at::cat({at::full({each.positive}, 1, at::kInt), at::zeros({each.negative}, at::kInt),
                 at::full({each.others}, -1, at::kInt)});
    const Tensor labels = sorted.index({at::randperm(sorted.numel())}).contiguous();
    const Tensor out = Sample(labels, each.size, each.fraction);
    EXPECT_EQ(CountOf(out, 1), each.of_positive);
    EXPECT_EQ(CountOf(out, 0), each.of_negative);
    EXPECT_TRUE(((out == -1) | (out == labels)).all().item<bool>()) << labels << out;
  }
  EXPECT_EQ(Sample(at::empty({0}, at::kInt), 4, 0.5f).numel(), 0);
  EXPECT_TRUE(SameBits(Sample(at::full({3}, 2, at::kInt), 4, 0.5f), at::full({3}, -1, at::kInt)))
      << "a label that is not 0 or 1 is in no sample";
}

TEST(RandomSamplesByName, EachExampleComesIntoSomeSample) {
  const Tensor labels = at::arange(12).remainder(2).to(at::kInt);
  Tensor taken = at::zeros({12}, at::kLong);
  for (int draw = 0; draw < 200; ++draw) taken += (Sample(labels, 4, 0.5f) >= 0).to(at::kLong);
  // Each of them is expected 200 / 3 times.
  EXPECT_GT(taken.min().item<int64_t>(), 30) << taken;
  EXPECT_LT(taken.max().item<int64_t>(), 110) << taken;
}

struct Choice {
  Tensor indices, valid;
};

Choice Choose(const Tensor& x, int64_t count, int64_t seed = 0, int64_t seed2 = 0) {
  Choice choice{at::full({count, x.dim()}, 77, at::kInt), at::ones({count}, at::kBool)};
  NamedCall call("RandomChoiceWithMask");
  call.In(x).Out(choice.indices).Out(choice.valid).Set("count", count);
  EXPECT_EQ(call.Set("seed", seed).Set("seed2", seed2).Run(), ACL_SUCCESS) << TakeMessage();
  return choice;
}

TEST(RandomSamplesByName, AChoiceHasDifferentTrueElementsAndThenZeros) {
  at::manual_seed(39);
  const std::vector<std::vector<int64_t>> shapes{{9}, {4, 5}, {2, 3, 4}, {1, 2, 1, 3, 2}, {1}};
  for (const std::vector<int64_t>& shape : shapes) {
    for (const int64_t count : {1, 3, 40}) {
      const Tensor x = at::rand(shape) < 0.6;
      const Choice choice = Choose(x, count);
      const int64_t found = std::min(count, x.sum().item<int64_t>());
      std::set<std::vector<int>> indices;
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(choice.valid[i].item<bool>(), i < found);
        std::vector<int> index;
        Tensor element = x;
        for (int64_t dim = 0; dim < x.dim(); ++dim) {
          index.push_back(choice.indices[i][dim].item<int>());
          element = element[index.back()];
        }
        if (i < found) {
          EXPECT_TRUE(element.item<bool>());
          EXPECT_TRUE(indices.insert(index).second) << "it is chosen twice";
        } else {
          EXPECT_EQ(index, std::vector<int>(x.dim(), 0));
        }
      }
    }
  }
  const Choice nothing = Choose(at::empty({3, 0}, at::kBool), 2);
  EXPECT_TRUE(SameBits(nothing.indices, at::zeros({2, 2}, at::kInt)));
  EXPECT_FALSE(nothing.valid.any().item<bool>());
}

TEST(RandomSamplesByName, ASeedGivesTheSameChoiceAgainAndNoSeedAnother) {
  const Tensor x = at::ones({8, 8}, at::kBool);
  for (const auto& [seed, seed2] : {std::pair{1, 0}, {0, 5}, {3, 4}}) {
    EXPECT_TRUE(SameBits(Choose(x, 20, seed, seed2).indices, Choose(x, 20, seed, seed2).indices));
  }
  EXPECT_FALSE(SameBits(Choose(x, 20, 1, 0).indices, Choose(x, 20, 2, 0).indices));
  EXPECT_FALSE(SameBits(Choose(x, 20, 1, 1).indices, Choose(x, 20, 1, 2).indices));
  EXPECT_FALSE(SameBits(Choose(x, 20).indices, Choose(x, 20).indices));
}

TEST(RandomSamplesByName, AGraphChoosesAmongTheElementsThatAreTrueWhenItRuns) {
  TestStream();
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  const Tensor x = at::zeros({6}, at::kBool), indices = at::full({2, 1}, 77, at::kInt);
  const Tensor valid = at::zeros({2}, at::kBool);
  NamedCall call("RandomChoiceWithMask");
  call.In(x).Out(indices).Out(valid).Set("count", int64_t{2}).Set("seed", int64_t{3});
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  ASSERT_EQ(call.Launch(stream), ACL_SUCCESS) << TakeMessage();
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  for (int i : {4, 1, 5}) {
    x.zero_();
    x[i] = true;
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_EQ(indices[0][0].item<int>(), i);
    EXPECT_EQ(indices[1][0].item<int>(), 0);
    EXPECT_TRUE(SameBits(valid, at::tensor({1, 0}).to(at::kBool)));
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST(RandomSamplesByName, FormsThatAreRefused) {
  const auto refused = [](NamedCall& call, const char* part) {
    TakeMessage();
    EXPECT_NE(call.Run(), ACL_SUCCESS);
    const std::string message = TakeMessage();
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  const struct {
    Tensor labels, out;
    int64_t size;
    float fraction;
    const char* part;
  } kSamples[] = {
      {at::zeros({2, 3}, at::kInt), at::zeros({2, 3}, at::kInt), 4, 0.5f, "the shape [2, 3]"},
      {at::zeros({3}, at::kLong), at::zeros({3}, at::kLong), 4, 0.5f, "the type 9"},
      {at::zeros({3}, at::kInt), at::zeros({3}), 4, 0.5f, "the result has the type 0"},
      {at::zeros({3}, at::kInt), at::zeros({4}, at::kInt), 4, 0.5f, "output 0 has the shape [4]"},
      {at::zeros({3}, at::kInt), at::zeros({3}, at::kInt), -1, 0.5f, "batch_size_per_images is -1"},
      {at::zeros({3}, at::kInt), at::zeros({3}, at::kInt), 4, 1.5f, "positive_fraction 1.5"},
  };
  for (const auto& each : kSamples) {
    NamedCall call("SubSample");
    call.In(each.labels).Out(each.out).Set("batch_size_per_images", each.size);
    refused(call.Set("positive_fraction", each.fraction), each.part);
  }
  const Tensor x = at::zeros({3}, at::kBool);
  const struct {
    Tensor x, indices, valid;
    int64_t count;
    const char* part;
  } kChoices[] = {
      {at::zeros({}, at::kBool), at::zeros({2, 0}, at::kInt), at::zeros({2}, at::kBool), 2,
       "expected bool of 1 to 5 dims"},
      {at::zeros({3}), at::zeros({2, 1}, at::kInt), at::zeros({2}, at::kBool), 2, "the type 0"},
      {x, at::zeros({0, 1}, at::kInt), at::zeros({0}, at::kBool), 0, "count is 0"},
      {x, at::zeros({2, 1}, at::kLong), at::zeros({2}, at::kBool), 2, "the types 9 and 12"},
      {x, at::zeros({2, 1}, at::kInt), at::zeros({2}, at::kInt), 2, "the types 3 and 3"},
      {x, at::zeros({2, 2}, at::kInt), at::zeros({2}, at::kBool), 2, "expected [2, 1]"},
      {x, at::zeros({2, 1}, at::kInt), at::zeros({3}, at::kBool), 2, "output 1 has the shape [3]"},
  };
  for (const auto& each : kChoices) {
    NamedCall call("RandomChoiceWithMask");
    call.In(each.x).Out(each.indices).Out(each.valid).Set("count", each.count);
    refused(call, each.part);
  }
}

}  // namespace
}  // namespace acltape::opapi
