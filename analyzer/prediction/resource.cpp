#include "analyzer/prediction/resource.h"

namespace acltape::analyzer::prediction {
namespace {

struct Row {
  std::string_view pattern;  // a name, or the begin of a name if it ends with *
  streams::Resource resource;
};

// The first row that fits counts.
constexpr Row kRows[] = {
    {"aten::mm", streams::Resource::kCube},
    {"aten::addmm*", streams::Resource::kCube},
    {"aten::bmm", streams::Resource::kCube},
    {"aten::baddbmm*", streams::Resource::kCube},
    {"aten::addbmm*", streams::Resource::kCube},
    {"aten::matmul", streams::Resource::kCube},
    {"aten::linear*", streams::Resource::kCube},
    {"aten::addmv*", streams::Resource::kCube},
    {"aten::mv", streams::Resource::kCube},
    {"aten::convolution*", streams::Resource::kCube},
    {"aten::_convolution*", streams::Resource::kCube},
    {"aten::mkldnn_convolution*", streams::Resource::kCube},
    {"aten::conv*", streams::Resource::kCube},
    {"aten::thnn_conv*", streams::Resource::kCube},
    {"aten::slow_conv*", streams::Resource::kCube},
    {"aten::_slow_conv*", streams::Resource::kCube},
    {"aten::mkldnn_linear*", streams::Resource::kCube},
    {"aten::_scaled_dot_product*", streams::Resource::kCube},
    {"aten::scaled_dot_product*", streams::Resource::kCube},
    {"npu::npu_fusion_attention*", streams::Resource::kCube},
    {"npu::npu_flash_attention*", streams::Resource::kCube},
    {"npu::npu_incre_flash_attention*", streams::Resource::kCube},
    {"npu::npu_prompt_flash_attention*", streams::Resource::kCube},
    {"npu::npu_grouped_matmul*", streams::Resource::kCube},
    {"aclnnMm", streams::Resource::kCube},
    {"aclnnMatmul*", streams::Resource::kCube},
    {"aclnnBatchMatMul*", streams::Resource::kCube},
    {"aclnnBaddbmm*", streams::Resource::kCube},
    {"aclnnAddbmm*", streams::Resource::kCube},
    {"aclnnAddmm*", streams::Resource::kCube},
    {"aclnnAddmv*", streams::Resource::kCube},
    {"aclnnMv", streams::Resource::kCube},
    {"aclnnGemm*", streams::Resource::kCube},
    {"aclnnConvolution*", streams::Resource::kCube},
    {"aclnnGroupedMatmul*", streams::Resource::kCube},
    {"aclnnQuantMatmul*", streams::Resource::kCube},
    {"aclnnWeightQuantBatchMatmul*", streams::Resource::kCube},
    {"aclnnFlashAttention*", streams::Resource::kCube},
    {"aclnnFusedInferAttention*", streams::Resource::kCube},
    {"aclnnIncreFlashAttention*", streams::Resource::kCube},
    {"aclnnPromptFlashAttention*", streams::Resource::kCube},
    {"aclrtMemcpy*", streams::Resource::kCopy},
    {"aclrtMemset*", streams::Resource::kCopy},
    {"c10d::*", streams::Resource::kCommunication},
    {"_c10d_functional::*", streams::Resource::kCommunication},
    {"c10d_functional::*", streams::Resource::kCommunication},
    {"Hccl*", streams::Resource::kCommunication},
};

bool Fits(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

streams::Resource ResourceOf(std::string_view op) {
  const std::string_view name = op.substr(0, op.find('.'));
  for (const Row& row : kRows) {
    if (Fits(row.pattern, name)) return row.resource;
  }
  return streams::Resource::kVector;
}

}  // namespace acltape::analyzer::prediction
