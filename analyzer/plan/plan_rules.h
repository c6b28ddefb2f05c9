// The rules that a usable plan keeps, as a table, and the error that names the row of the plan that
// breaks one. docs/plan_format.md has the same table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "storage/error.h"

namespace acltape::analyzer::plan {

enum class PlanRule : uint8_t {
  kSyntax,
  kUnknownKey,
  kMissingKey,
  kWrongValue,
  kNewerVersion,
  kOtherTrace,
  kUnknownCall,
  kOtherOperator,
  kRegionOverlap,
  kRegionGap,
  kEagerContents,
  kBarrier,
  kOutsideRegion,
  kCallTwice,
  kCallMissing,
  kStreamRange,
  kSelfWait,
  kWaitCycle,
  kWaitBackwards,
  kEventReuse,
  kIssueOrder,
  kRace,
  kUnknownSoc,
  kStreamBudget,
  kEventBudget,
  kQueueBudget,
  kNoInput,
  kNoArgument,
  kNoUpdate,
};

struct PlanRuleRow {
  std::string_view id;    // "PLAN-01"
  std::string_view text;  // the condition that must hold
};
const PlanRuleRow& RowOf(PlanRule rule);
std::span<const PlanRuleRow> PlanRules();  // in order of PlanRule

// A plan breaks a rule. The kind is kUsage. The text is one sentence that begins with the row and
// ends with the rule: "region 1, wait 0 (record after call 7, wait before call 7): a call cannot
// wait for itself (PLAN-17)".
class PlanError : public Error {
 public:
  PlanError(PlanRule rule, const std::string& row, const std::string& sentence)
      : PlanError(rule, row, sentence, "") {}
  // This error with the name of the file in front.
  PlanError In(const std::string& file) const { return {rule_, row_, sentence_, file + ": "}; }

  PlanRule rule() const { return rule_; }
  const std::string& row() const { return row_; }

 private:
  PlanError(PlanRule rule, const std::string& row, const std::string& sentence,
            const std::string& before)
      : Error(ErrorKind::kUsage,
              before + row + ": " + sentence + " (" + std::string(RowOf(rule).id) + ")"),
        rule_(rule),
        row_(row),
        sentence_(sentence) {}

  PlanRule rule_;
  std::string row_;
  std::string sentence_;
};

}  // namespace acltape::analyzer::plan
