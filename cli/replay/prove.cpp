#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analyzer/calls/level.h"
#include "cli/choices/plan_option.h"
#include "cli/environment/installation.h"
#include "cli/frame/next_step.h"
#include "cli/frame/nothing_compared.h"
#include "cli/frame/options.h"
#include "cli/replay/commands.h"
#include "cli/tables/coverage_words.h"
#include "cli/tables/report.h"
#include "cli/tables/step_source.h"
#include "cli/tables/where.h"
#include "cli/terminal/progress.h"
#include "replayer/prove/proof.h"
#include "replayer/prove/witness.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

using replayer::prove::ProofReport;
using replayer::prove::RemoteTrial;
using replayer::prove::Trial;
using replayer::prove::TrialFailure;

constexpr const char* kUsedLater = "prove a plan of steps whose results are used later";

// Numbers that are 0 for "none".
Cell OrNothing(int64_t number) { return number == 0 ? Cell() : Cell(number); }

Table TrialTable(const ProofReport& report) {
  Table table({"trial", "when", "trials", "outputs compared", "failures", "left out", "note"});
  for (const replayer::prove::KindTally& tally : report.kinds) {
    const replayer::prove::TrialKindRow& row = replayer::prove::RowOf(tally.kind);
    table.Add({std::string(row.name), std::string(row.when), tally.trials, tally.compared,
               tally.failures, tally.left_out, tally.note.empty() ? Cell() : Cell(tally.note)});
  }
  return table;
}

Table FailureTable(const ProofReport& report) {
  Table table({"witness_id", "trial", "number", "verdict", "call_id", "step", "op", "output",
               "position", "outputs", "runs", "failed runs", "code", "message", "reproduce"});
  for (const replayer::prove::ProofFailure& failure : report.failures) {
    const TrialFailure& found = failure.failure;
    const bool named = found.first.call_id != 0;
    const auto text = [&](const std::string& word) { return named ? Cell(word) : Cell(); };
    table.Add(
        {OrNothing(failure.witness_id), std::string(replayer::prove::RowOf(found.trial.kind).name),
         int64_t{found.trial.number}, found.Verdict(), OrNothing(found.first.call_id),
         named ? Cell(found.first.step) : Cell(), text(found.first.op), text(found.first.output),
         named ? Cell(int64_t{found.first.position}) : Cell(), found.differing, int64_t{found.runs},
         int64_t{found.failed_runs}, OrNothing(found.code), found.message, failure.command});
  }
  return table;
}

Table FlakyTable(const ProofReport& report) {
  Table table({"call_id", "step", "op", "output", "eager runs", "of these different"});
  for (const replayer::prove::FlakyOutput& output : report.flaky) {
    table.Add({output.call_id, output.step, output.op, output.output, int64_t{output.runs},
               int64_t{output.other}});
  }
  return table;
}

class ProveCommand final : public Command {
 public:
  std::string Name() const override { return "prove"; }
  std::string Summary() const override {
    return "Try to break a plan: poison, relocate, reorder, jitter, churn; keep what breaks it";
  }
  std::string Examples() const override {
    return "  acltape prove t.db @plan plan.json\n"
           "  acltape prove t.db                               the longest regions, on one stream\n"
           "  acltape prove t.db @plan plan.json @only jitter @trials 50 @budget 2m\n"
           "  acltape prove t.db @list                        the witnesses of earlier runs\n"
           "  acltape prove t.db @witness 3                   that one again\n"
           "  acltape prove t.db @witness 3 @plan new.json   does the repair hold?"_cli;
  }

  bool ExecutesTrace() const override { return true; }
  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    plan_.Declare(app);
    AddOption(app, "only", only_,
              "Kinds of trials, with commas: plain, poison, relocate, order, churn, "
              "capture_at, alone, jitter, ahead (default: all)");
    AddCount(app, "trials", options_.trials, 1, "Trials of each kind");
    AddOption(app, "seed", options_.seed, "Seed of what trials draw")->capture_default_str();
    AddTime(app, "budget", options_.budget_s,
            "Time after which no trial begins, such as 60s or 5m (default: no limit)");
    AddOption(app, "standard", options_.standard,
              "Precision standard: bitwise, a name that comes with acltape, or a file")
        ->capture_default_str();
    AddCount(app, "repetitions", options_.repetitions, 0, "Runs more of a trial that has failed");
    AddCount(app, "reference-runs", options_.reference_runs, 2,
             "Eager runs of a step that it is held against");
    AddOption(app, "plant", plant_,
              "Put a fault into every trial, KIND@CALL or KIND@CALL:OTHER, to see it caught");
    CLI::Option* witness =
        AddOption(app, "witness", witness_id_, "Make the trial of a witness again");
    AddFlag(app, "list", list_, "List the witnesses instead")->excludes(witness);
    AddMemoryOption(app, options_.kept_bytes);
    AddDeviceOption(app, options_.device_lib);
    AddFlag(app, "no-results", discard_);
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (list_) return List();
    const OpenedTrace trace(trace_, discard_, part());
    if (witness_id_ != 0) return RunAgain(trace);
    if (!only_.empty()) options_.kinds = replayer::prove::ParseTrialKinds(only_);
    for (const std::string& fault : plant_) {
      options_.faults.push_back(replayer::script::ParseFault(fault));
    }
    options_.plan = plan_.Read(trace.reader(), trace.results());
    // The soft device reads its settings once in a process.
    if (options_.device_lib.empty() && std::getenv("ACLTAPE_SOFT_JITTER") == nullptr &&
        std::getenv("ACLTAPE_SOFT_ORDER") == nullptr) {
      options_.elsewhere = [this](const Trial& trial) { return RunElsewhere(trial); };
    }
    options_.command = given().Printer();
    Progress progress("prove");
    options_.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
    const ProofReport report =
        replayer::prove::ProvePlan(trace.reader(), options_, trace.results());
    progress.Clear();

    int64_t compared = 0;
    for (const replayer::prove::KindTally& tally : report.kinds) compared += tally.compared;
    const bool blind = compared == 0 && report.failures.empty();
    Report output;
    Table summary = SummaryTable(report, compared, blind);
    AddStepSource(summary, trace.reader());
    output.Add("summary", std::move(summary));
    output.Add("trials", TrialTable(report));
    const analyzer::SourceLines lines(trace.reader());
    output.Add("failures", WithLines(FailureTable(report), "call_id", lines));
    output.Add("flaky", WithLines(FlakyTable(report), "call_id", lines));
    fmt::print("{}", output.ToText(format_));
    if (blind) {
      return NothingCompared(
          "no step of the plan leaves a result that a trial could look at: prove a plan of steps "
          "whose results are used later, and give @budget time for a trial"_cli);
    }
    if (report.SawTooLittle()) {
      return TooLittleCompared(report.coverage, report.flaky.empty()
                                                    ? kUsedLater
                                                    : "make results repeat first: see flaky");
    }
    // A graph of torchair's is one of PyTorch's leaves.
    if (report.ExitCode() == 0 && !plan_.path.empty() &&
        analyzer::ChooseLevel(trace.reader()) == storage::Level::kAcl) {
      SuggestNext(fmt::format("acltape emit {} {} @as json"_cli, storage::ShellWord(trace_),
                              storage::ShellWord(plan_.path)));
    }
    return report.ExitCode();
  }

 private:
  Table SummaryTable(const ProofReport& report, int64_t compared, bool blind) const {
    Table table({"quantity", "value"});
    const auto add = [&](const char* quantity, Cell value) {
      table.Add({quantity, std::move(value)});
    };
    add("device", report.device);
    add("plan", options_.plan ? options_.plan->path : "the longest regions, on one stream");
    add("template step", report.step);
    add("steps alike", report.steps);
    add("graphs of a step", report.graphs);
    add("trials", report.trials());
    add("outputs compared", compared);
    AddCoverage(table, report.coverage);
    add("trials failed", static_cast<int64_t>(report.failures.size()));
    add("outputs that eager runs disagree on", static_cast<int64_t>(report.flaky.size()));
    std::string verdict = fmt::format("holds in {} trials", report.trials());
    if (!report.failures.empty()) {
      verdict = fmt::format("fails in {} of {} trials", report.failures.size(), report.trials());
    } else if (blind) {
      verdict = "nothing was compared";
    } else if (report.SawTooLittle()) {
      verdict = NotKnown(report.coverage);
    }
    if (!report.flaky.empty()) verdict += "; eager runs disagree with each other, see flaky";
    if (report.out_of_time) verdict += ", cut short by the budget";
    add("verdict", verdict);
    if (!report.failures.empty()) add("reproduce", report.failures.front().command);
    return table;
  }

  // A trial as the only one of another process.
  RemoteTrial RunElsewhere(const Trial& trial) const {
    std::error_code ignored;
    const std::string self = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
    const std::string setting = trial.jitter != 0
                                    ? fmt::format("ACLTAPE_SOFT_JITTER={}", trial.jitter)
                                    : fmt::format("ACLTAPE_SOFT_ORDER={}", trial.ahead);
    std::vector<std::string> command{"env", setting, self};
    const std::vector<std::string> words =
        given()
            .With({{"only", std::string(replayer::prove::RowOf(trial.kind).name)},
                   {"trials", "1"},
                   {"seed", std::to_string(trial.seed)},
                   {"no-results", true},
                   {"format", "json"},
                   {"table", false},
                   {"budget", false}})
            .Words();
    command.insert(command.end(), words.begin(), words.end());
    const ProgramOutput output = RunProgram(command);
    RemoteTrial remote;
    if (!output.started ||
        (output.exit_code > kExitDifferences && output.exit_code != kExitCannotJudge)) {
      remote.failure.emplace();
      remote.failure->trial = trial;
      remote.failure->runs = remote.failure->failed_runs = 1;
      remote.failure->error = fmt::format("the process of the trial ended with exit code {}",
                                          output.started ? output.exit_code : kExitDevice);
      remote.failure->message = remote.failure->error + ", " + setting;
      return remote;
    }
    const nlohmann::json report = nlohmann::json::parse(output.text);
    remote.compared = report.at("trials").at(0).at("outputs_compared");
    for (const nlohmann::json& row : report.at("failures")) {
      TrialFailure failure;
      failure.trial = trial;
      failure.runs = row.at("runs");
      failure.failed_runs = row.at("failed_runs");
      failure.message = row.at("message");
      failure.differing = row.at("outputs");
      const auto number = [&](const char* column) {
        return row.at(column).is_null() ? 0 : row.at(column).get<int64_t>();
      };
      failure.code = static_cast<int>(number("code"));
      if (row.at("verdict") == "error") failure.error = failure.message;
      failure.first.call_id = number("call_id");
      failure.first.step = number("step");
      failure.first.position = static_cast<int>(number("position"));
      if (failure.first.call_id != 0) {
        failure.first.op = row.at("op");
        failure.first.output = row.at("output");
      }
      remote.failure = std::move(failure);
    }
    return remote;
  }

  int List() const {
    const storage::Reader reader(trace_, part());
    Table table({"witness_id", "trial", "verdict", "call_id", "plan", "message", "reproduce"});
    for (const replayer::prove::StoredWitness& witness : replayer::prove::ReadWitnesses(reader)) {
      table.Add({witness.witness_id, witness.row.kind, witness.row.verdict,
                 OrNothing(witness.row.call_id),
                 witness.plan_name.empty() ? Cell() : Cell(witness.plan_name), witness.row.message,
                 witness.row.command});
    }
    if (table.rows().empty() && format_ == Format::kTable) {
      fmt::print("{} has no witnesses\n", trace_);
    } else {
      fmt::print("{}", table.ToText(format_));
    }
    return kExitFine;
  }

  int RunAgain(const OpenedTrace& trace) {
    const auto witnesses = replayer::prove::ReadWitnesses(trace.reader(), witness_id_);
    if (witnesses.empty()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} has no witness {}; acltape prove {} @list shows those it has"_cli,
                              trace_, witness_id_, trace_));
    }
    replayer::prove::StoredWitness witness = witnesses.front();
    const replayer::prove::WitnessedTrial witnessed =
        replayer::prove::ParseWitness(witness.row.kind, witness.row.options);
    const bool own_plan = plan_.path.empty();
    const auto plan = own_plan ? replayer::prove::PlanOfWitness(trace.reader(), witness)
                               : plan_.Read(trace.reader(), trace.results());
    const replayer::prove::WitnessRun run =
        replayer::prove::RunWitness(trace.reader(), witnessed, plan, options_.device_lib,
                                    options_.repetitions, options_.kept_bytes);
    // The witness gets a new verdict only when its own plan was tried.
    if (own_plan && trace.results() != nullptr) {
      witness.row.verdict = run.verdict;
      witness.row.message = run.message;
      trace.results()->AddWitness(witness.row);
      trace.results()->Commit();
    }
    Table table({"quantity", "value"});
    table.Add({"witness_id", witness.witness_id});
    table.Add({"trial", witness.row.kind});
    if (plan) table.Add({"plan", plan->path});
    AddCoverage(table, run.coverage);
    table.Add({"outputs compared", run.outcome.compared});
    table.Add({"verdict", run.verdict});
    table.Add({"message", run.message});
    if (run.outcome.failure) table.Add({"reproduce", given().Text()});
    Report output;
    output.Add("witness", std::move(table));
    fmt::print("{}", output.ToText(format_));
    if (run.outcome.failure) return kExitDifferences;
    if (run.outcome.compared > 0 && run.coverage.TooLittle()) {
      return TooLittleCompared(run.coverage, kUsedLater);
    }
    if (run.outcome.compared > 0) return kExitFine;
    return NothingCompared(
        "the step leaves no result that the trial could look at: give the plan with which the "
        "witness was found as @plan"_cli);
  }

  std::string trace_;
  PlanOption plan_;
  std::string only_;
  std::vector<std::string> plant_;
  int64_t witness_id_ = 0;
  bool list_ = false;
  replayer::prove::ProofOptions options_;
  bool discard_ = false;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeProveCommand() { return std::make_unique<ProveCommand>(); }

}  // namespace acltape::cli
