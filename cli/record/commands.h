// The makers of the commands of this folder, one per file of the same name.
#pragma once

#include <memory>

#include "cli/frame/command.h"

namespace acltape::cli {

std::unique_ptr<Command> MakeRecordCommand();
std::unique_ptr<Command> MakeRunCommand();
std::unique_ptr<Command> MakeEnvCommand();
std::unique_ptr<Command> MakeTorchCommand();
std::unique_ptr<Command> MakeDoctorCommand();

}  // namespace acltape::cli
