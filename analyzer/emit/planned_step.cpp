#include "analyzer/emit/planned_step.h"

#include <algorithm>
#include <unordered_map>

#include "analyzer/calls/value_text.h"

namespace acltape::analyzer::emit {

std::vector<PlannedCall> ResolvePlan(const plan::Plan& plan, const Work& work) {
  std::vector<PlannedCall> calls;
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    const plan::PlanRegion& region = plan.regions[r];
    std::unordered_map<int64_t, size_t> placed;  // call id to place in order of issue
    for (size_t i = 0; i < region.placements.size(); ++i) {
      placed[region.placements[i].call_id] = i;
    }
    const auto first = static_cast<size_t>(work.Find(region.first_call));
    const auto last = static_cast<size_t>(work.Find(region.last_call));
    int32_t issue = 0;
    for (size_t call = first; call <= last; ++call) {
      if (!work.form(call).active()) continue;
      PlannedCall& row = calls.emplace_back();
      row.call = call;
      row.region = static_cast<int32_t>(r);
      row.issue = issue++;
      if (!region.captured) continue;
      const int64_t id = work.calls[call].call_id;
      row.issue = static_cast<int32_t>(placed.at(id));
      row.stream = region.placements[row.issue].stream;
      for (const plan::PlanWait& wait : region.waits) {
        if (wait.wait_before == id) row.waits.push_back(wait);
        row.recorded = row.recorded || wait.record_after == id;
      }
    }
  }
  return calls;
}

std::string ResultText(const Work& work, size_t call) {
  const std::vector<FormAccess>& accesses = work.form(call).accesses;
  auto access =
      std::find_if(accesses.begin(), accesses.end(), [](const FormAccess& a) { return a.write; });
  if (access == accesses.end()) access = accesses.begin();
  if (access == accesses.end()) return "";
  return std::string(storage::DTypeName(access->layout->dtype)) + ListText(access->layout->shape);
}

}  // namespace acltape::analyzer::emit
