// Operators of tensor lists: one elementwise operator per entry. The out list may be the input
// list; entries do not broadcast.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/kernels/elementwise.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

std::vector<Tensor> OutsLike(const Call& call, int i, const std::vector<Operand>& inputs) {
  std::vector<Tensor> outs = call.Outs(i);
  if (outs.size() != inputs.size()) {
    call.RejectArg(i, "has " + std::to_string(outs.size()) + " tensors, expected " +
                          std::to_string(inputs.size()));
  }
  for (size_t k = 0; k < outs.size(); ++k) call.ExpectSizes(i, outs[k], inputs[k].sizes());
  return outs;
}

std::vector<Operand> InsLike(const Call& call, int i, const std::vector<Operand>& first) {
  std::vector<Operand> operands = call.Ins(i);
  if (operands.size() != first.size()) {
    call.RejectArg(i, "has " + std::to_string(operands.size()) + " tensors, expected " +
                          std::to_string(first.size()));
  }
  for (size_t k = 0; k < operands.size(); ++k) {
    call.ExpectSizes(i, operands[k].view(), first[k].sizes());
    if (operands[k].view().scalar_type() != first[k].view().scalar_type()) {
      call.RejectArg(i, "holds tensors of other dtypes than the first list");
    }
  }
  return operands;
}

std::vector<Target> TargetsFor(const std::vector<Tensor>& outs,
                               const std::vector<Operand>& inputs) {
  std::vector<Target> targets;
  for (size_t k = 0; k < outs.size(); ++k) {
    targets.emplace_back(outs[k], inputs[k].dtype(), Access::kElementwise,
                         std::initializer_list<const Tensor*>{&inputs[k].view()});
  }
  return targets;
}

// (x, out): fn(out, x)
template <typename Fn>
Binder EachUnary(Fn fn) {
  return [=](const Call& call) {
    const std::vector<Operand> x = call.Ins(0);
    const std::vector<Target> targets = TargetsFor(OutsLike(call, 1, x), x);
    return MakeKernel([=] {
      for (size_t k = 0; k < x.size(); ++k) {
        targets[k].Write([&](Tensor& out) { fn(out, x[k]()); });
      }
    });
  };
}

// (x, scalar, out), the scalar on the host or, in the older forms, a tensor of one element
template <typename Fn>
Binder EachWithScalar(Fn fn) {
  return [=](const Call& call) {
    const std::vector<Operand> x = call.Ins(0);
    Tensor scalar = TensorOrNumber(call, 1).view();
    if (scalar.numel() != 1) call.RejectArg(1, "must have one element");
    scalar = scalar.dim() == 0 ? scalar : scalar.reshape({});
    const std::vector<Target> targets = TargetsFor(OutsLike(call, 2, x), x);
    return MakeKernel([=] {
      for (size_t k = 0; k < x.size(); ++k) {
        targets[k].Write([&](Tensor& out) { fn(out, x[k](), scalar); });
      }
    });
  };
}

// (x, scalars, out): one scalar per tensor
template <typename Fn>
Binder EachWithScalars(Fn fn) {
  return [=](const Call& call) {
    const std::vector<Operand> x = call.Ins(0);
    std::vector<Tensor> scalars;
    for (const at::Scalar& number : call.Numbers(1)) {
      scalars.push_back(at::native::wrapped_scalar_tensor(number));
    }
    if (scalars.size() != x.size()) call.RejectArg(1, "needs one scalar per tensor");
    const std::vector<Target> targets = TargetsFor(OutsLike(call, 2, x), x);
    return MakeKernel([=] {
      for (size_t k = 0; k < x.size(); ++k) {
        targets[k].Write([&](Tensor& out) { fn(out, x[k](), scalars[k]); });
      }
    });
  };
}

// (x1, x2, out)
template <typename Fn>
Binder EachPair(Fn fn) {
  return [=](const Call& call) {
    const std::vector<Operand> x = call.Ins(0), y = InsLike(call, 1, x);
    const std::vector<Target> targets = TargetsFor(OutsLike(call, 2, x), x);
    return MakeKernel([=] {
      for (size_t k = 0; k < x.size(); ++k) {
        targets[k].Write([&](Tensor& out) { fn(out, x[k](), y[k]()); });
      }
    });
  };
}

// (x1, x2, number, out): fn(out, x1, x2, number)
template <typename Fn>
Binder EachPairWithNumber(Fn fn) {
  return [=](const Call& call) {
    const std::vector<Operand> x = call.Ins(0), y = InsLike(call, 1, x);
    const at::Scalar number = call.Number(2);
    const std::vector<Target> targets = TargetsFor(OutsLike(call, 3, x), x);
    return MakeKernel([=] {
      for (size_t k = 0; k < x.size(); ++k) {
        targets[k].Write([&](Tensor& out) { fn(out, x[k](), y[k](), number); });
      }
    });
  };
}

// (x1, x2, x3, number, out): fn(out, x1, x2, x3, number)
template <typename Fn>
Binder EachTripleWithNumber(Fn fn) {
  return [=](const Call& call) {
    const std::vector<Operand> x = call.Ins(0), y = InsLike(call, 1, x), z = InsLike(call, 2, x);
    const at::Scalar number = call.Number(3);
    const std::vector<Target> targets = TargetsFor(OutsLike(call, 4, x), x);
    return MakeKernel([=] {
      for (size_t k = 0; k < x.size(); ++k) {
        targets[k].Write([&](Tensor& out) { fn(out, x[k](), y[k](), z[k](), number); });
      }
    });
  };
}

// (x, order, out): one norm per tensor, into outputs of one element
std::unique_ptr<Kernel> BindNorm(const Call& call) {
  const std::vector<Operand> x = call.Ins(0);
  const at::Scalar order = call.Number(1);
  const std::vector<Tensor> outs = call.Outs(2);
  if (outs.size() != x.size()) call.RejectArg(2, "needs one output per tensor");
  for (const Tensor& out : outs) {
    if (out.numel() != 1) call.RejectArg(2, "holds an output that has not one element");
  }
  return MakeKernel([=] {
    for (size_t k = 0; k < x.size(); ++k) {
      CopyResult(outs[k], at::linalg_vector_norm(x[k](), order));
    }
  });
}

// (x): sets all to 0
std::unique_ptr<Kernel> BindZero(const Call& call) {
  const std::vector<Tensor> tensors = call.Outs(0);
  return MakeKernel([=] {
    for (Tensor tensor : tensors) f::fill_(tensor, 0);
  });
}

void Add(Tensor& out, const Tensor& x, const Tensor& y) { f::add_out(out, x, y); }
void Sub(Tensor& out, const Tensor& x, const Tensor& y) { f::sub_out(out, x, y); }
void Mul(Tensor& out, const Tensor& x, const Tensor& y) { f::mul_out(out, x, y); }
void Div(Tensor& out, const Tensor& x, const Tensor& y) { f::div_out(out, x, y); }
void Copy(Tensor& out, const Tensor& x) { out.resize_(x.sizes()).copy_(x); }

void AddScaled(Tensor& out, const Tensor& x, const Tensor& y, const at::Scalar& alpha) {
  f::add_out(out, x, y, alpha);
}

void SubScaled(Tensor& out, const Tensor& x, const Tensor& y, const at::Scalar& alpha) {
  f::sub_out(out, x, y, alpha);
}

void LerpNumber(Tensor& out, const Tensor& x, const Tensor& y, const at::Scalar& weight) {
  f::lerp_out(out, x, y, weight);
}

// The exact paths of pow (2, 0.5, ...) need the exponent as a host number.
Binder EachPow() {
  return [](const Call& call) {
    const std::vector<Operand> x = call.Ins(0);
    const at::Scalar exponent = call.Number(1);
    const std::vector<Target> targets = TargetsFor(OutsLike(call, 2, x), x);
    return MakeKernel([=] {
      for (size_t k = 0; k < x.size(); ++k) {
        targets[k].Write([&](Tensor& out) { f::pow_out(out, x[k](), exponent); });
      }
    });
  };
}

}  // namespace

KernelRows ForeachRows() {
  constexpr Widen kHalf = Widen::kHalf;
  return {
      {"aclnnForeachAddScalar", EachWithScalar(Add)},
      {"aclnnForeachAddScalarV2", EachWithScalar(Add)},
      {"aclnnForeachAddScalarList", EachWithScalars(Add)},
      {"aclnnForeachAddListV2", EachPairWithNumber(AddScaled)},
      {"aclnnForeachSubScalarV2", EachWithScalar(Sub)},
      {"aclnnForeachSubListV2", EachPairWithNumber(SubScaled)},
      {"aclnnForeachMulScalar", EachWithScalar(Mul)},
      {"aclnnForeachMulScalarV2", EachWithScalar(Mul)},
      {"aclnnForeachMulScalarList", EachWithScalars(Mul)},
      {"aclnnForeachMulList", EachPair(Mul)},
      {"aclnnForeachDivScalarV2", EachWithScalar(Div)},
      {"aclnnForeachDivScalarList", EachWithScalars(Div)},
      {"aclnnForeachDivList", EachPair(Div)},
      {"aclnnForeachMaximumList", EachPair(f::maximum_out)},
      {"aclnnForeachMinimumScalarV2", EachWithScalar(f::minimum_out)},
      {"aclnnForeachAddcmulScalarV2", EachTripleWithNumber(f::addcmul_out), kHalf},
      {"aclnnForeachAddcdivScalarV2", EachTripleWithNumber(f::addcdiv_out), kHalf},
      {"aclnnForeachLerpScalar", EachPairWithNumber(LerpNumber), kHalf},
      {"aclnnForeachSqrt", EachUnary(f::sqrt_out), kHalf},
      {"aclnnForeachNeg", EachUnary(f::neg_out)},
      {"aclnnForeachAbs", EachUnary(f::abs_out)},
      {"aclnnForeachExp", EachUnary(f::exp_out), kHalf},
      {"aclnnForeachReciprocal", EachUnary(f::reciprocal_out)},
      {"aclnnForeachPowScalarV2", EachPow()},
      {"aclnnForeachNorm", BindNorm},
      {"aclnnForeachZeroInplace", BindZero},
      {"aclnnForeachCopy", EachUnary(Copy)},
  };
}

}  // namespace acltape::opapi
