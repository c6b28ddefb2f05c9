// The digits of numbers with base 16.
#pragma once

namespace acltape::storage {

inline constexpr char kHexDigits[] = "0123456789abcdef";

}  // namespace acltape::storage
