// The makers of the commands of this folder, one per file of the same name.
#pragma once

#include <memory>

#include "cli/frame/command.h"

namespace acltape::cli {

std::unique_ptr<Command> MakeFleetCommand();

}  // namespace acltape::cli
