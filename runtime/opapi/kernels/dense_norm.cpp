#include "runtime/opapi/kernels/dense_norm.h"

#include "runtime/opapi/engine/target.h"

#ifdef ACLTAPE_TORCH_INNER_KERNELS
#include <ATen/native/batch_norm.h>
#include <ATen/native/layer_norm.h>
#endif

namespace acltape::opapi {

#ifdef ACLTAPE_TORCH_INNER_KERNELS
namespace {

using at::Tensor;

// True when the inner kernel may read and write the tensors as they are.
bool Fit(const Operand& input, const Tensor& out, std::initializer_list<Tensor> others) {
  const at::ScalarType dtype = input.dtype();
  const auto fits = [&](const Tensor& tensor) {
    return !tensor.defined() || (tensor.is_contiguous() && tensor.scalar_type() == dtype);
  };
  bool all = input.view().numel() > 0 && fits(input.view()) && fits(out) &&
             Target(out, dtype, Access::kFree, {&input.view()}).direct();
  for (const Tensor& tensor : others) all = all && fits(tensor);
  return all;
}

}  // namespace

std::unique_ptr<Kernel> BindDenseLayerNorm(const Operand& input, const Operand& weight,
                                           const Operand& bias, int64_t rows, double eps,
                                           const Tensor& out, const Tensor& mean,
                                           const Tensor& rstd) {
  if (!Fit(input, out, {weight.view(), bias.view(), mean, rstd})) return nullptr;
  const int64_t width = input.view().numel() / rows;
  return MakeKernel([x = input.view(), w = weight.view(), b = bias.view(), y = out, mean, rstd,
                     rows, width, eps]() mutable {
    Tensor m = mean.defined() ? mean : at::empty({rows}, x.options());
    Tensor r = rstd.defined() ? rstd : at::empty({rows}, x.options());
    at::native::LayerNormKernel(at::kCPU, x, w, b, rows, width, eps, &y, &m, &r);
  });
}

std::unique_ptr<Kernel> BindDenseBatchNorm(const Operand& input, const Operand& weight,
                                           const Operand& bias, const Operand& running_mean,
                                           const Operand& running_var, double eps,
                                           const Tensor& out, std::array<Tensor, 2> unused) {
  const std::initializer_list<Tensor> others = {weight.view(), bias.view(), running_mean.view(),
                                                running_var.view()};
  if (!Fit(input, out, others)) return nullptr;
  return MakeKernel([x = input.view(), w = weight.view(), b = bias.view(),
                     mean = running_mean.view(), variance = running_var.view(), y = out,
                     none = at::empty({0}, input.view().options()), eps, unused]() mutable {
    at::native::batch_norm_cpu_stub(at::kCPU, y, x, w, b, none, none, mean, variance,
                                    /*train=*/false, eps);
    SetToZero(unused);
  });
}

#else

std::unique_ptr<Kernel> BindDenseLayerNorm(const Operand&, const Operand&, const Operand&, int64_t,
                                           double, const at::Tensor&, const at::Tensor&,
                                           const at::Tensor&) {
  return nullptr;
}

std::unique_ptr<Kernel> BindDenseBatchNorm(const Operand&, const Operand&, const Operand&,
                                           const Operand&, const Operand&, double,
                                           const at::Tensor&, std::array<at::Tensor, 2>) {
  return nullptr;
}

#endif

void SetToZero(const std::array<at::Tensor, 2>& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) tensor.zero_();
  }
}

}  // namespace acltape::opapi
