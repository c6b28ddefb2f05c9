// Elementwise operators of three operands, and clamps.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/kernels/elementwise.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

// Binds an elementwise fn(out, a, b, c) of tensors that broadcast.
template <typename Fn>
std::unique_ptr<Kernel> BindTernary(const Call& call, int out_index, std::array<Operand, 3> in,
                                    at::ScalarType computed, Fn fn) {
  const Tensor out = call.Out(out_index);
  call.ExpectSizes(out_index, out, call.Broadcast({in[0].sizes(), in[1].sizes(), in[2].sizes()}));
  ExpectCast(call, out_index, out, computed);
  Target target(out, computed, Access::kElementwise, {&in[0].view(), &in[1].view(), &in[2].view()});
  return MakeKernel(
      [=] { target.Write([&](Tensor& result) { fn(result, in[0](), in[1](), in[2]()); }); });
}

at::ScalarType PromotedTensors(const Call& call, const Operand& a, const Operand& b,
                               const Operand& c) {
  return call.Computed(
      at::result_type(Tensor(at::empty({1}, at::result_type(a.view(), b.view()))), c.view()));
}

// (self, tensor1, tensor2, value, out)
template <typename Fn>
Binder Addc(Fn fn) {
  return [=](const Call& call) {
    const Operand self = call.In(0), a = call.In(1), b = call.In(2);
    const at::Scalar value = call.Number(3);
    return BindTernary(call, 4, {self, a, b}, PromotedTensors(call, self, a, b),
                       [fn, value](Tensor& out, const Tensor& x, const Tensor& y, const Tensor& z) {
                         fn(out, x, y, z, value);
                       });
  };
}

Tensor& Addcdiv(Tensor& out, const Tensor& self, const Tensor& a, const Tensor& b,
                const at::Scalar& value) {
  return f::addcdiv_out(out, self, a, b, value);
}

std::unique_ptr<Kernel> BindAddcdiv(const Call& call) {
  if (at::isIntegralType(at::result_type(call.View(1), call.View(2)), true)) {
    call.RejectCall("division of integer tensors is not defined");
  }
  return Addc(Addcdiv)(call);
}

void ExpectSameDtype(const Call& call, int i, int j) {
  if (call.View(i).scalar_type() != call.View(j).scalar_type()) {
    call.RejectArg(j, "has another dtype than " + std::string(call.Arg(i).name));
  }
}

// (self, end, weight tensor, out)
std::unique_ptr<Kernel> BindLerp(const Call& call) {
  ExpectSameDtype(call, 0, 1);
  ExpectSameDtype(call, 0, 2);
  const Operand self = call.In(0);
  return BindTernary(call, 3, {self, call.In(1), call.In(2)}, self.dtype(),
                     [](Tensor& out, const Tensor& x, const Tensor& end, const Tensor& weight) {
                       f::lerp_out(out, x, end, weight);
                     });
}

// (self, end, weight scalar, out)
auto LerpNumber(const Call& call) {
  ExpectSameDtype(call, 0, 1);
  return [weight = call.Number(2)](Tensor& out, const Tensor& self, const Tensor& end) {
    f::lerp_out(out, self, end, weight);
  };
}

std::unique_ptr<Kernel> BindWhere(const Call& call) {
  const Tensor condition = call.View(0);
  if (condition.scalar_type() != at::kBool && condition.scalar_type() != at::kByte) {
    call.RejectArg(0, "is neither bool nor uint8");
  }
  const Operand self = call.In(1), other = call.In(2);
  const bool convert = condition.scalar_type() != at::kBool;
  return BindTernary(call, 3, {Operand(condition, Widen::kNever), self, other},
                     at::result_type(self.view(), other.view()),
                     [convert](Tensor& out, const Tensor& test, const Tensor& x, const Tensor& y) {
                       f::where_out(out, convert ? test.to(at::kBool) : test, x, y);
                     });
}

// Clamps by host scalars; either bound may be absent, not both.
std::unique_ptr<Kernel> BindClamp(const Call& call, int out_index, c10::optional<at::Scalar> low,
                                  c10::optional<at::Scalar> high) {
  if (!low && !high) call.RejectCall("both bounds are NULL");
  const Operand self = call.In(0);
  at::ScalarType promoted = self.view().scalar_type();
  for (const auto& bound : {low, high}) {
    if (bound) promoted = at::promote_types(promoted, at::result_type(self.view(), *bound));
  }
  const Tensor out = call.Out(out_index);
  call.ExpectSizes(out_index, out, self.sizes());
  ExpectCast(call, out_index, out, call.Computed(promoted));
  Target target(out, call.Computed(promoted), Access::kElementwise, {&self.view()});
  return MakeKernel([=] {
    target.Write([&](Tensor& result) {
      if (!high) {
        f::clamp_min_out(result, self(), *low);
      } else if (!low) {
        f::clamp_max_out(result, self(), *high);
      } else {
        f::clamp_out(result, self(), low, high);
      }
    });
  });
}

std::unique_ptr<Kernel> BindClampTensor(const Call& call) {
  const Operand self = call.In(0), low = call.In(1), high = call.In(2);
  return BindTernary(call, 3, {self, low, high}, PromotedTensors(call, self, low, high),
                     [](Tensor& out, const Tensor& x, const Tensor& y, const Tensor& z) {
                       f::clamp_out(out, x, c10::optional<Tensor>(y), c10::optional<Tensor>(z));
                     });
}

// (x, scale, bias?, axis, numAxes, scaleFromBlob, y): x * scale + bias, where scale and bias have
// the dims of x from axis on: numAxes of them if scaleFromBlob is set, else as many as scale has.
std::unique_ptr<Kernel> BindScale(const Call& call) {
  const Operand x = call.In(0), scale = call.In(1), bias = call.OptionalIn(2);
  if (!at::isFloatingType(x.dtype())) call.RejectArg(0, "has no floating dtype");
  ExpectSameDtype(call, 0, 1);
  const int64_t rank = x.dim(), axis = call.Dim(3, rank), given = call.Int(4);
  const bool from_blob = call.Bool(5);
  if (given < -1) call.RejectArg(4, "is less than -1");
  const int64_t count = !from_blob ? scale.dim() : given == -1 ? rank - axis : given;
  if (axis + count > rank) call.RejectArg(4, "leads after the last dim of x");
  std::vector<int64_t> sizes = x.sizes().slice(axis, count).vec(), over(rank, 1);
  std::copy(sizes.begin(), sizes.end(), over.begin() + axis);
  if (from_blob && count == 0) sizes = {1};
  call.ExpectSizes(1, scale.view(), sizes);
  if (bias.defined()) {
    ExpectSameDtype(call, 0, 2);
    call.ExpectSizes(2, bias.view(), sizes);
  }
  const Tensor out = call.Out(6);
  call.ExpectSizes(6, out, x.sizes());
  if (out.scalar_type() != x.view().scalar_type()) call.RejectArg(6, "has another dtype than x");
  return MakeKernel([=] {
    const Tensor scaled = x() * scale().reshape(over);
    out.copy_(bias.defined() ? scaled + bias().reshape(over) : scaled);
  });
}

void ClampMin(Tensor& out, const Tensor& self, const Tensor& low) {
  f::clamp_min_out(out, self, low);
}

void ClampMax(Tensor& out, const Tensor& self, const Tensor& high) {
  f::clamp_max_out(out, self, high);
}

// (real, imag, out) or (input, angle, out): two floats make a complex number of twice their size.
template <typename Fn>
Binder ComplexOf(Fn fn) {
  return [=](const Call& call) {
    const Operand a = call.In(0), b = call.In(1);
    for (int i : {0, 1}) {
      const at::ScalarType dtype = call.View(i).scalar_type();
      if (dtype != at::kFloat && dtype != at::kDouble) {
        call.RejectArg(i, "is neither float32 nor float64");
      }
    }
    ExpectSameDtype(call, 0, 1);
    const at::ScalarType computed = at::toComplexType(a.dtype());
    const Tensor out = call.Out(2);
    call.ExpectSizes(2, out, call.Broadcast({a.sizes(), b.sizes()}));
    ExpectCast(call, 2, out, computed);
    Target target(out, computed, Access::kFree, {&a.view(), &b.view()});
    return MakeKernel([=] { target.Write([&](Tensor& result) { fn(result, a(), b()); }); });
  };
}

// (real, imag, out): two halves make a complex number of four bytes.
std::unique_ptr<Kernel> BindHalfComplex(const Call& call) {
  const Tensor real = call.View(0), imaginary = call.View(1), out = call.HalfPartsOut(2);
  for (int i : {0, 1}) {
    if (call.View(i).scalar_type() != at::kHalf) {
      call.RejectArg(i, "is not float16, but out is complex32");
    }
  }
  std::vector<int64_t> sizes = call.Broadcast({real.sizes(), imaginary.sizes()});
  sizes.push_back(2);
  call.ExpectSizes(2, out, sizes);
  return MakeKernel([=] {
    const Tensor copies[] = {real.clone(), imaginary.clone()};
    for (const int part : {0, 1}) out.select(-1, part).copy_(copies[part]);
  });
}

std::unique_ptr<Kernel> BindComplex(const Call& call) {
  if (call.IsHalfComplex(2)) return BindHalfComplex(call);
  return ComplexOf([](auto&&... args) { f::complex_out(args...); })(call);
}

}  // namespace

KernelRows PointwiseRows() {
  constexpr Widen kHalf = Widen::kHalf;
  const auto clamp_min = [](const Call& call) {
    return BindClamp(call, 2, call.Number(1), c10::nullopt);
  };
  const auto clamp_max = [](const Call& call) {
    return BindClamp(call, 2, c10::nullopt, call.Number(1));
  };
  return {
      {"aclnnAddcmul", kAlsoInPlace, Addc(f::addcmul_out), kHalf},
      {"aclnnAddcdiv", kAlsoInPlace, BindAddcdiv, kHalf},
      {"aclnnLerp", kAlsoInPlace, BindLerp, kHalf},
      {"aclnnLerps", kAlsoInPlace, BinaryWith(LerpNumber, 3), kHalf},
      {"aclnnSWhere", BindWhere},
      {"aclnnClamp",
       [](const Call& call) {
         return BindClamp(call, 3, call.OptionalNumber(1), call.OptionalNumber(2));
       },
       kHalf,
       {1, 2}},
      {"aclnnScale", BindScale, Widen::kHalfAndBfloat16},
      {"aclnnClampMin", clamp_min, kHalf},
      {"aclnnClampMax", kAlsoInPlace, clamp_max, kHalf},
      {"aclnnClampTensor", BindClampTensor, kHalf},
      {"aclnnComplex", BindComplex},
      {"aclnnPolar", ComplexOf([](auto&&... args) { f::polar_out(args...); })},
      {"aclnnClampMinTensor", kAlsoInPlace, Binary(ClampMin), kHalf},
      {"aclnnClampMaxTensor", kAlsoInPlace, Binary(ClampMax), kHalf},
  };
}

}  // namespace acltape::opapi
