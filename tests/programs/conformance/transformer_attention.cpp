// Attention over a prompt with a causal mask, held against loops.
#include "acl/acl.h"
#include "aclnnop/aclnn_flash_attention_score.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    constexpr int kHeads = 2, kRows = 16, kWidth = 16, kCount = kHeads * kRows * kWidth;
    const std::vector<float> q = Numbers(kCount), k = Numbers(kCount, 2), v = Numbers(kCount, 3);
    std::vector<uint8_t> later(kRows * kRows);
    for (int i = 0; i < kRows * kRows; ++i) later[i] = i % kRows > i / kRows;
    const std::vector<int64_t> sizes = {1, kHeads, kRows, kWidth},
                               statistics = {1, kHeads, kRows, 8};
    Tensor query(sizes, q), key(sizes, k), value(sizes, v), out(sizes), maximum(statistics),
        sum(statistics);
    Tensor mask(ACL_BOOL, {kRows, kRows}, later), unused(ACL_FLOAT, {1});
    char layout[] = "BNSD";
    RUN_OP(stream, aclnnFlashAttentionScore, query, key, value, nullptr, nullptr, nullptr, mask,
           nullptr, 0.25, 1.0, 65536, 65536, kHeads, layout, 0, 0, maximum, sum, unused, out);
    std::vector<double> expected;
    for (int row = 0; row < kHeads * kRows; ++row) {
      const int head = row / kRows;
      std::vector<double> weights;
      double all = 0, result[kWidth] = {};
      for (int other = 0; other <= row % kRows; ++other) {
        double score = 0;
        for (int i = 0; i < kWidth; ++i) {
          score +=
              static_cast<double>(q[row * kWidth + i]) * k[(head * kRows + other) * kWidth + i];
        }
        weights.push_back(std::exp(0.25 * score));
        all += weights.back();
      }
      for (int other = 0; other <= row % kRows; ++other) {
        for (int i = 0; i < kWidth; ++i)
          result[i] += weights[other] / all * v[(head * kRows + other) * kWidth + i];
      }
      expected.insert(expected.end(), result, result + kWidth);
    }
    CheckNear(out.Read(stream), expected, 1e-5);
  }
  FreeWorkspaces();
  return EndSession(stream);
}
