// Compares the times of eager and captured execution for the steady steps of a recorded program.
// With a plan, the execution by the plan is timed too.
//
// All executions run the same device operators on the same device. After a warm-up they take turns
// (A B A B, or A B C A B C). Host time of a step is the time that the issuing thread spends,
// without its waits for the device. Device time lies between two events around the step. Latency
// runs from the first issue until the stream is synchronised. Medians come with confidence
// intervals from order statistics (binomial, distribution-free).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/calls/coverage.h"
#include "replayer/replay.h"
#include "storage/reader.h"

namespace acltape::replayer {

struct CompareOptions {
  int repetitions = 20;  // timed passes over the steady steps, per execution
  int warmup = 3;        // passes before them
  double confidence = 0.95;
  // With a plan, the steps of its class are timed, captured on one stream and by the plan. Null: no
  // plan.
  std::shared_ptr<const ChosenPlan> plan;
  Data data = Data::kRecorded;
  std::string device_lib;  // as in ReplayOptions
  uint64_t seed = 1;
  std::function<void(int64_t done, int64_t total)> progress;
};

// A median with its confidence interval, over `samples` values. The unit is nanoseconds unless
// stated otherwise.
struct Estimate {
  double median = 0;
  double low = 0;
  double high = 0;
  int64_t samples = 0;
};

// Times per step of one way to execute.
struct ExecutionTimes {
  Estimate host_ns;     // per step, waits for the device excluded
  Estimate wait_ns;     // per step, host waits for the device inside the step (host reads)
  Estimate device_ns;   // per step
  Estimate latency_ns;  // per step
  double host_ns_per_leaf = 0;
};

// Latency per step of one way to execute: as the plan predicted it, and as measured.
struct PredictionError {
  std::string execution;  // "eager", "captured", "planned"
  double predicted_ns = 0;
  double measured_ns = 0;
  double error_percent() const { return 100 * (predicted_ns - measured_ns) / measured_ns; }
};

struct CompareReport {
  std::string device;
  int64_t eager_run_id = 0;
  int64_t captured_run_id = 0;
  int64_t planned_run_id = 0;
  int64_t steps = 0;         // steps of the program
  int64_t steady_steps = 0;  // steps of the template's class: the ones timed
  int64_t leaves_per_step = 0;
  // It counts the leaves of a step that compute, and those of them that the timed executions run.
  // The others take recorded results, and no time holds what the host spent on them.
  analyzer::Coverage coverage;
  int64_t device_calls_per_step = 0;
  int64_t regions_per_step = 0;  // graphs executed per step
  // Of the timed leaves of a step, those that graphs of the program's own held in the recording.
  int64_t leaves_in_graphs = 0;
  Estimate recorded_span_ns;    // the recorded program: its step (analyzer/steps/step_times.h)
  Estimate recorded_leaves_ns;  // the recorded program: what the host spent in its leaves
  ExecutionTimes eager;
  ExecutionTimes captured;
  ExecutionTimes planned;
  std::vector<PredictionError> predictions;  // if the plan predicts times of replays
  Estimate host_ratio;                       // eager host time / captured host time
  Estimate latency_ratio;
  Estimate planned_host_ratio;  // eager / planned
  Estimate planned_latency_ratio;
  double capture_ns = 0;  // capture begin to end of all regions, warm-up not included
  int64_t copies_per_step = 0;
  int64_t copy_bytes_per_step = 0;
  // Number of executions of a step after which the capture has saved as much host time as it took;
  // -1: never.
  int64_t break_even_steps = -1;
  int repetitions = 0;
  int warmup = 0;
  // The regions of the template step, as captured on one stream and as captured by the plan.
  std::vector<RegionReport> regions;
  std::vector<RegionReport> planned_regions;
  std::string refusal;  // why the program cannot be captured (only eager is timed); or empty
  std::vector<Note> notes;
  int ExitCode() const { return refusal.empty() ? 0 : 1; }
};

// Throws errors as Replay does. `results` may be null.
CompareReport Compare(const storage::Reader& trace, const CompareOptions& options,
                      storage::Results* results);

}  // namespace acltape::replayer
