// Elementwise arithmetic of two operands, tensors or scalars.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/kernels/elementwise.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;

at::ScalarType Promoted(const Call& call) {
  if (const auto shared = call.SharedDtype(0, 1)) return *shared;
  return at::result_type(TensorOrNumber(call, 0).view(), TensorOrNumber(call, 1).view());
}

// alpha must fit the promoted dtype: a bool one needs bools, a fractional one needs floats.
at::Scalar Alpha(const Call& call) {
  constexpr int kAlpha = 2;
  at::Scalar alpha = call.Number(kAlpha);
  if (alpha.isIntegral(/*includeBool=*/false)) return alpha;
  const at::ScalarType promoted = Promoted(call);
  if (alpha.isBoolean() && promoted != at::kBool) {
    call.RejectArg(kAlpha, "is a bool but the operands are not");
  }
  if (at::isIntegralType(promoted, /*includeBool=*/true) && !alpha.isIntegral(true)) {
    call.RejectArg(kAlpha, "must be an integer because the operands are");
  }
  return alpha;
}

// fn(out, self, other) = self + alpha * other
auto AddWithAlpha(const Call& call) {
  return [alpha = Alpha(call)](at::Tensor& out, const at::Tensor& self, const at::Tensor& other) {
    f::add_out(out, self, other, alpha);
  };
}

void RejectBools(const Call& call, const char* operation) {
  if (const auto shared = call.SharedDtype(0, 1); shared && *shared != at::kBool) return;
  for (int i : {0, 1}) {
    if (TensorOrNumber(call, i).view().scalar_type() == at::kBool) {
      call.RejectArg(i, std::string("is a bool, for which ") + operation + " is not defined");
    }
  }
}

// fn(out, self, other) = max(self + alpha * other, 0)
auto AddReluWith(const Call& call) {
  RejectBools(call, "the positive part");
  return [alpha = Alpha(call)](at::Tensor& out, const at::Tensor& self, const at::Tensor& other) {
    f::add_out(out, self, other, alpha);
    f::relu_(out);
  };
}

auto Gcd(const Call& call) {
  RejectBools(call, "a divisor");
  if (!at::isIntegralType(Promoted(call), /*includeBool=*/false)) {
    call.RejectArg(0, "and other must be of integer dtypes");
  }
  return [](at::Tensor& out, const at::Tensor& self, const at::Tensor& other) {
    f::gcd_out(out, self, other);
  };
}

auto SubWithAlpha(const Call& call) {
  RejectBools(call, "subtraction");
  return [alpha = Alpha(call)](at::Tensor& out, const at::Tensor& self, const at::Tensor& other) {
    f::sub_out(out, self, other, alpha);
  };
}

auto RsubWithAlpha(const Call& call) {
  RejectBools(call, "subtraction");
  return [alpha = Alpha(call)](at::Tensor& out, const at::Tensor& self, const at::Tensor& other) {
    f::sub_out(out, other, self, alpha);
  };
}

void Mul(at::Tensor& out, const at::Tensor& self, const at::Tensor& other) {
  f::mul_out(out, self, other);
}

void Div(at::Tensor& out, const at::Tensor& self, const at::Tensor& other) {
  f::div_out(out, self, other);
}

// fn(out, a, b) of integers, where the library refuses a divisor of 0. The result is that of many
// processors: a quotient with all bits set, and the dividend as the remainder.
enum class DivisionResult { kQuotient, kRemainder };

template <typename Fn>
auto AlsoByZero(DivisionResult kind, Fn fn) {
  return [=](at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
    if (!at::isIntegralType(out.scalar_type(), /*includeBool=*/true)) return fn(out, a, b);
    const at::Tensor zero = b.eq(0);
    if (!zero.any().item<bool>()) return fn(out, a, b);
    const at::Tensor dividend = a.clone();  // `out` may be `a`
    fn(out, a, b.masked_fill(zero, 1));
    if (kind == DivisionResult::kRemainder) {
      out.copy_(at::where(zero, dividend, out));
    } else if (out.scalar_type() == at::kByte) {
      out.masked_fill_(zero, 255);
    } else {
      out.masked_fill_(zero, -1);
    }
  };
}

// fn, but of two bools, which the library does not divide.
template <typename Fn>
auto NotOfBools(Fn fn) {
  return [=](const Call& call) {
    if (Promoted(call) == at::kBool) {
      call.RejectArg(0, "and other are bools, for which a division is not defined");
    }
    return fn;
  };
}

// A division with a rounding mode divides integers as integers.
std::unique_ptr<Kernel> BindDivMod(const Call& call) {
  static constexpr const char* kModes[] = {"", "trunc", "floor"};
  const int64_t mode = call.Int(2);
  if (mode < 0 || mode > 2) call.RejectArg(2, "must be 0 (none), 1 (trunc) or 2 (floor)");
  const Operand self = FirstInput(call), other = TensorOrNumber(call, 1);
  const at::Tensor out = OutputAfter(call, self, 3);
  if (mode == 0) return BindBinary(call, 3, out, self, other, Promote::kFloat, Div);
  const char* name = kModes[mode];
  const auto divide = [name](at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
    f::div_out(out, a, b, c10::string_view(name));
  };
  return BindBinary(call, 3, out, self, other, Promote::kUsual,
                    NotOfBools(AlsoByZero(DivisionResult::kQuotient, divide))(call));
}

void FloorDivide(at::Tensor& out, const at::Tensor& self, const at::Tensor& other) {
  f::div_out(out, self, other, c10::string_view("floor"));
}

void Remainder(at::Tensor& out, const at::Tensor& self, const at::Tensor& other) {
  f::remainder_out(out, self, other);
}

void Fmod(at::Tensor& out, const at::Tensor& self, const at::Tensor& other) {
  f::fmod_out(out, self, other);
}

void XLogY(at::Tensor& out, const at::Tensor& self, const at::Tensor& other) {
  f::xlogy_out(out, self, other);
}

auto RealXLogY(const Call& call) {
  if (at::isComplexType(Promoted(call))) {
    call.RejectCall("a product with a logarithm is not defined for complex numbers");
  }
  return XLogY;
}

void PowTensors(at::Tensor& out, const at::Tensor& self, const at::Tensor& exponent) {
  f::pow_out(out, self, exponent);
}

auto PowersOf(const Call& call) {
  if (Promoted(call) == at::kBool) {
    call.RejectArg(0, "and exponent are bools, for which a power is not defined");
  }
  return PowTensors;
}

// The scalar forms have exact paths of their own (2, 0.5, ...), so the scalar stays one.
std::unique_ptr<Kernel> BindPowTensorScalar(const Call& call) {
  const at::Scalar exponent = call.Number(1);
  const Operand self = call.In(0);
  if (at::isIntegralType(self.dtype(), true) && exponent.isIntegral(true) &&
      exponent.toLong() < 0) {
    call.RejectArg(1, "is a negative integer but self has an integer dtype");
  }
  const at::ScalarType computed = call.Computed(at::result_type(self.view(), exponent));
  const at::Tensor out = call.Out(2);
  call.ExpectSizes(2, out, self.sizes());
  ExpectCast(call, 2, out, computed);
  Target target(out, computed, Access::kElementwise, {&self.view()});
  return MakeKernel(
      [=] { target.Write([&](at::Tensor& result) { f::pow_out(result, self(), exponent); }); });
}

std::unique_ptr<Kernel> BindPowScalarTensor(const Call& call) {
  const at::Scalar self = call.Number(0);
  const Operand exponent = call.In(1);
  const at::Tensor out = call.Out(2);
  call.ExpectSizes(2, out, exponent.sizes());
  Target target(out, call.Computed(at::result_type(self, exponent.view())), Access::kElementwise,
                {&exponent.view()});
  return MakeKernel(
      [=] { target.Write([&](at::Tensor& result) { f::pow_out(result, self, exponent()); }); });
}

}  // namespace

KernelRows BinaryRows() {
  constexpr Promote kFloat = Promote::kFloat;
  const auto floor_divide = NotOfBools(AlsoByZero(DivisionResult::kQuotient, FloorDivide));
  const auto remainder = NotOfBools(AlsoByZero(DivisionResult::kRemainder, Remainder));
  const auto fmod = NotOfBools(AlsoByZero(DivisionResult::kRemainder, Fmod));
  return {
      {"aclnnAdd", kAlsoInPlace, BinaryWith(AddWithAlpha, 3)},
      {"aclnnAdds", kAlsoInPlace, BinaryWith(AddWithAlpha, 3)},
      {"aclnnAddV3", BinaryWith(AddWithAlpha, 3)},
      {"aclnnAddRelu", kAlsoInPlace, BinaryWith(AddReluWith, 3), Widen::kHalf},
      {"aclnnGcd", BinaryWith(Gcd, 2)},
      {"aclnnSub", kAlsoInPlace, BinaryWith(SubWithAlpha, 3)},
      {"aclnnSubs", kAlsoInPlace, BinaryWith(SubWithAlpha, 3)},
      {"aclnnRsub", BinaryWith(RsubWithAlpha, 3)},
      {"aclnnRsubs", BinaryWith(RsubWithAlpha, 3)},
      {"aclnnMul", kAlsoInPlace, Binary(Mul)},
      {"aclnnMuls", kAlsoInPlace, Binary(Mul)},
      {"aclnnDiv", kAlsoInPlace, Binary(Div, kFloat)},
      // A device divides integers in float32 and takes them back into integers.
      {"aclnnDivs", kAlsoInPlace, Binary(Div, Promote::kQuotient)},
      {"aclnnDivMod", kAlsoInPlace, BindDivMod},
      {"aclnnDivMods", kAlsoInPlace, BindDivMod},
      {"aclnnFloorDivide", kAlsoInPlace, BinaryWith(floor_divide, 2)},
      {"aclnnFloorDivides", kAlsoInPlace, BinaryWith(floor_divide, 2)},
      {"aclnnRemainderTensorTensor", kAlsoInPlace, BinaryWith(remainder, 2)},
      {"aclnnRemainderTensorScalar", kAlsoInPlace, BinaryWith(remainder, 2)},
      {"aclnnRemainderScalarTensor", BinaryWith(remainder, 2)},
      {"aclnnFmodTensor", kAlsoInPlace, BinaryWith(fmod, 2)},
      {"aclnnFmodScalar", kAlsoInPlace, BinaryWith(fmod, 2)},
      {"aclnnAtan2", kAlsoInPlace, Binary(f::atan2_out, kFloat), Widen::kHalf},
      {"aclnnLogAddExp", Binary(f::logaddexp_out), Widen::kHalf},
      {"aclnnLogAddExp2", Binary(f::logaddexp2_out), Widen::kHalf},
      {"aclnnXLogYTensor", kAlsoInPlace, BinaryWith(RealXLogY, 2, kFloat), Widen::kHalf},
      {"aclnnXLogYScalarOther", kAlsoInPlace, BinaryWith(RealXLogY, 2, kFloat), Widen::kHalf},
      {"aclnnXLogYScalarSelf", BinaryWith(RealXLogY, 2, kFloat), Widen::kHalf},
      {"aclnnMaximum", Binary(f::maximum_out)},
      {"aclnnMinimum", Binary(f::minimum_out)},
      {"aclnnPowTensorTensor", kAlsoInPlace, BinaryWith(PowersOf, 2)},
      {"aclnnPowTensorScalar", kAlsoInPlace, BindPowTensorScalar},
      {"aclnnPowScalarTensor", BindPowScalarTensor},
  };
}

}  // namespace acltape::opapi
