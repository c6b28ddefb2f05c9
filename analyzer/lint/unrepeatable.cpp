#include "analyzer/lint/unrepeatable.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <string_view>

#include "analyzer/lint/both_levels.h"
#include "analyzer/lint/load.h"

namespace acltape::analyzer::lint {
namespace {

constexpr std::string_view kRules[] = {"LINT-19", "LINT-43", "LINT-45", "LINT-47", "LINT-48"};

void Take(const LintReport& report, std::vector<Finding>& taken) {
  std::copy_if(report.findings.begin(), report.findings.end(), std::back_inserter(taken),
               [](const Finding& finding) {
                 return std::ranges::find(kRules, finding.rule->id) != std::end(kRules);
               });
}

}  // namespace

std::vector<Finding> FindUnrepeatableValues(const storage::Reader& part_of_trace) {
  storage::TracePart part = part_of_trace.part();
  part.level.reset();
  const storage::Reader trace(part_of_trace.path(), part);
  const Work work = LoadStepsForLint(trace, ChooseCaptureLevel(trace), nullptr);
  LintOptions options;
  options.leaves = std::make_shared<LeavesBeside>(work);
  const LintReport report = LintLevel(work, options);
  std::vector<Finding> taken;
  Take(report, taken);
  if (!report.stretches.empty() && HasLeavesBeside(work)) {
    const auto all = [](const Work&) { return std::function<bool(const Stretch&)>(); };
    Take(LintLeavesBeside(work, report, options, all).report, taken);
  }
  std::stable_sort(taken.begin(), taken.end(),
                   [](const Finding& a, const Finding& b) { return a.call_id < b.call_id; });
  return taken;
}

}  // namespace acltape::analyzer::lint
