// Indices that the library does not look at before it uses them.
#pragma once

#include <ATen/ATen.h>

namespace acltape::opapi {

// The indices as 64-bit numbers. Throws, so that the task fails, where one is not in [0, count).
inline at::Tensor Within(const at::Tensor& indices, int64_t count, const char* name) {
  at::Tensor wide = indices.to(at::kLong).contiguous();
  const auto* values = wide.data_ptr<int64_t>();
  for (int64_t i = 0; i < wide.numel(); ++i) {
    TORCH_CHECK(values[i] >= 0 && values[i] < count, name, " has the index ", values[i],
                ", and there are ", count);
  }
  return wide;
}

}  // namespace acltape::opapi
