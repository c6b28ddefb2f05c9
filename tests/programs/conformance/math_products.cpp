// Products of matrices: in batches, with an addend, and with an addend in batches.
#include "acl/acl.h"
#include "aclnnop/aclnn_addmm.h"
#include "aclnnop/aclnn_baddbmm.h"
#include "aclnnop/aclnn_batch_matmul.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    const std::vector<float> a = Numbers(2 * 3 * 4), b = Numbers(2 * 4 * 5, 2), c = Numbers(5, 3);
    Tensor left({2, 3, 4}, a), right({2, 4, 5}, b), product({2, 3, 5}), sums({2, 3, 5});
    RUN_OP(stream, aclnnBatchMatMul, left, right, product, int8_t{0});
    const int64_t one_left[] = {3, 4}, one_right[] = {4, 5};
    aclTensor* first = MakeTensor(ACL_FLOAT, 2, one_left, left.block());
    aclTensor* second = MakeTensor(ACL_FLOAT, 2, one_right, right.block());
    Tensor addend({5}, c), sum({3, 5});
    aclScalar *half = MakeScalar(0.5f), *two = MakeScalar(2);
    RUN_OP(stream, aclnnAddmm, addend, first, second, half, two, sum, int8_t{0});
    RUN_OP(stream, aclnnBaddbmm, addend, left, right, half, two, sums, int8_t{0});
    std::vector<double> expected(30), expected_sums(30);
    for (size_t i = 0; i < 30; ++i) {
      for (size_t k = 0; k < 4; ++k) {
        expected[i] += static_cast<double>(a[i / 5 * 4 + k]) * b[i / 15 * 20 + k * 5 + i % 5];
      }
      expected_sums[i] = 0.5 * c[i % 5] + 2 * expected[i];
    }
    CheckNear(product.Read(stream), expected, 1e-5);
    CheckNear(sums.Read(stream), expected_sums, 1e-5);
    expected_sums.resize(15);
    CheckNear(sum.Read(stream), expected_sums, 1e-5);
    CHECK_ACL(aclDestroyTensor(first));
    CHECK_ACL(aclDestroyTensor(second));
    CHECK_ACL(aclDestroyScalar(half));
    CHECK_ACL(aclDestroyScalar(two));
  }
  FreeWorkspaces();
  return EndSession(stream);
}
