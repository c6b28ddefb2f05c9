#include "replayer/script/compare_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "replayer/script/output_judge.h"
#include "replayer/script/step_coverage.h"

namespace acltape::replayer::script {
namespace {

using Digests = JudgedRun::Digests;
using ByMatch = std::map<size_t, Digests>;

// Number of executions of the reference, to see if its results vary.
constexpr int kReferenceRounds = 2;

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
                            const std::function<void(int64_t done, int64_t total)>& progress,
                            const std::shared_ptr<const analyzer::metrics::Standard>& standard) {
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
  OutputJudge judge(standard);
  // The first execution of each step is the reference for all others.
  ByMatch reference;
  const auto reference_of = [&](const Script& script) {
    return [&](int observation, int number) -> std::string& {
      return DigestAt(reference[script.observations[observation].match], number);
    };
  };
  const JudgedRun reference_run(device, program, reference_script, judge,
                                reference_of(reference_script), tell);
  for (size_t o = 0; o < reference_run.observed().size(); ++o) {
    ++comparison.reference_executions;
    const Digests& expected = reference[reference_script.observations[o].match];
    if (reference_run.observed()[o] != expected) ++comparison.reference_different;
  }

  MixedStepOptions own_options = options;
  own_options.run_matches = Repeat(options.run_matches, rounds);
  const Script script = step.Build(own_options);
  comparison.graphs = script.graphs;
  for (const size_t place : step.capturable()) {
    comparison.captured_calls += options.captured.empty() || options.captured[place] ? 1 : 0;
  }
  const JudgedRun run(device, program, script, judge, reference_of(script), [&](int observation) {
    ++comparison.outputs;
    tell(reference_executions + observation);
  });
  comparison.within = run.within();
  const std::vector<Digests>& observed = run.observed();
  std::map<size_t, std::set<Digests>> results;
  for (size_t o = 0; o < observed.size(); ++o) {
    const size_t match = script.observations[o].match;
    ++comparison.executions;
    comparison.different += observed[o] != reference[match] ? 1 : 0;
    results[match].insert(observed[o]);
  }
  const bool varies = std::any_of(results.begin(), results.end(),
                                  [](const auto& own) { return own.second.size() > 1; });
  comparison.coverage = CoverageOf(step, options.executed, script);
  comparison.verdict = comparison.outputs == 0              ? StepComparison::Verdict::kNothing
                       : comparison.reference_different > 0 ? StepComparison::Verdict::kFlaky
                       : varies                             ? StepComparison::Verdict::kUnstable
                       : comparison.different > 0           ? StepComparison::Verdict::kDifferent
                       : comparison.coverage.TooLittle()    ? StepComparison::Verdict::kTooLittle
                                                            : StepComparison::Verdict::kEqual;
  if (run.first().observation < 0) return comparison;

  const Observation& observation = script.observations[run.first().observation];
  const ScriptOutput& output = script.outputs[run.first().output];
  StepComparison::First first;
  first.execution = run.first().observation + 1;
  first.step = observation.step;
  first.call_id = output.call_id;
  first.op = program.leaves[output.leaf].Name();
  const analyzer::TensorUse& use = program.uses[output.leaf].writes[output.write];
  first.out = program.leaves[output.leaf].arguments[use.argument].name;
  first.metrics = run.first().difference.metrics;
  first.reason = run.first().difference.reason;
  if (judge.bitwise()) {
    // Execute the reference again to get the values of this output.
    const int wanted = run.first().output - observation.first;
    reference_options.run_matches = {observation.match};
    const Script again = step.Build(reference_options);
    std::vector<uint8_t> expected;
    RunScript(device, again, [&](int, int own, const std::vector<uint8_t>& packed) {
      if (own == wanted) expected = packed;
    });
    first.metrics =
        analyzer::metrics::Measure(output.layout.dtype, expected.data(), output.layout.dtype,
                                   run.first().packed.data(), output.layout.ElementCount());
  }
  comparison.first = std::move(first);
  return comparison;
}

std::string_view VerdictName(StepComparison::Verdict verdict) {
  constexpr std::string_view kNames[] = {"equal",           "different",        "unstable",
                                         "flaky reference", "nothing compared", "not known"};
  return kNames[static_cast<size_t>(verdict)];
}

}  // namespace acltape::replayer::script
