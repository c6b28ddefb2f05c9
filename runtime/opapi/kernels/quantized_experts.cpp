// Products of experts on quantised rows: each group of rows with the matrix of its expert, through
// a gate, and quantised again. Products of integers are exact before they are scaled.
#include <ATen/ATen.h>

#include <vector>

#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The first half of the columns passes through the gate, the second half is multiplied with it. A
// limit above 1e-8 bounds both halves from above, and the second one from below.
Tensor GatedColumns(const Tensor& rows, double limit) {
  const int64_t width = rows.size(1) / 2;
  Tensor gate = rows.narrow(1, 0, width), value = rows.narrow(1, width, width);
  if (limit > 1e-8) {
    gate = gate.clamp_max(limit);
    value = value.clamp(-limit, limit);
  }
  return value * (gate * at::sigmoid(gate));
}

// (x, weight list, bias?, offset?, weightScale list, xScale, groupList, swigluLimit, output,
// outputScale, outputOffset?): groupList has the end of each group. Rows after the last one are
// zeros, and outputOffset is not written.
std::unique_ptr<Kernel> BindSwigluOfExperts(const Call& call) {
  const Tensor x = call.View(0), x_scale = call.View(5), ends = call.View(6);
  const std::vector<Tensor> weights = call.Views(1), scales = call.Views(4);
  const Tensor out = call.Out(8), out_scale = call.Out(9);
  const double limit = call.Real(7);
  for (int i : {2, 3}) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given, which the soft device lacks");
  }
  call.ExpectRank(0, x, 2);
  ExpectInt8(call, 0, x);
  call.ExpectRank(6, ends, 1);
  if (ends.scalar_type() != at::kLong) call.RejectArg(6, "is not of dtype int64");
  const auto experts = static_cast<size_t>(ends.size(0));
  if (weights.size() != experts) call.RejectArg(1, "has not one matrix for each group");
  if (scales.size() != experts) call.RejectArg(4, "has not one tensor for each group");
  if (experts == 0) call.RejectArg(6, "is empty");
  const int64_t columns = weights[0].dim() == 2 ? weights[0].size(1) : 0;
  if (columns < 2 || columns % 2 != 0) call.RejectArg(1, "has no matrices with pairs of columns");
  for (size_t i = 0; i < experts; ++i) {
    ExpectInt8(call, 1, weights[i]);
    call.ExpectSizes(1, weights[i], {x.size(1), columns});
    call.ExpectSizes(4, scales[i], {columns});
    ExpectFloats(call, 4, scales[i]);
  }
  call.ExpectSizes(5, x_scale, {x.size(0)});
  for (int i : {5, 9}) {
    if ((i == 5 ? x_scale : out_scale).scalar_type() != at::kFloat) {
      call.RejectArg(i, "is not of dtype float32");
    }
  }
  ExpectInt8(call, 8, out);
  call.ExpectSizes(8, out, {x.size(0), columns / 2});
  call.ExpectSizes(9, out_scale, {x.size(0)});
  return MakeKernel([=] {
    const Tensor list = ends.contiguous();
    int64_t begin = 0;
    for (size_t i = 0; i < experts; ++i) {
      const int64_t end = list.data_ptr<int64_t>()[i], count = end - begin;
      TORCH_CHECK(count >= 0 && end <= x.size(0), "group ", i, " ends at row ", end,
                  ", which lies outside of ", begin, " to ", x.size(0));
      if (count == 0) continue;
      const Tensor product =
          at::mm(x.narrow(0, begin, count).to(at::kDouble), weights[i].to(at::kDouble));
      const Tensor rows = product.to(at::kFloat) * x_scale.narrow(0, begin, count).unsqueeze(-1) *
                          scales[i].to(at::kFloat);
      const ScaledRows scaled = ScaleRows(GatedColumns(rows, limit));
      out.narrow(0, begin, count).copy_(scaled.values);
      out_scale.narrow(0, begin, count).copy_(scaled.scale);
      begin = end;
    }
    out.slice(0, begin).zero_();
    out_scale.slice(0, begin).zero_();
  });
}

}  // namespace

KernelRows QuantizedExpertRows() {
  return {{"aclnnGroupedMatmulSwigluQuantWeightNzTensorList",
           BindSwigluOfExperts,
           Widen::kNever,
           {2, 3, 10}}};
}

}  // namespace acltape::opapi
