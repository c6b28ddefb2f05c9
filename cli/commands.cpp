#include "cli/commands.h"

namespace acltape::cli {

std::vector<std::unique_ptr<Command>> AllCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  for (auto* make : {
#ifdef ACLTAPE_HAS_COLLECTOR
           MakeRecordCommand,
#endif
           MakeInfoCommand,
           MakeQueryCommand,
           MakeGraphCommand,
#ifdef ACLTAPE_HAS_REPLAYER
           MakeReplayCommand,
           MakeCompareCommand,
#endif
           MakeDoctorCommand,
       }) {
    commands.push_back(make());
  }
  return commands;
}

}  // namespace acltape::cli
