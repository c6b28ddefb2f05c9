// Rejects calls whose tensors have other dtypes than an operator takes.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "runtime/opapi/engine/call.h"

namespace acltape::opapi {

// Rejects the call unless tensor `i` has one of the dtypes.
inline void ExpectDtypes(const Call& call, int i, const at::Tensor& tensor,
                         std::initializer_list<at::ScalarType> dtypes) {
  if (std::count(dtypes.begin(), dtypes.end(), tensor.scalar_type()) > 0) return;
  std::string expected;
  for (at::ScalarType dtype : dtypes) {
    expected += std::string(expected.empty() ? "" : " or ") + at::toString(dtype);
  }
  call.RejectArg(
      i, std::string("has dtype ") + at::toString(tensor.scalar_type()) + ", expected " + expected);
}

// Rejects the call unless tensor `i` is of a floating dtype.
inline void ExpectFloats(const Call& call, int i, const at::Tensor& tensor) {
  if (at::isFloatingType(tensor.scalar_type())) return;
  call.RejectArg(i, std::string("has dtype ") + at::toString(tensor.scalar_type()) +
                        ", expected a floating dtype");
}

}  // namespace acltape::opapi
