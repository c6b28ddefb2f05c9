// Tokens in the order of their experts, and the experts' results back in the order of the tokens.
#include "runtime/opapi/kernels/moe_routing.h"

#include <ATen/ATen.h>

#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/moe.h"
#include "runtime/opapi/kernels/moe_rows.h"
#include "runtime/opapi/kernels/range_routing.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// (x, rowIdx, expertIdx, activeNum, expandedX, expandedRowIdx, expandedExpertIdx)
std::unique_ptr<Kernel> BindInitRouting(const Call& call) {
  const Operand x = call.In(0);
  const FirstRouting routing(call, x, 4);
  const Tensor out = call.Out(4);
  return MakeKernel([=] {
    const Tensor tokens = routing.Route();
    if (tokens.numel() > 0) out.copy_(x().index_select(0, tokens));
  });
}

// (x, expertIdx, activeNum, expertCapacity, expertNum, dropPadMode, countOrCumsumFlag,
// beforeCapacityFlag, expandedX, expandedRowIdx, countOrCumsum?, beforeCapacity?)
std::unique_ptr<Kernel> BindInitRoutingV2(const Call& call) {
  const Operand x = call.In(0);
  const SecondRouting routing(call, x, 2, 8);
  const Tensor out = call.Out(8);
  return MakeKernel([=] { out.copy_(routing.RowsAt(routing.Route(), x()).view(out.sizes())); });
}

// The positions of the arguments of the last step in a version of the operator.
struct FinalizeArguments {
  std::vector<int> absent;  // experts without weights, which the soft device lacks
  int mode, k, out;         // k: -1 for versions that count rows by scales
};
const FinalizeArguments kFinalizeV2 = {{}, 7, -1, 8};
const FinalizeArguments kFinalizeV4 = {{7, 8, 9, 10, 12, 13, 14}, 11, 15, 16};
const FinalizeArguments kFinalizeV3 = {{7, 8, 9, 10, 12, 13, 14}, 11, -1, 15};

// (expandedX, expandedRowIdx, x1?, x2?, bias?, scales?, expertIdx?, ..., dropPadMode, ..., out):
// the sum of what the experts of a token gave, each with its bias and times its scale. Modes 0 and
// 1 count the rows choice by choice, 2 and 3 token by token; 1 and 3 have a capacity.
std::unique_ptr<Kernel> BindFinalizeRouting(const Call& call, const FinalizeArguments& at) {
  for (int i : at.absent) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given, which the soft device lacks");
  }
  const Operand expanded = call.In(0), x1 = call.OptionalIn(2), x2 = call.OptionalIn(3);
  const Operand bias = call.OptionalIn(4), scales = call.OptionalIn(5);
  const Tensor rows = call.View(1);
  const int64_t mode = call.Int(at.mode);
  if (mode < 0 || mode > 3) call.RejectArg(at.mode, "must be between 0 and 3");
  const bool capacity = mode % 2 == 1, by_choice = mode < 2;
  call.ExpectRank(0, expanded.view(), capacity ? 3 : 2);
  call.ExpectRank(1, rows, 1);
  call.ExpectIndex(1, rows);
  const Tensor out = call.Out(at.out);
  call.ExpectRank(at.out, out, 2);
  const int64_t tokens = out.size(0), width = expanded.sizes().back();
  call.ExpectSizes(at.out, out, {tokens, width});
  const int64_t k = tokens == 0 ? 1 : rows.size(0) / tokens;
  if (k * tokens != rows.size(0)) call.RejectArg(1, "has no whole number of rows for each token");
  for (int i : {2, 3}) {
    if (!call.IsAbsent(i)) call.ExpectSizes(i, call.View(i), {tokens, width});
  }
  if (scales.defined()) call.ExpectSizes(5, scales.view(), {tokens, k});
  const int64_t without_scales = at.k < 0 ? 1 : call.Int(at.k);
  if (!scales.defined() && k != without_scales) {
    call.RejectArg(5,
                   "is absent, which " + std::to_string(k) + " experts for a token do not allow");
  }
  Tensor experts;
  if (bias.defined()) {
    if (call.IsAbsent(6)) call.RejectArg(6, "is absent, but bias is given");
    if (capacity) call.RejectArg(4, "is given; the soft device adds none to experts of a capacity");
    experts = call.View(6);
    call.ExpectRank(4, bias.view(), 2);
    call.ExpectSizes(6, experts, {tokens, k});
    call.ExpectIndex(6, experts);
  }
  return MakeKernel([=] {
    const Tensor wide = expanded(), index = rows.to(at::kLong);
    const Tensor flat = by_choice ? index.reshape({k, tokens}).t().reshape(-1) : index;
    Tensor each = RowsOrZeros(wide.reshape({-1, width}), flat).reshape({tokens, k, width});
    if (bias.defined()) {
      const Tensor of_expert = bias().index_select(0, experts.to(at::kLong).flatten());
      each = each + of_expert.reshape({tokens, k, width});
    }
    if (scales.defined()) each = each * scales().unsqueeze(-1);
    Tensor sum = each.sum(1);
    if (x1.defined()) sum = sum + x1();
    if (x2.defined()) sum = sum + x2();
    out.copy_(sum);
  });
}

// (tokens, indices, numOutTokens, paddedMode, permuteTokens, sortedIndices)
std::unique_ptr<Kernel> BindTokenPermute(const Call& call) {
  const Operand tokens = call.In(0);
  const Tensor indices = call.View(1);
  if (tokens.dim() < 2) call.RejectArg(0, "has less than 2 dims");
  if (indices.dim() != 1 && indices.dim() != 2) call.RejectArg(1, "must have 1 or 2 dims");
  call.ExpectIndex(1, indices);
  if (indices.size(0) != tokens.sizes()[0]) call.RejectArg(1, "has not one row for each token");
  ExpectNoPadding(call, 3);
  const int64_t k = indices.dim() == 1 ? 1 : indices.size(1), rows = indices.numel();
  const int64_t kept = KeptRows(call.Int(2), rows);
  std::vector<int64_t> sizes = tokens.sizes().vec();
  sizes[0] = kept;
  const Tensor out = call.Out(4), where = call.Out(5);
  call.ExpectSizes(4, out, sizes);
  ExpectVector(call, 5, rows);
  return MakeKernel([=] {
    const Tensor order = SortedPositions(indices.to(at::kLong).flatten());
    where.copy_(Inverse(order));
    if (kept > 0) out.copy_(tokens().index_select(0, order.narrow(0, 0, kept).floor_divide(k)));
  });
}

// (permutedOutputGrad, sortedIndices, numTopk, paddedMode, out)
std::unique_ptr<Kernel> BindTokenPermuteGrad(const Call& call) {
  const Operand gradient = call.In(0);
  const Tensor where = call.View(1);
  const int64_t k = call.Int(2);
  call.ExpectRank(0, gradient.view(), 2);
  call.ExpectRank(1, where, 1);
  call.ExpectIndex(1, where);
  if (k < 1 || where.size(0) % k != 0) call.RejectArg(2, "does not divide the number of rows");
  ExpectNoPadding(call, 3);
  const int64_t tokens = where.size(0) / k, width = gradient.sizes()[1];
  return BindWhole(call, 4, {tokens, width}, [=] {
    return RowsOrZeros(gradient(), where.to(at::kLong)).reshape({tokens, k, width}).sum(1);
  });
}

// (permutedTokens, sortedIndices, probs?, paddedMode, restoreShape?, out)
std::unique_ptr<Kernel> BindTokenUnpermute(const Call& call) {
  const Operand permuted = call.In(0), probs = call.OptionalIn(2);
  const Tensor where = call.View(1);
  call.ExpectRank(0, permuted.view(), 2);
  call.ExpectRank(1, where, 1);
  call.ExpectIndex(1, where);
  ExpectNoPadding(call, 3);
  const int64_t k = ChoicesOf(call, 2, probs, where), width = permuted.sizes()[1];
  const int64_t tokens = where.size(0) / k;
  return BindWhole(call, 5, {tokens, width}, [=] {
    Tensor each = RowsOrZeros(permuted(), where.to(at::kLong)).reshape({tokens, k, width});
    if (probs.defined()) each = each * probs().unsqueeze(-1);
    return each.sum(1);
  });
}

// (permuteTokens?, unpermutedTokensGrad, sortedIndices, probs?, paddedMode, restoreShape?,
// permutedTokensGrad, probsGrad). Without probs their gradient stays unwritten.
std::unique_ptr<Kernel> BindTokenUnpermuteGrad(const Call& call) {
  const Operand permuted = call.OptionalIn(0), gradient = call.In(1), probs = call.OptionalIn(3);
  const Tensor where = call.View(2);
  call.ExpectRank(1, gradient.view(), 2);
  call.ExpectRank(2, where, 1);
  call.ExpectIndex(2, where);
  ExpectNoPadding(call, 4);
  const int64_t k = ChoicesOf(call, 3, probs, where), width = gradient.sizes()[1];
  const int64_t tokens = where.size(0) / k;
  call.ExpectSizes(1, gradient.view(), {tokens, width});
  const Tensor out = call.Out(6);
  call.ExpectRank(6, out, 2);
  call.ExpectSizes(6, out, {out.size(0), width});
  Tensor of_probs;
  if (probs.defined()) {
    if (!permuted.defined()) call.RejectArg(0, "is absent, but probs is given");
    call.ExpectSizes(0, permuted.view(), out.sizes());
    of_probs = call.Out(7);
    call.ExpectSizes(7, of_probs, probs.sizes());
  }
  return MakeKernel([=] {
    const Tensor index = where.to(at::kLong);
    Tensor each = gradient().unsqueeze(1).expand({tokens, k, width});
    if (of_probs.defined()) {
      const Tensor rows = RowsOrZeros(permuted(), index).reshape({tokens, k, width});
      of_probs.copy_((rows * each).sum(-1));
      each = each * probs().unsqueeze(-1);
    }
    const Tensor kept = index.lt(out.size(0));
    const Tensor positions = kept.nonzero().flatten();
    const Tensor all = at::zeros(out.sizes(), each.options());
    out.copy_(all.index_add(0, index.index_select(0, positions),
                            each.reshape({-1, width}).index_select(0, positions)));
  });
}

// (expandedX, x1, x2?, bias, scales, expandedRowIdx, expandedExpertIdx, out): as the later
// versions, with rows that count choice by choice and all of the experts' arguments given
std::unique_ptr<Kernel> BindFinalizeRoutingV1(const Call& call) {
  const Operand expanded = call.In(0), x1 = call.In(1), x2 = call.OptionalIn(2);
  const Operand bias = call.In(3), scales = call.In(4);
  const Tensor rows = call.View(5), experts = call.View(6), out = call.Out(7);
  ExpectFloats(call, 0, expanded.view());
  for (int i : {1, 2, 3, 4}) {
    if (!call.IsNull(i)) ExpectDtypes(call, i, call.View(i), {expanded.view().scalar_type()});
  }
  for (int i : {0, 3, 4, 6}) call.ExpectRank(i, call.View(i), 2);
  const int64_t tokens = scales.sizes()[0], k = scales.sizes()[1], width = expanded.sizes()[1];
  call.ExpectSizes(0, expanded.view(), {tokens * k, width});
  for (int i : {1, 2}) {
    if (!call.IsNull(i)) call.ExpectSizes(i, call.View(i), {tokens, width});
  }
  call.ExpectSizes(3, bias.view(), {bias.sizes()[0], width});
  call.ExpectSizes(5, rows, {tokens * k});
  call.ExpectSizes(6, experts, {tokens, k});
  for (int i : {5, 6}) ExpectDtypes(call, i, call.View(i), {at::kInt});
  call.ExpectSizes(7, out, {tokens, width});
  return MakeKernel([=] {
    const Tensor index = rows.to(at::kLong).reshape({k, tokens}).t().reshape(-1);
    const Tensor of_expert = bias().index_select(0, experts.to(at::kLong).flatten());
    const Tensor each = expanded().index_select(0, index) + of_expert;
    Tensor sum = (each.reshape({tokens, k, width}) * scales().unsqueeze(-1)).sum(1) + x1();
    if (x2.defined()) sum = sum + x2();
    out.copy_(sum);
  });
}

// (gradExpandedX, expandedRowIdx, topK, dropPadMode, activeNum, out): the sum over the rows of each
// token that went on. Mode 1 has rows by expert and capacity; a number of active rows limits mode
// 0.
std::unique_ptr<Kernel> BindInitRoutingGrad(const Call& call) {
  const Operand gradient = call.In(0);
  const Tensor rows = call.View(1);
  const int64_t k = call.Int(2), mode = call.Int(3), active = call.Int(4);
  ExpectFloats(call, 0, gradient.view());
  call.ExpectRank(1, rows, 1);
  ExpectDtypes(call, 1, rows, {at::kInt});
  if (k < 1 || rows.numel() % k != 0) call.RejectArg(2, "does not divide the number of rows");
  if (mode != 0 && mode != 1) call.RejectArg(3, "must be 0 or 1");
  if (active < 0) call.RejectArg(4, "is negative");
  call.ExpectRank(0, gradient.view(), mode == 1 ? 3 : 2);
  const int64_t width = gradient.sizes().back(), tokens = rows.numel() / k;
  if (mode == 0) {
    call.ExpectSizes(0, gradient.view(), {active > 0 ? active : rows.numel(), width});
  }
  ExpectDtypes(call, 5, call.View(5), {gradient.view().scalar_type()});
  return BindWhole(call, 5, {tokens, width}, [=] {
    const Tensor each = RowsOrZeros(gradient().reshape({-1, width}), rows.to(at::kLong));
    return each.reshape({tokens, k, width}).sum(1);
  });
}

// (gradY, expandedRowIdx, expandedX?, scales?, expertIdx?, bias?, dropPadMode, activeNum,
// expertNum, expertCapacity, gradExpandedX, gradScales?): rows that no token went to get 0.
std::unique_ptr<Kernel> BindFinalizeRoutingGrad(const Call& call) {
  const Operand gradient = call.In(0), expanded = call.OptionalIn(2), scales = call.OptionalIn(3);
  const Operand bias = call.OptionalIn(5);
  const Tensor rows = call.View(1);
  const int64_t mode = call.Int(6), active = call.Int(7);
  ExpectFloats(call, 0, gradient.view());
  call.ExpectRank(0, gradient.view(), 2);
  call.ExpectRank(1, rows, 1);
  ExpectDtypes(call, 1, rows, {at::kInt});
  for (int i : {2, 3, 5}) {
    if (!call.IsNull(i)) ExpectDtypes(call, i, call.View(i), {gradient.view().scalar_type()});
  }
  if (mode != 0 && mode != 1) call.RejectArg(6, "must be 0 or 1");
  const int64_t tokens = gradient.sizes()[0], width = gradient.sizes()[1];
  const int64_t k = tokens == 0 ? 1 : rows.numel() / tokens;
  if (k * tokens != rows.numel()) call.RejectArg(1, "has no whole number of rows for each token");
  if (!scales.defined() && k != 1) call.RejectArg(3, "is absent, which allows one expert a token");
  const bool limited = mode == 0 && active > 0 && active < rows.numel();
  std::vector<int64_t> sizes = {limited ? active : rows.numel(), width};
  if (mode == 1) {
    for (int i : {8, 9}) {
      if (call.Int(i) < 1) call.RejectArg(i, "is less than 1");
    }
    sizes = {call.Int(8), call.Int(9), width};
  }
  Tensor experts;
  if (scales.defined()) {
    if (!expanded.defined()) call.RejectArg(2, "is absent, but scales are given");
    call.ExpectSizes(2, expanded.view(), sizes);
    call.ExpectSizes(3, scales.view(), {tokens, k});
    if (bias.defined()) {
      // It is not documented what the bias of an expert counts for a row that was dropped.
      if (mode == 1 || limited) call.RejectArg(5, "is given, but rows may be dropped");
      experts = call.View(4);
      call.ExpectSizes(4, experts, {tokens, k});
      ExpectDtypes(call, 4, experts, {at::kInt});
      call.ExpectRank(5, bias.view(), 2);
      call.ExpectSizes(5, bias.view(), {bias.sizes()[0], width});
    }
  } else if (!call.IsNull(11)) {
    call.RejectArg(11, "is given, but scales are absent");
  }
  const Tensor out = call.Out(10), of_scales = call.OptionalOut(11);
  call.ExpectSizes(10, out, sizes);
  if (of_scales.defined()) call.ExpectSizes(11, of_scales, {tokens, k});
  return MakeKernel([=] {
    const Tensor index = rows.to(at::kLong), given = gradient();
    Tensor each = given.unsqueeze(1).expand({tokens, k, width});
    if (of_scales.defined()) {
      Tensor forward = RowsOrZeros(expanded().reshape({-1, width}), index);
      if (bias.defined()) {
        forward = forward + bias().index_select(0, experts.to(at::kLong).flatten());
      }
      of_scales.copy_((forward.reshape({tokens, k, width}) * each).sum(-1));
    }
    if (scales.defined()) each = each * scales().unsqueeze(-1);
    const int64_t count = out.numel() / std::max<int64_t>(width, 1);
    const Tensor kept = index.ge(0).logical_and(index.lt(count)).nonzero().flatten();
    const Tensor sums = at::zeros({count, width}, given.options());
    sums.index_add_(0, index.index_select(0, kept),
                    each.reshape({-1, width}).index_select(0, kept));
    out.copy_(sums.view(out.sizes()));
  });
}

// (sortedExperts, numExperts, out): where the rows of each expert end
std::unique_ptr<Kernel> BindComputeExpertTokens(const Call& call) {
  const Tensor experts = call.View(0), out = call.Out(2);
  call.ExpectRank(0, experts, 1);
  ExpectDtypes(call, 0, experts, {at::kInt});
  const int64_t count = call.Int(1);
  if (count < 1 || count > 2048) call.RejectArg(1, "must be between 1 and 2048");
  ExpectDtypes(call, 2, out, {at::kInt});
  return BindWhole(call, 2, {count}, [=] {
    const Tensor numbers = at::arange(count, experts.options());
    return at::searchsorted(experts.contiguous(), numbers, /*out_int32=*/true, /*right=*/true);
  });
}

}  // namespace

KernelRows MoeRoutingRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  const auto finalize = [](const FinalizeArguments& at) {
    return [&at](const Call& call) { return BindFinalizeRouting(call, at); };
  };
  return {
      {"aclnnMoeInitRouting", BindInitRouting},
      {"aclnnMoeInitRoutingV2", BindInitRoutingV2},
      {"aclnnMoeInitRoutingV3", BindRangeRouting, Widen::kNever, {15, 16}},
      {"aclnnMoeInitRoutingCustom", BindRangeRouting, Widen::kNever, {15, 16}},
      {"aclnnMoeInitRoutingV2Grad", BindInitRoutingGrad, kBoth},
      {"aclnnMoeFinalizeRouting", BindFinalizeRoutingV1, kBoth},
      {"aclnnMoeFinalizeRoutingV2Grad", BindFinalizeRoutingGrad, kBoth},
      {"aclnnMoeFinalizeRoutingV2", finalize(kFinalizeV2), kBoth},
      {"aclnnMoeFinalizeRoutingV3", finalize(kFinalizeV3), kBoth, {12, 13, 14}},
      {"aclnnMoeFinalizeRoutingV4", finalize(kFinalizeV4), kBoth, {12, 13, 14}},
      {"aclnnMoeComputeExpertTokens", BindComputeExpertTokens},
      {"aclnnMoeTokenPermute", BindTokenPermute},
      {"aclnnMoeTokenPermuteGrad", BindTokenPermuteGrad, kBoth},
      {"aclnnMoeTokenUnpermute", BindTokenUnpermute, kBoth},
      {"aclnnMoeTokenUnpermuteGrad", BindTokenUnpermuteGrad, kBoth, {7}},
  };
}

}  // namespace acltape::opapi
