// Commands that are printed can be run as they stand.
#pragma once

#include <string>
#include <string_view>

namespace acltape::storage {

// The text as one word of a POSIX shell, in quotes where it needs them.
std::string ShellWord(std::string_view text);

}  // namespace acltape::storage
