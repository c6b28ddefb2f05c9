#include "cli/plan_option.h"

#include "analyzer/plan/plan_file.h"
#include "analyzer/work/work.h"

namespace acltape::cli {

void PlanOption::Declare(CLI::App& app) {
  CLI::Option* plan =
      app.add_option("--plan", path, "Plan file: what the graphs hold, and on which streams");
  app.add_flag("--allow-races", allow_races,
               "Take a plan whose streams race, to see what comes of it")
      ->needs(plan);
}

std::shared_ptr<const replayer::ChosenPlan> PlanOption::Read(const storage::Reader& trace) const {
  if (path.empty()) return nullptr;
  const auto chosen = std::make_shared<replayer::ChosenPlan>();
  chosen->path = path;
  chosen->allow_races = allow_races;
  chosen->plan = analyzer::ReadPlan(path, analyzer::LoadWork(trace), allow_races, &chosen->races);
  return chosen;
}

}  // namespace acltape::cli
