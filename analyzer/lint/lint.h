// Predicts from a trace what goes wrong when its work is captured. Each rule is a row of a table
// (analyzer/lint/rule.h) with a check over the calls in compact form (analyzer/calls/work.h).
//
//   const Work work = LoadWork(reader);
//   const LintReport report = Lint(work, {});
#pragma once

#include <string>
#include <vector>

#include "analyzer/lint/finding.h"
#include "analyzer/lint/rule.h"
#include "analyzer/lint/stretch.h"

namespace acltape::analyzer::lint {

// The device resources that the graph of a stretch takes (rules CAP-04, LIM-01).
struct StretchBudget {
  int64_t entries = 0;  // tasks; a wait counts four times
  int64_t streams = 0;  // stream numbers, one for each 2016 entries of a stream
};

StretchBudget BudgetOf(const CaptureFacts& facts);

struct LintReport {
  std::vector<Stretch> stretches;
  std::vector<StretchBudget> budgets;  // by stretch; zeros in aten traces
  std::vector<Finding> findings;       // in order of calls; findings about the trace come first
  // Leaves of a program that executes graphs of its own: the findings are about what goes on
  // between these.
  bool around_graphs = false;
};

// Throws Error kUsage when the options choose no call. LintLevel (both_levels.h) is what the
// command asks.
LintReport Lint(const Work& work, const LintOptions& options);

}  // namespace acltape::analyzer::lint
