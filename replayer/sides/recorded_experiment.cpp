#include "replayer/sides/recorded_experiment.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "meaning/options.h"
#include "replayer/script/round_outcome.h"
#include "storage/packing.h"
#include "storage/payload.h"

namespace acltape::replayer::sides {

RecordedExperiment::RecordedExperiment(const script::MixedStep& step, CallSide* bad,
                                       EagerStepOptions options)
    : step_(step), bad_(bad), options_(std::move(options)) {}

std::string RecordedExperiment::Describe(size_t element) const {
  return step_.Describe(options_.places.at(element));
}

Script RecordedExperiment::ScriptFor(const script::ElementSet& altered) const {
  script::MixedStepOptions options;
  options.plan = step_.plan();
  options.plan_updates = false;
  options.captured.assign(step_.places(), false);
  options.executed.assign(step_.places(), false);
  for (const size_t element : altered) options.executed[options_.places.at(element)] = true;
  options.capture_match = options_.run_matches.front();
  options.run_matches = options_.run_matches;
  options.watch = script::Watch::kEveryResult;
  return step_.Build(options);
}

// Describes the difference of a call that had recorded inputs.
std::string RecordedExperiment::Sentence(const Script& script, const FirstDifference& difference) {
  const ScriptOutput& output = script.outputs[difference.output];
  return fmt::format(
      "{} gives other results from recorded inputs: result {}: {}",
      step_.session().program().Describe(output.leaf), output.write,
      DescribeDifference(output.layout, RecordedRowMajor(output), difference.packed));
}

// Returns a recorded result in row-major order. The trace holds dense tensors in the order of
// addresses.
std::vector<uint8_t> RecordedExperiment::RecordedRowMajor(const ScriptOutput& output) const {
  Session& session = step_.session();
  const analyzer::Leaf& leaf = session.program().leaves[output.leaf];
  const analyzer::TensorUse& use = session.program().uses[output.leaf].writes[output.write];
  const storage::Snapshot* snapshot = analyzer::RecordedResult(leaf, use);
  const Bytes content = snapshot == nullptr ? nullptr : session.contents().GetResult(leaf, use);
  if (content == nullptr) {
    throw Error(
        ErrorKind::kTrace,
        "the result of " + session.program().Describe(output.leaf) +
            " is the reference, which the trace does not hold; record with @payload all."_cli);
  }
  std::vector<uint8_t> packed = *content;
  if (snapshot->packing == 0) PackRowMajor(output.layout, content->data(), packed.data());
  return packed;
}

const std::string& RecordedExperiment::RecordedDigest(const ScriptOutput& output) {
  const auto [entry, created] = digests_.try_emplace({output.leaf, output.write});
  if (created) {
    const std::vector<uint8_t> packed = RecordedRowMajor(output);
    entry->second = storage::DigestOf(packed.data(), packed.size());
  }
  return entry->second;
}

Round RecordedExperiment::RecordedRound(const Script& script) {
  Round round;
  for (const Observation& observation : script.observations) {
    script::StepDigests& digests = round.emplace_back();
    for (int output = observation.first; output < observation.end; ++output) {
      digests.push_back(RecordedDigest(script.outputs[output]));
    }
  }
  return round;
}

script::Outcome RecordedExperiment::Try(const script::ElementSet& altered) {
  script::Outcome outcome;
  outcome.executions = options_.executions;
  if (altered.empty()) return outcome;
  const Script script = ScriptFor(altered);
  // Some calls alone may have no results, but all of them together must have some.
  if (script.outputs.empty() && altered.size() == size()) return script::NothingCompared();
  const Round reference = RecordedRound(script);
  FirstDifference difference;
  int round = 0;
  const auto differs = [&](int observation, int output, const std::string& digest) {
    return difference.round < 0 && DigestIn(reference, script, observation, output) != digest;
  };
  const script::OutputSink take = [&](int observation, int output,
                                      const std::vector<uint8_t>& packed) {
    if (!differs(observation, output, storage::DigestOf(packed.data(), packed.size()))) return;
    difference = {round, observation, output, packed};
  };
  std::unique_ptr<SidedRun> sided;
  if (bad_ != nullptr) {
    sided = std::make_unique<SidedRun>(script, std::array<CallSide*, 2>{nullptr, bad_});
  }
  const SidedRun::Watcher watcher{[](int64_t) { return SidedRun::kBad; }, differs, take};
  std::vector<Round> rounds;
  try {
    for (; round < options_.executions; ++round) {
      rounds.push_back(RoundOf(sided != nullptr
                                   ? sided->Run(watcher)
                                   : script::RunScript(step_.session().device(), script, take)));
    }
  } catch (const SideFailed& failure) {
    return OutcomeOfFailure(reference, rounds, failure.what());
  } catch (const CallFailed& failure) {
    return OutcomeOfFailure(reference, rounds, failure.what());
  }
  outcome = JudgeRounds(reference, rounds);
  if (difference.round < 0) return outcome;
  nlohmann::json evidence = DifferenceJson(step_, script, reference, difference);
  if (altered.size() == 1) evidence["sentence"] = Sentence(script, difference);
  outcome.evidence = evidence.dump();
  return outcome;
}

}  // namespace acltape::replayer::sides
