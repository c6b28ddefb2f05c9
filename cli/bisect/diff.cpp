#include "analyzer/diff/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "analyzer/calls/record_more.h"
#include "analyzer/diff/verdict.h"
#include "analyzer/program/acl_leaves.h"
#include "analyzer/program/source_lines.h"
#include "cli/bisect/commands.h"
#include "cli/bisect/diff_results.h"
#include "cli/bisect/diff_words.h"
#include "cli/bisect/ranks_diff.h"
#include "cli/choices/selection.h"
#include "cli/frame/next_step.h"
#include "cli/frame/nothing_compared.h"
#include "cli/frame/options.h"
#include "cli/tables/lines_of_both.h"
#include "cli/tables/report.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/table.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

using analyzer::diff::DiffCause;
using analyzer::diff::DiffRelation;
using analyzer::diff::DiffReport;
using analyzer::diff::DiffRow;
using analyzer::diff::DiffVerdict;

Cell StepCell(int64_t step) { return step < 0 ? Cell() : Cell(step); }

std::string Relation(const DiffRow& row) {
  std::string text(analyzer::diff::DiffRelationName(row.relation));
  if (row.copy) text += " copy";
  if (row.dead) text += ", not used";
  return text;
}

bool Alone(const DiffRow& row) {
  return row.relation == DiffRelation::kInserted || row.relation == DiffRelation::kDeleted;
}

// True for rows that are shown without --all: calls that are not the same, and calls at which a
// difference begins.
bool Notable(const DiffRow& row) {
  if (row.relation != DiffRelation::kSame && !row.copy) return true;
  return row.cause == DiffCause::kOrigin || row.cause == DiffCause::kStructural ||
         row.cause == DiffCause::kInput;
}

Cell VerdictCell(const DiffRow& row) {
  if (Alone(row) && row.verdict == DiffVerdict::kNotComparable) return Cell();
  return std::string(analyzer::diff::DiffVerdictName(row.verdict));
}

class DiffCommand final : public Command {
 public:
  std::string Name() const override { return "diff"; }
  std::string Summary() const override {
    return "Align two traces by dataflow and find the first call whose results part";
  }
  std::string Examples() const override {
    return "  acltape diff before.db after.db              two versions of a script\n"
           "  acltape diff float.db half.db                two element types\n"
           "  acltape diff a.db b.db @standard ascend     with tolerances by operator\n"
           "  acltape diff a.db b.db @calls step:3/op:aten::mm @all\n"
           "  acltape diff a.db b.db @ranks all           each rank, and on which one it began\n"
           "  acltape diff a.db b.db @steps @format csv"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("a", paths_[0], "The trace that is the reference")->required();
    app.add_option("b", paths_[1], "The trace that is judged")->required();
    AddOption(app, "standard", options_.standard,
              "bitwise, the name of a precision standard, or a file of one (default: bitwise; "
              "ascend between element types, devices and versions of the framework)");
    AddOption(app, "calls", calls_,
              "Compare only these calls of A: 100-200, step:3, op:NAME; what was inserted in "
              "B is always shown");
    AddChoice(app, "ranks", ranks_, {{"one", Ranks::kOne}, {"all", Ranks::kAll}},
              "One program of each trace, or each rank with its counterpart in B: on which rank "
              "the results part first; nothing is written to A");
    AddFlag(app, "all", all_, "List every pair of calls, not only what is not the same");
    AddFlag(app, "steps", steps_, "Add a table with a row for each step");
    AddCount(app, "rows", limit_, 0, "Rows to list of the table of calls; 0: all");
    AddFlag(app, "no-results", discard_, "Write no rows to A");
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (ranks_ == Ranks::kAll) return AllRanks();
    const Selection selection = Selection::Parse(calls_);
    const OpenedTrace a(paths_[0], discard_, part());
    const storage::Reader b(paths_[1], part());
    if (!selection.empty()) {
      options_.pick = [&](const analyzer::Work& work) {
        auto picked = SelectCalls(work, selection);
        if (picked.empty()) {
          throw Error(ErrorKind::kUsage,
                      fmt::format("no call of {} is picked by '{}'.", paths_[0], calls_));
        }
        return picked;
      };
    }
    Progress progress("diff");
    options_.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    const DiffReport report = analyzer::diff::Diff(a.reader(), b, options_);
    progress.Clear();
    if (a.results() != nullptr) KeepDiff(a.reader(), paths_[1], report, *a.results());

    const analyzer::SourceLines of_a(a.reader());
    const analyzer::SourceLines of_b(b);
    Report output;
    output.Add("summary", SummaryTable(report, of_a, of_b));
    output.Add("calls", WithLinesOfBoth(CallTable(report), of_a, of_b));
    output.Add("origins", WithLinesOfBoth(OriginTable(report), of_a, of_b));
    output.Add("operators", OperatorTable(report));
    if (steps_) output.Add("steps", StepTable(report));
    Table notes({"note"});
    for (const std::string& note : report.notes) notes.Add({note});
    output.Add("notes", std::move(notes));
    fmt::print("{}", output.ToText(format_));
    if (format_ == Format::kTable && report.different()) {
      fmt::print("\nreproduce: {}\n", Reproduce(report, report.rows[report.first]));
    }
    if (report.different()) return kExitDifferences;
    if (report.counts.aligned > 0 && !report.coverage.TooLittle()) return kExitFine;
    if (report.counts.aligned > 0) {
      return TooLittleCompared(report.coverage, HowToSeeMore(report, a.reader()));
    }
    return NothingCompared(
        "no picked call of A has a counterpart in B; pick others with @calls, or give two "
        "recordings of one program"_cli);
  }

 private:
  enum class Ranks : uint8_t { kOne, kAll };

  int AllRanks() const {
    const std::pair<const char*, bool> others[] = {{"@process"_cli, !part().process.empty()},
                                                   {"@calls"_cli, !calls_.empty()},
                                                   {"@all"_cli, all_},
                                                   {"@steps"_cli, steps_}};
    for (const auto& [option, is_given] : others) {
      if (!is_given) continue;
      throw Error(ErrorKind::kUsage,
                  fmt::format("@ranks all compares each rank as a whole; leave out {}, or name one "
                              "rank with @process rank:N"_cli,
                              option));
    }
    const RanksDiff diff(paths_[0], paths_[1], part(), options_);
    if (!diff.FirstRank().empty()) {
      SuggestNext(fmt::format("acltape bisect {} @against {} @ranks all"_cli,
                              storage::ShellWord(paths_[0]), storage::ShellWord(paths_[1])));
    }
    return diff.Print(format_, given());
  }

  // Recording more does not help where B lacks the calls.
  static std::string HowToSeeMore(const DiffReport& report, const storage::Reader& a) {
    const analyzer::Coverage& coverage = report.coverage;
    const int64_t lacking = report.counts.without_counterpart;
    if (analyzer::TooFew(coverage.covered + lacking, coverage.computed)) {
      return "for both traces " + analyzer::HowToRecordMore(a);
    }
    return fmt::format("{} of them have no counterpart in B: pick others with @calls"_cli, lacking);
  }

  // The call, and the first that inherits from it where it shows only there: what only one side has
  // gives no result that could be compared with another.
  std::string Reproduce(const DiffReport& report, const DiffRow& row) const {
    std::vector<int64_t> calls = row.a_calls;
    if (Alone(row) || row.verdict == DiffVerdict::kNotComparable) {
      const int64_t index = &row - report.rows.data();
      const auto heir =
          std::find_if(report.rows.begin(), report.rows.end(), [&](const DiffRow& other) {
            return other.origin == index && !other.a_calls.empty() && other.picked;
          });
      if (heir != report.rows.end()) {
        calls.insert(calls.end(), heir->a_calls.begin(), heir->a_calls.end());
      }
    }
    std::sort(calls.begin(), calls.end());
    if (calls.empty()) return given().Without("calls").Text();
    return given().With("calls", fmt::format("{}", fmt::join(calls, ","))).Text();
  }

  Table SummaryTable(const DiffReport& report, const analyzer::SourceLines& of_a,
                     const analyzer::SourceLines& of_b) const {
    Table table({"quantity", "value"});
    const auto add = [&](const char* quantity, Cell value) {
      table.Add({quantity, std::move(value)});
    };
    const analyzer::diff::DiffCounts& counts = report.counts;
    add("A", paths_[0]);
    add("B", paths_[1]);
    add("standard", report.standard);
    add("calls that use memory, A", counts.a_calls);
    add("calls that use memory, B", counts.b_calls);
    if (!calls_.empty()) add("calls picked", calls_);
    add("aligned", counts.aligned);
    add("  of these changed", counts.changed);
    add("  of these fused, split or rewritten", counts.groups);
    add("inserted in B", counts.inserted);
    add("deleted from A", counts.deleted);
    if (counts.copies > 0) add("  of both copies and casts", counts.copies);
    add("results equal", counts.equal);
    add("results within the standard", counts.within);
    add("results different", counts.different);
    add("results not comparable", counts.not_comparable);
    add(analyzer::diff::kCoverageWords, report.coverage.Share());
    if (report.different()) {
      const DiffRow& row = report.rows[report.first];
      add("first divergence", Place(row));
      const std::string where = LineOf(row, of_a, of_b);
      if (!where.empty()) add("  where", where);
      add("  cause", std::string(analyzer::diff::DiffCauseName(row.cause)));
      if (!row.change.empty()) add("  change", row.change);
      if (!row.reason.empty()) add("  result", WithOutput(row));
      for (const analyzer::diff::DiffPropagation& spread : report.propagation) {
        if (spread.origin == report.first) AddPropagation(report, spread, table);
      }
      add("reproduce", Reproduce(report, row));
    }
    add("verdict", analyzer::diff::VerdictOf(report));
    return table;
  }

  static void AddPropagation(const DiffReport& report,
                             const analyzer::diff::DiffPropagation& spread, Table& table) {
    if (spread.rows > 1) table.Add({"  rows with this cause", spread.rows});
    table.Add({"  inherited by, calls", spread.inherited});
    if (spread.inherited > 0) {
      table.Add({"  longest chain, calls", int64_t{spread.depth}});
      table.Add({"  last of them", Place(report.rows[spread.last])});
    }
    if (spread.first_absorbed >= 0) {
      table.Add({"  agrees again at", Place(report.rows[spread.first_absorbed])});
    }
  }

  Table CallTable(const DiffReport& report) const {
    Table table({"a_call", "b_call", "a_step", "b_step", "a_op", "b_op", "relation", "verdict",
                 "cause", "origin", "max_ulp", "max_abs", "relative_error", "output", "detail"});
    int64_t listed = 0;
    for (const DiffRow& row : report.rows) {
      if (!row.picked || (!all_ && calls_.empty() && !Notable(row))) continue;
      if (Alone(row) && !calls_.empty() && row.cause == DiffCause::kNone) continue;
      if (limit_ > 0 && ++listed > limit_) break;
      std::string detail = row.change;
      for (const std::string& more : {row.notes, row.reason}) {
        if (!more.empty()) detail += (detail.empty() ? "" : "; ") + more;
      }
      if (row.metrics && row.metrics->elements == 1 && row.metrics->differing == 1) {
        detail += fmt::format("{}A has {}, B has {}", detail.empty() ? "" : "; ",
                              row.metrics->first_a, row.metrics->first_b);
      }
      const bool measured = row.metrics.has_value();
      const DiffRow* origin = row.origin >= 0 ? &report.rows[row.origin] : nullptr;
      table.Add({TextCell(CallsText(row.a_calls)), TextCell(CallsText(row.b_calls)),
                 StepCell(row.a_step), StepCell(row.b_step), TextCell(row.a_op), TextCell(row.b_op),
                 Relation(row), VerdictCell(row),
                 TextCell(std::string(analyzer::diff::DiffCauseName(row.cause))),
                 origin == nullptr ? Cell() : Cell(Place(*origin)),
                 measured ? Cell(row.metrics->max_ulp) : Cell(),
                 measured ? Cell(row.metrics->max_abs) : Cell(),
                 row.error > 0 ? Cell(row.error) : Cell(), TextCell(row.output), TextCell(detail)});
    }
    return table;
  }

  Table OriginTable(const DiffReport& report) const {
    Table table({"a_call", "b_call", "op", "cause", "rows", "inherited", "longest_chain",
                 "last_call", "agrees_again", "reproduce"});
    int64_t listed = 0;
    for (const analyzer::diff::DiffPropagation& spread : report.propagation) {
      if (limit_ > 0 && ++listed > limit_) break;
      const DiffRow& row = report.rows[spread.origin];
      const auto call = [&](int64_t index) {
        return index < 0 ? Cell() : TextCell(CallsText(report.rows[index].a_calls));
      };
      table.Add({TextCell(CallsText(row.a_calls)), TextCell(CallsText(row.b_calls)),
                 row.a_op.empty() ? row.b_op : row.a_op,
                 std::string(analyzer::diff::DiffCauseName(row.cause)), spread.rows,
                 spread.inherited, int64_t{spread.depth}, call(spread.last),
                 call(spread.first_absorbed), Reproduce(report, row)});
    }
    return table;
  }

  static Table OperatorTable(const DiffReport& report) {
    struct Counts {
      int64_t calls = 0, aligned = 0, equal = 0, within = 0, different = 0, not_comparable = 0;
      int64_t worst_ulp = -1;
      double worst_error = 0;
    };
    std::map<std::string, Counts> operators;
    for (const DiffRow& row : report.rows) {
      if (!row.picked) continue;
      Counts& counts = operators[row.a_op.empty() ? row.b_op : row.a_op];
      ++counts.calls;
      if (Alone(row)) continue;
      ++counts.aligned;
      counts.equal += row.verdict == DiffVerdict::kEqual;
      counts.within += row.verdict == DiffVerdict::kWithin;
      counts.different += row.verdict == DiffVerdict::kDifferent;
      counts.not_comparable += row.verdict == DiffVerdict::kNotComparable;
      counts.worst_error = std::max(counts.worst_error, row.error);
      if (row.metrics) counts.worst_ulp = std::max(counts.worst_ulp, row.metrics->max_ulp);
    }
    Table table({"op", "calls", "aligned", "equal", "within", "different", "not_comparable",
                 "worst_ulp", "worst_relative_error"});
    for (const auto& [op, counts] : operators) {
      table.Add({op, counts.calls, counts.aligned, counts.equal, counts.within, counts.different,
                 counts.not_comparable, counts.worst_ulp < 0 ? Cell() : Cell(counts.worst_ulp),
                 counts.worst_error > 0 ? Cell(counts.worst_error) : Cell()});
    }
    return table;
  }

  static Table StepTable(const DiffReport& report) {
    struct Counts {
      int64_t aligned = 0, changed = 0, inserted = 0, deleted = 0, equal = 0, within = 0,
              different = 0, not_comparable = 0;
      int64_t first = -1;
    };
    std::map<std::pair<int64_t, int64_t>, Counts> steps;
    for (size_t i = 0; i < report.rows.size(); ++i) {
      const DiffRow& row = report.rows[i];
      if (!row.picked) continue;
      Counts& counts = steps[{row.a_step, row.b_step}];
      if (Alone(row)) {
        ++(row.relation == DiffRelation::kInserted ? counts.inserted : counts.deleted);
        continue;
      }
      ++counts.aligned;
      counts.changed += row.relation != DiffRelation::kSame;
      counts.equal += row.verdict == DiffVerdict::kEqual;
      counts.within += row.verdict == DiffVerdict::kWithin;
      counts.different += row.verdict == DiffVerdict::kDifferent;
      counts.not_comparable += row.verdict == DiffVerdict::kNotComparable;
      if (row.verdict == DiffVerdict::kDifferent && counts.first < 0) {
        counts.first = static_cast<int64_t>(i);
      }
    }
    Table table({"a_step", "b_step", "aligned", "changed", "inserted", "deleted", "equal", "within",
                 "different", "not_comparable", "first_different"});
    for (const auto& [step, counts] : steps) {
      table.Add({StepCell(step.first), StepCell(step.second), counts.aligned, counts.changed,
                 counts.inserted, counts.deleted, counts.equal, counts.within, counts.different,
                 counts.not_comparable,
                 counts.first < 0 ? Cell() : Cell(Place(report.rows[counts.first]))});
    }
    return table;
  }

  std::array<std::string, 2> paths_;
  std::string calls_;
  analyzer::diff::DiffOptions options_;
  bool all_ = false;
  bool steps_ = false;
  Ranks ranks_ = Ranks::kOne;
  bool discard_ = false;
  int64_t limit_ = 100;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeDiffCommand() { return std::make_unique<DiffCommand>(); }

}  // namespace acltape::cli
