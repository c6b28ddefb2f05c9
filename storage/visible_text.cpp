#include "storage/visible_text.h"

#include <cstddef>
#include <cstdint>

#include "storage/hex_digits.h"

namespace acltape::storage {
namespace {

void AppendHex(std::string& text, unsigned char byte) {
  text += "\\x";
  text += kHexDigits[byte >> 4];
  text += kHexDigits[byte & 15];
}

// The bytes of the character that begins at `offset`; 0 when they are no UTF-8 (RFC 3629).
size_t LengthOf(std::string_view text, size_t offset) {
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

// A terminal takes these for commands, or writes what follows from right to left.
bool ActsOnATerminal(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  const auto second = static_cast<unsigned char>(character[1]);
  if (character.size() == 2) return first == 0xc2 && second < 0xa0;  // C1
  if (character.size() != 3 || first != 0xe2) return false;
  const auto third = static_cast<unsigned char>(character[2]);
  return (second == 0x80 && ((third >= 0xaa && third <= 0xae) || third == 0x8e || third == 0x8f)) ||
         (second == 0x81 && third >= 0xa6 && third <= 0xa9);  // marks of direction
}

}  // namespace

std::string VisibleText(std::string_view text) {
  std::string visible;
  visible.reserve(text.size());
  for (size_t offset = 0; offset < text.size();) {
    const size_t length = LengthOf(text, offset);
    const std::string_view character = text.substr(offset, length == 0 ? 1 : length);
    if (length != 0 && !ActsOnATerminal(character)) {
      visible += character;
    } else if (character == "\n") {
      visible += "\\n";
    } else if (character == "\t") {
      visible += "\\t";
    } else if (character == "\r") {
      visible += "\\r";
    } else {
      for (const char c : character) AppendHex(visible, static_cast<unsigned char>(c));
    }
    offset += character.size();
  }
  return visible;
}

}  // namespace acltape::storage
