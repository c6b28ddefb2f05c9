#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analyzer/gate/parts.h"
#include "analyzer/lint/both_levels.h"
#include "analyzer/lint/lint.h"
#include "analyzer/lint/places.h"
#include "analyzer/program/regions.h"

namespace acltape::analyzer::gate {
namespace {

// A copy between devices is never in a graph. So it does not matter to one where the host's side
// lies, which depends on who made the batch: the program itself, or a worker of a data loader.
bool IsBesideGraphs(Barriers& barriers, size_t call, const lint::Finding& finding) {
  return finding.codes == lint::Codes{} && barriers.ReasonOf(call) == kCopyBarrier;
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

void MeasureFindings(const Work& work, const std::function<bool(size_t call)>& counts,
                     Measured& measured) {
  const lint::LintReport report = lint::LintLevel(work, {});
  const lint::Places places(work);
  Barriers barriers(work);
  // The same work is looked at in each step: the most in one step is what counts.
  std::map<std::pair<std::string, size_t>, int64_t> in_stretch;
  for (const lint::Finding& finding : report.findings) {
    // Nothing in the program changes it, and how often it occurs is a matter of time.
    if (finding.by_adapter) continue;
    const int64_t found = finding.call_id == 0 ? -1 : work.Find(finding.call_id);
    Cause cause;
    std::string op;
    std::string where;
    if (found >= 0) {
      const auto call = static_cast<size_t>(found);
      if (!counts(call) || IsBesideGraphs(barriers, call, finding)) continue;
      op = work.op(call).FullName();
      cause.place = places.Text(call);
      if (const SourceLine* line = places.Line(call)) {
        cause.file = line->file;
        cause.line = line->line;
        where = fmt::format("{} ({})", FileName(line->file), line->function);
      }
    }
    cause.rule = finding.rule->id;
    // A rule about how steps differ names the first call at which two of them part, which is
    // another one when a guessed step begins a call earlier.
    const bool of_steps = finding.rule->cause == lint::LintCause::kSteps;
    cause.key = fmt::format("{} | {} | {}", cause.rule, of_steps ? "steps" : op, where);
    cause.severity = finding.rule->severity;
    cause.message = finding.message;
    cause.edit = finding.advice;
    const int64_t count = ++in_stretch[{cause.key, finding.stretch}];
    Cause& kept = measured.causes.try_emplace(cause.key, cause).first->second;
    kept.count = std::max(kept.count, count);
  }
}

}  // namespace acltape::analyzer::gate
