// A straight line is fitted by gradient descent: forward, loss, backward and update, 60 steps.
#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_mse_loss.h"
#include "aclnnop/aclnn_mse_loss_backward.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    constexpr int kRows = 16, kColumns = 3, kSteps = 60;
    const std::vector<float> x = Numbers(kRows * kColumns), truth = {0.5f, -1, 2};
    std::vector<float> y(kRows), turned(kRows * kColumns);
    for (int i = 0; i < kRows * kColumns; ++i) {
      y[i / kColumns] += x[i] * truth[i % kColumns];
      turned[i % kColumns * kRows + i / kColumns] = x[i];
    }
    Tensor input({kRows, kColumns}, x), input_turned({kColumns, kRows}, turned),
        target({kRows, 1}, y);
    Tensor weight({kColumns, 1}, std::vector<float>(kColumns)), guess({kRows, 1}),
        slope({kRows, 1});
    Tensor gradient({kColumns, 1}), loss(std::vector<int64_t>{}), one(std::vector<int64_t>{}, {1});
    aclScalar* rate = MakeScalar(-0.6f);
    std::vector<float> losses;
    for (int step = 0; step < kSteps; ++step) {
      RUN_OP(stream, aclnnMatmul, input, weight, guess, int8_t{0});
      RUN_OP(stream, aclnnMseLoss, guess, target, 1, loss);
      RUN_OP(stream, aclnnMseLossBackward, one, guess, target, 1, slope);
      RUN_OP(stream, aclnnMatmul, input_turned, slope, gradient, int8_t{0});
      RUN_OP(stream, aclnnInplaceAdd, weight, gradient, rate);
      losses.push_back(loss.Read(stream)[0]);
    }
    CHECK(losses.back() < losses.front() / 1000);
    CheckNear(weight.Read(stream), {0.5, -1, 2}, 0.05);
    CHECK_ACL(aclDestroyScalar(rate));
  }
  FreeWorkspaces();
  return EndSession(stream);
}
