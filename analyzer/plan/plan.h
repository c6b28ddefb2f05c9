// A plan says how the calls of one step are executed: which of them a captured graph holds, on
// which stream each one runs, the events between streams, what is copied in before each execution,
// and which arguments are updated. It is an editable file (plan_file.h, docs/plan_format.md).
//
// Call ids are those of the template step, which is the step that was planned. A replay maps them
// to the other steps of its class (analyzer/program/step_template.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace acltape::analyzer::plan {

// A call on a stream of its region. Stream 0 is the origin of the capture.
struct PlanPlacement {
  int64_t call_id = 0;
  int32_t stream = 0;
  // Written for the reader of the file. If it is given, the call must be of this operator.
  std::string op;
  bool operator==(const PlanPlacement&) const = default;
};

// A wait between streams. `event` is recorded on the stream of `record_after`, right after that
// call. It is waited for on the stream of `wait_before`, right before that call. Forks from the
// origin and joins to it are not listed, because the replay makes them.
struct PlanWait {
  int64_t record_after = 0;
  int64_t wait_before = 0;
  int32_t event = 0;
  bool operator==(const PlanWait&) const = default;
};

// A run of active calls (kernels, sources, host reads) of the template step, without gaps.
struct PlanRegion {
  int32_t region = 0;
  bool captured = false;
  int64_t first_call = 0;
  int64_t last_call = 0;
  std::string reason;  // why it is eager, or why it ends where it does
  // The time that a step would gain if nothing barred the capture of this eager region.
  double gain_ns = 0;
  std::vector<PlanPlacement> placements;  // in order of issue; empty if eager
  std::vector<PlanWait> waits;            // in order of issue of wait_before
  bool operator==(const PlanRegion&) const = default;
};

// Bytes of an input that moves between steps. They are copied to a fixed place before each
// execution.
struct PlanCopy {
  int64_t call_id = 0;  // the first call that uses them
  std::string argument;
  int64_t bytes = 0;
  bool operator==(const PlanCopy&) const = default;
};

// A host argument that varies between steps. The call is captured in a task group, and before each
// execution it is launched again with the step's value.
struct PlanUpdate {
  int64_t call_id = 0;
  std::string argument;
  bool operator==(const PlanUpdate&) const = default;
};

// Predicted nanoseconds per step. A time is 0 if nothing is known.
struct PlanPrediction {
  double eager_ns = 0;
  double captured_one_stream_ns = 0;
  double captured_ns = 0;
  double capture_cost_ns = 0;
  double break_even_steps = -1;  // -1: never
  bool stay_eager = false;
  std::string reason;  // if stay_eager is set
  // True if the costs were measured by replays, so that the times are those of a replay. Else they
  // are those of the program, with all that its host does between the calls.
  bool calibrated = false;
  bool operator==(const PlanPrediction&) const = default;
};

struct Plan {
  int32_t version = 1;
  // The trace for which the plan was made. It is refused for another trace.
  int64_t trace_calls = 0;  // calls of that trace
  int64_t step = 0;         // template step
  int64_t first_call = 0;   // first call of the step
  int64_t last_call = 0;
  std::string capture_mode = "relaxed";  // global, thread_local, relaxed
  std::string soc = "Ascend910B1";       // SoC with these limits (analyzer/streams/budget.h)
  int32_t streams = 1;                   // most streams of a region
  std::vector<PlanRegion> regions;       // in order, all active calls of the step
  std::vector<PlanCopy> copies;
  std::vector<PlanUpdate> updates;
  PlanPrediction predicted;
  bool operator==(const Plan&) const = default;
};

}  // namespace acltape::analyzer::plan
