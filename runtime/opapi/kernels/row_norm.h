// Parts that the normalisations of rows share: the dims of gamma cover a row.
#pragma once

#include <ATen/ATen.h>

#include "runtime/opapi/engine/call.h"

namespace acltape::opapi {

// The dims that gamma covers, counted from the end.
inline std::vector<int64_t> NormalizedDims(const Call& call, int gamma_index, const Operand& x,
                                           const Operand& gamma) {
  const int64_t leading = x.dim() - gamma.dim();
  if (gamma.dim() == 0 || leading < 0 || x.sizes().slice(leading) != gamma.sizes()) {
    call.RejectArg(gamma_index, "has shape " + SizesText(gamma.sizes()) +
                                    ", which does not end the shape " + SizesText(x.sizes()));
  }
  std::vector<int64_t> dims;
  for (int64_t i = leading; i < x.dim(); ++i) dims.push_back(i);
  return dims;
}

// Rejects statistics that have not one element for each row; absent ones are fine.
inline void ExpectRows(const Call& call, int i, const at::Tensor& rstd, const Operand& x,
                       const Operand& gamma) {
  const int64_t width = gamma.view().numel();
  if (rstd.defined() && width > 0 && rstd.numel() != x.view().numel() / width) {
    call.RejectArg(i, "has shape " + SizesText(rstd.sizes()) + ", expected one element a row");
  }
}

// One over the root of the mean square of each row.
inline at::Tensor InverseRms(const at::Tensor& x, const std::vector<int64_t>& dims,
                             double epsilon) {
  return x.pow(2).mean(dims, /*keepdim=*/true).add(epsilon).rsqrt();
}

}  // namespace acltape::opapi
