// Functions that the references of quantised operators share, and rows that have their own files.
#pragma once

#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {

inline const Tolerance kOnce = {4, 1e-4, false, "computed in float32, the reference in float64"};

inline Tensor Wide(const Tensor& tensor) { return tensor.to(at::kDouble); }

// The optional tensor in float64, or `otherwise`.
inline Tensor WideOr(const In& in, int i, double otherwise) {
  return in.maybe(i) ? Wide(in[i]) : at::full({1}, otherwise, at::kDouble);
}

inline Tensor ToInt8(const Tensor& values) { return values.round().clamp(-128, 127).to(at::kChar); }

// The rows of products, which are part of QuantizedRows.
Rows QuantizedProductRows();

}  // namespace acltape::opapi::grid
