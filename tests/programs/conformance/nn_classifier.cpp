// A small classifier: convolution, pooling, a linear layer, and the loss of its guesses.
#include "acl/acl.h"
#include "aclnnop/aclnn_addmm.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_logsoftmax.h"
#include "aclnnop/aclnn_max_pool2d_with_indices.h"
#include "aclnnop/aclnn_nll_loss.h"
#include "aclnnop/aclnn_relu.h"
#include "tensors.h"

namespace {

constexpr int kSide = 6, kClasses = 3;

// Computes the result that the program expects, by loops.
double Loss(const std::vector<float>& x, const std::vector<float>& w,
            const std::vector<float>& linear, int target) {
  double pooled[9], logits[kClasses] = {}, sum = 0;
  for (int block = 0; block < 9; ++block) {
    pooled[block] = 0;  // as after a relu
    for (int i = 0; i < 4; ++i) {
      const int row = block / 3 * 2 + i / 2, column = block % 3 * 2 + i % 2;
      double value = 0;
      for (int k = 0; k < 9; ++k) {
        const int r = row + k / 3 - 1, c = column + k % 3 - 1;
        if (r >= 0 && r < kSide && c >= 0 && c < kSide)
          value += static_cast<double>(x[r * kSide + c]) * w[k];
      }
      pooled[block] = std::fmax(pooled[block], value);
    }
  }
  for (int c = 0; c < kClasses; ++c) {
    for (int i = 0; i < 9; ++i) logits[c] += pooled[i] * linear[i * kClasses + c];
    sum += std::exp(logits[c]);
  }
  return std::log(sum) - logits[target];
}

}  // namespace

int main() {
  aclrtStream stream = StartSession();
  {
    const std::vector<float> x = Numbers(kSide * kSide), w = Numbers(9, 4),
                             linear = Numbers(9 * kClasses, 6);
    Tensor image({1, 1, kSide, kSide}, x), kernel({1, 1, 3, 3}, w), filtered({1, 1, kSide, kSide});
    Tensor pooled({1, 1, 3, 3}), indices(ACL_INT32, {1, 1, 3, 3}), weights({9, kClasses}, linear);
    Tensor zero({1, kClasses}, std::vector<float>(kClasses)), logits({1, kClasses}),
        logs({1, kClasses});
    Tensor target(ACL_INT64, {1}, std::vector<int64_t>{2}),
        ones({kClasses}, std::vector<float>(kClasses, 1));
    Tensor loss(std::vector<int64_t>{}), total(std::vector<int64_t>{});
    RUN_OP(stream, aclnnConvolution, image, kernel, nullptr, Ints({1, 1}), Ints({1, 1}),
           Ints({1, 1}), false, Ints({0, 0}), 1, filtered, int8_t{0});
    RUN_OP(stream, aclnnRelu, filtered, filtered);
    RUN_OP(stream, aclnnMaxPool2dWithIndices, filtered, Ints({2, 2}), Ints({2, 2}), Ints({0, 0}),
           Ints({1, 1}), false, pooled, indices);
    const int64_t flat[] = {1, 9};
    aclTensor* row = MakeTensor(ACL_FLOAT, 2, flat, pooled.block());
    aclScalar* one = MakeScalar(1);
    RUN_OP(stream, aclnnAddmm, zero, row, weights, one, one, logits, int8_t{0});
    RUN_OP(stream, aclnnLogSoftmax, logits, 1, logs);
    RUN_OP(stream, aclnnNLLLoss, logs, target, ones, 1, -100, loss, total);
    CheckNear(loss.Read(stream), {Loss(x, w, linear, 2)}, 1e-5);
    CHECK_ACL(aclDestroyTensor(row));
    CHECK_ACL(aclDestroyScalar(one));
  }
  FreeWorkspaces();
  return EndSession(stream);
}
