#include "replayer/sides/sides_experiment.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "replayer/script/round_outcome.h"

namespace acltape::replayer::sides {

using nlohmann::json;

Script EagerScript(const script::MixedStep& step, const std::vector<size_t>& run_matches,
                   script::Watch watch) {
  script::MixedStepOptions options;
  options.plan = step.plan();
  options.plan_updates = false;
  options.captured.assign(step.places(), false);
  options.capture_match = run_matches.front();
  options.run_matches = run_matches;
  options.watch = watch;
  return step.Build(options);
}

std::vector<size_t> ExecutedPlaces(const script::MixedStep& step) {
  const analyzer::Program& program = step.session().program();
  const LoweredProgram& lowered = step.execution().lowered();
  std::vector<size_t> places;
  for (size_t place = 0; place < step.places(); ++place) {
    const int64_t leaf = step.step_class().leaves[place];
    if (program.leaves[leaf].kind != analyzer::LeafKind::kKernel) continue;
    if (lowered.IsSubstituted(leaf) || lowered.lowerings[leaf].invocations.empty()) continue;
    places.push_back(place);
  }
  return places;
}

std::string CommandFor(const script::MixedStep& step, const EagerStepOptions& options,
                       const script::ElementSet& altered) {
  if (altered.empty() || altered.size() == options.places.size()) {
    return options.command.With({});
  }
  std::string calls;
  for (const size_t element : altered) {
    calls += (calls.empty() ? "" : ",") + std::to_string(step.CallAt(options.places.at(element)));
  }
  return options.command.With({{"calls", calls}});
}

script::Outcome OutcomeOfFailure(const Round& reference, const std::vector<Round>& rounds,
                                 const std::string& why) {
  script::Outcome outcome = JudgeRounds(reference, rounds);
  outcome.verdict = outcome.bad_executions == outcome.executions
                        ? script::Outcome::Verdict::kBad
                        : script::Outcome::Verdict::kUnstable;
  ++outcome.executions;
  ++outcome.bad_executions;
  outcome.fingerprint = "failure";
  outcome.evidence = json{{"error", why}}.dump();
  return outcome;
}

std::string FailureIn(const script::Outcome& outcome) {
  if (outcome.evidence.empty()) return "";
  return json::parse(outcome.evidence).value("error", std::string());
}

SidesExperiment::SidesExperiment(const script::MixedStep& step, std::array<CallSide*, 2> sides,
                                 EagerStepOptions options)
    : step_(step),
      options_(std::move(options)),
      run_(EagerScript(step, options_.run_matches, script::Watch::kStepOutputs), sides) {}

std::string SidesExperiment::Describe(size_t element) const {
  return step_.Describe(options_.places.at(element));
}

void SidesExperiment::Recall(const script::ElementSet& altered, const script::Outcome& outcome) {
  if (!altered.empty() || !reference_.empty() || outcome.evidence.empty()) return;
  const json evidence = json::parse(outcome.evidence);
  if (evidence.contains("reference")) reference_ = evidence.at("reference").get<Round>();
}

Round SidesExperiment::RunOnce(const script::ElementSet& altered, int round,
                               FirstDifference* difference) {
  std::vector<bool> is_bad(step_.places(), false);
  for (const size_t element : altered) is_bad[options_.places.at(element)] = true;
  SidedRun::Watcher watcher;
  watcher.side_of = [&](int64_t call) {
    return is_bad[step_.PlaceOf(call)] ? SidedRun::kBad : SidedRun::kGood;
  };
  if (difference != nullptr && !reference_.empty()) {
    watcher.wants = [&](int observation, int output, const std::string& digest) {
      return difference->round < 0 &&
             DigestIn(reference_, run_.script(), observation, output) != digest;
    };
    watcher.take = [&](int observation, int output, const std::vector<uint8_t>& packed) {
      *difference = {round, observation, output, packed};
    };
  }
  return RoundOf(run_.Run(watcher));
}

script::Outcome SidesExperiment::Try(const script::ElementSet& altered) {
  if (run_.script().outputs.empty()) return script::NothingCompared();
  if (!altered.empty() && reference_.empty()) reference_ = RunOnce({}, 0, nullptr);
  FirstDifference difference;
  std::vector<Round> rounds;
  try {
    for (int round = 0; round < options_.executions; ++round) {
      rounds.push_back(RunOnce(altered, round, &difference));
    }
  } catch (const SideFailed& failure) {
    if (altered.empty()) throw;
    if (failure.is_bad()) return OutcomeOfFailure(reference_, rounds, failure.what());
    script::Outcome outcome;
    outcome.verdict = script::Outcome::Verdict::kCannotJudge;
    outcome.evidence = json{{"error", failure.what()}}.dump();
    return outcome;
  }
  if (reference_.empty()) reference_ = script::MostFrequent(rounds, 0, 1);
  script::Outcome outcome = JudgeRounds(reference_, rounds);
  json evidence = json::object();
  if (difference.round >= 0) {
    evidence = DifferenceJson(step_, run_.script(), reference_, difference);
  }
  if (altered.empty()) evidence["reference"] = reference_;
  if (!evidence.empty()) outcome.evidence = evidence.dump();
  return outcome;
}

}  // namespace acltape::replayer::sides
