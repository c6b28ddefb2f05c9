// Sums, means and maxima along dims, and running sums.
#include "acl/acl.h"
#include "aclnnop/aclnn_amax.h"
#include "aclnnop/aclnn_cumsum.h"
#include "aclnnop/aclnn_mean.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    const std::vector<float> x = Numbers(24);
    Tensor input({4, 6}, x), sums({4}), means({1, 6}), largest({4}), running({4, 6});
    RUN_OP(stream, aclnnReduceSum, input, Ints({1}), false, ACL_FLOAT, sums);
    RUN_OP(stream, aclnnMean, input, Ints({0}), true, ACL_FLOAT, means);
    RUN_OP(stream, aclnnAmax, input, Ints({-1}), false, largest);
    RUN_OP(stream, aclnnCumsum, input, 1, ACL_FLOAT, running);
    std::vector<double> row_sums(4), column_means(6), maxima(4, -9), partial(24);
    for (size_t i = 0; i < 24; ++i) {
      row_sums[i / 6] += x[i];
      column_means[i % 6] += x[i] / 4.0;
      maxima[i / 6] = std::fmax(maxima[i / 6], x[i]);
      partial[i] = row_sums[i / 6];
    }
    CheckNear(sums.Read(stream), row_sums, 1e-5);
    CheckNear(means.Read(stream), column_means, 1e-6);
    CheckNear(largest.Read(stream), maxima, 0);
    CheckNear(running.Read(stream), partial, 1e-5);
  }
  FreeWorkspaces();
  return EndSession(stream);
}
