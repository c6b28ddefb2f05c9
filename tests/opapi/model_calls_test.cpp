// Operators of models in the forms in which framework adapters call them, against formulas.
#include "tests/opapi/operator_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

TEST(CrossEntropy, LossesAndTheirGradientsAreTheLibrarys) {
  const at::AutoGradMode enabled(true);
  const Tensor target = at::tensor({2, 0, 4, 1, 4}, at::kLong),
               weight = Random({5}, at::kFloat, 0.5, 2);
  int64_t reduction = 0;
  for (const char* name : {"none", "mean", "sum"}) {
    for (const double smoothing : {0.0, 0.2}) {
      for (const bool weighted : {false, true}) {
        const Tensor scores = Random({5, 5}).requires_grad_();
        const Tensor loss = at::cross_entropy_loss(
            scores, target, weighted ? c10::optional<Tensor>(weight) : c10::nullopt, reduction,
            /*ignore_index=*/1, smoothing);
        const Tensor gradient = Random(loss.sizes());
        loss.backward(gradient);
        const Tensor shaped = reduction == 0 ? loss : loss.reshape({1});
        const Arg weights = weighted ? Arg(weight) : Null{};

        const Tensor out = Unwritten(shaped.detach()), logarithms = at::empty({5, 5});
        ASSERT_EQ(RunOperator("aclnnCrossEntropyLoss",
                              {scores.detach(), target, weights, name, int64_t{1}, smoothing, 0.0,
                               false, out, logarithms, at::empty({0}), at::empty({0})}),
                  0)
            << LastMessage();
        EXPECT_TRUE(SameBits(out, shaped.detach())) << name;
        EXPECT_TRUE(SameBits(logarithms, at::log_softmax(scores.detach(), 1))) << name;

        const Tensor of_scores = at::empty({5, 5});
        ASSERT_EQ(RunOperator("aclnnCrossEntropyLossGrad",
                              {gradient.reshape(shaped.sizes()), logarithms, target, weights,
                               Null{}, Null{}, name, int64_t{1}, smoothing, 0.0, of_scores}),
                  0)
            << LastMessage();
        EXPECT_TRUE(at::allclose(of_scores, scores.grad(), 1e-5, 1e-6)) << name << smoothing;
      }
    }
    ++reduction;
  }
}

TEST(CrossEntropy, TheZLossIsRefused) {
  const Tensor scores = Random({3, 4}), target = at::zeros({3}, at::kLong), loss = at::empty({1});
  const auto call = [&](const char* name, double scale, bool wanted) {
    return RunOperator("aclnnCrossEntropyLoss",
                       {scores, target, Null{}, name, int64_t{-100}, 0.0, scale, wanted, loss,
                        at::empty({3, 4}), Null{}, Null{}});
  };
  EXPECT_EQ(call("mean", 0.0, false), 0) << LastMessage();
  EXPECT_EQ(call("mean", 0.5, false), kReject);
  EXPECT_EQ(call("mean", 0.0, true), kReject);
  EXPECT_EQ(LastMessage(),
            "aclnnCrossEntropyLoss: returnZloss is set; the soft device has no z loss.");
  EXPECT_EQ(call("product", 0.0, false), kReject);
}

// 1.5 is 0x3FC00000; of 1.0002441 (0x3F800800) the last bits are cut off.
TEST(TransQuantParam, PutsTheScaleAndTheOffsetIntoTheBitsOfTheDevice) {
  const Tensor scale = at::tensor({1.5, 1.0 + 1.0 / 4096}, at::kFloat);
  const Tensor plain = at::tensor({0x40003FC00000, 0x40003F800000}, at::kLong);
  Check("aclnnTransQuantParamV2", {scale, Null{}}, {plain});
  Check("aclnnTransQuantParamV3", {scale, Null{}, int64_t{0}}, {plain});
  // 3 and -300, which becomes -256: 0x003 and 0x100 from bit 37 on.
  const Tensor offset = at::tensor({2.6, -300.0}, at::kFloat);
  const Tensor shifted = at::tensor({0x3, 0x100}, at::kLong) * (int64_t{1} << 37);
  Check("aclnnTransQuantParamV2", {scale, offset}, {plain + shifted});
  EXPECT_EQ(
      RunOperator("aclnnTransQuantParamV3", {scale, offset, int64_t{2}, at::empty({2}, at::kLong)}),
      kReject);
  EXPECT_EQ(RunOperator("aclnnTransQuantParamV2", {scale, offset, at::empty({2})}), kReject);
}

// The lower 13 bits of 0x3F80xxxx are rounded off: down, up, and halves to the even neighbour.
TEST(TransQuantParam, RoundsTheScaleInModeOne) {
  const Tensor bits = at::tensor({0x3F800FFF, 0x3F801001, 0x3F801000, 0x3F803000}, at::kInt);
  const Tensor rounded = at::tensor({0x3F800000, 0x3F802000, 0x3F800000, 0x3F804000}, at::kLong);
  Check("aclnnTransQuantParamV3", {bits.view(at::kFloat), Null{}, int64_t{1}},
        {rounded + (int64_t{1} << 46)});
}

TEST(WeightNz, ProductsWithAWeightOfThatFormatAreTheUsualOnes) {
  const Tensor x = Random({3, 4}), weight = Random({5, 4}).t(), bias = Random({5});
  Check("aclnnMatmulWeightNz", {x, weight}, {at::mm(x, weight)}, {int64_t{0}});
  Check("aclnnAddmmWeightNz", {bias, x, weight, 0.5, 2.0}, {at::addmm(bias, x, weight, 0.5, 2.0)},
        {int64_t{0}});
  const Tensor batch = Random({2, 3, 4}), weights = Random({2, 4, 5});
  Check("aclnnBatchMatMulWeightNz", {batch, weights}, {at::bmm(batch, weights)}, {int64_t{0}});
  EXPECT_EQ(RunOperator("aclnnMatmulWeightNz", {x, x, at::empty({3, 4}), int64_t{0}}), kReject);
}

}  // namespace
}  // namespace acltape::opapi
