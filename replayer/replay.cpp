#include "replayer/replay.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "analyzer/program/missing_values.h"
#include "meaning/options.h"
#include "replayer/coverage.h"
#include "replayer/engine/eager.h"
#include "replayer/engine/held_results.h"
#include "replayer/engine/step_graph.h"
#include "replayer/session.h"
#include "replayer/values/noise_floor.h"
#include "storage/results.h"

namespace acltape::replayer {
namespace {

using analyzer::LeafKind;
using analyzer::StepMatch;
using analyzer::StepRange;

class Replayer {
 public:
  Replayer(const storage::Reader& trace, const ReplayOptions& options, storage::Results* results)
      : trace_(trace),
        options_(options),
        results_(results),
        session_(trace, options.data, options.device_lib, options.seed, results) {}

  ReplayReport Run() {
    std::optional<Note> refusal;
    if (options_.inputs == Inputs::kGolden) CheckRecordedResults();
    if (options_.plan == nullptr) {
      refusal = session_.CaptureRefusal();
      report_.capturable = !refusal.has_value();
      if (options_.mode != Mode::kCaptured) refusal.reset();
    }
    OpenRun();
    if (refusal) {
      report_.refusal = refusal->message;
      CountLeaves();
      report_.notes.push_back(*refusal);
    } else {
      session_.WithLowering([this](Execution& execution) { RunOnce(execution); });
    }
    CloseRun();
    return std::move(report_);
  }

 private:
  // Checks that the trace holds results, which golden inputs need, and counts those that it lacks.
  // Nobody could keep what a graph computes on its way; such results stay as they are computed.
  void CheckRecordedResults() {
    const analyzer::Program& program = session_.program();
    if (options_.data == Data::kSynthesised) {
      throw Error(
          ErrorKind::kUsage,
          "@inputs golden takes recorded results for inputs; leave out @data synthesised"_cli);
    }
    int64_t held = 0;
    int64_t first_lacking = -1;
    for (const analyzer::Leaf& leaf : program.leaves) {
      if (leaf.kind != LeafKind::kKernel) continue;
      const std::vector<analyzer::TensorUse>& writes = program.uses[leaf.index].writes;
      for (size_t write = 0; write < writes.size(); ++write) {
        if (writes[write].layout->ElementCount() == 0) continue;
        if (HoldsResult(program, leaf.index, write)) {
          ++held;
          continue;
        }
        ++lacking_;
        if (first_lacking < 0) first_lacking = leaf.index;
      }
    }
    if (held > 0 || lacking_ == 0) return;
    throw Error(ErrorKind::kTrace,
                program.Describe(first_lacking) + " has no recorded result in " + trace_.path() +
                    ", nor has any other call, and @inputs golden takes them for inputs; "_cli +
                    analyzer::HowToHaveResults(program));
  }

  void NoteLackingResults() {
    if (lacking_ == 0) return;
    Note note;
    note.rule = "REPLAY-GOLDEN";
    note.severity = "info";
    note.count = lacking_;
    note.message = "the trace holds no bytes of " + std::to_string(lacking_) +
                   (lacking_ == 1 ? " result" : " results") +
                   ", such as those inside graphs of the program; their readers got what this "
                   "replay computed";
    report_.notes.push_back(std::move(note));
  }

  // Makes one complete replay. It is called again from the start if the device refuses an operator.
  void RunOnce(Execution& execution) {
    const int64_t run_id = report_.run_id;
    const bool capturable = report_.capturable;
    report_ = ReplayReport();
    report_.capturable = capturable;
    runs_before_ = 0;
    report_.run_id = run_id;
    CountLeaves();
    const bool captured = options_.mode == Mode::kCaptured;
    report_.has_reference = captured || options_.data == Data::kRecorded;
    std::optional<NoiseFloor> noise;
    if (options_.noise_runs > 0) LearnNoise(execution, noise.emplace(MakeNoiseFloor()));
    // Without recorded results a captured replay is compared with an eager one.
    Verifier::Digests reference;
    if (captured && LacksResults()) {
      ReplayReport ignored;
      Verifier collector(session_.device(), session_.program(), session_.contents(), options_,
                         ignored);
      collector.UseDigests(&reference, nullptr);
      RunEager(execution, collector, 1);
    }
    Verifier verifier(session_.device(), session_.program(), session_.contents(), options_,
                      report_);
    verifier.WriteTo(results_, report_.run_id);
    verifier.UseDigests(nullptr, &reference);
    if (noise) {
      // Inside a graph, calls read the results of other calls of the graph, whatever the inputs
      // option says.
      noise->BeginJudged(captured || options_.inputs == Inputs::kCarried);
      verifier.UseNoise(nullptr, &*noise);
    }
    if (captured) {
      RunCaptured(execution, verifier);
    } else {
      RunEager(execution, verifier, options_.repetitions);
    }
    if (noise) NoteFlaky(noise->flaky());
    NoteLackingResults();
  }

  // True if some results have no recorded reference. Some device work of an ACL program, such as a
  // copy, is always recorded without its result.
  bool LacksResults() {
    const analyzer::Program& program = session_.program();
    if (!session_.contents().has_recorded_results()) return true;
    if (program.level == analyzer::Level::kAten) return false;
    for (const analyzer::Leaf& leaf : program.leaves) {
      if (leaf.kind != LeafKind::kKernel) continue;
      for (const analyzer::TensorUse& use : program.uses[leaf.index].writes) {
        if (analyzer::RecordedResult(leaf, use) == nullptr) return true;
      }
    }
    return false;
  }

  NoiseFloor MakeNoiseFloor() {
    return NoiseFloor(
        session_.program(), options_.inputs == Inputs::kCarried,
        [this](const std::string& digest) { return session_.contents().GetPayload(digest); });
  }

  // Runs the reference eagerly to learn the noise.
  void LearnNoise(Execution& execution, NoiseFloor& noise) {
    ReplayReport ignored;
    Verifier observer(session_.device(), session_.program(), session_.contents(), options_,
                      ignored);
    observer.UseNoise(&noise, nullptr);
    for (int run = 0; run < options_.noise_runs; ++run) {
      noise.BeginReference();
      RunEager(execution, observer, 1);
      runs_before_ = run + 1;
    }
    noise.EndReferences();
  }

  void NoteFlaky(const std::vector<FlakyOperator>& flaky_operators) {
    report_.flaky = flaky_operators;
    for (const FlakyOperator& flaky : flaky_operators) {
      Note note;
      note.rule = "REPLAY-FLAKY";
      note.severity = "notice";
      note.call_id = flaky.call_id;
      note.count = flaky.calls;
      note.verdict = "reproduced";
      note.message = flaky.op + " gives different results for the same inputs: " +
                     std::to_string(flaky.deviating) + " of " + std::to_string(flaky.executions) +
                     " executions in " + std::to_string(options_.noise_runs) +
                     " eager runs deviate from the usual result";
      note.evidence = nlohmann::json::array({{{"runs", options_.noise_runs},
                                              {"executions", flaky.executions},
                                              {"deviating", flaky.deviating},
                                              {"rate", flaky.rate()},
                                              {"max_ulp", flaky.max_ulp}}})
                          .dump();
      report_.notes.push_back(std::move(note));
    }
  }

  void RunEager(Execution& execution, Verifier& verifier, int repetitions) {
    const HomeMemory homes(session_.device(), session_.program(), EagerNeeds(session_.program()));
    report_.device_bytes = homes.bytes();
    EagerExecution eager(execution, homes);
    if (options_.inputs == Inputs::kGolden) eager.IsolateLeaves();
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      RunEagerLeaves(eager, 0, LeafCount(), verifier, repetition, repetition + 1 == repetitions);
      verifier.Flush();
    }
  }

  // If `forget` is true, the leaves do not run again.
  void RunEagerLeaves(EagerExecution& eager, int64_t first, int64_t end, Verifier& verifier,
                      int repetition, bool forget) {
    constexpr int64_t kPiece = 256;  // leaves between two reports of progress
    for (int64_t leaf = first; leaf < end; leaf += kPiece) {
      const int64_t piece_end = std::min(end, leaf + kPiece);
      eager.Bind(leaf, piece_end);
      eager.Run(leaf, piece_end, &verifier, nullptr);
      if (forget) eager.Forget();
      Progress(piece_end, repetition);
    }
  }

  void RunCaptured(Execution& execution, Verifier& verifier) {
    const analyzer::Program& program = session_.program();
    const analyzer::plan::Plan* plan = options_.plan ? &options_.plan->plan : nullptr;
    const analyzer::StepTemplate& step_class = session_.ClassFor(plan);
    const HomeMemory homes(session_.device(), program,
                           CapturedNeeds(program, step_class, session_.contents()));
    EagerExecution eager(execution, homes);
    StepGraphOptions graph_options;
    if (options_.inputs == Inputs::kGolden) {
      eager.IsolateLeaves();
      graph_options.isolate_regions = true;
    }
    graph_options.keep =
        options_.outputs == Outputs::kStep ? Keep::kStepOutputs : Keep::kEverything;
    graph_options.plan = plan;
    graph_options.updates = options_.updates == Updates::kTasks;
    StepGraph graph(execution, homes, step_class, graph_options);
    report_.device_bytes = homes.bytes() + graph.device_bytes();
    for (int repetition = 0; repetition < options_.repetitions; ++repetition) {
      const bool last = repetition + 1 == options_.repetitions;
      int64_t next_leaf = 0;
      for (size_t m = 0; m < step_class.matches.size(); ++m) {
        const StepRange& range = program.work.steps[step_class.matches[m].step_index];
        RunEagerLeaves(eager, next_leaf, range.first, verifier, repetition, last);
        if (m == 0 && repetition == 0) {
          verifier.Flush();
          graph.WarmUpAndCapture(m);
        }
        graph.Execute(m, &verifier, nullptr);
        verifier.Flush();
        next_leaf = range.end;
        Progress(next_leaf, repetition);
      }
      RunEagerLeaves(eager, next_leaf, LeafCount(), verifier, repetition, last);
      verifier.Flush();
    }
    graph.Describe(report_.capture);
    DescribeSteps(step_class);
    NoteBakedArguments(graph.plan());
    if (plan != nullptr) NotePlan();
  }

  // Adds a note for each value that varies but is kept by the graph. The note claims that later
  // steps are wrong; the replay has tested it.
  void NoteBakedArguments(const StepGraphPlan& plan) {
    for (const VaryingLeaf& leaf : plan.varying) {
      if (leaf.treatment != VaryingLeaf::Treatment::kBake) continue;
      const std::vector<StepMatch>& matches = plan.step_class->matches;
      const auto call_of = [&](size_t match) {
        return session_.program().leaves[matches[match].leaves[leaf.place]].call.call_id;
      };
      size_t shown = leaf.match_of[1];  // a step with another value than that of the graph
      bool differs = false;
      for (size_t m = 0; m < matches.size() && !differs; ++m) {
        differs = leaf.value_of[m] != 0 && report_.differing_calls.count(call_of(m)) != 0;
        if (differs) shown = m;
      }
      Note note;
      note.rule = "CAPTURE-BAKED";
      note.severity = "error";
      note.call_id = call_of(shown);
      note.message = "the graph keeps a host argument that varies: " +
                     DescribeVariation(session_.program(), *plan.step_class, leaf, 0, shown);
      note.verdict = differs ? "reproduced" : "refuted";
      report_.notes.push_back(note);
    }
  }

  // Adds a note that claims that the plan gives the results of the program, and a note for each of
  // its races.
  void NotePlan() {
    const bool equal = report_.differing == 0;
    nlohmann::json evidence{{"run_id", report_.run_id},
                            {"outputs", report_.compared},
                            {"different", report_.differing}};
    if (!equal) evidence["first_call"] = *report_.differing_calls.begin();
    Note note;
    note.rule = "PLAN";
    note.severity = equal ? "info" : "error";
    note.count = report_.compared;
    note.message = "the plan " + options_.plan->path + " gives the bits of the reference";
    note.verdict = report_.compared == 0 ? "predicted" : equal ? "reproduced" : "refuted";
    note.evidence = nlohmann::json::array({evidence}).dump();
    report_.notes.push_back(note);
    for (const std::string& race : options_.plan->races) {
      note.rule = "PLAN-RACE";
      note.severity = "error";
      note.message = race;
      note.verdict = equal ? "predicted" : "reproduced";
      report_.notes.push_back(note);
    }
  }

  void DescribeSteps(const analyzer::StepTemplate& step_class) {
    const analyzer::Program& program = session_.program();
    std::set<int64_t> captured;
    for (const StepMatch& match : step_class.matches) captured.insert(match.step_index);
    report_.capture.captured_steps = static_cast<int64_t>(captured.size());
    for (size_t s = 0; s < program.work.steps.size(); ++s) {
      const auto step = static_cast<int64_t>(s);
      if (captured.count(step) != 0) continue;
      ++report_.capture.eager_steps;
      std::string reason = "step " + std::to_string(program.work.steps[s].step) + " ran eagerly";
      // The first step has no step before it, so the difference to the step after it is shown.
      auto difference = session_.classes().differences.find(step);
      if (difference == session_.classes().differences.end()) {
        difference = session_.classes().differences.find(step + 1);
      }
      if (difference != session_.classes().differences.end()) {
        reason += ": " + analyzer::DescribeDifference(program, difference->second);
      }
      report_.capture.eager_reasons.push_back(reason);
    }
  }

  void CountLeaves() {
    const analyzer::Program& program = session_.program();
    report_.device = session_.device().description();
    report_.leaves = LeafCount();
    report_.steps = static_cast<int64_t>(program.work.steps.size());
    report_.device_calls = session_.lowered().device_calls;
    report_.substituted = static_cast<int64_t>(session_.lowered().substituted.size());
    for (const analyzer::Leaf& leaf : program.leaves) {
      report_.views += leaf.kind == LeafKind::kView ? 1 : 0;
      report_.allocations += leaf.kind == LeafKind::kAllocation ? 1 : 0;
      report_.sources += leaf.kind == LeafKind::kSource ? 1 : 0;
      report_.host_reads += leaf.kind == LeafKind::kHostRead ? 1 : 0;
      report_.kernels += leaf.kind == LeafKind::kKernel ? 1 : 0;
    }
    report_.kernels -= report_.substituted;
    report_.notes = session_.lowered().notes;
  }

  void OpenRun() {
    if (results_ == nullptr) return;
    storage::Run run;
    run.mode = options_.mode == Mode::kEager ? "eager" : "captured";
    run.device = session_.device().description();
    nlohmann::json options{{"outputs", options_.outputs == Outputs::kLeaf ? "leaf" : "step"},
                           {"data", options_.data == Data::kRecorded ? "recorded" : "synthesised"},
                           {"inputs", options_.inputs == Inputs::kGolden ? "golden" : "carried"},
                           {"standard", options_.standard ? options_.standard->given() : "bitwise"},
                           {"repetitions", options_.repetitions}};
    if (options_.noise_runs > 0) options["noise_runs"] = options_.noise_runs;
    if (options_.mode == Mode::kCaptured) {
      options["updates"] = options_.updates == Updates::kTasks ? "tasks" : "none";
    }
    if (options_.plan) options["plan"] = options_.plan->path;
    run.options = options.dump();
    if (options_.plan && options_.plan->plan_id != 0) run.plan_id = options_.plan->plan_id;
    report_.run_id = results_->AddRun(run);
  }

  void CloseRun() {
    if (report_.refusal.empty()) {
      MeasureCoverage(
          session_.program(),
          [this](int64_t leaf) { return !session_.lowered().IsSubstituted(leaf); }, report_);
    }
    WriteNotes(report_.notes, results_);
    if (results_ == nullptr) return;
    results_->FinishRun(report_.run_id, report_.ExitCode());
    results_->Commit();
  }

  int64_t LeafCount() const { return static_cast<int64_t>(session_.program().leaves.size()); }

  void Progress(int64_t done, int repetition) const {
    if (!options_.progress) return;
    options_.progress((runs_before_ + repetition) * LeafCount() + done,
                      (options_.noise_runs + options_.repetitions) * LeafCount());
  }

  const storage::Reader& trace_;
  const ReplayOptions& options_;
  storage::Results* results_;
  Session session_;
  ReplayReport report_;
  // Reference runs that are done, for progress.
  int runs_before_ = 0;
  int64_t lacking_ = 0;  // results that golden inputs do without
};

}  // namespace

ReplayReport ReplayLeaves(const storage::Reader& trace, const ReplayOptions& options,
                          storage::Results* results) {
  return Replayer(trace, options, results).Run();
}

}  // namespace acltape::replayer
