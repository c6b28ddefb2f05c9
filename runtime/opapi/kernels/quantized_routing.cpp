// Tokens in the order of their experts, quantised to int8 on the way, as the vendor's pages
// aclnnMoeInitRoutingQuant and aclnnMoeInitRoutingQuantV2 say.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/moe_rows.h"
#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

Tensor RoundedToInt8(const Tensor& values) { return values.round().clamp(-128, 127); }

// (x, rowIdx, expertIdx, activeNum, scale, offset, expandedX, expandedRowIdx, expandedExpertIdx):
// rows are counted choice by choice, as rowIdx says.
std::unique_ptr<Kernel> BindQuantizedRouting(const Call& call) {
  const Operand x = call.In(0);
  const Tensor rows = call.View(1), experts = call.View(2);
  ExpectDtypes(call, 0, x.view(), {at::kFloat, at::kHalf, at::kBFloat16});
  ExpectExperts(call, 2, experts, x);
  call.ExpectSizes(1, rows, experts.sizes());
  call.ExpectIndex(1, rows);
  const int64_t tokens = experts.size(0), k = experts.size(1), active = call.Int(3);
  if (active < 0) call.RejectArg(3, "is negative");
  const double scale = call.Real(4), offset = call.Real(5);
  const int64_t kept = std::min(active, tokens) * k;
  const Tensor out = call.Out(6), where = call.Out(7), sorted = call.Out(8);
  ExpectInt8(call, 6, out);
  call.ExpectSizes(6, out, {kept, x.sizes()[1]});
  for (int i : {7, 8}) ExpectVector(call, i, tokens * k);
  return MakeKernel([=] {
    const Tensor flat = experts.to(at::kLong).flatten(), order = SortedPositions(flat);
    const Tensor from = rows.to(at::kLong).flatten().index_select(0, order);
    sorted.copy_(flat.index_select(0, order));
    where.copy_(Inverse(from));
    if (kept == 0) return;
    const Tensor each = x().index_select(0, from.narrow(0, 0, kept).remainder(tokens));
    out.copy_(RoundedToInt8(each * scale + offset));
  });
}

// How the rows are quantised: all with one scale and offset, or each with a scale of its own after
// the factors of its expert, if there are any.
struct RowQuantisation {
  bool dynamic = false;
  Tensor scale, offset;  // scale: [1], or [experts, width] or [1, width]
};

RowQuantisation ReadRowQuantisation(const Call& call, int64_t experts, int64_t width) {
  RowQuantisation read;
  const int64_t mode = call.Int(10);
  if (mode != 0 && mode != 1) call.RejectArg(10, "must be 0 (static) or 1 (dynamic)");
  read.dynamic = mode == 1;
  for (int i : {2, 3}) {
    if (!call.IsAbsent(i)) ExpectDtypes(call, i, call.View(i), {at::kFloat});
  }
  if (!read.dynamic) {
    for (int i : {2, 3}) {
      if (call.IsAbsent(i)) call.RejectArg(i, "is absent, but quantMode is 0");
      call.ExpectSizes(i, call.View(i), {1});
    }
    read.scale = call.View(2);
    read.offset = call.View(3);
  } else if (!call.IsAbsent(2)) {
    read.scale = call.View(2);
    call.ExpectRank(2, read.scale, 2);
    call.ExpectSizes(2, read.scale, {read.scale.size(0) == 1 ? 1 : experts, width});
  }
  return read;
}

// (x, expertIdx, scale?, offset?, activeNum, expertCapacity, expertNum, dropPadMode,
// countOrCumsumFlag, beforeCapacityFlag, quantMode, expandedX, expandedRowIdx, countOrCumsum?,
// beforeCapacity?, dynamicQuantScale?). Places without a row hold zeros.
std::unique_ptr<Kernel> BindQuantizedRoutingV2(const Call& call) {
  const Operand x = call.In(0);
  const Tensor experts = call.View(1);
  ExpectDtypes(call, 0, x.view(), {at::kFloat, at::kHalf, at::kBFloat16});
  ExpectExperts(call, 1, experts, x);
  const int64_t active = call.Int(4), capacity = call.Int(5), count = call.Int(6);
  const int64_t pad = call.Int(7), counting = call.Int(8);
  for (int i : {4, 5, 6}) {
    if (call.Int(i) < 0) call.RejectArg(i, "is negative");
  }
  if (pad != 0 && pad != 1) call.RejectArg(7, "must be 0 or 1");
  if (counting < 0 || counting > 2) call.RejectArg(8, "must be 0, 1 (sums) or 2 (counts)");
  if (pad == 1 && (count == 0 || capacity == 0)) {
    call.RejectArg(count == 0 ? 6 : 5, "is 0, but dropPadMode is 1");
  }
  if (pad == 0 && counting != 0 && count == 0) call.RejectArg(6, "is 0, but counts are asked for");
  const int64_t k = experts.size(1), rows = experts.numel(), width = x.sizes()[1];
  const int64_t kept = active > 0 ? std::min(active, rows) : rows;
  const RowQuantisation quantised = ReadRowQuantisation(call, count, width);
  if (quantised.dynamic && width == 0) call.RejectArg(0, "has rows without elements");
  const Tensor out = call.Out(11), where = call.Out(12);
  ExpectInt8(call, 11, out);
  call.ExpectSizes(
      11, out,
      pad == 1 ? std::vector<int64_t>{count, capacity, width} : std::vector<int64_t>{kept, width});
  ExpectVector(call, 12, rows);
  const auto counts_out = [&](int i, bool wanted) {
    if (!wanted) return Tensor();
    ExpectVector(call, i, count);
    return call.Out(i);
  };
  const Tensor sums = counts_out(13, pad == 0 && counting != 0);
  const Tensor wishes = counts_out(14, pad == 1 && call.Bool(9));
  const int64_t places_count = pad == 1 ? count * capacity : kept;
  const Tensor scales = quantised.dynamic ? call.OptionalOut(15) : Tensor();
  if (scales.defined()) call.ExpectSizes(15, scales, {places_count});
  return MakeKernel([=] {
    const Tensor flat = experts.to(at::kLong).flatten();
    if (wishes.defined()) wishes.copy_(CountTokens(flat, count));
    if (sums.defined()) {
      const Tensor counts = CountTokens(flat, count);
      sums.copy_(counting == 1 ? counts.cumsum(0) : counts);
    }
    const RowPlaces places =
        pad == 1 ? PlacesWithCapacity(flat, count, capacity) : PlacesInOrder(flat, kept);
    where.copy_(places.where);
    const Tensor input = x().to(at::kFloat);
    Tensor each = RowsOrZeros(input, places.from.floor_divide(std::max<int64_t>(k, 1)));
    if (!quantised.dynamic) {
      const Tensor scaled = RoundedToInt8(each * quantised.scale + quantised.offset);
      out.copy_(scaled.masked_fill(places.from.lt(0).unsqueeze(1), 0).view(out.sizes()));
      return;
    }
    if (quantised.scale.defined()) {
      const bool alike = quantised.scale.size(0) == 1;
      const Tensor expert = RowsOrZeros(flat.unsqueeze(1), places.from).flatten();
      each = each * (alike ? quantised.scale : quantised.scale.index_select(0, expert));
    }
    const ScaledRows scaled = ScaleRows(each);
    out.copy_(scaled.values.view(out.sizes()));
    if (scales.defined()) scales.copy_(scaled.scale);
  });
}

}  // namespace

KernelRows QuantizedRoutingRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnMoeInitRoutingQuant", BindQuantizedRouting, kBoth},
      {"aclnnMoeInitRoutingQuantV2", BindQuantizedRoutingV2, kBoth},
  };
}

}  // namespace acltape::opapi
