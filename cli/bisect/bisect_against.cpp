#include "cli/bisect/bisect_against.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "analyzer/diff/diff.h"
#include "analyzer/diff/origins.h"
#include "analyzer/program/source_lines.h"
#include "analyzer/ranks/collectives.h"
#include "cli/bisect/bisect_report.h"
#include "cli/choices/selection.h"
#include "cli/tables/coverage_words.h"
#include "cli/tables/lines_of_both.h"
#include "cli/tables/where.h"
#include "cli/terminal/progress.h"
#include "meaning/command_change.h"
#include "replayer/against/against_experiment.h"
#include "replayer/session.h"

namespace acltape::cli {
namespace {

using analyzer::diff::DiffCause;
using analyzer::diff::DiffReport;
using analyzer::diff::DiffRow;
using nlohmann::json;
using replayer::against::AgainstExperiment;
using replayer::against::PairFacts;
using replayer::bisect::BisectionReport;
using replayer::bisect::FoundCause;

bool Paired(const DiffRow& row) { return !row.a_calls.empty() && !row.b_calls.empty(); }

std::string JoinCalls(const std::vector<int64_t>& calls) {
  return fmt::format("{}", fmt::join(calls, " "));
}

std::string ChangeOf(const DiffRow& row) {
  std::string change = row.change;
  if (!row.notes.empty()) change += (change.empty() ? "" : "; ") + row.notes;
  return change;
}

// The conclusion from executing both forms of a pair on recorded values.
std::string Conclusion(const DiffRow& row, const PairFacts& facts) {
  if (facts.joined_to >= 0) {
    return fmt::format("executed in B's form together with call {}, because its shape differs",
                       facts.joined_to);
  }
  if (!facts.why_not.empty()) return "named by the diff alone: " + facts.why_not;
  if (facts.a_reproduces == false) {
    return "A's form does not give A's record here: the device or noise made the difference";
  }
  if (facts.b_reproduces == false) {
    return "B's form does not give B's record here: the device or noise made the difference";
  }
  if (facts.same_result == true) {
    return row.cause == DiffCause::kNone ? "the same result from equal inputs"
                                         : "the same result from equal inputs: it reads others";
  }
  const std::string change = ChangeOf(row);
  const char* what = !change.empty()         ? change.c_str()
                     : facts.random          ? "other random numbers"
                     : facts.received        ? "other data from other ranks"
                     : !facts.only_b.empty() ? "calls that only B has stand before it"
                     : !facts.only_a.empty() ? "calls that only A has stand before it"
                                             : "it reads contents that B's program brought";
  return std::string("another result from equal inputs: ") + what;
}

Cell Reproduces(const std::optional<bool>& fact) {
  return !fact ? Cell() : Cell(*fact ? "reproduced" : "not reproduced");
}

Table PairTable(const DiffReport& diff, const std::vector<PairFacts>& facts, bool all) {
  Table table({"a_call", "b_call", "a_op", "b_op", "change", "cause", "A here", "B here",
               "relative_error", "conclusion"});
  for (const PairFacts& pair : facts) {
    const DiffRow& row = diff.rows[pair.row];
    const bool notable = analyzer::diff::HasOwnCause(row) || !row.change.empty() ||
                         pair.same_result == false || pair.a_reproduces == false ||
                         pair.b_reproduces == false;
    if (!all && !notable) continue;
    table.Add({JoinCalls(row.a_calls), JoinCalls(row.b_calls), row.a_op, row.b_op,
               TextCell(ChangeOf(row)),
               TextCell(std::string(analyzer::diff::DiffCauseName(row.cause))),
               Reproduces(pair.a_reproduces), Reproduces(pair.b_reproduces),
               pair.error > 0 ? Cell(pair.error) : Cell(), Conclusion(row, pair)});
  }
  return table;
}

// Calls that only one recording has, and calls at which the diff says that a difference begins. The
// diff alone names these, nothing was executed.
Table NamedTable(const DiffReport& diff, const std::function<bool(const DiffRow&)>& wanted) {
  Table table({"a_call", "b_call", "relation", "op", "change", "cause"});
  for (const DiffRow& row : diff.rows) {
    if (!wanted(row)) continue;
    table.Add({TextCell(JoinCalls(row.a_calls)), TextCell(JoinCalls(row.b_calls)),
               std::string(analyzer::diff::DiffRelationName(row.relation)),
               row.a_op.empty() ? row.b_op : row.a_op, TextCell(ChangeOf(row)),
               TextCell(std::string(analyzer::diff::DiffCauseName(row.cause)))});
  }
  return table;
}

class Against {
 public:
  // `level_note` says why the traces are not compared at the level that each would be read at.
  Against(const AgainstOptions& options, const BisectWith& bisect_with, std::string level_note)
      : options_(options),
        bisect_with_(bisect_with),
        a_(options.a, options.discard, options.part),
        b_(options.b, options.part),
        level_note_(std::move(level_note)) {}

  int Run() {
    Progress progress("diff");
    analyzer::diff::DiffOptions diff_options;
    diff_options.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    diff_ = analyzer::diff::Diff(a_.reader(), b_, diff_options);
    progress.Clear();
    if (diff_.counts.aligned == 0) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} and {} have no call in common; @against takes another recording "
                              "of the same program."_cli,
                              options_.a, options_.b));
    }
    step_ = ChosenStep();
    try {
      return Bisect();
    } catch (const Error& cause) {
      if (cause.kind() != ErrorKind::kTrace) throw;
      return NameOnly(cause.what());
    }
  }

 private:
  // The step of the first difference; without a difference the first step that has calls of both.
  int64_t ChosenStep() const {
    const auto common = [&](int64_t step) {
      return std::any_of(diff_.rows.begin(), diff_.rows.end(),
                         [&](const DiffRow& row) { return Paired(row) && row.a_step == step; });
    };
    if (options_.step >= 0) {
      if (common(options_.step)) return options_.step;
      throw Error(ErrorKind::kUsage,
                  fmt::format("@run-steps {} names no step of {} that {} has too."_cli,
                              options_.step, options_.a, options_.b));
    }
    for (size_t i = diff_.first < 0 ? 0 : diff_.first; i < diff_.rows.size(); ++i) {
      const DiffRow& row = diff_.rows[i];
      if (Paired(row) && (diff_.first >= 0 || row.a_step >= 0)) return row.a_step;
    }
    return diff_.rows.front().a_step;
  }

  meaning::GivenCommand Command() const {
    CommandLine line = options_.given.Without("journal").Without("restart");
    if (step_ >= 0) line = line.With("run-steps", std::to_string(step_));
    return line.With("no-journal").With("no-results").Printer();
  }

  // The calls that may be altered; null: all. On the rank where a difference begins, what other
  // ranks sent is not the cause.
  std::function<bool(int64_t call)> MayAlter() const {
    auto picked = PickedBy(a_.reader(), options_.calls);
    if (!options_.ranks) return picked;
    std::set<int64_t> collectives;
    const auto all = analyzer::ranks::LoadCommunication(a_.reader());
    for (const analyzer::ranks::Collective& one : all.collectives) {
      collectives.insert({one.call_id, one.asked_call});
    }
    return [picked = std::move(picked), collectives = std::move(collectives)](int64_t call) {
      return !collectives.contains(call) && (!picked || picked(call));
    };
  }

  int Bisect() {
    replayer::Session a(a_.reader(), replayer::Data::kRecorded, options_.device_lib, 1, nullptr);
    replayer::Session b(b_, replayer::Data::kRecorded, options_.device_lib, 1, nullptr);
    int code = 0;
    a.WithLowering([&](replayer::Execution& of_a) {
      b.WithLowering([&](replayer::Execution& of_b) {
        replayer::against::Exchange exchange(of_a, of_b, diff_, step_);
        AgainstExperiment experiment(exchange, MayAlter(), Command());
        if (experiment.size() == 0 && !options_.calls.empty()) {
          throw Error(ErrorKind::kUsage,
                      fmt::format("@calls {} picks none of the calls of step {} of {} that differ "
                                  "from those of {}."_cli,
                                  options_.calls, step_, options_.a, options_.b));
        }
        BisectionReport report = Search(experiment, a.device().description());
        report.equal_beforehand = "the diff names no pair of calls that differs";
        if (StepDiffers()) report.nothing_altered = NothingAltered(experiment);
        // The search looks for nothing in results that the diff did not compare.
        const bool by_diff = experiment.size() == 0 || diff_.coverage.TooLittle();
        report.coverage = by_diff ? diff_.coverage : experiment.Coverage();
        for (FoundCause& found : report.found) {
          if (found.cause.elements.empty()) continue;
          found.first_call = experiment.CallOf(found.cause.elements.front());
        }
        code = Conclude(experiment, report);
      });
    });
    return code;
  }

  // The sentence for a step that differs though no call of it gives another result in B's form.
  std::string NothingAltered(const AgainstExperiment& experiment) const {
    const DiffRow& row = diff_.rows[diff_.first];
    const bool of_a = !row.a_calls.empty();
    const bool executed = std::all_of(experiment.facts().begin(), experiment.facts().end(),
                                      [](const PairFacts& facts) { return facts.why_not.empty(); });
    return fmt::format("the diff names call {} {} of {} first, and no call that differs {}",
                       of_a ? row.a_calls.back() : row.b_calls.back(), of_a ? row.a_op : row.b_op,
                       of_a ? options_.a : options_.b,
                       executed ? "gives another result in B's form on this device"
                                : "can be executed in the form that B gave it");
  }

  BisectionReport Search(AgainstExperiment& experiment, const std::string& device) const {
    json identity{{"calls", a_.reader().CallCount(false)},
                  {"command", a_.reader().Meta("command")},
                  {"against", options_.b},
                  {"against_calls", b_.CallCount(false)},
                  {"against_command", b_.Meta("command")},
                  {"step", step_},
                  {"altered", options_.calls},
                  {"device", device}};
    return bisect_with_(identity, [&](replayer::bisect::Journal* journal,
                                      const replayer::bisect::BisectionOptions& options) {
      return replayer::bisect::Bisect(experiment, options, journal, {});
    });
  }

  int Conclude(const AgainstExperiment& experiment, const BisectionReport& report) {
    Keep(experiment, report);
    Report output =
        BisectTables(report, {options_.a, options_.b, "calls that differ"}, a_.reader());
    if (options_.ranks) output.Add("ranks", *options_.ranks);
    const auto on_one_side = [](const DiffRow& row) {
      return !Paired(row) && analyzer::diff::HasOwnCause(row);
    };
    output.Add("pairs",
               LinesOfA(PairTable(diff_, experiment.facts(), options_.format != Format::kTable)));
    output.Add("only one side", LinesOfBoth(NamedTable(diff_, on_one_side)));
    Table notes({"note"});
    notes.Add({step_ >= 0 ? fmt::format("step {} of {} was executed", step_, options_.a)
                          : fmt::format("the calls of {} outside of steps were bisected, and those "
                                        "between them executed",
                                        options_.a)});
    if (options_.ranks) {
      notes.Add(
          {fmt::format("{} was bisected, on which the results part first", options_.part.process)});
    }
    if (experiment.rounds()) {
      notes.Add({"element types differ: an error that ten times their rounding explains is none"});
    }
    int code = report.ExitCode();
    if (code == 0 && StepDiffers()) code = JudgeByDiff(experiment, notes);
    if (!level_note_.empty()) notes.Add({level_note_});
    output.Add("notes", std::move(notes));
    fmt::print("{}", output.ToText(options_.format));
    return code;
  }

  // No execution showed the difference that the diff names in this step. It ends inside the step
  // only if everything that differs was executed in B's form, and gave what was recorded.
  int JudgeByDiff(const AgainstExperiment& experiment, Table& notes) const {
    const bool unexplained =
        std::any_of(experiment.facts().begin(), experiment.facts().end(), [&](const PairFacts& f) {
          return !f.why_not.empty() || (analyzer::diff::HasOwnCause(diff_.rows[f.row]) &&
                                        (f.a_reproduces == false || f.b_reproduces == false));
        });
    if (!unexplained && !options_.calls.empty()) return 0;
    if (!unexplained && options_.ranks) {
      notes.Add(
          {"what the diff names first leaves the rank by a collective, which executions of one "
           "rank alone do not show: see the table of ranks"});
      return static_cast<int>(ErrorKind::kCannotJudge);
    }
    if (!unexplained && experiment.size() > 0) {
      notes.Add({"what the diff names first does not reach the results of the step"});
      return 0;
    }
    notes.Add(
        {"the diff names a difference that executions on this device do not show: see the "
         "conclusions"});
    return static_cast<int>(ErrorKind::kCannotJudge);
  }

  // The table with the lines that the calls of A come from.
  Table LinesOfA(const Table& table) const {
    return WithLines(table, "a_call", analyzer::SourceLines(a_.reader()));
  }

  // The table with a line for each row, of B where A has no call.
  Table LinesOfBoth(const Table& table) const {
    const analyzer::SourceLines of_a(a_.reader());
    const analyzer::SourceLines of_b(b_);
    return WithLinesOfBoth(table, of_a, of_b);
  }

  // True if the diff says that a difference begins in the step. A call that only B has belongs to
  // the step of the calls of B beside it.
  bool StepDiffers() const {
    std::set<int64_t> steps_of_b;
    for (const DiffRow& row : diff_.rows) {
      if (Paired(row) && row.a_step == step_) steps_of_b.insert(row.b_step);
    }
    return std::any_of(diff_.rows.begin(), diff_.rows.end(), [&](const DiffRow& row) {
      if (!analyzer::diff::HasOwnCause(row)) return false;
      return row.a_calls.empty() ? steps_of_b.count(row.b_step) != 0 : row.a_step == step_;
    });
  }

  // Findings of A.
  void Keep(const AgainstExperiment& experiment, const BisectionReport& report) const {
    if (a_.results() == nullptr) return;
    for (const FoundCause& found : report.found) {
      if (!found.cause.minimal) continue;
      json evidence = json::parse(OutcomeJson(found.cause.outcome));
      evidence["against"] = options_.b;
      evidence["step"] = step_;
      evidence["calls"] = found.descriptions;
      evidence["command"] = found.command;
      a_.results()->AddFinding(
          {.rule = "BISECT-AGAINST",
           .severity = storage::Severity::kError,
           .call_id = experiment.CallOf(found.cause.elements.front()),
           .message = fmt::format("{} gives the step other results",
                                  fmt::join(found.descriptions, " together with ")),
           .evidence = json::array({evidence}).dump(),
           .verdict = "reproduced"});
    }
    a_.results()->Commit();
  }

  // Prints what the diff names. Nothing more is possible when the traces lack contents that an
  // execution needs.
  int NameOnly(const std::string& why) const {
    Table summary({"quantity", "value"});
    summary.Add({"good side", options_.a});
    summary.Add({"bad side", options_.b});
    summary.Add({"not executed because", why});
    AddCoverage(summary, diff_.coverage);
    const bool blind = !diff_.different() && diff_.coverage.TooLittle();
    summary.Add({"verdict", diff_.different()
                                ? "cannot judge: the diff names what differs, nothing was executed"
                            : blind ? NotKnown(diff_.coverage)
                                    : "nothing found: the diff names no difference"});
    Report output;
    output.Add("summary", std::move(summary));
    if (options_.ranks) output.Add("ranks", *options_.ranks);
    output.Add("named by the diff", LinesOfBoth(NamedTable(diff_, analyzer::diff::HasOwnCause)));
    fmt::print("{}", output.ToText(options_.format));
    return diff_.different() || blind ? static_cast<int>(ErrorKind::kCannotJudge) : 0;
  }

  const AgainstOptions& options_;
  const BisectWith& bisect_with_;
  OpenedTrace a_;
  storage::Reader b_;
  const std::string level_note_;
  DiffReport diff_;
  int64_t step_ = -1;
};

}  // namespace

int BisectAgainst(const AgainstOptions& options, const BisectWith& bisect_with) {
  AgainstOptions chosen = options;
  std::string note;
  if (!options.part.level) {
    const auto common = analyzer::diff::FindCommonLevel(storage::Reader(options.a, options.part),
                                                        storage::Reader(options.b, options.part));
    if (common && !common->note.empty()) {
      chosen.part.level = common->level;
      note = common->note;
    }
  }
  return Against(chosen, bisect_with, note).Run();
}

}  // namespace acltape::cli
