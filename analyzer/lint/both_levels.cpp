#include "analyzer/lint/both_levels.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "analyzer/calls/host_work.h"
#include "analyzer/calls/level.h"
#include "analyzer/executions/queue_overtakes.h"
#include "analyzer/lint/host_memory_use.h"
#include "analyzer/lint/places.h"
#include "analyzer/steps/steps.h"
#include "storage/database.h"

namespace acltape::analyzer::lint {
namespace {

std::string PlaceOf(const Places& places, const Work& work, const Finding& finding) {
  const int64_t call = finding.call_id == 0 ? -1 : work.Find(finding.call_id);
  return call < 0 ? "" : places.Text(static_cast<size_t>(call));
}

// The calls between the first and the last execution of a graph; empty if there are none.
StretchOptions BetweenExecutions(const storage::Reader& trace) {
  storage::Statement ends(trace.database(),
                          "SELECT coalesce(min(call_id), 1), coalesce(max(call_id), 0) FROM call "
                          "WHERE op_id IN (SELECT op_id FROM op WHERE name LIKE "
                          "'aclmdlRIExecute%')");
  ends.Next();
  StretchOptions part;
  part.first_call = ends.Integer(0);
  part.last_call = ends.Integer(1);
  return part;
}

// Lints leaves beside the calls of the same program. `beside`: the report about the calls is
// printed too, and it has the failures.
LintReport LintLeaves(const Work& leaves, const Work& calls, const LintReport& first,
                      LintOptions options, bool beside) {
  const executions::OwnGraphs graphs = executions::FindOwnGraphs(leaves, calls);
  const std::vector<executions::Overtake> overtakes = executions::FindOvertakes(leaves, calls);
  std::optional<Work> host_too;
  options.graphs = &graphs;
  options.overtakes = &overtakes;
  if (HasCopiesOfPinnedMemory(calls)) {
    options.host_too = &host_too.emplace(LoadWorkOfHostToo(*leaves.trace));
  }
  const bool captured = first.stretches.front().recorded();
  bool between = !leaves.steps.empty();  // there are steps, or there is work between the graphs
  if (captured) {
    options.around_captures = true;
    options.stretch = BetweenExecutions(*calls.trace);
    const auto [from, to] = leaves.Between(options.stretch.first_call, options.stretch.last_call);
    between = from < to;
    if (!between) options.stretch = {};
  }
  LintReport report = Lint(leaves, options);
  std::set<std::pair<int, std::string>> named;
  const Places places_of_calls(calls);
  for (const Finding& finding : first.findings) {
    std::string place = PlaceOf(places_of_calls, calls, finding);
    if (!place.empty() && finding.rule->mode != 0) {
      named.emplace(finding.rule->mode, std::move(place));
    }
  }
  const Places places(leaves);
  std::erase_if(report.findings, [&](const Finding& finding) {
    if (IsAboutFailures(*finding.rule)) return beside;
    const bool kept =
        finding.of_graphs || (between && (!captured || finding.rule->id == "LINT-40"));
    return !kept || named.contains({finding.rule->mode, PlaceOf(places, leaves, finding)});
  });
  return report;
}

// Nothing for every work but leaves alone of a program that executes graphs of its own.
std::optional<LintReport> LintAroundGraphs(const Work& leaves, const LintOptions& options) {
  const storage::Reader& trace = *leaves.trace;
  storage::TracePart part = trace.part();
  if (leaves.dialect != Dialect::kAten || part.level != Level::kAten ||
      !HoldsLevel(trace, Level::kAcl)) {
    return std::nullopt;
  }
  part.level = Level::kAcl;
  const storage::Reader reader(trace.path(), part);
  const Work calls = LoadWork(reader, Level::kAcl);
  LintReport captures;
  captures.stretches = FindStretches(calls, {});
  if (captures.stretches.empty() || !captures.stretches.front().recorded()) return std::nullopt;
  LintReport report = LintLeaves(leaves, calls, captures, options, /*beside=*/false);
  if (report.stretches.empty()) return std::nullopt;
  report.around_graphs = true;
  return report;
}

}  // namespace

bool HasLeavesBeside(const Work& calls) {
  return calls.dialect == Dialect::kAcl && !calls.trace->part().level &&
         HoldsLevel(*calls.trace, Level::kAten);
}

LeafFindings LintLeavesBeside(const Work& calls, const LintReport& first, LintOptions options,
                              const WantedLeaves& wanted) {
  LeafFindings leaves;
  leaves.beside = options.leaves ? options.leaves : std::make_shared<LeavesBeside>(calls);
  Work* work = leaves.beside->Load();
  if (work == nullptr) return leaves;
  leaves.work = work;
  options.wanted = wanted(*work);
  // Steps are what would be captured. A program with captures of its own has none to look at.
  if (!first.stretches.front().recorded()) AssignSteps(*work, nullptr);
  leaves.report = LintLeaves(*work, calls, first, std::move(options), /*beside=*/true);
  return leaves;
}

LintReport LintLevel(const Work& work, const LintOptions& options) {
  if (options.stretch.first_call == 0) {
    if (std::optional<LintReport> around = LintAroundGraphs(work, options)) {
      return *std::move(around);
    }
  }
  return Lint(work, options);
}

}  // namespace acltape::analyzer::lint
