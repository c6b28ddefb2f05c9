#include "analyzer/lint/both_levels.h"

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

// The process of the calls that were looked at, as an option takes it. Workers of the program
// compute on the host alone.
std::string ProcessOf(const storage::Reader& trace, const LintReport& report) {
  storage::Statement process(trace.database(), "SELECT process_id FROM thread WHERE thread_id = ?");
  process.Bind(1, int64_t{report.stretches.front().thread});
  return process.Next() ? std::to_string(process.Integer(0)) : "";
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

LeafFindings LintLeaves(const Work& calls, const LintReport& first, LintOptions options,
                        const WantedLeaves& wanted, bool beside);

}  // namespace

bool HasLeavesBeside(const Work& calls) {
  return calls.dialect == Dialect::kAcl && !calls.trace->part().level &&
         HoldsLevel(*calls.trace, Level::kAten);
}

LeafFindings LintLeavesBeside(const Work& calls, const LintReport& first, LintOptions options,
                              const WantedLeaves& wanted) {
  return LintLeaves(calls, first, std::move(options), wanted, /*beside=*/true);
}

namespace {

// `beside`: the report about the calls is printed too, and it has the failures.
LeafFindings LintLeaves(const Work& calls, const LintReport& first, LintOptions options,
                        const WantedLeaves& wanted, bool beside) {
  const storage::Reader& trace = *calls.trace;
  LeafFindings leaves;
  storage::TracePart part = trace.part();
  part.level = Level::kAten;
  if (part.process.empty()) part.process = ProcessOf(trace, first);
  leaves.reader = std::make_unique<storage::Reader>(trace.path(), part);
  leaves.work = std::make_unique<Work>(LoadWork(*leaves.reader, Level::kAten));
  Work& work = *leaves.work;
  options.wanted = wanted(work);
  leaves.graphs = std::make_unique<executions::OwnGraphs>(executions::FindOwnGraphs(work, calls));
  const std::vector<executions::Overtake> overtakes = executions::FindOvertakes(work, calls);
  options.graphs = leaves.graphs.get();
  options.overtakes = &overtakes;
  if (HasCopiesOfPinnedMemory(calls)) {
    leaves.host_too = std::make_unique<Work>(LoadWorkOfHostToo(*leaves.reader));
    options.host_too = leaves.host_too.get();
  }
  const bool captured = first.stretches.front().recorded();
  bool between = true;  // there is something between the graphs, or there are steps
  if (captured) {
    options.around_captures = true;
    options.stretch = BetweenExecutions(trace);
    const auto [from, to] = work.Between(options.stretch.first_call, options.stretch.last_call);
    between = from < to;
    if (!between) options.stretch = {};
  } else {
    AssignSteps(work, nullptr);
    between = !work.steps.empty();
  }
  leaves.report = Lint(work, options);
  std::set<std::pair<int, std::string>> named;
  const Places places_of_calls(calls);
  for (const Finding& finding : first.findings) {
    std::string place = PlaceOf(places_of_calls, calls, finding);
    if (!place.empty() && finding.rule->mode != 0)
      named.emplace(finding.rule->mode, std::move(place));
  }
  const Places places(work);
  std::erase_if(leaves.report.findings, [&](const Finding& finding) {
    if (IsAboutFailures(*finding.rule)) return beside;
    const bool kept =
        finding.of_graphs || (between && (!captured || finding.rule->id == "LINT-40"));
    return !kept || named.contains({finding.rule->mode, PlaceOf(places, work, finding)});
  });
  return leaves;
}

}  // namespace

LeafFindings LintLeavesAroundGraphs(const Work& leaves, const LintOptions& options,
                                    const WantedLeaves& wanted) {
  const storage::Reader& trace = *leaves.trace;
  storage::TracePart part = trace.part();
  if (leaves.dialect != Dialect::kAten || part.level != Level::kAten ||
      !HoldsLevel(trace, Level::kAcl)) {
    return {};
  }
  part.level = Level::kAcl;
  auto reader = std::make_unique<storage::Reader>(trace.path(), part);
  auto calls = std::make_unique<Work>(LoadWork(*reader, Level::kAcl));
  LintReport captures;
  captures.stretches = FindStretches(*calls, {});
  if (captures.stretches.empty() || !captures.stretches.front().recorded()) return {};
  LeafFindings found = LintLeaves(*calls, captures, options, wanted, /*beside=*/false);
  if (found.report.stretches.empty()) return {};
  found.reader_of_calls = std::move(reader);
  found.calls = std::move(calls);
  return found;
}

}  // namespace acltape::analyzer::lint
