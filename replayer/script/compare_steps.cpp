#include "replayer/script/compare_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "replayer/script/run_script.h"
#include "storage/payload.h"

namespace acltape::replayer {
namespace {

using Digests = std::vector<std::string>;
using ByMatch = std::map<size_t, Digests>;

// How often the reference is executed, to see whether it agrees with itself.
constexpr int kReferenceRounds = 2;

struct Place {
  size_t match = 0;
  int number = 0;  // among the outputs of an observation
};

Place PlaceOf(const Script& script, int observation, int output) {
  const Observation& own = script.observations[observation];
  return {own.match, output - own.first};
}

std::vector<size_t> Repeat(const std::vector<size_t>& matches, int rounds) {
  std::vector<size_t> repeated;
  for (int i = 0; i < rounds; ++i) {
    repeated.insert(repeated.end(), matches.begin(), matches.end());
  }
  return repeated;
}

MixedStepOptions ReferenceOf(const MixedStep& step, const MixedStepOptions& options) {
  MixedStepOptions reference;
  reference.plan = options.plan;
  reference.plan_updates = options.plan_updates;
  reference.captured.assign(step.places(), false);
  reference.executed = options.executed;
  reference.capture_match = options.capture_match;
  reference.watch = options.watch;
  const std::set<size_t> matches(options.run_matches.begin(), options.run_matches.end());
  reference.run_matches.assign(matches.begin(), matches.end());
  return reference;
}

}  // namespace

StepComparison CompareSteps(const MixedStep& step, const MixedStepOptions& options, int rounds,
                            const std::function<void(int64_t done, int64_t total)>& progress) {
  const analyzer::Program& program = step.session().program();
  Device& device = step.session().device();
  StepComparison comparison;

  MixedStepOptions reference_options = ReferenceOf(step, options);
  const std::vector<size_t> matches = reference_options.run_matches;
  reference_options.run_matches = Repeat(matches, kReferenceRounds);
  const Script reference_script = step.Build(reference_options);
  const auto reference_executions = static_cast<int64_t>(reference_script.observations.size());
  const int64_t total =
      reference_executions + rounds * static_cast<int64_t>(options.run_matches.size());
  const auto tell = [&](int64_t done) {
    if (progress) progress(done, total);
  };
  const std::vector<Observed> seen =
      RunScript(device, reference_script,
                [&](int observation, int, const std::vector<uint8_t>&) { tell(observation); });
  ByMatch reference;
  for (size_t o = 0; o < seen.size(); ++o) {
    const size_t match = reference_script.observations[o].match;
    ++comparison.reference_executions;
    const auto [entry, created] = reference.emplace(match, seen[o].digests);
    if (!created && entry->second != seen[o].digests) ++comparison.reference_different;
  }

  MixedStepOptions own_options = options;
  own_options.run_matches = Repeat(options.run_matches, rounds);
  const Script script = step.Build(own_options);
  comparison.graphs = script.graphs;
  for (const size_t at : step.capturable()) {
    comparison.captured_calls += options.captured.empty() || options.captured[at] ? 1 : 0;
  }
  int first_observation = -1;
  int first_output = 0;
  std::vector<uint8_t> first_bytes;
  const std::vector<Observed> observed = RunScript(
      device, script, [&](int observation, int output, const std::vector<uint8_t>& packed) {
        ++comparison.outputs;
        tell(reference_executions + observation);
        if (first_observation >= 0) return;
        const Place place = PlaceOf(script, observation, output);
        if (storage::DigestOf(packed.data(), packed.size()) ==
            reference.at(place.match).at(place.number)) {
          return;
        }
        first_observation = observation;
        first_output = output;
        first_bytes = packed;
      });
  std::map<size_t, std::set<Digests>> results;
  for (size_t o = 0; o < observed.size(); ++o) {
    const size_t match = script.observations[o].match;
    ++comparison.executions;
    comparison.different += observed[o].digests != reference.at(match) ? 1 : 0;
    results[match].insert(observed[o].digests);
  }
  const bool varies = std::any_of(results.begin(), results.end(),
                                  [](const auto& own) { return own.second.size() > 1; });
  comparison.verdict = comparison.reference_different > 0 ? StepComparison::Verdict::kFlaky
                       : varies                           ? StepComparison::Verdict::kUnstable
                       : comparison.different > 0         ? StepComparison::Verdict::kDifferent
                                                          : StepComparison::Verdict::kEqual;
  if (first_observation < 0) return comparison;

  // The reference once more, for the values of this one output.
  const ScriptOutput& output = script.outputs[first_output];
  const Place wanted = PlaceOf(script, first_observation, first_output);
  reference_options.run_matches = {wanted.match};
  const Script again = step.Build(reference_options);
  std::vector<uint8_t> expected;
  RunScript(device, again, [&](int, int own, const std::vector<uint8_t>& packed) {
    if (own == wanted.number) expected = packed;
  });
  StepComparison::First first;
  first.execution = first_observation + 1;
  first.step = script.observations[first_observation].step;
  first.call_id = output.call_id;
  first.op = program.leaves[output.leaf].Name();
  const analyzer::TensorUse& use = program.uses[output.leaf].writes[output.write];
  first.out = program.leaves[output.leaf].arguments[use.argument].name;
  first.metrics = analyzer::Measure(output.layout.dtype, expected.data(), output.layout.dtype,
                                    first_bytes.data(), output.layout.ElementCount());
  comparison.first = std::move(first);
  return comparison;
}

std::string_view VerdictName(StepComparison::Verdict verdict) {
  constexpr std::string_view kNames[] = {"equal", "different", "unstable", "flaky reference"};
  return kNames[static_cast<size_t>(verdict)];
}

}  // namespace acltape::replayer
