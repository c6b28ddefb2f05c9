// Normalisations of rows fused with other steps: the addition of a residual before them, or an
// activation, a cast or a quantisation after them. Half and bfloat16 are computed in float32 and
// rounded once.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/optional.h"
#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/row_norm.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// --- Layer norms.

// (x1, x2, gamma, beta, bias?, epsilon, additionalOutput, y, mean, rstd, x): the layer norm of
// x1 + x2 + bias. x is written only where the additional output is asked for.
std::unique_ptr<Kernel> BindAddLayerNorm(const Call& call) {
  const Operand x1 = call.In(0), x2 = call.In(1), gamma = call.In(2), beta = call.In(3);
  const Operand bias = call.OptionalIn(4);
  const double epsilon = call.Real(5);
  ExpectFloats(call, 0, x1.view());
  call.ExpectSizes(1, x2.view(), x1.sizes());
  NormalizedDims(call, 2, x1, gamma);
  call.ExpectSizes(3, beta.view(), gamma.sizes());
  if (bias.defined() && call.Broadcast({bias.sizes(), x1.sizes()}) != x1.sizes().vec()) {
    call.RejectArg(4, "does not broadcast to x1");
  }
  const Tensor y = call.Out(7), mean = call.Out(8), rstd = call.Out(9);
  call.ExpectSizes(7, y, x1.sizes());
  ExpectRows(call, 8, mean, x1, gamma);
  ExpectRows(call, 9, rstd, x1, gamma);
  Tensor sum;
  if (call.Bool(6)) {
    sum = call.Out(10);
    call.ExpectSizes(10, sum, x1.sizes());
  }
  return MakeKernel([=] {
    Tensor input = x1() + x2();
    if (bias.defined()) input = input + bias();
    const auto result = at::native_layer_norm(input, gamma.sizes(), gamma().to(input.scalar_type()),
                                              beta().to(input.scalar_type()), epsilon);
    y.copy_(std::get<0>(result));
    CopyResult(mean, std::get<1>(result));
    CopyResult(rstd, std::get<2>(result));
    CopyResult(sum, input);
  });
}

// (dy, x1, x2, rstd, mean, gamma, dsum?, dx, dgamma, dbeta)
std::unique_ptr<Kernel> BindAddLayerNormGrad(const Call& call) {
  const Operand dy = call.In(0), x1 = call.In(1), x2 = call.In(2), rstd = call.In(3);
  const Operand mean = call.In(4), gamma = call.In(5), dsum = call.OptionalIn(6);
  ExpectFloats(call, 1, x1.view());
  for (int i : {0, 2}) call.ExpectSizes(i, call.View(i), x1.sizes());
  if (dsum.defined()) call.ExpectSizes(6, dsum.view(), x1.sizes());
  NormalizedDims(call, 5, x1, gamma);
  ExpectRows(call, 3, rstd.view(), x1, gamma);
  ExpectRows(call, 4, mean.view(), x1, gamma);
  const Tensor dx = call.Out(7), dgamma = call.Out(8), dbeta = call.Out(9);
  call.ExpectSizes(7, dx, x1.sizes());
  for (int i : {8, 9}) call.ExpectSizes(i, call.View(i), gamma.sizes());
  return MakeKernel([=] {
    const Tensor input = x1() + x2();
    const auto like = [&](const Operand& operand) { return operand().to(input.scalar_type()); };
    const auto result = at::native_layer_norm_backward(
        like(dy), input, gamma.sizes(), like(mean), like(rstd), like(gamma),
        at::zeros(gamma.sizes(), input.options()), {true, true, true});
    dx.copy_(dsum.defined() ? std::get<0>(result) + dsum() : std::get<0>(result));
    dgamma.copy_(std::get<1>(result));
    dbeta.copy_(std::get<2>(result));
  });
}

// --- Norms by the root of the mean square.

// Rows that are normalised, and the sum that they come from.
struct RmsRows {
  Operand x1, x2, gamma;  // x2 may be undefined
  std::vector<int64_t> dims;
  double epsilon;

  Tensor Sum() const { return x2.defined() ? x1() + x2() : x1(); }
  Tensor Scaled(const Tensor& sum, const Tensor& inverse) const { return sum * inverse * gamma(); }
  Tensor Normalized(const Tensor& sum) const { return Scaled(sum, InverseRms(sum, dims, epsilon)); }
};

// (x1, [x2,] gamma, ...)
RmsRows ReadRmsRows(const Call& call, bool added, int epsilon_index) {
  RmsRows rows;
  rows.x1 = call.In(0);
  ExpectFloats(call, 0, rows.x1.view());
  if (added) {
    rows.x2 = call.In(1);
    call.ExpectSizes(1, rows.x2.view(), rows.x1.sizes());
  }
  rows.gamma = call.In(added ? 2 : 1);
  rows.dims = NormalizedDims(call, added ? 2 : 1, rows.x1, rows.gamma);
  rows.epsilon = call.Real(epsilon_index);
  return rows;
}

// An output of the rows' sizes.
Tensor OutOf(const Call& call, int i, const RmsRows& rows) {
  Tensor out = call.Out(i);
  call.ExpectSizes(i, out, rows.x1.sizes());
  return out;
}

// (x1, x2, gamma, epsilon, y1, y2, rstd, x): y1 is the result in float32, y2 in the input's dtype
std::unique_ptr<Kernel> BindAddRmsNormCast(const Call& call) {
  const RmsRows rows = ReadRmsRows(call, true, 3);
  const Tensor wide = OutOf(call, 4, rows), y = OutOf(call, 5, rows), rstd = call.Out(6);
  const Tensor x = OutOf(call, 7, rows);
  ExpectRows(call, 6, rstd, rows.x1, rows.gamma);
  return MakeKernel([=] {
    const Tensor sum = rows.Sum(), inverse = InverseRms(sum, rows.dims, rows.epsilon);
    const Tensor result = rows.Scaled(sum, inverse);
    wide.copy_(result);
    y.copy_(result);
    CopyResult(rstd, inverse);
    x.copy_(sum);
  });
}

// (x1Ref, x2Ref, gamma, epsilon, rstd): x1 becomes the result, x2 the sum
std::unique_ptr<Kernel> BindInplaceAddRmsNorm(const Call& call) {
  const RmsRows rows = ReadRmsRows(call, true, 3);
  const Tensor y = call.Out(0), x = call.Out(1), rstd = call.Out(4);
  ExpectRows(call, 4, rstd, rows.x1, rows.gamma);
  return MakeKernel([=] {
    const Tensor sum = rows.Sum(), inverse = InverseRms(sum, rows.dims, rows.epsilon);
    const Tensor result = rows.Scaled(sum, inverse);
    y.copy_(result);
    x.copy_(sum);
    CopyResult(rstd, inverse);
  });
}

// (x, gamma, epsilon, y, rstd): gamma counts from 1
std::unique_ptr<Kernel> BindGemmaRmsNorm(const Call& call) {
  const RmsRows rows = ReadRmsRows(call, false, 2);
  const Tensor y = OutOf(call, 3, rows), rstd = call.Out(4);
  ExpectRows(call, 4, rstd, rows.x1, rows.gamma);
  return MakeKernel([=] {
    const Tensor input = rows.Sum(), inverse = InverseRms(input, rows.dims, rows.epsilon);
    y.copy_(input * inverse * (rows.gamma() + 1));
    CopyResult(rstd, inverse);
  });
}

// --- Norms by the root of the mean square whose result is quantised.

// One of up to two quantisations of the same result: with factors and zero points of gamma's sizes,
// or of one element.
struct Quantisation {
  Operand scales, zeros;  // zeros may be undefined
  Tensor out;             // undefined: not asked for
  IntegerRange range;

  void Write(const Tensor& result, bool divides) const {
    if (!out.defined()) return;
    Tensor scaled = divides ? result / scales() : result * scales();
    if (zeros.defined()) scaled = scaled + zeros().to(scaled.scalar_type());
    out.copy_(scaled.round().clamp(range.low, range.high));
  }
};

Quantisation ReadQuantisation(const Call& call, const RmsRows& rows, int scales, int zeros,
                              int out) {
  Quantisation result{call.OptionalIn(scales), call.OptionalIn(zeros), Tensor(), {}};
  if (!result.scales.defined()) return result;
  for (int i : {scales, zeros}) {
    if (call.IsAbsent(i)) continue;
    const Tensor view = call.View(i);
    const bool one = view.numel() == 1 && view.dim() <= rows.x1.dim();
    if (!one && view.sizes() != rows.gamma.sizes()) {
      call.RejectArg(i,
                     "needs one element, or the shape of gamma, " + SizesText(rows.gamma.sizes()));
    }
  }
  result.out = OutOf(call, out, rows);
  result.range = RangeOf(call, out, result.out);
  return result;
}

// (x1, x2, gamma, scales1, scales2?, zeroPoints1?, zeroPoints2?, [beta?,] axis, epsilon, divMode,
// y1, y2, x, [rmsNorm?]): without scales2 y2 stays unwritten
std::unique_ptr<Kernel> BindAddRmsNormQuant(const Call& call, bool biased) {
  const int attributes = biased ? 8 : 7, outputs = attributes + 3;
  const RmsRows rows = ReadRmsRows(call, true, attributes + 1);
  const Operand beta = biased ? call.OptionalIn(7) : Operand();
  if (beta.defined()) call.ExpectSizes(7, beta.view(), rows.gamma.sizes());
  if (call.Int(attributes) != -1) call.RejectArg(attributes, "must be -1");
  const bool divides = call.Bool(attributes + 2);
  const Quantisation first = ReadQuantisation(call, rows, 3, 5, outputs);
  if (!first.out.defined()) call.RejectArg(3, "has no elements");
  const Quantisation second = ReadQuantisation(call, rows, 4, 6, outputs + 1);
  const Tensor x = OutOf(call, outputs + 2, rows);
  Tensor normalized;
  if (biased && !call.IsAbsent(14)) normalized = OutOf(call, 14, rows);
  return MakeKernel([=] {
    const Tensor sum = rows.Sum(), plain = rows.Normalized(sum);
    const Tensor result = beta.defined() ? plain + beta() : plain;
    x.copy_(sum);
    first.Write(result, divides);
    second.Write(result, divides);
    CopyResult(normalized, plain);
  });
}

// (x, gamma, beta, scale, offset, epsilon, y): the scale is a factor.
std::unique_ptr<Kernel> BindRmsNormQuant(const Call& call) {
  const RmsRows rows = ReadRmsRows(call, false, 5);
  const Operand beta = call.In(2);
  call.ExpectSizes(2, beta.view(), rows.gamma.sizes());
  const Quantisation quantisation = ReadQuantisation(call, rows, 3, 4, 6);
  if (!quantisation.out.defined()) call.RejectArg(3, "has no elements");
  return MakeKernel(
      [=] { quantisation.Write(rows.Normalized(rows.Sum()) + beta(), /*divides=*/false); });
}

// (x, gamma, scale, offset?, beta?, epsilon, divMode, outputRstd, y, rstd): rstd is written only
// where it is asked for.
std::unique_ptr<Kernel> BindRmsNormQuantV3(const Call& call) {
  const RmsRows rows = ReadRmsRows(call, false, 5);
  const Operand beta = call.OptionalIn(4);
  if (beta.defined()) call.ExpectSizes(4, beta.view(), rows.gamma.sizes());
  const Quantisation quantisation = ReadQuantisation(call, rows, 2, 3, 8);
  if (!quantisation.out.defined()) call.RejectArg(2, "has no elements");
  const bool divides = call.Bool(6);
  Tensor rstd;
  if (call.Bool(7)) {
    rstd = call.Out(9);
    ExpectRows(call, 9, rstd, rows.x1, rows.gamma);
  }
  return MakeKernel([=] {
    const Tensor input = rows.Sum(), inverse = InverseRms(input, rows.dims, rows.epsilon);
    const Tensor result = rows.Scaled(input, inverse);
    quantisation.Write(beta.defined() ? result + beta() : result, divides);
    CopyResult(rstd, inverse);
  });
}

// One of up to two quantisations of the same result whose scales come from its rows.
struct DynamicQuantisation {
  Operand smooth;     // undefined: a factor of 1
  Tensor out, scale;  // undefined: not asked for

  void Write(const Tensor& result) const {
    if (!out.defined()) return;
    const ScaledRows rows = ScaleRows(smooth.defined() ? result * smooth() : result);
    out.copy_(rows.values);
    scale.copy_(rows.scale);
  }
};

DynamicQuantisation ReadDynamic(const Call& call, const RmsRows& rows, int smooth, int out,
                                int scale) {
  DynamicQuantisation result{call.OptionalIn(smooth), OutOf(call, out, rows), call.Out(scale)};
  if (result.smooth.defined()) {
    call.ExpectSizes(smooth, result.smooth.view(), rows.gamma.sizes());
  }
  ExpectInt8(call, out, result.out);
  call.ExpectSizes(scale, result.scale, rows.x1.sizes().slice(0, rows.x1.dim() - 1));
  return result;
}

// (x1, x2, gamma, smoothScale1?, smoothScale2?, [beta?,] epsilon, [outputMask?,] y1, y2, x, scale1,
// scale2): the mask says which of the two quantisations are written. Without a mask the first one
// is, and the second one where smoothScale2 is given.
std::unique_ptr<Kernel> BindAddRmsNormDynamicQuant(const Call& call, bool biased) {
  const int outputs = biased ? 8 : 6;
  const RmsRows rows = ReadRmsRows(call, true, biased ? 6 : 5);
  if (rows.gamma.dim() != 1) call.RejectArg(2, "must have 1 dim");
  const Operand beta = biased ? call.OptionalIn(5) : Operand();
  if (beta.defined()) call.ExpectSizes(5, beta.view(), rows.gamma.sizes());
  std::vector<bool> written = {true, !call.IsAbsent(4)};
  if (biased && !call.IsAbsent(7)) {
    written = call.Bools(7);
    if (written.size() != 2) call.RejectArg(7, "must have 2 entries");
    if (!written[0] && !written[1]) call.RejectArg(7, "asks for no quantisation");
    for (int i : {0, 1}) {
      if (!written[i] && !call.IsAbsent(3 + i)) {
        call.RejectArg(3 + i, "is given, and outputMask does not ask for its quantisation");
      }
    }
  }
  DynamicQuantisation first, second;
  if (written[0]) first = ReadDynamic(call, rows, 3, outputs, outputs + 3);
  if (written[1]) second = ReadDynamic(call, rows, 4, outputs + 1, outputs + 4);
  const Tensor x = OutOf(call, outputs + 2, rows);
  return MakeKernel([=] {
    const Tensor sum = rows.Sum();
    Tensor result = rows.Normalized(sum);
    if (beta.defined()) result = result + beta();
    x.copy_(sum);
    first.Write(result);
    second.Write(result);
  });
}

// --- Group norms with an activation.

// A group norm that x * sigmoid(scale * x) may follow.
struct ActivatedGroups {
  Operand x, gamma, beta;
  int64_t groups;
  double epsilon;
  bool activated;
  double scale;
};

std::unique_ptr<Kernel> BindActivatedGroups(const Call& call, const ActivatedGroups& norm,
                                            int outputs) {
  const Operand& x = norm.x;
  ExpectFloats(call, 0, x.view());
  if (x.dim() < 2) call.RejectArg(0, "has less than 2 dims");
  const int64_t batch = x.sizes()[0], channels = x.sizes()[1];
  if (norm.groups < 1 || channels % norm.groups != 0) {
    call.RejectArg(3, "does not divide the " + std::to_string(channels) + " channels");
  }
  for (int i : {1, 2}) {
    if (!call.IsAbsent(i)) call.ExpectSizes(i, call.View(i), {channels});
  }
  const Tensor y = call.Out(outputs), mean = call.Out(outputs + 1), rstd = call.Out(outputs + 2);
  call.ExpectSizes(outputs, y, x.sizes());
  call.ExpectSizes(outputs + 1, mean, {batch, norm.groups});
  call.ExpectSizes(outputs + 2, rstd, {batch, norm.groups});
  return MakeKernel([=] {
    const Tensor input = x().contiguous();
    int64_t area = 1;
    for (int64_t size : input.sizes().slice(2)) area *= size;
    const auto result = at::native_group_norm(input, Maybe(norm.gamma), Maybe(norm.beta), batch,
                                              channels, area, norm.groups, norm.epsilon);
    const Tensor& plain = std::get<0>(result);
    y.copy_(norm.activated ? plain * at::sigmoid(plain * norm.scale) : plain);
    mean.copy_(std::get<1>(result));
    rstd.copy_(std::get<2>(result));
  });
}

// (self, gamma, beta, group, eps, out, mean, rstd)
std::unique_ptr<Kernel> BindGroupNormSilu(const Call& call) {
  return BindActivatedGroups(
      call,
      {call.In(0), call.OptionalIn(1), call.OptionalIn(2), call.Int(3), call.Real(4), true, 1}, 5);
}

// (self, gamma, beta, group, eps, activateSilu, out, mean, rstd)
std::unique_ptr<Kernel> BindGroupNormSiluV2(const Call& call) {
  return BindActivatedGroups(
      call, {call.In(0), call.In(1), call.In(2), call.Int(3), call.Real(4), call.Bool(5), 1}, 6);
}

// (x, gamma, beta, numGroups, dataFormat, eps, activateSwish, swishScale, y, mean, rstd)
std::unique_ptr<Kernel> BindGroupNormSwish(const Call& call) {
  const std::string format = call.Text(4);
  if (!format.empty() && format != "NCHW") call.RejectArg(4, "must be \"NCHW\"");
  return BindActivatedGroups(call,
                             {call.In(0), call.OptionalIn(1), call.OptionalIn(2), call.Int(3),
                              call.Real(5), call.Bool(6), call.Real(7)},
                             8);
}

}  // namespace

KernelRows FusedNormRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnAddLayerNorm", BindAddLayerNorm, kBoth},
      {"aclnnAddLayerNormGrad", BindAddLayerNormGrad, kBoth},
      {"aclnnAddRmsNormCast", BindAddRmsNormCast, kBoth},
      {"aclnnInplaceAddRmsNorm", BindInplaceAddRmsNorm, kBoth},
      {"aclnnGemmaRmsNorm", BindGemmaRmsNorm, kBoth},
      {"aclnnAddRmsNormQuant",
       [](const Call& call) { return BindAddRmsNormQuant(call, false); },
       kBoth,
       {11}},
      {"aclnnAddRmsNormQuantV2",
       [](const Call& call) { return BindAddRmsNormQuant(call, true); },
       kBoth,
       {12}},
      {"aclnnRmsNormQuant", BindRmsNormQuant, kBoth},
      {"aclnnRmsNormQuantV3", BindRmsNormQuantV3, kBoth, {9}},
      {"aclnnAddRmsNormDynamicQuant",
       [](const Call& call) { return BindAddRmsNormDynamicQuant(call, false); },
       kBoth,
       {7, 10}},
      {"aclnnAddRmsNormDynamicQuantV2",
       [](const Call& call) { return BindAddRmsNormDynamicQuant(call, true); },
       kBoth,
       {8, 9, 11, 12}},
      {"aclnnGroupNormSilu", BindGroupNormSilu, kBoth},
      {"aclnnGroupNormSiluV2", BindGroupNormSiluV2, kBoth},
      {"aclnnGroupNormSwish", BindGroupNormSwish, kBoth},
  };
}

}  // namespace acltape::opapi
