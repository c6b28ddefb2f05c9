#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "cli/choices/plan_option.h"
#include "cli/choices/step_choice.h"
#include "cli/files/commands.h"
#include "cli/files/export_parquet.h"
#include "cli/files/export_timeline.h"
#include "cli/frame/next_step.h"
#include "cli/frame/nothing_compared.h"
#include "cli/frame/options.h"
#include "cli/terminal/table.h"
#include "replayer/reproducer/emit_cpp.h"
#include "replayer/reproducer/reproducer.h"
#include "replayer/script/mixed_step_json.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

using replayer::script::Watch;

enum class ExportForm { kCpp, kPerfetto, kChrome, kParquet };

class ExportCommand final : public Command {
 public:
  std::string Name() const override { return "export"; }
  std::string Summary() const override {
    return "Write calls for other tools: as a C++ program, as a timeline for Perfetto and Chrome, "
           "or all views as parquet files";
  }
  std::string Examples() const override {
    return "  acltape export t.db @to cpp @calls 812-830 -o repro\n"
           "  acltape export t.db @to cpp @plan plan.json @calls step:3 -o repro\n"
           "  acltape export t.db @to cpp @calls 812 @plant wrong_bits@812 -o repro\n"
           "  acltape export t.db @to perfetto -o t.perfetto-trace\n"
           "  acltape export t.db @to chrome @calls step:3 -o t.json.gz\n"
           "  acltape export t.db @to parquet -o t.parquet"_cli;
  }

  bool ExecutesTrace() const override { return form_ == ExportForm::kCpp; }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    app_ = &app;
    AddChoice(app, "to", form_,
              {{"cpp", ExportForm::kCpp},
               {"perfetto", ExportForm::kPerfetto},
               {"chrome", ExportForm::kChrome},
               {"parquet", ExportForm::kParquet}},
              "cpp: a program over the ACL interface, its contents and a trimmed trace; perfetto, "
              "chrome: a timeline in the format of that tool; parquet: a file for each view");
    AddOption(app, "calls", calls_,
              "The calls to execute, of one step or of several alike (see `acltape query "
              "@help`); what the others left is brought from the recording. Of a timeline "
              "the calls to show (default: all)"_cli)
        ->type_name("CALLS");
    AddOption(app, "captured", captured_, "Those of them to capture; default: all that can be");
    plan_.Declare(app);
    AddOption(app, "capture-step", capture_step_,
              "The step whose values the capture sees; default: the first of its class")
        ->type_name("STEP");
    AddOption(app, "run-steps", run_steps_,
              "The steps to execute; default: the next one of the class")
        ->delimiter(',')
        ->type_name("STEPS");
    AddOption(app, "plant", plants_,
              "A fault of the captured execution, KIND@CALL or KIND@CALL:OTHER, which --clean "
              "of the program leaves out")
        ->type_name("FAULT");
    AddChoice(app, "watch", watch_,
              {{"step", Watch::kStepOutputs}, {"every", Watch::kEveryResult}});
    AddOption(app, "options", options_file_,
              "The whole experiment as JSON, as a witness holds it, in place of the options "
              "above");
    AddCount(app, "runs", options_.runs, 1, "Executions up to the first difference, for races");
    AddOutputOption(app, options_.folder,
                    "The folder to write; of a timeline the file, compressed when its name ends in "
                    ".gz")
        ->type_name("PATH")
        ->required();
    AddFlag(app, "force", options_.overwrite, "Overwrite what is there");
    AddFlag(app, "no-trace", no_trace_, "Write no trimmed trace beside the program");
    AddOption(app, "trace-share", share_percent_,
              "Write the trimmed trace when it has at most this share of the calls, in "
              "percent")
        ->check(CLI::Range(0.0, 100.0))
        ->capture_default_str();
    AddDeviceOption(app, options_.device_lib, "whose toolkit the program is built against");
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (form_ == ExportForm::kParquet) return WriteParquet();
    if (form_ != ExportForm::kCpp) return WriteTimelineFile();
    if (app_->count("@calls"_cli) == 0) {
      throw Error(ErrorKind::kUsage,
                  "@to cpp needs the calls to execute, of one step or of several alike; name them "
                  "with @calls, for example @calls step:1."_cli);
    }
    // Before the work that it needs.
    replayer::reproducer::JudgeReproducerFolder(options_.folder, options_.overwrite, trace_);
    const storage::Reader reader(trace_, part());
    const auto plan = plan_.Read(reader, nullptr);
    options_.trace_share = share_percent_ / 100;
    options_.trace = !no_trace_;
    replayer::Session session(reader, replayer::Data::kRecorded, options_.device_lib, 1, nullptr);
    if (!plan && session.CaptureRefusal()) {
      throw Error(ErrorKind::kTrace, session.CaptureRefusal()->message);
    }
    replayer::reproducer::ReproducerResult result;
    session.WithLowering([&](replayer::Execution& execution) {
      const replayer::script::MixedStep step(session, execution, plan ? &plan->plan : nullptr);
      result = replayer::reproducer::WriteReproducer(session, execution, Suspect(reader, step),
                                                     options_);
      // Should the device refuse an operator only then, the program is written again.
      options_.overwrite = true;
    });
    Print(result);
    if (!result.built.compiled) return kExitFine;
    switch (result.built.fault_exit) {
      case kExitFine:
        return kExitFine;
      case kExitDifferences:
        return kExitDifferences;
      case kExitCannotJudge:
        return NothingCompared(
            "no exported call leaves a result that outlives the step; export more calls, or watch "
            "what each call wrote with @watch every"_cli);
      default:
        return kExitDevice;
    }
  }

 private:
  // Refuses options that say how a program is made.
  void RefuseOthers(std::initializer_list<std::string_view> also, std::string_view form) const {
    for (const CLI::Option* option : app_->get_options()) {
      constexpr std::string_view kOfAll[] = {"trace", "to",   "output", "force", "format",
                                             "help",  "wide", "color",  "table", "no-pager"};
      const std::string name = option->get_single_name();
      const auto is = [&](std::string_view one) { return one == name; };
      if (option->count() == 0 || std::any_of(std::begin(kOfAll), std::end(kOfAll), is) ||
          std::any_of(also.begin(), also.end(), is)) {
        continue;
      }
      throw Error(ErrorKind::kUsage,
                  fmt::format("--{} is of @to cpp alone; leave it out of @to {}."_cli, name, form));
    }
  }

  int WriteParquet() {
    RefuseOthers({}, "parquet");
    fmt::print("{}", ExportParquet(trace_, options_.folder, options_.overwrite).ToText(format_));
    return kExitFine;
  }

  int WriteTimelineFile() {
    const bool perfetto = form_ == ExportForm::kPerfetto;
    RefuseOthers({"calls", "process"}, perfetto ? "perfetto" : "chrome");
    TimelineFile file;
    file.trace = trace_;
    file.calls = calls_;
    file.path = options_.folder;
    file.part = part();
    file.perfetto = perfetto;
    file.overwrite = options_.overwrite;
    fmt::print("{}", ExportTimeline(file).ToText(format_));
    SuggestNext(fmt::format("open {} {}", storage::ShellWord(file.path),
                            perfetto ? "at https://ui.perfetto.dev" : "in chrome://tracing"));
    return kExitFine;
  }

  static std::vector<bool> Places(const storage::Reader& reader,
                                  const replayer::script::MixedStep& step,
                                  const std::string& selection) {
    if (const auto places = FindPlaces(reader, step, selection)) return *places;
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' picks no call that does work in the steps that can be captured",
                            selection));
  }

  static size_t MatchOf(const replayer::script::MixedStep& step, int64_t number) {
    if (const std::optional<size_t> match = FindMatch(step, number)) return *match;
    throw Error(ErrorKind::kUsage, fmt::format("step {} is not one of those that one graph serves; "
                                               "`acltape steps` lists them",
                                               number));
  }

  replayer::script::MixedStepOptions Suspect(const storage::Reader& reader,
                                             const replayer::script::MixedStep& step) const {
    replayer::script::MixedStepOptions suspect;
    if (!options_file_.empty()) suspect = replayer::script::ReadMixedStep(options_file_);
    if (watch_ != Watch::kStepOutputs) suspect.watch = watch_;
    suspect.plan = step.plan();
    suspect.executed = Places(reader, step, calls_);
    if (options_file_.empty() || !captured_.empty()) {
      const std::vector<bool> wanted =
          captured_.empty() ? suspect.executed : Places(reader, step, captured_);
      suspect.captured.assign(step.places(), false);
      for (const size_t place : step.capturable()) {
        suspect.captured[place] = wanted[place] && suspect.executed[place];
      }
    }
    if (capture_step_ >= 0) suspect.capture_match = MatchOf(step, capture_step_);
    if (!run_steps_.empty()) {
      suspect.run_matches.clear();
      for (const int64_t number : run_steps_) {
        suspect.run_matches.push_back(MatchOf(step, number));
      }
    } else if (capture_step_ >= 0) {
      suspect.run_matches = {suspect.capture_match + 1 < step.step_class().matches.size()
                                 ? suspect.capture_match + 1
                                 : 0};
    }
    for (const std::string& plant : plants_)
      suspect.faults.push_back(replayer::script::ParseFault(plant));
    return suspect;
  }

  void Print(const replayer::reproducer::ReproducerResult& result) const {
    Table table({"quantity", "value"});
    const auto add = [&](const char* quantity, Cell value) {
      table.Add({quantity, std::move(value)});
    };
    add("folder", result.folder);
    add("calls executed", result.calls);
    add("build", result.build_command);
    if (!result.built.compiled) {
      add("not compiled because", result.built.why_not);
    } else {
      add("exit code", int64_t{result.built.fault_exit});
      add("exit code with --clean", int64_t{result.built.clean_exit});
      std::string said = result.built.output.substr(0, result.built.output.find('\n'));
      add("it says", std::move(said));
    }
    if (result.trace_written) {
      add("trimmed trace", result.folder + "/trace.db");
      add("  calls", result.trace_calls);
      add("  calls of the whole trace", result.trace_calls_before);
    } else if (options_.trace) {
      add("no trimmed trace because", result.trace_note);
    }
    if (result.built.fault_exit == 1) add("reproduce", result.run_command);
    fmt::print("{}", table.ToText(format_));
  }

  const CLI::App* app_ = nullptr;
  std::string trace_;
  ExportForm form_ = ExportForm::kCpp;
  std::string calls_;
  std::string captured_;
  PlanOption plan_;
  int64_t capture_step_ = -1;
  std::vector<int64_t> run_steps_;
  std::vector<std::string> plants_;
  Watch watch_ = Watch::kStepOutputs;
  std::string options_file_;
  bool no_trace_ = false;
  double share_percent_ = 5;
  replayer::reproducer::ReproducerOptions options_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeExportCommand() { return std::make_unique<ExportCommand>(); }

}  // namespace acltape::cli
