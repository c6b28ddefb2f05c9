// Parts that quantising operators share: the values that an integer output holds, and a scale for
// each row.
#pragma once

#include <ATen/ATen.h>

#include "runtime/opapi/engine/call.h"

namespace acltape::opapi {

struct IntegerRange {
  double low, high;
};

// The values that an output of a quantisation holds; rejects other outputs than integers.
IntegerRange RangeOf(const Call& call, int i, const at::Tensor& out);

void ExpectInt8(const Call& call, int i, const at::Tensor& tensor);

// Rows in steps of a scale of their own, so that the greatest magnitude of each row becomes 127.
struct ScaledRows {
  at::Tensor values;  // whole numbers of -128 to 127, in the input's dtype
  at::Tensor scale;   // the input's sizes without the last dim
};
ScaledRows ScaleRows(const at::Tensor& input);

}  // namespace acltape::opapi
