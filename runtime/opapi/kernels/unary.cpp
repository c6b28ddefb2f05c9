// Elementwise operators of one tensor.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/kernels/elementwise.h"

namespace acltape::opapi {
namespace {

// (self, out): self is complex, and fn(self) has the real dtype of its parts.
template <typename Fn>
std::unique_ptr<Kernel> OfComplex(const Call& call, Fn fn) {
  const Operand self = call.In(0);
  const at::Tensor out = call.Out(1);
  call.ExpectSizes(1, out, self.sizes());
  ExpectCast(call, 1, out, c10::toRealValueType(self.dtype()));
  return MakeKernel([=] { out.copy_(fn(self())); });
}

// (self, out): the magnitudes of complex numbers are real.
std::unique_ptr<Kernel> Abs(const Call& call) {
  const Operand self = call.In(0);
  if (self.dtype() == at::kBool) {
    return Unary(
        [](at::Tensor& result, const at::Tensor& x) { result.resize_(x.sizes()).copy_(x); })(call);
  }
  if (!at::isComplexType(self.dtype())) return Unary(at::cpu::abs_out)(call);
  return OfComplex(call, [](const at::Tensor& x) { return at::abs(x); });
}

// (self, out): self is complex, of two halves.
std::unique_ptr<Kernel> RealHalves(const Call& call) {
  const at::Tensor parts = call.HalfParts(0), out = call.Out(1);
  call.ExpectSizes(1, out, parts.sizes().slice(0, static_cast<size_t>(parts.dim()) - 1));
  ExpectCast(call, 1, out, at::kHalf);
  return MakeKernel([=] { out.copy_(parts.select(-1, 0).clone()); });
}

// (self, out): the angles of complex numbers, and their real parts, are real.
std::unique_ptr<Kernel> RealPart(const Call& call) {
  if (call.IsHalfComplex(0)) return RealHalves(call);
  const Operand self = call.In(0);
  if (!at::isComplexType(self.dtype())) {
    return Unary(
        [](at::Tensor& result, const at::Tensor& x) { result.resize_(x.sizes()).copy_(x); })(call);
  }
  return OfComplex(call, [](const at::Tensor& x) { return at::real(x); });
}

std::unique_ptr<Kernel> Angle(const Call& call) {
  const Operand self = call.In(0);
  if (!at::isComplexType(self.dtype())) {
    return Unary([](at::Tensor& result, const at::Tensor& x) { at::angle_out(result, x); },
                 Promote::kFloat)(call);
  }
  return OfComplex(call, [](const at::Tensor& x) { return at::angle(x); });
}

// Integers have no decimals. A negative number of them rounds to tens, hundreds, ..., half to even.
void RoundIntegers(at::Tensor& out, const at::Tensor& self, int64_t decimals) {
  if (decimals >= 0) {
    out.resize_(self.sizes()).copy_(self);
    return;
  }
  const at::Tensor rounded = at::round(self.to(at::kDouble), decimals);
  out.resize_(self.sizes()).copy_(rounded);
}

}  // namespace

KernelRows UnaryRows() {
  constexpr Widen kHalf = Widen::kHalf;
  constexpr Promote kFloat = Promote::kFloat, kBool = Promote::kBool;
  namespace f = at::cpu;
  const auto frac = [](at::Tensor& out, const at::Tensor& self) { at::frac_out(out, self); };
  const auto round = [](at::Tensor& out, const at::Tensor& self) { f::round_out(out, self); };
  const auto sign = [](at::Tensor& out, const at::Tensor& self) {
    self.is_complex() ? f::sgn_out(out, self) : f::sign_out(out, self);
  };
  const auto one_if = [](auto test) {
    return [test](at::Tensor& out, const at::Tensor& self) {
      out.resize_(self.sizes()).copy_(test(self));
    };
  };
  const auto isfinite = one_if([](const at::Tensor& self) { return at::isfinite(self); });
  const auto isinf = one_if([](const at::Tensor& self) { return at::isinf(self); });
  const auto round_decimals = [](const Call& call) {
    if (call.View(0).scalar_type() == at::kBool) call.RejectArg(0, "is of dtype Bool");
    return [decimals = call.Int(1)](at::Tensor& out, const at::Tensor& self) {
      if (at::isIntegralType(self.scalar_type(), /*includeBool=*/false)) {
        RoundIntegers(out, self, decimals);
      } else {
        f::round_out(out, self, decimals);
      }
    };
  };
  const auto bitwise_not = [](const Call& call) {
    if (!at::isIntegralType(call.View(0).scalar_type(), /*includeBool=*/true)) {
      call.RejectArg(0, "is neither of an integer dtype nor bool");
    }
    return [](at::Tensor& out, const at::Tensor& self) { f::bitwise_not_out(out, self); };
  };
  const auto nan_to_num = [](const Call& call) {
    return [nan = call.Real(1), posinf = call.Real(2), neginf = call.Real(3)](
               at::Tensor& out, const at::Tensor& self) {
      at::nan_to_num_out(out, self, nan, posinf, neginf);
    };
  };
  return {
      {"aclnnAbs", Abs},
      {"aclnnAngleV2", Angle, Widen::kHalfAndBfloat16},
      {"aclnnReal", RealPart},
      {"aclnnAcos", kAlsoInPlace, Unary(f::acos_out, kFloat), kHalf},
      {"aclnnAcosh", kAlsoInPlace, Unary(f::acosh_out, kFloat), kHalf},
      {"aclnnIsNegInf", Unary(f::isneginf_out, kBool)},
      {"aclnnIsPosInf", Unary(f::isposinf_out, kBool)},
      {"aclnnSinc", kAlsoInPlace, Unary(f::sinc_out, kFloat), Widen::kHalfAndBfloat16},
      {"aclnnAsin", kAlsoInPlace, Unary(f::asin_out, kFloat), kHalf},
      {"aclnnAsinh", kAlsoInPlace, Unary(f::asinh_out, kFloat), kHalf},
      {"aclnnAtan", kAlsoInPlace, Unary(f::atan_out, kFloat), kHalf},
      {"aclnnAtanh", kAlsoInPlace, Unary(f::atanh_out, kFloat), kHalf},
      {"aclnnBitwiseNot", UnaryWith(bitwise_not, 1)},
      {"aclnnCeil", kAlsoInPlace, Unary(f::ceil_out), kHalf},
      {"aclnnCos", kAlsoInPlace, Unary(f::cos_out, kFloat), kHalf},
      {"aclnnCosh", kAlsoInPlace, Unary(f::cosh_out, kFloat), kHalf},
      {"aclnnDigamma", Unary(f::digamma_out, kFloat), kHalf},
      {"aclnnErf", kAlsoInPlace, Unary(f::erf_out, kFloat), kHalf},
      {"aclnnErfc", kAlsoInPlace, Unary(f::erfc_out, kFloat), kHalf},
      {"aclnnErfinv", kAlsoInPlace, Unary(f::erfinv_out, kFloat), kHalf},
      {"aclnnExp", kAlsoInPlace, Unary(f::exp_out, kFloat), kHalf},
      {"aclnnExp2", kAlsoInPlace, Unary(f::exp2_out, kFloat)},
      {"aclnnExpm1", kAlsoInPlace, Unary(f::expm1_out, kFloat), kHalf},
      {"aclnnFloor", kAlsoInPlace, Unary(f::floor_out), kHalf},
      {"aclnnFrac", kAlsoInPlace, Unary(frac)},
      {"aclnnIsFinite", Unary(isfinite, kBool)},
      {"aclnnIsInf", Unary(isinf, kBool)},
      {"aclnnLgamma", Unary(f::lgamma_out, kFloat), kHalf},
      {"aclnnLog", kAlsoInPlace, Unary(f::log_out, kFloat), kHalf},
      {"aclnnLog10", kAlsoInPlace, Unary(f::log10_out, kFloat), kHalf},
      {"aclnnLog1p", kAlsoInPlace, Unary(f::log1p_out, kFloat), kHalf},
      {"aclnnLog2", kAlsoInPlace, Unary(f::log2_out, kFloat), kHalf},
      {"aclnnLogicalNot", kAlsoInPlace, Unary(f::logical_not_out, kBool)},
      {"aclnnNanToNum", kAlsoInPlace, UnaryWith(nan_to_num, 4)},
      {"aclnnNeg", kAlsoInPlace, Unary(f::neg_out)},
      {"aclnnReciprocal", kAlsoInPlace, Unary(f::reciprocal_out, kFloat)},
      {"aclnnRound", kAlsoInPlace, Unary(round), kHalf},
      {"aclnnRoundDecimals", kAlsoInPlace, UnaryWith(round_decimals, 2), kHalf},
      {"aclnnRsqrt", kAlsoInPlace, Unary(f::rsqrt_out, kFloat), kHalf},
      {"aclnnSigmoid", kAlsoInPlace, Unary(f::sigmoid_out, kFloat), kHalf},
      {"aclnnSign", Unary(sign)},
      {"aclnnSignbit", Unary(f::signbit_out, kBool)},
      {"aclnnSin", kAlsoInPlace, Unary(f::sin_out, kFloat), kHalf},
      {"aclnnSinh", kAlsoInPlace, Unary(f::sinh_out, kFloat), kHalf},
      {"aclnnSqrt", kAlsoInPlace, Unary(f::sqrt_out, kFloat), kHalf},
      {"aclnnTan", kAlsoInPlace, Unary(f::tan_out, kFloat), kHalf},
      {"aclnnTanh", kAlsoInPlace, Unary(f::tanh_out, kFloat), kHalf},
      {"aclnnTrunc", kAlsoInPlace, Unary(f::trunc_out), kHalf},

  };
}

}  // namespace acltape::opapi
