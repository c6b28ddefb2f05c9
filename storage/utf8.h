// Text of a trace that is handed to programs that take nothing but UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace acltape::storage {

// The bytes of the character that begins at `offset`; 0 when they are no UTF-8 (RFC 3629).
size_t Utf8Length(std::string_view text, size_t offset);

bool IsUtf8(std::string_view text);

// The text with U+FFFD in the place of each byte that is not part of UTF-8.
std::string AsUtf8(std::string_view text);

}  // namespace acltape::storage
