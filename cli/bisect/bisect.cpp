#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "analyzer/plan/plan_file.h"
#include "cli/bisect/bisect_against.h"
#include "cli/bisect/bisect_check.h"
#include "cli/bisect/bisect_emit.h"
#include "cli/bisect/bisect_report.h"
#include "cli/bisect/bisect_sides.h"
#include "cli/bisect/commands.h"
#include "cli/bisect/ranks_diff.h"
#include "cli/choices/plan_option.h"
#include "cli/choices/selection.h"
#include "cli/choices/standard_option.h"
#include "cli/choices/step_choice.h"
#include "cli/frame/failure.h"
#include "cli/frame/options.h"
#include "cli/tables/report.h"
#include "cli/terminal/progress.h"
#include "replayer/bisect/bisection.h"
#include "replayer/bisect/elements.h"
#include "replayer/bisect/journal.h"
#include "replayer/bisect/step_bisection.h"
#include "replayer/reproducer/emit_cpp.h"
#include "replayer/script/mixed_step_json.h"
#include "replayer/script/stream_orders.h"
#include "replayer/sides/side_environment.h"
#include "storage/payload.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

using nlohmann::json;
using replayer::bisect::BisectionReport;
using replayer::bisect::Elements;
using replayer::bisect::SearchMethod;

class BisectCommand final : public Command {
 public:
  std::string Name() const override { return "bisect"; }
  std::string Summary() const override {
    return "Find the calls whose captured execution gives other results, and the class of cause";
  }
  std::string Examples() const override {
    return "  acltape bisect t.db                              captured against eager\n"
           "  acltape bisect t.db @plan plan.json @budget 5m\n"
           "  acltape bisect t.db @good plan:a.json @bad plan:b.json\n"
           "  acltape bisect old.db @against new.db          which edit of the script it was\n"
           "  acltape bisect old.db @against new.db @ranks all   and on which rank\n"
           "  acltape bisect t.db @bad-device-lib /opt/other/lib64\n"
           "  acltape bisect t.db @bad-env OMP_NUM_THREADS=1  another environment\n"
           "  acltape bisect t.db @good recorded              what does not give recorded "
           "results\n"
           "  acltape bisect t.db @plant wrong_bits@812       what a fault looks like\n"
           "  acltape bisect t.db @check './try.sh {calls}'   any program, as git bisect run"_cli;
  }

  bool ExecutesTrace() const override { return true; }
  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    AddOption(app, "good", good_, "What is right: eager, plan:FILE, or recorded")
        ->option_text("SIDE [eager]");
    AddOption(app, "bad", bad_, "What is suspected: captured, or plan:FILE")
        ->option_text("SIDE [captured]");
    sides_.Declare(app);
    AddOption(app, "check", check_,
              "A command that executes the program with the calls in $ACLTAPE_CALLS (and in "
              "the file {calls}) altered: exit code 0 good, 1 to 124 bad, 125 cannot judge, "
              "126 on: give up");
    AddOption(app, "against", against_,
              "Another recording of the program: find the calls whose form there, executed "
              "in the place of this trace's, gives a step other results");
    plan_.Declare(app);
    AddChoice(app, "ranks", ranks_, {{"one", Ranks::kOne}, {"all", Ranks::kAll}},
              "With @against: bisect the rank on which the results of the two recordings part "
              "first"_cli);
    AddChoice(app, "what", what_,
              {{"calls", Elements::kCalls},
               {"regions", Elements::kRegions},
               {"updates", Elements::kUpdates},
               {"streams", Elements::kStreams},
               {"buffers", Elements::kBuffers}},
              "What is altered one by one");
    AddOption(app, "capture-step", capture_step_,
              "Capture at this step (default: the first of the class)");
    AddOption(app, "run-steps", run_steps_,
              "Execute these steps (default: the second and the last of the class)")
        ->delimiter(',');
    AddFlag(app, "no-updates", no_updates_);
    AddFlag(app, "in-graph", in_graph_,
            "Leave calls out by disabling their tasks in a graph that holds all of them");
    standard_.Declare(app);
    AddOption(app, "plant", plant_, "Put a fault there first, such as wrong_bits@812");
    AddDeviceOption(app, device_lib_);
    AddOption(app, "calls", calls_, "Alter only these; the same words as for other commands");
    AddChoice(app, "method", options_.search.method,
              {{"prefixes", SearchMethod::kPrefixes}, {"ddmin", SearchMethod::kDeltaDebugging}},
              "Binary search, verified, or delta debugging from the start");
    AddCount(app, "causes", options_.search.causes, 1, "Independent causes to look for");
    AddOption(app, "executions", executions_,
              "Executions of an experiment (default: 3, of a check 1)")
        ->check(AtLeast(1));
    AddOption(app, "error-bound", options_.trials.error_bound,
              "Where results vary: how likely the search may take a set that differs for one "
              "that does not")
        ->check(CLI::Range(1e-12, 0.5))
        ->capture_default_str();
    AddTime(app, "budget", budget_, "Time after which the best answer so far is given");
    AddTime(app, "time-limit", time_limit_,
            "Time of one check, which cannot be judged then, or of one answer of a side");
    AddMemoryOption(app, memory_);
    AddOption(app, "journal", journal_,
              "Where every experiment is written down, to go on from after an interruption "
              "(default: TRACE.bisect.jsonl, or TRACE.bisect.2.jsonl and so on when that is "
              "of other options)");
    AddFlag(app, "restart", restart_, "Empty the journal first");
    AddFlag(app, "no-journal", no_journal_, "Write nothing down");
    AddOption(app, "emit", emit_,
              "Write each cause as a C++ program with a trimmed trace into this folder (of "
              "several causes: into folders 1, 2, ... of it)");
    AddFlag(app, "force", overwrite_, "Overwrite what @emit wrote there before"_cli);
    AddFlag(app, "git", git_,
            "Only judge, with exit codes for `git bisect run`: 0 good, 1 bad, 125 cannot "
            "judge, 128 wrong usage");
    AddFlag(app, "no-results", discard_);
    AddFlag(app, "verbose", verbose_, "Show what the check, or a side, prints");
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (!git_) return Bisect();
    try {
      return Bisect();
    } catch (...) {
      // `git bisect run` takes 128 and more as the end of its search, and 1 to 127 as a verdict.
      const Failure failure = FailureOf(std::current_exception());
      fmt::print(stderr, "acltape: {}\n", failure.sentence);
      const bool ends = failure.code == static_cast<int>(ErrorKind::kUsage) ||
                        failure.code == static_cast<int>(ErrorKind::kInternal);
      return ends ? 128 : 125;
    }
  }

 private:
  int Bisect() {
    // Before the work that they need.
    if (!journal_.empty()) replayer::bisect::JudgeJournal(journal_, trace_, restart_);
    if (!emit_.empty() && check_.empty()) {
      replayer::reproducer::JudgeReproducerFolder(emit_, overwrite_, trace_);
    }
    if (!against_.empty()) return AgainstAnotherTrace();
    if (ranks_ == Ranks::kAll) {
      throw Error(ErrorKind::kUsage,
                  "@ranks all compares two recordings; name the other one with @against."_cli);
    }
    const Side good = ParseSide("@good"_cli, good_);
    const bool two_sides = sides_.Given() || good.kind == Side::Kind::kRecorded;
    if (bad_.empty()) bad_ = two_sides ? "eager" : "captured";
    const Side bad = ParseSide("@bad"_cli, bad_);
    if (two_sides) return BisectSides(good, bad);
    if (!check_.empty()) {
      if (!emit_.empty()) {
        throw Error(ErrorKind::kUsage,
                    "@emit writes what a captured step does; what a check finds is the check's own "
                    "program."_cli);
      }
      if (!standard_.bitwise()) {
        throw Error(
            ErrorKind::kUsage,
            "@standard judges what a captured step computes; a check judges by itself."_cli);
      }
      const OpenedTrace trace(trace_, true, part());
      const auto plan = plan_.Read(trace.reader(), nullptr);
      return ByCheck(trace.reader(), plan == nullptr ? nullptr : &plan->plan);
    }
    if (good.kind == Side::Kind::kCaptured || bad.kind == Side::Kind::kEager ||
        bad.kind == Side::Kind::kRecorded) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("@good {} with @bad {} leaves nothing to bisect; the good side is "
                      "eager, recorded or plan:FILE, the bad one captured or plan:FILE."_cli,
                      good_, bad_));
    }
    if (bad.kind == Side::Kind::kPlan) {
      if (!plan_.path.empty()) {
        throw Error(ErrorKind::kUsage,
                    "@plan and @bad plan:FILE both name the plan to bisect."_cli);
      }
      plan_.path = bad.plan;
    }
    const OpenedTrace trace(trace_, discard_, part());
    const auto plan = plan_.Read(trace.reader(), trace.results());
    std::shared_ptr<const replayer::ChosenPlan> good_plan;
    if (good.kind == Side::Kind::kPlan) {
      PlanOption option = plan_;
      option.path = good.plan;
      good_plan = option.Read(trace.reader(), nullptr);
    }
    if (device_lib_.empty()) UseOrders({plan.get(), good_plan.get()});
    const int of_good = good_plan == nullptr ? 0 : JudgeGoodPlan(trace, *good_plan);
    return of_good != 0 ? of_good : BisectCaptured(trace, plan.get());
  }

  void UseOrders(std::initializer_list<const replayer::ChosenPlan*> plans) {
    std::vector<replayer::script::PlantedFault> faults;
    for (const std::string& fault : plant_) faults.push_back(replayer::script::ParseFault(fault));
    int streams = 1;
    for (const replayer::ChosenPlan* plan : plans) {
      streams = std::max(
          streams, replayer::script::StreamsOf(plan == nullptr ? nullptr : &plan->plan, faults));
    }
    orders_ = replayer::script::UseStreamOrders(streams);
  }

  int AgainstAnotherTrace() {
    const std::pair<const char*, bool> others[] = {{"@check"_cli, !check_.empty()},
                                                   {"@standard"_cli, !standard_.bitwise()},
                                                   {"@plan"_cli, !plan_.path.empty()},
                                                   {"@good"_cli, good_ != "eager"},
                                                   {"@bad"_cli, !bad_.empty()},
                                                   {"@emit"_cli, !emit_.empty()},
                                                   {"@plant"_cli, !plant_.empty()},
                                                   {"@what"_cli, what_ != Elements::kCalls},
                                                   {"@capture-step"_cli, capture_step_ >= 0},
                                                   {"@no-updates"_cli, no_updates_},
                                                   {"@in-graph"_cli, in_graph_}};
    for (const auto& [option, given] : others) {
      if (!given) continue;
      throw Error(ErrorKind::kUsage,
                  fmt::format("@against executes calls of two traces one by one, without a graph "
                              "or a command; leave out {}."_cli,
                              option));
    }
    if (run_steps_.size() > 1) {
      throw Error(ErrorKind::kUsage, "@against executes one step; give @run-steps one number."_cli);
    }
    options_.trials.executions = std::max(1, executions_);
    storage::TracePart of_part = part();
    std::optional<Table> of_ranks;
    if (ranks_ == Ranks::kAll) {
      if (!of_part.process.empty()) {
        throw Error(ErrorKind::kUsage,
                    "@ranks all chooses the rank, and @process names one; leave out one of "
                    "them."_cli);
      }
      const RanksDiff ranks(trace_, against_, of_part, {});
      if (ranks.FirstRank().empty()) return ranks.Print(format_, given());
      of_part.process = ranks.FirstRank();
      of_ranks = ranks.RankTable();
    }
    return BisectAgainst({.a = trace_,
                          .b = against_,
                          .calls = calls_,
                          .step = run_steps_.empty() ? -1 : run_steps_.front(),
                          .device_lib = device_lib_,
                          .part = of_part,
                          .given = given(),
                          .discard = discard_,
                          .ranks = of_ranks,
                          .format = format_},
                         std::bind_front(&BisectCommand::WithJournal, this));
  }

  // Tests that the plan which is said to be good gives the results of eager execution. Where it
  // does not, there is no good side, and nothing can be bisected.
  int JudgeGoodPlan(const OpenedTrace& trace, const replayer::ChosenPlan& plan) {
    replayer::Session session(trace.reader(), replayer::Data::kRecorded, device_lib_, 1, nullptr);
    session.contents().KeepAtMost(memory_);
    std::string verdict;
    session.WithLowering([&](replayer::Execution& execution) {
      const replayer::script::MixedStep step(session, execution, &plan.plan);
      replayer::bisect::StepBisectionOptions options = StepOptions(trace.reader(), step, plan.path);
      options.elements = Elements::kCalls;
      options.bisection.only_judge = true;
      const BisectionReport report = replayer::bisect::BisectStep(step, options, nullptr);
      verdict = report.ExitCode() == 0 ? "" : report.Verdict();
    });
    if (verdict.empty()) return 0;
    fmt::print("@good plan:{} is not good: {}\nreproduce: {}\n"_cli, plan.path, verdict,
               WithoutSides().With("plan", plan.path).Text());
    return static_cast<int>(ErrorKind::kCannotJudge);
  }

  int BisectSides(const Side& good, const Side& bad) {
    CheckSides(good, bad, sides_,
               {{!check_.empty(), "@check"_cli},
                {!standard_.bitwise(), "@standard"_cli},
                {!plan_.path.empty(), "@plan"_cli},
                {!emit_.empty(), "@emit"_cli},
                {!plant_.empty(), "@plant"_cli},
                {capture_step_ >= 0, "@capture-step"_cli},
                {no_updates_, "@no-updates"_cli},
                {in_graph_, "@in-graph"_cli},
                {what_ == Elements::kUpdates, "@what updates"_cli}});
    const std::vector<std::string> environment = replayer::sides::CurrentEnvironment();
    const OpenedTrace trace(trace_, discard_, part());
    SidesRequest request;
    request.recorded = good.kind == Side::Kind::kRecorded;
    request.device_lib = device_lib_;
    request.run_steps = run_steps_;
    if (executions_ != 0) request.executions = executions_;
    if (time_limit_ > 0) request.time_limit = time_limit_;
    request.verbose = verbose_;
    request.given = given();
    SidesBisector bisector(trace.reader(), sides_, request, environment);
    replayer::Session session(trace.reader(), replayer::Data::kRecorded, bisector.session_library(),
                              1, trace.results());
    BisectionReport report;
    BisectSubject subject;
    session.WithLowering([&](replayer::Execution& execution) {
      const replayer::script::MixedStep step(session, execution, nullptr, /*least_steps=*/1);
      replayer::sides::SidesBisectionOptions options;
      options.experiment = bisector.StepOptions(step);
      options.elements = what_;
      options.may_alter = PickedBy(trace.reader(), calls_);
      json identity = Identity(trace.reader(), nullptr);
      identity["sides"] = json::parse(bisector.Identity(step));
      subject = {bisector.DescribeGood(step), bisector.DescribeBad(step),
                 std::string(replayer::bisect::ElementsName(what_))};
      report = WithJournal(identity, [&](replayer::bisect::Journal* journal,
                                         const replayer::bisect::BisectionOptions& bisection) {
        options.bisection = bisection;
        return bisector.Bisect(step, options, journal);
      });
    });
    KeepCauses(report, "executed on the bad side", 0, /*planted=*/false, trace.results());
    Print(report, subject, trace.reader());
    return report.ExitCode();
  }

  int BisectCaptured(const OpenedTrace& trace, const replayer::ChosenPlan* plan) {
    const analyzer::plan::Plan* chosen = plan == nullptr ? nullptr : &plan->plan;
    replayer::Session session(trace.reader(), replayer::Data::kRecorded, device_lib_, 1,
                              trace.results());
    session.contents().KeepAtMost(memory_);
    BisectionReport report;
    session.WithLowering([&](replayer::Execution& execution) {
      const replayer::script::MixedStep step(session, execution, chosen);
      const replayer::bisect::StepBisectionOptions options =
          StepOptions(trace.reader(), step, plan_.path);
      json identity = Identity(trace.reader(), chosen);
      identity["capturable"] = step.capturable();
      identity["step"] = replayer::script::MixedStepJson(options.experiment.step);
      identity["executions"] = options.experiment.executions;
      identity["device"] = session.device().description();
      if (const auto& standard = options.experiment.standard) {
        identity["standard"] = StandardIdentity(*standard);
      }
      report = WithJournal(identity, [&](replayer::bisect::Journal* journal,
                                         const replayer::bisect::BisectionOptions& bisection) {
        replayer::bisect::StepBisectionOptions in_time = options;
        in_time.bisection = bisection;
        return replayer::bisect::BisectStep(step, in_time, journal);
      });
      Emit(execution, step, report);
    });
    const int64_t plan_id = plan == nullptr ? 0 : plan->plan_id;
    KeepCauses(report, "captured", plan_id, !plant_.empty(), trace.results());
    std::string bad = chosen == nullptr ? "captured" : "captured, plan " + plan_.path;
    if (!standard_.bitwise()) bad += ", judged by " + standard_.text;
    Print(report, {good_, bad, std::string(replayer::bisect::ElementsName(what_))}, trace.reader());
    return report.ExitCode();
  }

  void Emit(replayer::Execution& execution, const replayer::script::MixedStep& step,
            const BisectionReport& report) {
    if (emit_.empty()) return;
    reproducers_.clear();
    for (const replayer::bisect::FoundCause& found : report.found) {
      replayer::reproducer::ReproducerOptions options;
      options.folder = emit_;
      if (report.found.size() > 1) {
        options.folder += "/" + std::to_string(reproducers_.size() + 1);
      }
      options.overwrite = overwrite_;
      options.device_lib = device_lib_;
      reproducers_.push_back(EmitCause(execution, step, found, options));
    }
  }

  // The command without its sides, of which a plan becomes the plan, and without a journal, which
  // is of one question alone.
  CommandLine WithoutSides() const {
    return given().With({{"good", false}, {"bad", false}, {"journal", false}, {"restart", false}});
  }

  // The step that is bisected, and the command that executes it once.
  replayer::bisect::StepBisectionOptions StepOptions(const storage::Reader& reader,
                                                     const replayer::script::MixedStep& step,
                                                     const std::string& plan_path) const {
    replayer::bisect::StepBisectionOptions options;
    options.bisection = options_;
    options.elements = what_;
    options.experiment.executions = executions_ == 0 ? 3 : executions_;
    options.experiment.standard = standard_.Load();
    replayer::script::MixedStepOptions& mixed = options.experiment.step;
    mixed.plan = step.plan();
    mixed.plan_updates = !no_updates_;
    mixed.disable_tasks = in_graph_;
    for (const std::string& fault : plant_)
      mixed.faults.push_back(replayer::script::ParseFault(fault));
    const auto& matches = step.step_class().matches;
    if (capture_step_ >= 0) mixed.capture_match = MatchOf(step, capture_step_);
    std::vector<size_t> run{1};
    if (matches.size() > 2) run.push_back(matches.size() - 1);
    if (!run_steps_.empty()) run.clear();
    for (const int64_t number : run_steps_) run.push_back(MatchOf(step, number));
    mixed.run_matches =
        replayer::script::RunsOfOrders(std::move(run), mixed.capture_match, orders_);
    std::string run_steps;
    for (const size_t match : mixed.run_matches) {
      run_steps += fmt::format("{}{}", run_steps.empty() ? "" : ",", StepNumber(step, match));
    }
    CommandLine line = WithoutSides().With(
        {{"capture-step", std::to_string(StepNumber(step, mixed.capture_match))},
         {"run-steps", run_steps},
         {"executions", std::to_string(options.experiment.executions)}});
    if (!plan_path.empty()) line = line.With("plan", plan_path);
    options.experiment.command = line.As("experiment").Printer();
    options.bisect_command = line.Printer();
    options.may_alter = PickedBy(reader, calls_);
    return options;
  }

  static size_t MatchOf(const replayer::script::MixedStep& step, int64_t number) {
    if (const std::optional<size_t> match = FindMatch(step, number)) return *match;
    throw Error(ErrorKind::kUsage,
                fmt::format("step {} is none of the bisected class, whose steps are {}.", number,
                            StepNumbers(step)));
  }

  void Print(const BisectionReport& report, const BisectSubject& subject,
             const storage::Reader& trace) const {
    Report output = BisectTables(report, subject, trace);
    if (!reproducers_.empty()) output.Add("reproducers", ReproducerTable(reproducers_));
    fmt::print("{}", output.ToText(format_));
  }

  int ByCheck(const storage::Reader& reader, const analyzer::plan::Plan* plan) {
    options_.trials.executions = std::max(1, executions_);
    const BisectionReport report =
        BisectByCheck(reader, plan,
                      {.command = check_,
                       .elements = what_,
                       .calls = calls_,
                       .time_limit = time_limit_,
                       .verbose = verbose_,
                       .part = part(),
                       .identity = Identity(reader, plan)},
                      std::bind_front(&BisectCommand::WithJournal, this));
    Print(report, {"the check", "the check", std::string(replayer::bisect::ElementsName(what_))},
          reader);
    return report.ExitCode();
  }

  BisectionReport WithJournal(const json& identity, const BisectBody& body) {
    std::unique_ptr<replayer::bisect::Journal> journal;
    if (!no_journal_) {
      const std::string subject = identity.dump();
      journal = std::make_unique<replayer::bisect::Journal>(
          journal_.empty() ? replayer::bisect::DefaultJournal(trace_, subject) : journal_, subject,
          restart_, trace_);
      if (!git_) SayJournal(*journal);
    }
    Progress progress("bisect");
    options_.only_judge = git_;
    options_.trials.progress = [&](int64_t made, int64_t expected) {
      progress.Update(made, expected);
    };
    if (budget_ > 0) {
      options_.trials.deadline = std::chrono::steady_clock::now() +
                                 std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                     std::chrono::duration<double>(budget_));
    }
    return body(journal.get(), options_);
  }

  static void SayJournal(const replayer::bisect::Journal& journal) {
    const std::string path = storage::ShellWord(journal.path());
    if (journal.found() == 0) {
      fmt::print(stderr, "acltape: the journal is {}.\n", path);
    } else {
      fmt::print(stderr,
                 "acltape: the journal {} goes on after {} experiment{} of an earlier run.\n", path,
                 journal.found(), journal.found() == 1 ? "" : "s");
    }
  }

  // Everything that the outcomes of the experiments depend on. A journal of another identity is not
  // continued.
  json Identity(const storage::Reader& reader, const analyzer::plan::Plan* plan) const {
    json identity{{"calls", reader.CallCount(false)},
                  {"command", reader.Meta("command")},
                  {"what", replayer::bisect::ElementsName(what_)},
                  {"altered", calls_}};
    if (plan != nullptr) {
      const std::string text = analyzer::plan::PlanText(*plan);
      identity["plan"] = storage::DigestOf(text.data(), text.size());
    }
    return identity;
  }

  std::string trace_;
  std::string check_;
  std::string against_;
  enum class Ranks : uint8_t { kOne, kAll } ranks_ = Ranks::kOne;
  PlanOption plan_;
  std::string good_ = "eager";
  std::string bad_;  // empty: captured, or of two sides eager
  SideOptions sides_;
  Elements what_ = Elements::kCalls;
  int64_t capture_step_ = -1;  // -1: the first
  std::vector<int64_t> run_steps_;
  bool no_updates_ = false;
  bool in_graph_ = false;
  StandardOption standard_;
  std::vector<std::string> plant_;
  std::string device_lib_;
  int executions_ = 0;  // 0: as the kind of experiment has it
  int orders_ = 1;      // orders of streams: launches that see all of them
  bool discard_ = false;
  std::string calls_;
  replayer::bisect::BisectionOptions options_;
  double budget_ = 0;
  double time_limit_ = 0;
  int64_t memory_ = replayer::Contents::kKeptBytes;
  std::string journal_;
  bool restart_ = false;
  bool no_journal_ = false;
  std::string emit_;
  bool overwrite_ = false;
  std::vector<replayer::reproducer::ReproducerResult> reproducers_;
  bool git_ = false;
  bool verbose_ = false;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeBisectCommand() { return std::make_unique<BisectCommand>(); }

}  // namespace acltape::cli
