// The answer of a gate for people (table, Markdown) and for other tools (JSON, SARIF, JUnit).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/gate/changes.h"
#include "cli/gate/gate_files.h"
#include "cli/gate/gate_times.h"
#include "cli/tables/tool_text.h"
#include "cli/terminal/table.h"

namespace acltape::cli {

struct GateTimes {
  TimeRatio before;
  TimeRatio now;
  double limit = 0;
  TimeVerdict verdict = TimeVerdict::kNotKnown;
  std::string why;  // why it is not known; empty: the intervals
};

struct GateAnswer {
  std::string trace;
  const analyzer::gate::Measured* measured = nullptr;
  std::vector<analyzer::gate::Change> changes;
  std::optional<GateTimes> times;
  std::string baseline;  // path

  // 0: all equal or allowed. 1: something differs. 125: nothing differs, and something is not
  // known.
  int ExitCode() const;
  // "2 measures differ, 1 is allowed, 31 are equal"
  std::string Summary() const;
};

// With `all`, equal ones too; else one row counts them.
Table ChangeTable(const GateAnswer& answer, bool all);
Table TimeTable(const GateAnswer& answer);

// For a pull request: a sentence, and a table of what is not equal.
std::string MarkdownText(const GateAnswer& answer);
// SARIF 2.1.0: a result for each change that is not equal. A finding has its line of the source, a
// measure its line of the baseline.
std::string GateSarif(const GateAnswer& answer, const SourceRoot& root);
// JUnit's XML: a test case for each measure and each cause.
std::string GateJunit(const GateAnswer& answer);

}  // namespace acltape::cli
