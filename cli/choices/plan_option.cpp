#include "cli/choices/plan_option.h"

#include <filesystem>

#include "analyzer/plan/plan_file.h"
#include "analyzer/program/leaves.h"
#include "cli/frame/options.h"

namespace acltape::cli {

void PlanOption::Declare(CLI::App& app) {
  CLI::Option* plan =
      AddOption(app, "plan", path, "Plan file: what the graphs hold, and on which streams");
  AddFlag(app, "allow-races", allow_races,
          "Take a plan whose streams race, to see what comes of it")
      ->needs(plan);
}

std::shared_ptr<const replayer::ChosenPlan> PlanOption::Read(const storage::Reader& trace,
                                                             storage::Results* results) const {
  if (path.empty()) return nullptr;
  const auto chosen = std::make_shared<replayer::ChosenPlan>();
  chosen->path = path;
  chosen->allow_races = allow_races;
  const analyzer::Work work = analyzer::LoadLeaves(trace, nullptr);
  chosen->plan = analyzer::plan::ReadPlan(path, work, allow_races, &chosen->races);
  if (results != nullptr) {
    chosen->plan_id = results->AddPlan(PlanRecordOf(chosen->plan, work, path, "{}"));
  }
  return chosen;
}

storage::PlanRecord PlanRecordOf(const analyzer::plan::Plan& plan, const analyzer::Work& work,
                                 const std::string& path, const std::string& options) {
  storage::PlanRecord record;
  record.name = std::filesystem::path(path).filename().string();
  record.options = options;
  record.document = analyzer::plan::PlanText(plan);
  const auto name = [&](int64_t call_id) {
    return work.Describe(static_cast<size_t>(work.Find(call_id)));
  };
  for (const analyzer::plan::PlanRegion& region : plan.regions) {
    record.regions.push_back({region.captured ? "captured" : "eager", region.first_call,
                              region.last_call, region.reason});
    for (const analyzer::plan::PlanPlacement& place : region.placements) {
      record.placements.push_back({place.call_id, place.stream});
    }
    for (const analyzer::plan::PlanWait& wait : region.waits) {
      record.syncs.push_back({wait.event, wait.record_after, wait.wait_before,
                              name(wait.wait_before) + " after " + name(wait.record_after)});
    }
  }
  return record;
}

}  // namespace acltape::cli
