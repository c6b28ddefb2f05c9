// Floating-point numbers of 16 bits, as they lie in memory. Both are computed with as float.
#pragma once

#include <cstdint>
#include <cstring>

#include "acl/acl.h"

namespace acltape::device {

struct Half {
  aclFloat16 bits;
  Half() = default;
  explicit Half(float value) : bits(aclFloatToFloat16(value)) {}
  explicit operator float() const { return aclFloat16ToFloat(bits); }
};

struct Bfloat16 {
  uint16_t bits;
  Bfloat16() = default;
  // Rounds to the nearest, half to even; a NaN stays one.
  explicit Bfloat16(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof(wide));
    const bool is_nan = value != value;
    const uint32_t rounded = wide + 0x7FFF + (wide >> 16 & 1);
    bits = static_cast<uint16_t>((is_nan ? wide | 0x400000 : rounded) >> 16);
  }
  explicit operator float() const {
    const uint32_t wide = uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
};

}  // namespace acltape::device
