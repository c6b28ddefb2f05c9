// One experiment, judged: executes a mixed step several times and compares each output with what
// the same step gives when nothing is captured, nothing is planted and nothing is stressed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "analyzer/metrics/metrics.h"
#include "analyzer/metrics/standard.h"
#include "replayer/script/mixed_step.h"

namespace acltape::replayer {

struct StepComparison {
  enum class Verdict {
    kEqual,      // every output of every execution is as the reference's
    kDifferent,  // an output of a step is different, and the same in all its executions
    kUnstable,   // a step sometimes gives one result, sometimes another
    kFlaky,      // the reference differs from itself
  };
  Verdict verdict = Verdict::kEqual;
  int executions = 0;
  int different = 0;  // of those
  int reference_executions = 0;
  int reference_different = 0;  // from the first one of the same step
  int64_t outputs = 0;          // compared, over all executions
  int64_t within = 0;           // of those: other bits, which the standard lets pass
  int64_t captured_calls = 0;
  int64_t graphs = 0;

  // The first output that is different, in order of execution and program.
  struct First {
    int execution = 0;  // from 1
    int64_t step = 0;
    int64_t call_id = 0;
    std::string op;                   // "aten::mm"
    std::string out;                  // name of the argument
    analyzer::TensorMetrics metrics;  // a: the reference
    std::string reason;               // why the standard refuses it; empty when bitwise
  };
  std::optional<First> first;
};

// The steps `options.run_matches` are executed `rounds` times, in this order. Outputs are compared
// bit for bit (`standard` null or bitwise) or by a precision standard. Digests of the reference are
// kept, its values of one output at a time, with a standard of its first execution. Throws what
// MixedStep::Build and RunScript throw. `progress` is given the executions that are done and all of
// them, those of the reference included; null: no one asks.
StepComparison CompareSteps(
    const MixedStep& step, const MixedStepOptions& options, int rounds,
    const std::function<void(int64_t done, int64_t total)>& progress = nullptr,
    const std::shared_ptr<const analyzer::Standard>& standard = nullptr);

// "equal", "different", "unstable", "flaky reference".
std::string_view VerdictName(StepComparison::Verdict verdict);

}  // namespace acltape::replayer
