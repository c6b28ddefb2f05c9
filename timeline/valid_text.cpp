#include "timeline/valid_text.h"

#include <algorithm>

#include "storage/json_text.h"

namespace acltape::timeline {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the valid sequence at the front of the text, 0: there is none. Forms longer than needed,
// halves of surrogate pairs and numbers above 0x10FFFF are not valid.
size_t SequenceLength(std::string_view text) {
  const auto byte = [text](size_t index) { return static_cast<unsigned char>(text[index]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  unsigned char lowest = 0x80, highest = 0xBF;  // bounds of the second byte
  if (lead == 0xE0) lowest = 0xA0;
  if (lead == 0xED) highest = 0x9F;
  if (lead == 0xF0) lowest = 0x90;
  if (lead == 0xF4) highest = 0x8F;
  if (byte(1) < lowest || byte(1) > highest) return 0;
  for (size_t index = 2; index < length; ++index) {
    if (byte(index) < 0x80 || byte(index) > 0xBF) return 0;
  }
  return length;
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    valid += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return valid;
}

void AppendJson(std::string& json, std::string_view text) {
  storage::AppendQuoted(json, ValidUtf8(text));
}

}  // namespace acltape::timeline
