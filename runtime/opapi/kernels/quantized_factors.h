// Factors of quantised matrices, and matrices of small integers, for the products of them.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "runtime/opapi/engine/call.h"
#include "runtime/opapi/kernels/four_bits.h"

namespace acltape::opapi {

// Rejects the call unless tensor `i` has one element, or one for each column.
void ExpectPerColumn(const Call& call, int i, const at::Tensor& values, int64_t columns);

// Factors as floats. Those of 64 bits are the device's parameters (aclnnTransQuantParamV2), whose
// lower half holds the upper 19 bits of a float.
at::Tensor ScaleOf(const at::Tensor& scale);
// The offsets that such parameters hold in bits 37 to 45.
at::Tensor OffsetOf(const at::Tensor& scale);

// Factors or offsets of a matrix of [inner, columns]: one for all, one for each column, or one for
// each column and each group of rows. A group of 0 rows means that there are no groups.
at::Tensor Spread(const at::Tensor& values, int64_t inner, int64_t group);
void ExpectSpread(const Call& call, int i, const at::Tensor& values, int64_t inner, int64_t columns,
                  int64_t group);

// (matrix + offset) * scale, in float32, with both results rounded to `dtype` as devices do. The
// offset may be undefined.
at::Tensor Dequantized(const at::Tensor& matrix, const at::Tensor& offset, const at::Tensor& scale,
                       int64_t inner, int64_t group, at::ScalarType dtype);

// A matrix of integers of 8 bits, or of 4 bits that lie packed in int32 along either dim, or one
// after the other.
struct IntegerMatrix {
  at::Tensor view = {};
  int64_t packed_dim = 0;  // -1 or -2, 0: not packed in int32
  FourBits four_bits = {};

  bool OfFourBits() const { return packed_dim != 0 || four_bits.defined(); }
  std::vector<int64_t> sizes() const;
  at::Tensor Read() const;
};
// The argument as it is; integers of 4 bits in int32 are packed along the last dim.
IntegerMatrix ReadIntegers(const Call& call, int i);
// A second factor of a product over `inner` rows, which says along which dim it is packed.
IntegerMatrix ReadIntegerMatrix(const Call& call, int i, int64_t inner);

}  // namespace acltape::opapi
