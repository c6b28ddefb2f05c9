// Integers of 4 bits, which libtorch has no tensors of. A tensor of dtype ACL_INT4 holds two of
// them in a byte, the first in the lower half; its strides and its offset count integers. An int32
// tensor of eight in one element, the first in the lowest bits, has the same bytes.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "runtime/opapi/engine/call.h"

namespace acltape::opapi {

// A tensor of ACL_INT4 in the caller's memory.
class FourBits {
 public:
  FourBits() = default;
  // Argument `i`, which must be of that dtype and lie in dims without negative strides. With
  // `written` its integers must not share memory.
  FourBits(const Call& call, int i, bool written = false);

  bool defined() const { return defined_; }
  at::IntArrayRef sizes() const { return sizes_; }
  at::Tensor Read() const;                       // gives int8
  void Write(const at::Tensor& integers) const;  // takes numbers between -8 and 7

 private:
  // Calls `visit` with the position of each integer in memory, in row-major order.
  template <typename Visit>
  void ForEach(const Visit& visit) const;

  bool defined_ = false;
  uint8_t* bytes_ = nullptr;
  int64_t offset_ = 0;
  std::vector<int64_t> sizes_, strides_;
};

// True where argument `i` is a tensor of dtype ACL_INT4.
bool IsFourBits(const Call& call, int i);

// Eight integers of 4 bits of each int32 along the last dim, and the reverse.
at::Tensor UnpackInt4(const at::Tensor& packed);
at::Tensor PackInt4(const at::Tensor& integers);

}  // namespace acltape::opapi
