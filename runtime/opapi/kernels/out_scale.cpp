#include "runtime/opapi/kernels/out_scale.h"

#include "runtime/opapi/kernels/expect_dtypes.h"

namespace acltape::opapi {

using at::Tensor;

Tensor OutScale::Apply(const Tensor& result) const {
  if (!scale.defined()) return result;
  const auto of_channels = [&](const Tensor& given) {
    const Tensor wide = given.to(at::kFloat);
    return given.numel() == 1 ? wide.reshape({1}) : wide.reshape({1, heads, 1, width});
  };
  Tensor steps = result * of_channels(scale);
  if (offset.defined()) steps = steps + of_channels(offset);
  return steps.round().clamp(-128, 127);
}

OutScale ReadOutScale(const Call& call, int i, int out_index, const Tensor& out,
                      at::ScalarType query, int64_t heads, int64_t width) {
  OutScale result;
  result.heads = heads;
  result.width = width;
  if (out.scalar_type() != at::kChar) {
    for (int part = i; i >= 0 && part <= i + 1; ++part) {
      if (!call.IsAbsent(part)) call.RejectArg(part, "is given, but the output is not int8");
    }
    return result;
  }
  if (i < 0) call.RejectArg(out_index, "is int8, but the operator takes no scale of it");
  if (call.IsAbsent(i)) call.RejectArg(i, "is absent, but the output is int8");
  const auto read = [&](int part) {
    const Tensor given = call.View(part);
    if (query == at::kBFloat16) {
      ExpectDtypes(call, part, given, {at::kFloat, at::kBFloat16});
    } else {
      ExpectDtypes(call, part, given, {at::kFloat});
    }
    if (given.numel() != 1 && given.numel() != heads * width) {
      call.RejectArg(part, "has not one entry per channel");
    }
    return given;
  };
  result.scale = read(i);
  if (call.IsAbsent(i + 1)) return result;
  result.offset = read(i + 1);
  if (result.offset.scalar_type() != result.scale.scalar_type()) {
    call.RejectArg(i + 1, "has another dtype than the scale");
  }
  return result;
}

}  // namespace acltape::opapi
