#include "replayer/sides/recorded_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "analyzer/program/missing_values.h"
#include "replayer/engine/held_results.h"
#include "replayer/script/round_outcome.h"
#include "replayer/script/step_coverage.h"
#include "storage/packing.h"
#include "storage/payload.h"

namespace acltape::replayer::sides {

RecordedExperiment::RecordedExperiment(const script::MixedStep& step, CallSide* bad,
                                       EagerStepOptions options)
    : step_(step), bad_(bad), options_(std::move(options)) {
  const std::vector<size_t> executed = ExecutedPlaces(step);
  std::set_difference(executed.begin(), executed.end(), options_.places.begin(),
                      options_.places.end(), std::back_inserter(unjudged_));
}

std::vector<size_t> RecordedExperiment::JudgedPlaces(const script::MixedStep& step,
                                                     const std::vector<size_t>& run_matches) {
  const analyzer::Program& program = step.session().program();
  std::vector<size_t> places = ExecutedPlaces(step);
  const size_t executed = places.size();
  std::erase_if(places, [&](size_t place) {
    return std::any_of(run_matches.begin(), run_matches.end(), [&](size_t match) {
      const int64_t leaf = step.step_class().matches[match].leaves[place];
      const size_t writes = program.uses[leaf].writes.size();
      for (size_t write = 0; write < writes; ++write) {
        if (!HoldsResult(program, leaf, write)) return true;
      }
      return false;
    });
  });
  if (!places.empty() || executed == 0) return places;
  throw Error(ErrorKind::kTrace,
              program.trace->path() +
                  " holds no result of the step's calls, and these are the reference; " +
                  analyzer::HowToHaveResults(program));
}

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
  for (const size_t place : unjudged_) options.executed[place] = true;
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
    throw Error(ErrorKind::kTrace, "the result of " + session.program().Describe(output.leaf) +
                                       " is the reference, which the trace does not hold; " +
                                       analyzer::HowToHaveResult(session.program(), output.leaf));
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
      const ScriptOutput& result = script.outputs[output];
      digests.push_back(Holds(result) ? RecordedDigest(result) : std::string());
    }
  }
  return round;
}

bool RecordedExperiment::Holds(const ScriptOutput& output) const {
  return output.write >= 0 &&
         HoldsResult(step_.session().program(), output.leaf, static_cast<size_t>(output.write));
}

analyzer::Coverage RecordedExperiment::Coverage() const {
  script::ElementSet all(size());
  std::iota(all.begin(), all.end(), size_t{0});
  return script::CoverageOf(step_, {}, ScriptFor(all),
                            [&](const ScriptOutput& output) { return Holds(output); });
}

void RecordedExperiment::LeaveOut(const Script& script, Round& round) const {
  for (size_t i = 0; i < round.size(); ++i) {
    for (size_t d = 0; d < round[i].size(); ++d) {
      if (!Holds(script.outputs[script.observations[i].first + d])) round[i][d].clear();
    }
  }
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
    return difference.round < 0 && Holds(script.outputs[output]) &&
           DigestIn(reference, script, observation, output) != digest;
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
      LeaveOut(script, rounds.back());
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
