// A plan: how the calls of one step are executed. Which of them a captured graph holds, on which
// stream each one runs, the events between streams, what is copied in before each execution and
// which arguments are updated. An editable file: plan_file.h, docs/plan_format.md.
//
// Call ids are those of the template step, the step that was planned; a replay carries them over to
// the other steps of its class (analyzer/step_template.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace acltape::analyzer {

// A call on a stream of its region. Stream 0 is the origin of the capture.
struct PlanPlacement {
  int64_t call_id = 0;
  int32_t stream = 0;
  std::string op;  // for who reads the file; where given, the call must be of it
  bool operator==(const PlanPlacement&) const = default;
};

// `event` is recorded on the stream of `record_after`, right behind that call, and waited for on
// the stream of `wait_before`, right before that one. Forks from the origin and joins to it are not
// listed: the replay makes them.
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
  double gain_ns = 0;  // of eager regions: what a step would gain if nothing barred their capture
  std::vector<PlanPlacement> placements;  // in order of issue; of eager regions empty
  std::vector<PlanWait> waits;            // in order of issue of wait_before
  bool operator==(const PlanRegion&) const = default;
};

// Bytes of an input that moves between steps: copied to a fixed place before each execution.
struct PlanCopy {
  int64_t call_id = 0;  // the first call that uses them
  std::string argument;
  int64_t bytes = 0;
  bool operator==(const PlanCopy&) const = default;
};

// A host argument that varies between steps: the call is captured in a task group and launched
// again with the step's value before each execution.
struct PlanUpdate {
  int64_t call_id = 0;
  std::string argument;
  bool operator==(const PlanUpdate&) const = default;
};

// Nanoseconds per step as predicted; 0 where nothing is known.
struct PlanPrediction {
  double eager_ns = 0;
  double captured_one_stream_ns = 0;
  double captured_ns = 0;
  double capture_cost_ns = 0;
  double break_even_steps = -1;  // -1: never
  bool stay_eager = false;
  std::string reason;  // of "stay eager"
  bool operator==(const PlanPrediction&) const = default;
};

struct Plan {
  int32_t version = 1;
  // What the plan was made for: a plan is refused for another trace.
  int64_t trace_calls = 0;  // number of calls of the trace
  int64_t step = 0;         // template step
  int64_t first_call = 0;   // of the step
  int64_t last_call = 0;
  std::string capture_mode = "relaxed";  // global, thread_local, relaxed
  std::string soc = "Ascend910B1";       // whose limits hold (analyzer/plan/budget.h)
  int32_t streams = 1;                   // most streams of a region
  std::vector<PlanRegion> regions;       // in order, all active calls of the step
  std::vector<PlanCopy> copies;
  std::vector<PlanUpdate> updates;
  PlanPrediction predicted;
  bool operator==(const Plan&) const = default;
};

}  // namespace acltape::analyzer
