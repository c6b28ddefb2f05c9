// The makers of the commands of this folder, one per file of the same name.
#pragma once

#include <memory>

#include "cli/frame/command.h"

namespace acltape::cli {

std::unique_ptr<Command> MakeGearsCommand();
std::unique_ptr<Command> MakeJointCommand();
std::unique_ptr<Command> MakePlanCommand();
std::unique_ptr<Command> MakeEmitCommand();
std::unique_ptr<Command> MakeLintCommand();

}  // namespace acltape::cli
