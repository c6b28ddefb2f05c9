// The makers of the commands of this folder, one per file of the same name.
#pragma once

#include <memory>

#include "cli/frame/command.h"

namespace acltape::cli {

std::unique_ptr<Command> MakeMergeCommand();
std::unique_ptr<Command> MakeTrimCommand();
std::unique_ptr<Command> MakePackCommand();
std::unique_ptr<Command> MakeRedactCommand();
std::unique_ptr<Command> MakeExportCommand();

}  // namespace acltape::cli
