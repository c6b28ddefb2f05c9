#include "page/lint_levels.h"

#include <set>
#include <utility>

#include "analyzer/calls/level.h"
#include "analyzer/lint/places.h"
#include "analyzer/steps/steps.h"
#include "analyzer/streams/budget.h"
#include "storage/database.h"

namespace acltape::page {
namespace {

using analyzer::Work;
using analyzer::lint::Finding;
using analyzer::lint::LintReport;

// A rule tells by its mode what goes wrong; two findings with one mode and one line say the same.
using Cause = std::pair<int, std::string>;

std::string PlaceOf(const analyzer::lint::Places& places, const Work& work,
                    const Finding& finding) {
  const int64_t call = finding.call_id == 0 ? -1 : work.Find(finding.call_id);
  return call < 0 ? "" : places.Text(static_cast<size_t>(call));
}

// True if all tensors of the call lie on the host, beside the work of the device.
bool IsHostWork(const Work& work, int64_t call_id) {
  const int64_t call = work.Find(call_id);
  if (call < 0) return false;
  bool any = false, host = true;
  for (const int64_t buffer : work.buffers(static_cast<size_t>(call))) {
    any = true;
    host = host && buffer != 0 && work.trace->GetBuffer(buffer).device == 0;
  }
  return any && host;
}

std::string ProcessOfThread(const storage::Reader& trace, int64_t thread) {
  storage::Statement process(trace.database(), "SELECT process_id FROM thread WHERE thread_id = ?");
  process.Bind(1, thread);
  return process.Next() ? std::to_string(process.Integer(0)) : "";
}

// The calls between the first and the last execution of a graph; empty if there are none.
analyzer::lint::StretchOptions BetweenExecutions(const storage::Reader& trace) {
  storage::Statement ends(trace.database(),
                          "SELECT coalesce(min(call_id), 1), coalesce(max(call_id), 0) FROM call "
                          "WHERE op_id IN (SELECT op_id FROM op WHERE name LIKE "
                          "'aclmdlRIExecute%')");
  ends.Next();
  analyzer::lint::StretchOptions part;
  part.first_call = ends.Integer(0);
  part.last_call = ends.Integer(1);
  return part;
}

analyzer::lint::LintOptions DefaultOptions() {
  analyzer::lint::LintOptions options;
  options.stream_limit = analyzer::streams::NeedSoc("Ascend910B1").streams;
  return options;
}

// Lints the leaves beside calls of the interface, whose causes are `named`.
LevelFindings LintLeaves(const storage::Reader& trace, const LintReport& first,
                         const std::set<Cause>& named) {
  LevelFindings leaves;
  storage::TracePart part = trace.part();
  part.level = analyzer::Level::kAten;
  if (part.process.empty()) {
    part.process = ProcessOfThread(trace, int64_t{first.stretches.front().thread});
  }
  leaves.reader = std::make_unique<storage::Reader>(trace.path(), part);
  leaves.work = std::make_unique<Work>(analyzer::LoadWork(*leaves.reader, analyzer::Level::kAten));
  analyzer::lint::LintOptions options = DefaultOptions();
  const bool captured = first.stretches.front().recorded();
  if (captured) {
    options.around_captures = true;
    options.stretch = BetweenExecutions(trace);
    const auto [from, to] =
        leaves.work->Between(options.stretch.first_call, options.stretch.last_call);
    if (from >= to) return leaves;
  } else {
    analyzer::AssignSteps(*leaves.work, nullptr);
    if (leaves.work->steps.empty()) return leaves;
  }
  leaves.findings = analyzer::lint::Lint(*leaves.work, options).findings;
  const analyzer::lint::Places places(*leaves.work);
  std::erase_if(leaves.findings, [&](const Finding& finding) {
    return (captured && finding.rule->id != "LINT-40") ||
           IsHostWork(*leaves.work, finding.call_id) ||
           named.contains({finding.rule->mode, PlaceOf(places, *leaves.work, finding)});
  });
  return leaves;
}

}  // namespace

std::vector<LevelFindings> FindAtAllLevels(const storage::Reader& trace) {
  std::vector<LevelFindings> levels(1);
  LevelFindings& chosen = levels.front();
  chosen.work =
      std::make_unique<Work>(analyzer::LoadWork(trace, analyzer::ChooseCaptureLevel(trace)));
  analyzer::AssignSteps(*chosen.work, nullptr);
  const LintReport report = analyzer::lint::Lint(*chosen.work, DefaultOptions());
  chosen.findings = report.findings;
  const bool leaves_too = chosen.work->dialect == analyzer::Dialect::kAcl && !trace.part().level &&
                          analyzer::HoldsLevel(trace, analyzer::Level::kAten) &&
                          !report.stretches.empty();
  if (!leaves_too) return levels;
  std::set<Cause> named;
  const analyzer::lint::Places places(*chosen.work);
  for (const Finding& finding : chosen.findings) {
    std::string place = PlaceOf(places, *chosen.work, finding);
    if (!place.empty()) named.emplace(finding.rule->mode, std::move(place));
  }
  levels.push_back(LintLeaves(trace, report, named));
  return levels;
}

}  // namespace acltape::page
