#include "cli/commands.h"

namespace acltape::cli {

std::vector<std::unique_ptr<Command>> AllCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  for (auto* make : {
           MakeRecordCommand, MakeRunCommand,        MakeEnvCommand,        MakeInfoCommand,
           MakeQueryCommand,  MakeReportCommand,     MakeGraphCommand,      MakeStepsCommand,
           MakeGearsCommand,  MakeCapturesCommand,   MakeJointCommand,      MakePlanCommand,
           MakeEmitCommand,   MakeLintCommand,       MakeReplayCommand,     MakeCompareCommand,
           MakeProveCommand,  MakeStandardsCommand,  MakeTrimCommand,       MakePackCommand,
           MakeRedactCommand, MakeExportCommand,     MakeExperimentCommand, MakeBisectCommand,
           MakeDiffCommand,   MakeTorchCommand,      MakeDoctorCommand,     MakeCompletionCommand,
           MakeManCommand,    MakeServeCallsCommand,
       }) {
    commands.push_back(make());
  }
  return commands;
}

}  // namespace acltape::cli
