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

void LeaveOutToldFailures(std::vector<Finding>& findings) {
  std::erase_if(findings, [&](const Finding& failure) {
    if (!IsAboutFailures(*failure.rule)) return false;
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& other) {
      return other.call_id == failure.call_id && other.verdict == "reproduced" &&
             !IsAboutFailures(*other.rule);
    });
  });
}

}  // namespace acltape::analyzer::lint
