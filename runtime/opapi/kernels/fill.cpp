// Outputs that depend on no tensor: fills and ranges.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/unsigned_bits.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

// A fill gives elements that share memory the same value, so it may overlap itself.
std::unique_ptr<Kernel> BindFill(const Call& call, const at::Scalar& value) {
  if (call.IsUnsigned(0)) {
    const AnyNumbers self = ReadNumbers(call, 0),
                     number = {at::scalar_tensor(value, value.type()), false};
    return MakeKernel([=] { Convert(self, number); });
  }
  Tensor self = call.View(0);
  return MakeKernel([=]() mutable { f::fill_(self, value); });
}

// (selfRef, value of one element)
std::unique_ptr<Kernel> BindFillTensor(const Call& call) {
  Tensor self = call.Bits(0), value = call.Bits(1);
  if (value.numel() != 1) call.RejectArg(1, "must have one element");
  value = value.reshape({});
  if (call.IsUnsigned(0) || call.IsUnsigned(1)) {
    const AnyNumbers to = {self, call.IsUnsigned(0)}, from = {value, call.IsUnsigned(1)};
    return MakeKernel([=] { Convert(to, from); });
  }
  if (value.is_complex() && !self.is_complex()) call.RejectArg(1, "is complex and selfRef is not");
  return MakeKernel([=]() mutable { f::fill_(self, value.to(self.scalar_type())); });
}

int64_t RangeCount(const Call& call, const at::Scalar& start, const at::Scalar& end,
                   const at::Scalar& step, bool closed) {
  const double first = start.toDouble(), last = end.toDouble(), stride = step.toDouble();
  if (stride == 0) call.RejectArg(2, "is 0");
  if ((last - first) / stride < 0) call.RejectCall("start, end and step lead away from the end");
  if (closed) return static_cast<int64_t>((last - first) / stride + 1);
  if (start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true)) {
    const int64_t distance = end.toLong() - start.toLong(), by = step.toLong();
    return (distance + by - (by > 0 ? 1 : -1)) / by;
  }
  return static_cast<int64_t>(std::ceil((last - first) / stride));
}

// The library counts integers by whole steps.
void ExpectWholeStep(const Call& call, const at::Scalar& step) {
  const bool whole = at::isIntegralType(call.View(3).scalar_type(), /*includeBool=*/true);
  if (whole && std::abs(step.toDouble()) < 1) call.RejectArg(2, "is 0 as an integer");
}

// fill(row) writes `count` numbers. The output may have any shape with `count` elements, as on a
// device. Halves are computed in float32, which the library's ranges lack.
template <typename Fill>
std::unique_ptr<Kernel> BindNumbers(const Call& call, int out_index, int64_t count, Fill fill) {
  const Tensor out = call.Out(out_index);
  if (out.numel() != count) call.ExpectSizes(out_index, out, {count});
  if (out.dim() == 1 && out.scalar_type() != at::kHalf) {
    return MakeKernel([=]() mutable {
      Tensor row = out;
      fill(row);
    });
  }
  const at::ScalarType computed = out.scalar_type() == at::kHalf ? at::kFloat : out.scalar_type();
  return MakeKernel([=] {
    Tensor row = at::empty({count}, computed);
    fill(row);
    out.copy_(row.view(out.sizes()));
  });
}

// (start, end, step, out): the half-open range of the library, whose element i is start + i * step.
std::unique_ptr<Kernel> BindArange(const Call& call) {
  const at::Scalar start = call.Number(0), end = call.Number(1), step = call.Number(2);
  ExpectWholeStep(call, step);
  return BindNumbers(call, 3, RangeCount(call, start, end, step, false),
                     [=](Tensor& row) { f::arange_out(row, start, end, step); });
}

// (start, end, step, out): as arange, with the end.
std::unique_ptr<Kernel> BindRange(const Call& call) {
  const at::Scalar start = call.Number(0), end = call.Number(1), step = call.Number(2);
  ExpectWholeStep(call, step);
  return BindNumbers(call, 3, RangeCount(call, start, end, step, true),
                     [=](Tensor& row) { f::range_out(row, start, end, step); });
}

// (start, end, steps, out)
std::unique_ptr<Kernel> BindLinspace(const Call& call) {
  const at::Scalar start = call.Number(0), end = call.Number(1);
  const int64_t steps = call.Int(2);
  Tensor out = call.Out(3);
  call.ExpectSizes(3, out, {steps});
  return MakeKernel([=]() mutable { f::linspace_out(out, start, end, steps); });
}

// (start, end, steps, base, result)
std::unique_ptr<Kernel> BindLogSpace(const Call& call) {
  const at::Scalar start = call.Number(0), end = call.Number(1);
  const int64_t steps = call.Int(2);
  const double base = call.Real(3);
  call.ExpectSizes(4, call.Out(4), {steps});
  return BindNumbers(call, 4, steps,
                     [=](Tensor& row) { f::logspace_out(row, start, end, steps, base); });
}

// (n, m, out)
std::unique_ptr<Kernel> BindEye(const Call& call) {
  Tensor out = call.Out(2);
  call.ExpectSizes(2, out, {call.Int(0), call.Int(1)});
  return MakeKernel([=]() mutable {
    f::fill_(out, 0);
    Tensor diagonal = out.diagonal();
    f::fill_(diagonal, 1);
  });
}

// (selfRef, fillValue, wrap)
std::unique_ptr<Kernel> BindFillDiagonal(const Call& call) {
  Tensor self = call.Out(0);
  if (self.dim() < 2) call.RejectArg(0, "has less than 2 dims");
  const at::Scalar value = call.Number(1);
  const bool wrap = call.Bool(2);
  return MakeKernel([=]() mutable { self.fill_diagonal_(value, wrap); });
}

}  // namespace

KernelRows FillRows() {
  return {
      {"aclnnInplaceZero", [](const Call& call) { return BindFill(call, 0); }},
      {"aclnnInplaceOne", [](const Call& call) { return BindFill(call, 1); }},
      {"aclnnInplaceFillScalar", [](const Call& call) { return BindFill(call, call.Number(1)); }},
      {"aclnnInplaceFillTensor", BindFillTensor},
      {"aclnnInplaceFillDiagonal", BindFillDiagonal},
      {"aclnnArange", BindArange},
      {"aclnnRange", BindRange},
      {"aclnnLinspace", BindLinspace},
      {"aclnnLogSpace", BindLogSpace},
      {"aclnnEye", BindEye},
  };
}

}  // namespace acltape::opapi
