#include <fmt/format.h>

#include <utility>

#include "analyzer/calls/level.h"
#include "cli/frame/options.h"
#include "cli/gate/commands.h"
#include "cli/gate/gate_files.h"
#include "cli/gate/gate_report.h"
#include "cli/replay/regression.h"
#include "cli/tables/coverage_words.h"
#include "cli/terminal/progress.h"
#include "replayer/compare.h"
#include "replayer/statistics.h"

namespace acltape::cli {
namespace {

using analyzer::gate::Measured;
using analyzer::gate::MeasureKind;

// The first three are those of Format, in its order.
enum class GateFormat { kTable, kCsv, kJson, kMarkdown, kSarif, kJunit };

class GateCommand final : public Command {
 public:
  std::string Name() const override { return "gate"; }
  std::string Summary() const override {
    return "Hold counts, bytes and findings against a baseline; code 1 when something changed";
  }
  std::string Examples() const override {
    return "  acltape gate t.db @write-baseline gate.json    once; keep the file in the "
           "repository\n"
           "  acltape gate new.db @baseline gate.json        at each change\n"
           "  acltape gate new.db @baseline gate.json @allow allowed.txt @format markdown\n"
           "  acltape gate new.db @baseline gate.json @times    replays, and compares ratios of "
           "times\n"
           "  acltape gate @list                             what is counted"_cli;
  }

  bool ExecutesTrace() const override { return times_ && !trace_.empty(); }
  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace");
    CLI::Option* baseline =
        AddOption(app, "baseline", baseline_, "What the trace is held against")->type_name("FILE");
    AddOption(app, "write-baseline", write_baseline_,
              "Write the measures of the trace to this file, for @baseline"_cli)
        ->excludes(baseline);
    AddOption(app, "allow", allow_, "A file of changes that are allowed, a rule on each line")
        ->needs(baseline);
    AddFlag(app, "list", list_, "List the measures instead; needs no trace");
    AddFlag(app, "all", all_, "List what is equal too");
    AddFlag(app, "times", times_,
            "Replay the steps too, eager and captured in turns, and compare the ratio of their "
            "host times");
    AddOption(app, "max-regression", max_regression_,
              "With @times: that ratio may grow by this (default: 10%)"_cli);
    AddCount(app, "repetitions", compare_.repetitions, replayer::LeastSamples(compare_.confidence),
             "With @times: timed passes over the steps"_cli);
    AddDeviceOption(app, compare_.device_lib, "to replay on");
    AddOption(app, "source-root", source_root_);
    AddChoice(app, "format", gate_format_,
              {{"table", GateFormat::kTable},
               {"csv", GateFormat::kCsv},
               {"json", GateFormat::kJson},
               {"markdown", GateFormat::kMarkdown},
               {"sarif", GateFormat::kSarif},
               {"junit", GateFormat::kJunit}},
              "How to print; markdown is for a pull request, sarif and junit are for other tools");
  }

  int Run() override {
    if (gate_format_ <= GateFormat::kJson) format_ = static_cast<Format>(gate_format_);
    if (list_) {
      fmt::print("{}", MeasureTable().ToText(format_));
      return kExitFine;
    }
    if (trace_.empty()) {
      throw Error(ErrorKind::kUsage, "name a trace to measure, or give @list"_cli);
    }
    if (baseline_.empty() && write_baseline_.empty()) {
      throw Error(ErrorKind::kUsage,
                  "give what to hold the trace against by @baseline, or make it by "
                  "@write-baseline"_cli);
    }
    GateBaseline baseline;
    if (!baseline_.empty()) baseline = ReadGateBaseline(baseline_);
    if (!allow_.empty()) {
      for (analyzer::gate::AllowRule& rule : ReadAllowFile(allow_)) {
        baseline.counts.allowed.push_back(std::move(rule));
      }
    }
    const double limit = max_regression_.empty()
                             ? kAllowedGrowth
                             : ParsePercent("@max-regression"_cli, max_regression_);
    if (!write_baseline_.empty()) JudgeGateBaseline(write_baseline_, trace_);
    const storage::TracePart part = analyzer::gate::MainProcessOf(trace_, this->part());
    const storage::Reader trace(trace_, part);
    if (part.level) analyzer::ChooseLevel(trace);  // a level that the trace lacks ends here
    const Measured measured = analyzer::gate::Measure(trace);
    std::string no_times;
    std::optional<TimeRatio> ratio;
    if (times_) ratio = Time(trace, no_times);
    if (!write_baseline_.empty()) return Write(measured, ratio);
    GateAnswer answer{trace_, &measured, analyzer::gate::FindChanges(baseline.counts, measured),
                      std::nullopt, baseline_};
    if (times_) answer.times = TimesOf(baseline, ratio, no_times, limit);
    Print(answer, trace);
    return answer.ExitCode();
  }

 private:
  static constexpr double kAllowedGrowth = 0.1;

  static Table MeasureTable() {
    Table table({"measure", "unit", "better", "meaning"});
    constexpr std::string_view kBetter[] = {"less", "more", ""};
    for (const MeasureKind& kind : analyzer::gate::MeasureKinds()) {
      table.Add({std::string(kind.name), TextCell(std::string(kind.unit)),
                 TextCell(std::string(kBetter[static_cast<size_t>(kind.better)])),
                 std::string(kind.meaning)});
    }
    return table;
  }

  // Nothing, and the reason, if the steps cannot be captured.
  std::optional<TimeRatio> Time(const storage::Reader& trace, std::string& why) {
    Progress progress("gate");
    compare_.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    const replayer::CompareReport report = replayer::Compare(trace, compare_, nullptr);
    const bool timed = report.refusal.empty() && report.host_ratio.samples > 0;
    if (timed && !report.coverage.TooLittle()) return RatioOf(report);
    why = !report.refusal.empty() ? report.refusal
          : timed                 ? PartlyTimed(report.coverage)
                                  : "the replay gave no times";
    return std::nullopt;
  }

  static GateTimes TimesOf(const GateBaseline& baseline, const std::optional<TimeRatio>& now,
                           const std::string& why, double limit) {
    GateTimes times;
    times.limit = limit;
    times.why = why;
    if (!baseline.times) times.why = "the baseline was written without @times"_cli;
    if (!times.why.empty()) return times;
    times.before = *baseline.times;
    times.now = *now;
    times.verdict = JudgeTimes(times.before, times.now, limit);
    return times;
  }

  int Write(const Measured& measured, const std::optional<TimeRatio>& ratio) const {
    WriteGateBaseline(write_baseline_, trace_, measured, ratio);
    fmt::print(stderr, "acltape: {} holds {} measures of a {} and {} causes of findings\n",
               write_baseline_, measured.values.size(), measured.basis, measured.causes.size());
    if (!measured.left_out.empty()) fmt::print(stderr, "acltape: {}\n", measured.left_out);
    return kExitFine;
  }

  void Print(const GateAnswer& answer, const storage::Reader& trace) const {
    switch (gate_format_) {
      case GateFormat::kMarkdown:
        fmt::print("{}", MarkdownText(answer));
        return;
      case GateFormat::kSarif:
        fmt::print("{}", GateSarif(answer, SourceRoot(source_root_, trace)));
        return;
      case GateFormat::kJunit:
        fmt::print("{}", GateJunit(answer));
        return;
      default:
        break;
    }
    const bool people = format_ == Format::kTable;
    Report report;
    report.Add("changes", ChangeTable(answer, all_ || !people));
    report.Add("times", TimeTable(answer));
    fmt::print("{}", report.ToText(format_));
    if (people) fmt::print("\n{}\n", answer.Summary());
  }

  std::string trace_;
  std::string baseline_;
  std::string write_baseline_;
  std::string allow_;
  std::string max_regression_;
  std::string source_root_;
  bool list_ = false;
  bool all_ = false;
  bool times_ = false;
  replayer::CompareOptions compare_;
  GateFormat gate_format_ = GateFormat::kTable;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeGateCommand() { return std::make_unique<GateCommand>(); }

}  // namespace acltape::cli
