#include "page/against.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analyzer/diff/diff.h"
#include "analyzer/steps/step_times.h"
#include "analyzer/steps/steps.h"
#include "page/facts.h"
#include "page/rows.h"

namespace acltape::page {
namespace {

using nlohmann::json;

constexpr int64_t kMostCallsToAlign = 200000;

// Nanoseconds of each step, and those that the host spent inside of its calls.
json StepTimesOf(const storage::Reader& trace) {
  json times = json::array();
  try {
    analyzer::Work work = analyzer::LoadWork(trace);
    analyzer::AssignSteps(work, nullptr);
    const std::vector<int64_t> walls = analyzer::StepTimes(work);
    for (size_t s = 0; s < work.steps.size(); ++s) {
      const analyzer::StepRange& step = work.steps[s];
      int64_t inside = 0;
      for (int64_t call = step.first; call < step.end; ++call) {
        inside += work.calls[call].duration_ns;
      }
      times.push_back({step.step, walls[s], inside});
    }
  } catch (const Error&) {
    // A trace without work has no steps; its other figures are shown all the same.
  }
  return times;
}

json SideOf(const storage::Reader& trace) {
  json side;
  side["facts"] = FactsOf(trace, trace.Steps());
  side["totals"] = TotalsOf(trace);
  side["step_times"] = StepTimesOf(trace);
  return side;
}

json FirstDifference(const storage::Reader& a, const storage::Reader& b,
                     const std::function<void(int64_t, int64_t)>& progress) {
  if (std::max(a.CallCount(true), b.CallCount(true)) > kMostCallsToAlign) {
    return {
        {"note", fmt::format("The traces were not aligned, because one has more than {} leaves; "
                             "`acltape diff` does it.",
                             kMostCallsToAlign)}};
  }
  try {
    analyzer::diff::DiffOptions options;
    options.progress = progress;
    const analyzer::diff::DiffReport report = analyzer::diff::Diff(a, b, options);
    json found{{"standard", report.standard},
               {"aligned", report.counts.aligned},
               {"changed", report.counts.changed},
               {"inserted", report.counts.inserted},
               {"deleted", report.counts.deleted},
               {"equal", report.counts.equal},
               {"within", report.counts.within},
               {"different", report.counts.different},
               {"not_comparable", report.counts.not_comparable}};
    if (report.first >= 0) {
      const analyzer::diff::DiffRow& row = report.rows[static_cast<size_t>(report.first)];
      found["first"] = {{"a_calls", row.a_calls},
                        {"b_calls", row.b_calls},
                        {"a_op", row.a_op},
                        {"b_op", row.b_op},
                        {"cause", std::string(analyzer::diff::DiffCauseName(row.cause))},
                        {"change", row.change},
                        {"output", row.output},
                        {"reason", row.reason}};
    }
    return found;
  } catch (const Error& error) {
    return {{"note", error.what()}};
  }
}

}  // namespace

json AgainstView(const storage::Reader& a, const storage::Reader& b,
                 const std::function<void(int64_t, int64_t)>& progress) {
  return {{"a", SideOf(a)}, {"b", SideOf(b)}, {"diff", FirstDifference(a, b, progress)}};
}

}  // namespace acltape::page
