// The router of a mixture of experts: which experts each row goes to, and with which weight.
#include <algorithm>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    constexpr int kRows = 6, kExperts = 8, kChosen = 2;
    const std::vector<float> scores = Numbers(kRows * kExperts);
    Tensor x({kRows, kExperts}, scores), weights({kRows, kChosen});
    Tensor experts(ACL_INT32, {kRows, kChosen}), rows(ACL_INT32, {kRows, kChosen});
    RUN_OP(stream, aclnnMoeGatingTopKSoftmax, x, nullptr, kChosen, weights, experts, rows);
    const auto found = weights.Read(stream);
    const auto chosen = experts.Read<int32_t>(stream), places = rows.Read<int32_t>(stream);
    for (int row = 0; row < kRows; ++row) {
      const float* own = &scores[row * kExperts];
      double sum = 0;
      for (int i = 0; i < kExperts; ++i) sum += std::exp(static_cast<double>(own[i]));
      CHECK(own[chosen[row * kChosen]] == *std::max_element(own, own + kExperts));
      for (int i = 0; i < kChosen; ++i) {
        const int index = row * kChosen + i;
        CHECK(Near(found[index], std::exp(static_cast<double>(own[chosen[index]])) / sum, 1e-6));
        CHECK(places[index] == i * kRows + row);
      }
    }
  }
  FreeWorkspaces();
  return EndSession(stream);
}
