// The stretches of a trace that are linted: calls that a program captured, or that are looked at as
// if they were captured on a stream.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/lint/finding.h"
#include "analyzer/work/work.h"

namespace acltape::analyzer {

struct Stretch {
  size_t first = 0;  // calls [first, end) of the work
  size_t end = 0;
  int64_t stream = 0;  // origin of the capture; 0 of aten traces
  int32_t thread = 0;  // that begins the capture
  int64_t step = -1;   // -1: no step
  // Of a capture that the program made; indices in Work::calls, -1: none.
  int64_t begin_call = -1;
  int64_t end_call = -1;  // -1 also where the capture never ended
  int64_t model_id = 0;
  CaptureMode mode = CaptureMode::kGlobal;  // as the program chose

  bool recorded() const { return begin_call >= 0; }
};

// Which calls to lint; both 0 for the default.
struct StretchOptions {
  int64_t first_call = 0;  // call ids
  int64_t last_call = 0;
  int64_t stream = 0;  // origin; 0: the stream of the first task
};

// The default: the captures that the program made; where it made none, each step; where there are
// no steps, all of it. A step or a trace is cut to its work: from its first to its last operator
// (leaf), and on over neighbours that a capture can hold (records, waits, copies of pinned memory),
// so that allocations before and waits behind are left out. Chosen calls are taken as they are,
// less what a capture of the program in them does not hold. Throws Error kUsage when no call is
// chosen.
std::vector<Stretch> FindStretches(const Work& work, const StretchOptions& options);

// A copy between the device and host memory that is not pinned, as far as its arguments tell.
bool IsPageableCopy(const Work& work, size_t call);
// Work that a stream runs in order: operators, asynchronous copies and fills, value writes and
// waits, events, notifies, host functions.
bool IsStreamTask(AclCallKind kind);
// Codes of an end that leave a capture open: not capturing, or another stream's (CAP-13, CAP-14).
bool LeavesCaptureOpen(int32_t status);

}  // namespace acltape::analyzer
