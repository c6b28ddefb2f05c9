// Halves (IEEE 754 binary16) on the host, for C++. A program in C sees their bits alone.
#ifndef ACLNN_OPDEV_FP16_T_H_
#define ACLNN_OPDEV_FP16_T_H_

#include <stdint.h>

#ifdef __cplusplus

#include <cstring>

namespace op {

class fp16_t {
 public:
  uint16_t val;  // the bits

  fp16_t() : val(0) {}
  fp16_t(float value) : val(FromFloat(value)) {}
  fp16_t(double value) : val(FromFloat(static_cast<float>(value))) {}
  fp16_t(int32_t value) : val(FromFloat(static_cast<float>(value))) {}
  static fp16_t FromBits(uint16_t bits) {
    fp16_t half;
    half.val = bits;
    return half;
  }

  operator float() const { return ToFloat(val); }
  float toFloat() const { return ToFloat(val); }

  // Rounds to the nearest half, to an even one where two are as near.
  static uint16_t FromFloat(float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);   // NaN
    if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7C00u);  // 65536 and more
    if (magnitude < 0x33000000u) return static_cast<uint16_t>(sign);             // below 2^-25
    const bool small = magnitude < 0x38800000u;  // below 2^-14: the half has no leading one
    const uint32_t fraction = (magnitude & 0x7FFFFFu) | 0x800000u;
    const uint32_t cut = small ? 126u - (magnitude >> 23) : 13u;
    const uint32_t kept = small ? fraction >> cut : (magnitude - 0x38000000u) >> cut;
    const uint32_t rest = (small ? fraction : magnitude) & ((1u << cut) - 1u);
    const uint32_t middle = 1u << (cut - 1u);
    const uint32_t up = rest > middle || (rest == middle && (kept & 1u) != 0u) ? 1u : 0u;
    return static_cast<uint16_t>(sign | (kept + up));
  }

  static float ToFloat(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 0x1Fu, fraction = half & 0x3FFu;
    if (exponent == 0u && fraction != 0u) {
      exponent = 1u;
      while ((fraction & 0x400u) == 0u) {
        fraction <<= 1;
        --exponent;
      }
      fraction &= 0x3FFu;
      return Bits(sign | (exponent + 112u) << 23 | fraction << 13);
    }
    if (exponent == 0u) return Bits(sign);
    return Bits(sign | (exponent == 31u ? 255u : exponent + 112u) << 23 | fraction << 13);
  }

 private:
  static float Bits(uint32_t bits) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
};

}  // namespace op

#endif  // __cplusplus
#endif  // ACLNN_OPDEV_FP16_T_H_
