// Fused attention of training, forward and backward. Computed in float32 and rounded once at the
// end, or, where it has that operator, by the library's own.
#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/attention.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/library_attention.h"
#include "runtime/opapi/kernels/packed_attention.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Factors of the probabilities from packed bits, the lowest first: 1 keeps.
Tensor DropoutFactors(const Tensor& bits, const Extent& extent, double keep) {
  const int64_t count = extent.batch * extent.heads * extent.queries * extent.keys;
  const Tensor shifts = at::arange(8, at::TensorOptions(at::kByte));
  const Tensor kept = bits.reshape({-1, 1}).bitwise_right_shift(shifts).bitwise_and(1).flatten();
  return kept.narrow(0, 0, count).to(at::kFloat).div(keep).view(extent.scores());
}

Tensor ReadDropoutMask(const Call& call, int i, const Extent& extent) {
  if (call.IsAbsent(i)) return {};
  Tensor bits = call.View(i);
  const int64_t needed = (extent.batch * extent.heads * extent.queries * extent.keys + 7) / 8;
  if (bits.scalar_type() != at::kByte || bits.numel() < needed) {
    call.RejectArg(i, "must hold one bit per score in uint8: " + std::to_string(needed) + " bytes");
  }
  return bits;
}

// The positions of the arguments that both directions have, in a version of an operator; -1: none.
struct FlashArguments {
  std::vector<int> absent;  // arguments that the soft device lacks
  int bias, dropout, mask, sink, scale, keep, pre, next, heads, layout, mode, pse_type;
  int outputs;  // the first one
  int statistics_layout = -1;
  int prefix = -1;  // lengths that only the modes 5 and 6 read
};

const FlashArguments kFlash = {{5}, 3, 4, 6, -1, 8, 9, 10, 11, 12, 13, 15, -1, 16, -1, 7};
const FlashArguments kFlashV2 = {{5}, 3, 4, 6, -1, 10, 11, 12, 13, 14, 15, 17, 18, 19, -1, 7};
const FlashArguments kFlashV3 = {{5}, 3, 4, 6, 7, 11, 12, 13, 14, 15, 16, 18, 19, 20, -1, 8};
const FlashArguments kFlashV4 = {
    {5, 7, 8, 9, 10, 11, 14, 15}, 3, 4, 6, 12, 18, 19, 20, 21, 22, 23, 25, 27, 31, 28, 13};
const FlashArguments kFlashGrad = {{6}, 4, 5, 7, -1, 13, 14, 15, 16, 17, 18, 20, -1, 21, -1, 12};
const FlashArguments kFlashGradV2 = {{6}, 4, 5, 7, -1, 15, 16, 17, 18, 19, 20, 22, 23, 24, -1, 12};
const FlashArguments kFlashGradV3 = {{6}, 4, 5, 7, 12, 16, 17, 18, 19, 20, 21, 23, 24, 25, -1, 13};

// The arguments that both directions have, read and checked.
struct FlashCall {
  HeadLayout layout;
  int64_t heads = 0;
  Tensor query, key, value;  // split into heads
  Extent extent{};
  Tensor bias, dropout, sink;  // may be undefined
  bool bias_first = false;
  ScoreMask mask;
  double scale = 1, keep = 1;

  // Made anew in each run of the task, because it reads device memory.
  AttentionTerms Terms() const {
    AttentionTerms terms;
    terms.scale = scale;
    terms.bias = bias;
    terms.bias_first = bias_first;
    terms.left_out = mask.LeftOut(extent.queries, extent.keys);
    terms.sink = sink;
    if (dropout.defined()) terms.weights = DropoutFactors(dropout, extent, keep);
    return terms;
  }

  std::vector<int64_t> statistics() const { return {extent.batch, heads, extent.queries, 8}; }
};

FlashCall ReadFlash(const Call& call, const FlashArguments& at) {
  ExpectAbsent(call, at.absent);
  if (at.prefix >= 0 && call.Int(at.mode) > 4) ExpectAbsent(call, {at.prefix});
  const std::string name = call.Text(at.layout);
  if (name == "TND") call.RejectArg(at.layout, "is \"TND\", which needs the variable length form");
  FlashCall flash;
  flash.layout = HeadLayout::Named(call, at.layout, name);
  flash.heads = call.Int(at.heads);
  flash.query = flash.layout.Split(call, 0, call.View(0), flash.heads);
  ExpectFloats(call, 0, flash.query);
  const int64_t width = flash.query.size(3);
  const auto split_keys = [&](int i) {
    const Tensor view = call.View(i);
    ExpectQueryDtype(call, i, view, flash.query);
    const bool merged = view.dim() == 3;
    const int64_t key_heads = merged && width > 0 ? call.View(1).size(-1) / width
                              : view.dim() == 4   ? view.size(name == "BNSD" ? 1 : 2)
                                                  : flash.heads;
    return flash.layout.Split(call, i, view, key_heads);
  };
  flash.key = split_keys(1);
  flash.value = split_keys(2);
  ExpectKeys(call, flash.query, flash.key, flash.value);
  flash.extent = {flash.query.size(0), flash.heads, flash.query.size(2), flash.key.size(2)};

  const int64_t pse_type = at.pse_type < 0 ? 1 : call.Int(at.pse_type);
  if (pse_type != 0 && pse_type != 1) {
    call.RejectArg(at.pse_type, "must be 0 (scaled, then added) or 1 (added, then scaled)");
  }
  flash.bias_first = pse_type == 1;
  if (!call.IsAbsent(at.bias)) flash.bias = call.View(at.bias);
  ExpectScores(call, at.bias, flash.bias, flash.extent);
  flash.mask = ReadScoreMask(call, at.mask, at.pre, at.next, at.mode);
  ExpectScores(call, at.mask, flash.mask.mask, flash.extent);
  flash.scale = call.Real(at.scale);
  flash.keep = call.Real(at.keep);
  if (!(flash.keep > 0 && flash.keep <= 1)) {
    call.RejectArg(at.keep, "must be above 0 and at most 1");
  }
  flash.dropout = ReadDropoutMask(call, at.dropout, flash.extent);
  if (at.statistics_layout >= 0) {
    const std::string text = call.Text(at.statistics_layout);
    if (!text.empty()) call.RejectArg(at.statistics_layout, "must be empty");
    // This form can draw the mask itself, by numbers that only a device has.
    if (flash.keep < 1 && !flash.dropout.defined()) {
      call.RejectArg(at.dropout, "is absent although keepProb is below 1");
    }
  }
  if (at.sink >= 0 && !call.IsAbsent(at.sink)) {
    flash.sink = call.View(at.sink);
    call.ExpectSizes(at.sink, flash.sink, {flash.heads});
  }
  return flash;
}

// (query, key, value, realShift?, dropMask?, paddingMask?, attenMask?, ..., softmaxMax, softmaxSum,
// softmaxOut, attentionOut). softmaxMax and softmaxSum hold each value 8 times; softmaxOut stays
// unwritten.
std::unique_ptr<Kernel> BindFlash(const Call& call, const FlashArguments& at) {
  const FlashCall flash = ReadFlash(call, at);
  const Tensor maximum = call.Out(at.outputs), sum = call.Out(at.outputs + 1);
  const std::vector<int64_t> statistics = flash.statistics();
  call.ExpectSizes(at.outputs, maximum, statistics);
  call.ExpectSizes(at.outputs + 1, sum, statistics);
  const Tensor given = call.Out(at.outputs + 3);
  const Extent& extent = flash.extent;
  call.ExpectSizes(
      at.outputs + 3, given,
      flash.layout.Sizes({extent.batch, flash.heads, extent.queries, flash.value.size(3)}));
  const Tensor out = flash.layout.Split(call, at.outputs + 3, given, flash.heads);
  return MakeKernel([=] {
    const AttentionTerms terms = flash.Terms();
    auto of_library = LibraryAttend(flash.query, flash.key, flash.value, terms);
    const AttentionResult result =
        of_library ? *of_library : Attend(flash.query, flash.key, flash.value, terms);
    out.copy_(result.out);
    maximum.copy_(result.maximum.expand(statistics));
    sum.copy_(result.sum.expand(statistics));
  });
}

// (query, key, value, dy, pseShift?, dropMask?, paddingMask?, attenMask?, softmaxMax, softmaxSum,
// softmaxIn?, attentionIn?, ..., dq, dk, dv, dpse, [dsink]). dpse stays unwritten without pseShift.
std::unique_ptr<Kernel> BindFlashGrad(const Call& call, const FlashArguments& at) {
  const FlashCall flash = ReadFlash(call, at);
  const Tensor dy = flash.layout.Split(call, 3, call.View(3), flash.heads);
  const Extent& extent = flash.extent;
  if (dy.sizes() !=
      at::IntArrayRef({extent.batch, flash.heads, extent.queries, flash.value.size(3)})) {
    call.RejectArg(3, "has another shape than the attention's result");
  }
  const auto statistic = [&](int i) {
    if (call.IsAbsent(i)) call.RejectArg(i, "is absent; pass what the forward operator gave");
    const Tensor view = call.View(i);
    call.ExpectSizes(i, view, flash.statistics());
    return view.narrow(-1, 0, 1);
  };
  const Tensor maximum = statistic(8), sum = statistic(9);
  const auto gradient = [&](int offset, int of, const Tensor& split) {
    const Tensor view = call.Out(at.outputs + offset);
    call.ExpectSizes(at.outputs + offset, view, call.View(of).sizes());
    return flash.layout.Split(call, at.outputs + offset, view, split.size(1));
  };
  const Tensor dq = gradient(0, 0, flash.query), dk = gradient(1, 1, flash.key),
               dv = gradient(2, 2, flash.value);
  Tensor dbias, dsink;
  if (flash.bias.defined()) {
    dbias = call.Out(at.outputs + 3);
    call.ExpectSizes(at.outputs + 3, dbias, flash.bias.sizes());
  }
  if (flash.sink.defined()) {
    dsink = call.Out(at.outputs + 4);
    call.ExpectSizes(at.outputs + 4, dsink, flash.sink.sizes());
  }
  // The library's operator wants the forward pass's result, which a caller may leave out.
  Tensor out;
  if (!call.IsAbsent(11)) {
    call.ExpectSizes(11, call.View(11), call.View(3).sizes());
    out = flash.layout.Split(call, 11, call.View(11), flash.heads);
  }
  return MakeKernel([=] {
    const AttentionTerms terms = flash.Terms();
    std::optional<AttentionGradients> of_library;
    if (out.defined()) {
      of_library =
          LibraryAttendBackward(dy, flash.query, flash.key, flash.value, out, maximum, sum, terms);
    }
    AttentionGradients result;
    if (!of_library || dbias.defined()) {
      result = AttendBackward(dy, flash.query, flash.key, flash.value, maximum, sum, terms);
    }
    if (of_library) {
      of_library->bias = result.bias;
      result = *of_library;
    }
    dq.copy_(result.query);
    dk.copy_(result.key);
    dv.copy_(result.value);
    CopyResult(dbias, result.bias);
    CopyResult(dsink, result.sink);
  });
}

}  // namespace

KernelRows AttentionRows() {
  const auto forward = [](const FlashArguments& at) {
    return [&at](const Call& call) { return BindFlash(call, at); };
  };
  const auto backward = [](const FlashArguments& at) {
    return [&at](const Call& call) { return BindFlashGrad(call, at); };
  };
  KernelRows rows = {
      {"aclnnFlashAttentionScore", forward(kFlash), Widen::kNever, {18}},
      {"aclnnFlashAttentionScoreV2", forward(kFlashV2), Widen::kNever, {21}},
      {"aclnnFlashAttentionScoreV3", forward(kFlashV3), Widen::kNever, {22}},
      {"aclnnFlashAttentionScoreV4", forward(kFlashV4), Widen::kNever, {33}},
      {"aclnnFlashAttentionScoreGrad", backward(kFlashGrad), Widen::kNever, {24}},
      {"aclnnFlashAttentionScoreGradV2", backward(kFlashGradV2), Widen::kNever, {27}},
      {"aclnnFlashAttentionScoreGradV3", backward(kFlashGradV3), Widen::kNever, {28, 29}},
  };
  for (KernelRow& row : PackedAttentionRows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace acltape::opapi
