// Normalisations of dense operands that write straight into their outputs. They call the kernels
// of the library's native_layer_norm and native_batch_norm, so the bits are the same; those
// operators themselves allocate their results, which would have to be copied. All return null where
// the operands do not fit (other dtypes or strides, an output over the input) or libtorch does not
// offer its inner kernels.
#pragma once

#include <array>

#include "runtime/opapi/engine/kernel_table.h"

namespace acltape::opapi {

// `weight`, `bias`, `mean` and `rstd` may be undefined.
std::unique_ptr<Kernel> BindDenseLayerNorm(const Operand& input, const Operand& weight,
                                           const Operand& bias, int64_t rows, double eps,
                                           const at::Tensor& out, const at::Tensor& mean,
                                           const at::Tensor& rstd);

// Zeros in the outputs that are defined, so that what an operator has no value for is the same in
// every run.
void SetToZero(const std::array<at::Tensor, 2>& tensors);

// Inference: with the running statistics. `weight` and `bias` may be undefined, `unused` is set to
// zero.
std::unique_ptr<Kernel> BindDenseBatchNorm(const Operand& input, const Operand& weight,
                                           const Operand& bias, const Operand& running_mean,
                                           const Operand& running_var, double eps,
                                           const at::Tensor& out, std::array<at::Tensor, 2> unused);

}  // namespace acltape::opapi
