// The JSON files that programs give to aclInit and its like (INIT-04).
#pragma once

#include <string>

#include "acl/acl.h"

namespace acltape::device {

// Reads the text of a configuration in a form without blanks and with sorted members.
// Empty when there is nothing in it, or no path. `raw`, if given, gets the file as it is.
aclError ReadConfiguration(const char* path, const char* call, std::string* text,
                           std::string* raw = nullptr);

}  // namespace acltape::device
