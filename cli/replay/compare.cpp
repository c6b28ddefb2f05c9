#include "replayer/compare.h"

#include <fmt/format.h>

#include <optional>

#include "cli/choices/plan_option.h"
#include "cli/frame/next_step.h"
#include "cli/frame/options.h"
#include "cli/replay/commands.h"
#include "cli/replay/regression.h"
#include "cli/tables/report.h"
#include "cli/tables/step_source.h"
#include "cli/terminal/progress.h"
#include "replayer/statistics.h"

namespace acltape::cli {
namespace {

using replayer::CompareReport;
using replayer::Estimate;

std::string WithInterval(const Estimate& estimate) {
  if (estimate.samples == 0) return "";
  return fmt::format("{} [{}, {}]", HumanNs(estimate.median), HumanNs(estimate.low),
                     HumanNs(estimate.high));
}

std::string RatioWithInterval(const Estimate& ratio) {
  if (ratio.samples == 0) return "";
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio.median, ratio.low, ratio.high);
}

std::string Quotient(const Estimate& eager, const Estimate& captured) {
  return RatioWithInterval(replayer::QuotientOf(eager, captured));
}

// The times of a plan, next to those of eager and captured execution without it.
Table PlannedTimesForPeople(const CompareReport& report) {
  Table table({"of a replayed step", "eager", "captured, one stream", "captured by the plan",
               "eager / plan"});
  const auto& eager = report.eager;
  const auto& captured = report.captured;
  const auto& planned = report.planned;
  const auto add = [&](const char* quantity, const Estimate& a, const Estimate& b,
                       const Estimate& c, const std::string& ratio) {
    table.Add({quantity, WithInterval(a), WithInterval(b), WithInterval(c), ratio});
  };
  add("host time", eager.host_ns, captured.host_ns, planned.host_ns,
      RatioWithInterval(report.planned_host_ratio));
  add("host waits for the device", eager.wait_ns, captured.wait_ns, planned.wait_ns,
      Quotient(eager.wait_ns, planned.wait_ns));
  add("device time", eager.device_ns, captured.device_ns, planned.device_ns,
      Quotient(eager.device_ns, planned.device_ns));
  add("latency", eager.latency_ns, captured.latency_ns, planned.latency_ns,
      RatioWithInterval(report.planned_latency_ratio));
  return table;
}

Table PredictionTable(const CompareReport& report) {
  Table table({"latency per step of", "predicted, us", "measured, us", "error, %"});
  for (const replayer::PredictionError& row : report.predictions) {
    table.Add({row.execution, row.predicted_ns / 1e3, row.measured_ns / 1e3, row.error_percent()});
  }
  return table;
}

// The table for people: a column per execution, medians with their intervals.
Table TimesForPeople(const CompareReport& report) {
  Table table({"of a replayed step", "eager", "captured", "eager / captured"});
  const auto& eager = report.eager;
  const auto& captured = report.captured;
  table.Add({"host time", WithInterval(eager.host_ns), WithInterval(captured.host_ns),
             RatioWithInterval(report.host_ratio)});
  table.Add({"  per leaf", HumanNs(eager.host_ns_per_leaf),
             captured.host_ns.samples == 0 ? "" : HumanNs(captured.host_ns_per_leaf), ""});
  table.Add({"host waits for the device", WithInterval(eager.wait_ns),
             WithInterval(captured.wait_ns), Quotient(eager.wait_ns, captured.wait_ns)});
  table.Add({"device time", WithInterval(eager.device_ns), WithInterval(captured.device_ns),
             Quotient(eager.device_ns, captured.device_ns)});
  table.Add({"latency", WithInterval(eager.latency_ns), WithInterval(captured.latency_ns),
             RatioWithInterval(report.latency_ratio)});
  return table;
}

// The step of the program is no column beside replays: it holds what Python and the framework do,
// and the waits, which no replay repeats.
Table StepOfProgram(const CompareReport& report) {
  Table table({"step of the recorded program", "time"});
  if (report.recorded_span_ns.samples == 0) return table;
  table.Add({"step", WithInterval(report.recorded_span_ns)});
  table.Add({"  inside the calls that are replayed", WithInterval(report.recorded_leaves_ns)});
  return table;
}

// The table for programs: one row per number, nanoseconds or a ratio.
Table TimesForPrograms(const CompareReport& report) {
  Table table({"quantity", "execution", "unit", "median", "low", "high", "samples"});
  const auto add = [&](const char* quantity, const char* execution, const char* unit,
                       const Estimate& estimate) {
    if (estimate.samples == 0) return;
    table.Add({quantity, execution, unit, estimate.median, estimate.low, estimate.high,
               estimate.samples});
  };
  add("host_per_step", "recorded", "ns", report.recorded_span_ns);
  add("operators_per_step", "recorded", "ns", report.recorded_leaves_ns);
  const std::pair<const char*, const replayer::ExecutionTimes*> executions[] = {
      {"eager", &report.eager}, {"captured", &report.captured}, {"planned", &report.planned}};
  for (const auto& [name, execution] : executions) {
    add("host_per_step", name, "ns", execution->host_ns);
    add("wait_per_step", name, "ns", execution->wait_ns);
    add("device_per_step", name, "ns", execution->device_ns);
    add("latency_per_step", name, "ns", execution->latency_ns);
  }
  add("host_per_step", "eager/captured", "ratio", report.host_ratio);
  add("latency_per_step", "eager/captured", "ratio", report.latency_ratio);
  add("host_per_step", "eager/planned", "ratio", report.planned_host_ratio);
  add("latency_per_step", "eager/planned", "ratio", report.planned_latency_ratio);
  return table;
}

// `payload` is the recording's policy: the recorded program's times include keeping values.
Table Facts(const CompareReport& report, const replayer::CompareOptions& options,
            const std::string& payload, bool people) {
  Table table({"quantity", "value"});
  const auto add = [&](const char* quantity, Cell value) {
    table.Add({quantity, std::move(value)});
  };
  add("device", report.device);
  add("recorded with @payload"_cli, payload);
  add("steps", report.steps);
  add("steps of the captured kind", report.steady_steps);
  add(kLeavesPerStep, report.leaves_per_step);
  if (report.leaves_in_graphs > 0) {
    // Eager execution issues these one by one, which the program does not.
    add("  in graphs of the program's own", report.leaves_in_graphs);
  }
  add("  that compute, and are run", report.coverage.Share());
  add("device calls per step", report.device_calls_per_step);
  add("graphs per step", report.regions_per_step);
  add("repetitions", int64_t{report.repetitions});
  add("warm-up repetitions", int64_t{report.warmup});
  add("confidence of the intervals", options.confidence);
  if (people) {
    add("capture cost", HumanNs(report.capture_ns));
  } else {
    add("capture cost, ns", report.capture_ns);
  }
  add("input copies per step", report.copies_per_step);
  add("input bytes copied per step",
      BytesCell(report.copy_bytes_per_step, people ? Format::kTable : Format::kJson));
  add("steps until capture has paid",
      report.break_even_steps < 0 ? Cell("never") : Cell(report.break_even_steps));
  add("outputs compared", "none: these are times; replay @mode captured compares results"_cli);
  if (!report.refusal.empty()) add("not captured", report.refusal);
  if (options.plan && options.plan->plan.predicted.eager_ns > 0 && report.predictions.empty()) {
    add("predictions of the plan",
        "of steps of the program, not of a replay; plan @calibrate predicts replays"_cli);
  }
  return table;
}

class CompareCommand final : public Command {
 public:
  std::string Name() const override { return "compare"; }
  std::string Summary() const override {
    return "Time eager against captured replay of the recorded steps, interleaved";
  }
  std::string Examples() const override {
    return "  acltape compare t.db\n"
           "  acltape compare t.db @max-regression 5%    exit code 1 when it became slower\n"
           "  acltape compare t.db @repetitions 50 @warmup 5 @format json\n"
           "  acltape compare t.db @plan plan.json    eager, captured on one stream, by the plan"_cli;
  }

  bool ExecutesTrace() const override { return true; }
  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    plan_.Declare(app);
    AddCount(app, "repetitions", options_.repetitions, 3,
             "Timed passes over the steps, of each execution");
    AddCount(app, "warmup", options_.warmup, 0, "Passes before them");
    AddOption(app, "confidence", options_.confidence, "Of the intervals around the medians")
        ->check(CLI::Range(0.5, 0.999))
        ->capture_default_str();
    AddChoice(
        app, "data", options_.data,
        {{"recorded", replayer::Data::kRecorded}, {"synthesised", replayer::Data::kSynthesised}});
    AddDeviceOption(app, options_.device_lib);
    AddOption(app, "seed", options_.seed)->capture_default_str();
    CLI::Option* limit =
        AddOption(app, "max-regression", max_regression_,
                  "Exit code 1 when captured host time grew by more than this (5%) since the "
                  "last run in the trace, chance excluded");
    AddOption(app, "baseline", question_.baseline,
              "What to hold it against instead: a run of the trace by its run_id, or a file "
              "that `compare @format json` wrote"_cli)
        ->needs(limit)
        ->type_name("RUN|FILE");
    AddFlag(app, "no-results", discard_);
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (!max_regression_.empty()) {
      question_.limit = ParsePercent("@max-regression"_cli, max_regression_);
    }
    const OpenedTrace trace(trace_, discard_, part());
    question_.plan = plan_.path;
    question_.confidence = options_.confidence;
    CheckBaseline(trace.reader(), question_);
    options_.plan = plan_.Read(trace.reader(), trace.results());
    Progress progress("compare");
    options_.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    const CompareReport report = replayer::Compare(trace.reader(), options_, trace.results());

    progress.Clear();
    const bool people = format_ == Format::kTable;
    Report output;
    Table setting = Facts(report, options_, trace.reader().Meta("payload"), people);
    AddStepSource(setting, trace.reader());
    output.Add("setting", std::move(setting));
    const analyzer::SourceLines lines(trace.reader());
    output.Add("notes", NoteTable(report.notes, lines));
    output.Add("regions", RegionTable(report.regions, lines));
    output.Add("regions of the plan", RegionTable(report.planned_regions, lines));
    // Last, because it is what one looks for.
    if (people) output.Add("step of the program", StepOfProgram(report));
    output.Add("times", people ? TimesForPeople(report) : TimesForPrograms(report));
    if (people && options_.plan) output.Add("times with the plan", PlannedTimesForPeople(report));
    if (options_.plan) output.Add("predictions", PredictionTable(report));
    std::optional<RegressionAnswer> regression;
    if (!max_regression_.empty()) {
      regression = FindRegression(trace.reader(), report, question_);
      output.Add("regression", regression->table);
    }
    fmt::print("{}", output.ToText(format_));
    if (!report.refusal.empty()) SuggestNext(NextWithoutCapture(trace_, report.steps));
    if (!regression) return report.ExitCode();
    fmt::print(stderr, "acltape: {}.\n", regression->sentence);
    return report.ExitCode() != 0 ? report.ExitCode() : regression->ExitCode();
  }

 private:
  std::string trace_;
  PlanOption plan_;
  replayer::CompareOptions options_;
  std::string max_regression_;  // as given; empty: not asked for
  RegressionQuestion question_;
  bool discard_ = false;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeCompareCommand() { return std::make_unique<CompareCommand>(); }

}  // namespace acltape::cli
