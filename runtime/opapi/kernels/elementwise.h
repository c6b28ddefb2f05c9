// Makers of binders for operators that work element by element, and for their in-place forms.
// `fn(out, a, ...)` is the library's operator in its out form; it may resize `out` when that is
// empty.
#pragma once

#include <ATen/ScalarOps.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"

namespace acltape::opapi {

// The dtype an operator computes in, given the promoted dtype of its inputs.
enum class Promote : uint8_t {
  kUsual,
  kFloat,       // integers and bools become the default float dtype
  kQuotient,    // as kFloat, but the result of integers is cut off for an output of integers
  kFloatsOnly,  // as usual, of floating and complex inputs; others are refused
  kBool,        // the result is a truth value
};

inline at::ScalarType ComputedDtype(const Call& call, at::ScalarType promoted, Promote promote) {
  if (promote == Promote::kBool) return at::kBool;
  if (promote == Promote::kFloatsOnly && at::isIntegralType(promoted, /*includeBool=*/true)) {
    call.RejectArg(
        0, std::string("has dtype ") + at::toString(promoted) + ", expected a floating dtype");
  }
  const bool floats = promote == Promote::kFloat || promote == Promote::kQuotient;
  if (floats && at::isIntegralType(promoted, /*includeBool=*/true)) return at::kFloat;
  return call.Computed(promoted);
}

// A result reaches an output of another dtype only within the output's kind or a wider one: bool,
// integer, float, complex.
inline void ExpectCast(const Call& call, int out_index, const at::Tensor& out,
                       at::ScalarType computed) {
  if (at::canCast(computed, out.scalar_type())) return;
  call.RejectArg(out_index, std::string("has dtype ") + at::toString(out.scalar_type()) +
                                ", which cannot hold a result of dtype " + at::toString(computed));
}

// fn(out, ...) of the library's operators that write dense tensors only, for outputs of any
// strides.
template <typename Fn>
auto IntoDense(Fn fn) {
  return [fn](at::Tensor& out, const auto&... arguments) {
    if (out.is_contiguous()) {
      fn(out, arguments...);
      return;
    }
    at::Tensor dense = at::empty({0}, out.options());
    fn(dense, arguments...);
    out.copy_(dense);
  };
}

// An input that is a tensor or a scalar, as the operator table says; scalars become wrapped
// numbers, which promote across kinds (bool, integer, float, complex) only.
inline Operand TensorOrNumber(const Call& call, int i) {
  if (call.Arg(i).kind == acl::ArgKind::kScalar) {
    return Operand(at::native::wrapped_scalar_tensor(call.Number(i)), Widen::kNever);
  }
  return call.In(i);
}

// The first input. In an in-place form it is the output, too, and checked as one.
inline Operand FirstInput(const Call& call) {
  return call.in_place() ? Operand(call.Out(0), call.widen()) : TensorOrNumber(call, 0);
}

// The output, where FirstInput has given `first`.
inline at::Tensor OutputAfter(const Call& call, const Operand& first, int out_index) {
  return call.in_place() ? first.view() : call.Out(out_index);
}

// Binds an elementwise fn(out, a).
template <typename Fn>
std::unique_ptr<Kernel> BindUnary(const Call& call, int out_index, at::Tensor out, Operand a,
                                  Promote promote, Fn fn) {
  call.ExpectSizes(out_index, out, a.sizes());
  const at::ScalarType computed = ComputedDtype(call, a.view().scalar_type(), promote);
  ExpectCast(call, out_index, out, computed);
  Target target(std::move(out), computed, Access::kElementwise, {&a.view()});
  return MakeKernel([target = std::move(target), a = std::move(a), fn = std::move(fn)] {
    target.Write([&](at::Tensor& result) {
      at::Tensor scratch;
      fn(result, a.Read(scratch));
    });
  });
}

// (self, ..., out): `fn(out, self)`. `make_fn(call)` may read further arguments.
template <typename MakeFn>
Binder UnaryWith(MakeFn make_fn, int out_index, Promote promote = Promote::kUsual) {
  return [=](const Call& call) {
    auto fn = make_fn(call);
    const Operand self = FirstInput(call);
    return BindUnary(call, out_index, OutputAfter(call, self, out_index), self, promote,
                     std::move(fn));
  };
}

// (self, out)
template <typename Fn>
Binder Unary(Fn fn, Promote promote = Promote::kUsual) {
  return UnaryWith([fn](const Call&) { return fn; }, 1, promote);
}

// at::result_type. Of two tensors of one dtype it is that dtype, unless they stand for numbers.
inline at::ScalarType PromotedDtype(const at::Tensor& a, const at::Tensor& b) {
  const auto number = [](const at::Tensor& t) {
    return t.unsafeGetTensorImpl()->is_wrapped_number();
  };
  const bool same = a.scalar_type() == b.scalar_type() && !number(a) && !number(b);
  return same ? a.scalar_type() : at::result_type(a, b);
}

// Binds an elementwise fn(out, a, b); an in-place operand is not broadcast.
template <typename Fn>
std::unique_ptr<Kernel> BindBinary(const Call& call, int out_index, at::Tensor out, Operand a,
                                   Operand b, Promote promote, Fn fn) {
  call.ExpectSizes(out_index, out, call.Broadcast({a.sizes(), b.sizes()}));
  const at::ScalarType computed = ComputedDtype(call, PromotedDtype(a.view(), b.view()), promote);
  const auto integers = [](const at::Tensor& tensor) {
    return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
  };
  const bool cut_off = promote == Promote::kQuotient && integers(a.view()) && integers(out);
  if (!cut_off) ExpectCast(call, out_index, out, computed);
  Target target(std::move(out), computed, Access::kElementwise, {&a.view(), &b.view()});
  return MakeKernel(
      [target = std::move(target), a = std::move(a), b = std::move(b), fn = std::move(fn)] {
        target.Write([&](at::Tensor& result) {
          at::Tensor scratch_a, scratch_b;
          fn(result, a.Read(scratch_a), b.Read(scratch_b));
        });
      });
}

// (self, other, ..., out), either of the first two a tensor or a scalar.
template <typename MakeFn>
Binder BinaryWith(MakeFn make_fn, int out_index, Promote promote = Promote::kUsual) {
  return [=](const Call& call) {
    auto fn = make_fn(call);
    const Operand self = FirstInput(call);
    return BindBinary(call, out_index, OutputAfter(call, self, out_index), self,
                      TensorOrNumber(call, 1), promote, std::move(fn));
  };
}

// (self, other, out)
template <typename Fn>
Binder Binary(Fn fn, Promote promote = Promote::kUsual) {
  return BinaryWith([fn](const Call&) { return fn; }, 2, promote);
}

}  // namespace acltape::opapi
