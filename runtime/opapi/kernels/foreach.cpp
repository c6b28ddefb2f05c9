// Operators of tensor lists: one elementwise operator per entry. The out list may be the input
// list; entries do not broadcast.
#include <ATen/CPUFunctions.h>

#include <array>

#include "runtime/opapi/kernels/elementwise.h"
#include "runtime/opapi/kernels/expect_dtypes.h"

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

// (x1, x2, number in a tensor, out): the older forms, whose number is read when the task runs
template <typename Fn>
Binder EachPairWithTensor(Fn fn) {
  return [=](const Call& call) {
    const std::vector<Operand> x = call.Ins(0), y = InsLike(call, 1, x);
    const Tensor number = call.View(2);
    if (number.numel() != 1) call.RejectArg(2, "must have one element");
    const std::vector<Target> targets = TargetsFor(OutsLike(call, 3, x), x);
    return MakeKernel([=] {
      const at::Scalar value = number.item();
      for (size_t k = 0; k < x.size(); ++k) {
        targets[k].Write([&](Tensor& out) { fn(out, x[k](), y[k](), value); });
      }
    });
  };
}

// (x1, x2, x3, numbers in a tensor, out): one number for all, or one for each entry
template <typename Fn>
Binder EachTripleWithTensor(Fn fn, bool each) {
  return [=](const Call& call) {
    const std::vector<Operand> x = call.Ins(0), y = InsLike(call, 1, x), z = InsLike(call, 2, x);
    const Tensor numbers = call.View(3);
    const int64_t wanted = each ? static_cast<int64_t>(x.size()) : 1;
    if (numbers.numel() != wanted) {
      call.RejectArg(3, "must have " + std::to_string(wanted) + " elements");
    }
    const std::vector<Target> targets = TargetsFor(OutsLike(call, 4, x), x);
    return MakeKernel([=] {
      const Tensor flat = numbers.reshape({-1});
      for (size_t k = 0; k < x.size(); ++k) {
        const at::Scalar value = flat[each ? static_cast<int64_t>(k) : 0].item();
        targets[k].Write([&](Tensor& out) { fn(out, x[k](), y[k](), z[k](), value); });
      }
    });
  };
}

// (x1, x2, weight list, out)
std::unique_ptr<Kernel> BindEachLerp(const Call& call) {
  const std::vector<Operand> x = call.Ins(0), y = InsLike(call, 1, x), weight = InsLike(call, 2, x);
  const std::vector<Target> targets = TargetsFor(OutsLike(call, 3, x), x);
  return MakeKernel([=] {
    for (size_t k = 0; k < x.size(); ++k) {
      targets[k].Write([&](Tensor& out) { f::lerp_out(out, x[k](), y[k](), weight[k]()); });
    }
  });
}

// (x, order, out): one norm per tensor, into outputs of one element
std::unique_ptr<Kernel> BindEachNorm(const Call& call) {
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
std::unique_ptr<Kernel> BindEachZero(const Call& call) {
  const std::vector<Tensor> tensors = call.Outs(0);
  return MakeKernel([=] {
    for (Tensor tensor : tensors) f::fill_(tensor, 0);
  });
}

void AddEach(Tensor& out, const Tensor& x, const Tensor& y) { f::add_out(out, x, y); }
void SubEach(Tensor& out, const Tensor& x, const Tensor& y) { f::sub_out(out, x, y); }
void MulEach(Tensor& out, const Tensor& x, const Tensor& y) { f::mul_out(out, x, y); }
void DivEach(Tensor& out, const Tensor& x, const Tensor& y) { f::div_out(out, x, y); }
void CopyEach(Tensor& out, const Tensor& x) { out.resize_(x.sizes()).copy_(x); }

void AddScaled(Tensor& out, const Tensor& x, const Tensor& y, const at::Scalar& alpha) {
  f::add_out(out, x, y, alpha);
}

void SubScaled(Tensor& out, const Tensor& x, const Tensor& y, const at::Scalar& alpha) {
  f::sub_out(out, x, y, alpha);
}

void LerpEach(Tensor& out, const Tensor& x, const Tensor& y, const at::Scalar& weight) {
  f::lerp_out(out, x, y, weight);
}

// To the nearest integer, halves away from zero.
Tensor RoundAway(const Tensor& x) {
  const Tensor whole = at::trunc(x);
  return at::where((x - whole).abs() >= 0.5, whole + at::sign(x), whole);
}

// To the odd neighbour; integers stay.
Tensor RoundToOdd(const Tensor& x) {
  return at::where(x == at::floor(x), x, 2 * at::floor(x / 2) + 1);
}

// The modes of the operator's documentation, and 7, which torch_npu passes for the fraction.
constexpr std::array<Tensor (*)(const Tensor&), 8> kRoundings = {
    nullptr, at::round, at::floor, at::ceil, RoundAway, at::trunc, RoundToOdd, at::frac,
};

bool IsRounding(int64_t mode) {
  return mode >= 1 && mode < static_cast<int64_t>(kRoundings.size());
}

// (x, mode, out): the mode on the host or in a tensor
std::unique_ptr<Kernel> BindEachRound(const Call& call) {
  const std::vector<Operand> x = call.Ins(0);
  for (const Operand& each : x) ExpectFloats(call, 0, each.view());
  const Tensor mode = TensorOrNumber(call, 1).view();
  if (mode.numel() != 1) call.RejectArg(1, "must have one element");
  if (call.Arg(1).kind == acl::ArgKind::kScalar && !IsRounding(call.Number(1).toLong())) {
    call.RejectArg(1,
                   "must be 1 (to the nearest, halves to even), 2 (floor), 3 (ceil), 4 (to the "
                   "nearest, halves away from zero), 5 (trunc), 6 (to odd) or 7 (frac)");
  }
  const std::vector<Target> targets = TargetsFor(OutsLike(call, 2, x), x);
  return MakeKernel([=] {
    const int64_t number = mode.item().toLong();
    TORCH_CHECK(IsRounding(number), "rounding mode ", number, " is unknown");
    for (size_t k = 0; k < x.size(); ++k) {
      targets[k].Write([&](Tensor& out) {
        const Tensor result = kRoundings[number](x[k]());
        out.resize_(result.sizes()).copy_(result);
      });
    }
  });
}

void PowEach(Tensor& out, const Tensor& x, const Tensor& y) { f::pow_out(out, x, y); }

// (number, x, out)
std::unique_ptr<Kernel> BindEachPowOfNumber(const Call& call) {
  const at::Scalar base = call.Number(0);
  const std::vector<Operand> x = call.Ins(1);
  const std::vector<Target> targets = TargetsFor(OutsLike(call, 2, x), x);
  return MakeKernel([=] {
    for (size_t k = 0; k < x.size(); ++k) {
      targets[k].Write([&](Tensor& out) { f::pow_out(out, base, x[k]()); });
    }
  });
}

// (x, exponents, out): one exponent per tensor
std::unique_ptr<Kernel> BindEachPowList(const Call& call) {
  const std::vector<Operand> x = call.Ins(0);
  const std::vector<at::Scalar> exponents = call.Numbers(1);
  if (exponents.size() != x.size()) call.RejectArg(1, "needs one scalar per tensor");
  const std::vector<Target> targets = TargetsFor(OutsLike(call, 2, x), x);
  return MakeKernel([=] {
    for (size_t k = 0; k < x.size(); ++k) {
      targets[k].Write([&](Tensor& out) { f::pow_out(out, x[k](), exponents[k]); });
    }
  });
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

// Powers of integers are computed in float32; their fractions are cut off.
std::unique_ptr<Kernel> BindEachExp(const Call& call) {
  const std::vector<Operand> x = call.Ins(0);
  const std::vector<Tensor> outs = OutsLike(call, 1, x);
  std::vector<Target> targets;
  for (size_t k = 0; k < x.size(); ++k) {
    const bool whole = at::isIntegralType(x[k].dtype(), /*includeBool=*/true);
    targets.emplace_back(outs[k], whole ? at::kFloat : x[k].dtype(), Access::kElementwise,
                         std::initializer_list<const Tensor*>{&x[k].view()});
  }
  return MakeKernel([=] {
    for (size_t k = 0; k < x.size(); ++k) {
      targets[k].Write([&](Tensor& out) { f::exp_out(out, x[k]()); });
    }
  });
}

}  // namespace

KernelRows ForeachRows() {
  constexpr Widen kHalf = Widen::kHalf, kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnForeachAddScalar", EachWithScalar(AddEach)},
      {"aclnnForeachAddScalarV2", EachWithScalar(AddEach)},
      {"aclnnForeachAddScalarList", EachWithScalars(AddEach)},
      {"aclnnForeachAddListV2", EachPairWithNumber(AddScaled), kBoth},
      {"aclnnForeachSubScalarV2", EachWithScalar(SubEach)},
      {"aclnnForeachSubListV2", EachPairWithNumber(SubScaled), kBoth},
      {"aclnnForeachMulScalar", EachWithScalar(MulEach)},
      {"aclnnForeachMulScalarV2", EachWithScalar(MulEach)},
      {"aclnnForeachMulScalarList", EachWithScalars(MulEach)},
      {"aclnnForeachMulList", EachPair(MulEach)},
      {"aclnnForeachDivScalarV2", EachWithScalar(DivEach)},
      {"aclnnForeachDivScalarList", EachWithScalars(DivEach)},
      {"aclnnForeachDivList", EachPair(DivEach)},
      {"aclnnForeachMaximumList", EachPair(f::maximum_out)},
      {"aclnnForeachMinimumScalarV2", EachWithScalar(f::minimum_out)},
      {"aclnnForeachAddcmulScalarV2", EachTripleWithNumber(f::addcmul_out), kHalf},
      {"aclnnForeachAddcdivScalarV2", EachTripleWithNumber(f::addcdiv_out), kHalf},
      {"aclnnForeachAddcmulScalar", EachTripleWithTensor(f::addcmul_out, false), kHalf},
      {"aclnnForeachAddcdivScalar", EachTripleWithTensor(f::addcdiv_out, false), kHalf},
      {"aclnnForeachAddcmulScalarList", EachTripleWithTensor(f::addcmul_out, true), kHalf},
      {"aclnnForeachAddcdivScalarList", EachTripleWithTensor(f::addcdiv_out, true), kHalf},
      {"aclnnForeachAddcmulList", EachTripleWithTensor(f::addcmul_out, true), kHalf},
      {"aclnnForeachAddcdivList", EachTripleWithTensor(f::addcdiv_out, true), kHalf},
      {"aclnnForeachAddList", EachPairWithTensor(AddScaled), kBoth},
      {"aclnnForeachSubList", EachPairWithTensor(SubScaled), kBoth},
      {"aclnnForeachSubScalar", EachWithScalar(SubEach)},
      {"aclnnForeachSubScalarList", EachWithScalars(SubEach)},
      {"aclnnForeachDivScalar", EachWithScalar(DivEach)},
      {"aclnnForeachMinimumList", EachPair(f::minimum_out)},
      {"aclnnForeachMinimumScalar", EachWithScalar(f::minimum_out)},
      {"aclnnForeachMinimumScalarList", EachWithScalars(f::minimum_out)},
      {"aclnnForeachMaximumScalar", EachWithScalar(f::maximum_out)},
      {"aclnnForeachMaximumScalarV2", EachWithScalar(f::maximum_out)},
      {"aclnnForeachMaximumScalarList", EachWithScalars(f::maximum_out)},
      {"aclnnForeachPowList", EachPair(PowEach)},
      {"aclnnForeachPowScalar", EachWithScalar(PowEach)},
      {"aclnnForeachPowScalarList", BindEachPowList},
      {"aclnnForeachPowScalarAndTensor", BindEachPowOfNumber},
      {"aclnnForeachLerpList", BindEachLerp, kHalf},
      {"aclnnForeachRoundOffNumber", BindEachRound, kHalf},
      {"aclnnForeachRoundOffNumberV2", BindEachRound, kHalf},
      {"aclnnForeachAcos", EachUnary(f::acos_out), kHalf},
      {"aclnnForeachAsin", EachUnary(f::asin_out), kHalf},
      {"aclnnForeachAtan", EachUnary(f::atan_out), kHalf},
      {"aclnnForeachCos", EachUnary(f::cos_out), kHalf},
      {"aclnnForeachCosh", EachUnary(f::cosh_out), kHalf},
      {"aclnnForeachErf", EachUnary(f::erf_out), kHalf},
      {"aclnnForeachErfc", EachUnary(f::erfc_out), kHalf},
      {"aclnnForeachExpm1", EachUnary(f::expm1_out), kHalf},
      {"aclnnForeachLog", EachUnary(f::log_out), kHalf},
      {"aclnnForeachLog10", EachUnary(f::log10_out), kHalf},
      {"aclnnForeachLog1p", EachUnary(f::log1p_out), kHalf},
      {"aclnnForeachLog2", EachUnary(f::log2_out), kHalf},
      {"aclnnForeachSigmoid", EachUnary(f::sigmoid_out), kHalf},
      {"aclnnForeachSign", EachUnary(f::sign_out)},
      {"aclnnForeachSin", EachUnary(f::sin_out), kHalf},
      {"aclnnForeachSinh", EachUnary(f::sinh_out), kHalf},
      {"aclnnForeachTan", EachUnary(f::tan_out), kHalf},
      {"aclnnForeachTanh", EachUnary(f::tanh_out), kHalf},
      {"aclnnForeachLerpScalar", EachPairWithNumber(LerpEach), kHalf},
      {"aclnnForeachSqrt", EachUnary(f::sqrt_out), kHalf},
      {"aclnnForeachNeg", EachUnary(f::neg_out)},
      {"aclnnForeachAbs", EachUnary(f::abs_out)},
      {"aclnnForeachExp", BindEachExp, kHalf},
      {"aclnnForeachReciprocal", EachUnary(f::reciprocal_out)},
      {"aclnnForeachPowScalarV2", EachPow()},
      {"aclnnForeachNorm", BindEachNorm},
      {"aclnnForeachZeroInplace", BindEachZero},
      {"aclnnForeachCopy", EachUnary(CopyEach)},
  };
}

}  // namespace acltape::opapi
