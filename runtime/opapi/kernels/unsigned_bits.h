// Unsigned integers of 16, 32 and 64 bits. The library has none, so they lie in signed integers of
// as many bits (Call::Bits), and what needs their values converts them here.
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "runtime/opapi/engine/call.h"
#include "runtime/opapi/engine/kernel.h"

namespace acltape::opapi {

// A tensor of a call: its elements, or their bits where `unsigned_bits` is set.
struct AnyNumbers {
  at::Tensor tensor;
  bool unsigned_bits;
};

AnyNumbers ReadNumbers(const Call& call, int i);
// An output; refuses those that overlap themselves.
AnyNumbers WrittenNumbers(const Call& call, int i);

// Writes the elements of `from`, which broadcast, into `to`. Integers keep their lower bits, as in
// C; fractions are cut off.
void Convert(const AnyNumbers& to, const AnyNumbers& from);

}  // namespace acltape::opapi
