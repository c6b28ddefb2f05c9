#include "cli/bisect/diff_results.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

namespace acltape::cli {
namespace {

using analyzer::diff::DiffReport;
using analyzer::diff::DiffRow;
using analyzer::diff::DiffVerdict;
using nlohmann::json;

bool Kept(const DiffRow& row) {
  return row.picked && !row.a_calls.empty() && !row.b_calls.empty() &&
         (row.verdict == DiffVerdict::kWithin || row.verdict == DiffVerdict::kDifferent);
}

// Positions of results by name, of the calls that are kept.
std::map<int64_t, std::map<std::string, int>> Positions(const storage::Reader& trace,
                                                        const DiffReport& report) {
  std::map<int64_t, std::map<std::string, int>> positions;
  for (const DiffRow& row : report.rows) {
    if (Kept(row)) positions[row.a_calls.back()];
  }
  if (positions.empty()) return positions;
  for (const storage::Call& call : trace.Calls(/*leaves_only=*/false)) {
    const auto found = positions.find(call.call_id);
    if (found == positions.end()) continue;
    for (const storage::Argument& argument : trace.Arguments(call)) {
      if (argument.direction != storage::Direction::kIn) {
        found->second[argument.name] = argument.position;
      }
    }
  }
  return positions;
}

std::string MetricsText(const DiffReport& report, const DiffRow& row) {
  json metrics =
      row.metrics ? json::parse(analyzer::metrics::MetricsJson(*row.metrics)) : json::object();
  if (!row.reason.empty()) metrics["reason"] = row.reason;
  metrics["output"] = row.output;
  metrics["cause"] = analyzer::diff::DiffCauseName(row.cause);
  metrics["relation"] = analyzer::diff::DiffRelationName(row.relation);
  metrics["calls"] = row.b_calls;
  if (!row.change.empty()) metrics["change"] = row.change;
  if (!row.notes.empty()) metrics["notes"] = row.notes;
  if (row.error > 0 && std::isfinite(row.error)) metrics["relative_error"] = row.error;
  if (row.origin >= 0) {
    const DiffRow& origin = report.rows[row.origin];
    metrics["origin"] = {{"calls", origin.a_calls}, {"other_calls", origin.b_calls}};
  }
  return metrics.dump();
}

}  // namespace

void KeepDiff(const storage::Reader& a, const std::string& b, const DiffReport& report,
              storage::Results& results) {
  storage::Run run;
  run.mode = "diff";
  run.options = json{{"against", b}, {"standard", report.standard}}.dump();
  const int64_t run_id = results.AddRun(run);
  const auto positions = Positions(a, report);
  for (const DiffRow& row : report.rows) {
    if (!Kept(row)) continue;
    storage::Comparison comparison;
    comparison.run_id = run_id;
    if (row.a_step >= 0) comparison.step = row.a_step;
    comparison.call_id = row.a_calls.back();
    const auto& of_call = positions.at(comparison.call_id);
    const auto position = of_call.find(row.output);
    if (position != of_call.end()) comparison.position = position->second;
    comparison.metrics = MetricsText(report, row);
    comparison.verdict = analyzer::diff::DiffVerdictName(row.verdict);
    results.AddComparison(comparison);
  }
  results.FinishRun(run_id, report.different() ? 1 : 0);
  results.Commit();
}

}  // namespace acltape::cli
