#include "cli/plan/lint_other_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "analyzer/calls/level.h"
#include "analyzer/calls/work.h"
#include "analyzer/lint/both_levels.h"
#include "analyzer/lint/load.h"
#include "cli/plan/lint_report.h"
#include "storage/stored_totals.h"

namespace acltape::cli {
namespace {

// Calls of a trace that is looked at twice without being asked.
constexpr int64_t kMostCalls = 300000;

}  // namespace

std::string FoundAtTheOtherLevel(const storage::Reader& trace, analyzer::lint::LintOptions options,
                                 const WantedStretches& wanted,
                                 const std::function<bool(const analyzer::lint::Finding&)>& counts,
                                 const std::function<std::string(std::string_view level)>& again) {
  using storage::Level;
  storage::TracePart part = trace.part();
  if (!part.level) return "";
  const bool was_acl = *part.level == Level::kAcl;
  part.level = was_acl ? Level::kAten : Level::kAcl;
  const std::string_view name = was_acl ? "aten" : "acl";
  if (!analyzer::HoldsLevel(trace, *part.level)) return "";
  if (storage::CountsOf(trace).calls > kMostCalls) {
    return fmt::format("the level {} was not looked at: {}", name, again(name));
  }
  const storage::Reader other(trace.path(), part);
  const analyzer::Work work = analyzer::lint::LoadStepsForLint(other, *part.level, nullptr);
  options.wanted = wanted(work);
  options.leaves = std::make_shared<analyzer::lint::LeavesBeside>(work);
  analyzer::lint::LintReport report = analyzer::lint::LintLevel(work, options);
  std::erase_if(report.findings, [&](const analyzer::lint::Finding& finding) {
    return finding.by_adapter || IsAboutFailures(*finding.rule) || !counts(finding);
  });
  const size_t findings = FoldCauses(LocateFindings(work, report)).size();
  if (findings == 0) return fmt::format("the level {} has no findings", name);
  return fmt::format("the level {} has {} finding{}, not counted here: {}", name, findings,
                     findings == 1 ? "" : "s", again(name));
}

}  // namespace acltape::cli
