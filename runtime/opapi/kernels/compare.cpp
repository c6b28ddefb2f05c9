// Comparisons, logic and bits.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/kernels/elementwise.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

// The library's functions are overloaded; these pick the form of two tensors.
void Eq(Tensor& out, const Tensor& a, const Tensor& b) { f::eq_out(out, a, b); }
void Ne(Tensor& out, const Tensor& a, const Tensor& b) { f::ne_out(out, a, b); }
void Lt(Tensor& out, const Tensor& a, const Tensor& b) { f::lt_out(out, a, b); }
void Le(Tensor& out, const Tensor& a, const Tensor& b) { f::le_out(out, a, b); }
void Gt(Tensor& out, const Tensor& a, const Tensor& b) { f::gt_out(out, a, b); }
void Ge(Tensor& out, const Tensor& a, const Tensor& b) { f::ge_out(out, a, b); }
void BitAnd(Tensor& out, const Tensor& a, const Tensor& b) { f::bitwise_and_out(out, a, b); }
void BitOr(Tensor& out, const Tensor& a, const Tensor& b) { f::bitwise_or_out(out, a, b); }
void BitXor(Tensor& out, const Tensor& a, const Tensor& b) { f::bitwise_xor_out(out, a, b); }

void LeftShift(Tensor& out, const Tensor& a, const Tensor& b) {
  f::bitwise_left_shift_out(out, a, b);
}
void RightShift(Tensor& out, const Tensor& a, const Tensor& b) {
  f::bitwise_right_shift_out(out, a, b);
}

template <typename Fn>
auto Bits(Fn fn) {
  return [fn](const Call& call) {
    for (int i : {0, 1}) {
      const Operand operand = TensorOrNumber(call, i);
      if (!at::isIntegralType(operand.view().scalar_type(), /*includeBool=*/true)) {
        call.RejectArg(i, "is neither of an integer dtype nor bool");
      }
    }
    return fn;
  };
}

template <typename Fn>
auto Shift(Fn fn) {
  return [fn](const Call& call) {
    for (int i : {0, 1}) {
      const Operand operand = TensorOrNumber(call, i);
      if (!at::isIntegralType(operand.view().scalar_type(), /*includeBool=*/false)) {
        call.RejectArg(i, "is not of an integer dtype");
      }
    }
    return fn;
  };
}

// (self, other, out): one bool, false when the shapes differ.
std::unique_ptr<Kernel> BindEqual(const Call& call) {
  const Tensor self = call.View(0), other = call.View(1), out = call.Out(2);
  if (out.numel() != 1) call.RejectArg(2, "must have one element");
  const bool comparable =
      self.sizes() == other.sizes() && self.scalar_type() == other.scalar_type();
  return MakeKernel([=] { out.fill_(comparable && f::equal(self, other)); });
}

}  // namespace

KernelRows CompareRows() {
  constexpr Promote kBool = Promote::kBool;
  return {
      {"aclnnEqual", BindEqual},
      {"aclnnEqTensor", kAlsoInPlace, Binary(Eq, kBool)},
      {"aclnnNeTensor", kAlsoInPlace, Binary(Ne, kBool)},
      {"aclnnLtTensor", kAlsoInPlace, Binary(Lt, kBool)},
      {"aclnnLeTensor", kAlsoInPlace, Binary(Le, kBool)},
      {"aclnnGtTensor", kAlsoInPlace, Binary(Gt, kBool)},
      {"aclnnGeTensor", kAlsoInPlace, Binary(Ge, kBool)},
      {"aclnnEqScalar", kAlsoInPlace, Binary(Eq, kBool)},
      {"aclnnNeScalar", kAlsoInPlace, Binary(Ne, kBool)},
      {"aclnnLtScalar", kAlsoInPlace, Binary(Lt, kBool)},
      {"aclnnLeScalar", kAlsoInPlace, Binary(Le, kBool)},
      {"aclnnGtScalar", kAlsoInPlace, Binary(Gt, kBool)},
      {"aclnnGeScalar", kAlsoInPlace, Binary(Ge, kBool)},
      {"aclnnLogicalAnd", kAlsoInPlace, Binary(f::logical_and_out, kBool)},
      {"aclnnLogicalOr", kAlsoInPlace, Binary(f::logical_or_out, kBool)},
      {"aclnnLogicalXor", Binary(f::logical_xor_out, kBool)},
      {"aclnnBitwiseAndTensor", kAlsoInPlace, BinaryWith(Bits(BitAnd), 2)},
      {"aclnnBitwiseOrTensor", kAlsoInPlace, BinaryWith(Bits(BitOr), 2)},
      {"aclnnBitwiseXorTensor", kAlsoInPlace, BinaryWith(Bits(BitXor), 2)},
      {"aclnnBitwiseAndScalar", kAlsoInPlace, BinaryWith(Bits(BitAnd), 2)},
      {"aclnnBitwiseOrScalar", kAlsoInPlace, BinaryWith(Bits(BitOr), 2)},
      {"aclnnBitwiseXorScalar", kAlsoInPlace, BinaryWith(Bits(BitXor), 2)},
      {"aclnnLeftShift", BinaryWith(Shift(LeftShift), 2)},
      {"aclnnLeftShifts", BinaryWith(Shift(LeftShift), 2)},
      {"aclnnRightShift", BinaryWith(Shift(RightShift), 2)},
  };
}

}  // namespace acltape::opapi
