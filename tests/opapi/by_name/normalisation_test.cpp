// Losses and normalisations by their names, beside formulas of doubles.
#include <cmath>
#include <limits>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

TEST(LossesByName, CrossEntropyComesWithItsGradient) {
  at::manual_seed(14);
  for (at::ScalarType type : {at::kFloat, at::kHalf}) {
    const Tensor features = Random({5, 7}, type) * 8;
    const Tensor labels = at::softmax(Random({5, 7}), 1).to(type);
    features[1][2] = -3000;  // its probability is 0
    const Tensor losses = at::full({5}, 77, type), gradients = at::full({5, 7}, 77, type);
    NamedCall call("SoftmaxCrossEntropyWithLogits");
    call.In(features).In(labels).Out(losses).Out(gradients);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    const double tolerance = type == at::kHalf ? 2e-3 : 1e-5;
    for (int64_t i = 0; i < 5; ++i) {
      const auto number = [&](const Tensor& of, int64_t k) { return of[i][k].item<double>(); };
      double greatest = -1e9, sum = 0, loss = 0;
      for (int64_t k = 0; k < 7; ++k) greatest = std::max(greatest, number(features, k));
      for (int64_t k = 0; k < 7; ++k) sum += std::exp(number(features, k) - greatest);
      for (int64_t k = 0; k < 7; ++k) {
        const double log = number(features, k) - greatest - std::log(sum);
        loss -= number(labels, k) * log;
        EXPECT_NEAR(number(gradients, k), std::exp(log) - number(labels, k), tolerance);
      }
      EXPECT_NEAR(losses[i].item<double>() / loss, 1, tolerance);
    }
  }
  const auto said = [](NamedCall& call) {
    TakeMessage();
    EXPECT_NE(call.Run(), ACL_SUCCESS);
    return TakeMessage();
  };
  NamedCall shapes("SoftmaxCrossEntropyWithLogits");
  shapes.In(at::zeros({2, 3})).In(at::zeros({3})).Out(at::zeros({2})).Out(at::zeros({2, 3}));
  EXPECT_NE(said(shapes).find("and labels the shape [3]"), std::string::npos);
  NamedCall types("SoftmaxCrossEntropyWithLogits");
  types.In(at::zeros({2, 3})).In(at::zeros({2, 3}, at::kHalf));
  types.Out(at::zeros({2})).Out(at::zeros({2, 3}));
  EXPECT_NE(said(types).find("its tensors have the types 0 and 1"), std::string::npos);
}

TEST(NormalisationsByName, SequencesAreScaledByTheirOwnElements) {
  at::manual_seed(15);
  const Tensor x = Random({4, 3, 6});
  const std::vector<int> lengths{3, 6, 4, 9};  // one of them beyond the end
  x[0][1][5] = std::numeric_limits<float>::infinity();
  x[2][0][4] = std::numeric_limits<float>::quiet_NaN();
  const Tensor length = at::tensor(lengths, at::kInt);
  for (const char* kind : {"per_feature", "all_features"}) {
    const bool all = kind[0] == 'a';
    const Tensor out = at::full({4, 3, 6}, 77.0f), wanted = at::empty({4, 3, 6}, at::kDouble);
    NamedCall call("NormalizeBatch");
    call.In(x).In(length).Out(out).Set("normalize_type", kind).Set("epsilon", 1e-5f);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    for (int64_t n = 0; n < 4; ++n) {
      for (int64_t c = 0; c < 3; ++c) {
        const Tensor of = all ? x[n] : x[n][c].unsqueeze(0);
        const Tensor counted = of.slice(1, 0, lengths[n]).to(at::kDouble);
        wanted[n][c].copy_((x[n][c].to(at::kDouble) - counted.mean()) / (counted.std() + 1e-5));
      }
    }
    EXPECT_TRUE(at::allclose(out.to(at::kDouble), wanted, 1e-4, 1e-5, true)) << out << wanted;
  }
  NamedCall empty("NormalizeBatch");
  empty.In(at::empty({0, 3, 6})).In(at::empty({0}, at::kInt)).Out(at::empty({0, 3, 6}));
  EXPECT_EQ(empty.Set("normalize_type", "per_feature").Run(), ACL_SUCCESS) << TakeMessage();
  for (const char* kind : {"", "both"}) {
    NamedCall wrong("NormalizeBatch");
    wrong.In(x).In(length).Out(at::zeros({4, 3, 6})).Set("normalize_type", kind);
    TakeMessage();
    EXPECT_NE(wrong.Run(), ACL_SUCCESS);
    EXPECT_NE(TakeMessage().find("per_feature or all_features"), std::string::npos);
  }
}

}  // namespace
}  // namespace acltape::opapi
