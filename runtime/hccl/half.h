// A floating-point number of 16 bits whose conversions compilers turn into vector instructions:
// they have no branch and no call. The values are those of runtime/device/short_floats.h.
#pragma once

#include <bit>
#include <cstdint>

namespace acltape::hccl {

// IEEE 754 binary16. The method is that of M. Dukhan's FP16: numbers are moved into the range of
// normal floats by a multiplication, and the hardware's addition rounds them.
struct Half {
  uint16_t bits;

  Half() = default;
  explicit Half(float value) {
    const auto wide = std::bit_cast<uint32_t>(value);
    const uint32_t twice = wide + wide;  // without the sign
    const float magnitude = std::bit_cast<float>(wide & 0x7FFFFFFFu);
    // Too large numbers become infinite by the first product.
    const float scaled = magnitude * 0x1p112f * 0x1p-110f;
    const uint32_t exponent = twice & 0xFF000000u;
    const uint32_t bias = exponent < 0x71000000u ? 0x71000000u : exponent;
    const auto rounded =
        std::bit_cast<uint32_t>(std::bit_cast<float>((bias >> 1) + 0x07800000u) + scaled);
    const uint32_t number = ((rounded >> 13) & 0x7C00u) + (rounded & 0x0FFFu);
    bits = static_cast<uint16_t>((wide >> 16 & 0x8000u) | (twice > 0xFF000000u ? 0x7E00u : number));
  }
  explicit operator float() const {
    const uint32_t wide = uint32_t{bits} << 16;
    const uint32_t twice = wide + wide;
    const float normal = std::bit_cast<float>((twice >> 4) + (0xE0u << 23)) * 0x1p-112f;
    const float subnormal = std::bit_cast<float>(twice >> 17 | 126u << 23) - 0.5f;
    const float magnitude = twice < 1u << 27 ? subnormal : normal;
    return std::bit_cast<float>((wide & 0x80000000u) | std::bit_cast<uint32_t>(magnitude));
  }
};

}  // namespace acltape::hccl
