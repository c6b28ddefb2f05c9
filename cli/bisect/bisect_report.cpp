#include "cli/bisect/bisect_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analyzer/program/source_lines.h"
#include "cli/tables/coverage_words.h"
#include "cli/tables/step_source.h"
#include "replayer/bisect/element_text.h"

namespace acltape::cli {
namespace {

using nlohmann::json;
using replayer::bisect::BisectionReport;
using replayer::bisect::Effect;
using replayer::bisect::FoundCause;
using replayer::script::Outcome;

// The line of the program that the cause's first call comes from; empty where it is not known.
Cell LineCell(const storage::Reader& trace, const FoundCause& found) {
  std::string line = analyzer::SourceLines(trace).Of(found.first_call);
  return line.empty() ? Cell() : Cell(std::move(line));
}

std::string RateText(const Outcome& outcome) {
  if (outcome.executions == 0) return "not executed";
  return fmt::format("{}, different in {} of {} executions",
                     replayer::bisect::VerdictName(outcome.verdict), outcome.bad_executions,
                     outcome.executions);
}

Table SummaryTable(const BisectionReport& report, const BisectSubject& subject,
                   const storage::Reader& trace) {
  Table table({"quantity", "value"});
  const auto add = [&](const char* quantity, Cell value) {
    table.Add({quantity, std::move(value)});
  };
  const auto& search = report.search;
  add("good side", subject.good);
  add("  nothing altered", RateText(search.reference));
  add("bad side", subject.bad);
  add("  everything altered", RateText(search.altered));
  add(("bisected " + subject.what).c_str(), static_cast<int64_t>(report.elements));
  if (report.unjudged > 0) {
    add("  executed, but without a recorded result", static_cast<int64_t>(report.unjudged));
  }
  if (report.asked.computed > 0) {
    add("calls of the step that the check is asked about", report.asked.Share());
  }
  AddCoverage(table, report.coverage);
  add("experiments", report.experiments);
  if (!report.found.empty()) add("  to the first guess", report.found[0].cause.to_first_guess);
  add("  bound for one cause", report.bound);
  if (report.from_journal > 0) add("  from the journal", report.from_journal);
  if (report.counter_experiments > 0) add("counter-experiments", report.counter_experiments);
  if (report.narrowing_experiments > 0) {
    add("experiments to narrow it", report.narrowing_experiments);
  }
  if (search.varies) {
    add("results vary; rate of difference", search.rate);
    add("  executions of a clean set", search.executions);
    add("  chance that a clean set was none, at most", search.error);
  }
  add("verdict", report.Verdict());
  for (const std::string& sentence : report.flaky) add("  flaky", sentence);
  if (!report.found.empty()) {
    Cell line = LineCell(trace, report.found[0]);
    if (!std::holds_alternative<std::monostate>(line)) add("  where", std::move(line));
    if (const auto& classification = report.found[0].classification) {
      std::string text(replayer::bisect::CauseClassName(classification->cause));
      if (!classification->detail.empty()) text += " (" + classification->detail + ")";
      add("class", text);
      add("  because", classification->reason);
    }
    for (const std::string& sentence : report.found[0].evidence) add("  evidence", sentence);
    add("reproduce", report.found[0].command);
    if (!report.found[0].narrowed.empty()) {
      add("narrowed", report.found[0].narrowed);
      add("reproduce narrowed", report.found[0].narrowed_command);
    }
  } else if (report.ExitCode() != 0) {
    const bool reference =
        search.verdict == replayer::bisect::SearchResult::Verdict::kFlakyReference ||
        search.verdict == replayer::bisect::SearchResult::Verdict::kReferenceDiffers;
    add("reproduce", reference ? report.reference_command : report.altered_command);
  }
  return table;
}

// A row per element of each cause.
Table FoundTable(const BisectionReport& report) {
  Table table({"cause", "element", "what", "class", "first guess", "verified", "evidence"});
  int64_t number = 0;
  for (const FoundCause& found : report.found) {
    ++number;
    if (!found.cause.minimal) continue;
    for (size_t i = 0; i < found.cause.elements.size(); ++i) {
      const size_t element = found.cause.elements[i];
      table.Add(
          {number, static_cast<int64_t>(element), found.descriptions[i],
           found.classification
               ? Cell(std::string(replayer::bisect::CauseClassName(found.classification->cause)))
               : Cell(),
           element == found.cause.first_guess ? "yes" : "no",
           found.cause.monotonic ? "alone differing, nothing superfluous"
                                 : "by delta debugging, nothing superfluous",
           found.cause.outcome.evidence.empty() ? Cell() : Cell(found.cause.outcome.evidence)});
    }
  }
  return table;
}

Table DecisionTable(const BisectionReport& report) {
  Table table({"cause", "changed", "what is different then", "outcome", "executions", "so"});
  int64_t number = 0;
  for (const FoundCause& found : report.found) {
    ++number;
    if (!found.classification) continue;
    for (const replayer::bisect::CounterResult& result : found.classification->results) {
      const char* outcome = result.effect == Effect::kCured         ? "no difference"
                            : result.effect == Effect::kStays       ? "still different"
                            : result.effect == Effect::kCannotJudge ? "cannot be judged"
                                                                    : "out of time";
      const char* so = result.effect == Effect::kCured   ? result.experiment->if_cured
                       : result.effect == Effect::kStays ? result.experiment->if_not
                                                         : "";
      table.Add({number, std::string(result.experiment->remedy->name),
                 std::string(result.experiment->remedy->changes), outcome,
                 int64_t{result.outcome.executions}, so});
    }
  }
  return table;
}

// Further causes: class and command.
Table CommandTable(const BisectionReport& report, const storage::Reader& trace) {
  Table table({"cause", "class", "where", "reproduce"});
  if (report.found.size() < 2) return table;
  int64_t number = 0;
  for (const FoundCause& found : report.found) {
    table.Add(
        {++number,
         found.classification
             ? Cell(std::string(replayer::bisect::CauseClassName(found.classification->cause)))
             : Cell(),
         LineCell(trace, found), found.command});
  }
  return table;
}

}  // namespace

std::string OutcomeJson(const Outcome& outcome) {
  json object{{"verdict", replayer::bisect::VerdictName(outcome.verdict)},
              {"executions", outcome.executions},
              {"bad_executions", outcome.bad_executions}};
  if (!outcome.evidence.empty()) object["evidence"] = json::parse(outcome.evidence);
  return object.dump();
}

Report BisectTables(const BisectionReport& report, const BisectSubject& subject,
                    const storage::Reader& trace) {
  Report output;
  Table summary = SummaryTable(report, subject, trace);
  AddStepSource(summary, trace);
  output.Add("summary", std::move(summary));
  output.Add("found", FoundTable(report));
  output.Add("decision", DecisionTable(report));
  output.Add("causes", CommandTable(report, trace));
  return output;
}

void KeepCauses(const BisectionReport& report, const std::string& altered, int64_t plan_id,
                bool planted, storage::Results* results) {
  if (results == nullptr) return;
  for (const FoundCause& found : report.found) {
    if (!found.cause.minimal) continue;
    const std::string cause_class =
        found.classification
            ? std::string(replayer::bisect::CauseClassName(found.classification->cause))
            : "unknown";
    json evidence = json::parse(OutcomeJson(found.cause.outcome));
    evidence["calls"] = found.descriptions;
    evidence["class"] = cause_class;
    evidence["sentences"] = found.evidence;
    evidence["experiments"] = found.cause.experiments;
    const auto& seen = evidence["evidence"];
    const int64_t first_call =
        found.first_call != 0 ? found.first_call : seen.value("call", int64_t{0});
    std::string message =
        fmt::format("{}, {} gives other results ({})", altered,
                    fmt::join(found.descriptions, " together with "), cause_class);
    if (planted) {
      message = "with a planted fault, " + message;
    } else {
      results->AddFinding({.rule = "BISECT",
                           .severity = storage::Severity::kError,
                           .call_id = first_call,
                           .message = message,
                           .evidence = json::array({evidence}).dump(),
                           .verdict = "reproduced"});
    }
    results->AddWitness({.kind = "bisect",
                         .options = found.experiment.empty() ? "{}" : found.experiment,
                         .plan_id = plan_id,
                         .call_id = first_call,
                         .position = seen.value("output", 0),
                         .message = message,
                         .verdict = "different",
                         .command = found.command});
  }
  results->Commit();
}

}  // namespace acltape::cli
