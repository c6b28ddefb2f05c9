// Rows are quantised with a scale each, and multiplied by a weight of 8 bits.
#include "acl/acl.h"
#include "aclnnop/aclnn_dynamic_quant.h"
#include "aclnnop/aclnn_quant_matmul_v4.h"
#include "tensors.h"

int main() {
  aclrtStream stream = StartSession();
  {
    constexpr int kRows = 4, kInner = 32, kColumns = 8;
    const std::vector<float> numbers = Numbers(kRows * kInner), factors = Numbers(kColumns, 7);
    std::vector<aclFloat16> halves;
    for (float number : numbers) halves.push_back(aclFloatToFloat16(number));
    std::vector<int8_t> weights;
    for (int i = 0; i < kInner * kColumns; ++i)
      weights.push_back(static_cast<int8_t>(i * 29 % 255 - 127));
    std::vector<float> scales;
    for (float factor : factors) scales.push_back(0.01f + std::fabs(factor) / 100);
    Tensor x(ACL_FLOAT16, {kRows, kInner}, halves), quantised(ACL_INT8, {kRows, kInner}),
        row_scales({kRows});
    Tensor weight(ACL_INT8, {kInner, kColumns}, weights), scale({kColumns}, scales);
    Tensor product(ACL_FLOAT16, {kRows, kColumns});
    RUN_OP(stream, aclnnDynamicQuant, x, nullptr, quantised, row_scales);
    RUN_OP(stream, aclnnQuantMatmulV4, quantised, weight, scale, nullptr, row_scales, nullptr,
           false, false, product);
    const auto rows = row_scales.Read(stream);
    const auto small = quantised.Read<int8_t>(stream);
    const auto found = product.Read<aclFloat16>(stream);
    for (int i = 0; i < kRows * kInner; ++i) {
      CHECK(Near(small[i] * static_cast<double>(rows[i / kInner]), aclFloat16ToFloat(halves[i]),
                 rows[i / kInner]));
    }
    for (int i = 0; i < kRows * kColumns; ++i) {
      double sum = 0;
      for (int k = 0; k < kInner; ++k) {
        sum += small[i / kColumns * kInner + k] *
               weights[static_cast<size_t>(k * kColumns + i % kColumns)];
      }
      sum *= static_cast<double>(scales[i % kColumns]) * rows[i / kColumns];
      CHECK(Near(aclFloat16ToFloat(found[i]), sum, std::fabs(sum) / 512 + 1e-3));
    }
  }
  FreeWorkspaces();
  return EndSession(stream);
}
