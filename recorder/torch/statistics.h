// Summary of a tensor's elements, for the policies digest and all.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>

namespace acltape::torch_plugin {

// Over the finite elements; NaN and infinite ones are counted. `l2` is the Euclidean norm. All zero
// for no elements.
struct Statistics {
  double min = 0;
  double max = 0;
  double mean = 0;
  double l2 = 0;
  uint64_t nan_count = 0;
  uint64_t inf_count = 0;
};

// False for element types without an order (complex, quantised).
bool Summarise(const void* elements, size_t count, c10::ScalarType dtype, Statistics* result);

}  // namespace acltape::torch_plugin
