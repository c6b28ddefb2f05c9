// The makers of the commands of this folder, one per file of the same name.
#pragma once

#include <memory>

#include "cli/frame/command.h"

namespace acltape::cli {

std::unique_ptr<Command> MakeReplayCommand();
std::unique_ptr<Command> MakeCompareCommand();
std::unique_ptr<Command> MakeProveCommand();
std::unique_ptr<Command> MakeStandardsCommand();
std::unique_ptr<Command> MakeExperimentCommand();

}  // namespace acltape::cli
