#include "cli/gate/gate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/frame/nothing_compared.h"
#include "cli/frame/version.h"
#include "cli/plan/lint_report.h"

namespace acltape::cli {
namespace {

using analyzer::gate::Change;
using analyzer::gate::FindMeasure;
using analyzer::gate::MeasureKind;
using analyzer::gate::Verdict;
using analyzer::gate::VerdictName;
using nlohmann::ordered_json;

bool Differs(const Change& change) { return change.verdict >= Verdict::kBetter; }

Cell NumberCell(bool known, double number) {
  if (!known) return {};
  if (number == std::floor(number)) return static_cast<int64_t>(number);
  return number;
}

std::string NumberText(double number) { return fmt::format("{:.10g}", number); }

// "+2 (+66.7%)"
std::string ChangeText(const Change& change) {
  if (!change.was_known || !change.is_known) return "";
  std::string text = fmt::format("{:+.10g}", change.difference());
  if (change.before > 0 && change.now > 0) {
    text += fmt::format(" ({:+.1f}%)", 100 * change.difference() / change.before);
  }
  return text;
}

std::string UnitOf(const Change& change) {
  if (change.is_cause) return "findings";
  const MeasureKind* kind = FindMeasure(change.name);
  return kind == nullptr ? "" : std::string(kind->unit);
}

// The text beside the numbers: the rule that allows the change, the reason, or the place.
std::string NoteOf(const Change& change) {
  if (change.verdict == Verdict::kAllowed) return "allowed by: " + change.why;
  if (!change.why.empty()) return change.why;
  if (change.cause != nullptr) {
    const std::string place = change.cause->place;
    return (place.empty() ? "" : place + ": ") + MessageBeside(change.cause->message, place);
  }
  if (change.is_cause) return "no such finding any more";
  const MeasureKind* kind = FindMeasure(change.name);
  return kind == nullptr ? "" : std::string(kind->meaning);
}

// "step.copies is 4, the baseline has 3: ..." as one sentence without a full stop.
std::string SentenceOf(const Change& change) {
  if (change.verdict == Verdict::kNotKnown) {
    return fmt::format("{} is not known: {}", change.name, change.why);
  }
  return fmt::format("{} is {}, and the baseline has {}: {}", change.name, NumberText(change.now),
                     NumberText(change.before), NoteOf(change));
}

std::string_view TimeVerdictName(TimeVerdict verdict) {
  constexpr std::string_view kNames[] = {"not slower", "slower", "not known"};
  return kNames[static_cast<size_t>(verdict)];
}

std::string TimeSentence(const GateTimes& times) {
  if (!times.why.empty()) return "the time is not known: " + times.why;
  return fmt::format(
      "captured host time over eager host time is {}, and the baseline has {}: {} by more than "
      "{:g}%{}",
      RatioText(times.now), RatioText(times.before), TimeVerdictName(times.verdict),
      100 * times.limit,
      times.verdict == TimeVerdict::kNotKnown ? ", because the intervals reach over the limit"
                                              : "");
}

std::string MarkdownCell(const std::string& text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '_' || c == '<') cell += '\\';
    cell += c == '\n' ? ' ' : c;
  }
  return cell;
}

std::string Plural(size_t count) { return count == 1 ? "is" : "are"; }

// SARIF's level of a change.
const char* LevelOf(const Change& change) {
  switch (change.verdict) {
    case Verdict::kWorse:
    case Verdict::kOther:
      return "error";
    case Verdict::kBetter:
    case Verdict::kNotKnown:
      return "warning";
    default:
      return "note";
  }
}

ordered_json LocationsOf(const Change& change, const GateAnswer& answer, const SourceRoot& root) {
  ordered_json physical;
  if (change.cause != nullptr && !change.cause->file.empty()) {
    physical["artifactLocation"] = root.Location(change.cause->file);
    if (change.cause->line > 0) physical["region"]["startLine"] = change.cause->line;
  } else {
    physical["artifactLocation"] = root.OwnLocation(answer.baseline);
    physical["region"]["startLine"] = LineInBaseline(answer.baseline, change.name);
  }
  return ordered_json::array({{{"physicalLocation", std::move(physical)}}});
}

// The rule of a change in SARIF: the measure, or the rule of lint.
std::string RuleOf(const Change& change) {
  return change.is_cause ? change.name.substr(0, change.name.find(' ')) : change.name;
}

std::string TestCase(const std::string& group, const std::string& name, const std::string& kind,
                     const std::string& text) {
  const std::string head =
      fmt::format("    <testcase classname=\"{}\" name=\"{}\"", XmlText(group), XmlText(name));
  if (kind.empty()) return head + "/>\n";
  if (kind == "system-out") {
    return fmt::format("{}><system-out>{}</system-out></testcase>\n", head, XmlText(text));
  }
  return fmt::format("{}><{} message=\"{}\"/></testcase>\n", head, kind, XmlText(text));
}

}  // namespace

int GateAnswer::ExitCode() const {
  const int counts = analyzer::gate::ExitCodeOf(changes);
  if (counts == kExitDifferences || !times) return counts;
  if (times->verdict == TimeVerdict::kSlower) return kExitDifferences;
  return times->verdict == TimeVerdict::kNotKnown ? kExitCannotJudge : counts;
}

std::string GateAnswer::Summary() const {
  std::array<size_t, 4> counts{};  // differ, not known, allowed, equal
  for (const Change& change : changes) {
    const size_t kind = Differs(change)                        ? 0
                        : change.verdict == Verdict::kNotKnown ? 1
                        : change.verdict == Verdict::kAllowed  ? 2
                                                               : 3;
    ++counts[kind];
  }
  std::string text = fmt::format("{} differ{}", counts[0], counts[0] == 1 ? "s" : "");
  if (counts[1] > 0) text += fmt::format(", {} {} not known", counts[1], Plural(counts[1]));
  if (counts[2] > 0) text += fmt::format(", {} {} allowed", counts[2], Plural(counts[2]));
  text += fmt::format(", {} {} equal", counts[3], Plural(counts[3]));
  if (times) text += "; " + TimeSentence(*times);
  if (measured != nullptr && !measured->left_out.empty()) text += "; " + measured->left_out;
  return text;
}

Table ChangeTable(const GateAnswer& answer, bool all) {
  Table table({"measure", "unit", "baseline", "now", "change", "verdict", "note"});
  int64_t equal = 0;
  for (const Change& change : answer.changes) {
    if (change.verdict == Verdict::kEqual) {
      ++equal;
      if (!all) continue;
    }
    table.Add({change.name, TextCell(UnitOf(change)), NumberCell(change.was_known, change.before),
               NumberCell(change.is_known, change.now),
               change.verdict == Verdict::kEqual ? Cell() : TextCell(ChangeText(change)),
               std::string(VerdictName(change.verdict)),
               change.verdict == Verdict::kEqual ? Cell() : TextCell(NoteOf(change))});
  }
  if (!all && equal > 0) {
    table.Add({fmt::format("{} {}", equal, equal == 1 ? "other" : "others"), Cell(), Cell(), Cell(),
               Cell(), "equal", Cell()});
  }
  return table;
}

Table TimeTable(const GateAnswer& answer) {
  Table table({"quantity", "baseline", "now", "allowed, %", "verdict", "note"});
  if (!answer.times) return table;
  const GateTimes& times = *answer.times;
  const bool known = times.why.empty();
  table.Add({"captured host time / eager host time", known ? Cell(RatioText(times.before)) : Cell(),
             known ? Cell(RatioText(times.now)) : Cell(), 100 * times.limit,
             std::string(TimeVerdictName(times.verdict)), TextCell(times.why)});
  return table;
}

std::string MarkdownText(const GateAnswer& answer) {
  const int code = answer.ExitCode();
  std::string text = fmt::format("**acltape gate: {}.** {}.\n",
                                 code == 0                  ? "nothing changed"
                                 : code == kExitDifferences ? "changed"
                                                            : "not known",
                                 answer.Summary());
  const bool any = std::any_of(answer.changes.begin(), answer.changes.end(),
                               [](const Change& one) { return one.verdict != Verdict::kEqual; });
  if (!any) return text;
  text += "\n| measure | baseline | now | change | verdict | note |\n";
  text += "| --- | ---: | ---: | ---: | --- | --- |\n";
  for (const Change& change : answer.changes) {
    if (change.verdict == Verdict::kEqual) continue;
    const std::string unit = change.is_cause ? "" : UnitOf(change);
    text += fmt::format("| {}{} | {} | {} | {} | {} | {} |\n", MarkdownCell(change.name),
                        unit.empty() ? "" : ", " + unit,
                        change.was_known ? NumberText(change.before) : "",
                        change.is_known ? NumberText(change.now) : "", ChangeText(change),
                        VerdictName(change.verdict), MarkdownCell(NoteOf(change)));
  }
  return text;
}

std::string GateSarif(const GateAnswer& answer, const SourceRoot& root) {
  ordered_json rules = ordered_json::array();
  std::map<std::string, size_t> index;
  ordered_json results = ordered_json::array();
  for (const Change& change : answer.changes) {
    if (change.verdict == Verdict::kEqual) continue;
    const std::string rule = RuleOf(change);
    if (index.emplace(rule, rules.size()).second) {
      const MeasureKind* kind = change.is_cause ? nullptr : FindMeasure(change.name);
      const std::string text =
          kind == nullptr ? "findings of lint with one cause" : std::string(kind->meaning);
      rules.push_back({{"id", rule}, {"shortDescription", {{"text", text}}}});
    }
    ordered_json result{{"ruleId", rule},
                        {"ruleIndex", index.at(rule)},
                        {"level", LevelOf(change)},
                        {"message", {{"text", SentenceOf(change)}}},
                        {"locations", LocationsOf(change, answer, root)},
                        {"partialFingerprints", {{"acltapeGate/v1", change.name}}}};
    if (change.verdict == Verdict::kAllowed) {
      result["suppressions"] =
          ordered_json::array({{{"kind", "external"}, {"justification", change.why}}});
    }
    results.push_back(std::move(result));
  }
  const ordered_json document{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                              {"version", "2.1.0"},
                              {"runs", ordered_json::array({{{"tool",
                                                              {{"driver",
                                                                {{"name", "acltape gate"},
                                                                 {"version", VersionNumber()},
                                                                 {"rules", std::move(rules)}}}}},
                                                             {"originalUriBaseIds", root.Bases()},
                                                             {"columnKind", "utf16CodeUnits"},
                                                             {"results", std::move(results)}}})}};
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

std::string GateJunit(const GateAnswer& answer) {
  std::string cases;
  size_t failures = 0;
  size_t skipped = 0;
  size_t tests = answer.changes.size();
  for (const Change& change : answer.changes) {
    std::string kind;
    if (Differs(change)) {
      kind = "failure";
      ++failures;
    } else if (change.verdict == Verdict::kNotKnown) {
      kind = "skipped";
      ++skipped;
    } else if (change.verdict == Verdict::kAllowed) {
      kind = "system-out";
    }
    cases += TestCase(change.is_cause ? "findings" : "measures", change.name, kind,
                      kind.empty() ? "" : SentenceOf(change));
  }
  if (answer.times) {
    ++tests;
    const TimeVerdict verdict = answer.times->verdict;
    failures += verdict == TimeVerdict::kSlower ? 1 : 0;
    skipped += verdict == TimeVerdict::kNotKnown ? 1 : 0;
    cases += TestCase("times", "captured_to_eager",
                      verdict == TimeVerdict::kSlower     ? "failure"
                      : verdict == TimeVerdict::kNotKnown ? "skipped"
                                                          : "",
                      TimeSentence(*answer.times));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites tests=\"{0}\" failures=\"{1}\" skipped=\"{2}\" errors=\"0\">\n"
      "  <testsuite name=\"acltape gate\" tests=\"{0}\" failures=\"{1}\" skipped=\"{2}\" "
      "errors=\"0\">\n{3}  </testsuite>\n</testsuites>\n",
      tests, failures, skipped, cases);
}

}  // namespace acltape::cli
