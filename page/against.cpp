#include "page/against.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "analyzer/diff/diff.h"
#include "analyzer/diff/verdict.h"
#include "analyzer/program/source_lines.h"
#include "page/facts.h"
#include "page/part_of_steps.h"
#include "page/rows.h"
#include "storage/database.h"
#include "storage/process_filter.h"

namespace acltape::page {
namespace {

using nlohmann::json;

constexpr int64_t kMostCallsToAlign = 200000;

// Step and nanoseconds of each step, as the overview of a page has them.
json StepTimesOf(const storage::Reader& trace) {
  const storage::ProcessFilter filter(trace.process());
  storage::Statement span(trace.database(),
                          "SELECT max(begin_ns + duration_ns) - min(begin_ns) FROM call_row "
                          "WHERE call_id BETWEEN ? AND ? AND " +
                              filter.OfThread("thread_id"));
  filter.Bind(span);
  json times = json::array();
  std::string why;
  for (const storage::Step& step : StepsFor(trace, LeavesOf(trace, why))) {
    span.Bind(1, step.first_call);
    span.Bind(2, step.last_call);
    if (span.Next() && !span.IsNull(0)) times.push_back({step.step, span.Integer(0)});
    span.Reset();
  }
  return times;
}

json SideOf(const storage::Reader& trace, const storage::Reader& part) {
  json side;
  side["facts"] = FactsOf(trace, trace.Steps());
  side["totals"] = TotalsOf(trace);
  side["step_times"] = StepTimesOf(part);
  side["process"] = part.process();
  return side;
}

std::string LineOf(const storage::Reader& trace, const std::vector<int64_t>& calls) {
  if (calls.empty()) return "";
  return analyzer::SourceLines(trace).Of(calls.back());
}

json DifferencesOf(const storage::Reader& a, const storage::Reader& b,
                   const std::function<void(int64_t, int64_t)>& progress) {
  analyzer::diff::DiffOptions options;
  options.progress = progress;
  const analyzer::diff::DiffReport report = analyzer::diff::Diff(a, b, options);
  const analyzer::diff::DiffCounts& counts = report.counts;
  json found{{"verdict", analyzer::diff::VerdictOf(report)},
             {"coverage_words", analyzer::diff::kCoverageWords},
             {"coverage", report.coverage.Share()},
             {"standard", report.standard},
             {"a_calls", counts.a_calls},
             {"b_calls", counts.b_calls},
             {"aligned", counts.aligned},
             {"changed", counts.changed},
             {"inserted", counts.inserted},
             {"deleted", counts.deleted},
             {"equal", counts.equal},
             {"within", counts.within},
             {"different", counts.different},
             {"not_comparable", counts.not_comparable},
             {"notes", report.notes}};
  if (report.first >= 0) {
    const analyzer::diff::DiffRow& row = report.rows[static_cast<size_t>(report.first)];
    found["first"] = {{"a_calls", row.a_calls},
                      {"b_calls", row.b_calls},
                      {"a_op", row.a_op},
                      {"b_op", row.b_op},
                      {"a_line", LineOf(a, row.a_calls)},
                      {"b_line", LineOf(b, row.b_calls)},
                      {"cause", std::string(analyzer::diff::DiffCauseName(row.cause))},
                      {"change", row.change},
                      {"output", row.output},
                      {"reason", row.reason}};
  }
  return found;
}

// The part of the trace that has steps: one process of several.
std::unique_ptr<storage::Reader> OneProcess(const storage::Reader& trace) {
  const std::string process = ProcessOfSteps(trace);
  if (process.empty()) return nullptr;
  return std::make_unique<storage::Reader>(trace.path(),
                                           storage::TracePart{process, trace.part().level});
}

json FirstDifference(const storage::Reader& a, const storage::Reader& b,
                     const std::function<void(int64_t, int64_t)>& progress) {
  if (std::max(a.CallCount(true), b.CallCount(true)) > kMostCallsToAlign) {
    return {
        {"note", fmt::format("The traces were not aligned, because one has more than {} leaves; "
                             "`acltape diff` does it.",
                             kMostCallsToAlign)}};
  }
  try {
    return DifferencesOf(a, b, progress);
  } catch (const Error& error) {
    return {{"note", error.what()}};
  }
}

}  // namespace

json AgainstView(const storage::Reader& a, const storage::Reader& b,
                 const std::function<void(int64_t, int64_t)>& progress) {
  const std::unique_ptr<storage::Reader> one_of_a = OneProcess(a), one_of_b = OneProcess(b);
  const storage::Reader& part_of_a = one_of_a ? *one_of_a : a;
  const storage::Reader& part_of_b = one_of_b ? *one_of_b : b;
  return {{"a", SideOf(a, part_of_a)},
          {"b", SideOf(b, part_of_b)},
          {"diff", FirstDifference(part_of_a, part_of_b, progress)}};
}

}  // namespace acltape::page
