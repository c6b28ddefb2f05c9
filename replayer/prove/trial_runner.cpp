#include "replayer/prove/trial_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "replayer/script/step_coverage.h"
#include "storage/payload.h"

namespace acltape::replayer::prove {
namespace {

// Number of contents that a run keeps, to describe how they differ. With a standard other than
// bitwise all contents are kept, because each must be judged.
constexpr size_t kFewContents = 8;
// A trial whose runs disagree with each other is believed only after this many runs of the
// reference.
constexpr int kDoubtfulReferenceRuns = 20;

}  // namespace

std::string TrialFailure::Verdict() const {
  if (!error.empty()) return "error";
  return failed_runs < runs ? "unstable" : "different";
}

TrialRunner::TrialRunner(Session& session, const script::MixedStep& mixed,
                         const analyzer::metrics::Standard& standard, int reference_runs)
    : session_(session), mixed_(mixed), standard_(standard), reference_runs_(reference_runs) {}

TrialOutcome TrialRunner::Run(const Trial& trial, int repetitions) {
  for (const size_t match : trial.step.run_matches) ReferenceOf(match, reference_runs_);
  OneRun first = RunOnce(trial);
  TrialOutcome outcome;
  outcome.compared = first.compared;
  if (!first.failed()) return outcome;

  TrialFailure failure;
  failure.trial = trial;
  failure.runs = 1;
  failure.failed_runs = 1;
  bool alike = true;  // in all runs
  for (; failure.runs <= repetitions; ++failure.runs) {
    const OneRun again = RunOnce(trial);
    failure.failed_runs += again.failed() ? 1 : 0;
    alike = alike && again.failed() && again.fingerprint == first.fingerprint;
  }
  // If the runs of the trial disagree with each other, eager runs may disagree too.
  if (!alike && first.error.empty()) {
    for (const size_t match : trial.step.run_matches) {
      ReferenceOf(match, kDoubtfulReferenceRuns);
    }
    Judge(first);
    if (!first.failed()) return outcome;
  }
  failure.code = first.code;
  failure.error = first.error;
  failure.differing = static_cast<int64_t>(first.differences.size());
  if (!first.differences.empty()) failure.first = first.differences.front();
  failure.message = Sentence(failure);
  outcome.failure = std::move(failure);
  return outcome;
}

TrialRunner::OneRun TrialRunner::RunOnce(const Trial& trial) {
  const Script script = mixed_.Build(trial.step);
  OneRun run;
  const auto look = [&](int observation, int output, const std::vector<uint8_t>& packed) {
    const ScriptOutput& seen = script.outputs[output];
    Suspect suspect;
    suspect.match = script.observations[observation].match;
    suspect.execution = observation;
    suspect.key = {seen.leaf, seen.write};
    const Reference& reference = references_.at(suspect.match);
    const auto expected = reference.digests.find(suspect.key);
    if (expected == reference.digests.end()) return;  // the reference lacks this output
    ++run.compared;
    const std::string digest = storage::DigestOf(packed.data(), packed.size());
    if (expected->second.count(digest) != 0) return;
    run.fingerprint += fmt::format("{} {} {} {};", observation, seen.leaf, seen.write, digest);
    suspect.content.dtype = seen.layout.dtype;
    if (!standard_.bitwise() || run.suspects.size() < kFewContents) {
      run.values->Keep(digest, packed);
      suspect.content.digest = digest;
      suspect.content.kept = true;
    }
    run.suspects.push_back(std::move(suspect));
  };
  try {
    script::RunScript(session_.device(), script, look);
  } catch (const CallFailed& failure) {
    run.code = failure.code();
    run.error = failure.what();
    return run;
  }
  Judge(run);
  return run;
}

void TrialRunner::Judge(OneRun& run) {
  run.differences.clear();
  std::map<size_t, std::set<OutputKey>> wanted;
  for (const Suspect& suspect : run.suspects) {
    if (suspect.content.kept) wanted[suspect.match].insert(suspect.key);
  }
  std::map<size_t, std::map<OutputKey, Content>> references;
  for (const auto& [match, keys] : wanted) {
    references[match] = ReferenceContents(match, keys, *run.values);
  }
  const analyzer::Program& program = session_.program();
  for (const Suspect& suspect : run.suspects) {
    if (IsFlaky(suspect.match, suspect.key)) continue;
    TrialDifference difference = Name(suspect);
    if (!suspect.content.kept) {
      difference.how = "another digest";
      run.differences.push_back(std::move(difference));
      continue;
    }
    const Content& reference = references.at(suspect.match).at(suspect.key);
    const Bytes expected = run.values->Get(reference.digest);
    const Bytes actual = run.values->Get(suspect.content.digest);
    analyzer::metrics::TensorMetrics metrics;
    const analyzer::metrics::Judgement judgement = standard_.Compare(
        program.leaves[suspect.key.first].Name(), reference.dtype, expected->data(),
        suspect.content.dtype, actual->data(),
        static_cast<int64_t>(expected->size()) / storage::DTypeBytes(reference.dtype), &metrics);
    if (judgement.verdict != analyzer::metrics::Judgement::Verdict::kDifferent) continue;
    difference.how =
        fmt::format("{} of {} elements, first [{}]: eager {}, captured {}", metrics.differing,
                    metrics.elements, metrics.first_index, metrics.first_a, metrics.first_b);
    if (!standard_.bitwise()) difference.how += "; " + judgement.reason;
    run.differences.push_back(std::move(difference));
  }
}

TrialDifference TrialRunner::Name(const Suspect& suspect) const {
  const analyzer::Program& program = session_.program();
  const analyzer::Leaf& leaf = program.leaves[suspect.key.first];
  const analyzer::TensorUse& use = program.uses[leaf.index].writes[suspect.key.second];
  TrialDifference difference;
  difference.call_id = leaf.call.call_id;
  difference.op = leaf.Name();
  difference.position = leaf.arguments[use.argument].position;
  difference.output = leaf.arguments[use.argument].name;
  difference.step = program.work.steps[mixed_.step_class().matches[suspect.match].step_index].step;
  difference.execution = suspect.execution;
  return difference;
}

Script TrialRunner::BuildReference(size_t match) const {
  script::MixedStepOptions eager;
  eager.captured.assign(mixed_.places(), false);
  eager.run_matches = {match};
  return mixed_.Build(eager);
}

const TrialRunner::Reference& TrialRunner::ReferenceOf(size_t match, int runs) {
  Reference& reference = references_[match];
  if (reference.runs >= runs) return reference;
  const Script script = BuildReference(match);
  for (; reference.runs < runs; ++reference.runs) {
    const std::vector<script::Observed> observed =
        script::RunScript(session_.device(), script, nullptr);
    for (size_t o = 0; o < observed.size(); ++o) {
      const Observation& observation = script.observations[o];
      for (size_t i = 0; i < observed[o].digests.size(); ++i) {
        const ScriptOutput& output = script.outputs[observation.first + i];
        ++reference.digests[{output.leaf, output.write}][observed[o].digests[i]];
      }
    }
  }
  return reference;
}

std::map<TrialRunner::OutputKey, TrialRunner::Content> TrialRunner::ReferenceContents(
    size_t match, const std::set<OutputKey>& wanted, script::ValueStore& values) {
  std::map<OutputKey, Content> contents;
  const Script script = BuildReference(match);
  script::RunScript(session_.device(), script,
                    [&](int, int output, const std::vector<uint8_t>& packed) {
                      const ScriptOutput& seen = script.outputs[output];
                      if (wanted.count({seen.leaf, seen.write}) == 0) return;
                      const std::string digest = storage::DigestOf(packed.data(), packed.size());
                      values.Keep(digest, packed);
                      contents[{seen.leaf, seen.write}] = {seen.layout.dtype, digest, true};
                    });
  return contents;
}

bool TrialRunner::IsFlaky(size_t match, const OutputKey& key) const {
  return references_.at(match).digests.at(key).size() > 1;
}

std::vector<FlakyOutput> TrialRunner::Flaky() const {
  const analyzer::Program& program = session_.program();
  std::map<int64_t, FlakyOutput> by_leaf;
  for (const auto& [match, reference] : references_) {
    for (const auto& [key, digests] : reference.digests) {
      if (digests.size() < 2) continue;
      const analyzer::Leaf& leaf = program.leaves[key.first];
      FlakyOutput output;
      output.call_id = leaf.call.call_id;
      output.op = leaf.Name();
      output.output = leaf.arguments[program.uses[leaf.index].writes[key.second].argument].name;
      output.step = program.work.steps[mixed_.step_class().matches[match].step_index].step;
      output.runs = reference.runs;
      int most = 0;
      for (const auto& [digest, runs] : digests) most = std::max(most, runs);
      output.other = reference.runs - most;
      by_leaf.emplace(leaf.index, output);
    }
  }
  std::vector<FlakyOutput> flaky;
  flaky.reserve(by_leaf.size());
  for (auto& [leaf, output] : by_leaf) flaky.push_back(std::move(output));
  return flaky;
}

analyzer::Coverage TrialRunner::Coverage() const {
  if (references_.empty()) return script::CoverageOf(mixed_, {}, BuildReference(0));
  analyzer::Coverage all;
  for (const auto& [match, reference] : references_) {
    const auto agreed = [&](const ScriptOutput& output) {
      const auto digests = reference.digests.find({output.leaf, output.write});
      return digests != reference.digests.end() && digests->second.size() < 2;
    };
    const analyzer::Coverage own = script::CoverageOf(mixed_, {}, BuildReference(match), agreed);
    all.computed += own.computed;
    all.covered += own.covered;
  }
  return all;
}

std::string TrialRunner::Sentence(const TrialFailure& failure) const {
  const std::string trial = failure.trial.Describe(mixed_, session_.program());
  std::string text;
  if (!failure.error.empty()) {
    text = fmt::format("{} ({})", failure.error, trial);
  } else {
    const TrialDifference& first = failure.first;
    text = fmt::format("call {} {}: {} of step {} in execution {} ({}): {}", first.call_id,
                       first.op, first.output, first.step, first.execution + 1, trial, first.how);
    if (failure.differing > 1) text += fmt::format("; {} outputs differ", failure.differing);
  }
  if (failure.failed_runs < failure.runs) {
    text += fmt::format("; in {} of {} runs", failure.failed_runs, failure.runs);
  }
  return text;
}

}  // namespace acltape::replayer::prove
