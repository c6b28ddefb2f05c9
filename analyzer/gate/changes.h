// Holds the measures of a trace against those of a baseline, and says which changes are allowed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/gate/measure.h"

namespace acltape::analyzer::gate {

// An allowed change, as one line of text:
//
//   rule    = pattern change { change } [ "#" why ]
//   pattern = the name of a measure or the key of a cause; "*" is any text
//   change  = ("+" | "-") (N | N "%" | "any")    so much more, so much less
//           | "any"                              any change
//           | "better"                           any change to the better
//
// "step.launches +2", "step.bytes_* +5% -any   # weights grow", "LINT-40 * any", "* better".
struct AllowRule {
  std::string text;  // as written, without the reason
  std::string pattern;
  // The largest changes as a number, and in percent of the baseline's value.
  double more = 0;
  double less = 0;
  double more_percent = 0;
  double less_percent = 0;
  bool better = false;
};

// Throws Error kUsage, one sentence that begins with `where`, if the text is no rule.
AllowRule ParseAllowRule(std::string_view text, const std::string& where);

struct Baseline {
  std::string basis;
  std::map<std::string, double> measures;
  std::map<std::string, int64_t> causes;
  std::vector<AllowRule> allowed;
};

enum class Verdict : uint8_t { kEqual, kAllowed, kNotKnown, kBetter, kWorse, kOther };
std::string_view VerdictName(Verdict verdict);  // "equal", "allowed", "not known", ...

// A measure or a cause of findings that the baseline or the trace has.
struct Change {
  std::string name;
  bool is_cause = false;
  bool was_known = true;  // the baseline has a value; a cause that it lacks has the value 0
  bool is_known = true;   // the trace has one
  double before = 0;
  double now = 0;
  Verdict verdict = Verdict::kEqual;
  std::string why;               // the rule that allows it, or why it is not known
  const Cause* cause = nullptr;  // if the trace has this cause

  double difference() const { return now - before; }
};

// All measures and causes of both sides, by name: measures first. `measured` must outlive the
// result. A measure of a step is not known if one side measured steps and the other the whole
// program.
std::vector<Change> FindChanges(const Baseline& baseline, const Measured& measured);

// 0: all are equal or allowed. 1: one differs. 125: none differs, and one is not known.
int ExitCodeOf(const std::vector<Change>& changes);

}  // namespace acltape::analyzer::gate
