// Layers, activations and losses with their gradients.
#include "analyzer/lowering/rules.h"

namespace acltape::analyzer::lowering {

const std::vector<LoweringRule>& LayerRules() {
  static const std::vector<LoweringRule> rules = {
      // ---- convolution; the 0 before `out` or last keeps float32 ----
      {"convolution", "",
       "aclnnConvolution(input, weight, bias, stride, padding, dilation, transposed, "
       "output_padding, groups, out, 0)"},
      {"convolution_overrideable", "",
       "aclnnConvolution(input, weight, bias, stride, padding, dilation, transposed, "
       "output_padding, groups, out, 0)"},
      {"convolution_backward", "",
       "aclnnConvolutionBackward(grad_output, input, weight, bias_sizes, stride, padding, "
       "dilation, transposed, output_padding, groups, output_mask, 0, out0, out1, out2)"},

      // ---- normalisation ----
      {"native_batch_norm", "",
       "aclnnBatchNorm(input, weight, bias, running_mean, running_var, training, momentum, eps, "
       "out0, out1, out2)"},
      {"native_batch_norm_backward", "",
       "aclnnBatchNormBackward(grad_out, input, weight, running_mean, running_var, save_mean, "
       "save_invstd, train, eps, output_mask, out0, out1, out2)"},
      {"native_layer_norm", "",
       "aclnnLayerNorm(input, normalized_shape, weight, bias, eps, out0, out1, out2)"},
      {"native_layer_norm_backward", "",
       "aclnnLayerNormBackward(grad_out, input, normalized_shape, mean, rstd, weight, bias, "
       "output_mask, out0, out1, out2)"},
      {"native_group_norm", "",
       "aclnnGroupNorm(input, weight, bias, N, C, HxW, group, eps, out0, out1, out2)"},
      {"native_group_norm_backward", "",
       "aclnnGroupNormBackward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask, "
       "out0, out1, out2)"},

      // ---- activations ----
      {"relu", "", "aclnnRelu(self, out)", kAlsoInPlace},
      {"threshold", "", "aclnnThreshold(self, threshold, value, out)", kAlsoInPlace},
      {"threshold_backward", "", "aclnnThresholdBackward(grad_output, self, threshold, out)"},
      {"gelu", "device", "aclnnGelu(self, out)"},
      {"gelu", "", "aclnnGeluV2(self, pick(or(approximate, 'none'), 'none', 0, 'tanh', 1), out)"},
      {"gelu_backward", "device", "aclnnGeluBackward(grad_output, self, out)"},
      {"gelu_backward", "", "aclnnGeluBackwardV2(grad_output, self, or(approximate, 'none'), out)"},
      {"tanh", "", "aclnnTanh(self, out)", kAlsoInPlace},
      {"tanh_backward", "", "aclnnTanhBackward(grad_output, output, out)"},
      {"sigmoid", "", "aclnnSigmoid(self, out)", kAlsoInPlace},
      {"sigmoid_backward", "", "aclnnSigmoidBackward(grad_output, output, out)"},
      {"silu", "", "aclnnSilu(self, out)", kAlsoIntoSelf},
      {"silu_backward", "", "aclnnSiluBackward(grad_output, self, out)"},
      {"leaky_relu", "", "aclnnLeakyRelu(self, negative_slope, out)", kAlsoInPlace},
      {"leaky_relu_backward", "",
       "aclnnLeakyReluBackward(grad_output, self, negative_slope, self_is_result, out)"},
      {"elu", "", "aclnnElu(self, alpha, scale, input_scale, out)", kAlsoInPlace},
      {"elu_backward", "",
       "aclnnEluBackward(grad_output, alpha, scale, input_scale, is_result, self_or_result, out)"},
      {"celu", "", "aclnnCelu(self, alpha, out)"},
      {"hardtanh", "", "aclnnHardtanh(self, min_val, max_val, out)", kAlsoInPlace},
      {"hardtanh_backward", "", "aclnnHardtanhBackward(grad_output, self, min_val, max_val, out)"},
      {"hardswish", "", "aclnnHardswish(self, out)", kAlsoInPlace},
      {"hardswish_backward", "", "aclnnHardswishBackward(grad_output, self, out)"},
      {"hardsigmoid", "", "aclnnHardsigmoid(self, out)"},
      {"hardsigmoid_backward", "", "aclnnHardsigmoidBackward(grad_output, self, out)"},
      {"softplus", "", "aclnnSoftplus(self, beta, threshold, out)"},
      {"softplus_backward", "", "aclnnSoftplusBackward(grad_output, self, beta, threshold, out)"},
      {"mish", "", "aclnnMish(self, out)"},
      {"mish_backward", "", "aclnnMishBackward(grad_output, self, out)"},
      {"glu", "", "aclnnGlu(self, dim, out)"},
      {"glu_backward", "", "aclnnGluBackward(grad_output, self, dim, out)"},
      {"log_sigmoid_forward", "", "aclnnLogSigmoidForward(self, out0, out1)"},
      {"log_sigmoid_backward", "", "aclnnLogSigmoidBackward(grad_output, self, buffer, out)"},
      {"_prelu_kernel", "", "aclnnPrelu(self, weight, out)"},
      {"prelu", "", "aclnnPrelu(self, weight, out)"},
      // The second result is summed over what the weight is broadcast to; elsewhere PyTorch does
      // that.
      {"_prelu_kernel_backward", "device",
       "aclnnPreluBackward(grad_output, self, weight, out0, out1)"},
      {"softshrink", "", "aclnnSoftshrink(self, lambd, out)"},
      {"softshrink_backward", "", "aclnnSoftshrinkBackward(grad_output, self, lambd, out)"},
      {"hardshrink", "", "aclnnHardshrink(self, lambd, out)"},
      {"hardshrink_backward", "", "aclnnHardshrinkBackward(grad_out, self, lambd, out)"},
      {"logit", "", "aclnnLogit(self, or(eps, -1.0), out)"},
      {"logit_backward", "", "aclnnLogitGrad(self, grad_output, or(eps, -1.0), out)"},
      {"_softmax", "half_to_float=false", "aclnnSoftmax(self, dim, out)"},
      {"_softmax_backward_data", "", "aclnnSoftmaxBackward(grad_output, output, dim, out)"},
      {"_log_softmax", "half_to_float=false", "aclnnLogSoftmax(self, dim, out)"},
      {"_log_softmax_backward_data", "", "aclnnLogSoftmaxBackward(grad_output, output, dim, out)"},
      // A row in which all elements are left out gives zeros.
      {"_safe_softmax", "-dtype",
       "aclnnSoftmax(self, dim, out); aclnnInplaceMaskedFillScalar(out, leftout(self, dim), 0)"},

      // ---- fused attention. The statistics of the operator, the greatest score of a row and the
      // sum of the exponentials, hold together what PyTorch keeps: the logarithm of the sum. ----
      {"_scaled_dot_product_flash_attention_for_cpu", "+attn_mask",
       "aclnnFlashAttentionScoreV2(query, key, value, perscore(attn_mask, query, key), none, none, "
       "none, none, none, none, or(scale, rsqrt(size(query, -1))), 1.0, 2147483647, "
       "2147483647, size(query, 1), 'BNSD', 0, 0, 0, statistic(out1, 'maximum'), "
       "statistic(out1, 'sum'), none, out0); "
       "aclnnLog(select(statistic(out1, 'sum'), -1, 0), out1); "
       "aclnnInplaceAdd(out1, select(statistic(out1, 'maximum'), -1, 0), 1)"},
      {"_scaled_dot_product_flash_attention_for_cpu", "is_causal=true",
       "aclnnFlashAttentionScoreV2(query, key, value, none, none, none, "
       "causal(query, key), none, none, none, or(scale, rsqrt(size(query, -1))), 1.0, 2147483647, "
       "2147483647, size(query, 1), 'BNSD', 0, 1, 0, statistic(out1, 'maximum'), "
       "statistic(out1, 'sum'), none, out0); "
       "aclnnLog(select(statistic(out1, 'sum'), -1, 0), out1); "
       "aclnnInplaceAdd(out1, select(statistic(out1, 'maximum'), -1, 0), 1)"},
      {"_scaled_dot_product_flash_attention_for_cpu", "",
       "aclnnFlashAttentionScoreV2(query, key, value, none, none, none, "
       "none, none, none, none, or(scale, rsqrt(size(query, -1))), 1.0, 2147483647, "
       "2147483647, size(query, 1), 'BNSD', 0, 0, 0, statistic(out1, 'maximum'), "
       "statistic(out1, 'sum'), none, out0); "
       "aclnnLog(select(statistic(out1, 'sum'), -1, 0), out1); "
       "aclnnInplaceAdd(out1, select(statistic(out1, 'maximum'), -1, 0), 1)"},
      {"_scaled_dot_product_flash_attention_for_cpu_backward", "+attn_mask",
       "aclnnFlashAttentionScoreGradV2(query, key, value, grad_out, perscore(attn_mask, query, "
       "key), "
       "none, none, none, repeated(logsumexp), repeatedones(logsumexp), none, out, "
       "none, none, none, or(scale, rsqrt(size(query, -1))), 1.0, 2147483647, 2147483647, "
       "size(query, 1), 'BNSD', 0, 0, 0, out0, out1, out2, likescores(out0, query, key))"},
      {"_scaled_dot_product_flash_attention_for_cpu_backward", "is_causal=true",
       "aclnnFlashAttentionScoreGradV2(query, key, value, grad_out, none, "
       "none, none, causal(query, key), repeated(logsumexp), repeatedones(logsumexp), none, out, "
       "none, none, none, or(scale, rsqrt(size(query, -1))), 1.0, 2147483647, 2147483647, "
       "size(query, 1), 'BNSD', 0, 1, 0, out0, out1, out2, none)"},
      {"_scaled_dot_product_flash_attention_for_cpu_backward", "",
       "aclnnFlashAttentionScoreGradV2(query, key, value, grad_out, none, "
       "none, none, none, repeated(logsumexp), repeatedones(logsumexp), none, out, "
       "none, none, none, or(scale, rsqrt(size(query, -1))), 1.0, 2147483647, 2147483647, "
       "size(query, 1), 'BNSD', 0, 0, 0, out0, out1, out2, none)"},

      // ---- losses; a missing class weight is a vector of ones for the operator ----
      {"nll_loss_forward", "",
       "aclnnNLLLoss(self, target, or(weight, ones(self, size(self, -1))), reduction, "
       "ignore_index, out0, out1)"},
      {"nll_loss_backward", "",
       "aclnnNLLLossBackward(grad_output, self, target, or(weight, ones(self, size(self, -1))), "
       "reduction, ignore_index, total_weight, out)"},
      {"nll_loss2d_forward", "",
       "aclnnNLLLoss2d(self, target, or(weight, ones(self, size(self, 1))), reduction, "
       "ignore_index, out0, out1)"},
      {"nll_loss2d_backward", "",
       "aclnnNLLLoss2dBackward(grad_output, self, target, or(weight, ones(self, size(self, 1))), "
       "reduction, ignore_index, total_weight, out)"},
      {"mse_loss", "", "aclnnMseLoss(self, target, reduction, out)"},
      {"mse_loss_backward", "", "aclnnMseLossBackward(grad_output, self, target, reduction, out)"},
      {"smooth_l1_loss", "", "aclnnSmoothL1Loss(self, target, reduction, beta, out)"},
      {"smooth_l1_loss_backward", "",
       "aclnnSmoothL1LossBackward(grad_output, self, target, reduction, beta, out)"},
      {"binary_cross_entropy", "", "aclnnBinaryCrossEntropy(self, target, weight, reduction, out)"},
      {"binary_cross_entropy_backward", "",
       "aclnnBinaryCrossEntropyBackward(grad_output, self, target, weight, reduction, out)"},
      {"binary_cross_entropy_with_logits", "",
       "aclnnBinaryCrossEntropyWithLogits(self, target, weight, pos_weight, reduction, out)"},
      {"_ctc_loss", "",
       "aclnnCtcLoss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, "
       "out0, out1)"},
      {"_ctc_loss_backward", "",
       "aclnnCtcLossBackward(grad, log_probs, targets, input_lengths, target_lengths, "
       "neg_log_likelihood, log_alpha, blank, zero_infinity, out)"},
      {"kl_div", "", "aclnnKlDiv(self, target, reduction, log_target, out)"},

      {"l1_loss", "", "aclnnL1Loss(self, target, reduction, out)"},
      {"soft_margin_loss", "", "aclnnSoftMarginLoss(self, target, reduction, out)"},
      {"soft_margin_loss_backward", "",
       "aclnnSoftMarginLossBackward(grad_output, self, target, reduction, out)"},
      {"multilabel_margin_loss_forward", "",
       "aclnnMultilabelMarginLoss(self, target, reduction, out0, out1)"},

      // ---- embedding and dropout ----
      {"embedding", "", "aclnnEmbedding(weight, indices, out)"},
      {"_embedding_bag", "",
       "aclnnEmbeddingBag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, "
       "per_sample_weights, include_last_offset, padding_idx, out0, out1, out2, out3)"},
      {"embedding_dense_backward", "",
       "aclnnEmbeddingDenseBackward(grad_output, indices, num_weights, padding_idx, "
       "scale_grad_by_freq, out)"},
      // The recorded mask holds bools. The adapter has packed bits of aclnnDropoutDoMask instead.
      {"native_dropout_backward", "device",
       "aclnnDropoutDoMask(grad_output, mask, drop(scale), out)"},
      {"native_dropout_backward", "",
       "aclnnMul(grad_output, mask, out); aclnnInplaceMuls(out, scale)"},
  };
  return rules;
}

}  // namespace acltape::analyzer::lowering
