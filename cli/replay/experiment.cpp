#include <fmt/format.h>

#include "cli/choices/plan_option.h"
#include "cli/choices/standard_option.h"
#include "cli/choices/step_choice.h"
#include "cli/frame/nothing_compared.h"
#include "cli/frame/options.h"
#include "cli/replay/commands.h"
#include "cli/tables/coverage_words.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/table.h"
#include "replayer/script/compare_steps.h"
#include "replayer/script/kept_streams.h"
#include "replayer/script/mixed_step_json.h"
#include "replayer/script/stream_orders.h"

namespace acltape::cli {
namespace {

using replayer::script::MixedStep;
using replayer::script::MixedStepOptions;
using replayer::script::StepComparison;
using replayer::script::Watch;

std::string RemedyNames() {
  std::string names;
  for (const replayer::script::Remedy& remedy : replayer::script::AllRemedies()) {
    names += (names.empty() ? "" : ", ") + remedy.Word('-');
  }
  return names;
}

// "churn=64M": a number of bytes with K, M or G.
int64_t ParseBytes(const std::string& text, const std::string& word) {
  size_t used = 0;
  int64_t bytes = 0;
  try {
    bytes = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  int64_t unit = 1;
  if (used > 0 && used + 1 == text.size()) {
    constexpr std::string_view kUnits = "KMG";
    const size_t found = kUnits.find(text[used]);
    if (found != std::string_view::npos) {
      unit = int64_t{1} << (10 * (found + 1));
      ++used;
    }
  }
  if (used != text.size() || bytes <= 0 || bytes > (int64_t{1} << 40) / unit) {
    throw Error(ErrorKind::kUsage,
                "@stress "_cli + word + " needs a number of bytes such as churn=64M");
  }
  return bytes * unit;
}

class ExperimentCommand final : public Command {
 public:
  std::string Name() const override { return "experiment"; }
  std::string Summary() const override {
    return "Execute a step partly captured and compare it with the step executed eagerly";
  }
  std::string Examples() const override {
    return "  acltape experiment t.db                              everything captured\n"
           "  acltape experiment t.db @captured 812,815           two calls in graphs, the rest "
           "eager\n"
           "  acltape experiment t.db @executed 812               one call with recorded inputs\n"
           "  acltape experiment t.db @plan plan.json @capture-step 3 @run-steps 5,4,5\n"
           "  acltape experiment t.db @plan plan.json @keep-streams 0:2    one side stream\n"
           "  acltape experiment t.db @plant stale_input@812 @remedy fresh-inputs\n"
           "  acltape experiment t.db @stress poison,relocate,churn=64M @executions 20"_cli;
  }

  bool ExecutesTrace() const override { return true; }
  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    plan_.Declare(app);
    AddOption(app, "captured", captured_,
              "Calls that run in graphs, as far as the plan captures them: all, none, or a "
              "selection as of `acltape query`; a call of any of the steps alike stands for "
              "its place in all")
        ->capture_default_str();
    AddOption(app, "executed", executed_,
              "Calls that are executed at all; the others get their recorded results")
        ->capture_default_str();
    AddOption(app, "keep-streams", keep_streams_,
              "Captured calls that run on the side streams of the plan, the others on the "
              "main stream: all, none, or words REGION:STREAM and call numbers")
        ->capture_default_str();
    AddOption(app, "share-memory", share_memory_,
              "What may lie on memory that the captured step used before, everything else has "
              "memory of its own: all, none, or buffers by number and workspace:CALL")
        ->capture_default_str();
    AddOption(app, "capture-step", capture_step_,
              "Capture with the values of this step (default: the first of the class)");
    AddOption(app, "run-steps", run_steps_,
              "Execute these steps, in this order (default: the second of the class)")
        ->delimiter(',');
    AddCount(app, "executions", executions_, 1, "Executions of these steps, each compared");
    AddFlag(app, "no-updates", no_updates_);
    AddFlag(app, "disable-tasks", disable_tasks_,
            "Capture everything and disable the tasks of calls that are not to be captured; "
            "those have to be the last of their region");
    AddOption(app, "remedy", remedies_, "Counter-experiments: " + RemedyNames())->delimiter(',');
    AddOption(app, "stress", stress_,
              "poison (memory without a live value reads as NaN), relocate (inputs lie at "
              "alternating addresses), churn=BYTES (an allocator at work between executions)")
        ->delimiter(',');
    AddOption(app, "plant", plant_, "Put a fault there first: KIND@CALL or KIND@CALL:OTHER")
        ->type_name("FAULT");
    AddChoice(app, "watch", options_.watch,
              {{"step", Watch::kStepOutputs}, {"every", Watch::kEveryResult}});
    standard_.Declare(app);
    AddOption(app, "options", options_file_,
              "A JSON file with the options of an experiment, as witnesses hold them; other "
              "options come on top");
    AddMemoryOption(app, memory_);
    AddDeviceOption(app, device_lib_);
    AddFormatOption(app, format_);
  }

  int Run() override {
    const storage::Reader reader(trace_, part());
    const std::shared_ptr<const replayer::ChosenPlan> plan = plan_.Read(reader, nullptr);
    std::vector<replayer::script::PlantedFault> faults;
    for (const std::string& text : plant_) faults.push_back(replayer::script::ParseFault(text));
    if (device_lib_.empty()) {
      orders_ = replayer::script::UseStreamOrders(
          replayer::script::StreamsOf(plan ? &plan->plan : nullptr, faults));
    }
    const std::shared_ptr<const analyzer::metrics::Standard> standard = standard_.Load();
    replayer::Session session(reader, replayer::Data::kRecorded, device_lib_, 1, nullptr);
    session.contents().KeepAtMost(memory_);
    Progress progress("experiment");
    StepComparison comparison;
    size_t capturable = 0;
    session.WithLowering([&](replayer::Execution& execution) {
      const MixedStep step(session, execution, plan ? &plan->plan : nullptr);
      capturable = step.capturable().size();
      Choose(reader, step);
      options_.faults.insert(options_.faults.end(), faults.begin(), faults.end());
      ChooseLiberties(step);
      comparison = replayer::script::CompareSteps(
          step, options_, executions_,
          [&](int64_t done, int64_t total) { progress.Update(done, total); }, standard);
    });
    progress.Clear();
    fmt::print("{}", SummaryTable(session, comparison, capturable).ToText(format_));
    switch (comparison.verdict) {
      case StepComparison::Verdict::kEqual:
        return kExitFine;
      case StepComparison::Verdict::kFlaky:
        return kExitCannotJudge;
      case StepComparison::Verdict::kNothing:
        return NothingCompared(
            "no executed call leaves a result that outlives the step; execute more calls, or watch "
            "what each call wrote with @watch every"_cli);
      case StepComparison::Verdict::kTooLittle:
        return TooLittleCompared(comparison.coverage,
                                 "watch what each call wrote with @watch every"_cli);
      default:
        return kExitDifferences;
    }
  }

 private:
  void Choose(const storage::Reader& reader, const MixedStep& step) {
    const Watch watch = options_.watch;
    if (!options_file_.empty()) {
      options_ = replayer::script::ReadMixedStep(options_file_);
      if (watch != Watch::kStepOutputs) options_.watch = watch;
    }
    options_.plan = step.plan();
    if (captured_ != "all") options_.captured = Places(reader, step, "@captured"_cli, captured_);
    if (executed_ != "all") options_.executed = Places(reader, step, "@executed"_cli, executed_);
    if (capture_step_ >= 0) options_.capture_match = MatchOf(step, capture_step_);
    if (!run_steps_.empty()) options_.run_matches.clear();
    for (const int64_t number : run_steps_) {
      options_.run_matches.push_back(MatchOf(step, number));
    }
    options_.run_matches =
        replayer::script::RunsOfOrders(options_.run_matches, options_.capture_match, orders_);
    if (no_updates_) options_.plan_updates = false;
    if (disable_tasks_) options_.disable_tasks = true;
    for (const std::string& name : remedies_) Apply(name);
    for (const std::string& word : stress_) Stress(word);
  }

  // Called after the faults were chosen, because a fault may be in memory that is shared.
  void ChooseLiberties(const MixedStep& step) {
    if (keep_streams_ != "all") {
      options_.on_planned_stream = replayer::script::ParseKeptStreams(step, keep_streams_);
    }
    if (share_memory_ != "all") {
      options_.kept_reuses =
          replayer::script::ParseKeptReuses(step.Reuses(options_), share_memory_);
    }
  }

  void Apply(const std::string& name) {
    const replayer::script::Remedy* remedy = replayer::script::FindRemedy(name, '-');
    if (remedy == nullptr) {
      throw Error(ErrorKind::kUsage, "@remedy "_cli + name + ": one of " + RemedyNames());
    }
    options_.remedies.*remedy->member = true;
  }

  void Stress(const std::string& word) {
    constexpr std::string_view kChurn = "churn=";
    if (word == "poison") {
      options_.stress.poison_gaps = true;
    } else if (word == "relocate") {
      options_.stress.relocate_inputs = true;
    } else if (word.starts_with(kChurn)) {
      options_.stress.churn_bytes = ParseBytes(word.substr(kChurn.size()), word);
    } else {
      throw Error(ErrorKind::kUsage,
                  "@stress "_cli + word + ": one of poison, relocate, churn=BYTES");
    }
  }

  static size_t MatchOf(const MixedStep& step, int64_t number) {
    if (const std::optional<size_t> match = FindMatch(step, number)) return *match;
    throw Error(ErrorKind::kUsage, fmt::format("step {} is none of those that are alike: {}",
                                               number, StepNumbers(step)));
  }

  static std::vector<bool> Places(const storage::Reader& reader, const MixedStep& step,
                                  const char* option, const std::string& text) {
    if (text == "none") return std::vector<bool>(step.places(), false);
    if (const auto places = FindPlaces(reader, step, text)) return *places;
    throw Error(ErrorKind::kUsage,
                fmt::format("{} {} picks no call of the steps that are alike", option, text));
  }

  Table SummaryTable(replayer::Session& session, const StepComparison& comparison,
                     size_t capturable) const {
    Table table({"quantity", "value"});
    const auto add = [&](const char* quantity, Cell value) {
      table.Add({quantity, std::move(value)});
    };
    add("device", session.device().description());
    if (!plan_.path.empty()) add("plan", plan_.path);
    add("calls that can be captured", static_cast<int64_t>(capturable));
    add("calls captured", comparison.captured_calls);
    add("graphs", comparison.graphs);
    add("executions", int64_t{comparison.executions});
    add("executions different", int64_t{comparison.different});
    add("outputs compared", comparison.outputs);
    AddCoverage(table, comparison.coverage);
    if (!standard_.bitwise()) {
      add(("  within " + standard_.text).c_str(), comparison.within);
    }
    if (comparison.reference_different > 0) {
      add("executions of the reference", int64_t{comparison.reference_executions});
      add("  different from the first", int64_t{comparison.reference_different});
    }
    add("verdict", Verdict(comparison));
    if (!comparison.first) return table;
    const StepComparison::First& first = *comparison.first;
    const analyzer::metrics::TensorMetrics& metrics = first.metrics;
    add("first difference", fmt::format("call {} {} {} in step {}, execution {}", first.call_id,
                                        first.op, first.out, first.step, first.execution));
    if (metrics.differing > 0) {
      add("  elements",
          fmt::format("{} of {}, first [{}]: eager {}, here {}", metrics.differing,
                      metrics.elements, metrics.first_index, metrics.first_a, metrics.first_b));
      add("  max_abs", metrics.max_abs);
      add("  max_rel", metrics.max_rel);
      if (metrics.max_ulp >= 0) add("  max_ulp", metrics.max_ulp);
      if (metrics.nan_mismatches > 0) add("  NaN on one side", metrics.nan_mismatches);
    }
    if (!first.reason.empty()) add("  refused because", first.reason);
    add("reproduce", given().Text());
    return table;
  }

  std::string Verdict(const StepComparison& comparison) const {
    switch (comparison.verdict) {
      case StepComparison::Verdict::kEqual:
        if (comparison.within == 0) return "equal bit for bit to the eager step";
        return fmt::format("as the eager step within {}", standard_.text);
      case StepComparison::Verdict::kDifferent:
        return fmt::format("different in {} of {} executions, the same each time",
                           comparison.different, comparison.executions);
      case StepComparison::Verdict::kUnstable:
        return fmt::format("unstable: different in {} of {} executions", comparison.different,
                           comparison.executions);
      case StepComparison::Verdict::kFlaky:
        return "the eager step differs from itself; nothing can be said of the captured one";
      case StepComparison::Verdict::kNothing:
        return "nothing was compared";
      case StepComparison::Verdict::kTooLittle:
        return NotKnown(comparison.coverage);
    }
    return "";
  }

  std::string trace_;
  PlanOption plan_;
  std::string captured_ = "all";
  std::string executed_ = "all";
  std::string keep_streams_ = "all";
  std::string share_memory_ = "all";
  int64_t capture_step_ = -1;
  std::vector<int64_t> run_steps_;
  int executions_ = 1;
  int orders_ = 1;  // orders of streams: launches that see all of them
  bool no_updates_ = false;
  bool disable_tasks_ = false;
  std::vector<std::string> remedies_;
  std::vector<std::string> stress_;
  std::vector<std::string> plant_;
  StandardOption standard_;
  std::string options_file_;
  int64_t memory_ = replayer::Contents::kKeptBytes;
  std::string device_lib_;
  MixedStepOptions options_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeExperimentCommand() { return std::make_unique<ExperimentCommand>(); }

}  // namespace acltape::cli
