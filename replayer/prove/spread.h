// Finds out how errors spread: which calls of a replay are wrong by themselves, which only read
// wrong values, and where an error ends.
//
// It needs two replays. In the carried replay, leaves read the results that earlier leaves
// computed. In the golden replay they read recorded results (Inputs in replayer/replay.h). A call
// that differs in the golden replay has an error of its own. A call that differs only in the
// carried replay has inherited the error of a call whose results it reads, directly or through
// other calls. The edges between calls are the RAW hazards of analyzer/graph/hazards.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::replayer::prove {

// An output of a replay that differs from the recording.
struct WrongOutput {
  int64_t call_id = 0;
  bool has_values = false;  // false: only the digests are known
  double max_rel = 0;
  int64_t max_ulp = 0;  // -1: a NaN against a number
};

// Calls of the template step that were captured as one graph. Inside a graph errors are carried
// even in the golden replay.
struct GraphRange {
  int64_t first_call = 0;
  int64_t last_call = 0;
};

// A call that differs in the golden replay.
struct OwnError {
  int64_t call_id = 0;
  // True if it reads a result in the same graph that also differs. That result may be the reason.
  bool beside_another = false;
  WrongOutput worst;  // its output with the greatest relative error, in the golden replay
  // Number of other calls that differ and read its results, directly or through others.
  int64_t reaches = 0;
  int64_t last_call = 0;  // the last of these calls; 0: none
  int64_t steps = 0;      // number of steps that hold these calls
  // Number of calls that read a wrong value from it and still give right results.
  int64_t absorbed = 0;
};

// The calls that differ in the carried replay, grouped by distance: the smallest number of reads
// between the call and an own error.
struct SpreadBand {
  int64_t first_hops = 0;  // 0: the calls with own errors
  int64_t last_hops = 0;
  int64_t calls = 0;
  bool has_values = false;
  double max_rel = 0;
  int64_t max_ulp = 0;  // -1: a NaN against a number
};

// A call that reads wrong values and gives right results.
struct AbsorbingCall {
  int64_t call_id = 0;
  int64_t source_call = 0;  // the first call whose wrong result it reads
};

struct SpreadReport {
  std::vector<OwnError> own;  // in order of call_id
  int64_t inherited = 0;      // calls
  // Calls that differ only in the carried replay although no own error reaches them.
  std::vector<int64_t> unexplained;
  // Calls that differ only in the golden replay: in the carried one, wrong inputs hid the error.
  int64_t hidden = 0;
  std::vector<AbsorbingCall> absorbing;  // in order of call_id
  std::vector<SpreadBand> bands;
};

// `graphs` is empty for an eager replay.
SpreadReport FindSpread(const analyzer::Work& work, const std::vector<WrongOutput>& carried,
                        const std::vector<WrongOutput>& golden,
                        const std::vector<GraphRange>& graphs);

}  // namespace acltape::replayer::prove
