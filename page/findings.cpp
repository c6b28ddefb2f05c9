#include "page/findings.h"

#include <nlohmann/json.hpp>

#include "analyzer/calls/level.h"
#include "analyzer/lint/lint.h"
#include "analyzer/steps/steps.h"
#include "analyzer/streams/budget.h"
#include "page/rows.h"

namespace acltape::page {
namespace {

using nlohmann::json;

std::string TitleOf(const std::string& rule) {
  for (const analyzer::lint::LintRule& row : analyzer::lint::LintRules()) {
    if (row.id == rule) return std::string(row.title);
  }
  return "";
}

json StoredFindings(const storage::Reader& trace) {
  json findings = RowsOf(trace,
                         "SELECT rule, severity, call_id, code, message, evidence, verdict "
                         "FROM finding ORDER BY call_id, rule");
  for (json& row : findings) {
    const json text = row["evidence"];
    row["title"] = TitleOf(row["rule"].is_string() ? row["rule"].get<std::string>() : "");
    row["evidence"] =
        text.is_string() ? json::parse(text.get<std::string>(), nullptr, false) : json();
    if (row["evidence"].is_discarded()) row["evidence"] = text;
  }
  return findings;
}

json ComputedFindings(const storage::Reader& trace) {
  analyzer::Work work = analyzer::LoadWork(trace, analyzer::ChooseCaptureLevel(trace));
  analyzer::AssignSteps(work, nullptr);
  analyzer::lint::LintOptions options;
  options.stream_limit = analyzer::streams::NeedSoc("Ascend910B1").streams;
  json rows = json::array();
  for (const analyzer::lint::Finding& finding : analyzer::lint::Lint(work, options).findings) {
    std::string edit = analyzer::lint::DescribeEdits(finding.edits);
    if (edit.empty()) edit = std::string(finding.rule->edit);
    json codes;
    int32_t code = 0;
    for (const analyzer::lint::CaptureMode mode : analyzer::lint::kCaptureModes) {
      codes[std::string(analyzer::lint::CaptureModeName(mode))] = finding.code(mode);
      if (code == 0) code = finding.code(mode);
    }
    rows.push_back(
        {{"rule", std::string(finding.rule->id)},
         {"severity", std::string(storage::SeverityName(
                          finding.by_adapter ? storage::Severity::kInfo : finding.rule->severity))},
         {"title", std::string(finding.rule->title)},
         {"call_id", finding.call_id},
         {"code", code},
         {"message", finding.message},
         {"verdict", finding.verdict},
         {"evidence",
          {{"calls", finding.evidence},
           {"count", finding.count},
           {"codes", codes},
           {"edit", edit}}}});
  }
  return rows;
}

}  // namespace

json FindingsOf(const storage::Reader& trace) {
  json view;
  view["source"] = "stored";
  view["findings"] = StoredFindings(trace);
  if (view["findings"].empty()) {
    view["source"] = "computed";
    try {
      view["findings"] = ComputedFindings(trace);
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
