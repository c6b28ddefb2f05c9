// Makes one experiment and judges it. It executes a mixed step several times and compares each
// output with the reference: the same step with nothing captured, nothing planted and no stress.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "analyzer/calls/coverage.h"
#include "analyzer/metrics/metrics.h"
#include "analyzer/metrics/standard.h"
#include "replayer/script/mixed_step.h"

namespace acltape::replayer::script {

struct StepComparison {
  enum class Verdict {
    kEqual,      // every output of every execution equals the reference
    kDifferent,  // an output differs, in the same way in all executions
    kUnstable,   // results of a step vary between executions
    kFlaky,      // results of the reference vary
    kNothing,    // no executed call leaves a result to compare
    kTooLittle,  // every output equals the reference, and they tell of too few leaves
  };
  Verdict verdict = Verdict::kEqual;
  int executions = 0;
  int different = 0;  // executions that differ
  int reference_executions = 0;
  int reference_different = 0;  // executions that differ from the first one of their step
  int64_t outputs = 0;          // outputs compared, in all executions
  analyzer::Coverage coverage;  // each executed step is counted once
  int64_t within = 0;           // outputs with other bits that the standard accepts
  int64_t captured_calls = 0;
  int64_t graphs = 0;

  // The first output that differs, in order of execution and then of the program.
  struct First {
    int execution = 0;  // from 1
    int64_t step = 0;
    int64_t call_id = 0;
    std::string op;                            // "aten::mm"
    std::string out;                           // name of the argument
    analyzer::metrics::TensorMetrics metrics;  // a: the reference
    std::string reason;                        // why the standard refuses it; empty if bitwise
  };
  std::optional<First> first;
};

// Executes the steps `options.run_matches` `rounds` times, in this order. Outputs are compared bit
// for bit if `standard` is null or bitwise, else by this precision standard. Of the reference only
// digests are kept, and, with a standard, the values of its first execution. Throws what
// MixedStep::Build and RunScript throw. `progress` gets the number of executions done and the
// total, with those of the reference. It may be null.
StepComparison CompareSteps(
    const MixedStep& step, const MixedStepOptions& options, int rounds,
    const std::function<void(int64_t done, int64_t total)>& progress = nullptr,
    const std::shared_ptr<const analyzer::metrics::Standard>& standard = nullptr);

// Returns "equal", "different", "unstable", "flaky reference", "nothing compared" or
// "not known".
std::string_view VerdictName(StepComparison::Verdict verdict);

}  // namespace acltape::replayer::script
