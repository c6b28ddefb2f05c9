#include "storage/visible_text.h"

#include <cstddef>
#include <cstdint>

#include "storage/hex_digits.h"
#include "storage/utf8.h"

namespace acltape::storage {
namespace {

void AppendHex(std::string& text, unsigned char byte) {
  text += "\\x";
  text += kHexDigits[byte >> 4];
  text += kHexDigits[byte & 15];
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
    const size_t length = Utf8Length(text, offset);
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
