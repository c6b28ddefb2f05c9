// Tokens that came from other ranks, rank by rank and there expert by expert, in the order of the
// experts of this rank. The rules are those of the vendor's page aclnnMoeReRouting.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/moe_rows.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The rows in the order of their experts; those of one expert stay in the order of their ranks.
// `counts` of [ranks, experts] says how many rows each expert has from each rank.
Tensor RowsByExpert(const Tensor& counts, int64_t rows) {
  const Tensor each = counts.to(at::kLong).reshape(-1);
  const bool outside = each.lt(0).logical_or(each.gt(rows)).any().item<bool>();
  TORCH_CHECK(!outside && each.sum().item<int64_t>() == rows,
              "expertTokenNumPerRank has numbers whose sum is out of range for ", rows, " tokens");
  const Tensor experts = at::arange(counts.size(1)).repeat({counts.size(0)});
  return SortedPositions(experts.repeat_interleave(each));
}

// (tokens, expertTokenNumPerRank, perTokenScales?, expertTokenNumType, idxType, permuteTokens,
// permutePerTokenScales, permuteTokenIdx, expertTokenNum). The page leaves open what the output of
// the scales holds where none are given; here it holds zeros.
std::unique_ptr<Kernel> BindReRouting(const Call& call) {
  const Operand tokens = call.In(0), scales = call.OptionalIn(2);
  const Tensor counts = call.View(1);
  call.ExpectRank(0, tokens.view(), 2);
  ExpectDtypes(call, 0, tokens.view(), {at::kHalf, at::kBFloat16, at::kChar});
  call.ExpectRank(1, counts, 2);
  call.ExpectIndex(1, counts);
  if (call.Int(3) != 1) call.RejectArg(3, "must be 1: numbers of tokens");
  if (call.Int(4) != 0) call.RejectArg(4, "must be 0: the row that each place has its token from");
  const int64_t rows = tokens.sizes()[0];
  const Tensor out = call.Out(5), scales_out = call.Out(6);
  const Tensor from = call.Out(7), totals = call.Out(8);
  call.ExpectSizes(5, out, tokens.sizes());
  ExpectDtypes(call, 5, out, {tokens.view().scalar_type()});
  if (scales.defined()) {
    call.ExpectSizes(2, scales.view(), {rows});
    ExpectDtypes(call, 2, scales.view(), {at::kFloat});
  }
  call.ExpectSizes(6, scales_out, {rows});
  ExpectDtypes(call, 6, scales_out, {at::kFloat});
  call.ExpectSizes(7, from, {rows});
  ExpectDtypes(call, 7, from, {at::kInt});
  call.ExpectSizes(8, totals, {counts.size(1)});
  ExpectDtypes(call, 8, totals, {counts.scalar_type()});
  return MakeKernel([=] {
    const Tensor order = RowsByExpert(counts, rows);
    from.copy_(order);
    out.copy_(tokens().index_select(0, order));
    Tensor(scales_out).zero_();
    if (scales.defined()) scales_out.copy_(scales().index_select(0, order));
    totals.copy_(counts.to(at::kLong).sum(0));
  });
}

}  // namespace

KernelRows ReRoutingRows() { return {{"aclnnMoeReRouting", BindReRouting}}; }

}  // namespace acltape::opapi
