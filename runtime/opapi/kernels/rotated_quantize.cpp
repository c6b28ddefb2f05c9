// Quantisation of rows that matrices turn first, so that no column has much greater numbers than
// the others.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

void ExpectTurner(const Call& call, int i, const Tensor& matrix, at::ScalarType dtype,
                  int64_t size) {
  ExpectDtypes(call, i, matrix, {dtype});
  call.ExpectSizes(i, matrix, {size, size});
}

// The numbers in steps of the scale; a scale of 0 has zeros alone.
Tensor InSteps(const Tensor& values, const Tensor& scale) {
  return at::where(scale == 0, at::zeros_like(values), values / scale);
}

Tensor RoundedBy(const Tensor& values, const std::string& mode) {
  if (mode == "floor") return values.floor();
  if (mode == "round") return (values.abs() + 0.5).floor() * values.sign();
  return values.round();
}

// (x [rows, columns], rotation [size, size], alpha?, axis, roundMode, scaleAlg, dstTypeMax, trans,
// y, scale [rows]): each run of `size` columns is turned, and the greatest magnitude of a row
// becomes the greatest number of y.
std::unique_ptr<Kernel> BindRotateQuant(const Call& call) {
  const Tensor x = call.View(0), rotation = call.View(1);
  ExpectDtypes(call, 0, x, {at::kHalf, at::kBFloat16});
  call.ExpectRank(0, x, 2);
  call.ExpectRank(1, rotation, 2);
  const int64_t rows = x.size(0), columns = x.size(1), size = rotation.size(1);
  ExpectTurner(call, 1, rotation, x.scalar_type(), size);
  if (columns < 128 || columns > 16000 || columns % 8 != 0) {
    call.RejectArg(0, "has a last dim that is no multiple of 8 from 128 to 16000");
  }
  if (size < 16 || size > 1024) call.RejectArg(1, "must have 16 to 1024 rows");
  if (columns % size != 0) call.RejectArg(1, "has a size that does not divide the last dim of x");
  call.ExpectAbsent({2});
  if (call.Int(3) != -1 && call.Int(3) != 1) call.RejectArg(3, "must be -1 or 1");
  const std::string mode = call.Text(4);
  if (!mode.empty() && mode != "rint" && mode != "round" && mode != "floor") {
    call.RejectArg(4, "must be \"rint\", \"round\" or \"floor\"");
  }
  if (call.Int(5) != 0) call.RejectArg(5, "must be 0");
  if (call.Real(6) != 0) call.RejectArg(6, "must be 0");
  if (call.Bool(7)) call.RejectArg(7, "must be false");
  const QuantizedOut y = ReadQuantizedOut(call, 8, x.sizes());
  const Tensor scale_out = call.Out(9);
  ExpectDtypes(call, 9, scale_out, {at::kFloat});
  call.ExpectSizes(9, scale_out, {rows});
  return MakeKernel([=] {
    const Tensor runs = x.to(at::kFloat).reshape({-1, size});
    const Tensor turned = runs.mm(rotation.to(at::kFloat)).view({rows, columns});
    const Tensor scale = turned.abs().amax(1, /*keepdim=*/true) / y.range.high;
    y.Write(RoundedBy(InSteps(turned, scale), mode).clamp(y.range.low, y.range.high));
    scale_out.copy_(scale.squeeze(1));
  });
}

// (x [matrices, rows, columns], kroneckerP1 [rows, rows], kroneckerP2 [columns, columns],
// clipRatio, out, quantScale [matrices]): P1 x P2 in steps in which clipRatio of the greatest
// magnitude is 7.
std::unique_ptr<Kernel> BindFlatQuant(const Call& call) {
  const Tensor x = call.View(0), left = call.View(1), right = call.View(2);
  ExpectDtypes(call, 0, x, {at::kHalf, at::kBFloat16});
  call.ExpectRank(0, x, 3);
  if (x.numel() == 0) call.RejectArg(0, "is empty");
  if (x.size(0) > 262144 || x.size(1) > 256 || x.size(2) > 256) {
    call.RejectArg(0, "has more than [262144, 256, 256] elements in a dim");
  }
  ExpectTurner(call, 1, left, x.scalar_type(), x.size(1));
  ExpectTurner(call, 2, right, x.scalar_type(), x.size(2));
  const double ratio = call.Real(3);
  if (!(ratio > 0 && ratio <= 1)) call.RejectArg(3, "must be above 0 and at most 1");
  const QuantizedOut out = ReadQuantizedOut(call, 4, x.sizes());
  if (out.range.high != 7) call.RejectArg(4, "must be of dtype int4, or int32 that packs them");
  const Tensor scale_out = call.Out(5);
  ExpectDtypes(call, 5, scale_out, {at::kFloat});
  call.ExpectSizes(5, scale_out, {x.size(0)});
  return MakeKernel([=] {
    const Tensor turned =
        at::matmul(at::matmul(left.to(at::kFloat), x.to(at::kFloat)), right.to(at::kFloat));
    const Tensor scale = turned.abs().amax({1, 2}, /*keepdim=*/true) / (out.range.high / ratio);
    out.Write(InSteps(turned, scale).round().clamp(out.range.low, out.range.high));
    scale_out.copy_(scale.flatten());
  });
}

}  // namespace

KernelRows RotatedQuantizeRows() {
  return {
      {"aclnnRotateQuant", BindRotateQuant, Widen::kNever, {4}},
      {"aclnnFlatQuant", BindFlatQuant},
  };
}

}  // namespace acltape::opapi
