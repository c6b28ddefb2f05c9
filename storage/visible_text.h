// Text of a trace as a terminal may show it.
#pragma once

#include <string>
#include <string_view>

namespace acltape::storage {

// Control characters, those of C1 among them, as \n, \t, \x1b; a byte that is not part of UTF-8 as
// \xff. All other text stays as it is. A terminal acts upon control characters: a name in a trace
// could otherwise rewrite the screen.
std::string VisibleText(std::string_view text);

}  // namespace acltape::storage
