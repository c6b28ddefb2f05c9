// Gated activations whose result is quantised: the tokens of a mixture's experts come in groups of
// rows, each with factors of its own. Rows after the last group become zeros.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The groups of the rows: where each ends, or how many rows it has.
struct RowGroups {
  Tensor list;  // undefined: all rows are one group
  bool counts = false;

  int64_t size() const { return list.defined() ? list.size(0) : 1; }

  // The group of each row. A row after the last group has size().
  Tensor Of(int64_t rows) const {
    const Tensor row = at::arange(rows, at::TensorOptions(at::kLong));
    if (!list.defined()) return at::zeros_like(row);
    const Tensor each = list.to(at::kLong);
    const Tensor ends = counts ? each.cumsum(0) : each;
    return row.unsqueeze(1).ge(ends.unsqueeze(0)).sum(1);
  }
};

RowGroups ReadGroups(const Call& call, int i, bool counts) {
  RowGroups groups;
  if (call.IsAbsent(i)) return groups;
  groups.list = call.View(i);
  groups.counts = counts;
  call.ExpectIndex(i, groups.list);
  call.ExpectRank(i, groups.list, 1);
  return groups;
}

// Factors of each group: a row of `width`, or one element. A vector is a row where there is one
// group, else it has an element for each.
struct GroupFactors {
  Tensor values;  // [groups, width] or [groups, 1]; undefined: none

  bool defined() const { return values.defined(); }

  // The factors of each row, given the group of each.
  Tensor Of(const Tensor& group) const {
    return values.to(at::kFloat).index_select(0, group.clamp_max(values.size(0) - 1));
  }
};

GroupFactors ReadFactors(const Call& call, int i, const RowGroups& groups, int64_t width) {
  if (call.IsAbsent(i)) return {};
  const Tensor view = call.View(i);
  if (view.scalar_type() != at::kInt) ExpectFloats(call, i, view);
  const int64_t count = groups.size();
  if (view.numel() == count && view.dim() <= 2 && (view.dim() < 2 || view.size(-1) == 1)) {
    return {view.dim() == 2   ? view
            : view.dim() == 0 ? view.unsqueeze(0).unsqueeze(0)
                              : view.unsqueeze(1)};
  }
  if (view.dim() == 1 && count == 1 && view.size(0) == width) return {view.unsqueeze(0)};
  call.ExpectSizes(i, view, {count, width});
  return {view};
}

// The variant of the activation whose operands are limited and take turns: gate, other, gate, ...
struct LimitedGate {
  bool used = false;
  double limit = 0, alpha = 0, bias = 0;
};

// The arguments that both operators have: x [..., 2 * width], quantised rows [..., width], a scale
// for each row.
struct GatedRows {
  Tensor x, y, scale;
  int64_t rows = 0, width = 0;
  RowGroups groups;
  bool activate_left = false, dynamic = false;
  LimitedGate limited;

  // The activation of rows of [rows, 2 * width].
  Tensor Activate(const Tensor& wide) const {
    if (limited.used) {
      const Tensor gate = wide.slice(1, 0, 2 * width, 2).clamp_max(limited.limit);
      const Tensor other = wide.slice(1, 1, 2 * width, 2).clamp(-limited.limit, limited.limit);
      return gate * at::sigmoid(gate * limited.alpha) * (other + limited.bias);
    }
    const Tensor left = wide.narrow(1, 0, width), right = wide.narrow(1, width, width);
    return activate_left ? at::silu(left) * right : left * at::silu(right);
  }

  void Write(const Tensor& values, const Tensor& scales, const Tensor& group) const {
    const Tensor outside = group.ge(groups.size());
    y.copy_(values.round().clamp(-128, 127).masked_fill(outside.unsqueeze(1), 0).view(y.sizes()));
    scale.copy_(scales.masked_fill(outside, 0).view(scale.sizes()));
  }
};

// (x, ..., groupIndex? at `groups`, activateLeft, quantMode, ..., y at `out`, scale)
GatedRows ReadGatedRows(const Call& call, int groups, bool counts, int out) {
  GatedRows gated;
  gated.x = call.View(0);
  if (gated.x.dim() < 2 || gated.x.size(-1) % 2 != 0) {
    call.RejectArg(0, "must have 2 dims or more and an even last one");
  }
  gated.width = gated.x.size(-1) / 2;
  std::vector<int64_t> sizes = gated.x.sizes().vec();
  sizes.back() = gated.width;
  gated.y = call.Out(out);
  call.ExpectSizes(out, gated.y, sizes);
  ExpectInt8(call, out, gated.y);
  sizes.pop_back();
  gated.scale = call.Out(out + 1);
  call.ExpectSizes(out + 1, gated.scale, sizes);
  gated.rows = gated.scale.numel();
  gated.groups = ReadGroups(call, groups, counts);
  gated.activate_left = call.Bool(groups + 1);
  const std::string mode = call.Text(groups + 2);
  if (mode != "static" && mode != "dynamic") {
    call.RejectArg(groups + 2, "must be \"static\" or \"dynamic\"");
  }
  gated.dynamic = mode == "dynamic";
  return gated;
}

constexpr int64_t kInt8 = 2;  // the code of the dtype in a call's attributes

// (dstType, roundMode, activateDim, swigluMode, clampLimit, gluAlpha, gluBias) from position
// `first`
LimitedGate ReadLimitedGate(const Call& call, int first) {
  if (call.Int(first) != kInt8) call.RejectArg(first, "must be 2 (int8)");
  const std::string rounding = call.Text(first + 1);
  if (!rounding.empty() && rounding != "rint") call.RejectArg(first + 1, "must be \"rint\"");
  if (call.Dim(first + 2, call.View(0).dim()) != call.View(0).dim() - 1) {
    call.RejectArg(first + 2, "must be the last dim");
  }
  if (call.Int(first + 3) != 0 && call.Int(first + 3) != 1) {
    call.RejectArg(first + 3, "must be 0 or 1 (limited)");
  }
  return {call.Int(first + 3) == 1, call.Real(first + 4), call.Real(first + 5),
          call.Real(first + 6)};
}

// (x, weightScale?, activationScale?, bias?, quantScale?, quantOffset?, groupIndex?, activateLeft,
// quantMode, [attributes of the limited gate,] y, scale). A bias of integers is added before the
// scales, one of floats after them. Static: divided by quantScale, plus quantOffset; dynamic:
// times quantScale, then scaled by rows.
std::unique_ptr<Kernel> BindDequantSwigluQuant(const Call& call, bool may_limit) {
  GatedRows gated = ReadGatedRows(call, 6, /*counts=*/true, may_limit ? 16 : 9);
  if (may_limit) gated.limited = ReadLimitedGate(call, 9);
  const bool whole = gated.x.scalar_type() == at::kInt;
  if (!whole) ExpectFloats(call, 0, gated.x);
  if (whole && call.IsAbsent(1)) call.RejectArg(1, "is absent although x holds integers");
  const GroupFactors weight = ReadFactors(call, 1, gated.groups, 2 * gated.width);
  const GroupFactors bias = ReadFactors(call, 3, gated.groups, 2 * gated.width);
  const GroupFactors factor = ReadFactors(call, 4, gated.groups, gated.width);
  const GroupFactors offset = ReadFactors(call, 5, gated.groups, gated.width);
  Tensor activation;
  if (!call.IsAbsent(2)) {
    activation = call.View(2);
    ExpectFloats(call, 2, activation);
    if (activation.numel() != gated.rows) call.RejectArg(2, "has not one element for each row");
  }
  const bool whole_bias = bias.defined() && bias.values.scalar_type() == at::kInt;
  if (whole_bias && !whole) call.RejectArg(3, "holds integers although x does not");
  return MakeKernel([=] {
    const Tensor group = gated.groups.Of(gated.rows);
    Tensor wide = gated.x.reshape({gated.rows, 2 * gated.width});
    if (whole_bias) {
      wide = wide + bias.values.index_select(0, group.clamp_max(bias.values.size(0) - 1));
    }
    wide = wide.to(at::kFloat);
    if (weight.defined()) wide = wide * weight.Of(group);
    if (activation.defined()) wide = wide * activation.to(at::kFloat).reshape({gated.rows, 1});
    if (bias.defined() && !whole_bias) wide = wide + bias.Of(group);
    Tensor result = gated.Activate(wide);
    if (gated.dynamic) {
      const ScaledRows scaled = ScaleRows(factor.defined() ? result * factor.Of(group) : result);
      return gated.Write(scaled.values, scaled.scale, group);
    }
    if (factor.defined()) result = result / factor.Of(group);
    if (offset.defined()) result = result + offset.Of(group);
    gated.Write(result, at::zeros({gated.rows}), group);
  });
}

// (x, smoothScales?, offsets?, groupIndex?, activateLeft, quantMode, [groupListType, dstType,] y,
// scale). Static: times smoothScales, plus offsets; dynamic: times smoothScales, then scaled by
// rows. The scale is what the rows were multiplied with, one over that of other operators.
std::unique_ptr<Kernel> BindSwiGluQuant(const Call& call, bool counted) {
  bool counts = false;
  if (counted) {
    if (call.Int(6) != 0 && call.Int(6) != 1) {
      call.RejectArg(6, "must be 0 (ends of groups) or 1 (their lengths)");
    }
    if (call.Int(7) != kInt8) call.RejectArg(7, "must be 2 (int8)");
    counts = call.Int(6) == 1;
  }
  const GatedRows gated = ReadGatedRows(call, 3, counts, counted ? 8 : 6);
  ExpectFloats(call, 0, gated.x);
  const GroupFactors smooth = ReadFactors(call, 1, gated.groups, gated.width);
  const GroupFactors offset = ReadFactors(call, 2, gated.groups, gated.width);
  return MakeKernel([=] {
    const Tensor group = gated.groups.Of(gated.rows);
    const Tensor wide = gated.x.to(at::kFloat).reshape({gated.rows, 2 * gated.width});
    Tensor result = gated.Activate(wide);
    if (smooth.defined()) result = result * smooth.Of(group);
    if (gated.dynamic) {
      const ScaledRows scaled = ScaleRows(result);
      return gated.Write(scaled.values, scaled.scale.reciprocal(), group);
    }
    if (offset.defined()) result = result + offset.Of(group);
    gated.Write(result, at::zeros({gated.rows}), group);
  });
}

}  // namespace

KernelRows QuantizedActivationRows() {
  return {
      {"aclnnDequantSwigluQuant",
       [](const Call& call) { return BindDequantSwigluQuant(call, false); }},
      {"aclnnDequantSwigluQuantV2",
       [](const Call& call) { return BindDequantSwigluQuant(call, true); }},
      {"aclnnSwiGluQuant", [](const Call& call) { return BindSwiGluQuant(call, false); }},
      {"aclnnSwiGluQuantV2", [](const Call& call) { return BindSwiGluQuant(call, true); }},
  };
}

}  // namespace acltape::opapi
