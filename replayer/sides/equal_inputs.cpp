#include "replayer/sides/equal_inputs.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "replayer/script/round_outcome.h"

namespace acltape::replayer::sides {

using nlohmann::json;

EqualInputs::EqualInputs(const script::MixedStep& step, std::array<CallSide*, 2> sides,
                         const EagerStepOptions& options)
    : step_(step),
      options_(options),
      run_(EagerScript(step, options.run_matches, script::Watch::kEveryResult), sides) {}

std::string EqualInputs::Describe(size_t element) const {
  return step_.Describe(options_.places.at(element));
}

EqualInputs::Results EqualInputs::RunCall(size_t place, int side, bool contents) {
  const auto is_of_call = [&](int output) {
    return step_.PlaceOf(run_.script().outputs[output].call_id) == place;
  };
  Results results;
  SidedRun::Watcher watcher;
  watcher.side_of = [&](int64_t call) {
    return step_.PlaceOf(call) == place ? side : SidedRun::kGood;
  };
  watcher.wants = [&](int, int output, const std::string& digest) {
    if (!is_of_call(output)) return false;
    results.digests[output] = digest;
    return contents;
  };
  watcher.take = [&](int, int output, const std::vector<uint8_t>& packed) {
    results.contents[output] = packed;
  };
  run_.Run(watcher);
  return results;
}

script::Outcome EqualInputs::Try(const script::ElementSet& altered) {
  const size_t place = options_.places.at(altered.at(0));
  script::Outcome outcome;
  try {
    const Results good = RunCall(place, SidedRun::kGood, /*contents=*/true);
    const Results bad = RunCall(place, SidedRun::kBad, /*contents=*/true);
    if (good.digests.empty()) return script::NothingCompared();
    bool stable = true;
    outcome.executions = 1;
    outcome.bad_executions = good.digests != bad.digests ? 1 : 0;
    for (int i = 1; i < options_.executions; ++i) {
      stable = stable && RunCall(place, SidedRun::kGood, false).digests == good.digests;
      const Results again = RunCall(place, SidedRun::kBad, false);
      stable = stable && again.digests == bad.digests;
      ++outcome.executions;
      outcome.bad_executions += good.digests != again.digests ? 1 : 0;
    }
    outcome.verdict = !stable                       ? script::Outcome::Verdict::kUnstable
                      : outcome.bad_executions != 0 ? script::Outcome::Verdict::kBad
                                                    : script::Outcome::Verdict::kGood;
    for (const auto& [output, digest] : good.digests) {
      if (bad.digests.at(output) == digest) continue;
      const ScriptOutput& own = run_.script().outputs[output];
      outcome.fingerprint = bad.digests.at(output);
      outcome.evidence =
          json{{"sentence", fmt::format("{} gives other results from equal inputs: result {}: {}",
                                        step_.session().program().Describe(own.leaf), own.write,
                                        DescribeDifference(own.layout, good.contents.at(output),
                                                           bad.contents.at(output)))}}
              .dump();
      break;
    }
  } catch (const SideFailed& failure) {
    outcome.verdict =
        failure.is_bad() ? script::Outcome::Verdict::kBad : script::Outcome::Verdict::kCannotJudge;
    outcome.executions = 1;
    outcome.bad_executions = failure.is_bad() ? 1 : 0;
    outcome.fingerprint = "failure";
    outcome.evidence = json{{"error", failure.what()}}.dump();
  }
  return outcome;
}

std::vector<script::StepDigests> EqualInputs::GoodRounds(int rounds) {
  SidedRun::Watcher watcher;
  watcher.side_of = [](int64_t) { return SidedRun::kGood; };
  std::vector<script::StepDigests> all;
  all.reserve(rounds);
  for (int i = 0; i < rounds; ++i) all.push_back(std::move(run_.Run(watcher).front().digests));
  return all;
}

}  // namespace acltape::replayer::sides
