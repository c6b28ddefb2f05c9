// The frame, style and scripts of the page, which page/embed.py puts into the program at build
// time.
#pragma once

#include <string_view>

namespace acltape::page {

extern const std::string_view kPageHead;  // up to the place of the data
extern const std::string_view kPageTail;  // the scripts, and the end

}  // namespace acltape::page
