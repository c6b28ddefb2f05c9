// The tests of native sparse attention share these calls.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "tests/opapi/named_arguments.h"

namespace acltape::opapi {

inline at::Tensor Wide(const at::Tensor& tensor) { return tensor.to(at::kDouble); }

inline at::Tensor TensorOf(const Named& named, const char* name) {
  return std::get<at::Tensor>(named.at(name));
}

inline at::Tensor Ids(const std::vector<int64_t>& values, at::IntArrayRef sizes) {
  return at::tensor(values, at::kInt).reshape(sizes);
}

// The result is the expected one, rounded to its dtype.
inline void ExpectRounded(const at::Tensor& actual, const at::Tensor& expected,
                          const std::string& what) {
  const at::Tensor a = Wide(actual), b = Wide(expected.detach());
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const double near = actual.scalar_type() == at::kBFloat16 ? 8e-3
                      : actual.scalar_type() == at::kHalf   ? 1e-3
                                                            : 2e-5;
  EXPECT_LE((a - b).abs().max().item<double>(), near * b.abs().max().item<double>() + 1e-6) << what;
}

}  // namespace acltape::opapi
