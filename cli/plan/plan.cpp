#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analyzer/gears/trace_sizes.h"
#include "analyzer/plan/plan_file.h"
#include "analyzer/plan/planner.h"
#include "analyzer/program/leaves.h"
#include "cli/choices/plan_option.h"
#include "cli/frame/next_step.h"
#include "cli/frame/options.h"
#include "cli/plan/commands.h"
#include "cli/tables/report.h"
#include "cli/tables/step_source.h"
#include "cli/tables/where.h"
#include "cli/terminal/progress.h"
#include "replayer/calibrate.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

using analyzer::Work;
using analyzer::plan::Plan;
using analyzer::plan::PlannedStep;
using analyzer::plan::PlanRegion;
using analyzer::plan::RegionFigures;

// Sums over the captured regions, those of the program's own graphs included.
struct Totals {
  int64_t waits = 0;
  int64_t records = 0;
  int64_t forks = 0;
  int64_t entries = 0;
  int64_t stream_numbers = 0;
  double makespan_ns = 0;
  double one_stream_ns = 0;
  double bound_ns = 0;
};

Totals TotalsOf(const PlannedStep& planned) {
  Totals totals;
  for (const RegionFigures& region : planned.regions) {
    if (!region.cut.captured) continue;
    totals.waits += region.certificate.waits;
    totals.records += region.certificate.records;
    totals.forks += region.certificate.forks;
    totals.entries += region.load.entries();
    totals.stream_numbers += region.load.stream_numbers();
    totals.makespan_ns += region.certificate.makespan_ns;
    totals.one_stream_ns += region.certificate.one_stream_ns;
    totals.bound_ns += region.certificate.bound.Greatest();
  }
  return totals;
}

class PlanCommand final : public Command {
 public:
  std::string Name() const override { return "plan"; }
  std::string Summary() const override {
    return "Work out which calls of a step to capture, on which streams, and what that would give";
  }
  std::string Examples() const override {
    return "  acltape plan t.db -o plan.json\n"
           "  acltape plan t.db -o plan.json @streams 2 @expected-replays 100000\n"
           "  acltape plan t.db -o plan.json @soc Ascend310P3 @budget-streams 200\n"
           "  acltape plan t.db -o plan.json @calibrate   with costs measured on the device\n"
           "  acltape replay t.db @plan plan.json"_cli;
  }

  bool ExecutesTrace() const override { return calibrate_; }
  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    AddOutputOption(app, output_, "The plan file to write")->capture_default_str();
    AddCount(app, "streams", options_.streams, 0,
             "Streams of a graph at most; 0: as many as can run at the same time");
    AddFlag(app, "spread", options_.spread,
            "Use several streams even where they are predicted not to pay, to try them");
    AddChoice<std::string>(
        app, "capture-mode", options_.capture_mode,
        {{"global", "global"}, {"thread_local", "thread_local"}, {"relaxed", "relaxed"}},
        "What other threads may do while a graph is captured");
    AddCount(app, "minimum-region", options_.minimum_region, 1, "Calls of a graph at least");
    AddCount(app, "budget-streams", options_.budget_streams, 0,
             "Stream numbers for all graphs together; 0: those that the SoC has to give");
    AddOption(app, "budget-memory", options_.budget_bytes,
              "Bytes of device memory for all graphs together (64M, 2G); 0: no limit")
        ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
        ->check(AtLeast(0))
        ->capture_default_str();
    AddCount(app, "captures", captures_, 0, "Graphs at most; 0: as many as pay");
    AddOption(app, "expected-replays", options_.expected_replays,
              "Steps that a capture will serve: its cost is spread over them; default: 1000, or "
              "none where no two steps have equal shapes")
        ->check(CLI::PositiveNumber);
    AddOption(app, "soc", options_.soc, "Whose limits hold")->capture_default_str();
    AddFlag(app, "calibrate", calibrate_,
            "Measure on the device what its calls, graphs and copies cost, and plan with that");
    AddDeviceOption(app, device_lib_, "to calibrate on");
    AddFlag(app, "force", force_, "Overwrite the file also when it is no plan");
    AddFlag(app, "no-results", discard_);
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (captures_ > 0) options_.most_captures = captures_;
    const storage::OutputRules rules = analyzer::plan::PlanRules(trace_, force_);
    storage::JudgeOutput(output_, rules);  // before the work that it needs
    const OpenedTrace opened(trace_, discard_, part());
    const storage::Reader& reader = opened.reader();
    const Work work = analyzer::LoadLeaves(reader, opened.results());
    const auto measured = calibrate_ ? std::optional(Calibrate(opened))
                                     : analyzer::prediction::LoadCalibration(reader);
    if (measured) options_.costs = &*measured;
    const PlannedStep planned = analyzer::plan::MakePlan(work, options_);
    analyzer::plan::WritePlan(planned.plan, output_, rules);
    int64_t plan_id = 0;
    if (opened.results() != nullptr) {
      plan_id = opened.results()->AddPlan(PlanRecordOf(planned.plan, work, output_, OptionsText()));
      opened.results()->Commit();
    }
    Report report;
    Table summary = Summary(planned, measured, plan_id);
    AddStepSource(summary, work.steps.front().found_by);
    const std::string engine = EngineWords(work, planned.plan.step);
    if (!engine.empty()) summary.Add({"template step is a", engine});
    if (people()) AddPlainWords(planned, reader, work, summary);
    report.Add("plan", std::move(summary));
    const analyzer::SourceLines lines(reader);
    report.Add("regions", WithLines(RegionTable(planned), "first_call", lines));
    report.Add("streams", StreamTable(planned));
    report.Add("policies", PolicyTable(planned));
    report.Add("guards", GuardTable(planned));
    report.Add("input copies", WithLines(CopyTable(planned.plan, work), "call_id", lines));
    report.Add("argument updates", WithLines(UpdateTable(planned.plan, work), "call_id", lines));
    report.Add("prediction", PredictionTable(planned));
    fmt::print("{}", report.ToText(format_));
    if (planned.captures() == 0) SuggestNext(NextWithoutGraphs(work, planned));
    return kExitFine;
  }

 private:
  // A plan without a new graph is not worth a replay: sizes to pad to are, or what bars a capture.
  std::string NextWithoutGraphs(const Work& work, const PlannedStep& planned) const {
    const std::string word = storage::ShellWord(trace_);
    if (planned.served_once) {
      try {
        analyzer::gears::CostsOf(analyzer::gears::FindTraceSizes(work, ""));
        return "acltape gears " + word;
      } catch (const Error&) {
        return "acltape steps " + word;  // says in what the steps differ
      }
    }
    return "acltape lint " + word;
  }

  analyzer::prediction::DeviceCosts Calibrate(const OpenedTrace& opened) const {
    Progress progress("calibrate");
    replayer::CalibrateOptions options;
    options.device_lib = device_lib_;
    options.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    return replayer::Calibrate(opened.reader(), options, opened.results()).costs;
  }

  bool people() const { return format_ == Format::kTable; }
  Cell Bytes(int64_t bytes) const { return people() ? Cell(HumanBytes(bytes)) : Cell(bytes); }
  Cell Ns(double ns) const { return people() ? Cell(HumanNs(ns)) : Cell(ns); }

  std::string OptionsText() const {
    return nlohmann::json{
        {"streams", options_.streams},
        {"spread", options_.spread},
        {"capture_mode", options_.capture_mode},
        {"minimum_region", options_.minimum_region},
        {"budget_streams", options_.budget_streams},
        {"budget_memory", options_.budget_bytes},
        {"captures", captures_},
        {"expected_replays", options_.expected_replays.value_or(analyzer::plan::kExpectedReplays)},
        {"soc", options_.soc}}
        .dump();
  }

  // One row per figure; for people with their units, for programs under names of their own.
  Table Summary(const PlannedStep& planned,
                const std::optional<analyzer::prediction::DeviceCosts>& measured,
                int64_t plan_id) const {
    const Totals totals = TotalsOf(planned);
    Table table({"figure", "value"});
    const auto add = [&](const char* figure, Cell value) { table.Add({figure, std::move(value)}); };
    add("file", output_);
    if (plan_id != 0) add("plan_id", plan_id);
    add("template step", planned.plan.step);
    add("steps served", static_cast<int64_t>(planned.class_steps));
    add("steps", static_cast<int64_t>(planned.steps));
    add("families of steps", static_cast<int64_t>(planned.families));
    add("shapes of steps", static_cast<int64_t>(planned.classes));
    add("calls of the step", static_cast<int64_t>(planned.calls));
    if (planned.calls_held > 0) {
      add("calls captured already", static_cast<int64_t>(planned.calls_held));
      add("calls captured already, %",
          Percent(static_cast<double>(planned.calls_held), static_cast<double>(planned.calls)));
      add("graphs of the program's own", static_cast<int64_t>(planned.graphs_executed));
    }
    add("calls captured", static_cast<int64_t>(planned.captured_calls()));
    add("calls captured, %",
        Percent(static_cast<double>(planned.captured_calls()), static_cast<double>(planned.calls)));
    add("host time captured, %", Percent(planned.captured_host_ns(), planned.host_ns));
    add("graphs", static_cast<int64_t>(planned.captures()));
    add("streams", int64_t{planned.plan.streams});
    add("waits", totals.waits);
    add("records", totals.records);
    add("forks and joins", totals.forks);
    add("queue entries", totals.entries);
    add("stream numbers", totals.stream_numbers);
    add("graphs that the SoC holds", GraphsThatSocHolds(planned));
    add("makespan of the graphs", Ns(totals.makespan_ns));
    add("  were they on one stream", Ns(totals.one_stream_ns));
    add("  no streams are faster than", Ns(totals.bound_ns));
    add("  gap, %", Percent(totals.makespan_ns - totals.bound_ns, totals.bound_ns));
    add("memory of the graphs", Bytes(planned.graph_bytes));
    add("  on one stream", Bytes(planned.pools.separate_bytes));
    add("  in one pool", Bytes(planned.pools.shared_bytes));
    add("races, by the race checker", int64_t{0});
    add("input copies per step", static_cast<int64_t>(planned.plan.copies.size()));
    add("argument updates per step", static_cast<int64_t>(planned.plan.updates.size()));
    add("costs", measured ? "calibrated on " + measured->device : RecordedCostsText(planned));
    return table;
  }

  // Says in words where a figure is easily taken for a gain of the plan and is none.
  static void AddPlainWords(const PlannedStep& planned, const storage::Reader& reader,
                            const Work& work, Table& table) {
    if (planned.calls_held > 0) {
      table.Add({"already captured",
                 fmt::format("the program executes {} graph{} of its own in this step, which "
                             "hold{} {} of its {} calls: these save nothing more",
                             planned.graphs_executed, planned.graphs_executed == 1 ? "" : "s",
                             planned.graphs_executed == 1 ? "s" : "", planned.calls_held,
                             planned.calls)});
    }
    if (work.dialect == analyzer::Dialect::kAten && !reader.Models().empty()) {
      table.Add({"not seen",
                 "the program executes graphs of its own, whose work PyTorch does not "
                 "dispatch; @level acl plans with them"_cli});
    }
    if (planned.served_once) {
      table.Add({"served once",
                 fmt::format("no two of the {} steps have equal operators and shapes, so a graph "
                             "would never be executed again and save nothing; @expected-replays "
                             "says otherwise"_cli,
                             planned.steps)});
    }
  }

  // "recorded, with the device's own times of 12 of 14 signatures, 3 of which include launching".
  static std::string RecordedCostsText(const PlannedStep& planned) {
    if (planned.timed_signatures == 0) return "recorded";
    const std::string launching =
        planned.launching_signatures == 0
            ? ""
            : fmt::format(", {} of which include launching", planned.launching_signatures);
    return fmt::format("recorded, with the device's own times of {} of {} signatures{}",
                       planned.timed_signatures, planned.signatures, launching);
  }

  // The number of graphs that the device holds when the plan's graphs are captured again and again,
  // as for other shapes or for replicas of the step.
  int64_t GraphsThatSocHolds(const PlannedStep& planned) const {
    const analyzer::streams::SocLimits& soc = *analyzer::streams::FindSoc(planned.plan.soc);
    std::vector<analyzer::streams::GraphLoad> graphs;
    for (const RegionFigures& region : planned.regions) {
      if (region.cut.captured) graphs.push_back(region.load);
    }
    if (graphs.empty()) return 0;
    const size_t once = graphs.size();
    while (static_cast<int64_t>(graphs.size()) <= soc.models) {
      graphs.push_back(analyzer::streams::GraphLoad(graphs[graphs.size() - once]));
    }
    return analyzer::streams::GraphsThatFit(graphs, soc.usable_streams(), soc.models).graphs;
  }

  Table RegionTable(const PlannedStep& planned) const {
    Table table({"region", "kind", "first_call", "last_call", "calls", "host", "saves",
                 "gain if capturable", "copies", "updates", "guarded addresses", "guarded shapes",
                 "reason", "edit"});
    for (size_t r = 0; r < planned.regions.size(); ++r) {
      const RegionFigures& figures = planned.regions[r];
      const PlanRegion& region = planned.plan.regions[r];
      if (people() && r == kRowsForPeople) {
        table.Add({fmt::format("... {} in all", planned.regions.size()), "", Cell(), Cell(), Cell(),
                   "", "", "", Cell(), Cell(), Cell(), Cell(), "", ""});
        break;
      }
      const bool captured = region.captured;  // by the plan or by the program
      const auto count = [&](int64_t n) { return captured ? Cell(n) : Cell(); };
      const char* kind = figures.cut.already ? "already captured" : captured ? "captured" : "eager";
      table.Add({int64_t{region.region}, kind, region.first_call, region.last_call,
                 static_cast<int64_t>(figures.calls.size()), Ns(figures.host_ns),
                 captured ? Ns(figures.cut.saving_ns) : Cell(),
                 captured ? Cell() : Ns(figures.cut.gain_ns), count(figures.copied_inputs),
                 count(figures.updated_arguments), count(figures.guarded_addresses),
                 count(figures.guarded_shapes), region.reason, std::string(figures.edit)});
    }
    return table;
  }

  Table StreamTable(const PlannedStep& planned) const {
    Table table({"region", "streams", "width", "waits", "records", "queue entries", "makespan",
                 "on one stream", "critical path", "bound", "gap, %", "synchronising, %",
                 "one stream because"});
    for (size_t r = 0; r < planned.regions.size(); ++r) {
      const RegionFigures& figures = planned.regions[r];
      if (!figures.cut.captured) continue;
      if (people() && table.rows().size() == kRowsForPeople) break;
      const analyzer::streams::StreamCertificate& c = figures.certificate;
      table.Add({static_cast<int64_t>(r), int64_t{c.streams},
                 c.width < 0 ? Cell() : Cell(int64_t{c.width}), int64_t{c.waits},
                 int64_t{c.records}, figures.load.entries(), Ns(c.makespan_ns), Ns(c.one_stream_ns),
                 Ns(c.bound.critical_path_ns), Ns(c.bound.Greatest()), Percent(c.gap, 1),
                 Percent(c.synchronisation, 1), c.reason});
    }
    return table;
  }

  Table PolicyTable(const PlannedStep& planned) const {
    Table table({"policy", "graphs", "calls captured", "host time saved per step"});
    for (const analyzer::plan::PolicyFigures& policy : planned.policies) {
      table.Add(
          {policy.name, policy.graphs, static_cast<int64_t>(policy.calls), Ns(policy.saving_ns)});
    }
    return table;
  }

  // Shows how often the recorded steps would have hit or missed a cache of graphs, for each way to
  // guard them.
  static Table GuardTable(const PlannedStep& planned) {
    Table table({"guarded with", "captures", "hits", "new operators", "new shape", "new value",
                 "new address"});
    for (const analyzer::plan::GuardOutcome& outcome : planned.guards) {
      table.Add({outcome.policy, outcome.captures, outcome.hits, outcome.by_operators,
                 outcome.by_shape, outcome.by_value, outcome.by_address});
    }
    return table;
  }

  Table CopyTable(const Plan& plan, const Work& work) const {
    Table table({"call_id", "op", "argument", "bytes"});
    for (const analyzer::plan::PlanCopy& copy : plan.copies) {
      if (people() && table.rows().size() == kRowsForPeople) {
        table.Add({fmt::format("... {} in all", plan.copies.size()), "", "", Cell()});
        break;
      }
      table.Add({copy.call_id, work.op(static_cast<size_t>(work.Find(copy.call_id))).FullName(),
                 copy.argument, Bytes(copy.bytes)});
    }
    return table;
  }

  Table UpdateTable(const Plan& plan, const Work& work) const {
    Table table({"call_id", "op", "argument"});
    for (const analyzer::plan::PlanUpdate& update : plan.updates) {
      if (people() && table.rows().size() == kRowsForPeople) {
        table.Add({fmt::format("... {} in all", plan.updates.size()), "", ""});
        break;
      }
      table.Add({update.call_id, work.op(static_cast<size_t>(work.Find(update.call_id))).FullName(),
                 update.argument});
    }
    return table;
  }

  Table PredictionTable(const PlannedStep& planned) const {
    Table table({"per step", "host", "waits", "device", "latency"});
    const auto add = [&](const char* name, const analyzer::prediction::StepTimes& times) {
      table.Add(
          {name, Ns(times.host_ns), Ns(times.wait_ns), Ns(times.device_ns), Ns(times.latency_ns)});
    };
    const analyzer::prediction::Prediction& prediction = planned.prediction;
    add(planned.calls_held > 0 ? "as the program runs it" : "eager", prediction.eager);
    add("captured on one stream", prediction.captured_one_stream);
    add("captured by the plan", prediction.captured);
    table.Add({"capture cost, once", Cell(), Cell(), Cell(), Ns(prediction.capture_cost_ns)});
    if (prediction.break_even_steps >= 0) {
      const int64_t steps = std::llround(prediction.break_even_steps);
      table.Add({fmt::format("pays after {} step{}", steps, steps == 1 ? "" : "s"), Cell(), Cell(),
                 Cell(), Cell()});
    }
    if (prediction.stay_eager) {
      table.Add({prediction.reason, Cell(), Cell(), Cell(), Cell()});
    }
    return table;
  }

  std::string trace_;
  bool force_ = false;
  std::string output_ = "plan.json";
  analyzer::plan::PlanOptions options_;
  int64_t captures_ = 0;
  bool calibrate_ = false;
  std::string device_lib_;
  bool discard_ = false;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakePlanCommand() { return std::make_unique<PlanCommand>(); }

}  // namespace acltape::cli
