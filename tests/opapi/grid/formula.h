// References that are formulas of doubles: the library only walks over the tensors, and rounds once
// to the type of the result.
#pragma once

#include <array>
#include <utility>

#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {

// fn(x, ...) of each element of the tensors, which are broadcast, in double.
template <typename Fn, typename... T>
Tensor Formula(Fn fn, const T&... tensors) {
  const Tensors together = at::broadcast_tensors(Tensors{tensors.to(at::kDouble)...});
  std::array<Tensor, sizeof...(T)> dense;
  std::array<const double*, sizeof...(T)> values;
  for (size_t k = 0; k < dense.size(); ++k) {
    dense[k] = together[k].contiguous();
    values[k] = dense[k].template data_ptr<double>();
  }
  const Tensor result = at::empty(dense[0].sizes(), at::kDouble);
  auto* out = result.data_ptr<double>();
  for (int64_t i = 0; i < result.numel(); ++i) {
    out[i] = std::apply([&](auto... at) { return static_cast<double>(fn(at[i]...)); }, values);
  }
  return result;
}

// The dtype of an operator's result that computes in floats, for numbers of `dtype`.
inline at::ScalarType FloatFor(at::ScalarType dtype) {
  return at::isFloatingType(dtype) ? dtype : at::kFloat;
}

inline const Tolerance kFormula = {4, 1e-7, false, "the formula is rounded once, from double"};

}  // namespace acltape::opapi::grid
