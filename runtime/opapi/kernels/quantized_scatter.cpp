// Rows that are quantised to int8 on their way into a cache. The vendor's pages are
// aclnnInplaceQuantScatter and aclnnInplaceQuantScatterV2; the adapter's test of npu_quant_scatter
// holds the numbers against npu_quantize, which divides by the scales.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// (selfRef, indices, updates, quantScales, quantZeroPoints?, axis, quantAxis, reduction,
// [roundMode]): entry b of the updates goes into entry b of selfRef, or, with two columns of
// indices, into the entry that the first one names, from the index on along the axis.
Binder QuantScatter(bool has_mode) {
  return [has_mode](const Call& call) {
    const Tensor data = call.Out(0), indices = call.View(1);
    const Operand updates = call.In(2), scales = call.In(3), zeros = call.OptionalIn(4);
    ExpectInt8(call, 0, data);
    const int64_t rank = data.dim();
    if (rank < 3) call.RejectArg(0, "has less than 3 dims");
    call.ExpectIndex(1, indices);
    const bool named = indices.dim() == 2;
    if (!named) call.ExpectRank(1, indices, 1);
    if (named) call.ExpectSizes(1, indices, {indices.size(0), 2});
    ExpectDtypes(call, 2, updates.view(), {at::kHalf, at::kBFloat16});
    call.ExpectRank(2, updates.view(), rank);
    const int64_t axis = call.Dim(5, rank);
    if (axis == 0 || axis == rank - 1) call.RejectArg(5, "must be neither the first nor the last");
    if (call.Dim(6, rank) != rank - 1) call.RejectArg(6, "must be the last dim");
    if (call.Int(7) != 1) call.RejectArg(7, "must be 1 (update)");
    if (has_mode && call.Text(8) != "rint") call.RejectArg(8, "must be \"rint\" for int8");
    std::vector<int64_t> sizes = data.sizes().vec();
    sizes[0] = indices.size(0);
    sizes[axis] = updates.sizes()[axis];
    call.ExpectSizes(2, updates.view(), sizes);
    if (sizes[0] > data.size(0)) call.RejectArg(2, "has more entries than selfRef");
    if (sizes[axis] > data.size(axis)) call.RejectArg(2, "is longer than selfRef along the axis");
    ExpectDtypes(call, 3, scales.view(), {at::kFloat, at::kBFloat16});
    if (zeros.defined()) ExpectDtypes(call, 4, zeros.view(), {at::kInt, at::kBFloat16});
    for (int i : {3, 4}) {
      if (!call.IsAbsent(i) && call.View(i).numel() != data.size(-1)) {
        call.RejectArg(i, "has not one element for each entry of the last dim");
      }
    }
    return MakeKernel([=] {
      Tensor scaled = updates() / scales().reshape(-1);
      if (zeros.defined()) scaled = scaled + zeros().reshape(-1).to(at::kFloat);
      const Tensor whole = scaled.round().clamp(-128, 127);
      const Tensor places = indices.to(at::kLong).contiguous();
      const auto* place = places.data_ptr<int64_t>();
      const int64_t length = whole.size(axis);
      for (int64_t b = 0; b < whole.size(0); ++b) {
        const int64_t entry = named ? place[2 * b] : b;
        const int64_t first = named ? place[2 * b + 1] : place[b];
        TORCH_CHECK(entry >= 0 && entry < data.size(0), "indices name the entry ", entry,
                    ", which is out of range for ", data.size(0));
        TORCH_CHECK(first >= 0 && first <= data.size(axis) - length, "indices have ", first,
                    ", which is out of range for ", data.size(axis), " with ", length, " more");
        data[entry].narrow(axis - 1, first, length).copy_(whole[b]);
      }
    });
  };
}

}  // namespace

KernelRows QuantizedScatterRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnInplaceQuantScatter", QuantScatter(false), kBoth},
      {"aclnnInplaceQuantScatterV2", QuantScatter(true), kBoth, {4}},
  };
}

}  // namespace acltape::opapi
