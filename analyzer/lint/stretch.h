// A stretch is a run of calls that lint looks at as one capture. The program captured these calls,
// or lint treats them as if they were captured on a stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/lint/finding.h"

namespace acltape::analyzer::lint {

// Calls [first, end) that lint looks at as one capture.
struct Stretch {
  size_t first = 0;  // calls [first, end) of the work
  size_t end = 0;
  // The calls of the step before it was shrunk to its work. Host reads may lie at both ends.
  size_t step_first = 0;
  size_t step_end = 0;
  int64_t stream = 0;  // origin of the capture; 0 in aten traces
  int32_t thread = 0;  // thread that begins the capture
  int64_t step = -1;   // -1: no step
  // The capture that the program made. Calls are indices in Work::calls; -1: none.
  int64_t begin_call = -1;
  int64_t end_call = -1;  // also -1 if the capture never ended
  int64_t model_id = 0;
  CaptureMode mode = CaptureMode::kGlobal;  // as the program chose

  bool recorded() const { return begin_call >= 0; }
};

inline std::string OnStream(int64_t stream) { return "stream " + std::to_string(stream); }

// The calls to lint. If both are 0, FindStretches chooses.
struct StretchOptions {
  int64_t first_call = 0;  // call ids
  int64_t last_call = 0;
  int64_t stream = 0;  // origin; 0: the stream of the first task
};

// Finds the stretches to lint. By default these are the captures that the program made. If it made
// none, each step is a stretch. If there are no steps, the whole trace is one. A step or a trace is
// shrunk to its work: from its first to its last operator (leaf), and on over neighbours that a
// capture can hold (records, waits, copies of pinned memory). Allocations before the work and waits
// after it are therefore left out. Chosen calls are taken unchanged, except for calls that a
// capture of the program in them does not hold. Throws Error kUsage when no call is chosen.
std::vector<Stretch> FindStretches(const Work& work, const StretchOptions& options);

// True for a copy between the device and host memory that is not pinned, as far as the arguments
// tell.
bool IsPageableCopy(const Work& work, size_t call);
// True if the end of a capture with this code leaves it open: the stream is not capturing, or it is
// the stream of another capture (CAP-13, CAP-14).
bool LeavesCaptureOpen(int32_t status);

}  // namespace acltape::analyzer::lint
