#include "page/findings.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "analyzer/calls/level.h"
#include "analyzer/lint/both_levels.h"
#include "analyzer/lint/causes.h"
#include "analyzer/lint/lint.h"
#include "analyzer/lint/load.h"
#include "analyzer/streams/budget.h"
#include "meaning/options.h"
#include "page/rows.h"
#include "storage/columns.h"

namespace acltape::page {
namespace {

using nlohmann::json;

std::string TitleOf(const std::string& rule) {
  for (const analyzer::lint::LintRule& row : analyzer::lint::LintRules()) {
    if (row.id == rule) return std::string(row.title);
  }
  return "";
}

bool IsOfLint(const json& row) {
  return row["rule"].is_string() && row["rule"].get<std::string>().starts_with("LINT-");
}

// The stored findings about the trace. A trial that held is none, and neither is what an experiment
// with a planted fault found: acltape of today stores no such finding, older ones did.
json StoredFindings(const storage::Reader& trace) {
  std::string statement =
      "SELECT rule, severity, call_id, code, message, evidence, verdict FROM finding f WHERE "
      "(verdict <> 'refuted' OR rule LIKE 'LINT-%') AND ifnull(evidence, '') NOT LIKE '%@plant %'"_cli;
  if (storage::HasColumns(trace, "witness", "command")) {
    statement +=
        " AND NOT EXISTS (SELECT 1 FROM witness w WHERE w.message = f.message AND (w.command LIKE "
        "'%@plant %' OR w.options LIKE '%\"faults\":[{%'))"_cli;
  }
  json findings = RowsOf(trace, statement + " ORDER BY call_id, rule");
  for (json& row : findings) {
    if (row["verdict"] == "refuted") row["severity"] = "info";  // it does not happen
    const json text = row["evidence"];
    row["title"] = TitleOf(row["rule"].is_string() ? row["rule"].get<std::string>() : "");
    row["evidence"] = text.is_string() ? ReadJson(text.get<std::string>()) : json();
    if (row["evidence"].is_discarded()) row["evidence"] = text;
  }
  return findings;
}

json RowOf(const analyzer::lint::Finding& finding) {
  json codes;
  int32_t code = 0;
  for (const analyzer::lint::CaptureMode mode : analyzer::lint::kCaptureModes) {
    codes[std::string(analyzer::lint::CaptureModeName(mode))] = finding.code(mode);
    if (code == 0) code = finding.code(mode);
  }
  return {
      {"rule", std::string(finding.rule->id)},
      {"severity", std::string(storage::SeverityName(finding.by_adapter ? storage::Severity::kInfo
                                                                        : finding.rule->severity))},
      {"title", std::string(finding.rule->title)},
      {"call_id", finding.call_id},
      {"code", code},
      {"message", finding.message},
      {"verdict", finding.verdict},
      {"evidence",
       {{"calls", finding.evidence},
        {"count", finding.count},
        {"codes", codes},
        {"edit", finding.advice},
        {"adapter", finding.by_adapter}}}};
}

// Findings with their causes as `acltape lint` tells them: "cause" is a number, and the row that
// leads has "leads".
json WithCauses(const std::vector<const analyzer::lint::Finding*>& findings) {
  std::vector<analyzer::lint::CauseKey> of_cause;
  json rows = json::array();
  for (const analyzer::lint::Finding* finding : findings) {
    of_cause.push_back({finding->cause, finding->rule->id, finding->verdict});
    rows.push_back(RowOf(*finding));
  }
  int64_t number = 0;
  for (const analyzer::lint::FindingCause& cause : analyzer::lint::CausesOf(of_cause)) {
    for (const size_t member : cause.members) rows[member]["cause"] = number;
    rows[cause.lead]["leads"] = true;
    ++number;
  }
  return rows;
}

// The findings of `acltape lint` without options.
json ComputedFindings(const storage::Reader& trace) {
  const analyzer::Work work =
      analyzer::lint::LoadStepsForLint(trace, analyzer::ChooseCaptureLevel(trace), nullptr);
  analyzer::lint::LintOptions options;
  options.stream_limit = analyzer::streams::NeedSoc("Ascend910B1").streams;
  options.leaves = std::make_shared<analyzer::lint::LeavesBeside>(work);
  const analyzer::lint::LintReport report = analyzer::lint::LintLevel(work, options);
  std::vector<const analyzer::lint::Finding*> found;
  for (const analyzer::lint::Finding& finding : report.findings) found.push_back(&finding);
  analyzer::lint::LeafFindings leaves;
  if (!report.stretches.empty() && analyzer::lint::HasLeavesBeside(work)) {
    leaves = analyzer::lint::LintLeavesBeside(
        work, report, options, [](const analyzer::Work& /*leaves*/) { return nullptr; });
    for (const analyzer::lint::Finding& finding : leaves.report.findings) {
      found.push_back(&finding);
    }
  }
  return WithCauses(found);
}

}  // namespace

json FindingsOf(const storage::Reader& trace) {
  json view;
  view["source"] = "stored";
  view["findings"] = StoredFindings(trace);
  json& findings = view["findings"];
  if (std::none_of(findings.begin(), findings.end(), IsOfLint)) {
    view["source"] = findings.empty() ? "computed" : "both";
    try {
      for (json& row : ComputedFindings(trace)) findings.push_back(std::move(row));
    } catch (const Error& error) {
      view["why_none"] = error.what();
    }
  }
  view["ledger"] = json::array();
  for (const storage::LedgerEntry& entry : trace.Ledger()) {
    view["ledger"].push_back({{"severity", std::string(storage::SeverityName(entry.severity))},
                              {"kind", entry.kind},
                              {"count", entry.count},
                              {"subject", entry.subject},
                              {"cause", entry.cause},
                              {"remedy", entry.remedy}});
  }
  return view;
}

}  // namespace acltape::page
