#include "storage/utf8.h"

#include <cstdint>
#include <cstring>

namespace acltape::storage {

size_t Utf8Length(std::string_view text, size_t offset) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(offset);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(offset + i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what is above U+10FFFF.
  const unsigned second = byte(offset + 1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

bool IsUtf8(std::string_view text) {
  constexpr uint64_t kNotAscii = 0x8080808080808080;
  size_t offset = 0;
  while (offset < text.size()) {
    uint64_t word = 0;
    if (offset + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + offset, sizeof word);
      if ((word & kNotAscii) == 0) {
        offset += sizeof word;
        continue;
      }
    }
    const size_t length = Utf8Length(text, offset);
    if (length == 0) return false;
    offset += length;
  }
  return true;
}

std::string AsUtf8(std::string_view text) {
  std::string result;
  for (size_t offset = 0; offset < text.size();) {
    const size_t length = Utf8Length(text, offset);
    result += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(offset, length);
    offset += length == 0 ? 1 : length;
  }
  return result;
}

}  // namespace acltape::storage
