#include "replayer/script/step_experiment.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "analyzer/metrics/metrics.h"
#include "replayer/script/round_outcome.h"
#include "replayer/script/step_coverage.h"
#include "replayer/script/step_digests.h"
#include "storage/payload.h"

namespace acltape::replayer::script {
namespace {

using nlohmann::json;

}  // namespace

StepExperiment::StepExperiment(const MixedStep& step, Options options,
                               std::shared_ptr<const Alterations> alterations)
    : step_(step),
      options_(std::move(options)),
      alterations_(alterations != nullptr ? std::move(alterations)
                                          : std::make_shared<const CapturedCalls>(step)),
      reference_(std::make_shared<Reference>()),
      judge_(std::make_shared<OutputJudge>(options_.standard)) {}

MixedStepOptions StepExperiment::OptionsFor(const ElementSet& altered) const {
  MixedStepOptions options = options_.step;
  alterations_->Apply(altered, options);
  options.run_matches.clear();
  for (int i = 0; i < options_.executions; ++i) {
    options.run_matches.insert(options.run_matches.end(), options_.step.run_matches.begin(),
                               options_.step.run_matches.end());
  }
  return options;
}

MixedStepOptions StepExperiment::EagerOptions() const {
  MixedStepOptions options = OptionsFor({});
  CapturedCalls(step_).Apply({}, options);
  return options;
}

analyzer::Coverage StepExperiment::Coverage() const {
  MixedStepOptions options = EagerOptions();
  options.run_matches = options_.step.run_matches;
  return CoverageOf(step_, options.executed, step_.Build(options));
}

std::string StepExperiment::Command(const ElementSet& altered) const {
  return options_.command.With(
      {{"disable-tasks", OptionsFor(altered).disable_tasks}, alterations_->Change(altered)});
}

std::unique_ptr<StepExperiment> StepExperiment::With(const Remedies& remedies) const {
  Options options = options_;
  options.step.remedies = remedies;
  auto other = std::make_unique<StepExperiment>(step_, std::move(options), alterations_);
  other->reference_ = reference_;
  other->judge_ = judge_;
  other->failure_ = failure_;
  return other;
}

void StepExperiment::Recall(const ElementSet& altered, const Outcome& outcome) {
  if (outcome.evidence.empty()) return;
  const json evidence = json::parse(outcome.evidence);
  if (altered.size() == size()) failure_ = evidence.value("code", 0);
  // A journal holds only digests. If values are needed, the reference is executed again.
  if (!altered.empty() || !reference_->empty() || !judge_->bitwise()) return;
  if (const auto found = evidence.find("reference"); found != evidence.end()) {
    *reference_ = found->get<Reference>();
  }
}

std::string& StepExperiment::ReferenceOf(int observation, int number) const {
  return DigestAt((*reference_)[static_cast<size_t>(observation) % reference_->size()], number);
}

JudgedRun StepExperiment::Run(const Script& script, const JudgedRun::Reference& reference) const {
  return JudgedRun(step_.session().device(), step_.session().program(), script, *judge_, reference);
}

JudgedRun StepExperiment::RunAgainstReference(const Script& script) const {
  if (reference_->empty()) return Run(script, nullptr);
  return Run(script, [this](int observation, int number) -> std::string& {
    return ReferenceOf(observation, number);
  });
}

void StepExperiment::EnsureReference() {
  if (!reference_->empty()) return;
  MixedStepOptions options = EagerOptions();
  options.run_matches = options_.step.run_matches;
  Reference reference(options.run_matches.size());
  Run(step_.Build(options), [&](int observation, int number) -> std::string& {
    return DigestAt(reference[static_cast<size_t>(observation)], number);
  });
  *reference_ = std::move(reference);
}

// Adds the reference to the outcome, for a process that continues from the journal. A journal has
// no room for values, so this is done only if bits are compared.
Outcome StepExperiment::WithReference(Outcome outcome) const {
  if (!judge_->bitwise()) return outcome;
  json evidence = outcome.evidence.empty() ? json::object() : json::parse(outcome.evidence);
  evidence["reference"] = *reference_;
  outcome.evidence = evidence.dump();
  return outcome;
}

bool StepExperiment::EagerVaries(const Outcome& outcome) {
  return !outcome.evidence.empty() && json::parse(outcome.evidence).value("eager_varies", false);
}

Outcome StepExperiment::Try(const ElementSet& altered) {
  if (altered.empty()) {
    // Make all executions of the eager step, to see if its results vary.
    if (!judge_->bitwise()) EnsureReference();
    const Script script = step_.Build(EagerOptions());
    const JudgedRun run = RunAgainstReference(script);
    if (reference_->empty()) {
      const size_t steps = options_.step.run_matches.size();
      for (size_t i = 0; i < steps; ++i) {
        reference_->push_back(MostFrequent(run.observed(), i, steps));
      }
    }
    Outcome outcome = Judge(script, run);
    if (outcome.verdict == Outcome::Verdict::kCannotJudge) return outcome;
    if (outcome.verdict != Outcome::Verdict::kGood) {
      json evidence = outcome.evidence.empty() ? json::object() : json::parse(outcome.evidence);
      evidence["eager_varies"] = true;
      outcome.evidence = evidence.dump();
    }
    if (outcome.verdict != Outcome::Verdict::kGood || alterations_->NothingIsEager()) {
      return WithReference(std::move(outcome));
    }
  }
  EnsureReference();
  const Script script = step_.Build(OptionsFor(altered));
  Outcome outcome;
  try {
    outcome = Judge(script, RunAgainstReference(script));
  } catch (const CallFailed& failure) {
    outcome = OutcomeOfFailure(altered, failure);
  }
  return altered.empty() ? WithReference(std::move(outcome)) : outcome;
}

// A failed call is a bad outcome only if the same failure occurs with everything altered, because
// leaving calls out may cause other failures. With nothing altered it is always bad.
Outcome StepExperiment::OutcomeOfFailure(const ElementSet& altered, const CallFailed& failure) {
  if (altered.size() == size()) failure_ = failure.code();
  Outcome outcome;
  outcome.executions = 1;
  outcome.evidence = json{{"error", failure.what()}, {"code", failure.code()}}.dump();
  if (!altered.empty() && failure_ != failure.code()) {
    outcome.verdict = Outcome::Verdict::kCannotJudge;
    return outcome;
  }
  outcome.verdict = Outcome::Verdict::kBad;
  outcome.bad_executions = 1;
  outcome.fingerprint = "code " + std::to_string(failure.code());
  return outcome;
}

std::vector<StepExperiment::FlakyCall> StepExperiment::FindFlakyCalls(int rounds) const {
  MixedStepOptions options = EagerOptions();
  options.watch = Watch::kEveryResult;
  options.run_matches.assign(static_cast<size_t>(rounds), options_.step.run_matches.front());
  const Script script = step_.Build(options);
  // With a standard, the first round is the reference for the others.
  Digests first;
  JudgedRun::Reference reference;
  if (!judge_->bitwise()) {
    reference = [&](int, int number) -> std::string& { return DigestAt(first, number); };
  }
  const JudgedRun run = Run(script, reference);
  const std::vector<Digests>& observed = run.observed();
  std::vector<FlakyCall> flaky;
  for (const UnsteadyOutput& found : FindUnsteadyOutputs(observed)) {
    const int64_t leaf = script.outputs[script.observations.front().first + found.output].leaf;
    if (flaky.empty() || flaky.back().leaf != leaf) flaky.push_back({leaf, 0, found.executions});
    flaky.back().different += found.different;
  }
  return flaky;
}

Outcome StepExperiment::Judge(const Script& script, const JudgedRun& run) const {
  if (script.outputs.empty()) return NothingCompared();
  const std::vector<Digests>& observed = run.observed();
  const size_t steps = reference_->size();
  std::vector<std::string> rounds;
  for (size_t first = 0; first + steps <= observed.size(); first += steps) {
    rounds.push_back(DigestOfSteps(observed, first, steps));
  }
  Outcome outcome = OutcomeOfRounds(DigestOfSteps(*reference_, 0, steps), rounds);
  if (run.first().observation >= 0) outcome.evidence = Evidence(script, run.first());
  return outcome;
}

std::string StepExperiment::Evidence(const Script& script, const JudgedRun::First& first) const {
  const Observation& observation = script.observations[first.observation];
  const ScriptOutput& output = script.outputs[first.output];
  const analyzer::Program& program = step_.session().program();
  const size_t steps = reference_->size();
  json evidence{{"call", output.call_id},
                {"op", program.leaves[output.leaf].Name()},
                {"output", output.write},
                {"step", observation.step},
                {"execution", static_cast<size_t>(first.observation) / steps + 1}};
  if (!judge_->bitwise()) {
    AddMetrics(first.difference.metrics, evidence);
    evidence["standard"] = judge_->standard()->given();
    evidence["reason"] = first.difference.reason;
    return evidence.dump();
  }
  // Only digests of the reference are kept. If the reference equals a recorded result, the trace
  // holds its values.
  const std::string& digest = ReferenceOf(first.observation, first.output - observation.first);
  const Bytes expected = step_.session().contents().GetPayload(digest);
  if (expected != nullptr && expected->size() == first.packed.size()) {
    const storage::DType dtype = output.layout.dtype;
    AddMetrics(analyzer::metrics::Measure(dtype, expected->data(), dtype, first.packed.data(),
                                          output.layout.ElementCount()),
               evidence);
  }
  return evidence.dump();
}

}  // namespace acltape::replayer::script
