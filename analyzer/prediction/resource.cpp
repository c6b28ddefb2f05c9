#include "analyzer/prediction/resource.h"

namespace acltape::analyzer {
namespace {

struct Row {
  std::string_view pattern;  // a name, or the begin of a name if it ends with *
  Resource resource;
};

// The first row that fits counts.
constexpr Row kRows[] = {
    {"aten::mm", Resource::kCube},
    {"aten::addmm*", Resource::kCube},
    {"aten::bmm", Resource::kCube},
    {"aten::baddbmm*", Resource::kCube},
    {"aten::addbmm*", Resource::kCube},
    {"aten::matmul", Resource::kCube},
    {"aten::linear*", Resource::kCube},
    {"aten::addmv*", Resource::kCube},
    {"aten::mv", Resource::kCube},
    {"aten::convolution*", Resource::kCube},
    {"aten::_convolution*", Resource::kCube},
    {"aten::mkldnn_convolution*", Resource::kCube},
    {"aten::conv*", Resource::kCube},
    {"aten::thnn_conv*", Resource::kCube},
    {"aten::slow_conv*", Resource::kCube},
    {"aten::_slow_conv*", Resource::kCube},
    {"aten::mkldnn_linear*", Resource::kCube},
    {"aten::_scaled_dot_product*", Resource::kCube},
    {"aten::scaled_dot_product*", Resource::kCube},
    {"npu::npu_fusion_attention*", Resource::kCube},
    {"npu::npu_flash_attention*", Resource::kCube},
    {"npu::npu_incre_flash_attention*", Resource::kCube},
    {"npu::npu_prompt_flash_attention*", Resource::kCube},
    {"npu::npu_grouped_matmul*", Resource::kCube},
    {"aclnnMm", Resource::kCube},
    {"aclnnMatmul*", Resource::kCube},
    {"aclnnBatchMatMul*", Resource::kCube},
    {"aclnnBaddbmm*", Resource::kCube},
    {"aclnnAddbmm*", Resource::kCube},
    {"aclnnAddmm*", Resource::kCube},
    {"aclnnAddmv*", Resource::kCube},
    {"aclnnMv", Resource::kCube},
    {"aclnnGemm*", Resource::kCube},
    {"aclnnConvolution*", Resource::kCube},
    {"aclnnGroupedMatmul*", Resource::kCube},
    {"aclnnQuantMatmul*", Resource::kCube},
    {"aclnnWeightQuantBatchMatmul*", Resource::kCube},
    {"aclnnFlashAttention*", Resource::kCube},
    {"aclnnFusedInferAttention*", Resource::kCube},
    {"aclnnIncreFlashAttention*", Resource::kCube},
    {"aclnnPromptFlashAttention*", Resource::kCube},
    {"aclrtMemcpy*", Resource::kCopy},
    {"aclrtMemset*", Resource::kCopy},
    {"c10d::*", Resource::kCommunication},
    {"_c10d_functional::*", Resource::kCommunication},
    {"c10d_functional::*", Resource::kCommunication},
    {"Hccl*", Resource::kCommunication},
};

bool Fits(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

Resource ResourceOf(std::string_view op) {
  const std::string_view name = op.substr(0, op.find('.'));
  for (const Row& row : kRows) {
    if (Fits(row.pattern, name)) return row.resource;
  }
  return Resource::kVector;
}

}  // namespace acltape::analyzer
