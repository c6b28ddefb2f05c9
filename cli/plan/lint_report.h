// Findings of lint for people (grouped, with a summary) and for other tools (SARIF, JUnit).
#pragma once

#include <string>
#include <vector>

#include "cli/plan/lint_identity.h"
#include "cli/tables/tool_text.h"
#include "cli/terminal/table.h"

namespace acltape::cli {

// The message of a finding in a row that has its place in the column `where`: " at PLACE" is left
// out. Places of other calls stay.
std::string MessageBeside(const std::string& message, const std::string& where);

// One finding for those with one cause: one that a device reproduced, else the first of the lowest
// rule, with the counts of all, and the other operators and lines named at the end of its message.
// Known findings stay apart.
std::vector<LocatedFinding> FoldCauses(const std::vector<LocatedFinding>& findings);

// A row for each finding, errors first, then by number of occurrences. Findings that are known are
// left out.
Table GroupedFindings(const std::vector<LocatedFinding>& findings);

// "2 errors, 3 notices in 4 rules in 6 regions; 5 findings of the baseline are not counted". Counts
// findings, not their occurrences; `regions` is "6 regions".
std::string SummaryOfFindings(const std::vector<LocatedFinding>& findings,
                              std::string_view regions);

// SARIF 2.1.0 with one run. Known findings are in it, with baselineState "unchanged". The
// `fingerprint` of a result is its identity. Files are named from the source root.
std::string SarifText(const std::vector<LocatedFinding>& findings, bool has_baseline,
                      const SourceRoot& root);

// JUnit's XML: a test case for each finding, and one for each rule without findings, which passes.
// A finding from `fails_from` on is a failure, a known one is skipped, and others pass.
std::string JunitText(const std::vector<LocatedFinding>& findings, storage::Severity fails_from,
                      bool never_fails);

}  // namespace acltape::cli
