// Results of int8 of an attention operator: whole numbers of result * scale + offset.
#pragma once

#include <ATen/ATen.h>

#include "runtime/opapi/engine/call.h"

namespace acltape::opapi {

struct OutScale {
  at::Tensor scale, offset;      // one number, or one for each channel; may be undefined
  int64_t heads = 0, width = 0;  // channels of the result

  // `result` [batches, heads, rows, width] as it is written: in steps of the scale where there is
  // one.
  at::Tensor Apply(const at::Tensor& result) const;
};

// Reads argument `i` and the one after it for the output `out`; rejects the call where they do not
// fit. `i` is negative where the operator takes no scale. `query` is the dtype of the queries.
OutScale ReadOutScale(const Call& call, int i, int out_index, const at::Tensor& out,
                      at::ScalarType query, int64_t heads, int64_t width);

}  // namespace acltape::opapi
