#include "replayer/replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyzer/calls/record_more.h"
#include "analyzer/lint/rule.h"
#include "analyzer/lint/unrepeatable.h"
#include "cli/choices/plan_option.h"
#include "cli/environment/torch_kits.h"
#include "cli/frame/next_step.h"
#include "cli/frame/nothing_compared.h"
#include "cli/frame/options.h"
#include "cli/replay/commands.h"
#include "cli/replay/replay_ranks.h"
#include "cli/replay/spread.h"
#include "cli/tables/coverage_words.h"
#include "cli/tables/failures_table.h"
#include "cli/tables/report.h"
#include "cli/tables/step_source.h"
#include "cli/tables/where.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/table.h"
#include "replayer/acl_level/replay_level.h"
#include "storage/error.h"
#include "storage/results.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

using replayer::Data;
using replayer::Inputs;
using replayer::Mode;
using replayer::Outputs;
using replayer::Streams;
using replayer::Updates;

// Says in one line what was wrong with an output.
std::string Shown(const replayer::Mismatch& mismatch, bool bitwise) {
  const analyzer::metrics::TensorMetrics& metrics = mismatch.metrics;
  return fmt::format("{} of {} elements, first [{}]: recorded {}, replayed {}{}{}",
                     metrics.differing, metrics.elements, metrics.first_index, metrics.first_a,
                     metrics.first_b, bitwise ? "" : "; ", bitwise ? "" : mismatch.reason);
}

Table MismatchTable(const replayer::ReplayReport& report, const replayer::ReplayOptions& options) {
  Table table({"call_id", "step", "op", "output", "reference", "max_ulp", "max_abs", "max_rel",
               "difference"});
  const bool bitwise = options.standard == nullptr || options.standard->bitwise();
  for (const replayer::Mismatch& mismatch : report.mismatches) {
    const analyzer::metrics::TensorMetrics& metrics = mismatch.metrics;
    const Cell step = mismatch.step < 0 ? Cell() : Cell(mismatch.step);
    if (mismatch.digest_only) {
      table.Add({mismatch.call_id, step, mismatch.op, mismatch.name, mismatch.reference, Cell(),
                 Cell(), Cell(), "another digest; the trace keeps no values to look into"});
      continue;
    }
    // -1 where a NaN meets a number.
    table.Add({mismatch.call_id, step, mismatch.op, mismatch.name, mismatch.reference,
               metrics.nan_mismatches > 0 ? int64_t{-1} : metrics.max_ulp, metrics.max_abs,
               metrics.max_rel, Shown(mismatch, bitwise)});
  }
  return table;
}

// Findings that tell why recorded values are such as no replay gives again. They are looked for
// when a recorded value differs.
Table ChanceTable(const storage::Reader& trace, const replayer::ReplayReport& report) {
  Table table({"call_id", "rule", "message", "edit"});
  if (std::none_of(
          report.mismatches.begin(), report.mismatches.end(),
          [](const replayer::Mismatch& mismatch) { return mismatch.reference == "recorded"; })) {
    return table;
  }
  for (const analyzer::lint::Finding& finding : analyzer::lint::FindUnrepeatableValues(trace)) {
    table.Add({finding.call_id, std::string(finding.rule->id), TextCell(finding.message),
               TextCell(finding.advice)});
  }
  return table;
}

Table FlakyTable(const replayer::ReplayReport& report) {
  Table table({"op", "first call_id", "calls", "executions", "deviating", "rate", "max_ulp",
               "max_abs", "max_rel"});
  for (const replayer::FlakyOperator& flaky : report.flaky) {
    const auto known = [&](auto value) { return flaky.values ? Cell(value) : Cell(); };
    table.Add({flaky.op, flaky.call_id, flaky.calls, flaky.executions, flaky.deviating,
               flaky.rate(), known(flaky.max_ulp), known(flaky.max_abs), known(flaky.max_rel)});
  }
  return table;
}

std::string Verdict(const replayer::ReplayReport& report, const replayer::ReplayOptions& options) {
  if (!report.refusal.empty()) return report.refusal;
  const std::string flaky =
      report.flaky.empty() ? "" : "; the reference itself is flaky, see the table below";
  if (report.differing > 0) {
    return fmt::format("different: {} of {} compared outputs{}", report.differing, report.compared,
                       flaky);
  }
  if (report.compared == 0) return "nothing was compared";
  if (report.SawTooLittle()) {
    return NotKnown(report.coverage) + flaky;
  }
  if (report.equal == report.compared) {
    return fmt::format("equal bit for bit: all {} compared outputs{}", report.compared, flaky);
  }
  std::string verdict =
      fmt::format("equal bit for bit: {} of {} compared outputs", report.equal, report.compared);
  if (report.within > 0) {
    verdict += fmt::format(", {} within {}", report.within, options.standard->given());
  }
  if (report.noise > 0) verdict += fmt::format(", {} differ by noise", report.noise);
  return verdict + flaky;
}

// Adds the number of outputs for each verdict.
void AddOutcomes(Table& table, const replayer::ReplayReport& report,
                 const replayer::ReplayOptions& options) {
  AddCoverage(table, report.coverage);
  if (report.unseen != 0) {
    table.Add({"leaves in memory that the recorder does not know", report.unseen});
  }
  table.Add({"outputs compared", report.compared});
  table.Add({"outputs equal", report.equal});
  if (options.standard != nullptr && !options.standard->bitwise()) {
    table.Add({"outputs within " + options.standard->given(), report.within});
  }
  if (options.noise_runs > 0) table.Add({"outputs that differ by noise", report.noise});
  table.Add({"outputs different", report.differing});
  table.Add({"outputs without a reference", report.not_comparable});
}

// People read sizes and times with a unit of their own; programs a number whose row names the unit.
void AddBytes(Table& table, const std::string& quantity, int64_t bytes, Format format) {
  if (format == Format::kTable) {
    table.Add({quantity, HumanBytes(bytes)});
  } else {
    table.Add({quantity + ", bytes", bytes});
  }
}

void AddCaptureCost(Table& table, const replayer::ReplayReport& report, Format format) {
  const auto ns = static_cast<double>(report.capture.capture_ns);
  if (format == Format::kTable) {
    table.Add({"capture cost", HumanNs(ns)});
  } else {
    table.Add({"capture cost, us", ns / 1e3});
  }
}

Table SummaryTable(const replayer::ReplayReport& report, const replayer::ReplayOptions& options,
                   const CommandLine& given, Format format) {
  Table table({"quantity", "value"});
  const auto add = [&](const char* quantity, Cell value) {
    table.Add({quantity, std::move(value)});
  };
  add("device", report.device);
  add("mode", options.mode == Mode::kEager ? "eager" : "captured");
  if (options.plan) add("plan", options.plan->path);
  if (options.repetitions > 1) add("repetitions", int64_t{options.repetitions});
  if (options.inputs == Inputs::kGolden) add("inputs", "golden");
  add("steps", report.steps);
  add("leaves", report.leaves);
  add("  run by device operators", report.kernels);
  add("  views", report.views);
  add("  allocations", report.allocations);
  add("  sources (values of the recording)", report.sources);
  add("  host reads", report.host_reads);
  add("  substituted by recorded outputs", report.substituted);
  if (report.host_leaves != 0) add("  left out: work of the host beside it", report.host_leaves);
  add("device calls", report.device_calls);
  AddBytes(table, "device memory", report.device_bytes, format);
  AddOutcomes(table, report, options);
  if (options.mode == Mode::kCaptured) {
    const auto& capture = report.capture;
    if (capture.template_step >= 0) add("template step", capture.template_step);
    add("steps run captured", capture.captured_steps);
    add("steps run eagerly", capture.eager_steps);
    add("inputs copied per step", capture.copies_per_step);
    add("bytes copied per step", BytesCell(capture.copy_bytes_per_step, format));
    add("leaves whose host arguments vary", capture.varying_leaves);
    if (capture.varying_leaves > 0) {
      add("  updated in the graphs", capture.updated_leaves);
      add("  updates made", capture.updates);
    }
    AddCaptureCost(table, report, format);
  }
  if (report.run_id != 0) add("run_id", report.run_id);
  add("verdict", Verdict(report, options));
  if (report.ExitCode() != 0) add("reproduce", given.Text());
  return table;
}

// The summary of a replay of a program recorded at the ACL level.
Table AclSummaryTable(const replayer::ReplayReport& report, const replayer::ReplayOptions& options,
                      const CommandLine& given, Format format) {
  Table table({"quantity", "value"});
  const auto add = [&](const char* quantity, Cell value) {
    table.Add({quantity, std::move(value)});
  };
  const auto& acl = report.acl;
  int64_t unknown = 0;
  for (const auto& [name, count] : acl.unknown) unknown += count;
  add("device", report.device);
  add("mode", options.mode == Mode::kEager ? "eager" : "captured");
  add("streams as", options.streams == Streams::kFlat ? "one" : "recorded");
  add("streams, events, graphs", fmt::format("{}, {}, {}", acl.streams, acl.events, acl.models));
  add("calls", acl.calls);
  add("  issued again", acl.issued);
  add("  allocations and frees", acl.memory_calls);
  add("  without effect on values", acl.without_effect);
  add("  failed in the recording", acl.failed);
  add("  waits that told of failed work, as recorded", acl.task_errors);
  add("  of captures and updates that failed", acl.abandoned);
  add("  host functions, left out", acl.host_functions);
  add("  unknown, left out", unknown);
  int64_t left_out = acl.unreleased_waits;
  for (const auto& [name, count] : acl.left_out) left_out += count;
  if (left_out != 0) add("  not given back, left out", left_out);
  add("operators", acl.operators);
  add("  substituted by recorded outputs", report.substituted);
  add("executions of the program's graphs", acl.executions);
  if (!options.edits.empty()) add("waits added by edits", acl.waits_added);
  AddBytes(table, "device memory", report.device_bytes, format);
  AddOutcomes(table, report, options);
  if (acl.in_doubt != 0) add("outputs that depend on what was left out", acl.in_doubt);
  if (options.mode == Mode::kCaptured) {
    add("graphs made of eager work", acl.graphs_made);
    add("executions of those", acl.graphs_executed);
    AddCaptureCost(table, report, format);
  }
  if (report.run_id != 0) add("run_id", report.run_id);
  add("verdict", Verdict(report, options));
  if (report.ExitCode() != 0) add("reproduce", given.Text());
  return table;
}

class ReplayCommand final : public Command {
 public:
  std::string Name() const override { return "replay"; }
  std::string Summary() const override {
    return "Run the recorded program on a device and compare every output with the recording";
  }
  std::string Examples() const override {
    return "  acltape replay t.db @mode eager\n"
           "  acltape replay t.db @mode captured @outputs step\n"
           "  acltape replay t.db @plan plan.json @repetitions 100\n"
           "  acltape replay t.db @mode captured @spread    which calls are wrong by themselves\n"
           "  acltape replay t.db @standard ascend @noise-runs 5     other kernels, a flaky "
           "device\n"
           "  acltape replay t.db @mode captured @updates none       what baked arguments do\n"
           "  acltape replay t.db @mode captured @device-lib /usr/local/Ascend/latest\n"
           "  acltape replay t.db @mode captured @data synthesised   no recorded values needed\n"
           "  acltape replay acl.db @mode captured @streams flat     all device work on one "
           "stream\n"
           "  acltape replay acl.db @edit LINT-09     with the wait that lint misses\n"
           "  acltape replay both.db @level acl       the device's own calls, not PyTorch's\n"
           "  acltape replay ranks.db @ranks all      all ranks, with collectives that run"_cli;
  }

  bool ExecutesTrace() const override { return true; }
  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    AddChoice(app, "mode", options_.mode, {{"eager", Mode::kEager}, {"captured", Mode::kCaptured}},
              "Launch every leaf on its own, or capture steps as graphs and execute those");
    mode_ = app.get_option("@mode"_cli);
    AddChoice(
        app, "streams", options_.streams,
        {{"recorded", Streams::kRecorded}, {"flat", Streams::kFlat}, {"leaves", Streams::kLeaves}},
        "Of a program of the ACL level: its own streams, events and graphs; all device work "
        "on one stream; or work by work, with its graphs taken apart, as leaves of PyTorch "
        "are replayed (a plan always does)");
    AddOption(app, "edit", options_.edits,
              "Add the wait that a finding of `acltape lint` asks for, in every step: a rule "
              "(LINT-09), a rule at a call (LINT-09@812), or all");
    plan_.Declare(app);
    AddChoice(app, "updates", options_.updates,
              {{"tasks", Updates::kTasks}, {"none", Updates::kNone}},
              "Captured: update host arguments that vary between steps (with a plan: those it "
              "names), or keep the values of the template step in the graphs");
    AddCount(app, "repetitions", options_.repetitions, 1,
             "Replays of the whole program, each compared");
    AddChoice(app, "outputs", options_.outputs,
              {{"leaf", Outputs::kLeaf}, {"step", Outputs::kStep}},
              "Compare what every leaf wrote, or what outlives a step (at the ACL level: what "
              "copies bring to the host)");
    AddChoice(app, "data", options_.data,
              {{"recorded", Data::kRecorded}, {"synthesised", Data::kSynthesised}});
    AddChoice(
        app, "inputs", options_.inputs,
        {{"carried", Inputs::kCarried}, {"golden", Inputs::kGolden}},
        "What a leaf reads that another wrote: the result of this replay, or the recorded one, "
        "so that errors do not accumulate (captured: region by region)");
    AddFlag(app, "spread", spread_,
            "Replay with golden and with carried inputs, and tell the calls that are wrong by "
            "themselves from those that read wrong values");
    AddChoice(app, "ranks", ranks_, {{"one", Ranks::kOne}, {"all", Ranks::kAll}},
              "One rank of a program, whose collectives write what the recording received, or all "
              "of them together, each in a process of its own, with collectives that run");
    AddDeviceOption(app, options_.device_lib);
    AddOption(app, "standard", standard_)->capture_default_str();
    AddCount(app, "noise-runs", options_.noise_runs, 0,
             "Eager runs of the reference beforehand: what differs between them is noise");
    AddCount(app, "mismatches", options_.mismatch_limit, 0, "Differences to list; all are counted");
    AddOption(app, "seed", options_.seed)->capture_default_str();
    AddFlag(app, "keep-matches", options_.keep_matches,
            "Write a row of the table `comparison` for equal outputs too");
    AddFlag(app, "no-results", discard_);
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (options_.noise_runs == 1) {
      throw Error(ErrorKind::kUsage,
                  "one run of the reference shows no noise; give @noise-runs 2 "
                  "or more"_cli);
    }
    if (!plan_.path.empty()) {
      if (mode_->count() > 0 && options_.mode == Mode::kEager) {
        throw Error(ErrorKind::kUsage,
                    "`@plan` says what captured graphs hold, and `@mode eager` captures none; "
                    "leave out one of them; `acltape replay @help` explains both."_cli);
      }
      options_.mode = Mode::kCaptured;
    }
    options_.standard = std::make_shared<const analyzer::metrics::Standard>(
        analyzer::metrics::Standard::Load(standard_));
    if (ranks_ == Ranks::kAll) return AllRanks();
    if (spread_) return Spread();
    const OpenedTrace trace(trace_, discard_, part());
    options_.plan = plan_.Read(trace.reader(), trace.results());
    Progress progress("replay");
    options_.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    const analyzer::lint::Failures failures = analyzer::lint::FindFailures(trace.reader());
    const replayer::ReplayReport report = Replay(trace, failures);
    progress.Clear();
    Report output;
    Table summary = report.acl.calls != 0 ? AclSummaryTable(report, options_, given(), format_)
                                          : SummaryTable(report, options_, given(), format_);
    if (report.steps > 0) AddStepSource(summary, trace.reader());
    if (failures.First() != nullptr) {
      summary.Add({"first failure of the recording",
                   analyzer::lint::FailureSentence(failures, *failures.First())});
    }
    output.Add("summary", std::move(summary));
    output.Add("failures in the recording", FailuresTable(failures, format_));
    const analyzer::SourceLines lines(trace.reader());
    output.Add("differences", WithLines(MismatchTable(report, options_), "call_id", lines));
    const Table chance = ChanceTable(trace.reader(), report);
    output.Add("chance in the recording", WithLines(chance, "call_id", lines));
    if (options_.noise_runs > 0) {
      output.Add("flaky operators", WithLines(FlakyTable(report), "first call_id", lines));
    }
    if (options_.mode == Mode::kCaptured) {
      output.Add("regions", RegionTable(report.capture.regions, lines));
    }
    Table eager_steps({"steps that ran eagerly"});
    for (const std::string& reason : report.capture.eager_reasons) eager_steps.Add({reason});
    output.Add("eager steps", std::move(eager_steps));
    output.Add("notes", NoteTable(report.notes, lines));
    fmt::print("{}", output.ToText(format_));
    // A capture that would be refused, or was, is not worth a try; the steps say in what they
    // differ.
    if (!report.capturable && report.ExitCode() == (report.refusal.empty() ? 0 : 1)) {
      SuggestNext(NextWithoutCapture(trace_, report.steps));
    }
    // Calls that failed in the recording fail again, or were left out.
    if (failures.First() != nullptr && report.ExitCode() == kExitFine) {
      SuggestNext("acltape lint " + storage::ShellWord(trace_));
    }
    if (!chance.rows().empty()) SuggestNext("acltape lint " + storage::ShellWord(trace_));
    if (report.differing > 0 && options_.device_lib.empty() && UsesOtherKit()) {
      SuggestNext("");
      fmt::print(stderr,
                 "acltape: there is no verdict: {} outputs differ, and the operators are not those "
                 "of the PyTorch that the trace was recorded with; replay with its kit\n",
                 report.differing);
      return kExitCannotJudge;
    }
    // Collectives in graphs were left out.
    const bool needs_ranks = report.acl.in_doubt != 0;
    if (report.NothingCompared()) {
      return NothingCompared(needs_ranks ? "all outputs depend on what was left out; " + kAllRanks
                                         : WhyNothing(trace.reader()));
    }
    if (report.ExitCode() == kExitCannotJudge) {
      return TooLittleCompared(report.coverage,
                               needs_ranks ? kAllRanks : HowToSeeMore(trace.reader()));
    }
    return report.ExitCode();
  }

 private:
  const std::string kAllRanks = "replay with @ranks all, where collectives run in graphs too"_cli;

  // Work that failed in the recording fails in a replay too.
  replayer::ReplayReport Replay(const OpenedTrace& trace,
                                const analyzer::lint::Failures& failures) const {
    try {
      return replayer::acl_level::Replay(trace.reader(), options_, trace.results());
    } catch (const Error& error) {
      const analyzer::lint::Failure* first = failures.First();
      if (error.kind() != ErrorKind::kDevice || first == nullptr) throw;
      throw Error(
          ErrorKind::kDevice,
          fmt::format("{}; the recording holds a failure too, of call {}: `acltape lint {}` "
                      "tells it.",
                      error.what(), first->call_id, storage::ShellWord(trace_)));
    }
  }

  // The remedy depends on what the recording already has.
  std::string HowToSeeMore(const storage::Reader& trace) const {
    // Where the trace has results a captured replay is compared with these.
    const bool without = trace.Meta("payload") == "inputs" || analyzer::LacksDeviceLevel(trace);
    const bool eager = options_.mode == Mode::kEager;
    if (options_.outputs == Outputs::kStep && !(eager && without)) {
      return "replay with @outputs leaf, which compares what every leaf wrote"_cli;
    }
    return analyzer::HowToRecordMore(trace) +
           (eager && without
                ? ", or replay with @mode captured, which is compared with an eager replay"_cli
                : "");
  }

  std::string WhyNothing(const storage::Reader& trace) const {
    if (options_.mode == Mode::kEager) {
      return "the trace keeps no result of a replayed call; " + HowToSeeMore(trace);
    }
    return "no replayed call leaves a result that could be compared; " +
           (options_.outputs == Outputs::kStep
                ? HowToSeeMore(trace)
                : std::string("record a program whose steps compute something"));
  }

  int AllRanks() const {
    const auto refuse = [](const char* option) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("@ranks all replays each rank as it was recorded at the ACL level; "
                              "leave out {}"_cli,
                              option));
    };
    if (!plan_.path.empty()) refuse("@plan"_cli);
    if (spread_) refuse("@spread"_cli);
    if (!options_.edits.empty()) refuse("@edit"_cli);
    if (!part().process.empty()) refuse("@process"_cli);
    if (part().level == storage::Level::kAten) refuse("@level aten"_cli);
    if (options_.streams == Streams::kLeaves) refuse("@streams leaves"_cli);
    if (options_.noise_runs > 0) refuse("@noise-runs"_cli);
    if (options_.repetitions > 1) refuse("@repetitions"_cli);
    if (options_.inputs == Inputs::kGolden) refuse("@inputs"_cli);
    if (options_.data == Data::kSynthesised) refuse("@data"_cli);
    return ReplayRanks({.trace = trace_, .options = options_, .format = format_, .given = given()});
  }

  int Spread() const {
    const auto refuse = [](const char* option) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("@spread replays once with golden and once with "
                              "carried inputs, each leaf compared; leave out {}"_cli,
                              option));
    };
    if (options_.inputs == Inputs::kGolden) refuse("@inputs"_cli);
    if (options_.outputs == Outputs::kStep) refuse("@outputs step"_cli);
    if (options_.repetitions > 1) refuse("@repetitions"_cli);
    if (options_.data == Data::kSynthesised) refuse("@data synthesised"_cli);
    if (!options_.edits.empty()) refuse("@edit"_cli);
    if (given().Has("streams") && options_.streams != Streams::kLeaves) refuse("@streams"_cli);
    const SpreadResult result = RunSpread({.trace = trace_,
                                           .part = part(),
                                           .discard = discard_,
                                           .plan = plan_,
                                           .options = options_,
                                           .format = format_,
                                           .given = given()});
    if (result.exit_code != kExitFine) return result.exit_code;
    const storage::Reader reader(trace_, part());
    if (result.nothing_compared) return NothingCompared(WhyNothing(reader));
    if (!result.coverage.TooLittle()) return kExitFine;
    return TooLittleCompared(result.coverage, HowToSeeMore(reader));
  }

  std::string trace_;
  PlanOption plan_;
  const CLI::Option* mode_ = nullptr;  // given, or as it stands
  replayer::ReplayOptions options_;
  std::string standard_ = "bitwise";
  enum class Ranks { kOne, kAll };
  Ranks ranks_ = Ranks::kOne;
  bool spread_ = false;
  bool discard_ = false;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeReplayCommand() { return std::make_unique<ReplayCommand>(); }

}  // namespace acltape::cli
