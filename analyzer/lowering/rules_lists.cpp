// Operators over lists of tensors, as optimisers call them: one device call for each element.
#include "analyzer/lowering/rules.h"

namespace acltape::analyzer::lowering {

const std::vector<LoweringRule>& ListRules() {
  static const std::vector<LoweringRule> rules = {
      {"_foreach_add_.ScalarList", "each", "aclnnInplaceAdds(self, scalars, 1)"},
      {"_foreach_add_.Tensor", "each", "aclnnInplaceAdd(self, num(other, self), alpha)"},
      {"_foreach_add.Scalar", "each", "aclnnAdds(self, scalar, 1, out)", kAlsoInPlace},
      {"_foreach_add.List", "each", "aclnnAdd(self, other, alpha, out)", kAlsoInPlace},
      {"_foreach_sub.Scalar", "each", "aclnnSubs(self, scalar, 1, out)", kAlsoInPlace},
      {"_foreach_sub.List", "each", "aclnnSub(self, other, alpha, out)", kAlsoInPlace},
      {"_foreach_mul_.ScalarList", "each", "aclnnInplaceMuls(self, scalars)"},
      {"_foreach_mul.Scalar", "each", "aclnnMuls(self, scalar, out)", kAlsoInPlace},
      {"_foreach_mul.List", "each", "aclnnMul(self, other, out)", kAlsoInPlace},
      {"_foreach_mul.Tensor", "each", "aclnnMul(self, num(other, self), out)", kAlsoInPlace},
      {"_foreach_div_.ScalarList", "each", "aclnnInplaceDivs(self, scalars)"},
      {"_foreach_div_.Tensor", "each", "aclnnInplaceDiv(self, num(other, self))"},
      {"_foreach_div.Scalar", "each", "aclnnDivs(self, scalar, out)", kAlsoInPlace},
      {"_foreach_div.List", "each", "aclnnDiv(self, other, out)", kAlsoInPlace},
      {"_foreach_lerp_.Scalar", "each", "aclnnInplaceLerps(self, tensors1, weight)"},
      {"_foreach_lerp_.List", "each", "aclnnInplaceLerp(self, tensors1, weights)"},
      {"_foreach_addcmul_.Scalar", "each", "aclnnInplaceAddcmul(self, tensor1, tensor2, value)"},
      {"_foreach_addcmul_.ScalarList", "each",
       "aclnnInplaceAddcmul(self, tensor1, tensor2, scalars)"},
      {"_foreach_addcdiv_.Scalar", "each", "aclnnInplaceAddcdiv(self, tensor1, tensor2, value)"},
      {"_foreach_addcdiv_.ScalarList", "each",
       "aclnnInplaceAddcdiv(self, tensor1, tensor2, scalars)"},
      {"_foreach_sqrt", "each", "aclnnSqrt(self, out)", kAlsoInPlace},
      {"_foreach_neg", "each", "aclnnNeg(self, out)", kAlsoInPlace},
      {"_foreach_reciprocal", "each", "aclnnReciprocal(self, out)", kAlsoInPlace},
      {"_foreach_abs", "each", "aclnnAbs(self, out)"},
      {"_foreach_sign", "each", "aclnnSign(self, out)"},
      {"_foreach_exp", "each", "aclnnExp(self, out)"},
      {"_foreach_maximum_.List", "each", "aclnnMaximum(self, other, self)"},
      {"_foreach_zero_", "each", "aclnnInplaceZero(self)"},
      {"_foreach_copy_", "each", "aclnnInplaceCopy(self, src)"},
      // ---- scaled losses ----
      {"_amp_foreach_non_finite_check_and_unscale_", "",
       "aclnnForeachNonFiniteCheckAndUnscale(self, found_inf, inv_scale)"},
      {"_amp_update_scale_", "",
       "aclnnAmpUpdateScale(self, growth_tracker, found_inf, scale_growth_factor, "
       "scale_backoff_factor, growth_interval, self, growth_tracker)"},

      // ---- fused steps of optimisers. The adapter steps each parameter on its own, counts steps
      // from 0 and leaves scaled gradients as they are. ----
      {"_fused_adamw_", "device,each",
       "aclnnSubs(state_steps, 1, 1, scratch(state_steps, 'steps before')); "
       "aclnnApplyAdamWV2(self, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, grads, "
       "scratch(state_steps, 'steps before'), lr, beta1, beta2, weight_decay, eps, amsgrad, "
       "maximize)"},
      {"_fused_adamw_", "-grad_scale",
       "aclnnFusedAdamw(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, none, "
       "found_inf, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize)"},
      // The adapter runs plain Adam on the CPU. Without decay it equals AdamW. With decay the decay
      // is added to the gradient.
      {"_fused_adam_", "-grad_scale,weight_decay=0",
       "aclnnFusedAdamw(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, none, "
       "found_inf, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize)"},
      {"_fused_adam_", "each,-grad_scale,maximize=false",
       "aclnnAdd(grads, self, weight_decay, scratch(grads, 'decayed')); "
       "aclnnFusedAdamw(tensors(self), tensors(scratch(grads, 'decayed')), tensors(exp_avgs), "
       "tensors(exp_avg_sqs), tensors(max_exp_avg_sqs), tensors(state_steps), none, found_inf, lr, "
       "beta1, beta2, 0.0, eps, amsgrad, maximize)"},
      // The operator takes its numbers as float32.
      {"_fused_sgd_", "-found_inf,type self!=float64",
       "aclnnFusedSgd(self, grads, momentum_buffer_list, grad_scale, weight_decay, momentum, lr, "
       "dampening, nesterov, maximize, is_first_step)"},
      {"_foreach_norm.Scalar", "each",
       "aclnnLinalgVectorNorm(self, ord, list(dim), false, dtype(out), out)"},
  };
  return rules;
}

}  // namespace acltape::analyzer::lowering
