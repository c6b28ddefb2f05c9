// Element types as the kernels of block.h know them.
#pragma once

#include "analyzer/metrics/block.h"
#include "storage/trace.h"

namespace acltape::analyzer {

struct ElementType {
  storage::DType dtype;
  block::Type type;
  int parts = 1;        // of a complex number 2
  storage::DType part;  // its type
};

// Null for what is no type of elements.
const ElementType* FindElementType(storage::DType dtype);

inline bool IsFloating(block::Type type) { return type >= block::kBfloat16; }

}  // namespace acltape::analyzer
