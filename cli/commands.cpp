#include "cli/commands.h"

#include "cli/bisect/commands.h"
#include "cli/files/commands.h"
#include "cli/fleet/commands.h"
#include "cli/gate/commands.h"
#include "cli/help/commands.h"
#include "cli/look/commands.h"
#include "cli/plan/commands.h"
#include "cli/record/commands.h"
#include "cli/replay/commands.h"

namespace acltape::cli {

std::vector<std::unique_ptr<Command>> AllCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeRecordCommand());
  commands.push_back(MakeRunCommand());
  commands.push_back(MakeEnvCommand());
  commands.push_back(MakeInfoCommand());
  commands.push_back(MakeQueryCommand());
  commands.push_back(MakeReportCommand());
  commands.push_back(MakeGraphCommand());
  commands.push_back(MakeStepsCommand());
  commands.push_back(MakeGearsCommand());
  commands.push_back(MakeCapturesCommand());
  commands.push_back(MakeWaitsCommand());
  commands.push_back(MakeRanksCommand());
  commands.push_back(MakeJointCommand());
  commands.push_back(MakePlanCommand());
  commands.push_back(MakeEmitCommand());
  commands.push_back(MakeLintCommand());
  commands.push_back(MakeGateCommand());
  commands.push_back(MakeReplayCommand());
  commands.push_back(MakeCompareCommand());
  commands.push_back(MakeProveCommand());
  commands.push_back(MakeStandardsCommand());
  commands.push_back(MakeMergeCommand());
  commands.push_back(MakeTrimCommand());
  commands.push_back(MakePackCommand());
  commands.push_back(MakeRedactCommand());
  commands.push_back(MakeExportCommand());
  commands.push_back(MakeFleetCommand());
  commands.push_back(MakeExperimentCommand());
  commands.push_back(MakeBisectCommand());
  commands.push_back(MakeDiffCommand());
  commands.push_back(MakeTorchCommand());
  commands.push_back(MakeDoctorCommand());
  commands.push_back(MakeCompletionCommand());
  commands.push_back(MakeManCommand());
  commands.push_back(MakeServeCallsCommand());
  return commands;
}

}  // namespace acltape::cli
