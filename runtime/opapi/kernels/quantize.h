// Parts that quantising operators share: the values that an integer output holds, and a scale for
// each row.
#pragma once

#include <ATen/ATen.h>

#include "runtime/opapi/engine/call.h"
#include "runtime/opapi/kernels/four_bits.h"

namespace acltape::opapi {

struct IntegerRange {
  double low, high;
};

// The values that an output of a quantisation holds; rejects other outputs than integers.
IntegerRange RangeOf(const Call& call, int i, const at::Tensor& out);

// An output of quantised integers: int8, int4, or int32, which packs eight of int4 along the last
// dim.
struct QuantizedOut {
  IntegerRange range;
  at::Tensor view;     // undefined for int4
  FourBits four_bits;  // int4 alone
  bool packed = false;

  // Whole numbers within the range, of the unpacked sizes.
  void Write(const at::Tensor& values) const;
};
// `sizes` are those of the unpacked result; others are rejected. uint8 is taken where a zero point
// can move all values into its range.
enum class Bytes : uint8_t { kSigned, kBoth };
QuantizedOut ReadQuantizedOut(const Call& call, int i, at::IntArrayRef sizes,
                              Bytes bytes = Bytes::kSigned);

void ExpectInt8(const Call& call, int i, const at::Tensor& tensor);

// Rows in steps of a scale of their own, so that the greatest magnitude of each row becomes `most`.
struct ScaledRows {
  at::Tensor values;  // whole numbers of -most - 1 to most, in the input's dtype
  at::Tensor scale;   // the input's sizes without the last dim
};
ScaledRows ScaleRows(const at::Tensor& input, double most = 127);

}  // namespace acltape::opapi
