#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "analyzer/plan/plan_file.h"
#include "analyzer/steps.h"
#include "cli/bisect_report.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/plan_option.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/selection.h"
#include "replayer/bisect/bisection.h"
#include "replayer/bisect/elements.h"
#include "replayer/bisect/process_experiment.h"
#include "storage/payload.h"

namespace acltape::cli {
namespace {

using nlohmann::json;
using replayer::BisectionReport;
using replayer::CallGroup;
using replayer::ElementSet;
using replayer::SearchMethod;

// A check may take minutes.
constexpr int64_t kRunsOfFlakyCheck = 10;

enum class What { kCalls, kRegions, kUpdates };
constexpr std::pair<What, const char*> kWhatNames[] = {
    {What::kCalls, "calls"}, {What::kRegions, "regions"}, {What::kUpdates, "updates"}};

std::string WhatName(What what) {
  for (const auto& [value, name] : kWhatNames) {
    if (value == what) return name;
  }
  return "";
}

// Milliseconds; a bare number is in seconds.
CLI::Option* AddTime(CLI::App& app, const std::string& flag, double& seconds,
                     const std::string& description) {
  return app.add_option(flag, seconds, description)
      ->transform(CLI::AsNumberWithUnit(
          std::map<std::string, double>{{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}},
          CLI::AsNumberWithUnit::CASE_SENSITIVE, "TIME"))
      ->option_text("TIME");
}

// The step whose calls are bisected, and which of them.
struct Subject {
  analyzer::StepTemplate step_class;
  ElementSet capturable;  // places in it
};

class BisectCommand final : public Command {
 public:
  std::string Name() const override { return "bisect"; }
  std::string Summary() const override {
    return "Find the calls whose captured execution gives other results, and the class of cause";
  }
  std::string Examples() const override {
    return "  acltape bisect t.db --check './try.sh {calls}'         any program, as git bisect "
           "run\n"
           "  acltape bisect t.db --check ./try.sh --what regions --budget 10m";
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    app.add_option("--check", check_,
                   "A command that executes the program with the calls in $ACLTAPE_CALLS (and in "
                   "the file {calls}) altered: exit code 0 good, 1 to 124 bad, 125 cannot judge, "
                   "126 on: give up");
    plan_.Declare(app);
    AddChoice(app, "--what", what_,
              {{"calls", What::kCalls}, {"regions", What::kRegions}, {"updates", What::kUpdates}},
              "What is altered one by one");
    app.add_option("--calls", calls_, "Alter only these; the same words as for other commands");
    AddChoice(app, "--method", options_.search.method,
              {{"prefixes", SearchMethod::kPrefixes}, {"ddmin", SearchMethod::kDeltaDebugging}},
              "Binary search, verified, or delta debugging from the start");
    app.add_option("--causes", options_.search.causes, "Independent causes to look for")
        ->check(AtLeast(1))
        ->capture_default_str();
    app.add_option("--executions", options_.trials.executions,
                   "Executions of an experiment, at least")
        ->check(AtLeast(1))
        ->capture_default_str();
    app.add_option("--error-bound", options_.trials.error_bound,
                   "Where results vary: how likely the search may take a set that differs for one "
                   "that does not")
        ->check(CLI::Range(1e-12, 0.5))
        ->capture_default_str();
    AddTime(app, "--budget", budget_, "Time after which the best answer so far is given");
    AddTime(app, "--time-limit", time_limit_, "Time of one check, which cannot be judged then");
    app.add_option("--journal", journal_,
                   "Where every experiment is written down, to go on from after an interruption "
                   "(default: TRACE.bisect.jsonl)");
    app.add_flag("--restart", restart_, "Empty the journal first");
    app.add_flag("--no-journal", no_journal_, "Write nothing down");
    app.add_flag("--git", git_,
                 "Only judge, with exit codes for `git bisect run`: 0 good, 1 bad, 125 cannot "
                 "judge, 128 wrong usage");
    app.add_flag("--verbose", verbose_, "Show what the check prints");
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (!git_) return Bisect();
    try {
      return Bisect();
    } catch (const Error& error) {
      fmt::print(stderr, "acltape: {}\n", error.what());
      return error.kind() == ErrorKind::kUsage ? 128 : 125;
    }
  }

 private:
  int Bisect() {
    if (check_.empty()) {
      throw Error(ErrorKind::kUsage, "bisect needs a --check command.");
    }
    const OpenedTrace trace(trace_, true);
    const auto plan = plan_.Read(trace.reader(), nullptr);
    return BisectByCheck(trace, plan == nullptr ? nullptr : &plan->plan);
  }

  int BisectByCheck(const OpenedTrace& trace, const analyzer::Plan* plan) {
    analyzer::Program program = analyzer::LoadProgram(trace.reader());
    analyzer::AssignSteps(program, nullptr);
    const Subject subject = SubjectOf(trace.reader(), program, plan);
    const std::vector<CallGroup> groups = GroupsOf(program, subject, plan);

    replayer::ProcessExperimentOptions process;
    process.command = check_;
    process.quiet = !verbose_;
    if (time_limit_ > 0) {
      process.time_limit = std::chrono::milliseconds(static_cast<int64_t>(time_limit_ * 1e3));
    }
    for (const CallGroup& group : groups) {
      process.descriptions.push_back(group.description);
      std::vector<int64_t>& calls = process.calls.emplace_back();
      for (const size_t member : group.members) {
        const int64_t leaf = subject.step_class.leaves[subject.capturable[member]];
        calls.push_back(program.leaves[leaf].call.call_id);
      }
    }
    replayer::ProcessExperiment experiment(std::move(process));
    options_.search.executions_of_flaky = kRunsOfFlakyCheck;
    json identity = Identity(trace.reader(), plan);
    identity["check"] = check_;
    const BisectionReport report = Search(experiment, identity);
    fmt::print("{}", BisectTables(report,
                                  {"check, nothing altered", "check, all altered", WhatName(what_)})
                         .ToText(format_));
    return report.ExitCode();
  }

  BisectionReport Search(replayer::Experiment& experiment, const json& identity) {
    std::unique_ptr<replayer::Journal> journal;
    if (!no_journal_) {
      journal = std::make_unique<replayer::Journal>(
          journal_.empty() ? trace_ + ".bisect.jsonl" : journal_, identity.dump(), restart_);
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
    return replayer::Bisect(experiment, options_, journal.get(), {});
  }

  // The class of the planned step, without a plan the largest; in a trace without steps all its
  // kernels.
  Subject SubjectOf(const storage::Reader& reader, const analyzer::Program& program,
                    const analyzer::Plan* plan) const {
    Subject subject;
    if (program.steps.empty()) {
      for (const analyzer::Leaf& leaf : program.leaves) {
        if (leaf.kind == analyzer::LeafKind::kKernel)
          subject.step_class.leaves.push_back(leaf.index);
      }
    } else {
      const analyzer::StepClasses classes =
          analyzer::ClassifySteps(program, analyzer::HostArguments::kVary);
      subject.step_class = classes.Largest();
      for (const analyzer::StepTemplate& candidate : classes.classes) {
        for (const analyzer::StepMatch& match : candidate.matches) {
          if (plan != nullptr && program.steps[match.step].step == plan->step) {
            subject.step_class = candidate;
          }
        }
      }
    }
    subject.capturable = replayer::CapturablePlaces(program, subject.step_class);
    KeepSelected(reader, program, subject);
    return subject;
  }

  void KeepSelected(const storage::Reader& reader, const analyzer::Program& program,
                    Subject& subject) const {
    if (calls_.empty()) return;
    std::unordered_set<int64_t> picked;
    for (const storage::Call& call : SelectLeaves(reader, Selection::Parse(calls_))) {
      picked.insert(call.call_id);
    }
    std::erase_if(subject.capturable, [&](size_t place) {
      return picked.count(program.leaves[subject.step_class.leaves[place]].call.call_id) == 0;
    });
    if (subject.capturable.empty()) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("--calls {} picks none of the calls that can be altered; those of the "
                      "bisected step are {} to {}.",
                      calls_, CallAt(program, subject, 0), CallAt(program, subject, SIZE_MAX)));
    }
  }

  static int64_t CallAt(const analyzer::Program& program, const Subject& subject, size_t place) {
    const std::vector<int64_t>& leaves = subject.step_class.leaves;
    return program.leaves[leaves[std::min(place, leaves.size() - 1)]].call.call_id;
  }

  std::vector<CallGroup> GroupsOf(const analyzer::Program& program, const Subject& subject,
                                  const analyzer::Plan* plan) const {
    switch (what_) {
      case What::kRegions:
        return replayer::GroupsOfRegions(program, subject.step_class, subject.capturable, plan);
      case What::kUpdates:
        return replayer::GroupsOfUpdates(program, subject.step_class, subject.capturable, plan);
      case What::kCalls:
        break;
    }
    return replayer::GroupsOfCalls(program, subject.step_class, subject.capturable);
  }

  // What the outcomes of the experiments depend on.
  json Identity(const storage::Reader& reader, const analyzer::Plan* plan) const {
    json identity{{"calls", reader.CallCount(false)},
                  {"command", reader.Meta("command")},
                  {"what", WhatName(what_)},
                  {"altered", calls_}};
    if (plan != nullptr) {
      const std::string text = analyzer::PlanText(*plan);
      identity["plan"] = storage::DigestOf(text.data(), text.size());
    }
    return identity;
  }

  std::string trace_;
  std::string check_;
  PlanOption plan_;
  What what_ = What::kCalls;
  std::string calls_;
  replayer::BisectionOptions options_;
  double budget_ = 0;
  double time_limit_ = 0;
  std::string journal_;
  bool restart_ = false;
  bool no_journal_ = false;
  bool git_ = false;
  bool verbose_ = false;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeBisectCommand() { return std::make_unique<BisectCommand>(); }

}  // namespace acltape::cli
