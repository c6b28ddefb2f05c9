// The adapter's own operators, with the calls that it makes for them.
#include "analyzer/lowering/rules.h"

namespace acltape::analyzer::lowering {

const std::vector<LoweringRule>& AdapterRules() {
  static const std::vector<LoweringRule> rules = {
      // ---- gradients of operators that have none of their own elsewhere ----
      {"npu::repeat_interleave_backward_int", "-dim",
       "aclnnReduceSum(split(grad, 0, repeats), list(1), false, dtype(out), flat(out))"},
      {"npu::repeat_interleave_backward_int", "",
       "aclnnReduceSum(split(grad, dim, repeats), list(after(dim, out)), false, dtype(out), out)"},
      {"npu::npu_gather_backward", "",
       "aclnnInplaceZero(out); aclnnScatterAdd(out, dim, index, grad, out)"},
      {"npu::l1_loss_backward", "",
       "aclnnL1LossBackward(grad_output, input, target, reduction, out)"},
      {"npu::kl_div_backward", "",
       "aclnnKlDivBackward(grad_output, input, target, reduction, log_target, out)"},
      {"npu::kl_div_target_backward", "",
       "aclnnKlDivTargetBackward(grad_output, input, target, reduction, log_target, out)"},
      {"npu::npu_binary_cross_entropy_with_logits_backward", "",
       "aclnnBinaryCrossEntropyWithLogitsBackward(grad_output, input, target, weight_opt, "
       "pos_weight_opt, reduction, out)"},
      {"npu::npu_dtype_cast", "", "aclnnCast(input, dtype(out), out)"},
      {"npu::_npu_dtype_cast", "", "aclnnCast(input, dtype(out), out)"},
      {"npu::npu_dtype_cast_backward", "", "aclnnCast(grad, dtype(out), out)"},
      {"npu::_npu_dtype_cast_backward", "", "aclnnCast(grad, dtype(out), out)"},

      // ---- parts of transformers ----
      {"npu::npu_rms_norm", "", "aclnnRmsNorm(input, gamma, epsilon, out0, out1)"},
      {"npu::npu_rms_norm_backward", "", "aclnnRmsNormGrad(dy, input, rstd, gamma, out0, out1)"},
      {"npu::npu_add_rms_norm", "", "aclnnAddRmsNorm(x1, x2, gamma, epsilon, out0, out1, out2)"},
      {"npu::npu_swiglu", "", "aclnnSwiGlu(input, dim, out)"},
      {"npu::npu_swiglu_backward", "", "aclnnSwiGluGrad(grad_output, input, dim, out)"},
      {"npu::npu_rotary_mul", "-rotate",
       "aclnnRotaryPositionEmbedding(input, r1, r2, "
       "pick(rotary_mode, 'half', 0, 'interleave', 1), out)"},
      {"npu::npu_rotary_mul_backward", "",
       "aclnnRotaryPositionEmbeddingGrad(grad, r1, r2, input, "
       "pick(rotary_mode, 'half', 0, 'interleave', 1), out0, out1, out2)"},
      {"npu::npu_fast_gelu", "", "aclnnFastGelu(input, out)"},
      {"npu::fast_gelu", "", "aclnnFastGelu(input, out)"},
      {"npu::npu_fast_gelu_backward", "", "aclnnFastGeluBackward(grad, input, out)"},
      {"npu::npu_moe_gating_top_k_softmax", "",
       "aclnnMoeGatingTopKSoftmax(x, finished, k, out0, out1, out2)"},

      // ---- attention over sequences of equal length, with nothing dropped. The adapter keeps the
      // operator's statistics, so none is derived. ----
      {"npu::npu_fusion_attention_v3", "keep_prob=1,-actual_seq_qlen,-sink",
       "aclnnFlashAttentionScore(query, key, value, pse, none, padding_mask, atten_mask, "
       "list(prefix), "
       "scale, keep_prob, pre_tockens, next_tockens, head_num, input_layout, inner_precise, "
       "sparse_mode, out1, out2, out3, out0)"},
      {"npu::npu_fusion_attention_grad_v3", "keep_prob=1,-actual_seq_qlen,-sink",
       "aclnnFlashAttentionScoreGrad(query, key, value, dy, pse, none, padding_mask, atten_mask, "
       "softmax_max, softmax_sum, softmax_in, attention_in, list(prefix), scale_value, keep_prob, "
       "pre_tockens, next_tockens, head_num, input_layout, inner_precise, sparse_mode, out0, out1, "
       "out2, out3)"},
      // The dropped elements are drawn again, from the state that the forward operator gave.
      {"npu::npu_fusion_attention_grad_v3", "input_layout=BNSD,-actual_seq_qlen,-sink",
       "aclnnDropoutGenMaskV2Tensor(scorecount(query, key), dropped(keep_prob), seed, offset, 0, "
       "dtype(query), dropbits(query, key)); "
       "aclnnFlashAttentionScoreGrad(query, key, value, dy, pse, dropbits(query, key), "
       "padding_mask, atten_mask, softmax_max, softmax_sum, softmax_in, attention_in, "
       "list(prefix), scale_value, keep_prob, pre_tockens, next_tockens, head_num, input_layout, "
       "inner_precise, sparse_mode, out0, out1, out2, out3)"},
  };
  return rules;
}

}  // namespace acltape::analyzer::lowering
