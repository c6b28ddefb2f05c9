// Tokens in the order of their experts, quantised to int8 on the way, as the vendor's pages
// aclnnMoeInitRoutingQuant and aclnnMoeInitRoutingQuantV2 say.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/moe_routing.h"
#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

Tensor RoundedToInt8(const Tensor& values) { return values.round().clamp(-128, 127); }

// (x, rowIdx, expertIdx, activeNum, scale, offset, expandedX, expandedRowIdx, expandedExpertIdx)
std::unique_ptr<Kernel> BindQuantizedRouting(const Call& call) {
  const Operand x = call.In(0);
  ExpectDtypes(call, 0, x.view(), {at::kFloat, at::kHalf, at::kBFloat16});
  const FirstRouting routing(call, x, 6);
  const double scale = call.Real(4), offset = call.Real(5);
  const Tensor out = call.Out(6);
  ExpectInt8(call, 6, out);
  return MakeKernel([=] {
    const Tensor tokens = routing.Route();
    if (tokens.numel() == 0) return;
    out.copy_(RoundedToInt8(x().index_select(0, tokens) * scale + offset));
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
  ExpectDtypes(call, 0, x.view(), {at::kFloat, at::kHalf, at::kBFloat16});
  const SecondRouting routing(call, x, 4, 11);
  const int64_t width = x.sizes()[1];
  const RowQuantisation quantised = ReadRowQuantisation(call, routing.experts(), width);
  if (quantised.dynamic && width == 0) call.RejectArg(0, "has rows without elements");
  const Tensor out = call.Out(11);
  ExpectInt8(call, 11, out);
  const Tensor scales = quantised.dynamic ? call.OptionalOut(15) : Tensor();
  if (scales.defined()) call.ExpectSizes(15, scales, {routing.places()});
  return MakeKernel([=] {
    const Tensor from = routing.Route();
    Tensor each = routing.RowsAt(from, x().to(at::kFloat));
    if (!quantised.dynamic) {
      const Tensor scaled = RoundedToInt8(each * quantised.scale + quantised.offset);
      out.copy_(scaled.masked_fill(from.lt(0).unsqueeze(1), 0).view(out.sizes()));
      return;
    }
    if (quantised.scale.defined()) {
      const bool alike = quantised.scale.size(0) == 1;
      const Tensor expert = RowsOrZeros(routing.ExpertsOfRows().unsqueeze(1), from).flatten();
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
