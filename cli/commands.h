// All commands of acltape.
#pragma once

#include <memory>
#include <vector>

#include "cli/frame/command.h"

namespace acltape::cli {

// In the order in which help lists them.
std::vector<std::unique_ptr<Command>> AllCommands();

}  // namespace acltape::cli
