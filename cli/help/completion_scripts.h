// Scripts that complete the command line of acltape in shells.
#pragma once

#include <string>
#include <vector>

#include "cli/help/option_list.h"

namespace acltape::cli {

std::string BashCompletion(const CommandText& root, const std::vector<CommandText>& commands);
std::string ZshCompletion(const CommandText& root, const std::vector<CommandText>& commands);
std::string FishCompletion(const CommandText& root, const std::vector<CommandText>& commands);

}  // namespace acltape::cli
