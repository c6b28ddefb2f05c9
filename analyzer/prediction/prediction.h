// Predicts how long a step takes, eager and captured, before anything is captured. The model has a
// host that issues calls and streams that execute them.
//
// The host issues calls one after the other, each at its host cost. A stream executes its calls
// first in, first out, each one not before it was issued. The host waits where it reads a result,
// and where it is further ahead than the queue's depth. A captured region is one call of the host
// that occupies its stream for the makespan of the graph. Inputs are copied before the first
// region.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analyzer/prediction/costs.h"

namespace acltape::analyzer::prediction {

// An active call of the step. Of the calls of a graph that the program executes the first one costs
// the host the execution.
struct PredictedCall {
  CallCost cost;
  bool host_read = false;  // the host waits for its value
};

// Calls [first, end) of the step. Every call is in one region.
struct PredictedRegion {
  size_t first = 0;
  size_t end = 0;
  bool captured = false;
  bool already = false;    // by the program itself, which executes the graph in every step
  double makespan_ns = 0;  // on its streams, with synchronisation; 0: on one stream
  int32_t updates = 0;     // calls that are issued again before each execution
};

// Bytes that come from the host before the calls that need them.
struct StepCopies {
  int64_t copies = 0;
  int64_t bytes = 0;
};

// Nanoseconds of one step.
struct StepTimes {
  double host_ns = 0;    // the host issues
  double wait_ns = 0;    // the host waits, inside the step
  double device_ns = 0;  // streams execute
  // From the first issue until the host knows that the last task has ended.
  double latency_ns = 0;
  // True if issuing takes longer than executing: the device then waits for the host.
  bool host_bound() const { return host_ns > device_ns; }
};

struct Prediction {
  StepTimes eager;  // as the program runs it: its own graphs are executed as such
  StepTimes captured_one_stream;
  StepTimes captured;
  double capture_cost_ns = 0;  // cost of all graphs, once
  // The number of steps after which the capture has paid for itself in latency; -1: never.
  double break_even_steps = -1;
  bool stay_eager = false;
  std::string reason;  // a sentence if stay_eager is set
};

// A gain below the share `noise` of the eager latency counts as none.
Prediction PredictStep(std::span<const PredictedCall> calls,
                       std::span<const PredictedRegion> regions, const StepCopies& eager_copies,
                       const StepCopies& captured_copies, const DeviceCosts& costs,
                       double noise = 0.02);

// One piece of work that the host issues, in order, for the queue model itself.
struct QueueTask {
  double host_ns = 0;    // to issue it
  double device_ns = 0;  // on the stream
  bool host_read = false;
};
// Runs the queue model on one stream. At most `queue_depth` tasks may be issued and not ended.
StepTimes RunQueue(std::span<const QueueTask> tasks, int64_t queue_depth, double host_read_ns);

}  // namespace acltape::analyzer::prediction
