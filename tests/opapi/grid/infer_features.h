// Fused attention of inference with padding at the left, shared prefixes, caches of int8, tables of
// blocks and results of int8: further calls of the rows of its operators.
#pragma once

#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {

// The row with the calls that its operator takes of these, against each head's scores in double
// precision.
Row WithInferFeatures(Row row);

}  // namespace acltape::opapi::grid
