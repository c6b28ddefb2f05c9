#include "analyzer/ranks/steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/steps/steps.h"
#include "storage/checked_row.h"
#include "storage/database.h"

namespace acltape::analyzer::ranks {
namespace {

using storage::CheckedRow;
using storage::Statement;

// A search for what repeats holds all leaves of a rank in memory.
constexpr int64_t kMostCallsForSearches = 2'000'000;

std::vector<storage::Step> StepsOf(const storage::Reader& process, RankSteps& found) {
  std::vector<storage::Step> steps = process.Steps();
  if (!steps.empty() && steps.front().found_by != kFoundByPeriod) return steps;
  found.guessed = true;
  if (process.CallCount(false) > kMostCallsForSearches) {
    found.looked_for = false;
    return {};
  }
  Work work = LoadWork(process);
  if (work.steps.empty()) AssignSteps(work, nullptr);
  return StepRows(work);
}

}  // namespace

size_t RankSteps::common() const {
  size_t least = by_process.empty() ? 0 : SIZE_MAX;
  for (const auto& [process, steps] : by_process) least = std::min(least, steps.size());
  return least;
}

std::string RankSteps::CountsText(const Communication& all) const {
  const bool same = std::ranges::all_of(by_process, [&](const auto& entry) {
    return entry.second.size() == by_process.begin()->second.size();
  });
  if (same) return fmt::format("{} on each rank", common());
  std::vector<std::pair<int64_t, int64_t>> in_order;  // rank, process
  for (const auto& [process, rank] : all.ranks) in_order.emplace_back(rank, process);
  std::ranges::sort(in_order);
  std::string text;
  for (const auto& [rank, process] : in_order) {
    const auto steps = by_process.find(process);
    text += fmt::format("{}{} on rank {}", text.empty() ? "" : ", ",
                        steps == by_process.end() ? 0 : steps->second.size(), rank);
  }
  return text;
}

RankSteps FindRankSteps(const storage::Reader& trace, const Communication& all) {
  RankSteps found;
  Statement time(trace.database(),
                 "SELECT min(begin_ns), max(begin_ns + duration_ns) FROM call_row "
                 "WHERE call_id BETWEEN ?1 AND ?2 AND thread_id IN "
                 "(SELECT thread_id FROM thread WHERE process_id = ?3)");
  const CheckedRow row(time, trace.path(), "call_row");
  for (const auto& [process, rank] : all.ranks) {
    const storage::Reader of_process(
        trace.path(), storage::TracePart{.process = std::to_string(process), .level = {}});
    std::vector<StepTime>& times = found.by_process[process];
    for (const storage::Step& step : StepsOf(of_process, found)) {
      time.Bind(1, step.first_call);
      time.Bind(2, step.last_call);
      time.Bind(3, process);
      if (time.Next() && !row.IsNull(0)) {
        times.push_back(
            {row.Integer(0, "begin_ns", -kMost, kMost), row.Integer(1, "end_ns", -kMost, kMost)});
      }
      time.Reset();
    }
  }
  return found;
}

}  // namespace acltape::analyzer::ranks
