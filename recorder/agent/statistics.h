// Summary of a tensor's elements, for the policies digest and all. Defined in the agent; the
// plug-in and the ACL agent find it there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "recorder/agent/tape.h"
#include "recorder/wire/records.h"

namespace acltape::agent {

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
ACLTAPE_AGENT_API bool Summarise(const void* elements, size_t count, wire::DType dtype,
                                 Statistics* result);

}  // namespace acltape::agent
