// Where a finding of lint lies in the program, and which finding it is: an identity that holds when
// the program is recorded again, so that findings known before can be left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/lint/lint.h"
#include "storage/new_file.h"

namespace acltape::cli {

struct LocatedFinding {
  const analyzer::lint::Finding* finding = nullptr;
  std::string op;     // "aten::item"; empty: a finding about the trace as a whole
  std::string scope;  // path of the module or range; empty: none
  std::string place;  // "train.py:17 (forward)"; empty: not known
  std::string file;   // the program's source
  int64_t line = 0;
  std::string function;
  // Counts from 1 the findings of one region that are equal in rule, operator, scope and place.
  int64_t ordinal = 1;
  bool known = false;  // the baseline has it
  // What is told of it. Findings with one cause are told as one (FoldCauses).
  std::string message;
  std::string verdict;
  int64_t count = 1;     // occurrences
  int64_t findings = 1;  // findings with this cause
  // True for a call of which each recording has another number at other places, such as a query of
  // an event. Its place and its ordinal are no part of its identity.
  bool anywhere = false;

  // That of the rule; info for what only the framework's adapter could change.
  storage::Severity severity() const;
  // True if it counts for an exit code that findings from `least` on decide.
  bool Counts(storage::Severity least) const {
    return !known && !finding->by_adapter && severity() >= least;
  }

  // "train.py:17 (forward)", else the scope, else empty.
  std::string Where() const;
  // Rule, operator, scope, place and ordinal. Of the place only the file's name and the function
  // count, so that another checkout, or a line added above, gives the same identity. Call ids are
  // no part of it.
  std::string Identity() const;
};

// In the order of the report's findings, which must outlive the result.
std::vector<LocatedFinding> LocateFindings(const analyzer::Work& work,
                                           const analyzer::lint::LintReport& report);

// A baseline is a JSON file:
//   {"acltape_lint_baseline": 1, "findings": [{"identity": "LINT-40 | aten::item | ...", ...}]}
// Only identities are read from it; the rest is for people who review the file.
// A new one replaces an earlier baseline, and no other file.
storage::OutputRules BaselineRules(const std::string& trace);
void WriteBaseline(const std::string& path, const std::string& trace,
                   const std::vector<LocatedFinding>& findings);
// Throws Error kUsage when the file is missing or is no baseline.
std::set<std::string> ReadBaseline(const std::string& path);

}  // namespace acltape::cli
