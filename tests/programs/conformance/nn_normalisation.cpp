// Norms over rows, over groups and over batches.
#include "acl/acl.h"
#include "aclnnop/aclnn_batch_norm.h"
#include "aclnnop/aclnn_group_norm.h"
#include "aclnnop/aclnn_layer_norm.h"
#include "tensors.h"

namespace {

constexpr double kEpsilon = 1e-5;

// (x - mean) / sqrt(variance + epsilon) over the elements for which `same` says that they are of
// one set.
template <typename Same>
std::vector<double> Normal(const std::vector<float>& x, Same same) {
  std::vector<double> made;
  for (size_t i = 0; i < x.size(); ++i) {
    double count = 0, mean = 0, variance = 0;
    for (size_t k = 0; k < x.size(); ++k) count += same(i, k), mean += same(i, k) ? x[k] : 0;
    mean /= count;
    for (size_t k = 0; k < x.size(); ++k)
      variance += same(i, k) ? (x[k] - mean) * (x[k] - mean) / count : 0;
    made.push_back((x[i] - mean) / std::sqrt(variance + kEpsilon));
  }
  return made;
}

}  // namespace

int main() {
  aclrtStream stream = StartSession();
  {
    const std::vector<float> x = Numbers(2 * 4 * 3), ones(4, 1), zeros(4, 0);
    Tensor input({2, 4, 3}, x), rows({2, 4, 3}), groups({2, 4, 3}), batch({2, 4, 3});
    Tensor row_mean({2, 4, 1}), row_root({2, 4, 1}), group_mean({2, 2}), group_root({2, 2});
    Tensor weight({4}, ones), bias({4}, zeros), mean({4}, zeros), variance({4}, ones), saved({4}),
        root({4});
    RUN_OP(stream, aclnnLayerNorm, input, Ints({3}), nullptr, nullptr, kEpsilon, rows, row_mean,
           row_root);
    RUN_OP(stream, aclnnGroupNorm, input, weight, bias, 2, 4, 3, 2, kEpsilon, groups, group_mean,
           group_root);
    RUN_OP(stream, aclnnBatchNorm, input, weight, bias, mean, variance, true, 0.1, kEpsilon, batch,
           saved, root);
    CheckNear(rows.Read(stream), Normal(x, [](size_t a, size_t b) { return a / 3 == b / 3; }),
              1e-4);
    CheckNear(groups.Read(stream), Normal(x, [](size_t a, size_t b) { return a / 6 == b / 6; }),
              1e-4);
    CheckNear(batch.Read(stream),
              Normal(x, [](size_t a, size_t b) { return a / 3 % 4 == b / 3 % 4; }), 1e-4);
    std::vector<double> moved(4);
    for (size_t i = 0; i < x.size(); ++i) moved[i / 3 % 4] += 0.1 * x[i] / 6;
    CheckNear(mean.Read(stream), moved, 1e-5);
  }
  FreeWorkspaces();
  return EndSession(stream);
}
