#include "replayer/sides/step_rounds.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "analyzer/metrics/metrics.h"
#include "replayer/script/round_outcome.h"

namespace acltape::replayer::sides {

using nlohmann::json;

Round RoundOf(std::vector<script::Observed> observed) {
  Round round;
  round.reserve(observed.size());
  for (script::Observed& one : observed) round.push_back(std::move(one.digests));
  return round;
}

script::Outcome JudgeRounds(const Round& reference, const std::vector<Round>& rounds) {
  std::vector<std::string> digests;
  digests.reserve(rounds.size());
  for (const Round& round : rounds)
    digests.push_back(script::DigestOfSteps(round, 0, round.size()));
  return script::OutcomeOfRounds(script::DigestOfSteps(reference, 0, reference.size()), digests);
}

const std::string& DigestIn(const Round& reference, const Script& script, int observation,
                            int output) {
  return reference.at(static_cast<size_t>(observation))
      .at(static_cast<size_t>(output - script.observations[observation].first));
}

json DifferenceJson(const script::MixedStep& step, const Script& script, const Round& reference,
                    const FirstDifference& difference) {
  const ScriptOutput& output = script.outputs[difference.output];
  json evidence{{"call", output.call_id},
                {"op", step.session().program().leaves[output.leaf].Name()},
                {"output", output.write},
                {"step", script.observations[difference.observation].step},
                {"execution", difference.round + 1}};
  const std::string& digest =
      DigestIn(reference, script, difference.observation, difference.output);
  const Bytes expected = step.session().contents().GetPayload(digest);
  if (expected == nullptr || expected->size() != difference.packed.size()) return evidence;
  const storage::DType dtype = output.layout.dtype;
  script::AddMetrics(
      analyzer::metrics::Measure(dtype, expected->data(), dtype, difference.packed.data(),
                                 output.layout.ElementCount()),
      evidence);
  return evidence;
}

std::string DescribeDifference(const storage::Layout& layout, const std::vector<uint8_t>& good,
                               const std::vector<uint8_t>& bad) {
  const analyzer::metrics::TensorMetrics compared = analyzer::metrics::Measure(
      layout.dtype, good.data(), layout.dtype, bad.data(), layout.ElementCount());
  std::string text =
      fmt::format("{} of {} elements differ, the first [{}]: {} and {}", compared.differing,
                  compared.elements, compared.first_index, compared.first_a, compared.first_b);
  if (compared.max_ulp >= 0) text += fmt::format(", at most {} ULP", compared.max_ulp);
  return text;
}

}  // namespace acltape::replayer::sides
