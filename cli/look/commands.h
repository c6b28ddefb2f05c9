// The makers of the commands of this folder, one per file of the same name.
#pragma once

#include <memory>

#include "cli/frame/command.h"

namespace acltape::cli {

std::unique_ptr<Command> MakeInfoCommand();
std::unique_ptr<Command> MakeQueryCommand();
std::unique_ptr<Command> MakeReportCommand();
std::unique_ptr<Command> MakeGraphCommand();
std::unique_ptr<Command> MakeStepsCommand();
std::unique_ptr<Command> MakeCapturesCommand();
std::unique_ptr<Command> MakeWaitsCommand();
std::unique_ptr<Command> MakeRanksCommand();

}  // namespace acltape::cli
