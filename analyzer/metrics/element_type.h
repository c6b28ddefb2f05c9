// Element types as the kernels of block.h know them.
#pragma once

#include "analyzer/metrics/block.h"
#include "storage/trace.h"

namespace acltape::analyzer::metrics {

struct ElementType {
  storage::DType dtype;
  block::Type type;
  int parts = 1;        // 2 for a complex number
  storage::DType part;  // type of one part
};

// Returns null if the type has no elements that can be measured.
const ElementType* FindElementType(storage::DType dtype);

inline bool IsFloating(block::Type type) { return type >= block::kBfloat16; }

}  // namespace acltape::analyzer::metrics
