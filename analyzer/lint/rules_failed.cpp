// Rules about what failed in the recording itself. What the framework or the program handled is no
// finding; FindFailures tells it all the same.
#include <algorithm>

#include "analyzer/lint/failures.h"
#include "analyzer/lint/lint.h"

namespace acltape::analyzer::lint {
namespace {

void AddFailures(const LintContext& context, FailureRole role, Found& found) {
  const Failures failures = FindFailures(*context.work.trace);
  for (const Failure& failure : failures.rows) {
    if (failure.role != role) continue;
    const Work& work = context.work;
    const int64_t inner = work.Find(failure.call_id);
    Found::Options options;
    options.subject = std::to_string(failure.call_id);
    options.other = failure.operator_call == 0 ? -1 : work.Find(failure.operator_call);
    found.Add(inner >= 0 || failure.leaf == 0 ? inner : work.Find(failure.leaf),
              FailureSentence(failures, failure), options);
  }
}

}  // namespace

void CheckFailedCall(const LintContext& context, Found& found) {
  AddFailures(context, FailureRole::kEnded, found);
}

void CheckLostCall(const LintContext& context, Found& found) {
  AddFailures(context, FailureRole::kWentOn, found);
}

bool IsAboutFailures(const LintRule& rule) {
  return rule.check == CheckFailedCall || rule.check == CheckLostCall;
}

void LeaveOutToldFailures(const Work& work, const std::vector<Stretch>& stretches,
                          std::vector<Finding>& findings) {
  const auto tells = [&](const Finding& other, const Finding& failure) {
    if (IsAboutFailures(*other.rule) || other.rule->severity != storage::Severity::kError) {
      return false;
    }
    if (other.call_id == failure.call_id) return other.verdict != "refuted";
    const int64_t call = failure.call_id == 0 ? -1 : work.Find(failure.call_id);
    if (call < 0) return false;
    if (other.fails_at == FailsAt::kExecution) {
      return other.codes[0] == work.calls[static_cast<size_t>(call)].status;
    }
    if (other.verdict != "reproduced") return false;
    const Stretch& stretch = stretches[other.stretch];
    const int64_t end = std::max(stretch.end_call, static_cast<int64_t>(stretch.end) - 1);
    return stretch.recorded() && stretch.begin_call <= call && call <= end;
  };
  std::vector<Finding> kept;
  for (Finding& finding : findings) {
    const bool told = IsAboutFailures(*finding.rule) &&
                      std::any_of(findings.begin(), findings.end(),
                                  [&](const Finding& other) { return tells(other, finding); });
    if (!told) kept.push_back(finding);
  }
  findings = std::move(kept);
}

}  // namespace acltape::analyzer::lint
