#include "replayer/script/step_experiment.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "analyzer/metrics/metrics.h"
#include "replayer/script/run_script.h"
#include "replayer/script/step_digests.h"
#include "storage/payload.h"

namespace acltape::replayer {
namespace {

using nlohmann::json;

}  // namespace

StepExperiment::StepExperiment(const MixedStep& step, Options options,
                               std::shared_ptr<const Alterations> alterations)
    : step_(step),
      options_(std::move(options)),
      alterations_(alterations != nullptr ? std::move(alterations)
                                          : std::make_shared<const CapturedCalls>(step)),
      reference_(std::make_shared<Reference>()) {}

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

std::string StepExperiment::Command(const ElementSet& altered) const {
  const bool disable = OptionsFor(altered).disable_tasks;
  return options_.command + (disable ? " --disable-tasks " : " ") +
         alterations_->Arguments(altered);
}

std::unique_ptr<StepExperiment> StepExperiment::With(const Remedies& remedies) const {
  Options options = options_;
  options.step.remedies = remedies;
  auto other = std::make_unique<StepExperiment>(step_, std::move(options), alterations_);
  other->reference_ = reference_;
  other->failure_ = failure_;
  return other;
}

void StepExperiment::Recall(const ElementSet& altered, const Outcome& outcome) {
  if (outcome.evidence.empty()) return;
  const json evidence = json::parse(outcome.evidence);
  if (altered.size() == size()) failure_ = evidence.value("code", 0);
  if (!altered.empty() || !reference_->empty()) return;
  if (const auto found = evidence.find("reference"); found != evidence.end()) {
    *reference_ = found->get<Reference>();
  }
}

const std::string& StepExperiment::ReferenceOf(const Script& script, int observation,
                                               int output) const {
  return reference_->at(static_cast<size_t>(observation) % reference_->size())
      .at(static_cast<size_t>(output - script.observations[observation].first));
}

// Keeps the bytes of the first output that differs from the reference.
std::vector<StepExperiment::Digests> StepExperiment::Run(const Script& script,
                                                         Difference* difference) const {
  const OutputSink sink = [&](int observation, int output, const std::vector<uint8_t>& packed) {
    if (difference == nullptr || difference->observation >= 0) return;
    if (ReferenceOf(script, observation, output) ==
        storage::DigestOf(packed.data(), packed.size())) {
      return;
    }
    *difference = {observation, output, packed};
  };
  std::vector<Digests> observed;
  for (Observed& one : RunScript(step_.session().device(), script, sink)) {
    observed.push_back(std::move(one.digests));
  }
  return observed;
}

void StepExperiment::TakeReference(const std::vector<Digests>& observed) {
  const size_t steps = options_.step.run_matches.size();
  for (size_t i = 0; i < steps; ++i) reference_->push_back(MostFrequent(observed, i, steps));
}

void StepExperiment::EnsureReference() {
  if (!reference_->empty()) return;
  MixedStepOptions options = EagerOptions();
  options.run_matches = options_.step.run_matches;
  TakeReference(Run(step_.Build(options), nullptr));
}

// For a process that goes on from the journal.
Outcome StepExperiment::WithReference(Outcome outcome) const {
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
    // All executions of the eager step, to see whether it differs from itself.
    const Script script = step_.Build(EagerOptions());
    Difference difference;
    const std::vector<Digests> observed = Run(script, reference_->empty() ? nullptr : &difference);
    if (reference_->empty()) TakeReference(observed);
    Outcome outcome = Judge(script, observed, difference);
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
  Difference difference;
  Outcome outcome;
  try {
    const std::vector<Digests> observed = Run(script, &difference);
    outcome = Judge(script, observed, difference);
  } catch (const CallFailed& failure) {
    outcome = OutcomeOfFailure(altered, failure);
  }
  return altered.empty() ? WithReference(std::move(outcome)) : outcome;
}

// A failure is the difference that is looked for only when it comes with everything altered, too;
// another one may come from leaving calls out. With nothing altered it is one in any case.
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
  const std::vector<Digests> observed = Run(script, nullptr);
  std::vector<FlakyCall> flaky;
  for (const FlakyOutput& found : FindFlakyOutputs(observed)) {
    const int64_t leaf = script.outputs[script.observations.front().first + found.output].leaf;
    if (flaky.empty() || flaky.back().leaf != leaf) flaky.push_back({leaf, 0, found.executions});
    flaky.back().different += found.different;
  }
  return flaky;
}

Outcome StepExperiment::Judge(const Script& script, const std::vector<Digests>& observed,
                              const Difference& difference) const {
  Outcome outcome;
  const size_t steps = reference_->size();
  const std::string expected = DigestOfSteps(*reference_, 0, steps);
  std::set<std::string> seen;
  for (size_t first = 0; first + steps <= observed.size(); first += steps) {
    const std::string digest = DigestOfSteps(observed, first, steps);
    ++outcome.executions;
    if (digest != expected) {
      ++outcome.bad_executions;
      if (outcome.fingerprint.empty()) outcome.fingerprint = digest;
    }
    seen.insert(digest);
  }
  outcome.verdict = outcome.bad_executions == 0 ? Outcome::Verdict::kGood
                    : seen.size() > 1           ? Outcome::Verdict::kUnstable
                                                : Outcome::Verdict::kBad;
  if (difference.observation >= 0) outcome.evidence = Evidence(script, difference);
  return outcome;
}

std::string StepExperiment::Evidence(const Script& script, const Difference& difference) const {
  const Observation& observation = script.observations[difference.observation];
  const ScriptOutput& output = script.outputs[difference.output];
  const analyzer::Program& program = step_.session().program();
  const size_t steps = reference_->size();
  json evidence{{"call", output.call_id},
                {"op", program.leaves[output.leaf].Name()},
                {"output", output.write},
                {"step", observation.step},
                {"execution", static_cast<size_t>(difference.observation) / steps + 1}};
  // The reference is kept as digests; where it gave what was recorded, the trace has the values.
  const std::string& digest = ReferenceOf(script, difference.observation, difference.output);
  const Bytes expected = step_.session().contents().GetPayload(digest);
  if (expected != nullptr && expected->size() == difference.packed.size()) {
    const storage::DType dtype = output.layout.dtype;
    const analyzer::TensorMetrics compared = analyzer::Measure(
        dtype, expected->data(), dtype, difference.packed.data(), output.layout.ElementCount());
    evidence.update({{"elements", compared.elements},
                     {"differing", compared.differing},
                     {"first_index", compared.first_index},
                     {"expected", compared.first_a},
                     {"actual", compared.first_b},
                     {"max_abs", compared.max_abs},
                     {"max_ulp", compared.max_ulp}});
  }
  return evidence.dump();
}

}  // namespace acltape::replayer
