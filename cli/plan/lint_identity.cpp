#include "cli/plan/lint_identity.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "analyzer/lint/places.h"
#include "meaning/options.h"
#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/error.h"
#include "storage/plain_file.h"
#include "storage/reader.h"

namespace acltape::cli {
namespace {

using nlohmann::ordered_json;

constexpr char kBaselineKey[] = "acltape_lint_baseline";
constexpr int kBaselineVersion = 1;

std::unordered_map<int64_t, std::string> ScopePaths(const analyzer::Work& work) {
  std::unordered_map<int64_t, std::string> paths;
  storage::Statement rows(work.trace->database(), "SELECT scope_id, path FROM scope");
  const storage::CheckedRow row(rows, work.trace->path(), "scope");
  while (rows.Next()) {
    if (!row.IsNull(1)) paths.emplace(row.Id("scope_id"), row.Text(1, "path"));
  }
  return paths;
}

bool IsBaseline(const std::string& path) {
  const std::string text = storage::ReadPlainFile(path).value_or("");
  if (!text.starts_with('{')) return false;
  const auto document = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  return document.is_object() && document.contains(kBaselineKey);
}

// True for a call of which each recording has another number at other places: queries, allocations.
bool IsAnywhere(const std::string& op) {
  const analyzer::AclFunction& function = analyzer::FindAclFunction(op);
  return !function.name.empty() && !analyzer::RepeatsWithTheStep(function.kind);
}

std::string IdentityAnywhere(std::string_view rule, std::string_view op) {
  return fmt::format("{} | {} |  |  | 1", rule, op);
}

// The identity that a finding of a baseline has today. Older baselines have the places of calls
// that can be anywhere.
std::string IdentityToday(const std::string& written) {
  constexpr std::string_view kBetween = " | ";
  const size_t rule = written.find(kBetween);
  if (rule == std::string::npos) return written;
  const size_t begin = rule + kBetween.size();
  const size_t end = written.find(kBetween, begin);
  if (end == std::string::npos) return written;
  const std::string op = written.substr(begin, end - begin);
  return IsAnywhere(op) ? IdentityAnywhere(written.substr(0, rule), op) : written;
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

storage::Severity LocatedFinding::severity() const {
  return finding->by_adapter ? storage::Severity::kInfo : finding->rule->severity;
}

std::string LocatedFinding::Where() const { return place.empty() ? scope : place; }

std::string LocatedFinding::Identity() const {
  if (anywhere) return IdentityAnywhere(finding->rule->id, op);
  const std::string place = file.empty() ? "" : fmt::format("{} ({})", FileName(file), function);
  return fmt::format("{} | {} | {} | {} | {}", finding->rule->id, op, scope, place, ordinal);
}

std::vector<LocatedFinding> LocateFindings(const analyzer::Work& work,
                                           const analyzer::lint::LintReport& report) {
  std::vector<LocatedFinding> located;
  const auto scopes = ScopePaths(work);
  const analyzer::lint::Places places(work);
  std::map<std::pair<size_t, std::string>, int64_t> equals;
  for (const analyzer::lint::Finding& finding : report.findings) {
    LocatedFinding& one = located.emplace_back();
    one.finding = &finding;
    one.message = finding.message;
    one.verdict = finding.verdict;
    one.count = finding.count;
    const int64_t call = finding.call_id == 0 ? -1 : work.Find(finding.call_id);
    if (call >= 0) {
      const auto index = static_cast<size_t>(call);
      one.op = work.op(index).FullName();
      one.anywhere = work.dialect == analyzer::Dialect::kAcl && IsAnywhere(one.op);
      if (const auto scope = scopes.find(work.calls[index].scope); scope != scopes.end()) {
        one.scope = scope->second;
      }
      one.place = places.Text(index);
      if (const analyzer::SourceLine* line = places.Line(index)) {
        one.file = line->file;
        one.line = line->line;
        one.function = line->function;
      }
    }
    one.ordinal = ++equals[{finding.stretch, one.Identity()}];
  }
  return located;
}

void WriteBaseline(const std::string& path, const std::string& trace,
                   const std::vector<LocatedFinding>& findings) {
  ordered_json rows = ordered_json::array();
  std::set<std::string> written;
  for (const LocatedFinding& one : findings) {
    const std::string identity = one.Identity();
    if (!written.insert(identity).second) continue;
    rows.push_back({{"identity", identity},
                    {"severity", SeverityName(one.finding->rule->severity)},
                    {"title", one.finding->rule->title}});
  }
  const ordered_json document{{kBaselineKey, kBaselineVersion}, {"findings", std::move(rows)}};
  storage::WriteNewFile(path,
                        document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n',
                        BaselineRules(trace));
}

storage::OutputRules BaselineRules(const std::string& trace) {
  return {.trace = trace,
          .is_own = IsBaseline,
          .remedy = "it is no baseline of lint, so name another file"};
}

std::set<std::string> ReadBaseline(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the baseline '{}' {}; `acltape lint TRACE @write-baseline FILE` "
                            "writes one."_cli,
                            path, why));
  };
  std::string why;
  const std::optional<std::string> text = storage::ReadPlainFile(path, &why);
  if (!text) refuse(why);
  const auto document = ordered_json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains(kBaselineKey)) refuse("is no baseline of lint");
  if (document[kBaselineKey] != kBaselineVersion) refuse("is of another version of acltape");
  if (!document.contains("findings") || !document["findings"].is_array()) {
    refuse("has no list of findings");
  }
  std::set<std::string> identities;
  for (const auto& row : document["findings"]) {
    if (!row.is_object() || !row.contains("identity") || !row["identity"].is_string()) {
      refuse("has a finding without an identity");
    }
    identities.insert(IdentityToday(row["identity"].get<std::string>()));
  }
  return identities;
}

}  // namespace acltape::cli
