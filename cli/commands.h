// The makers of the commands, one per file of the same name.
#pragma once

#include <memory>

#include "cli/command.h"

namespace acltape::cli {

std::unique_ptr<Command> MakeRecordCommand();
std::unique_ptr<Command> MakeRunCommand();
std::unique_ptr<Command> MakeEnvCommand();
std::unique_ptr<Command> MakeInfoCommand();
std::unique_ptr<Command> MakeQueryCommand();
std::unique_ptr<Command> MakeReportCommand();
std::unique_ptr<Command> MakeGraphCommand();
std::unique_ptr<Command> MakeStepsCommand();
std::unique_ptr<Command> MakeGearsCommand();
std::unique_ptr<Command> MakeCapturesCommand();
std::unique_ptr<Command> MakeJointCommand();
std::unique_ptr<Command> MakePlanCommand();
std::unique_ptr<Command> MakeEmitCommand();
std::unique_ptr<Command> MakeLintCommand();
std::unique_ptr<Command> MakeReplayCommand();
std::unique_ptr<Command> MakeCompareCommand();
std::unique_ptr<Command> MakeProveCommand();
std::unique_ptr<Command> MakeStandardsCommand();
std::unique_ptr<Command> MakeTrimCommand();
std::unique_ptr<Command> MakePackCommand();
std::unique_ptr<Command> MakeRedactCommand();
std::unique_ptr<Command> MakeExportCommand();
std::unique_ptr<Command> MakeExperimentCommand();
std::unique_ptr<Command> MakeBisectCommand();
std::unique_ptr<Command> MakeDiffCommand();
std::unique_ptr<Command> MakeTorchCommand();
std::unique_ptr<Command> MakeDoctorCommand();
std::unique_ptr<Command> MakeCompletionCommand();
std::unique_ptr<Command> MakeManCommand();
std::unique_ptr<Command> MakeServeCallsCommand();

}  // namespace acltape::cli
