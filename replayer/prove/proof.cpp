#include "replayer/prove/proof.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "analyzer/acl/acl_program.h"
#include "replayer/prove/witness.h"
#include "replayer/script/stream_orders.h"
#include "replayer/session.h"

namespace acltape::replayer::prove {
namespace {

// Returns the calls of each graph of the plan. Without a plan, a graph is a run of calls that can
// be captured.
std::vector<std::vector<size_t>> GraphsOf(const script::MixedStep& mixed,
                                          const analyzer::plan::Plan* plan) {
  std::vector<std::vector<size_t>> graphs;
  const std::vector<size_t>& capturable = mixed.capturable();
  if (plan == nullptr) {
    for (const size_t place : capturable) {
      if (graphs.empty() || graphs.back().back() + 1 != place) graphs.emplace_back();
      graphs.back().push_back(place);
    }
    return graphs;
  }
  for (const analyzer::plan::PlanRegion& region : plan->regions) {
    std::vector<size_t> graph;
    for (const analyzer::plan::PlanPlacement& placement : region.placements) {
      const size_t place = mixed.PlaceOf(placement.call_id);
      if (std::find(capturable.begin(), capturable.end(), place) != capturable.end()) {
        graph.push_back(place);
      }
    }
    if (!graph.empty()) graphs.push_back(std::move(graph));
  }
  return graphs;
}

uint64_t JitterOfThisProcess() {
  const char* seed = std::getenv("ACLTAPE_SOFT_JITTER");
  return seed == nullptr ? 0 : std::strtoull(seed, nullptr, 10);
}

class Prover {
 public:
  Prover(const storage::Reader& trace, const ProofOptions& options, storage::Results* results)
      : options_(options),
        results_(results),
        standard_(analyzer::metrics::Standard::Load(options.standard)),
        session_(trace, Data::kRecorded, options.device_lib, options.seed, results) {
    session_.contents().KeepAtMost(options.kept_bytes);
    kinds_ = options.kinds;
    for (const TrialKindRow& row : TrialKinds()) {
      if (options.kinds.empty()) kinds_.push_back(row.kind);
    }
  }

  ProofReport Run() {
    session_.WithLowering([this](Execution& execution) { MakeAll(execution); });
    Keep();
    return std::move(report_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Makes all trials. It is called again from the start if the device refuses an operator.
  void MakeAll(Execution& execution) {
    report_ = ProofReport();
    report_.device = session_.device().description();
    const analyzer::plan::Plan* plan = options_.plan ? &options_.plan->plan : nullptr;
    const script::MixedStep mixed(session_, execution, plan);
    const analyzer::StepTemplate& step_class = mixed.step_class();
    TrialGround ground;
    ground.matches = step_class.matches.size();
    ground.places = mixed.places();
    ground.streams = script::StreamsOf(plan, options_.faults);
    ground.graphs = GraphsOf(mixed, plan);
    if (ground.graphs.empty()) {
      throw Error(ErrorKind::kUsage,
                  "no call of the step is captured, so that there is nothing to "
                  "prove");
    }
    report_.step = session_.program().work.steps[step_class.step_index].step;
    report_.steps = static_cast<int64_t>(ground.matches);
    report_.graphs = static_cast<int64_t>(ground.graphs.size());
    for (const TrialKind kind : kinds_) {
      report_.kinds.push_back({});
      report_.kinds.back().kind = kind;
      report_.kinds.back().note = WhyNone(kind, ground);
    }
    std::vector<Trial> trials = MakeTrials(ground, kinds_, options_.trials, options_.seed);
    TrialRunner runner(session_, mixed, standard_, options_.reference_runs);
    const Clock::time_point begin = Clock::now();
    int64_t done = 0;
    for (Trial& trial : trials) {
      trial.step.plan = plan;
      trial.step.faults = options_.faults;
      const std::chrono::duration<double> passed = Clock::now() - begin;
      if (options_.budget_s > 0 && passed.count() > options_.budget_s) {
        report_.out_of_time = true;
        LeaveOut(trial, "out of time");
        continue;
      }
      if (trial.jitter != 0 && !options_.elsewhere) trial.jitter = JitterOfThisProcess();
      Make(runner, trial);
      if (options_.progress) options_.progress(++done, static_cast<int64_t>(trials.size()));
    }
    report_.flaky = runner.Flaky();
    report_.coverage = runner.Coverage();
  }

  void Make(TrialRunner& runner, const Trial& trial) {
    KindTally& tally = TallyOf(trial.kind);
    TrialOutcome outcome;
    if (trial.NeedsProcess() && options_.elsewhere) {
      RemoteTrial remote = options_.elsewhere(trial);
      outcome.compared = remote.compared;
      outcome.failure = std::move(remote.failure);
    } else {
      try {
        outcome = runner.Run(trial, options_.repetitions);
      } catch (const Error& error) {
        // Not every trial has a place for a planted fault.
        if (options_.faults.empty() || error.kind() != ErrorKind::kUsage) throw;
        LeaveOut(trial, error.what());
        return;
      }
    }
    ++tally.trials;
    tally.compared += outcome.compared;
    if (!outcome.failure) return;
    ++tally.failures;
    report_.failures.push_back({std::move(*outcome.failure), 0, ""});
  }

  void LeaveOut(const Trial& trial, const std::string& why) {
    KindTally& tally = TallyOf(trial.kind);
    ++tally.left_out;
    tally.note = why;
  }

  KindTally& TallyOf(TrialKind kind) {
    return *std::find_if(report_.kinds.begin(), report_.kinds.end(),
                         [&](const KindTally& tally) { return tally.kind == kind; });
  }

  std::string PlanText() const {
    return options_.plan ? "the plan " + options_.plan->path : "the capture of the longest regions";
  }

  // Returns the options that repeat the trials of this kind up to this one.
  meaning::OptionChanges SameTrial(const Trial& trial) const {
    return {{"only", std::string(RowOf(trial.kind).name)},
            {"trials", std::to_string(trial.number + 1)},
            {"seed", std::to_string(options_.seed)}};
  }

  // Returns the options that make the trial of a witness again. The witness holds the other options
  // of the trial, and the trace holds its plan.
  static meaning::OptionChanges SameWitness(int64_t witness_id) {
    return {{"witness", std::to_string(witness_id)},
            {"plan", false},
            {"allow-races", false},
            {"only", false},
            {"trials", false},
            {"seed", false},
            {"standard", false},
            {"plant", false},
            {"budget", false},
            {"reference-runs", false}};
  }

  // An experiment with a fault says nothing of the trace: it leaves witnesses and no findings.
  bool planted() const { return !options_.faults.empty(); }

  void Keep() {
    for (ProofFailure& failure : report_.failures) {
      const TrialFailure& found = failure.failure;
      if (results_ != nullptr) {
        storage::Witness witness;
        witness.kind = RowOf(found.trial.kind).name;
        witness.options = WitnessText({found.trial, options_.standard});
        witness.plan_id = options_.plan ? options_.plan->plan_id : 0;
        witness.call_id = found.first.call_id;
        witness.position = found.first.position;
        witness.message = (planted() ? "with a planted fault: " : "") + found.message;
        witness.verdict = found.Verdict();
        failure.witness_id = results_->AddWitness(witness);
        failure.command = options_.command.With(SameWitness(failure.witness_id));
        witness.command = failure.command;
        results_->AddWitness(witness);
        if (!planted()) AddFinding(failure);
      } else {
        failure.command = options_.command.With(SameTrial(found.trial));
      }
    }
    if (results_ == nullptr) return;
    for (const KindTally& tally : report_.kinds) {
      if (!planted()) AddTally(tally);
    }
    results_->Commit();
  }

  void AddFinding(const ProofFailure& failure) {
    const TrialFailure& found = failure.failure;
    const TrialKindRow& kind = RowOf(found.trial.kind);
    storage::Finding finding;
    finding.rule = kind.rule;
    finding.severity = storage::Severity::kError;
    finding.call_id = found.first.call_id;
    finding.code = found.code;
    finding.message =
        PlanText() + " gives other results when " + std::string(kind.when) + ": " + found.message;
    finding.evidence = nlohmann::json::array({{{"witness_id", failure.witness_id},
                                               {"runs", found.runs},
                                               {"failed_runs", found.failed_runs},
                                               {"outputs", found.differing},
                                               {"command", failure.command}}})
                           .dump();
    finding.verdict = "reproduced";
    results_->AddFinding(finding);
  }

  // Adds a finding with the claim that trials of this kind fail, and the trials that tested the
  // claim.
  void AddTally(const KindTally& tally) {
    if (tally.trials == 0) return;
    const TrialKindRow& kind = RowOf(tally.kind);
    storage::Finding finding;
    finding.rule = kind.rule;
    finding.severity = tally.failures == 0 ? storage::Severity::kInfo : storage::Severity::kError;
    finding.message = PlanText() + " gives other results when " + std::string(kind.when);
    finding.evidence = nlohmann::json::array({{{"trials", tally.trials},
                                               {"outputs", tally.compared},
                                               {"failures", tally.failures},
                                               {"seed", options_.seed}}})
                           .dump();
    finding.verdict = tally.failures > 0    ? "reproduced"
                      : tally.compared == 0 ? "predicted"
                                            : "refuted";
    results_->AddFinding(finding);
  }

  const ProofOptions& options_;
  storage::Results* results_;
  const analyzer::metrics::Standard standard_;
  Session session_;
  std::vector<TrialKind> kinds_;
  ProofReport report_;
};

}  // namespace

int64_t ProofReport::trials() const {
  int64_t sum = 0;
  for (const KindTally& tally : kinds) sum += tally.trials;
  return sum;
}

ProofReport ProvePlan(const storage::Reader& trace, const ProofOptions& options,
                      storage::Results* results) {
  return Prover(trace, options, results).Run();
}

}  // namespace acltape::replayer::prove
