// Normalisations and their gradients.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/dense_norm.h"
#include "runtime/opapi/kernels/optional.h"

namespace acltape::opapi {
namespace {

namespace f = at::cpu;
using at::Tensor;

// Statistics come with dims of size 1 or without them, depending on the caller.
void ExpectCount(const Call& call, int i, const Tensor& tensor, int64_t count) {
  if (tensor.defined() && tensor.numel() != count) {
    call.RejectArg(i, "has shape " + SizesText(tensor.sizes()) + ", expected " +
                          std::to_string(count) + " elements");
  }
}

// The mask of the three gradients that are wanted; those need an output.
std::array<bool, 3> GradientMask(const Call& call, int mask_index,
                                 const std::array<Tensor, 3>& outs) {
  const std::vector<bool> mask = call.Bools(mask_index);
  if (mask.size() != 3) call.RejectArg(mask_index, "must have 3 entries");
  for (int i = 0; i < 3; ++i) {
    if (mask[i] && !outs[i].defined()) {
      throw RejectedCall{kParamNull, std::string(call.op().name) + ": gradient " +
                                         std::to_string(i) +
                                         " is asked for but its output is NULL."};
    }
  }
  return {mask[0], mask[1], mask[2]};
}

void CopyWanted(const std::array<bool, 3>& mask, const std::array<Tensor, 3>& outs,
                const std::tuple<Tensor, Tensor, Tensor>& results) {
  if (mask[0]) CopyResult(outs[0], std::get<0>(results));
  if (mask[1]) CopyResult(outs[1], std::get<1>(results));
  if (mask[2]) CopyResult(outs[2], std::get<2>(results));
}

// Rows of a layer norm: the product of the dims before the normalised ones.
int64_t LayerNormRows(const Call& call, const Operand& input,
                      const std::vector<int64_t>& normalized) {
  const int64_t leading = input.dim() - static_cast<int64_t>(normalized.size());
  if (normalized.empty() || leading < 0 ||
      input.sizes().slice(leading) != at::IntArrayRef(normalized)) {
    call.RejectCall("the normalised shape " + SizesText(normalized) + " does not end the shape " +
                    SizesText(input.sizes()));
  }
  int64_t rows = 1;
  for (int64_t size : input.sizes().slice(0, leading)) rows *= size;
  return rows;
}

// (input, normalizedShape, weight?, bias?, eps, out, mean?, rstd?)
std::unique_ptr<Kernel> BindLayerNorm(const Call& call) {
  const Operand input = call.In(0), weight = call.OptionalIn(2), bias = call.OptionalIn(3);
  const std::vector<int64_t> normalized = call.Ints(1);
  const double eps = call.Real(4);
  const Tensor out = call.Out(5), mean = call.OptionalOut(6), rstd = call.OptionalOut(7);
  const int64_t rows = LayerNormRows(call, input, normalized);
  for (int i : {2, 3}) {
    if (!call.IsNull(i)) call.ExpectSizes(i, call.View(i), normalized);
  }
  call.ExpectSizes(5, out, input.sizes());
  ExpectCount(call, 6, mean, rows);
  ExpectCount(call, 7, rstd, rows);
  if (auto kernel = BindDenseLayerNorm(input, weight, bias, rows, eps, out, mean, rstd)) {
    return kernel;
  }
  return MakeKernel([=] {
    const auto result = f::native_layer_norm(input(), normalized, Maybe(weight), Maybe(bias), eps);
    out.copy_(std::get<0>(result));
    CopyResult(mean, std::get<1>(result));
    CopyResult(rstd, std::get<2>(result));
  });
}

// As above, with implMode after the outputs: how exactly a device computes.
std::unique_ptr<Kernel> BindLayerNormWithImplMode(const Call& call) {
  if (call.Int(8) < 0 || call.Int(8) > 2) call.RejectArg(8, "must be 0, 1 or 2");
  return BindLayerNorm(call);
}

// (x, scale, shift, weight?, bias?, epsilon, out), with mean? and rstd? after it if `statistics`:
// the layer norm over the last dim, times 1 + scale, plus shift. The two have the dims of x but the
// last but one, which may be there with the size 1.
Binder AdaLayerNorm(bool statistics) {
  return [statistics](const Call& call) {
    const Operand x = call.In(0), scale = call.In(1), shift = call.In(2);
    const Operand weight = call.OptionalIn(3), bias = call.OptionalIn(4);
    const double epsilon = call.Real(5);
    if (x.dim() < 2) call.RejectArg(0, "has less than 2 dims");
    if (!at::isFloatingType(x.dtype())) call.RejectArg(0, "has no floating dtype");
    std::vector<int64_t> wide = x.sizes().vec(), thin = wide, rows = wide;
    wide[wide.size() - 2] = 1;
    thin.erase(thin.end() - 2);
    rows.back() = 1;
    const int64_t width = x.sizes().back();
    for (int i : {1, 2}) {
      const Tensor given = call.View(i);
      if (given.sizes() != at::IntArrayRef(wide)) call.ExpectSizes(i, given, thin);
      if (given.scalar_type() != x.view().scalar_type()) {
        call.RejectArg(i, "has another dtype than x");
      }
    }
    for (int i : {3, 4}) {
      if (!call.IsNull(i)) call.ExpectSizes(i, call.View(i), {width});
    }
    const Tensor out = call.Out(6);
    call.ExpectSizes(6, out, x.sizes());
    Tensor mean, rstd;
    if (statistics) {
      mean = call.OptionalOut(7);
      rstd = call.OptionalOut(8);
      for (int i : {7, 8}) {
        if (!call.IsNull(i)) call.ExpectSizes(i, call.View(i), rows);
      }
    }
    return MakeKernel([=] {
      const Tensor input = x();
      const auto to = [&](const Operand& operand) {
        return operand.defined() ? OptionalTensor(operand().to(input.scalar_type()))
                                 : OptionalTensor();
      };
      const auto normal = f::native_layer_norm(input, {width}, to(weight), to(bias), epsilon);
      out.copy_(std::get<0>(normal) * (1 + scale().reshape(wide)) + shift().reshape(wide));
      CopyResult(mean, std::get<1>(normal));
      CopyResult(rstd, std::get<2>(normal));
    });
  };
}

// (gradOut, input, normalizedShape, rstd, mean, scale, shift, weight?, bias?, gradInput?,
// gradScale?, gradShift?, gradWeight?, gradBias?): the gradients of the norm above
std::unique_ptr<Kernel> BindAdaLayerNormBackward(const Call& call) {
  const Operand gradient = call.In(0), input = call.In(1), rstd = call.In(3), mean = call.In(4);
  const Operand scale = call.In(5), shift = call.In(6);
  const Operand weight = call.OptionalIn(7), bias = call.OptionalIn(8);
  if (input.dim() < 2) call.RejectArg(1, "has less than 2 dims");
  if (!at::isFloatingType(input.dtype())) call.RejectArg(1, "has no floating dtype");
  const int64_t width = input.sizes().back();
  if (call.Ints(2) != std::vector<int64_t>{width})
    call.RejectArg(2, "is not the last dim of input");
  call.ExpectSizes(0, gradient.view(), input.sizes());
  std::vector<int64_t> wide = input.sizes().vec(), thin = wide, rows = wide;
  wide[wide.size() - 2] = 1;
  thin.erase(thin.end() - 2);
  rows.back() = 1;
  for (int i : {3, 4}) call.ExpectSizes(i, call.View(i), rows);
  for (int i : {5, 6}) {
    if (call.View(i).sizes() != at::IntArrayRef(wide)) call.ExpectSizes(i, call.View(i), thin);
  }
  for (int i : {0, 3, 4, 5, 6}) {
    if (call.View(i).scalar_type() != input.view().scalar_type()) {
      call.RejectArg(i, "has another dtype than input");
    }
  }
  const std::vector<int64_t> sizes[] = {
      input.sizes().vec(), scale.sizes().vec(), shift.sizes().vec(), {width}, {width}};
  std::array<Tensor, 5> outs;
  for (int i = 0; i < 5; ++i) {
    outs[i] = call.OptionalOut(9 + i);
    if (outs[i].defined()) call.ExpectSizes(9 + i, outs[i], sizes[i]);
  }
  for (int i : {7, 8}) {
    if (!call.IsNull(i)) call.ExpectSizes(i, call.View(i), {width});
  }
  return MakeKernel([=] {
    const Tensor dy = gradient(), z = (input() - mean()) * rstd();
    const Tensor factor = 1 + scale().reshape(wide);
    const Tensor of_norm = dy * factor;
    const Tensor of_z = weight.defined() ? of_norm * weight() : of_norm;
    const Tensor plain = of_z - of_z.mean({-1}, true) - z * (of_z * z).mean({-1}, true);
    Tensor norm = weight.defined() ? z * weight() : z;
    if (bias.defined()) norm = norm + bias();
    CopyResult(outs[0], plain * rstd());
    CopyResult(outs[1], (dy * norm).sum(-2));
    CopyResult(outs[2], dy.sum(-2));
    CopyResult(outs[3], (of_norm * z).reshape({-1, width}).sum(0));
    CopyResult(outs[4], of_norm.reshape({-1, width}).sum(0));
  });
}

// (gradOut, input, normalizedShape, mean, rstd, weight?, bias?, mask, gradInput?, gradWeight?,
// gradBias?)
std::unique_ptr<Kernel> BindLayerNormBackward(const Call& call) {
  const Operand gradient = call.In(0), input = call.In(1), mean = call.In(3), rstd = call.In(4);
  const Operand weight = call.OptionalIn(5), bias = call.OptionalIn(6);
  const std::vector<int64_t> normalized = call.Ints(2);
  const std::array<Tensor, 3> outs{call.OptionalOut(8), call.OptionalOut(9), call.OptionalOut(10)};
  const std::array<bool, 3> mask = GradientMask(call, 7, outs);
  const int64_t rows = LayerNormRows(call, input, normalized);
  call.ExpectSizes(0, gradient.view(), input.sizes());
  ExpectCount(call, 3, mean.view(), rows);
  ExpectCount(call, 4, rstd.view(), rows);
  if (mask[0]) call.ExpectSizes(8, outs[0], input.sizes());
  if (mask[1]) call.ExpectSizes(9, outs[1], normalized);
  if (mask[2]) call.ExpectSizes(10, outs[2], normalized);
  return MakeKernel([=] {
    CopyWanted(mask, outs,
               f::native_layer_norm_backward(gradient(), input(), normalized, mean(), rstd(),
                                             Maybe(weight), Maybe(bias), mask));
  });
}

int64_t Channels(const Call& call, int i, const Operand& input) {
  if (input.dim() < 2) call.RejectArg(i, "has less than 2 dims");
  return input.sizes()[1];
}

// (input, weight?, bias?, runningMean?, runningVar?, training, momentum, eps, output, saveMean,
// saveInvstd). Inference has no statistics to save: they are zero where there is room for them.
std::unique_ptr<Kernel> BindBatchNorm(const Call& call) {
  const Operand input = call.In(0), weight = call.OptionalIn(1), bias = call.OptionalIn(2);
  const Operand running_mean = call.OptionalIn(3), running_var = call.OptionalIn(4);
  const bool training = call.Bool(5);
  const double momentum = call.Real(6), eps = call.Real(7);
  const Tensor out = call.Out(8), mean = call.OptionalOut(9), invstd = call.OptionalOut(10);
  const int64_t channels = Channels(call, 0, input);
  for (int i : {1, 2, 3, 4}) {
    if (!call.IsNull(i)) call.ExpectSizes(i, call.View(i), {channels});
  }
  if (!training && (!running_mean.defined() || !running_var.defined())) {
    call.RejectCall("inference needs runningMean and runningVar");
  }
  call.ExpectSizes(8, out, input.sizes());
  if (training) {
    ExpectCount(call, 9, mean, channels);
    ExpectCount(call, 10, invstd, channels);
  }
  if (!training) {
    auto kernel = BindDenseBatchNorm(input, weight, bias, running_mean, running_var, eps, out,
                                     {mean, invstd});
    if (kernel != nullptr) return kernel;
  }
  return MakeKernel([=] {
    const OptionalTensor used_mean = Maybe(running_mean), used_var = Maybe(running_var);
    const auto result = f::native_batch_norm(input(), Maybe(weight), Maybe(bias), used_mean,
                                             used_var, training, momentum, eps);
    out.copy_(std::get<0>(result));
    if (!training) return SetToZero({mean, invstd});
    CopyResult(mean, std::get<1>(result));
    CopyResult(invstd, std::get<2>(result));
    // Widened running statistics are copies; the update must reach the caller's.
    for (const auto& [used, given] :
         {std::pair(used_mean, running_mean.view()), std::pair(used_var, running_var.view())}) {
      if (used && !used->is_same(given)) given.copy_(*used);
    }
  });
}

// (gradOut, input, weight, runningMean, runningVar, saveMean, saveInvstd, training, eps, mask,
// gradInput?, gradWeight?, gradBias?)
std::unique_ptr<Kernel> BatchNormGradients(const Call& call, int first) {
  const Operand gradient = call.In(0), input = call.In(1), weight = call.OptionalIn(2);
  const Operand running_mean = call.OptionalIn(3), running_var = call.OptionalIn(4);
  const Operand mean = call.OptionalIn(5), invstd = call.OptionalIn(6);
  const bool training = call.Bool(7);
  const double eps = call.Real(8);
  const std::array<Tensor, 3> outs{call.OptionalOut(first), call.OptionalOut(first + 1),
                                   call.OptionalOut(first + 2)};
  const std::array<bool, 3> mask = GradientMask(call, 9, outs);
  const int64_t channels = Channels(call, 1, input);
  call.ExpectSizes(0, gradient.view(), input.sizes());
  if (training && (!mean.defined() || !invstd.defined())) {
    call.RejectCall("training needs saveMean and saveInvstd");
  }
  if (!training && (!running_mean.defined() || !running_var.defined())) {
    call.RejectCall("inference needs runningMean and runningVar");
  }
  for (int i : {2, 3, 4, 5, 6}) {
    const bool saved = i >= 5;  // outside of training nobody reads what was saved
    if (!call.IsNull(i) && (training || !saved)) call.ExpectSizes(i, call.View(i), {channels});
  }
  if (mask[0]) call.ExpectSizes(first, outs[0], input.sizes());
  if (mask[1]) call.ExpectSizes(first + 1, outs[1], {channels});
  if (mask[2]) call.ExpectSizes(first + 2, outs[2], {channels});
  return MakeKernel([=] {
    CopyWanted(mask, outs,
               f::native_batch_norm_backward(gradient(), input(), Maybe(weight),
                                             Maybe(running_mean), Maybe(running_var), Maybe(mean),
                                             Maybe(invstd), training, eps, mask));
  });
}

std::unique_ptr<Kernel> BindBatchNormBackward(const Call& call) {
  return BatchNormGradients(call, 10);
}

// As above, with the version of a device's algorithm in front of the outputs.
std::unique_ptr<Kernel> BindFastBatchNormBackward(const Call& call) {
  if (call.Int(10) != 0 && call.Int(10) != 1) call.RejectArg(10, "must be 0 or 1");
  return BatchNormGradients(call, 11);
}

void ExpectGroups(const Call& call, const Operand& input, int n_index) {
  const int64_t n = call.Int(n_index), c = call.Int(n_index + 1), area = call.Int(n_index + 2);
  const int64_t groups = call.Int(n_index + 3);
  if (input.view().numel() != n * c * area) {
    call.RejectCall("N, C and HxW do not match the shape " + SizesText(input.sizes()));
  }
  if (groups <= 0 || c % groups != 0) call.RejectArg(n_index + 3, "does not divide C");
}

// (self, gamma?, beta?, N, C, HxW, group, eps, out, mean, rstd)
std::unique_ptr<Kernel> BindGroupNorm(const Call& call) {
  const Operand input = call.In(0), gamma = call.OptionalIn(1), beta = call.OptionalIn(2);
  ExpectGroups(call, input, 3);
  const int64_t n = call.Int(3), c = call.Int(4), area = call.Int(5), groups = call.Int(6);
  const double eps = call.Real(7);
  const Tensor out = call.Out(8), mean = call.Out(9), rstd = call.Out(10);
  call.ExpectSizes(8, out, input.sizes());
  ExpectCount(call, 9, mean, n * groups);
  ExpectCount(call, 10, rstd, n * groups);
  return MakeKernel([=] {
    const auto result = at::native_group_norm(input().contiguous(), Maybe(gamma), Maybe(beta), n, c,
                                              area, groups, eps);
    out.copy_(std::get<0>(result));
    CopyResult(mean, std::get<1>(result));
    CopyResult(rstd, std::get<2>(result));
  });
}

// (gradOut, input, mean, rstd, gamma, N, C, HxW, group, mask, gradInput, gradGamma, gradBeta)
std::unique_ptr<Kernel> BindGroupNormBackward(const Call& call) {
  const Operand gradient = call.In(0), input = call.In(1), mean = call.In(2), rstd = call.In(3);
  const Operand gamma = call.OptionalIn(4);
  ExpectGroups(call, input, 5);
  const int64_t n = call.Int(5), c = call.Int(6), area = call.Int(7), groups = call.Int(8);
  const std::array<Tensor, 3> outs{call.OptionalOut(10), call.OptionalOut(11),
                                   call.OptionalOut(12)};
  const std::array<bool, 3> mask = GradientMask(call, 9, outs);
  call.ExpectSizes(0, gradient.view(), input.sizes());
  if (mask[0]) call.ExpectSizes(10, outs[0], input.sizes());
  if (mask[1]) call.ExpectSizes(11, outs[1], {c});
  if (mask[2]) call.ExpectSizes(12, outs[2], {c});
  return MakeKernel([=] {
    CopyWanted(mask, outs,
               at::native_group_norm_backward(
                   gradient().contiguous(), input().contiguous(), mean().reshape({n, groups}),
                   rstd().reshape({n, groups}), Maybe(gamma), n, c, area, groups, mask));
  });
}

// (self, p, dim, maxNorm, out): slices along dim whose p-norm is above maxNorm are scaled down to
// it.
std::unique_ptr<Kernel> BindRenorm(const Call& call) {
  const Operand self = call.In(0);
  const at::Scalar p = call.Number(1), most = call.Number(3);
  if (self.dim() < 2) call.RejectArg(0, "has less than 2 dims");
  if (!at::isFloatingType(self.dtype())) call.RejectArg(0, "has no floating dtype");
  const int64_t dim = call.Dim(2, self.dim());
  if (p.toDouble() <= 0) call.RejectArg(1, "must be positive");
  if (most.toDouble() < 0) call.RejectArg(3, "is negative");
  const Tensor out = call.Out(4);
  call.ExpectSizes(4, out, self.sizes());
  Target target(out, self.dtype(), Access::kFree, {&self.view()});
  return MakeKernel(
      [=] { target.Write([&](Tensor& result) { at::renorm_out(result, self(), p, dim, most); }); });
}

}  // namespace

KernelRows NormRows() {
  constexpr Widen kHalf = Widen::kHalf;
  return {
      {"aclnnLayerNorm", BindLayerNorm, kHalf},
      {"aclnnLayerNormWithImplMode", BindLayerNormWithImplMode, kHalf},
      {"aclnnAdaLayerNorm", AdaLayerNorm(false), Widen::kHalfAndBfloat16},
      {"aclnnAdaLayerNormV2", AdaLayerNorm(true), Widen::kHalfAndBfloat16},
      {"aclnnAdaLayerNormBackward", BindAdaLayerNormBackward, Widen::kHalfAndBfloat16},
      {"aclnnFastLayerNorm", BindLayerNorm, kHalf},
      {"aclnnLayerNormBackward", BindLayerNormBackward, kHalf},
      {"aclnnRenorm", kAlsoInPlace, BindRenorm, kHalf},
      {"aclnnBatchNorm", BindBatchNorm, kHalf, {9, 10}},
      {"aclnnBatchNormBackward", BindBatchNormBackward, kHalf, {2, 3, 4, 5, 6}},
      {"aclnnFastBatchNormBackward", BindFastBatchNormBackward, kHalf},
      {"aclnnGroupNorm", BindGroupNorm, kHalf},
      {"aclnnGroupNormBackward", BindGroupNormBackward, kHalf, {4, 10, 11, 12}},
  };
}

}  // namespace acltape::opapi
