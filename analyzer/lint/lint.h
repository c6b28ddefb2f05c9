// Predicts from a trace what goes wrong when its work is captured: rows of a table of rules
// (analyzer/lint/rule.h), each with a check over the calls in compact form (analyzer/work/work.h).
//
//   const Work work = LoadWork(reader);
//   const LintReport report = Lint(work, {});
#pragma once

#include <string>
#include <vector>

#include "analyzer/lint/finding.h"
#include "analyzer/lint/rule.h"
#include "analyzer/lint/stretch.h"

namespace acltape::analyzer {

// What the graph of a stretch takes of the device (rules CAP-04, LIM-01).
struct StretchBudget {
  int64_t entries = 0;  // queue entries: tasks, a wait counted four times
  int64_t streams = 0;  // stream numbers: entries of each captured stream in pieces of 2016
};

StretchBudget BudgetOf(const CaptureFacts& facts);

struct LintReport {
  std::vector<Stretch> stretches;
  std::vector<StretchBudget> budgets;  // by stretch; zeros of aten traces
  std::vector<Finding> findings;       // in order of calls; those about the whole trace first
};

// Throws Error kUsage when the options choose no call.
LintReport Lint(const Work& work, const LintOptions& options);

}  // namespace acltape::analyzer
