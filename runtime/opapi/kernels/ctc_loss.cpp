// Connectionist temporal classification and its gradient.
#include <ATen/ATen.h>

#include <algorithm>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The arguments that both directions have; log_probs is [time, batch, classes].
struct CtcCall {
  Tensor log_probs, targets;
  std::vector<int64_t> input_lengths, target_lengths;
  int64_t blank = 0;
  bool zero_infinity = false;

  int64_t time() const { return log_probs.size(0); }
  int64_t batch() const { return log_probs.size(1); }
  // The symbols of the longest target, with a blank before each and one after the last.
  int64_t states() const {
    const auto longest = std::max_element(target_lengths.begin(), target_lengths.end());
    return 2 * (longest == target_lengths.end() ? 0 : *longest) + 1;
  }
};

CtcCall ReadCtc(const Call& call, int first, int blank) {
  CtcCall ctc;
  ctc.log_probs = call.View(first);
  ctc.targets = call.View(first + 1);
  ctc.input_lengths = call.Ints(first + 2);
  ctc.target_lengths = call.Ints(first + 3);
  ctc.blank = call.Int(blank);
  ctc.zero_infinity = call.Bool(blank + 1);
  ExpectDtypes(call, first, ctc.log_probs, {at::kFloat, at::kDouble});
  call.ExpectRank(first, ctc.log_probs, 3);
  call.ExpectIndex(first + 1, ctc.targets);
  const auto batch = static_cast<size_t>(ctc.batch());
  if (ctc.input_lengths.size() != batch) call.RejectArg(first + 2, "has not one length per batch");
  if (ctc.target_lengths.size() != batch) call.RejectArg(first + 3, "has not one length per batch");
  for (const int64_t length : ctc.input_lengths) {
    if (length < 0 || length > ctc.time()) call.RejectArg(first + 2, "exceeds logProbs");
  }
  int64_t symbols = 0;
  for (const int64_t length : ctc.target_lengths) {
    if (length < 0) call.RejectArg(first + 3, "has a negative length");
    symbols += length;
  }
  if (ctc.targets.dim() == 1) {
    call.ExpectSizes(first + 1, ctc.targets, {symbols});
  } else {
    call.ExpectRank(first + 1, ctc.targets, 2);
    if (ctc.targets.size(0) != ctc.batch() || 2 * ctc.targets.size(1) + 1 < ctc.states()) {
      call.RejectArg(first + 1, "has no room for the target lengths");
    }
  }
  if (ctc.blank < 0 || ctc.blank >= ctc.log_probs.size(2)) {
    call.RejectArg(blank, "is none of the classes");
  }
  return ctc;
}

// log_alpha's last dim may be longer than the states: a device rounds it up.
void ExpectLogAlpha(const Call& call, int i, const Tensor& log_alpha, const CtcCall& ctc) {
  call.ExpectRank(i, log_alpha, 3);
  if (log_alpha.size(0) != ctc.batch() || log_alpha.size(1) != ctc.time() ||
      log_alpha.size(2) < ctc.states()) {
    call.RejectArg(i, "has shape " + SizesText(log_alpha.sizes()) + ", expected at least " +
                          SizesText({ctc.batch(), ctc.time(), ctc.states()}));
  }
}

// (logProbs, targets, inputLengths, targetLengths, blank, zeroInfinity, negLogLikelihood, logAlpha)
std::unique_ptr<Kernel> BindCtcLoss(const Call& call) {
  const CtcCall ctc = ReadCtc(call, 0, 4);
  const Tensor loss = call.Out(6), log_alpha = call.Out(7);
  call.ExpectSizes(6, loss, {ctc.batch()});
  ExpectLogAlpha(call, 7, log_alpha, ctc);
  return MakeKernel([=] {
    const auto [losses, alphas] = at::_ctc_loss(ctc.log_probs, ctc.targets, ctc.input_lengths,
                                                ctc.target_lengths, ctc.blank, ctc.zero_infinity);
    loss.copy_(losses);
    // Elements that the library leaves as they were get zeros, so that two runs give the same.
    log_alpha.zero_();
    for (int64_t i = 0; i < ctc.batch(); ++i) {
      const int64_t states = 2 * ctc.target_lengths[i] + 1;
      log_alpha[i]
          .narrow(0, 0, ctc.input_lengths[i])
          .narrow(1, 0, states)
          .copy_(alphas[i].narrow(0, 0, ctc.input_lengths[i]).narrow(1, 0, states));
    }
  });
}

// (gradOut, logProbs, targets, inputLengths, targetLengths, negLogLikelihood, logAlpha, blank,
// zeroInfinity, out)
std::unique_ptr<Kernel> BindCtcLossBackward(const Call& call) {
  const CtcCall ctc = ReadCtc(call, 1, 7);
  const Tensor gradient = call.View(0), loss = call.View(5), log_alpha = call.View(6);
  call.ExpectSizes(0, gradient, {ctc.batch()});
  call.ExpectSizes(5, loss, {ctc.batch()});
  ExpectLogAlpha(call, 6, log_alpha, ctc);
  return BindWhole(call, 9, ctc.log_probs.sizes(), [=] {
    return at::_ctc_loss_backward(
        gradient, ctc.log_probs, ctc.targets, ctc.input_lengths, ctc.target_lengths, loss,
        log_alpha.narrow(2, 0, ctc.states()).contiguous(), ctc.blank, ctc.zero_infinity);
  });
}

}  // namespace

KernelRows CtcLossRows() {
  return {
      {"aclnnCtcLoss", BindCtcLoss},
      {"aclnnCtcLossBackward", BindCtcLossBackward},
  };
}

}  // namespace acltape::opapi
