// Names of recorded programs as texts that every reader of a timeline accepts.
#pragma once

#include <string>
#include <string_view>

namespace acltape::timeline {

// The text with U+FFFD in place of each byte that is not part of valid UTF-8.
std::string ValidUtf8(std::string_view text);

// Appends the text as a string of JSON. Control characters are escaped; bytes that are not UTF-8
// are replaced as above.
void AppendJson(std::string& json, std::string_view text);

}  // namespace acltape::timeline
