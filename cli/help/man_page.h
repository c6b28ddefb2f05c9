// Manual pages of acltape in the language of troff.
#pragma once

#include <string>
#include <vector>

#include "cli/help/option_list.h"

namespace acltape::cli {

// acltape(1), with the commands.
std::string RootPage(const CommandText& root, const std::vector<CommandText>& commands);
// acltape-record(1)
std::string CommandPage(const CommandText& command);

}  // namespace acltape::cli
