#include "analyzer/lint/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "analyzer/calls/level.h"
#include "analyzer/calls/unknown_memory.h"
#include "analyzer/calls/work.h"
#include "analyzer/lint/both_levels.h"
#include "analyzer/lint/load.h"
#include "analyzer/steps/steps.h"
#include "analyzer/streams/budget.h"
#include "cli/choices/selection.h"
#include "cli/frame/next_step.h"
#include "cli/frame/options.h"
#include "cli/plan/commands.h"
#include "cli/plan/lint_identity.h"
#include "cli/plan/lint_other_level.h"
#include "cli/plan/lint_report.h"
#include "cli/tables/failures_table.h"
#include "cli/tables/report.h"
#include "cli/tables/step_source.h"
#include "cli/tables/where.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/table.h"
#include "replayer/probe/prove.h"
#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/query.h"

namespace acltape::cli {
namespace {

using analyzer::lint::CaptureMode;
using analyzer::lint::Finding;
using analyzer::lint::LintReport;
using analyzer::lint::Stretch;

enum class Modes { kAll, kGlobal, kThreadLocal, kRelaxed };

// The first three are those of Format, in its order.
enum class LintFormat { kTable, kCsv, kJson, kSarif, kJunit };

enum class FailOn { kError, kWarning, kNote, kNever };

storage::Severity LeastSeverity(FailOn fail_on) {
  return fail_on == FailOn::kError     ? storage::Severity::kError
         : fail_on == FailOn::kWarning ? storage::Severity::kNotice
                                       : storage::Severity::kInfo;
}

// "A-B", call ids.
analyzer::lint::StretchOptions ParseRegion(const std::string& text) {
  analyzer::lint::StretchOptions region;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, region.first_call);
  const bool dash = first.ec == std::errc() && first.ptr != end && *first.ptr == '-';
  const auto last = dash ? std::from_chars(first.ptr + 1, end, region.last_call)
                         : std::from_chars_result{end, std::errc::invalid_argument};
  if (last.ec != std::errc() || last.ptr != end || region.first_call < 1 ||
      region.last_call < region.first_call) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("'{}' is no region; write the first and the last call, such as 100-200", text));
  }
  return region;
}

// A table for people has so many regions; csv and json have all.
constexpr size_t kShownRegions = 10;

class LintCommand final : public Command {
 public:
  std::string Name() const override { return "lint"; }
  std::string Summary() const override {
    return "Predict what goes wrong when recorded work is captured: call, error code, edit";
  }
  std::string Examples() const override {
    return "  acltape lint t.db                        the program's captures, else each step\n"
           "  acltape lint t.db @mode relaxed         what is left in relaxed mode\n"
           "  acltape lint t.db @region 100-200       as if these calls were captured\n"
           "  acltape lint t.db @prove                capture it on the device, and with the "
           "edits\n"
           "  acltape lint t.db step:3 @format json\n"
           "  acltape lint t.db @write-baseline known.json    what is known today ...\n"
           "  acltape lint t.db @baseline known.json @fail-on error    ... is not counted later\n"
           "  acltape lint t.db @format sarif > lint.sarif    for viewers of code"_cli;
  }

  bool ExecutesTrace() const override { return prove_ && !trace_.empty(); }
  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace");
    app.add_option("selection", selection_,
                   "Which of the captures or steps: those whose first call is picked");
    AddChoice(app, "mode", modes_,
              {{"all", Modes::kAll},
               {"global", Modes::kGlobal},
               {"thread_local", Modes::kThreadLocal},
               {"relaxed", Modes::kRelaxed}},
              "Capture mode to look at");
    AddOption(app, "region", region_, "Calls A-B to look at as if they were captured");
    AddOption(app, "stream", options_.stretch.stream,
              "Stream on which such a capture begins (default: that of the first task)");
    AddOption(app, "soc", soc_, "Device whose limits count")->capture_default_str();
    AddOption(app, "stream-limit", stream_limit_, "Streams of the device, in place of @soc"_cli)
        ->check(AtLeast(1));
    AddFlag(app, "rules", rules_, "List the rules instead; needs no trace");
    AddFlag(app, "prove", prove_,
            "Capture the calls on a device in each mode, as recorded and with the edits, and "
            "compare its codes with the predicted ones");
    AddDeviceOption(app, device_lib_, "to prove on");
    AddCount(app, "executions", executions_, 2,
             "Executions of a graph with a race, for @prove"_cli);
    AddTime(
        app, "budget", budget_,
        "Time for @prove, such as 60s (default: 5m; 0: as long as it takes); what it leaves out "
        "is \"not known\""_cli);
    AddFlag(app, "no-results", discard_);
    AddFlag(app, "ungrouped", ungrouped_,
            "A row for each finding, in the order of the calls, also where several have one cause");
    AddChoice(app, "fail-on", fail_on_,
              {{"error", FailOn::kError},
               {"warning", FailOn::kWarning},
               {"note", FailOn::kNote},
               {"never", FailOn::kNever}},
              "From which findings on the exit code is 1; a warning is a notice of the table, a "
              "note an info");
    AddOption(app, "baseline", baseline_, "Do not count the findings that this file knows")
        ->type_name("FILE");
    AddOption(app, "write-baseline", write_baseline_,
              "Write the findings to this file, for @baseline; the exit code is 0 then"_cli);
    AddOption(app, "source-root", source_root_);
    AddChoice(app, "format", lint_format_,
              {{"table", LintFormat::kTable},
               {"csv", LintFormat::kCsv},
               {"json", LintFormat::kJson},
               {"sarif", LintFormat::kSarif},
               {"junit", LintFormat::kJunit}},
              "How to print; sarif and junit are for other tools");
  }

  int Run() override {
    const bool for_tools = lint_format_ == LintFormat::kSarif || lint_format_ == LintFormat::kJunit;
    if (!for_tools) format_ = static_cast<Format>(lint_format_);
    std::set<std::string> known;
    if (!baseline_.empty()) known = ReadBaseline(baseline_);
    if (rules_) {
      fmt::print("{}", RuleTable().ToText(format_));
      return kExitFine;
    }
    if (trace_.empty()) throw Error(ErrorKind::kUsage, "name a trace to lint, or give @rules"_cli);
    options_.stream_limit =
        stream_limit_ != 0 ? stream_limit_ : analyzer::streams::NeedSoc(soc_).streams;
    if (!region_.empty()) {
      const int64_t stream = options_.stretch.stream;
      options_.stretch = ParseRegion(region_);
      options_.stretch.stream = stream;
    }
    const Selection selection = Selection::Parse(selection_);
    const OpenedTrace trace(trace_, discard_, part());
    const analyzer::Work work = analyzer::lint::LoadStepsForLint(
        trace.reader(), analyzer::ChooseCaptureLevel(trace.reader()), trace.results());
    options_.wanted = WantedBy(selection, work);
    const auto wanted = [&](const analyzer::Work& other) { return WantedBy(selection, other); };
    options_.leaves = std::make_shared<analyzer::lint::LeavesBeside>(work);
    LintReport report = analyzer::lint::LintLevel(work, options_);
    std::erase_if(report.findings, [&](const Finding& finding) { return !IsOfMode(finding); });
    const analyzer::lint::Failures failures = analyzer::lint::FindFailures(trace.reader());
    if (report.stretches.empty() && failures.rows.empty()) {
      throw Error(ErrorKind::kUsage, fmt::format("{} has no work to capture{}", trace_,
                                                 selection_.empty() ? "" : " in the selection"));
    }
    std::vector<replayer::probe::ProbeRow> probes;
    if (prove_) probes = Prove(work, report);
    std::vector<LocatedFinding> findings = LocateFindings(work, report);
    analyzer::lint::LeafFindings leaves;
    if (region_.empty() && !report.stretches.empty() && analyzer::lint::HasLeavesBeside(work)) {
      leaves = analyzer::lint::LintLeavesBeside(work, report, options_, wanted);
      std::erase_if(leaves.report.findings,
                    [&](const Finding& finding) { return !IsOfMode(finding); });
      const std::vector<LocatedFinding> more = LocateFindings(*leaves.work, leaves.report);
      findings.insert(findings.end(), more.begin(), more.end());
    }
    if (trace.results() != nullptr) Keep(FoldCauses(findings), *trace.results());
    for (LocatedFinding& one : findings) one.known = known.contains(one.Identity());
    if (!write_baseline_.empty()) WriteBaseline(write_baseline_, trace_, findings);
    if (!ungrouped_) findings = FoldCauses(findings);
    if (for_tools) {
      const bool sarif = lint_format_ == LintFormat::kSarif;
      fmt::print(
          "{}",
          sarif ? SarifText(findings, !baseline_.empty(), SourceRoot(source_root_, trace.reader()))
                : JunitText(findings, LeastSeverity(fail_on_), fail_on_ == FailOn::kNever));
      return CodeFor(findings);
    }
    Report output;
    output.Add("failures", FailuresTable(failures, format_));
    const bool captured = !report.stretches.empty() && report.stretches.front().recorded();
    if (!report.stretches.empty() && !captured && report.stretches.front().step >= 0) {
      Table steps({"fact", "value"});
      AddStepSource(steps, work.steps.front().found_by);
      output.Add("steps", std::move(steps));
    } else if (work.steps.empty() && !report.stretches.empty() && !captured && region_.empty() &&
               !report.around_graphs) {
      Table steps({"fact", "value"});
      steps.Add({"steps", "none, the whole program is one region: " + analyzer::WhyNoSteps(work)});
      output.Add("steps", std::move(steps));
    }
    output.Add("regions", RegionTable(work, report));
    const bool grouped = format_ == Format::kTable && !ungrouped_;
    output.Add("findings", grouped ? GroupedFindings(findings)
                                   : WithLines(FindingTable(findings), "call_id",
                                               analyzer::SourceLines(trace.reader())));
    output.Add("probes", ProbeTable(work, probes));
    output.Add("notes", WithLines(InfiniteTable(trace.reader()), "call_id",
                                  analyzer::SourceLines(trace.reader())));
    fmt::print("{}", output.ToText(format_));
    if (format_ == Format::kTable) {
      const size_t count = report.stretches.size();
      const std::string regions = fmt::format(
          "{} region{}{}", count, count == 1 ? "" : "s",
          count > kShownRegions ? fmt::format(" (the first {} are listed)", kShownRegions) : "");
      const bool any = std::any_of(findings.begin(), findings.end(),
                                   [](const LocatedFinding& one) { return !one.known; });
      fmt::print("\n{}\n{}{}{}\n", LookedAt(trace.reader(), work, report, leaves),
                 SummaryOfFindings(findings, regions) + HandledFailures(failures),
                 Proved(probes, count), grouped && any ? "; @ungrouped lists each"_cli : "");
    }
    if (format_ == Format::kTable && region_.empty()) {
      const std::string other = FoundAtTheOtherLevel(
          trace.reader(), options_, wanted,
          [&](const Finding& finding) { return IsOfMode(finding); },
          [&](std::string_view level) {
            return "`" + given().With("level", std::string(level)).Text() + "`";
          });
      if (!other.empty()) fmt::print("{}\n", other);
    }
    // No capture of the steps tells more of what failed otherwise.
    if (failures.First() != nullptr && !failures.InCapture()) SuggestNext("");
    return CodeFor(findings);
  }

 private:
  // The stretches whose first call is picked; empty: all.
  static std::function<bool(const Stretch&)> WantedBy(const Selection& selection,
                                                      const analyzer::Work& work) {
    if (selection.empty()) return {};
    if (selection.asks_line()) {
      return [picked = SelectCalls(work, selection)](const Stretch& stretch) {
        return std::binary_search(picked.begin(), picked.end(), stretch.first);
      };
    }
    return [&](const Stretch& stretch) {
      const storage::Op& op = work.op(stretch.first);
      const std::string full_name = op.FullName();
      SelectionSubject subject;
      subject.call_id = work.calls[stretch.first].call_id;
      subject.step = stretch.step;
      subject.stream = stretch.stream;
      subject.name = op.name;
      subject.full_name = full_name;
      return selection.Contains(subject);
    };
  }

  int CodeFor(const std::vector<LocatedFinding>& findings) const {
    if (!write_baseline_.empty() || fail_on_ == FailOn::kNever) return kExitFine;
    const bool fails = std::any_of(findings.begin(), findings.end(), [&](const auto& one) {
      return one.Counts(LeastSeverity(fail_on_));
    });
    return fails ? kExitDifferences : kExitFine;
  }

  std::vector<replayer::probe::ProbeRow> Prove(const analyzer::Work& work,
                                               LintReport& report) const {
    if (work.dialect == analyzer::Dialect::kAten) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} holds leaves of PyTorch and no calls of the ACL interface, which "
                              "@prove issues again; prove it by: {}"_cli,
                              trace_, given().As("replay").With("mode", "captured").Text()));
    }
    replayer::probe::ProveOptions options;
    options.device_lib = device_lib_;
    options.executions = executions_;
    options.stream_limit = options_.stream_limit;
    options.budget_s = budget_;
    for (const CaptureMode mode : analyzer::lint::kCaptureModes) {
      if (modes_ == Modes::kAll || static_cast<size_t>(mode) + 1 == static_cast<size_t>(modes_)) {
        options.modes.push_back(mode);
      }
    }
    Progress progress("prove");
    options.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    return replayer::probe::Prove(work, options, report);
  }

  // Refused in the mode asked for, or wrong without being refused.
  bool IsOfMode(const Finding& finding) const {
    if (modes_ == Modes::kAll || finding.codes == analyzer::lint::Codes{}) return true;
    return finding.codes[static_cast<size_t>(modes_) - 1] != 0;
  }

  // Says of how many regions the proof knows, unless it is of all.
  std::string Proved(const std::vector<replayer::probe::ProbeRow>& probes, size_t regions) const {
    if (!prove_) return "";
    std::set<size_t> tried;
    for (const replayer::probe::ProbeRow& row : probes) tried.insert(row.stretch);
    return tried.size() == regions
               ? ""
               : fmt::format("; {} of them were captured on the device", tried.size());
  }

  // True for a program over PyTorch that was recorded at the ACL level alone.
  static bool LacksLeaves(const storage::Reader& trace) {
    return !trace.Meta("torch_library").empty() &&
           !analyzer::HoldsLevel(trace, storage::Level::kAten);
  }

  // Says what an answer without findings is about.
  static std::string LookedAt(const storage::Reader& trace, const analyzer::Work& work,
                              const LintReport& report,
                              const analyzer::lint::LeafFindings& leaves) {
    const bool of_torch = work.dialect == analyzer::Dialect::kAten;
    int64_t inside = 0;
    int64_t bare = 0;  // without arguments
    int64_t end = 0;   // stretches may overlap
    for (const Stretch& stretch : report.stretches) {
      for (int64_t i = std::max<int64_t>(end, stretch.first); i < static_cast<int64_t>(stretch.end);
           ++i) {
        ++inside;
        const analyzer::WorkForm& form = work.form(static_cast<size_t>(i));
        const bool device_work = of_torch || analyzer::IsDeviceWork(form.acl_kind());
        bare += device_work && form.arguments->empty() ? 1 : 0;
      }
      end = std::max<int64_t>(end, stretch.end);
    }
    std::string text = fmt::format("looked at: {} of {} {}, those in regions", inside, work.size(),
                                   of_torch ? "leaves of PyTorch" : "calls of the ACL interface");
    if (leaves.work != nullptr) text += ", and the leaves of PyTorch in the same steps";
    if (LacksLeaves(trace)) {
      text +=
          "; the trace has no leaves of PyTorch, so that tensors which end, slices that a graph "
          "keeps and calls past the adapter's queue are not known: record both levels, without "
          "@level acl"_cli;
    }
    if (bare > 0) text += fmt::format("; {} of them have no arguments", bare);
    const analyzer::MemoryCoverage memory = analyzer::CoverageOfMemory(trace);
    if (!memory.unknown.empty()) text += "; " + memory.Sentence();
    return text;
  }

  int64_t CodeOf(const Finding& finding) const {
    if (modes_ != Modes::kAll) return finding.codes[static_cast<size_t>(modes_) - 1];
    for (const int32_t code : finding.codes) {
      if (code != 0) return code;
    }
    return 0;
  }

  Table RegionTable(const analyzer::Work& work, const LintReport& report) const {
    Table table({"region", "step", "first_call", "last_call", "stream", "captured as", "calls",
                 "queue entries", "device streams"});
    const size_t shown = format_ == Format::kTable
                             ? std::min(kShownRegions, report.stretches.size())
                             : report.stretches.size();
    for (size_t i = 0; i < shown; ++i) {
      const Stretch& stretch = report.stretches[i];
      if (stretch.first == stretch.end) continue;
      table.Add({static_cast<int64_t>(i) + 1, stretch.step < 0 ? Cell() : Cell(stretch.step),
                 work.calls[stretch.first].call_id, work.calls[stretch.end - 1].call_id,
                 stretch.stream == 0 ? Cell() : Cell(stretch.stream),
                 stretch.recorded()
                     ? Cell(std::string(analyzer::lint::CaptureModeName(stretch.mode)))
                     : Cell(),
                 static_cast<int64_t>(stretch.end - stretch.first),
                 report.budgets[i].streams == 0 ? Cell() : Cell(report.budgets[i].entries),
                 report.budgets[i].streams == 0 ? Cell() : Cell(report.budgets[i].streams)});
    }
    return table;
  }

  static Table RuleTable() {
    Table table({"rule", "mode", "severity", "title", "source", "global", "thread_local", "relaxed",
                 "fails at", "edit"});
    constexpr std::string_view kPlaces[] = {"the call", "begin", "end", "execution", "nowhere"};
    for (const analyzer::lint::LintRule& rule : analyzer::lint::LintRules()) {
      const auto code = [&](int32_t number) {
        return number == 0 ? Cell() : Cell(static_cast<int64_t>(number));
      };
      table.Add(
          {std::string(rule.id), rule.mode == 0 ? Cell() : Cell(static_cast<int64_t>(rule.mode)),
           std::string(SeverityName(rule.severity)), std::string(rule.title),
           std::string(rule.source), code(rule.codes[0]), code(rule.codes[1]), code(rule.codes[2]),
           std::string(kPlaces[static_cast<size_t>(rule.fails_at)]), std::string(rule.edit)});
    }
    return table;
  }

  Table FindingTable(const std::vector<LocatedFinding>& findings) const {
    Table table({"rule", "severity", "call_id", "count", "findings", "global", "thread_local",
                 "relaxed", "message", "edit", "verdict"});
    for (const LocatedFinding& one : findings) {
      if (one.known) continue;
      const Finding& finding = *one.finding;
      const auto code = [&](CaptureMode mode) {
        const int32_t number = finding.code(mode);
        return number == 0 ? Cell() : Cell(static_cast<int64_t>(number));
      };
      table.Add({std::string(finding.rule->id), std::string(SeverityName(one.severity())),
                 finding.call_id == 0 ? Cell() : Cell(finding.call_id), one.count, one.findings,
                 code(CaptureMode::kGlobal), code(CaptureMode::kThreadLocal),
                 code(CaptureMode::kRelaxed), one.message, finding.advice, one.verdict});
    }
    return table;
  }

  // Results that turn infinite, one row for each operator. They are notes and no findings, because
  // programs mask with infinities on purpose. Results that turn NaN are findings of LINT-41.
  static Table InfiniteTable(const storage::Reader& trace) {
    struct Turned {
      int64_t first_call = 0;
      int64_t calls = 0;
      std::string inputs;  // "finite", "partly not known"
    };
    Table table({"call_id", "op", "calls", "message"});
    // Most traces have none, which one look at the statistics tells.
    storage::Database& database = trace.database();
    if (database.Integer("SELECT 1 FROM snapshot WHERE inf_count > 0 LIMIT 1") == 0) return table;
    std::map<std::string, Turned> by_operator;
    storage::Statement found(database, storage::FindNamedQuery("first_nan")->sql);
    const storage::CheckedRow at(found, trace.path(), "snapshot");
    while (found.Next()) {
      if (at.TextOrNull(3, "turns") != "Inf") continue;
      Turned& turned = by_operator[std::string(at.TextOrNull(2, "op"))];
      if (turned.calls++ == 0) {
        turned.first_call = at.Id("call_id");
        turned.inputs = at.TextOrNull(4, "inputs");
      }
    }
    std::vector<std::pair<int64_t, std::vector<Cell>>> rows;
    for (const auto& [op, turned] : by_operator) {
      rows.push_back(
          {turned.first_call,
           {turned.first_call, op, turned.calls,
            fmt::format("a result turns Inf; its inputs are {}; `acltape query TRACE first_nan` "
                        "lists all",
                        turned.inputs)}});
    }
    std::sort(rows.begin(), rows.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [first, row] : rows) table.Add(std::move(row));
    return table;
  }

  static Table ProbeTable(const analyzer::Work& work,
                          const std::vector<replayer::probe::ProbeRow>& probes) {
    Table table({"region", "mode", "edits", "first refused", "code", "end", "executions",
                 "differing", "device says"});
    for (const replayer::probe::ProbeRow& row : probes) {
      const replayer::probe::ProbeReport& probe = row.report;
      const bool begun = probe.begin_code == 0;
      Cell first, code;
      std::string message = probe.end_message;
      if (!begun) {
        first = std::string("begin");
        code = static_cast<int64_t>(probe.begin_code);
      } else if (!probe.refused.empty()) {
        const int64_t call = work.Find(probe.refused.front().call_id);
        first = call < 0 ? "a wait of the edit" : work.Describe(static_cast<size_t>(call));
        code = static_cast<int64_t>(probe.refused.front().code);
        message = probe.refused.front().message;
      }
      if (!probe.stopped.empty()) message = probe.stopped;
      table.Add({static_cast<int64_t>(row.stretch) + 1,
                 std::string(analyzer::lint::CaptureModeName(row.mode)),
                 row.edited ? "made" : "none", std::move(first), std::move(code),
                 begun ? Cell(static_cast<int64_t>(probe.end_code)) : Cell(),
                 probe.executed == 0 ? Cell() : Cell(probe.executed),
                 probe.executed == 0 ? Cell() : Cell(probe.differing),
                 message.empty() ? Cell() : Cell(message)});
    }
    return table;
  }

  static nlohmann::json Json(const analyzer::lint::Edit& edit) {
    switch (edit.kind) {
      case analyzer::lint::Edit::Kind::kHoist:
        return {{"hoist", edit.call_id}};
      case analyzer::lint::Edit::Kind::kPin:
        return {{"pin", edit.call_id}};
      default:
        return {{"record_after", edit.record_after}, {"wait_before", edit.wait_before}};
    }
  }

  void Keep(const std::vector<LocatedFinding>& findings, storage::Results& results) const {
    for (const LocatedFinding& one : findings) {
      const Finding& finding = *one.finding;
      nlohmann::json evidence = {{"calls", finding.evidence}, {"count", one.count}};
      for (const CaptureMode mode : analyzer::lint::kCaptureModes) {
        evidence["codes"][std::string(analyzer::lint::CaptureModeName(mode))] = finding.code(mode);
      }
      evidence["edit"] = finding.advice;
      evidence["findings"] = one.findings;
      if (finding.by_adapter) evidence["adapter"] = true;
      for (const analyzer::lint::Edit& edit : finding.edits)
        evidence["edits"].push_back(Json(edit));
      storage::Finding row;
      row.rule = finding.rule->id;
      row.severity = finding.rule->severity;
      row.call_id = finding.call_id;
      row.code = CodeOf(finding);
      row.message = one.message;
      row.evidence = evidence.dump();
      row.verdict = one.verdict;
      results.AddFinding(row);
    }
    results.Commit();
  }

  std::string trace_;
  std::string selection_;
  std::string region_;
  Modes modes_ = Modes::kAll;
  analyzer::lint::LintOptions options_;
  std::string soc_ = "Ascend910B1";
  int64_t stream_limit_ = 0;
  bool rules_ = false;
  bool prove_ = false;
  std::string device_lib_;
  int executions_ = 20;
  double budget_ = 300;
  bool discard_ = false;
  bool ungrouped_ = false;
  FailOn fail_on_ = FailOn::kNote;
  std::string baseline_;
  std::string write_baseline_;
  std::string source_root_;
  LintFormat lint_format_ = LintFormat::kTable;
  Format format_ = Format::kTable;  // for tables
};

}  // namespace

std::unique_ptr<Command> MakeLintCommand() { return std::make_unique<LintCommand>(); }

}  // namespace acltape::cli
