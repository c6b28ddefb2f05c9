// Proves on a device what lint predicts: issues the recorded ACL calls of a stretch again,
// literally, between aclmdlRICaptureBegin on the origin stream and aclmdlRICaptureEnd, and reports
// every code.
//
// Each recorded thread is a thread of its own; they take turns in the recorded order. Streams,
// events and memory are the probe's own, of the recorded kinds: an event that the program had
// recorded before is recorded, memory that was not pinned is not pinned. A graph that the calls
// execute is an empty one. Host functions do nothing. Memory that the calls free is freed after the
// probe. External events are recorded before each execution of the graph, in place of the work that
// the stretch does not hold. Nothing waits for ever: work that stands still ends the probe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/lint/finding.h"
#include "analyzer/lint/stretch.h"

namespace acltape::replayer::probe {

struct ProbeOptions {
  std::string device_lib;  // a folder or file; empty: the soft device
  analyzer::lint::CaptureMode mode = analyzer::lint::CaptureMode::kGlobal;
  std::vector<analyzer::lint::Edit> edits;  // made to the calls before they are issued
  // Number of executions of the graph, each from the same memory: recorded contents where the trace
  // has them, else seeded numbers. With 0 it is only captured.
  int executions = 0;
  uint64_t seed = 1;
  // No execution begins after this time.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

struct ProbedCall {
  int64_t call_id = 0;
  int32_t code = 0;
  std::string message;  // message of the device
};

struct ProbeReport {
  std::string device;
  int32_t begin_code = 0;
  int32_t end_code = 0;  // code of aclmdlRICaptureEnd; meaningless if the capture did not begin
  std::string end_message;
  std::vector<ProbedCall> refused;  // calls with another code than 0, in order
  int64_t issued = 0;
  std::vector<int64_t> left_out;  // calls that the probe does not know or the device cannot run
  // Says why the probe ended early: the device stood still, or the time was over. Empty: it did
  // not.
  std::string stopped;
  // The executions that left other bytes than the first one, and the first buffer with such bytes.
  int64_t executed = 0;
  int64_t differing = 0;
  int64_t differing_buffer = 0;

  // The code that the device gave to a call; 0 where it accepted it.
  int32_t CodeOf(int64_t call_id) const;
  bool captured() const { return begin_code == 0 && end_code == 0; }
};

// Throws Error kDevice when the device fails at what is not the stretch's own.
ProbeReport Probe(const analyzer::Work& work, const analyzer::lint::Stretch& stretch,
                  const ProbeOptions& options);

// Captures the stretch again and again and keeps the graphs, until the device has no stream left.
struct BudgetProbe {
  int64_t graphs = 0;   // graphs that could be captured; `most` if nothing failed
  int32_t code = 0;     // code of the call that failed
  int64_t streams = 0;  // streams that the probe itself took, the default one included
};
BudgetProbe ProbeBudget(const analyzer::Work& work, const analyzer::lint::Stretch& stretch,
                        const ProbeOptions& options, int64_t most);

}  // namespace acltape::replayer::probe
