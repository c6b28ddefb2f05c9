#include "cli/plan/lint_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "analyzer/lint/causes.h"
#include "analyzer/lint/rule.h"
#include "cli/frame/command.h"
#include "cli/frame/version.h"

namespace acltape::cli {
namespace {

using analyzer::lint::Finding;
using analyzer::lint::IsAboutFailures;
using nlohmann::ordered_json;
using storage::Severity;

// "107030", or "107030/0/0" where the modes differ; empty where no mode refuses.
std::string CodesText(const analyzer::lint::Codes& codes) {
  if (codes == analyzer::lint::Codes{}) return "";
  if (codes == analyzer::lint::InEveryMode(codes[0])) return fmt::format("{}", codes[0]);
  return fmt::format("{}/{}/{}", codes[0], codes[1], codes[2]);
}

// SARIF's levels of our severities.
std::string_view SarifLevel(Severity severity) {
  constexpr std::string_view kLevels[] = {"note", "warning", "error", "error"};
  return kLevels[static_cast<size_t>(severity)];
}

ordered_json SarifLocation(const LocatedFinding& one, const SourceRoot& root) {
  ordered_json location = ordered_json::object();
  if (!one.file.empty()) {
    location["physicalLocation"]["artifactLocation"] = root.Location(one.file);
    if (one.line > 0) location["physicalLocation"]["region"]["startLine"] = one.line;
  }
  ordered_json logical = ordered_json::array();
  if (!one.scope.empty()) {
    logical.push_back({{"fullyQualifiedName", one.scope}, {"kind", "module"}});
  }
  if (!one.op.empty()) logical.push_back({{"name", one.op}, {"kind", "function"}});
  if (!logical.empty()) location["logicalLocations"] = std::move(logical);
  return location;
}

std::string Plural(size_t count, const std::string& word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

// Adds one row for all that only the framework's adapter could change.
void AddAdapterRow(const std::vector<LocatedFinding>& findings, Table& table) {
  std::map<std::string, int64_t> by_function;
  int64_t count = 0, total = 0, first_call = 0;
  for (const LocatedFinding& one : findings) {
    if (one.known || !one.finding->by_adapter) continue;
    by_function[one.op] += one.count;
    total += one.count;
    if (count == 0) first_call = one.finding->call_id;
    count += one.findings;
  }
  if (count == 0) return;
  std::vector<std::string> functions;
  for (const auto& [function, times] : by_function) {
    functions.push_back(fmt::format("{} {} times", function, times));
  }
  table.Add({std::string("-"), std::string(SeverityName(Severity::kInfo)), Cell(),
             std::string("inside the framework's adapter"), count, total, first_call, Cell(),
             fmt::format("the adapter makes these calls by itself ({}); nothing in the program "
                         "changes them, and a capture by the adapter's own graphs leaves them out",
                         fmt::join(functions, ", ")),
             std::string("none"), std::string("predicted")});
}

}  // namespace

std::string MessageBeside(const std::string& message, const std::string& where) {
  if (where.empty()) return message;
  for (const char* before : {" at ", " in the "}) {
    const std::string place = before + where;
    const size_t found = message.find(place);
    if (found == std::string::npos) continue;
    return message.substr(0, found) + message.substr(found + place.size());
  }
  return message;
}

std::vector<LocatedFinding> FoldCauses(const std::vector<LocatedFinding>& findings) {
  std::vector<analyzer::lint::CauseKey> of_cause;
  for (const LocatedFinding& one : findings) {
    of_cause.push_back({one.finding->cause, one.finding->rule->id, one.verdict, one.known});
  }
  constexpr size_t kNamed = 4;
  std::vector<LocatedFinding> folded;
  for (const analyzer::lint::FindingCause& group : analyzer::lint::CausesOf(of_cause)) {
    const LocatedFinding& lead = findings[group.lead];
    LocatedFinding& cause = folded.emplace_back(lead);
    cause.count = 0;
    cause.findings = static_cast<int64_t>(group.members.size());
    std::set<std::string> verdicts;
    std::vector<std::string> others;
    for (const size_t member : group.members) {
      const LocatedFinding& one = findings[member];
      cause.count += one.count;
      verdicts.insert(one.verdict);
      std::string name = one.finding->subject;
      if (one.place != cause.place && !one.place.empty()) name += " at " + one.place;
      const bool told = member == group.lead || name == lead.finding->subject ||
                        std::find(others.begin(), others.end(), name) != others.end();
      if (!told) others.push_back(std::move(name));
    }
    cause.verdict = fmt::format("{}", fmt::join(verdicts, ", "));
    if (cause.findings == 1) continue;
    cause.message += fmt::format("; {} more with this cause", cause.findings - 1);
    const size_t named = std::min(kNamed, others.size());
    for (size_t i = 0; i < named; ++i) cause.message += (i == 0 ? ": " : ", ") + others[i];
    if (others.size() > named) {
      cause.message += fmt::format(" and {} others", others.size() - named);
    }
  }
  return folded;
}

Table GroupedFindings(const std::vector<LocatedFinding>& findings) {
  std::vector<const LocatedFinding*> order;
  for (const LocatedFinding& one : findings) {
    if (!one.known && !one.finding->by_adapter) order.push_back(&one);
  }
  std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
    const bool failed = IsAboutFailures(*a->finding->rule);
    if (failed != IsAboutFailures(*b->finding->rule)) return failed;
    if (a->severity() != b->severity()) return a->severity() > b->severity();
    return a->count > b->count;
  });
  Table table({"rule", "severity", "op", "where", "findings", "count", "first call", "codes",
               "message", "edit", "verdict"});
  for (const LocatedFinding* one : order) {
    const Finding& finding = *one->finding;
    table.Add({std::string(finding.rule->id), std::string(SeverityName(finding.rule->severity)),
               TextCell(finding.subject), TextCell(one->Where()), one->findings, one->count,
               finding.call_id == 0 ? Cell() : Cell(finding.call_id),
               TextCell(CodesText(finding.codes)), MessageBeside(one->message, one->Where()),
               finding.advice, one->verdict});
  }
  AddAdapterRow(findings, table);
  return table;
}

std::string SummaryOfFindings(const std::vector<LocatedFinding>& findings,
                              std::string_view regions) {
  std::map<Severity, size_t, std::greater<>> counts;
  std::set<std::string_view> rules;
  size_t known = 0, of_adapter = 0;
  for (const LocatedFinding& one : findings) {
    if (one.known) {
      ++known;
      continue;
    }
    if (one.finding->by_adapter) {
      ++of_adapter;
      continue;
    }
    ++counts[one.severity()];
    rules.insert(one.finding->rule->id);
  }
  std::string text;
  for (const auto& [severity, count] : counts) {
    const bool mass = severity == Severity::kInfo || severity == Severity::kDataLoss;
    const std::string name(SeverityName(severity));
    text += (text.empty() ? "" : ", ") +
            (mass ? fmt::format("{} {}", count, name) : Plural(count, name));
  }
  if (text.empty()) {
    text = "no findings";
  } else {
    text += " in " + Plural(rules.size(), "rule");
  }
  text += fmt::format(" in {}", regions);
  if (of_adapter > 0) {
    text += fmt::format("; {} about calls of the adapter {} not counted",
                        Plural(of_adapter, "finding"), of_adapter == 1 ? "is" : "are");
  }
  if (known > 0) {
    text += fmt::format("; {} of the baseline {} not counted", Plural(known, "finding"),
                        known == 1 ? "is" : "are");
  }
  return text;
}

std::string SarifText(const std::vector<LocatedFinding>& findings, bool has_baseline,
                      const SourceRoot& root) {
  ordered_json rules = ordered_json::array();
  std::map<std::string_view, size_t> index;
  for (const analyzer::lint::LintRule& rule : analyzer::lint::LintRules()) {
    index.emplace(rule.id, rules.size());
    rules.push_back({{"id", rule.id},
                     {"shortDescription", {{"text", rule.title}}},
                     {"help", {{"text", rule.edit}}},
                     {"defaultConfiguration", {{"level", SarifLevel(rule.severity)}}},
                     {"properties", {{"source", rule.source}}}});
  }
  ordered_json results = ordered_json::array();
  for (const LocatedFinding& one : findings) {
    const Finding& finding = *one.finding;
    ordered_json result{{"ruleId", finding.rule->id},
                        {"ruleIndex", index.at(finding.rule->id)},
                        {"level", SarifLevel(one.severity())},
                        {"message", {{"text", one.message + "; " + finding.advice}}}};
    ordered_json location = SarifLocation(one, root);
    if (!location.empty()) result["locations"] = ordered_json::array({std::move(location)});
    result["partialFingerprints"] = {{"acltapeFinding/v1", one.Identity()}};
    result["occurrenceCount"] = one.count;
    if (has_baseline) result["baselineState"] = one.known ? "unchanged" : "new";
    ordered_json properties{{"verdict", one.verdict}};
    if (finding.call_id != 0) properties["callId"] = finding.call_id;
    for (const analyzer::lint::CaptureMode mode : analyzer::lint::kCaptureModes) {
      if (const int32_t code = finding.code(mode); code != 0) {
        properties["codes"][std::string(analyzer::lint::CaptureModeName(mode))] = code;
      }
    }
    result["properties"] = std::move(properties);
    results.push_back(std::move(result));
  }
  const ordered_json document{
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs",
       ordered_json::array(
           {{{"tool",
              {{"driver",
                {{"name", "acltape"}, {"version", VersionNumber()}, {"rules", std::move(rules)}}}}},
             {"originalUriBaseIds", root.Bases()},
             {"columnKind", "utf16CodeUnits"},
             {"results", std::move(results)}}})}};
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

std::string JunitText(const std::vector<LocatedFinding>& findings, Severity fails_from,
                      bool never_fails) {
  std::string cases;
  size_t tests = 0, failures = 0, skipped = 0;
  std::set<std::string_view> found;
  for (const LocatedFinding& one : findings) {
    const Finding& finding = *one.finding;
    found.insert(finding.rule->id);
    ++tests;
    std::string inside;
    if (one.known) {
      ++skipped;
      inside = fmt::format("<skipped message=\"{}\"/>", XmlText("known: " + one.message));
    } else if (!never_fails && one.Counts(fails_from)) {
      ++failures;
      inside = fmt::format("<failure type=\"{}\" message=\"{}\">{}</failure>",
                           SeverityName(finding.rule->severity), XmlText(one.message),
                           XmlText(finding.advice));
    } else {
      inside = fmt::format("<system-out>{}</system-out>", XmlText(one.message));
    }
    std::string attributes;
    if (!one.file.empty()) {
      attributes = fmt::format(" file=\"{}\" line=\"{}\"", XmlText(one.file), one.line);
    }
    cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"{}>{}</testcase>\n",
                         finding.rule->id, XmlText(one.Identity()), attributes, inside);
  }
  for (const analyzer::lint::LintRule& rule : analyzer::lint::LintRules()) {
    if (found.contains(rule.id)) continue;
    ++tests;
    cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"/>\n", rule.id,
                         XmlText(std::string(rule.title)));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites tests=\"{0}\" failures=\"{1}\" skipped=\"{2}\" errors=\"0\">\n"
      "  <testsuite name=\"acltape lint\" tests=\"{0}\" failures=\"{1}\" skipped=\"{2}\" "
      "errors=\"0\">\n{3}  </testsuite>\n</testsuites>\n",
      tests, failures, skipped, cases);
}

}  // namespace acltape::cli
